"""Candidates of the weak systems, integrated and fitted to the samples -> selection and verdict.

Where an equation can be integrated, the samples themselves decide between candidates. The terms offered are
judged beside those a user did not think of: what is missing from the library shows as a term outside it
with a significant score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from jaxtyping import Float

from fts.discovery.audit import audited
from fts.discovery.evidence import VerdictParams
from fts.discovery.verdict import MORE_SAMPLES, MORE_WAVES, SHOWN, Rival, Status, Verdict, with_reasons
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fitting import Fit
from fts.params.paper import DEFAULT_LIBRARIES
from fts.selection.selection import Refit, Selection
from fts.trajectory.audit import Audit
from fts.trajectory.comparison import Comparison, compare_supports, score_tests, standard_errors
from fts.trajectory.fit import NotApplicable, Record, TrajectoryFit
from fts.trajectory.integration import Unbounded

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class TrajectoryTests:
    """How the best equation came out of the tests: ratios that are at least one where passed."""

    comparison: Comparison
    offered: Library
    margins: dict[str, float]
    rivals: tuple[int, ...]  # fits that explain the samples as well
    open: tuple[int, ...]  # terms left out that cannot be excluded

    @property
    def margin(self) -> float:
        """The least of the margins; none where the equation needs a term that was not offered."""
        return 0.0 if self.missing else max(min(self.margins.values()), 0.0)

    @property
    def missing(self) -> tuple[str, ...]:
        """Terms of the best equation that were not offered."""
        names = (self.comparison.library.names[j] for j in self.comparison.best.support)
        return tuple(name for name in names if name not in self.offered.names)


@dataclass(frozen=True)
class Integrated:
    """Selection and verdict by integration, the equations compared, and the audit of the one selected.

    Without a comparison every solution grows without bound.
    """

    selection: Selection
    verdict: Verdict
    comparison: Comparison | None = None
    audit: Audit | None = None


def judge_by_trajectory(
    fit: Fit,
    starts: Sequence[Float[np.ndarray, " J"]],
    selection: Selection,
    verdict: Verdict,
    params: VerdictParams,
    step: Callable[[], object] = lambda: None,
) -> Integrated | None:
    """Selection and verdict by integration from `starts`; None where nothing can be integrated.

    `step` is called after every equation that was fitted.
    """
    offered = selection.library
    library = widened(offered, fit.observations.domain.dimension)
    wider = {tuple(np.flatnonzero(xi)): np.pad(xi, (0, len(library) - len(offered))) for xi in starts[::-1]}
    wider.pop((), None)  # what moves nothing is not integrated
    if not wider:
        return None
    try:
        tests = _tests(fit, library, list(wider.values()), offered, params, step)
    except NotApplicable:
        return None
    except Unbounded as reason:
        reasons = [f"{reason}: measure with less noise, or add terms"]
        return Integrated(selection, with_reasons(verdict, reasons))
    selection, verdict, comparison = _decided(fit, tests, selection, verdict, params)
    support = _support(selection)
    judged = next((each for each in comparison.fits if each.support == support), comparison.best)
    verdict, audit = audited(verdict, comparison, judged, params, step)
    return Integrated(selection, verdict, comparison, audit)


def _decided(
    fit: Fit, tests: TrajectoryTests, selection: Selection, verdict: Verdict, params: VerdictParams
) -> tuple[Selection, Verdict, Comparison]:
    """Selection and verdict by the tests, or those of the weak systems where the tests do not decide."""
    if tests.margin < 1 and not tests.missing:
        if tests.comparison.record.part < 1:
            # The weak systems use the whole record: they decide, unless the part that was integrated rejects.
            return selection, with_reasons(verdict, _objections(tests, selection, params)), tests.comparison
        tests = _prefer_proposed(tests, selection, params)
        if tests.comparison.best.support == _support(selection):
            # They also use more samples than are integrated.
            return selection, state_verdict(tests, params), tests.comparison
    return replace(thawed(tests, selection), field=fit.field), state_verdict(tests, params), tests.comparison


def _objections(tests: TrajectoryTests, proposed: Selection, params: VerdictParams) -> list[str]:
    """What a part of the record has against an equation proposed: another follows it clearly better."""
    comparison = tests.comparison
    costs = {fit.support: cost for fit, cost in zip(comparison.fits, comparison.costs, strict=True)}
    support = _support(proposed)
    cost_of_proposed = costs.get(support, np.inf) - comparison.per_term * len(support)
    least = min(cost - comparison.per_term * len(other) for other, cost in costs.items())
    if cost_of_proposed - least < params.rival_gap:
        return []
    better = _equation(comparison.library, comparison.best)
    return [f"integrated over a part of the record, {better} follows the samples better; {MORE_SAMPLES}"]


def _support(selection: Selection) -> tuple[int, ...]:
    return tuple(int(j) for j in np.flatnonzero(selection.xi))


def _tests(
    fit: Fit,
    library: Library,
    starts: Sequence[np.ndarray],
    offered: Library,
    params: VerdictParams,
    step: Callable[[], object],
) -> TrajectoryTests:
    """Part of a long record may be enough; where it is not, more of it is worth its time."""
    tests = run_tests(compare_supports(fit, library, starts, params.forecast, step), offered, params)
    if tests.margin >= 1 or not params.again <= tests.comparison.record.part < 1:
        return tests
    longer = replace(params.forecast, budget=int(params.forecast.budget / params.again))
    return run_tests(compare_supports(fit, library, starts, longer, step), offered, params)


def _prefer_proposed(tests: TrajectoryTests, proposed: Selection, params: VerdictParams) -> TrajectoryTests:
    """Where the samples do not decide, what the weak systems proposed is preferred to what costs least."""
    for i in tests.rivals:
        if tests.comparison.fits[i].support == _support(proposed):
            return run_tests(tests.comparison.preferring(i), tests.offered, params)
    return tests


def widened(library: Library, dimension: int) -> Library:
    """The library with the terms of the general one that it lacks, multiples apart."""
    general = Library.parse(DEFAULT_LIBRARIES[dimension])
    known = {part for term in library for part in term.physical()}
    return Library((*library, *(term for term in general if not known & set(term.physical()))))


def missing_terms_reason(terms: Sequence[str]) -> str:
    """The sentence about significant terms that the library lacks."""
    return f"the samples ask for {' and '.join(terms)}, which the library does not have: add it"


def run_tests(comparison: Comparison, offered: Library, params: VerdictParams) -> TrajectoryTests:
    """The tests of the best equation."""
    best, record = comparison.best, comparison.record
    inside = list(best.support)
    significance = np.abs(best.xi[inside]) / np.maximum(standard_errors(best)[inside], _TINY)
    others = [i for i, fit in enumerate(comparison.fits) if not set(inside) <= set(fit.support)]
    gaps = {i: _gap(comparison, i, params) for i in others}
    bounds = {j: _bound(best, j, value, error, params) for j, (value, error) in score_tests(best).items()}
    margins = {
        "significance": float(significance.min()) / params.significance,
        "rivals": min(gaps.values(), default=np.inf),
        "completeness": 1 / max(max(bounds.values(), default=0.0), _TINY),
        "misfit": _most_misfit(record, params) / max(best.misfit, _TINY),
    }
    return TrajectoryTests(
        comparison,
        offered,
        margins,
        tuple(i for i in others if gaps[i] < 1),
        tuple(j for j, bound in bounds.items() if bound > 1),
    )


def state_verdict(tests: TrajectoryTests, params: VerdictParams) -> Verdict:
    """The verdict, every failed test a sentence."""
    failed = {name for name, value in tests.margins.items() if value < 1}
    reasons = _refusals(tests, failed)
    status: Status = "not identifiable" if reasons else "ambiguous" if failed else "identified"
    best, library = tests.comparison.best, tests.comparison.library
    reasons += [_exchange(tests, tests.comparison.fits[i], params) for i in tests.rivals[:2]]
    if tests.open:
        names = ", ".join(library.names[j] for j in tests.open[:SHOWN])
        names += f" and {len(tests.open) - SHOWN} more" if len(tests.open) > SHOWN else ""
        reasons.append(f"{names} cannot be excluded: the samples do not bound their part; {MORE_SAMPLES}")
    record = tests.comparison.record
    square = record.samples * record.scale**2
    rivals = (tests.comparison.fits[i] for i in tests.rivals[:SHOWN])
    return Verdict(
        status,
        tuple(reasons),
        tuple(Rival(_equation(library, rival), rival.square / square) for rival in rivals),
        risk=best.square / square,
        of="the samples",
        expected=record.noise**2 / record.scale**2,
        margin=tests.margin,
    )


def thawed(tests: TrajectoryTests, proposed: Selection) -> Selection:
    """The selection with the thawed coefficients, of the terms that were offered."""
    best, J = tests.comparison.best, len(tests.offered)
    refit = Refit(best.xi[:J], standard_errors(best)[:J], best.misfit / tests.comparison.record.scale)
    return Selection(tests.offered, refit.xi, "thawed", proposed.trace, {"thawed": refit}, "thawed")


def _gap(comparison: Comparison, other: int, params: VerdictParams) -> float:
    """By how much another equation is worse, over what it must be; at most one for a rival.

    One that follows exact samples up to a negligible part is no worse for leaving that.
    """
    misfit = comparison.fits[other].misfit / (params.forecast.negligible * comparison.record.scale)
    return min(comparison.gap(other) / params.rival_gap, misfit)


def _most_misfit(record: Record, params: VerdictParams) -> float:
    """What an equation may miss the samples by: some times the noise, but little of the field itself."""
    noise = max(record.noise, params.forecast.negligible * record.scale)
    field = np.sqrt(max(record.scale**2 - noise**2, 0.0))
    return float(min(params.misfit * noise, np.hypot(noise, params.remainder * field)))


def _bound(best: TrajectoryFit, j: int, value: float, error: float, params: VerdictParams) -> float:
    """What the term may move the state by at most, |value| + 2 error, over what is allowed."""
    if not np.isfinite(error):
        return float("inf")
    size = float(best.sizes[j])
    points = abs(value) * size >= params.forecast.least_share
    pointing = abs(value) / error / params.pointing if points else 0.0
    return max((abs(value) + 2 * error) * size / params.hidden, pointing)


def _refusals(tests: TrajectoryTests, failed: set[str]) -> list[str]:
    reasons, best = [], tests.comparison.best
    if tests.missing:
        reasons.append(missing_terms_reason(tests.missing))
    if "misfit" in failed:
        ratio = best.misfit / tests.comparison.record.noise
        reasons.append(
            f"integrated, the equation misses the samples by {ratio:.1f} times their noise: a term is missing"
            " or the record is not of one equation; add terms"
        )
    if "significance" in failed:
        ratios = np.abs(best.xi) / np.maximum(standard_errors(best), _TINY)
        names = ", ".join(f"{tests.comparison.library.names[j]} ({ratios[j]:.1f})" for j in best.support)
        reasons.append(f"coefficients in standard errors: {names}; {MORE_SAMPLES}")
    return reasons


def _exchange(tests: TrajectoryTests, other: TrajectoryFit, params: VerdictParams) -> str:
    names, best = tests.comparison.library.names, tests.comparison.best
    gone = [j for j in best.support if j not in other.support]
    new = [j for j in other.support if j not in best.support]
    known = best.information
    for i, j in product(gone, new):
        if abs(known[i, j]) > params.alike * np.sqrt(known[i, i] * known[j, j]):
            return f"{names[i]} and {names[j]} cannot be told apart: they move the state alike; {MORE_WAVES}"
    instead = f", with {' and '.join(names[j] for j in new)} instead" if new else ""
    without = " and ".join(names[j] for j in gone)
    return f"without {without} another equation follows the samples as well{instead}; {MORE_WAVES}"


def _equation(library: Library, fit: TrajectoryFit) -> Equation:
    return Equation(tuple(library[j] for j in fit.support), fit.xi[list(fit.support)])
