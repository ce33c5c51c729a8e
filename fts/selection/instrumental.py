"""Cross moments -> Selection: proposed on half of the regions, compared on the other half, then pruned.

The steps are the paper's, proposals, refit, validation, the smallest within one standard error; what they
compare is the cross risk, which extra terms cannot lower by explaining noise.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from fts.selection.moments import CrossMoments
from fts.selection.selection import Candidates, Refit, Selection, Trace, standard_error
from fts.selection.split_sample import TwoFieldsParams
from fts.selection.support_search import propose


def choose(moments: CrossMoments, params: TwoFieldsParams, one_field: tuple[int, ...] = ()) -> Selection:
    """The equation that the cross moments support, with its trace and its jackknife standard errors.

    `one_field` is the support that a rule on the whole field finds, where there is one to agree with.
    """
    folds = region_halves(len(moments.cross), params)
    candidates = generate(moments, folds, params)
    risks = compare(moments, candidates.supports, folds)
    mu = risks.mean(axis=1)
    tolerance = params.tolerance + params.shared * float(mu.min())
    admissible = within(risks, risks[int(np.argmin(mu))], tolerance)
    best = min(admissible, key=lambda row: (len(candidates.supports[row]), mu[row], row))
    support = agreed(prune(moments, candidates.supports[best], folds, tolerance, params), one_field)
    candidates, risks = _with(candidates, support, moments, risks, folds)
    winner = candidates.supports.index(support)
    xi, deviation = estimate(moments, support)
    trace = Trace(
        candidates,
        tau=0.0,
        stable=tuple(range(len(moments.library))),
        fallback=False,
        eligible=tuple(range(len(candidates.supports))),
        xi=np.array([moments.physical(solve(moments.total, each)) for each in candidates.supports]),
        risks=risks,
        admissible=admissible,
        winner=winner,
        reason=_reason(candidates, admissible, best, winner, risks),
    )
    refit = Refit(xi, deviation, float(risks[winner].mean()))
    return Selection(moments.library, xi, "two fields", trace, {"cross": refit}, "cross")


def region_halves(count: int, params: TwoFieldsParams) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random halves of the regions, each once to propose and fit and once to compare."""
    if count < 4:
        raise ValueError(f"{count} regions: at least four are needed to fit on half and compare on half")
    rng, folds = np.random.default_rng(params.split_seed), []
    for _ in range(params.draws):
        order = rng.permutation(count)
        folds += [(order[: count // 2], order[count // 2 :]), (order[count // 2 :], order[: count // 2])]
    return folds


def generate(
    moments: CrossMoments, folds: Sequence[tuple[np.ndarray, np.ndarray]], params: TwoFieldsParams
) -> Candidates:
    """The pool of supports proposed on the first part of every fold, and on all regions."""
    every = np.arange(len(moments.cross))
    known: dict[tuple[int, ...], int] = {}
    proposals = np.empty((len(folds) + 1, params.most_terms), dtype=np.int64)
    for row, part in enumerate([*(first for first, _ in folds), every]):
        found = propose(
            moments.cross[part].sum(axis=0),
            moments.own[part].sum(axis=0),
            params.most_terms,
            params.reliability,
            params.width,
        ) or [()]
        for column in range(params.most_terms):
            # Where no further term is reliable the longest support stands for the longer ones.
            support = found[min(column, len(found) - 1)]
            proposals[row, column] = known.setdefault(support, len(known))
    sizes = tuple(float(size) for size in range(1, params.most_terms + 1))
    return Candidates(moments.library, tuple(known), proposals, sizes)


def compare(
    moments: CrossMoments,
    supports: Sequence[tuple[int, ...]],
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
) -> Float[np.ndarray, "supports folds"]:
    """Cross risk of every support on the second part of every fold, fitted on the first, per unit b1^T b2.

    Less than nothing is noise: what an unstable support seems to explain beyond b on some regions must not
    make up for what it misses on others.
    """
    risks = np.empty((len(supports), len(folds)))
    for column, (first, second) in enumerate(folds):
        fit, held = moments.cross[first].sum(axis=0), moments.cross[second].sum(axis=0)
        for row, support in enumerate(supports):
            risks[row, column] = max(cross_risk(held, solve(fit, support)) / abs(held[0, 0]), 0.0)
    return risks


def cross_risk(cross: Float[np.ndarray, "J1 J1"], x: Float[np.ndarray, " J"]) -> float:
    """beta - 2 c^T x + x^T G x: what is left of b, without the noise; about zero for the right equation."""
    return float(cross[0, 0] - 2 * cross[1:, 0] @ x + x @ cross[1:, 1:] @ x)


def unexplained(moments: CrossMoments, support: tuple[int, ...]) -> tuple[float, float]:
    """Share of u_t that an equation with these terms leaves unexplained, and its standard error."""

    def share(cross: np.ndarray) -> float:
        return cross_risk(cross, solve(cross, support)) / cross[0, 0]

    total, n = moments.total, len(moments.cross)
    left = np.array([share(total - one) for one in moments.cross])
    return share(total), float(np.sqrt((n - 1) * left.var()))


def solve(cross: Float[np.ndarray, "J1 J1"], support: Sequence[int]) -> Float[np.ndarray, " J"]:
    """G_S x_S = c_S, zero outside the support; the shortest solution where G_S is singular."""
    x = np.zeros(len(cross) - 1)
    inside = np.array(support, dtype=int)
    if inside.size:
        inner = cross[1:, 1:][np.ix_(inside, inside)]
        x[inside] = np.linalg.lstsq(inner, cross[1:, 0][inside], rcond=None)[0]
    return x


def within(
    risks: Float[np.ndarray, "supports folds"], lowest: Float[np.ndarray, " folds"], tolerance: float
) -> tuple[int, ...]:
    """Supports whose risk exceeds the lowest by at most the standard error of that very difference.

    Noise moves the risks of all supports together; differences do not carry it. An error that both fields
    share, their smoothing, does not average out: a difference below the `tolerance` may be its doing.
    """
    more = risks - lowest
    allowed = np.maximum(standard_error(more), tolerance)
    return tuple(int(row) for row in np.flatnonzero(more.mean(axis=1) <= allowed))


def prune(
    moments: CrossMoments,
    support: tuple[int, ...],
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    tolerance: float,
    params: TwoFieldsParams,
) -> tuple[int, ...]:
    """The support without terms that are small, in units of b or of their standard errors.

    Of these as many go together as the cross risk can do without: what is left of two that nearly cancel may
    fit other regions worse than neither. A term that it cannot do without stays, however uncertain its size.
    """
    before = compare(moments, [support], folds)[0]
    while shorter := list(_without(support, weak(moments, support, params))):
        risks = compare(moments, shorter, folds)
        more = risks - before
        spared = np.flatnonzero(more.mean(axis=1) <= np.maximum(overlapping_error(more), tolerance))
        if not spared.size:
            break
        support = shorter[min(spared, key=lambda row: (len(shorter[row]), risks[row].mean()))]
    return support


def weak(moments: CrossMoments, support: tuple[int, ...], params: TwoFieldsParams) -> tuple[int, ...]:
    """Terms of a support that are below the least size, or within the noise of their own coefficients."""
    x, deviation = jackknife(moments, support)
    size, errors = np.abs(x), significant(moments, params)
    return tuple(j for j in support if size[j] < max(params.size, errors * deviation[j]))


def significant(moments: CrossMoments, params: TwoFieldsParams) -> float:
    """Jackknife standard errors that a coefficient of zero exceeds by chance only (Student, Bonferroni).

    Every term of the library had the chance to be chosen for what it seems to explain, so the more are
    offered, the more is asked of each.
    """
    regions, terms = len(moments.cross), len(moments.library)
    return float(-stdtrit(regions - 1, params.chance / (2 * terms)))


def overlapping_error(differences: Float[np.ndarray, "n folds"]) -> Float[np.ndarray, " n"]:
    """Standard error of the mean difference over folds that share their regions (Nadeau and Bengio, 2003).

    Every fold fits on half of the same regions and compares on the other half, so more folds do not bring
    more evidence: the variance of their mean is (1/n + held/fitted) s^2, and held/fitted is one.
    """
    return differences.std(axis=1, ddof=1) * np.sqrt(1 / differences.shape[1] + 1)


def agreed(support: tuple[int, ...], one_field: tuple[int, ...]) -> tuple[int, ...]:
    """The support, or that of one field where it is a part of it.

    One field errs towards too many terms, because its noise wants to be explained, too. A term that not even
    it takes is more likely an error that both halves share.
    """
    return one_field if one_field and set(one_field) < set(support) else support


def _without(support: tuple[int, ...], terms: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The support less every non-empty set of the terms."""
    for count in range(1, len(terms) + 1):
        for dropped in combinations(terms, count):
            yield tuple(j for j in support if j not in dropped)


def estimate(
    moments: CrossMoments, support: tuple[int, ...]
) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """Physical coefficients of the support by cross products, and their standard errors."""
    x, deviation = jackknife(moments, support)
    return moments.physical(x), moments.physical(deviation)


def jackknife(
    moments: CrossMoments, support: tuple[int, ...]
) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """Coefficients in units of the cross norms, and how they move when a region is left out."""
    total, n = moments.total, len(moments.cross)
    left = np.array([solve(total - one, support) for one in moments.cross])
    return solve(total, support), np.sqrt((n - 1) * left.var(axis=0))


def _with(
    candidates: Candidates,
    support: tuple[int, ...],
    moments: CrossMoments,
    risks: np.ndarray,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[Candidates, np.ndarray]:
    """Candidates and risks with the pruned support among them."""
    if support in candidates.supports:
        return candidates, risks
    grown = (*candidates.supports, support)
    more = Candidates(candidates.library, grown, candidates.proposals, candidates.thresholds)
    return more, np.concatenate([risks, compare(moments, [support], folds)])


def _reason(
    candidates: Candidates, admissible: tuple[int, ...], best: int, winner: int, risks: np.ndarray
) -> str:
    sizes = [len(candidates.supports[row]) for row in (best, winner)]
    text = (
        f"{len(admissible)} supports have a cross risk within one standard error of the lowest "
        f"({risks.mean(axis=1).min():.3g}); this is the smallest, with {sizes[0]} terms"
    )
    return text if best == winner else text + f", of which {sizes[0] - sizes[1]} were too weak to keep"
