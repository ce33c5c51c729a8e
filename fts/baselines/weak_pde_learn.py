"""Weak-PDE-LEARN: observations -> a rational network and the equation's coefficients, learned in one loss.

Stephany and Earls (2024). Data misfit plus the residual of the weak form under random test functions; after a
free burn-in a p-norm penalty, by reweighted squares, makes the coefficients sparse. Each column is
D^alpha q(u) without its scale, D_x(u^2) for u*u_x, as in the authors' code; what is reported, and compared
with the threshold, is the coefficient of the library's own term.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from fts.adapter.samples import one_thread
from fts.baselines.settings import WeakPDELearnParams
from fts.baselines.training import Checkpoint, Diverged, checkpoint_of
from fts.baselines.weak_training import RationalField, WeakTraining
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection

# (epoch, losses by name, coefficients on the library, terms still in play, the field)
Watcher = Callable[[int, Mapping[str, float], np.ndarray, np.ndarray, RationalField], None]
# How often in a training its state is kept on disk.
_KEPT = 20


@dataclass(frozen=True)
class Trained:
    """The final state: coefficients on the library, terms still in play, the network, the last losses."""

    xi: Float[np.ndarray, " J"]
    alive: Bool[np.ndarray, " J"]
    field: RationalField
    losses: Mapping[str, float]
    refit: Float[np.ndarray, " J"]  # least squares of a weak system on the support, for comparison


def weak_pde_learn(
    observations: Observations,
    library: Library,
    params: WeakPDELearnParams,
    rng: np.random.Generator,
    *,
    callback: Watcher | None = None,
    checkpoint: Path | None = None,
) -> Selection:
    """The coefficients above the threshold at the end of the sparsification; no refit."""
    kept = checkpoint_of(checkpoint, observations, library, params)
    notes: dict[str, Any] = {"iterations": params.burn_in + params.sparsification, "stopped_by": "budget"}
    try:
        trained = train(observations, library, params, rng, callback=callback, checkpoint=kept)
    except Diverged as error:
        # The denominators of the activations are not guarded, as in the authors' code: one new start.
        notes["reseeded"] = str(error)
        kept.remove()
        trained = train(observations, library, params, rng, callback=callback, checkpoint=kept)
    xi = np.where(trained.alive & (np.abs(trained.xi) > params.threshold), trained.xi, 0.0)
    notes |= {f"final_{name}": value for name, value in trained.losses.items()}
    notes["least_squares"] = {
        name: float(value) for name, value in zip(library.names, trained.refit, strict=True) if value
    }
    seconds = {"fit": kept.seconds}
    return Selection(library, xi, "Weak-PDE-LEARN", field=trained.field, seconds=seconds, notes=notes)


def train(
    observations: Observations,
    library: Library,
    params: WeakPDELearnParams,
    rng: np.random.Generator,
    *,
    callback: Watcher | None = None,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Both phases; the callback sees every epoch and cannot change what comes out.

    Of its losses "held_out", the weak loss under test functions of the epoch's own, is there at every
    `watch_every`-th epoch and the last.
    """
    checkpoint = checkpoint or Checkpoint(None, "")
    epochs = params.burn_in + params.sparsification
    period = max(1, epochs // _KEPT)
    with one_thread():
        training = WeakTraining(observations, library, params, rng)
        training.start(checkpoint)
        while training.epoch < epochs:
            training.step()
            last = training.epoch == epochs
            if callback is not None:
                due = last or training.epoch % params.watch_every == 0
                losses = training.losses | ({"held_out": training.held_out()} if due else {})
                callback(
                    training.epoch, losses, training.physical(), training.alive.copy(), training.freeze()
                )
            if last or training.epoch % period == 0:
                training.save(checkpoint)
        refit = training.refit()
        return Trained(training.physical(), training.alive, training.freeze(), training.losses, refit)
