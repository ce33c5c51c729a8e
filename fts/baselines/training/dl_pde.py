"""The training and the read-out of DL-PDE: samples -> surrogate network -> derivatives on a grid -> terms.

No equation enters the first stage. A fifth of the samples, say, only judges; training stops when they have
not improved for some looks, and the best of all looks is what remains.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fts.baselines.dl_pde import DLPDEParams, SurrogateParams
from fts.baselines.mlp_field import MLPField
from fts.baselines.stridge import survivors
from fts.baselines.training import loop, taylor
from fts.domain import Domain, grid_points
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection import sparse
from fts.selection.selection import Selection

# Meta-data differentiated at once.
_CHUNK = 1 << 11


def dl_pde(
    observations: Observations,
    library: Library,
    params: DLPDEParams,
    rng: np.random.Generator,
    *,
    checkpoint: Path | None = None,
) -> Selection:
    """The terms that survive on the surrogate's derivatives, refit there by ridge."""
    taylor.plan_columns(library, observations.domain.dimension)  # refused before the training, not after
    kept = loop.checkpoint_of(checkpoint, observations, library, params, rng)
    surrogate, notes = fit_surrogate(observations, params.surrogate, rng, kept)
    seconds, fitted = {"fit": kept.seconds}, time.process_time()
    selection = select_on(surrogate, library, params)
    seconds["select"] = time.process_time() - fitted
    return replace(selection, seconds=seconds, notes={**notes, **selection.notes})


def fit_surrogate(
    observations: Observations,
    params: SurrogateParams,
    rng: np.random.Generator,
    checkpoint: loop.Checkpoint | None = None,
) -> tuple[MLPField, dict[str, Any]]:
    """The network with the lowest held-out error among the looks of one training, and how that went."""
    training, notes = loop.train(lambda rng: SurrogateTraining(observations, params, rng), rng, checkpoint)
    notes |= {"iterations": training.steps, "stopped_by": training.stopped_by, "kept": training.kept}
    return training.network.freeze(training.best), notes | {"held_out_error": training.lowest}


def select_on(surrogate: MLPField, library: Library, params: DLPDEParams) -> Selection:
    """STRidge on the surrogate's derivatives at the meta-data grid."""
    A, b = meta_data(surrogate, library, params.grid, params.margin)
    xi = sparse.refit(A, b, survivors(A, b, params.stridge), params.stridge.refit_ridge)
    return Selection(library, xi, "DL-PDE", field=surrogate, notes={"rows": len(b)})


class SurrogateTraining(loop.Training):
    """Samples and compiled loss, which stay; network, optimizer and the best look so far."""

    stored = ("theta", "best", "steps", "stopped_by", "kept", "lowest")

    def __init__(self, observations: Observations, params: SurrogateParams, rng: np.random.Generator) -> None:
        self.params, self.rng, self.save_every = params, rng, params.check_every
        shape = params.width, params.depth, params.activation, params.inputs
        self.network = taylor.perceptron(observations.domain, *shape)
        generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        layers = taylor.uniform_wide(self.network.sizes, torch.float32, generator)
        order = rng.permutation(len(observations))
        held, used = np.split(order, [max(1, round(params.held_out * len(order)))])
        self.samples, self.held = (taylor.sample_tensors(observations, rows) for rows in (used, held))
        self.theta = layers.vector.requires_grad_(True)
        self.optimizer = torch.optim.Adam([self.theta], lr=params.learning_rate, fused=True)
        self.loss = loop.compiled(self.error, params.steps)
        self.stopped_by = "budget"
        # What judges: the best network so far, its held-out error, and the step it stood at.
        self.best, self.lowest, self.kept = self.theta.detach().clone(), np.inf, 0

    @property
    def finished(self) -> bool:
        """The held-out error has not improved for `patience` looks, or the budget is spent."""
        return self.steps >= self.params.steps or self.stopped_by != "budget"

    def error(self, theta: Tensor, inputs: Tensor, y: Tensor) -> Tensor:
        """Mean squared error at these samples."""
        return (self.network.values(theta, inputs) - y).square().mean()

    def step(self) -> None:
        """One step of the optimizer, and now and then a look at the held-out samples."""
        self.optimizer.zero_grad()
        self.loss(self.theta, *self._batch()).backward()
        self.optimizer.step()
        self.steps += 1
        if self.steps % self.params.check_every == 0 or self.steps == self.params.steps:
            self._look()

    def _look(self) -> None:
        params = self.params
        with torch.no_grad():
            error = self.error(self.theta, *self.held).item()
        if error < self.lowest:
            self.best, self.lowest, self.kept = self.theta.detach().clone(), error, self.steps
        elif not np.isfinite(self.lowest):
            raise loop.Diverged(f"the first network was not a number after {self.steps} steps")
        elif not np.isfinite(error):
            self.stopped_by = "not a number"
        elif self.steps - self.kept >= params.patience * params.check_every:
            self.stopped_by = "patience"

    def _batch(self) -> tuple[Tensor, Tensor]:
        inputs, y = self.samples
        if len(y) <= self.params.batch:
            return inputs, y
        rows = torch.from_numpy(self.rng.choice(len(y), self.params.batch, replace=False, shuffle=False))
        return inputs[rows], y[rows]


def meta_data(
    surrogate: MLPField, library: Library, grid: tuple[int, ...], margin: float
) -> tuple[Float[np.ndarray, "m J"], Float[np.ndarray, " m"]]:
    """Every term and u_t on the grid, `margin` of every axis away from its ends, in double precision."""
    domain = surrogate.domain
    points = torch.from_numpy(np.roll(grid_points(meta_axes(domain, grid, margin)), 1, axis=1))
    groups = (surrogate.weights, surrogate.biases)
    layers = taylor.Weights(*(tuple(torch.from_numpy(part) for part in group) for group in groups))
    activation = cast(taylor.Activation, surrogate.activation)
    jets = [taylor.propagate(layers, chunk, activation, surrogate.bounds) for chunk in points.split(_CHUNK)]
    plan = taylor.plan_columns(library, domain.dimension)
    A = torch.cat([taylor.evaluate(plan, jet) for jet in jets])
    return A.numpy(), torch.cat([jet[taylor.TIME] for jet in jets]).numpy()


def meta_axes(domain: Domain, grid: tuple[int, ...], margin: float) -> tuple[np.ndarray, ...]:
    """Equidistant points of the inner part of every axis (x, [y,] t)."""
    if len(grid) != domain.dimension + 1 or not 0 <= margin < 0.5:
        raise ValueError(
            f"a grid {grid} with margin {margin}: give one count for each of {domain.dimension} spatial axes "
            "and time, and leave out less than half at either end"
        )
    ends = zip((*domain.low, domain.t0), domain.extents, grid, strict=True)
    return tuple(np.linspace(low + margin * size, low + (1 - margin) * size, n) for low, size, n in ends)
