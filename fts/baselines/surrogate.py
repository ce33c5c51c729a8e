"""Observations -> a network of (t, x[, y]) fitted to them alone, kept where its held-out error was lowest.

The first stage of DL-PDE: no equation enters. A fifth of the samples, say, only judges; training stops when
they have not improved for some looks, and the best of all looks is what remains.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fts.adapter.samples import one_thread
from fts.baselines import taylor
from fts.baselines.settings import Inputs, SurrogateParams
from fts.baselines.taylor import Bounds, MLPField
from fts.baselines.training import Checkpoint, adam_arrays, compiled, restore_adam
from fts.domain import Domain
from fts.observations import Observations


@dataclass(frozen=True)
class Surrogate:
    """The network and how its training went."""

    layers: taylor.Weights
    activation: taylor.Activation
    bounds: Bounds | None
    domain: Domain
    steps: int  # taken
    kept: int  # after which the network is this one
    stopped_by: str
    held_out_error: float  # mean square

    def freeze(self) -> MLPField:
        """The network as a field."""
        return self.layers.freeze(self.activation, self.bounds, self.domain)


def fit_surrogate(
    observations: Observations,
    params: SurrogateParams,
    rng: np.random.Generator,
    checkpoint: Checkpoint | None = None,
) -> Surrogate:
    """The network with the lowest held-out error among the looks of one training."""
    points = np.column_stack([observations.t, observations.x])
    bounds = input_bounds(observations.domain, params.inputs)
    generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
    sizes = (points.shape[1], *(params.width,) * params.depth, 1)
    layers = taylor.uniform_wide(sizes, torch.float32, generator)
    inputs, y = (torch.from_numpy(part.astype(np.float32)) for part in (points, observations.y))
    order = rng.permutation(len(y))
    held = order[: max(1, round(params.held_out * len(y)))]
    with one_thread():
        used = order[len(held) :]
        training = _Training(layers, bounds, (inputs[used], y[used]), params, checkpoint)
        return training.run((inputs[held], y[held]), observations.domain, rng)


def input_bounds(domain: Domain, inputs: Inputs) -> Bounds | None:
    """Ends of (t, x[, y]) that the network maps to [-1, 1]; None where it takes the coordinates raw."""
    return ((domain.t0, *domain.low), (domain.t1, *domain.high)) if inputs == "unit" else None


class _Training:
    def __init__(
        self,
        layers: taylor.Weights,
        bounds: Bounds | None,
        samples: tuple[Tensor, Tensor],
        params: SurrogateParams,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.checkpoint = checkpoint or Checkpoint(None, "")
        self.sizes = [len(weight) for weight in layers.weights] + [1]
        self.bounds, self.samples, self.params = bounds, samples, params
        self.theta = layers.vector.requires_grad_(True)
        self.optimizer = torch.optim.Adam([self.theta], lr=params.learning_rate, fused=True)
        self.loss = compiled(self.error, params.steps)
        # What judges: the best network so far, its held-out error, and the step it stood at.
        self.best, self.lowest, self.kept, self.step = self.theta.detach().clone(), np.inf, 0, 0

    def error(self, theta: Tensor, inputs: Tensor, y: Tensor) -> Tensor:
        """Mean squared error at these samples."""
        layers = taylor.unpack(theta, self.sizes)
        values = taylor.values(layers.weights, layers.biases, inputs, self.params.activation, self.bounds)
        return (values - y).square().mean()

    def run(self, held: tuple[Tensor, Tensor], domain: Domain, rng: np.random.Generator) -> Surrogate:
        """Train until the held-out samples have not improved for `patience` looks, or the budget is spent."""
        params, stopped_by = self.params, "budget"
        self._load(rng)
        while self.step < params.steps:
            self._descend(rng)
            self.step += 1
            if self.step % params.check_every and self.step != params.steps:
                continue
            with torch.no_grad():
                error = self.error(self.theta, *held).item()
            if error < self.lowest:
                self.best, self.lowest, self.kept = self.theta.detach().clone(), error, self.step
            elif self.step - self.kept >= params.patience * params.check_every or not np.isfinite(error):
                stopped_by = "patience" if np.isfinite(error) else "not a number"
                break
            self._save(rng)
        layers, lowest = taylor.unpack(self.best, self.sizes), float(self.lowest)
        return Surrogate(
            layers, params.activation, self.bounds, domain, self.step, self.kept, stopped_by, lowest
        )

    def _save(self, rng: np.random.Generator) -> None:
        arrays = {"theta": self.theta.detach().numpy(), "best": self.best.numpy()}
        header = {"step": self.step, "kept": self.kept, "lowest": self.lowest}
        self.checkpoint.save(header, arrays | adam_arrays(self.optimizer), rng)

    def _load(self, rng: np.random.Generator) -> None:
        stored = self.checkpoint.load(rng)
        if stored is None:
            return
        header, arrays = stored
        self.step, self.kept, self.lowest = header["step"], header["kept"], header["lowest"]
        self.best = torch.from_numpy(arrays["best"].copy())
        with torch.no_grad():
            self.theta.copy_(torch.from_numpy(arrays["theta"].copy()))
        restore_adam(self.optimizer, arrays)

    def _descend(self, rng: np.random.Generator) -> None:
        inputs, y = self.samples
        if len(y) > self.params.batch:
            chosen = rng.choice(len(y), self.params.batch, replace=False, shuffle=False)
            rows = torch.from_numpy(chosen)
            inputs, y = inputs[rows], y[rows]
        self.optimizer.zero_grad()
        self.loss(self.theta, inputs, y).backward()
        self.optimizer.step()
