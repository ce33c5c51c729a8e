"""Observations -> a network of (t, x[, y]) fitted to them alone, kept where its held-out error was lowest.

The first stage of DL-PDE: no equation enters. A fifth of the samples, say, only judges; training stops when
they have not improved for some looks, and the best of all looks is what remains.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fts.adapter.device import one_thread
from fts.baselines import taylor
from fts.baselines.compiling import compiled
from fts.baselines.mlp_field import Bounds, MLPField
from fts.domain import Domain
from fts.observations import Observations
from fts.params import Inputs, SurrogateParams


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


def fit_surrogate(observations: Observations, params: SurrogateParams, rng: np.random.Generator) -> Surrogate:
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
        training = _Training(layers, bounds, (inputs[used], y[used]), params)
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
    ) -> None:
        self.sizes = [len(weight) for weight in layers.weights] + [1]
        self.bounds, self.samples, self.params = bounds, samples, params
        self.theta = layers.vector.requires_grad_(True)
        self.optimizer = torch.optim.Adam([self.theta], lr=params.learning_rate, fused=True)
        self.loss = compiled(self.error, params.steps)

    def error(self, theta: Tensor, inputs: Tensor, y: Tensor) -> Tensor:
        """Mean squared error at these samples."""
        layers = taylor.unpack(theta, self.sizes)
        values = taylor.values(layers.weights, layers.biases, inputs, self.params.activation, self.bounds)
        return (values - y).square().mean()

    def run(self, held: tuple[Tensor, Tensor], domain: Domain, rng: np.random.Generator) -> Surrogate:
        """Train until the held-out samples have not improved for `patience` looks, or the budget is spent."""
        params, best, lowest, kept, step = self.params, self.theta.detach().clone(), np.inf, 0, 0
        stopped_by = "budget"
        for step in range(1, params.steps + 1):
            self._step(rng)
            if step % params.check_every and step != params.steps:
                continue
            with torch.no_grad():
                error = self.error(self.theta, *held).item()
            if error < lowest:
                best, lowest, kept = self.theta.detach().clone(), error, step
            elif step - kept >= params.patience * params.check_every or not np.isfinite(error):
                stopped_by = "patience" if np.isfinite(error) else "not a number"
                break
        layers = taylor.unpack(best, self.sizes)
        return Surrogate(
            layers, params.activation, self.bounds, domain, step, kept, stopped_by, float(lowest)
        )

    def _step(self, rng: np.random.Generator) -> None:
        inputs, y = self.samples
        if len(y) > self.params.batch:
            chosen = rng.choice(len(y), self.params.batch, replace=False, shuffle=False)
            rows = torch.from_numpy(chosen)
            inputs, y = inputs[rows], y[rows]
        self.optimizer.zero_grad()
        self.loss(self.theta, inputs, y).backward()
        self.optimizer.step()
