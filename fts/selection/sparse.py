"""A system (A, b) -> sparse coefficients: STLSQ, STRidge and the ridge refit (paper, Section "SVWS", B.2).

Every solver works on unit columns, A = A~ D with ||A~_j|| = 1, and b as it is. One Gram matrix per system
carries all supports and thresholds: after it, a solve costs |S|^3 whatever the number of rows.

Defined outcomes: a zero column is never selected and has coefficient zero; an empty support and a zero b give
zero coefficients; dependent columns share a coefficient (ridge > 0) or get the shortest solution (ridge = 0).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import get_lapack_funcs

# Normal equations square the condition number; beyond this Gram fewer than eight digits are left: QR then.
_CONDITION = 1e8
# Singular values below this fraction of the largest belong to dependent columns.
_RANK = 1e-12


@dataclass(frozen=True)
class NormalSystem:
    """min ||A~ x - b||: unit columns, their norms D, and the Gram matrix that all solves share."""

    A: Float[np.ndarray, "m J"]  # unit columns; a zero column stays zero
    b: Float[np.ndarray, " m"]
    norms: Float[np.ndarray, " J"]

    @cached_property
    def gram(self) -> Float[np.ndarray, "J J"]:
        """A~^T A~."""
        return self.A.T @ self.A

    @cached_property
    def moment(self) -> Float[np.ndarray, " J"]:
        """A~^T b."""
        return self.A.T @ self.b

    @property
    def usable(self) -> Bool[np.ndarray, " J"]:
        """Columns that are not zero."""
        return self.norms > 0

    def physical(self, x: Float[np.ndarray, " J"]) -> Float[np.ndarray, " J"]:
        """D^-1 x: coefficients of the columns as they were given."""
        return np.divide(x, self.norms, out=np.zeros_like(x), where=self.usable)


def normalize(A: Float[np.ndarray, "m J"], b: Float[np.ndarray, " m"]) -> NormalSystem:
    """The system with unit columns; refuses entries that are not finite."""
    if len(A) != len(b) or not len(b):
        raise ValueError(f"A {A.shape} and b {b.shape} need the same number of rows, at least one")
    for name, values in (("A", A), ("b", b)):
        if not np.isfinite(values).all():
            index = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise ValueError(f"{name}{list(index)} is {values[index]}: mend the field, drop the row or term")
    # Scaled by the largest entry first, so that the squares of very small or large columns stay in range.
    largest = np.abs(A).max(axis=0)
    unit = A / np.where(largest > 0, largest, 1.0)
    lengths = np.sqrt(np.einsum("mj,mj->j", unit, unit))
    return NormalSystem(unit / np.where(lengths > 0, lengths, 1.0), b, lengths * largest)


def solve(system: NormalSystem, support: Bool[np.ndarray, " J"], ridge: float) -> Float[np.ndarray, " J"]:
    """argmin ||A~_S x - b||^2 + ridge ||x||^2 in normalized coordinates, zero outside the support."""
    x = np.zeros(len(support))
    active = np.flatnonzero(support & system.usable)
    if not active.size or not system.b.any():
        return x
    gram = system.gram[np.ix_(active, active)]
    # Eigenvalues of a unit-column Gram lie in [0, |S|]: the ridge bounds the condition number by |S| / ridge.
    if ridge * _CONDITION >= active.size or np.linalg.cond(gram) < _CONDITION:
        (posv,) = get_lapack_funcs(("posv",), dtype=np.float64)
        _, x[active], failed = posv(gram + ridge * np.eye(active.size), system.moment[active])
        if not failed:
            return x
    x[active] = _solve_rows(system.A[:, active], system.b, ridge)
    return x


def refit(
    A: Float[np.ndarray, "m J"], b: Float[np.ndarray, " m"], support: Bool[np.ndarray, " J"], ridge: float
) -> Float[np.ndarray, " J"]:
    """Physical coefficients of the ridge fit on unit columns, restricted to the support (eq. ridge refit)."""
    system = normalize(A, b)
    return system.physical(solve(system, support, ridge))


def stlsq(
    system: NormalSystem, threshold: float, ridge: float, max_iterations: int
) -> Float[np.ndarray, " J"]:
    """Sequentially thresholded least squares in normalized coordinates; its nonzero pattern is the support.

    Fit, drop |x_j| < threshold, fit the rest, until nothing is dropped: dropped terms do not return.
    """
    if not (np.isfinite(threshold) and threshold >= 0 and ridge >= 0 and max_iterations >= 1):
        raise ValueError(
            f"threshold {threshold}, ridge {ridge}, max_iterations {max_iterations}: give values >= 0, "
            "and at least one iteration"
        )
    support = system.usable
    x = solve(system, support, ridge)
    for _ in range(max_iterations):
        kept = support & (np.abs(x) >= threshold) & (x != 0)
        if (kept == support).all():
            break
        support = kept
        x = solve(system, support, ridge)
    return np.where(support, x, 0.0)


def stridge(
    system: NormalSystem, threshold: float, ridge: float, max_iterations: int
) -> Float[np.ndarray, " J"]:
    """STLSQ with ridge, then an ordinary fit on what it kept: sequentially thresholded ridge of PDE-FIND."""
    kept = stlsq(system, threshold, ridge, max_iterations) != 0
    return solve(system, kept, 0.0)


def train_stridge(
    system: NormalSystem, ridge: float, step: float, rounds: int, rng: np.random.Generator
) -> Float[np.ndarray, " J"]:
    """STRidge, its threshold searched on a held-out fifth of the rows by ||A~x - b|| + 1e-3 cond(A~) |S|."""
    m = len(system.b)
    order = rng.permutation(m)
    train, test = order[: max(1, 4 * m // 5)], order[max(1, 4 * m // 5) :]
    if not test.size:
        raise ValueError(f"{m} rows leave none to hold out: give at least two")
    part = NormalSystem(system.A[train], system.b[train], system.norms)
    held = system.A[test], system.b[test]
    penalty = 1e-3 * np.linalg.cond(system.A[:, system.usable]) if system.usable.any() else 0.0
    best = solve(part, system.usable, 0.0)
    lowest = _loss(*held, best, penalty)
    threshold = step
    for done in range(rounds):
        x = stridge(part, threshold, ridge, 10)
        loss = _loss(*held, x, penalty)
        if loss <= lowest:
            best, lowest = x, loss
            threshold += step
        else:
            threshold = max(0.0, threshold - 2 * step)
            step = 2 * step / (rounds - done)
            threshold += step
    return solve(system, best != 0, 0.0)


def _loss(A: np.ndarray, b: np.ndarray, x: np.ndarray, penalty: float) -> float:
    return float(np.linalg.norm(b - A @ x) + penalty * np.count_nonzero(x))


def _solve_rows(A: np.ndarray, b: np.ndarray, ridge: float) -> np.ndarray:
    n = A.shape[1]
    stacked = np.concatenate([A, np.sqrt(ridge) * np.eye(n)]) if ridge > 0 else A
    right = np.concatenate([b, np.zeros(n)]) if ridge > 0 else b
    return np.linalg.lstsq(stacked, right, rcond=_RANK)[0]
