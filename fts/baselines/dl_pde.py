"""DL-PDE: observations -> surrogate network -> its derivatives on a grid -> thresholded ridge.

Xu, Chang and Zhang (2021). The network never sees an equation; it is differentiated exactly on a regular grid
inside the box, the meta-data, and STRidge at a fixed tolerance on unit columns chooses the terms.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from fts.baselines import taylor
from fts.baselines.settings import DLPDEParams
from fts.baselines.stridge import survivors
from fts.baselines.surrogate import Surrogate, fit_surrogate
from fts.baselines.training import Checkpoint, checkpoint_of
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
    kept = checkpoint_of(checkpoint, observations, library, params)
    surrogate, notes = fit_again(observations, params, rng, kept)
    fitted = time.process_time()
    seconds = {"fit": kept.seconds}
    found = select_on(surrogate, library, params)
    seconds["select"] = time.process_time() - fitted
    return replace(found, field=surrogate.freeze(), seconds=seconds, notes={**notes, **found.notes})


def fit_again(
    observations: Observations,
    params: DLPDEParams,
    rng: np.random.Generator,
    checkpoint: Checkpoint | None = None,
) -> tuple[Surrogate, dict[str, Any]]:
    """The surrogate, from a second start where the first ends in no number, and how training went."""
    surrogate = fit_surrogate(observations, params.surrogate, rng, checkpoint)
    notes: dict[str, Any] = {}
    if not np.isfinite(surrogate.held_out_error):
        notes["reseeded"] = f"the first network was not a number after {surrogate.steps} steps"
        if checkpoint is not None:
            checkpoint.remove()
        surrogate = fit_surrogate(observations, params.surrogate, rng, checkpoint)
    notes |= {
        "iterations": surrogate.steps,
        "stopped_by": surrogate.stopped_by,
        "kept": surrogate.kept,
        "held_out_error": surrogate.held_out_error,
    }
    return surrogate, notes


def select_on(surrogate: Surrogate, library: Library, params: DLPDEParams) -> Selection:
    """STRidge on the surrogate's derivatives at the meta-data grid."""
    A, b = meta_data(surrogate, library, params.grid, params.margin)
    xi = sparse.refit(A, b, survivors(A, b, params.stridge), params.stridge.refit_ridge)
    return Selection(library, xi, "DL-PDE", notes={"rows": len(b)})


def meta_data(
    surrogate: Surrogate, library: Library, grid: tuple[int, ...], margin: float
) -> tuple[Float[np.ndarray, "m J"], Float[np.ndarray, " m"]]:
    """Every term and u_t on the grid, `margin` of every axis away from its ends, in double precision."""
    domain = surrogate.domain
    points = torch.from_numpy(np.roll(grid_points(meta_axes(domain, grid, margin)), 1, axis=1))
    weights, biases = (
        [part.double() for part in group] for group in (surrogate.layers.weights, surrogate.layers.biases)
    )
    A, b = [], []
    with torch.no_grad():
        for chunk in points.split(_CHUNK):
            jet = taylor.propagate(weights, biases, chunk, surrogate.activation, surrogate.bounds)
            A.append(taylor.columns(library, jet, domain.dimension))
            b.append(jet[taylor.TIME])
    return torch.cat(A).numpy(), torch.cat(b).numpy()


def meta_axes(domain: Domain, grid: tuple[int, ...], margin: float) -> tuple[np.ndarray, ...]:
    """Equidistant points of the inner part of every axis (x, [y,] t)."""
    if len(grid) != domain.dimension + 1 or not 0 <= margin < 0.5:
        raise ValueError(
            f"a grid {grid} with margin {margin}: give one count for each of {domain.dimension} spatial axes "
            "and time, and leave out less than half at either end"
        )
    ends = zip((*domain.low, domain.t0), domain.extents, grid, strict=True)
    return tuple(
        np.linspace(low + margin * extent, low + (1 - margin) * extent, n) for low, extent, n in ends
    )
