"""DeepMoD: observations -> a network held to an equation, whose terms are dropped as it trains.

Both, Choudhury, Sens and Kusters (2021); Both, Vermarien and Kusters (2021). The settings are those of the
authors' release, DeePyMoD 2.2.0: raw coordinates and data, equal weights, Adam, a lasso estimator with a
threshold; `deepymod_reference` runs the release itself on the same rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from fts.adapter.samples import one_thread
from fts.baselines.deepmod_training import DeepMoDTraining
from fts.baselines.settings import DeepMoDParams
from fts.baselines.taylor import MLPField
from fts.baselines.training import checkpoint_of
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection

# (iteration, losses by name, coefficients on the library, terms in play, the field), all of one network.
Watcher = Callable[[int, Mapping[str, float], np.ndarray, np.ndarray, MLPField], None]
# Iterations between two writings of the state to disk.
_KEPT = 1000


@dataclass(frozen=True)
class DeepMoDRun:
    """The terminal state: terms in play, their coefficients, the network, and how training went."""

    xi: Float[np.ndarray, " J"]
    mask: Bool[np.ndarray, " J"]
    field: MLPField
    notes: Mapping[str, Any]
    seconds: float


def deepmod(
    observations: Observations,
    library: Library,
    params: DeepMoDParams,
    rng: np.random.Generator,
    *,
    callback: Watcher | None = None,
    checkpoint: Path | None = None,
) -> Selection:
    """The terminal terms and their coefficients; an empty equation where all were dropped."""
    found = train_deepmod(observations, library, params, rng, callback=callback, checkpoint=checkpoint)
    return Selection(
        library,
        found.xi,
        "DeepMoD",
        field=found.field,
        seconds={"fit": found.seconds},
        notes=found.notes,
    )


def train_deepmod(
    observations: Observations,
    library: Library,
    params: DeepMoDParams,
    rng: np.random.Generator,
    *,
    callback: Watcher | None = None,
    checkpoint: Path | None = None,
) -> DeepMoDRun:
    """Trained until the coefficients settle or the budget is spent.

    The callback sees every check and cannot change what comes out: losses are "data" and "residual" of the
    training rows, "held_out" their sum on the others, all before the step, "validation" the data error after
    it. A run with a checkpoint continues one that was interrupted, to the same bits.
    """
    with one_thread():
        kept = checkpoint_of(checkpoint, observations, library, params)
        training = DeepMoDTraining(observations, library, params, rng, params.max_iterations)
        # The same samples may be trained on from several starts.
        kept.run = f"{kept.run}-{training.seed}"
        training.load(kept, rng)
        while training.iteration < params.max_iterations and not training.schedule.converged:
            _iterate(training, callback)
            if training.iteration % _KEPT == 0:
                training.save(kept, rng)
        seconds = kept.seconds
        training.save(kept, rng)
        # The last step moved the network, and the last check perhaps the terms: one more solve.
        training.solve()
        notes = _notes(training)
        return DeepMoDRun(training.xi, training.mask, training.freeze(), notes, seconds)


def _iterate(training: DeepMoDTraining, callback: Watcher | None) -> None:
    iteration = training.iteration
    due = iteration % training.params.check_every == 0
    loss = training.solve()
    losses, xi, mask, field = training.losses, training.xi, training.mask, None
    if due and callback is not None:
        losses, field = losses | {"held_out": training.held_out()}, training.freeze()
    training.descend(loss)
    if due:
        error = training.check()
        if callback is not None and field is not None:
            callback(iteration, losses | {"validation": error}, xi.copy(), mask.copy(), field)
    training.iteration += 1


def _notes(training: DeepMoDTraining) -> dict[str, Any]:
    schedule = training.schedule
    return {
        "iterations": training.iteration,
        "converged": schedule.converged,
        "stopped_by": "convergence" if schedule.converged else "budget",
        "sparse_since": schedule.since if schedule.sparse else None,
        "masks": schedule.masks,
        "samples": training.n + len(training.held_y),
        "final_data": training.losses["data"],
        "final_residual": training.losses["residual"],
        "held_out": training.held_out(),
        "compiled": training.is_compiled,
    }
