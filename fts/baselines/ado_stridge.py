"""STRidge inside PINN-SR: library, u_t and present coefficients -> sparser ones, by a tolerance search.

Unlike PDE-FIND's, thresholding starts from the coefficients training has arrived at, so terms that are gone
stay gone; a tolerance is scored by the mean squared residual on held-out rows plus eta per term.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from fts.params import PINNSRParams

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
