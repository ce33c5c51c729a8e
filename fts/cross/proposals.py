"""CrossMoments -> supports: greedy selection with swaps, one support per size.

A term enters a support when what it adds is seen by both fields: the part of its column that the support
does not explain must be reliable. Without that, differences of nearly equal columns, which are noise, would
explain anything.
"""

import numpy as np
from jaxtyping import Float, Int

# Rounds of swaps over a support; two or three settle it.
_ROUNDS = 10
# A smaller relative gain is rounding.
_GAIN = 1e-12


def propose(
    cross: Float[np.ndarray, "J1 J1"], own: Float[np.ndarray, "J1 J1"], most: int, reliability: float
) -> list[tuple[int, ...]]:
    """The best supports found of one, two, ... terms, ascending; fewer where nothing reliable is left."""
    usable = np.flatnonzero(np.diag(cross)[1:] > reliability * np.diag(own)[1:])
    supports: list[tuple[int, ...]] = []
    chosen: tuple[int, ...] = ()
    while len(chosen) < min(most, len(usable)):
        rest = np.setdiff1d(usable, chosen)
        risks = extended(cross, own, chosen, rest, reliability)
        if not np.isfinite(risks).any():
            break
        best = int(np.argmin(risks))
        chosen = _swapped(cross, own, (*chosen, int(rest[best])), float(risks[best]), usable, reliability)
        supports.append(tuple(sorted(chosen)))
    return supports


def extended(
    cross: Float[np.ndarray, "J1 J1"],
    own: Float[np.ndarray, "J1 J1"],
    support: tuple[int, ...],
    others: Int[np.ndarray, " n"],
    reliability: float,
) -> Float[np.ndarray, " n"]:
    """Cross risk of the support with each of the others, by Schur complements; infinite where unreliable."""
    G, W, c, beta = cross[1:, 1:], own[1:, 1:], cross[1:, 0], cross[0, 0]
    schur, power, gain, base = G[others, others], W[others, others], c[others], beta
    if support:
        inner, outer = np.ix_(list(support), list(support)), np.ix_(list(support), others.tolist())
        if np.linalg.eigvalsh(G[inner])[0] <= 0:
            return np.full(len(others), np.inf)
        solved = np.linalg.solve(G[inner], np.column_stack([G[outer], c[list(support)]]))
        share, xi = solved[:, :-1], solved[:, -1]
        schur = schur - np.einsum("sn,sn->n", G[outer], share)
        power = power - 2 * np.einsum("sn,sn->n", W[outer], share)
        power = power + np.einsum("sn,st,tn->n", share, W[inner], share)
        gain, base = gain - share.T @ c[list(support)], beta - xi @ c[list(support)]
    seen = (schur > reliability * power) & (schur > 0)
    return np.where(seen, base - gain**2 / np.where(seen, schur, 1.0), np.inf)


def _swapped(
    cross: np.ndarray,
    own: np.ndarray,
    chosen: tuple[int, ...],
    risk: float,
    usable: np.ndarray,
    reliability: float,
) -> tuple[int, ...]:
    """The support after exchanging one term for a better one, until no exchange helps."""
    for _ in range(_ROUNDS if len(chosen) > 1 else 0):
        before = risk
        for term in chosen:
            kept = tuple(j for j in chosen if j != term)
            rest = np.setdiff1d(usable, kept)
            risks = extended(cross, own, kept, rest, reliability)
            best = int(np.argmin(risks))
            if risks[best] < risk - _GAIN * abs(cross[0, 0]):
                chosen, risk = (*kept, int(rest[best])), float(risks[best])
        if risk == before:
            break
    return chosen
