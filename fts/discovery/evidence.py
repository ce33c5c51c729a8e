"""Weak systems and drawn fields -> what any support leaves unexplained, the best support, and its rivals.

Not in the paper. Rows are weighted by the field's posterior variance and gathered by region of space-time.
After that every support costs a few small solves: its fit, the fits without one region (jackknife) and the
fits on fields drawn from the posterior. Units: columns and u_t have weighted norm one, so a coefficient is a
share of u_t.

    se^2 = (n - 1)/n sum_k (x_-k - mean)^2  +  mean_d (x(field_d) - x(field))^2,
    expected risk = mean_d ||(A_d - A) x - (b_d - b)||^2 / ||b||^2,

the second being what the true equation leaves on this field, if the posterior is right.

A support is *plausible* when it leaves no more unexplained than the field's uncertainty allows, or not
clearly more than the best support in regions held out. Among plausible supports whose terms all stand out of
their standard errors the smallest is chosen; what else is plausible is a rival. Every test is a ratio that is
at least one when passed, so that the least of them, the margin, says how far the verdict is from turning.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations

import numpy as np
from jaxtyping import Float, Int

from fts.equations.terms import Library
from fts.fitting import Fit
from fts.kernel.posterior import DrawnField
from fts.params.types import WeakParams
from fts.selection import refits
from fts.selection.moments import Moments, by_region, jackknife, regions
from fts.selection.support_search import Support, exchanged, extended, subsets
from fts.svws.select import Prepared
from fts.trajectory.integration import FORECAST, ForecastParams
from fts.weak.assembly import LastValues, WeakSystem, add_terms, assemble
from fts.weak.test_functions import phases


@dataclass(frozen=True)
class VerdictParams:
    """Thresholds of the tests on the weak systems, and of those on integrated equations.

    Chosen on drawn problems of the development range (fts.lab.studies.calibration), never on the benchmark.
    """

    draws: int = 8  # fields drawn from the posterior
    most_terms: int = 6  # of the supports compared
    significance: float = 5.0  # least |coefficient| / standard error of a term
    leeway: float = 2.0  # a support that leaves this multiple of the expected risk is still plausible
    leeway_larger: float = 1.05  # the same for a support with one term more than the chosen one
    least_scale: float = 0.1  # the expected risk is corrected downwards to at most this fraction
    worse: float = 1.5  # standard errors over regions by which a support must be worse than the best
    alike: float = 0.99  # cosine of two columns beyond which one term cannot be told from the other
    surprise: float = 6.0  # risk over expected risk beyond which something is missing
    small: float = 0.01  # where the fraction of u_t left unexplained is at most this,
    too_sure: float = 10.0  # `surprise` may be so many times larger: a posterior can be too sure
    risk: float = 0.2  # unexplained fraction of u_t beyond which nothing is identified
    open: float = 0.4  # share of u_t that a term left out may have at most, two standard errors included
    suggestive: float = 1.25  # standard errors from zero beyond which an estimate points to a term,
    suggested: float = 0.12  # and the share it may then have at most
    leaders: int = 3  # supports, of one to so many terms, that are integrated beside the chosen one
    rival_gap: float = 10.0  # squared noise units by which another integrated equation must be worse
    hidden: float = 0.2  # part of the change of state a term left out may have, two standard errors included
    pointing: float = 3.5  # standard errors from zero beyond which a term left out points to itself
    misfit: float = 2.5  # of an integrated equation, in units of the noise, beyond which a term is missing,
    remainder: float = 0.2  # or beyond it in units of the field: under loud noise the other says nothing
    again: float = 0.25  # part of the record that was integrated from which on, if it decides nothing, all is
    forecast: ForecastParams = FORECAST


VERDICT = VerdictParams()
# Fewer samples than any drawn problem has: how often such a verdict is wrong was not measured.
LEAST_SAMPLES = 400
# Risks below this are rounding, freezing and quadrature, whatever the posterior expects.
FLOOR = 1e-9
# Left-out risks that are negligible, and the logarithm of their ratio from which on one is clearly worse.
_NEGLIGIBLE, _CLEARLY_WORSE = 1e-3, float(np.log(3))
# Libraries up to this size are searched completely, larger ones by adding to and exchanging in the best.
_COMPLETE, _BEAM = 10, 12


@dataclass(frozen=True)
class DrawnSystems:
    """Weak systems of the field and of fields drawn from its posterior, each pair on patches of its own."""

    weak: WeakParams  # a quarter of the rows: a draw differs from the field everywhere, and there are several
    draws: tuple[DrawnField, ...]
    pairs: tuple[tuple[WeakSystem, WeakSystem], ...]
    variances: tuple[Float[np.ndarray, " m"], ...]  # of the rows of each pair


@dataclass(frozen=True)
class Evidence:
    """Everything the search over supports needs, and nothing that grows with the number of rows.

    A term has one column, or `groups` says which are its own: several where its coefficient varies.
    """

    library: Library
    norms: Float[np.ndarray, " columns"]  # physical coefficient = share / norm
    regions: Moments
    # Draw by draw, on rows of their own: of the field, of the drawn field, and of the difference.
    fields: Moments | None
    drawn: Moments | None
    difference: Moments | None
    groups: tuple[tuple[int, ...], ...] = ()
    doubt: Float[np.ndarray, "columns columns"] | None = None  # variance of what was added to the moments

    @property
    def usable(self) -> list[int]:
        """Terms whose columns are not zero."""
        seen = np.isfinite(self.norms)
        return [j for j in range(len(self.library)) if seen[list(self.columns(j))].any()]

    def columns(self, *support: int) -> tuple[int, ...]:
        """The columns of some terms."""
        return tuple(chain.from_iterable(self.groups[j] for j in support)) if self.groups else support

    @cached_property
    def exclusive(self) -> frozenset[tuple[int, int]]:
        """Pairs of terms that are the same where a coefficient does not vary: no support has both."""
        if not self.groups:
            return frozenset()
        shapes = [term.without_unknown for term in self.library]
        varies = [len(group) > 1 for group in self.groups]
        pairs = combinations(range(len(shapes)), 2)
        return frozenset((i, j) for i, j in pairs if shapes[i] == shapes[j] and (varies[i] or varies[j]))

    def coefficients(self, fit: "SupportFit") -> Float[np.ndarray, " J"]:
        """Physical coefficients on the library; one where the coefficient is a curve."""
        xi = np.zeros(len(self.library))
        for j, share in zip(fit.support, fit.share, strict=True):
            columns = self.columns(j)
            xi[j] = share / self.norms[columns[0]] if len(columns) == 1 else 1.0
        return xi

    def cosine(self, i: int, j: int) -> float:
        """Between two columns of the weighted systems; one in size where they are proportional."""
        gram, (a, *more), (b, *others) = self.regions.total.gram[0], self.columns(i), self.columns(j)
        return 0.0 if more or others else float(gram[a, b] / np.sqrt(gram[a, a] * gram[b, b]))


@dataclass(frozen=True)
class SupportFit:
    """What the evidence says of one support.

    Of a term with several columns share and errors are those of the norm of what they contribute.
    """

    support: Support
    share: Float[np.ndarray, " m"]  # coefficients of unit columns
    se: Float[np.ndarray, " m"]
    shift: Float[np.ndarray, " m"]  # the part of se that comes from the field's own uncertainty
    risk: float  # unexplained part of u_t, squared
    expected: float  # the same, as the posterior expects of the true equation; nan without a posterior
    held_out: Float[np.ndarray, " regions"]  # unexplained in each region by coefficients fitted without it
    size: int  # number of columns

    @property
    def t_values(self) -> Float[np.ndarray, " m"]:
        """|coefficient| / se, term by term."""
        return np.abs(self.share) / np.maximum(self.se, np.finfo(float).tiny)

    @property
    def held_out_risk(self) -> float:
        """Unexplained part of u_t in all regions, each held out."""
        return self.held_out.sum()


@dataclass(frozen=True)
class SupportTests:
    """The support chosen, its rivals, and how every test came out."""

    chosen: SupportFit
    rivals: tuple[SupportFit, ...]  # as plausible, and not the chosen terms with more added
    additions: tuple[SupportFit, ...]  # the chosen terms and one more, that cannot be excluded
    leaders: tuple[SupportFit, ...]  # of every number of terms the support of least held-out risk
    risk_ratio: float  # least risk over expected risk of any support; nan without a posterior
    margins: dict[str, float]  # by test, at least one where it was passed

    @property
    def margin(self) -> float:
        """The least margin: at least one when no test rejects the equation."""
        return min(self.margins.values())


def draw_systems(fit: Fit, ready: Prepared, count: int, rng: np.random.Generator) -> DrawnSystems:
    """`count` fields drawn, none where the fit has no posterior, and the systems of the prepared library."""
    draws = fit.draws(count, rng)
    return _assemble_pairs(fit, ready, draws, phases(rng, len(draws), len(ready.weak.nodes) - 1))


def extend_systems(drawn: DrawnSystems, fit: Fit, ready: Prepared) -> DrawnSystems:
    """The same draws for a larger library, prepared; on the same patches only new columns are assembled."""
    if _coarse(ready.weak) != drawn.weak:
        return _assemble_pairs(fit, ready, drawn.draws, [pair[0].phase for pair in drawn.pairs])
    field = LastValues(fit.field)
    pairs = []
    for (first, other), draw in zip(drawn.pairs, drawn.draws, strict=True):
        both = (first, field), (other, replace(draw, field=field))
        pairs.append(tuple(add_terms(system, u, ready.library, drawn.weak) for system, u in both))
    return replace(drawn, pairs=tuple(pairs))


def gather(ready: Prepared, drawn: DrawnSystems) -> Evidence:
    """The evidence in prepared systems and in those of fields drawn from the posterior."""
    A, b = refits.stack(ready.systems)
    root = refits.root_weights(len(b), ready.variances)
    blocks = regions(np.concatenate([system.centers for system in ready.systems]))
    rows, target = A * root[:, None], b * root
    size = float(np.linalg.norm(target)) or 1.0
    norms = np.linalg.norm(rows, axis=0)
    scale = np.where(norms > 0, size / np.where(norms > 0, norms, 1.0), 0.0)
    samples = [_sample(*pair, v, scale) for pair, v in zip(drawn.pairs, drawn.variances, strict=True)]
    draws = [Moments(np.stack(group)) for group in zip(*samples, strict=True)] if samples else [None] * 3
    fields, others, difference = draws
    columns = np.column_stack([target, rows * scale]) / size
    shares = np.where(norms > 0, norms, np.inf) / size
    return Evidence(ready.library, shares, by_region(columns, blocks), fields, others, difference)


def judge(evidence: Evidence, supports: Int[np.ndarray, "n m"]) -> list[SupportFit]:
    """Every one of `supports`, all of the same size and with as many columns term by term."""
    columns = np.array([evidence.columns(*support) for support in supports.tolist()], dtype=int)
    parts = evidence.regions.on(columns)
    total, others = parts.total, parts.without_each
    share, left = total.solve(), others.solve()
    held_out = np.maximum(parts.risk(left), 0.0)
    risk = np.maximum(total.risk(share), 0.0)[:, 0]
    expected, moved = np.full(len(supports), np.nan), np.zeros(share.shape)
    if evidence.difference is not None and evidence.fields is not None and evidence.drawn is not None:
        difference = np.maximum(evidence.difference.on(columns).risk(share), 0.0)
        expected = (difference / evidence.fields.square).mean(axis=1)
        moved = evidence.drawn.on(columns).solve() - evidence.fields.on(columns).solve()
    shift, spread, share = np.sqrt((moved**2).mean(axis=1)), jackknife(left, axis=1), share[:, 0]
    if columns.shape != supports.shape:
        widths = [len(evidence.columns(j)) for j in supports[0].tolist()]
        jackknifed = (left - left.mean(axis=1, keepdims=True)) * np.sqrt(left.shape[1] - 1)
        share, spread, shift = _by_term(share, jackknifed, moved, total.gram[:, 0], widths)
    se = np.hypot(spread, shift)
    return [
        SupportFit(
            tuple(map(int, supports[i])), share[i], se[i], shift[i], *scalars, held_out[i], columns.shape[1]
        )
        for i, scalars in enumerate(zip(risk.tolist(), expected.tolist(), strict=True))
    ]


def _by_term(
    x: Float[np.ndarray, "n columns"],
    jackknifed: Float[np.ndarray, "n regions columns"],
    moved: Float[np.ndarray, "n draws columns"],
    gram: Float[np.ndarray, "n columns columns"],
    widths: list[int],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share, spread and shift of terms, of several columns those of ||A x||, less what errors add to it.

    With errors d of x, E ||A (x + d)||^2 = ||A x||^2 + E ||A d||^2; the norm moves by <A x, A d> / ||A x||.
    """
    results, start = [], 0
    for width in widths:
        part = slice(start, start := start + width)
        weights, errors = x[:, part], (jackknifed[..., part], moved[..., part])
        if width == 1:
            results.append((weights[:, 0], *(np.sqrt((each[..., 0] ** 2).mean(axis=1)) for each in errors)))
            continue
        columns = gram[:, part, part]
        square = np.einsum("ni,nij,nj->n", weights, columns, weights)
        added = (np.einsum("nki,nij,nkj->nk", each, columns, each).mean(axis=1) for each in errors)
        along = (np.einsum("ni,nij,nkj->nk", weights, columns, each) ** 2 for each in errors)
        share = np.sqrt(np.maximum(square - sum(added), 0.0))
        results.append((share, *(np.sqrt(each.mean(axis=1) / np.maximum(square, FLOOR)) for each in along)))
    share, spread, shift = (np.stack(each, axis=1) for each in zip(*results, strict=True))
    return share, spread, shift


def weights_of(evidence: Evidence, fit: SupportFit) -> tuple[np.ndarray, np.ndarray]:
    """Physical coefficients of all columns of a support, and their covariance."""
    columns = list(evidence.columns(*fit.support))
    parts, norms = evidence.regions.on(np.array(columns)), evidence.norms[columns]
    left = parts.without_each.solve()
    covariance = (len(left) - 1) * np.cov(left.T, ddof=0).reshape(len(norms), -1)
    if evidence.fields is not None and evidence.drawn is not None:
        moved = evidence.drawn.on(columns).solve() - evidence.fields.on(columns).solve()
        # A posterior that expects more than is left unexplained is too unsure of the field.
        covariance += (
            moved.T
            @ moved
            / len(moved)
            * min(max(fit.risk / max(fit.expected, FLOOR), VERDICT.least_scale), 1.0)
        )
    if evidence.doubt is not None:
        inverse = np.linalg.pinv(parts.total.gram[0], hermitian=True)
        covariance += inverse @ evidence.doubt[np.ix_(columns, columns)] @ inverse
    return parts.total.solve()[0] / norms, covariance / np.outer(norms, norms)


def choose_support(evidence: Evidence, proposed: Support, params: VerdictParams) -> SupportTests:
    """The best support by the evidence; a proposal of a selector is always compared with it."""
    fits = search(evidence, proposed, params.most_terms)
    best = min(fits, key=lambda fit: fit.held_out_risk)
    risk_ratio = least_risk_ratio(fits)
    # The posterior's errors, corrected by the support that fits them best: larger errors than it expects
    # count in full, smaller ones down to a limit.
    scale = 1.0 if np.isnan(risk_ratio) else max(risk_ratio, params.least_scale)

    excess = dict(zip((fit.support for fit in fits), excess_risk(fits, best), strict=True))
    ratios = dict(zip((fit.support for fit in fits), excess_ratio(fits, best) / _CLEARLY_WORSE, strict=True))

    def implausibility(fit: SupportFit) -> float:
        """At most one for a plausible support."""
        allowed = params.leeway * scale * _expected_risk(fit, best)
        return min(fit.risk / allowed, max(excess[fit.support] / params.worse, ratios[fit.support]))

    def significant(fit: SupportFit) -> bool:
        return bool((fit.t_values >= params.significance).all())

    plausible = [fit for fit in fits if implausibility(fit) <= 1]
    sound = [fit for fit in plausible if significant(fit)] or plausible
    size = min(len(fit.support) for fit in sound)
    chosen = min((fit for fit in sound if len(fit.support) == size), key=lambda fit: fit.held_out_risk)
    smaller = [fit for fit in fits if len(fit.support) <= size + 1 and significant(fit)]
    others = [fit for fit in smaller if not set(chosen.support) <= set(fit.support)]

    def rival_margin(fit: SupportFit) -> float:
        """At most one for a rival; with a term more it has to explain at least as much as the chosen one."""
        if len(fit.support) <= size:
            return min(implausibility(fit), rival_distance(evidence, chosen, fit, params))
        return max(fit.risk, FLOOR) / (params.leeway_larger * max(chosen.risk, FLOOR))

    margins = {
        "significance": float((chosen.t_values / params.significance).min(initial=np.inf)) if size else 0.0,
        "rivals": min((rival_margin(fit) for fit in others), default=np.inf),
        "risk": params.risk / max(chosen.risk, FLOOR),
    }
    if np.isfinite(risk_ratio):
        # A posterior may understate its variance by a factor: a residual that is small in itself is accepted.
        factor = params.surprise / max(risk_ratio, FLOOR)
        small = params.small / max(best.risk, FLOOR)
        margins["expectation"] = max(factor, min(small, params.too_sure * factor))
    larger = judge_new(evidence, [], extended(chosen.support, evidence.usable))
    bounds = {fit.support: added_share(fit, chosen, params) for fit in larger}
    margins["completeness"] = 1 / max(max(bounds.values(), default=0.0), FLOOR)
    rivals = sorted((fit for fit in others if rival_margin(fit) <= 1), key=lambda fit: fit.held_out_risk)
    additions = tuple(fit for fit in larger if bounds[fit.support] > 1)
    return SupportTests(chosen, tuple(rivals), additions, leaders(fits), risk_ratio, margins)


def search(evidence: Evidence, proposed: Support, most: int) -> list[SupportFit]:
    """All supports of a small library up to `most` terms; of a larger one those around the best."""
    usable = evidence.usable
    most = min(most, len(usable))
    fits = judge(evidence, np.empty((1, 0), dtype=int))
    if len(usable) <= _COMPLETE:
        fits += judge_new(evidence, fits, subsets(usable, most))
        return fits + judge_new(evidence, fits, [proposed])
    fits += judge_new(evidence, fits, subsets(usable, 2))
    for size in range(2, most + 1):
        if size > 2:
            longer = (extended(support, usable) for support in _leading(fits, size - 1))
            fits += judge_new(evidence, fits, chain.from_iterable(longer))
        # Twice: an exchange may open the way to another.
        for _ in range(2):
            others = (exchanged(support, usable) for support in _leading(fits, size))
            fits += judge_new(evidence, fits, chain.from_iterable(others))
    return fits + (judge_new(evidence, fits, subsets(proposed, len(proposed))) if len(proposed) <= 8 else [])


def _assemble_pairs(fit: Fit, ready: Prepared, draws: Sequence[DrawnField], shifts: Iterable) -> DrawnSystems:
    weak, field = _coarse(ready.weak), LastValues(fit.field)
    pairs = []
    for draw, phase in zip(draws, shifts, strict=True):
        both = field, replace(draw, field=field)
        pairs.append(tuple(assemble(u, ready.library, weak, phase) for u in both))
    known = () if (v := fit.variance) is None else (refits.row_variances(v, weak, pair[:1]) for pair in pairs)
    return DrawnSystems(weak, tuple(draws), tuple(pairs), tuple(known))


def _coarse(weak: WeakParams) -> WeakParams:
    return replace(weak, patches=tuple(max(3, n // 2) for n in weak.patches))


def _sample(
    frozen: WeakSystem, drawn: WeakSystem, variances: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Moments of the field's weak system, of the drawn one, and of their difference."""
    root = refits.root_weights(len(frozen), variances)
    columns = [root[:, None] * np.column_stack([each.b, each.A * scale]) for each in (frozen, drawn)]
    first, second, difference = (part.T @ part for part in (*columns, columns[1] - columns[0]))
    return first, second, difference


def excess_risk(fits: Sequence[SupportFit], other: SupportFit) -> list[float]:
    """By how many standard errors, over regions held out, each leaves more unexplained than `other`."""
    difference = np.stack([fit.held_out for fit in fits]) - other.held_out
    spread = difference.std(axis=1, ddof=1) * np.sqrt(difference.shape[1])
    return (difference.sum(axis=1) / np.maximum(spread, np.finfo(float).tiny)).tolist()


def excess_ratio(fits: Sequence[SupportFit], other: SupportFit) -> Float[np.ndarray, " fits"]:
    """The logarithm of what each leaves over what `other` leaves, whichever region is taken off.

    Where energy sits in few regions differences have no power, and this has.
    """
    left, least = np.stack([fit.held_out for fit in fits]), other.held_out
    ratio = np.log(_left_without_each(left) / _left_without_each(least[None]))
    return ratio.min(axis=1)


def _left_without_each(held_out: Float[np.ndarray, "fits regions"]) -> Float[np.ndarray, "fits regions"]:
    return held_out.sum(axis=1, keepdims=True) - held_out + _NEGLIGIBLE


def leaders(fits: Sequence[SupportFit]) -> tuple[SupportFit, ...]:
    best: dict[int, SupportFit] = {}
    for fit in sorted(fits, key=lambda fit: fit.held_out_risk):
        best.setdefault(len(fit.support), fit)
    return tuple(best[size] for size in sorted(best) if size)


def _leading(fits: list[SupportFit], size: int) -> list[Support]:
    ranked = sorted((fit for fit in fits if len(fit.support) == size), key=lambda fit: fit.risk)
    # Curves explain more than constants: both stay in the race.
    widths = sorted({fit.size for fit in ranked})
    best = [[fit.support for fit in ranked if fit.size == width][:_BEAM] for width in widths]
    return list(chain.from_iterable(best))


def judge_new(
    evidence: Evidence, fits: Sequence[SupportFit], supports: Iterable[Support]
) -> list[SupportFit]:
    """Those of `supports` that were not judged yet."""
    known = {fit.support for fit in fits}
    new = sorted({support for support in supports if support and support not in known})
    if evidence.exclusive:
        new = [each for each in new if evidence.exclusive.isdisjoint(combinations(each, 2))]
    alike: dict[tuple[int, ...], list[Support]] = {}
    widths = [len(evidence.columns(j)) for j in range(len(evidence.library))]
    for support in new:
        alike.setdefault(tuple(widths[j] for j in support), []).append(support)
    ordered = sorted(alike, key=lambda each: (len(each), each))
    return [fit for each in ordered for fit in judge(evidence, np.array(alike[each]))]


def added_share(fit: SupportFit, chosen: SupportFit, params: VerdictParams) -> float:
    """The largest share of u_t the term added to `chosen` may have, |share| + 2 se, over what is allowed.

    Less is allowed where the estimate itself points away from zero.
    """
    (added,) = (i for i, j in enumerate(fit.support) if j not in chosen.support)
    allowed = params.suggested if fit.t_values[added] >= params.suggestive else params.open
    return float(abs(fit.share[added]) + 2 * fit.se[added]) / allowed


def rival_distance(evidence: Evidence, chosen: SupportFit, other: SupportFit, params: VerdictParams) -> float:
    """How far the columns are from parallel that one exchange swaps, over how far they must be.

    On a field of one wavenumber derivatives differ by what each makes of the noise, which decides nothing.
    """
    gone, new = set(chosen.support) - set(other.support), set(other.support) - set(chosen.support)
    if len(gone) != 1 or len(new) != 1:
        return float("inf")
    (i,), (j,) = gone, new
    if evidence.library[i].order == evidence.library[j].order:
        return float("inf")
    return (1 - abs(evidence.cosine(i, j))) / (1 - params.alike)


def least_risk_ratio(fits: Sequence[SupportFit]) -> float:
    if np.isnan(fits[0].expected):
        return float("nan")
    return min(fit.risk / max(fit.expected, FLOOR) for fit in fits)


def _expected_risk(fit: SupportFit, best: SupportFit) -> float:
    """What the posterior expects; without one, what the best support leaves: an error nothing explains."""
    return max(best.risk if np.isnan(fit.expected) else fit.expected, FLOOR)
