"""CrossMoments -> supports: a beam search with a way back, the best support found of every size.

A term enters a support when what it adds is seen by both fields: the part of its column that the support
does not explain must be reliable. Without that, differences of nearly equal columns, which are noise, would
explain anything. Greedy selection keeps one support per size and often misses the best one: where columns are
alike the first term it takes is a wrong one. A beam keeps many, and a support one term larger, less any of
its terms, is tried as well. All of them are extended at once, from matrices of J + 1 rows.
"""

import numpy as np
from jaxtyping import Float, Int


def propose(
    cross: Float[np.ndarray, "J1 J1"],
    own: Float[np.ndarray, "J1 J1"],
    most: int,
    reliability: float,
    width: int,
) -> list[tuple[int, ...]]:
    """The best supports found of one, two, ... terms, ascending; fewer where nothing reliable is left."""
    usable = np.flatnonzero(np.diag(cross)[1:] > reliability * np.diag(own)[1:])
    levels: list[tuple[np.ndarray, np.ndarray]] = []
    supports = np.empty((1, 0), dtype=np.int64)
    while supports.shape[1] < min(most, len(usable)):
        risks = extended(cross, own, supports, reliability)
        risks[:, np.setdiff1d(np.arange(risks.shape[1]), usable)] = np.inf
        supports, kept = _best_extensions(supports, risks, width)
        if not len(supports):
            break
        levels.append((supports, kept))
    best: list[tuple[int, ...]] = []
    for size, (own_level, kept) in enumerate(levels):
        tried, risks = own_level, kept
        if size + 1 < len(levels):
            shorter = _shortened(levels[size + 1][0])
            tried = np.concatenate([tried, shorter])
            risks = np.concatenate([risks, _risks(cross, own, shorter, reliability)])
        best.append(tuple(tried[int(np.argmin(risks))].tolist()))
    return best


def extended(
    cross: Float[np.ndarray, "J1 J1"],
    own: Float[np.ndarray, "J1 J1"],
    supports: Int[np.ndarray, "n k"],
    reliability: float,
) -> Float[np.ndarray, "n J"]:
    """Cross risk of every support with each term of the library, by Schur complements.

    Infinite where the term is in the support, or where what it adds is not reliable.
    """
    G, W, c, beta = cross[1:, 1:], own[1:, 1:], cross[1:, 0], cross[0, 0]
    n, k = supports.shape
    schur, power = np.tile(np.diag(G), (n, 1)), np.tile(np.diag(W), (n, 1))
    gain, base, definite = np.tile(c, (n, 1)), np.full((n, 1), beta), np.ones(n, dtype=bool)
    if k:
        inner = G[supports[:, :, None], supports[:, None, :]]
        outer = G[supports]
        # Indefinite ones are refused below; the shift only keeps the solve of a singular one from raising.
        definite = np.linalg.eigvalsh(inner)[:, 0] > 0
        inner = np.where(definite[:, None, None], inner, np.eye(k))
        solved = np.linalg.solve(inner, np.concatenate([outer, c[supports][:, :, None]], axis=2))
        share, xi = solved[:, :, :-1], solved[:, :, -1]
        schur = schur - np.einsum("nkj,nkj->nj", outer, share)
        within = W[supports[:, :, None], supports[:, None, :]]
        power = power - 2 * np.einsum("nkj,nkj->nj", W[supports], share)
        power = power + np.einsum("nkj,nkj->nj", within @ share, share)
        gain = gain - np.einsum("nkj,nk->nj", share, c[supports])
        base = base - np.einsum("nk,nk->n", xi, c[supports])[:, None]
    seen = (schur > reliability * power) & (schur > 0) & definite[:, None]
    np.put_along_axis(seen, supports, False, axis=1)
    return np.where(seen, base - gain**2 / np.where(seen, schur, 1.0), np.inf)


def _best_extensions(
    supports: Int[np.ndarray, "n k"], risks: Float[np.ndarray, "n J"], width: int
) -> tuple[np.ndarray, np.ndarray]:
    """The `width` supports of least risk with one term more, each once, and their risks."""
    rows, terms = np.nonzero(np.isfinite(risks))
    if not rows.size:
        return np.empty((0, supports.shape[1] + 1), dtype=np.int64), np.empty(0)
    # A support of k terms is found at most k times: enough are looked at for `width` different ones.
    order = np.argsort(risks[rows, terms], kind="stable")[: width * (supports.shape[1] + 1)]
    grown = np.sort(np.column_stack([supports[rows[order]], terms[order]]), axis=1)
    _, first = np.unique(grown, axis=0, return_index=True)
    kept = np.sort(first)[:width]
    return grown[kept], risks[rows[order], terms[order]][kept]


def _shortened(supports: Int[np.ndarray, "n k"]) -> Int[np.ndarray, "m j"]:
    """Every support without each of its terms in turn, each once."""
    return np.unique(
        np.concatenate([np.delete(supports, place, axis=1) for place in range(supports.shape[1])]), axis=0
    )


def _risks(
    cross: np.ndarray, own: np.ndarray, supports: Int[np.ndarray, "n k"], reliability: float
) -> Float[np.ndarray, " n"]:
    """Cross risk of every support, as the last of its terms is added to the others."""
    risks = extended(cross, own, supports[:, :-1], reliability)
    return np.take_along_axis(risks, supports[:, -1:], axis=1)[:, 0]
