"""Cross moments -> Selection: supports proposed on half of the regions, compared on the other half.

The steps are the paper's, proposals, refit, validation, the smallest within one standard error, and pruning;
what they compare is the cross risk, which extra terms cannot lower by explaining noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from fts.params.paper import PAPER
from fts.params.types import SVWSParams, WeakParams
from fts.selection.moments import CrossMoments, Moments, jackknife
from fts.selection.selection import Candidates, Refit, Selection, Trace, standard_error
from fts.selection.support_search import Support, beam_search, subsets

Fold = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class TwoFieldsParams:
    """Selection by the cross products of two fields, fitted to disjoint halves of the samples.

    Chosen on the problems of `fts.problems.development`; what other values of a setting recover there is in
    the record that `python -m fts.lab.studies tune-two-fields` writes.
    """

    weak: WeakParams | None = None  # patches; from the field itself where there are none
    svws: SVWSParams = PAPER["kdv"].svws  # the rule it falls back to, and whose phases and ridge it shares
    relative: bool = True  # lam0 is RELATIVE_THRESHOLD of ||b||, as for problems that are not the paper's
    splits: int = 3  # ways of halving the samples, whose moments are averaged
    phases: int = 4  # weak systems per field
    smoothing: float = 0.03  # nugget of the halves in units of the one that reconstructs best
    negligible: float = (
        0.0005  # variance of the field, in the samples' units, up to which patches count alike
    )
    most_terms: int = 6  # of a proposal
    width: int = 32  # supports of each size that the search for proposals keeps
    draws: int = 12  # times the regions are halved at random, to propose on one half and compare on the other
    tolerance: float = (
        0.002  # differences of cross risk, in units of b^2, that may be error both fields share
    )
    shared: float = 0.25  # the same in units of the lowest risk, which that error is part of
    reliability: float = 0.1  # least share of a combination of columns that both fields must agree on
    size: float = 0.02  # least size of a term, in units of ||b||
    chance: float = 0.05  # that any term of the library that is none of the equation seems significant
    disagreement: float = 1.0  # standard errors up to which a refit on the whole field is preferred
    unresolved: float = 0.1  # error at left-out slices, beyond the noise, from which a field is unresolved
    split_seed: int = 20271


TWO_FIELDS = TwoFieldsParams()


def choose(moments: CrossMoments, params: TwoFieldsParams, one_field: Support = ()) -> Selection:
    """The equation that the cross moments support, with its trace and its jackknife standard errors.

    `one_field` is the support that a rule on the whole field finds, where there is one to agree with.
    """
    folds = region_halves(len(moments.cross.products), params)
    candidates = generate(moments, folds, params)
    risks = compare(moments, candidates.supports, folds)
    mu = risks.mean(axis=1)
    tolerance = params.tolerance + params.shared * float(mu.min())
    admissible = within(risks, risks[int(np.argmin(mu))], tolerance)
    best = min(admissible, key=lambda row: (len(candidates.supports[row]), mu[row], row))
    support = agreed(prune(moments, candidates.supports[best], folds, tolerance, params), one_field)
    if support not in candidates.supports:
        supports = (*candidates.supports, support)
        candidates = Candidates(moments.library, supports, candidates.proposals, candidates.thresholds)
        risks = np.concatenate([risks, compare(moments, [support], folds)])
    winner = candidates.supports.index(support)
    fits = [moments.physical(each, fit(moments.cross, each)) for each in candidates.supports]
    reason = _reason(candidates, admissible, best, winner, risks)
    stable, eligible = (tuple(range(len(each))) for each in (moments.library, candidates.supports))
    trace = Trace(candidates, 0.0, stable, False, eligible, np.array(fits), risks, admissible, winner, reason)
    deviation = moments.physical(support, standard_errors(moments.cross, support))
    refit = Refit(fits[winner], deviation, float(risks[winner].mean()))
    return Selection(moments.library, fits[winner], "two fields", trace, {"cross": refit}, "cross")


def fit(cross: Moments, support: Support) -> Float[np.ndarray, " m"]:
    """Coefficients of a support by cross products, in units of the columns."""
    return cross.total.on(support).minimum_norm()[0]


def standard_errors(cross: Moments, support: Support) -> Float[np.ndarray, " m"]:
    """How far these coefficients move when a region is left out."""
    return jackknife(cross.on(support).without_each.minimum_norm())


def unexplained(moments: CrossMoments, support: Support) -> tuple[float, float]:
    """Share of u_t that an equation with these terms leaves unexplained, and its standard error."""
    cross = moments.cross.on(support)

    def share(part: Moments) -> Float[np.ndarray, " n"]:
        return part.risk(part.minimum_norm()) / part.square

    return float(share(cross.total)[0]), float(jackknife(share(cross.without_each)))


def region_halves(count: int, params: TwoFieldsParams) -> list[Fold]:
    """Random halves of the regions, each once to propose and fit and once to compare."""
    if count < 4:
        raise ValueError(f"{count} regions: at least four are needed to fit on half and compare on half")
    rng, folds = np.random.default_rng(params.split_seed), []
    for _ in range(params.draws):
        order = rng.permutation(count)
        folds += [(order[: count // 2], order[count // 2 :]), (order[count // 2 :], order[: count // 2])]
    return folds


def generate(moments: CrossMoments, folds: Sequence[Fold], params: TwoFieldsParams) -> Candidates:
    """The pool of supports proposed on the first part of every fold, and on all regions."""
    every = np.arange(len(moments.cross.products))
    known: dict[Support, int] = {}
    proposals = np.empty((len(folds) + 1, params.most_terms), dtype=np.int64)
    for row, part in enumerate([*(first for first, _ in folds), every]):
        cross, within = (each.products[part].sum(axis=0) for each in (moments.cross, moments.within))
        best = beam_search(cross, within, params.most_terms, params.reliability, params.width) or [()]
        for column in range(params.most_terms):
            # Where no further term is reliable the longest support stands for the longer ones.
            support = best[min(column, len(best) - 1)]
            proposals[row, column] = known.setdefault(support, len(known))
    sizes = tuple(float(size) for size in range(1, params.most_terms + 1))
    return Candidates(moments.library, tuple(known), proposals, sizes)


def compare(
    moments: CrossMoments, supports: Sequence[Support], folds: Sequence[Fold]
) -> Float[np.ndarray, "supports folds"]:
    """Cross risk of every support on the second part of every fold, fitted on the first, per unit b1^T b2.

    Less than nothing is noise: what an unstable support seems to explain beyond b on some regions must not
    make up for what it misses on others.
    """
    risks = np.empty((len(supports), len(folds)))
    for column, fold in enumerate(folds):
        fitted, held = (Moments(moments.cross.products[part]).total for part in fold)
        for row, support in enumerate(supports):
            risk = held.on(support).risk(fitted.on(support).minimum_norm()) / np.abs(held.square)
            risks[row, column] = max(float(risk[0]), 0.0)
    return risks


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
    moments: CrossMoments, support: Support, folds: Sequence[Fold], tolerance: float, params: TwoFieldsParams
) -> Support:
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


def weak(moments: CrossMoments, support: Support, params: TwoFieldsParams) -> Support:
    """Terms of a support that are below the least size, or within the noise of their own coefficients."""
    noise = significant(moments, params) * standard_errors(moments.cross, support)
    small = np.abs(fit(moments.cross, support)) < np.maximum(params.size, noise)
    return tuple(j for j, drop in zip(support, small, strict=True) if drop)


def significant(moments: CrossMoments, params: TwoFieldsParams) -> float:
    """Jackknife standard errors that a coefficient of zero exceeds by chance only (Student, Bonferroni).

    Every term of the library had the chance to be chosen for what it seems to explain, so the more are
    offered, the more is asked of each.
    """
    regions, terms = len(moments.cross.products), len(moments.library)
    return float(-stdtrit(regions - 1, params.chance / (2 * terms)))


def overlapping_error(differences: Float[np.ndarray, "n folds"]) -> Float[np.ndarray, " n"]:
    """Standard error of the mean difference over folds that share their regions (Nadeau and Bengio, 2003).

    Every fold fits on half of the same regions and compares on the other half, so more folds do not bring
    more evidence: the variance of their mean is (1/n + held/fitted) s^2, and held/fitted is one.
    """
    return differences.std(axis=1, ddof=1) * np.sqrt(1 / differences.shape[1] + 1)


def agreed(support: Support, one_field: Support) -> Support:
    """The support, or that of one field where it is a part of it.

    One field errs towards too many terms, because its noise wants to be explained, too. A term that not even
    it takes is more likely an error that both halves share.
    """
    return one_field if one_field and set(one_field) < set(support) else support


def _without(support: Support, terms: Support) -> Iterator[Support]:
    """The support less every non-empty set of the terms."""
    for dropped in subsets(terms, len(terms)):
        yield tuple(j for j in support if j not in dropped)


def _reason(
    candidates: Candidates, admissible: tuple[int, ...], best: int, winner: int, risks: np.ndarray
) -> str:
    sizes = [len(candidates.supports[row]) for row in (best, winner)]
    text = (
        f"{len(admissible)} supports have a cross risk within one standard error of the lowest "
        f"({risks.mean(axis=1).min():.3g}); this is the smallest, with {sizes[0]} terms"
    )
    return text if best == winner else text + f", of which {sizes[0] - sizes[1]} were too weak to keep"
