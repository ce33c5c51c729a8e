"""STRidge inside PINN-SR: library, u_t and present coefficients -> sparser ones, by a tolerance search.

Unlike PDE-FIND's, thresholding starts from the coefficients training has arrived at, so terms that are gone
stay gone; a tolerance is scored by the mean squared residual on held-out rows plus eta per term.

PINN-SR: observations -> a network and coefficients, trained jointly, then in turns (ADO).

Chen, Liu and Sun (2021). Pretraining fits both; then every cycle projects the coefficients by STRidge and
trains the network against them. Reported is the projection after the last cycle.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from fts.adapter.samples import one_thread
from fts.baselines.pinn_training import JointTraining
from fts.baselines.settings import PINNSRParams
from fts.baselines.training import Checkpoint, Diverged, adam_arrays, checkpoint_of, restore_adam
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection

# The search retreats by shorter and shorter steps, each the golden section of the one before.
_GOLDEN = 1.618


@dataclass(frozen=True)
class Search:
    """What one search hands to the next: coefficients, where the tolerance stands, the price of a term."""

    xi: Float[np.ndarray, " J"]
    tolerance: float
    eta: float | None  # held-out error of the coefficients the first search was given


def search(
    A: Float[np.ndarray, "m J"],
    b: Float[np.ndarray, " m"],
    before: Search,
    test: Bool[np.ndarray, " m"],
    params: PINNSRParams,
) -> Search:
    """The coefficients with the lowest score among the tolerances tried and those given."""
    norms = np.linalg.norm(A, axis=0)
    unit = A / np.where(norms > 0, norms, 1.0)
    given = before.xi * norms

    def error(w: np.ndarray) -> float:
        return float(np.mean((b[test] - unit[test] @ w) ** 2))

    eta = error(given) if before.eta is None else before.eta
    best, lowest = given, error(given) + eta * np.count_nonzero(given)
    tolerance, step = before.tolerance, params.tolerance_step
    for _ in range(params.rounds):
        w = threshold(unit[~test], b[~test], given, tolerance, params.ridge, params.thresholdings)
        score = error(w) + eta * np.count_nonzero(w)
        if score <= lowest:
            best, lowest = w, score
            tolerance += step
        else:
            tolerance = max(0.0, tolerance - 2 * step)
            step /= _GOLDEN
            tolerance += step
    return Search(np.divide(best, norms, out=np.zeros_like(best), where=norms > 0), tolerance, eta)


def threshold(
    A: Float[np.ndarray, "m J"],
    b: Float[np.ndarray, " m"],
    given: Float[np.ndarray, " J"],
    tolerance: float,
    ridge: float,
    rounds: int,
) -> Float[np.ndarray, " J"]:
    """Drop |w_j| < tolerance and refit by ridge, from w given, until nothing drops; then least squares.

    What would empty the equation in a later round is not dropped; in the first it is, and nothing is left.
    """
    w = given.copy()
    kept = np.abs(w) >= tolerance
    relevant = w.size
    for done in range(rounds):
        staying = np.abs(w) >= tolerance
        if staying.sum() == relevant or (done and not staying.any()):
            break
        kept, relevant = staying, int(staying.sum())
        w = np.zeros_like(w)
        gram = A[:, kept].T @ A[:, kept] + ridge * np.eye(relevant)
        w[kept] = np.linalg.lstsq(gram, A[:, kept].T @ b, rcond=None)[0]
    w = np.zeros_like(w)
    w[kept] = np.linalg.lstsq(A[:, kept], b, rcond=None)[0]
    return w


# A pretraining is kept on disk so many times; between two of them L-BFGS runs on, then forgets its memory.
_BLOCKS = 10


def pinn_sr(
    observations: Observations,
    library: Library,
    params: PINNSRParams,
    rng: np.random.Generator,
    *,
    checkpoint: Path | None = None,
) -> Selection:
    """The last STRidge projection of the alternating optimization."""
    kept = checkpoint_of(checkpoint, observations, library, params)
    notes: dict[str, Any] = {}
    with one_thread():
        try:
            run = _Run(observations, library, params, rng, kept)
            xi = run.all()
        except Diverged as error:
            notes["reseeded"] = str(error)
            kept.remove()
            run = _Run(observations, library, params, rng, kept)
            xi = run.all()
    training = run.training
    notes |= {
        "iterations": dict(run.done),
        "stopped_by": run.stopped_by,
        "held_out_error": training.held_out_error(),
        "rows": len(training.residual_points),
    }
    seconds = {"fit": kept.seconds}
    return Selection(library, xi, "PINN-SR", field=training.freeze(), seconds=seconds, notes=notes)


class _Run:
    """The phases in their order, each resumed where its checkpoint stands."""

    def __init__(
        self,
        observations: Observations,
        library: Library,
        params: PINNSRParams,
        rng: np.random.Generator,
        checkpoint: Checkpoint,
    ) -> None:
        self.params, self.checkpoint = params, checkpoint
        stored = checkpoint.load(rng)
        # Randomness ends with the draws that follow: kept is where the generator stood before them.
        self.rng = copy.deepcopy(rng)
        self.training = JointTraining(observations, library, params, rng)
        rows = len(self.training.residual_points)
        self.test = rng.permutation(rows) < params.test_rows * rows
        self.projected = Search(np.zeros(len(library)), params.tolerance_step, None)
        self.optimizer = self._joint_adam()
        self.done = {"adam": 0, "lbfgs": 0, "cycles": 0}
        self.stopped_by = "budget"
        if stored is not None:
            self._resume(*stored)

    def all(self) -> np.ndarray:
        """Adam, L-BFGS-B, the cycles, and the projection after them."""
        params, training, done = self.params, self.training, self.done
        while done["adam"] < params.adam_steps:
            steps = min(-(-params.adam_steps // _BLOCKS), params.adam_steps - done["adam"])
            training.adam(self.optimizer, steps, params.residual_weight)
            done["adam"] += steps
            self._save()
        while done["lbfgs"] < params.lbfgs_iterations and self.stopped_by == "budget":
            block = -(-params.lbfgs_iterations // _BLOCKS)
            asked = min(block, params.lbfgs_iterations - done["lbfgs"])
            taken, message = training.lbfgs(asked, params.residual_weight)
            # Single precision ends a line search now and then; a block without memory often goes on.
            self.stopped_by = "budget" if taken > block // 100 else message
            done["lbfgs"] += taken
            self._save()
        if not done["cycles"]:
            self.optimizer = self._network_adam()
            self.projected = Search(self._coefficients(), params.tolerance_step, None)
        while done["cycles"] < params.cycles:
            self._project()
            training.adam(self.optimizer, params.cycle_steps, params.cycle_residual_weight)
            done["cycles"] += 1
            self._save()
        self._project()
        return self.projected.xi

    def _project(self) -> None:
        A, b = self.training.system()
        self.projected = search(A, b, self.projected, self.test, self.params)
        with torch.no_grad():
            self.training.lam.copy_(torch.from_numpy(self.projected.xi))

    def _coefficients(self) -> np.ndarray:
        return self.training.lam.detach().double().numpy()

    def _joint_adam(self) -> torch.optim.Adam:
        both = [self.training.theta, self.training.lam]
        return torch.optim.Adam(both, lr=self.params.adam_rate, fused=True)

    def _network_adam(self) -> torch.optim.Adam:
        params = self.params
        return torch.optim.Adam(
            [self.training.theta], lr=params.cycle_rate, betas=params.cycle_betas, fused=True
        )

    def _save(self) -> None:
        header = {
            "done": self.done,
            "stopped_by": self.stopped_by,
            "tolerance": self.projected.tolerance,
            "eta": self.projected.eta,
        }
        arrays = {
            "theta": self.training.theta.detach().numpy(),
            "lam": self.training.lam.detach().numpy(),
            "projected": self.projected.xi,
        }
        self.checkpoint.save(header, arrays | adam_arrays(self.optimizer), self.rng)

    def _resume(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Points and split are drawn again; what training changed is read."""
        self.done, self.stopped_by = dict(header["done"]), header["stopped_by"]
        self.projected = Search(arrays["projected"], header["tolerance"], header["eta"])
        if self.done["cycles"]:
            self.optimizer = self._network_adam()
        with torch.no_grad():
            self.training.theta.copy_(torch.from_numpy(arrays["theta"].copy()))
            self.training.lam.copy_(torch.from_numpy(arrays["lam"].copy()))
        restore_adam(self.optimizer, arrays)
