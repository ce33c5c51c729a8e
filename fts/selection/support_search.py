"""Supports around others, and the best support of every size by a beam search that also drops terms.

A term enters a support of the beam when what it adds is seen by both fields: the part of its column that the
support does not explain must be reliable. Without that, differences of nearly equal columns, which are noise,
would explain anything. Greedy selection keeps one support per size and often misses the best one: where
columns are alike the first term it takes is a wrong one. A beam keeps many, and a support one term larger,
less any of its terms, is tried as well. All are extended at once, from matrices of J + 1 rows.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

Support = tuple[int, ...]


def subsets(terms: Sequence[int], most: int) -> Iterator[Support]:
    """Every support of one to `most` of the terms, smallest first."""
    for size in range(1, most + 1):
        yield from combinations(terms, size)


def extended(support: Support, terms: Sequence[int]) -> Iterator[Support]:
    """The support with one of the other terms more."""
    return (tuple(sorted((*support, j))) for j in terms if j not in support)


def exchanged(support: Support, terms: Sequence[int]) -> Iterator[Support]:
    """The support with one of its terms replaced; each removal brings back the support itself, too."""
    for shorter in shortened(support):
        yield from extended(shorter, terms)


def shortened(support: Support) -> Iterator[Support]:
    """The support without each of its terms in turn."""
    return (tuple(j for j in support if j != gone) for gone in support)


def neighbours(support: Support, terms: Sequence[int]) -> set[Support]:
    """The support with a term removed, added or exchanged; never empty ones."""
    around = {*shortened(support), *extended(support, terms), *exchanged(support, terms)}
    return around - {()}


def beam_search(
    cross: Float[np.ndarray, "J1 J1"],
    within: Float[np.ndarray, "J1 J1"],
    most: int,
    reliability: float,
    width: int,
) -> list[Support]:
    """The best supports found of one, two, ... terms, ascending; fewer where nothing reliable is left."""
    usable = np.flatnonzero(np.diag(cross)[1:] > reliability * np.diag(within)[1:])
    levels: list[tuple[np.ndarray, np.ndarray]] = []
    supports = np.empty((1, 0), dtype=np.int64)
    while supports.shape[1] < min(most, len(usable)):
        risks = extension_risks(cross, within, supports, reliability)
        risks[:, np.setdiff1d(np.arange(risks.shape[1]), usable)] = np.inf
        supports, kept = _best_extensions(supports, risks, width)
        if not len(supports):
            break
        levels.append((supports, kept))
    best: list[Support] = []
    for size, (supports, kept) in enumerate(levels):
        tried, risks = supports, kept
        if size + 1 < len(levels):
            longer = levels[size + 1][0]
            less = [np.delete(longer, i, axis=1) for i in range(size + 2)]
            shorter = np.unique(np.concatenate(less), axis=0)
            tried = np.concatenate([tried, shorter])
            last = extension_risks(cross, within, shorter[:, :-1], reliability)
            risks = np.concatenate([risks, np.take_along_axis(last, shorter[:, -1:], axis=1)[:, 0]])
        best.append(tuple(tried[int(np.argmin(risks))].tolist()))
    return best


def extension_risks(
    cross: Float[np.ndarray, "J1 J1"],
    within: Float[np.ndarray, "J1 J1"],
    supports: Int[np.ndarray, "n k"],
    reliability: float,
) -> Float[np.ndarray, "n J"]:
    """Cross risk of every support with each term of the library, by Schur complements.

    Infinite where the term is in the support, or where what it adds is not reliable.
    """
    G, W, c, beta = cross[1:, 1:], within[1:, 1:], cross[1:, 0], cross[0, 0]
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
        inner = W[supports[:, :, None], supports[:, None, :]]
        power = power - 2 * np.einsum("nkj,nkj->nj", W[supports], share)
        power = power + np.einsum("nkj,nkj->nj", inner @ share, share)
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
    longer = np.sort(np.column_stack([supports[rows[order]], terms[order]]), axis=1)
    _, first = np.unique(longer, axis=0, return_index=True)
    kept = np.sort(first)[:width]
    return longer[kept], risks[rows[order], terms[order]][kept]
