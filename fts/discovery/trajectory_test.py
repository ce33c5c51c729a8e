"""Candidates of the weak systems, integrated and fitted to the samples -> selection and verdict.

Where an equation can be integrated, the samples themselves decide between candidates. The terms offered are
judged beside those a user did not think of: what is missing from the library shows as a term outside it that
the samples ask for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from fts.discovery.evidence import VerdictParams
from fts.discovery.verdict import TOLD, Rival, Status, Verdict, doubted
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fields.frozen import FrozenField
from fts.observations import Observations
from fts.params.paper import DEFAULT_LIBRARIES
from fts.selection.selection import Refit, Selection
from fts.trajectory.comparison import Comparison, compare_supports, score_tests, standard_errors
from fts.trajectory.fit import NotApplicable, TrajectoryFit
from fts.trajectory.integration import Unbounded
from fts.trajectory.windows import Record

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Forecast:
    """How the best equation came out of the tests: ratios that are at least one where passed."""

    comparison: Comparison
    offered: Library
    margins: dict[str, float]
    rivals: tuple[int, ...]  # fits that explain the samples as well
    open: tuple[int, ...]  # terms left out that cannot be excluded

    @property
    def margin(self) -> float:
        """The least of the margins; none where the equation needs a term that was not offered."""
        return 0.0 if self.foreign else max(min(self.margins.values()), 0.0)

    @property
    def foreign(self) -> tuple[str, ...]:
        """Terms of the best equation that were not offered."""
        names = (self.comparison.library.names[j] for j in self.comparison.best.support)
        return tuple(name for name in names if name not in self.offered.names)


def foretell(
    observations: Observations,
    field: FrozenField,
    starts: Sequence[Float[np.ndarray, " J"]],
    found: tuple[Selection, Verdict],
    params: VerdictParams,
    step: Callable[[], object] = lambda: None,
) -> tuple[Selection, Verdict] | None:
    """Selection and verdict by integration from `starts`; None where nothing can be integrated.

    `step` is called after every equation that was fitted.
    """
    selection, verdict = found
    offered = selection.library
    library = widened(offered, observations.domain.dimension)
    wider = {tuple(np.flatnonzero(xi)): np.pad(xi, (0, len(library) - len(offered))) for xi in starts[::-1]}
    wider.pop((), None)  # what moves nothing is not integrated
    if not wider:
        return None
    try:
        told = _told(observations, field, library, list(wider.values()), offered, params, step)
    except NotApplicable:
        return None
    except Unbounded as reason:
        return selection, doubted(verdict, [f"{reason}: measure with less noise, or add terms"])
    if told.margin < 1 and not told.foreign:
        if told.comparison.record.part < 1:
            # The weak systems know the whole record: they decide, unless the part that was followed objects.
            return selection, doubted(verdict, _objections(told, selection, params))
        told = _unless_proposed(told, selection, params)
        if told.comparison.best.support == _places(selection):
            # They know more samples than are integrated, too.
            return selection, say(told, params)
    return replace(thawed(told, selection), field=field), say(told, params)


def _objections(told: Forecast, proposed: Selection, params: VerdictParams) -> list[str]:
    """What a part of the record has against an equation proposed: another follows it clearly better."""
    comparison = told.comparison
    fits = {one.support: cost for one, cost in zip(comparison.fits, comparison.costs, strict=True)}
    place = _places(proposed)
    own = fits.get(place, np.inf) - comparison.per_term * len(place)
    least = min(cost - comparison.per_term * len(support) for support, cost in fits.items())
    if own - least < params.rival_gap:
        return []
    better = _equation(comparison.library, comparison.best)
    remedy = "add samples, or measure with less noise"
    return [f"integrated over a part of the record, {better} follows the samples better; {remedy}"]


def _places(selection: Selection) -> tuple[int, ...]:
    return tuple(int(j) for j in np.flatnonzero(selection.xi))


def _told(
    observations: Observations,
    field: FrozenField,
    library: Library,
    starts: Sequence[np.ndarray],
    offered: Library,
    params: VerdictParams,
    step: Callable[[], object],
) -> Forecast:
    """Part of a long record may be enough; where it is not, more of it is worth its time."""
    comparison = compare_supports(observations, field, library, starts, params.forecast, step)
    told = weigh(comparison, offered, params)
    if told.margin >= 1 or not params.again <= comparison.record.part < 1:
        return told
    longer = replace(params.forecast, budget=int(params.forecast.budget / params.again))
    return weigh(compare_supports(observations, field, library, starts, longer, step), offered, params)


def _unless_proposed(told: Forecast, proposed: Selection, params: VerdictParams) -> Forecast:
    """Where the samples do not decide, what the weak systems proposed is preferred to what costs least."""
    for i in told.rivals:
        if told.comparison.fits[i].support == _places(proposed):
            return weigh(told.comparison.preferring(i), told.offered, params)
    return told


def widened(library: Library, dimension: int) -> Library:
    """The library with the terms of the general one that it lacks, multiples apart."""
    general = Library.parse(DEFAULT_LIBRARIES[dimension])
    known = {part for term in library for part in term.physical()}
    return Library((*library, *(term for term in general if not known & set(term.physical()))))


def ask_for(terms: Sequence[str]) -> str:
    """The sentence about terms that the samples speak for and the library lacks."""
    return f"the samples ask for {' and '.join(terms)}, which the library does not have: add it"


def weigh(comparison: Comparison, offered: Library, params: VerdictParams) -> Forecast:
    """The tests of the best equation."""
    best, record = comparison.best, comparison.record
    inside = list(best.support)
    significance = np.abs(best.xi[inside]) / np.maximum(standard_errors(best)[inside], _TINY)
    others = [i for i, one in enumerate(comparison.fits) if not set(inside) <= set(one.support)]
    gaps = {i: _gap(comparison, i, params) for i in others}
    bounds = {j: _bound(best, j, value, error, params) for j, (value, error) in score_tests(best).items()}
    margins = {
        "significance": float(significance.min()) / params.significance,
        "rivals": min(gaps.values(), default=np.inf),
        "completeness": 1 / max(max(bounds.values(), default=0.0), _TINY),
        "misfit": _most_misfit(record, params) / max(best.misfit, _TINY),
    }
    return Forecast(
        comparison,
        offered,
        margins,
        tuple(i for i in others if gaps[i] < 1),
        tuple(j for j, bound in bounds.items() if bound > 1),
    )


def say(told: Forecast, params: VerdictParams) -> Verdict:
    """The verdict, every failed test a sentence."""
    failed = {name for name, value in told.margins.items() if value < 1}
    reasons = _refusals(told, failed)
    status: Status = "not identifiable" if reasons else "ambiguous" if failed else "identified"
    best, library = told.comparison.best, told.comparison.library
    reasons += [_exchange(told, told.comparison.fits[i], params) for i in told.rivals[:2]]
    if told.open:
        names = ", ".join(library.names[j] for j in told.open[:TOLD])
        names += f" and {len(told.open) - TOLD} more" if len(told.open) > TOLD else ""
        reasons.append(
            f"{names} cannot be excluded: the samples do not bound their part; add samples, or measure with "
            "less noise"
        )
    record = told.comparison.record
    square = record.samples * record.scale**2
    rivals = (told.comparison.fits[i] for i in told.rivals[:TOLD])
    return Verdict(
        status,
        tuple(reasons),
        tuple(Rival(_equation(library, one), one.square / square) for one in rivals),
        risk=best.square / square,
        of="the samples",
        expected=record.noise**2 / record.scale**2,
        margin=told.margin,
    )


def thawed(told: Forecast, proposed: Selection) -> Selection:
    """The selection with the thawed coefficients, of the terms that were offered."""
    best, J = told.comparison.best, len(told.offered)
    refit = Refit(best.xi[:J], standard_errors(best)[:J], best.misfit / told.comparison.record.scale)
    return Selection(told.offered, refit.xi, "thawed", proposed.trace, {"thawed": refit}, "thawed")


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


def _refusals(told: Forecast, failed: set[str]) -> list[str]:
    reasons, best = [], told.comparison.best
    if told.foreign:
        reasons.append(ask_for(told.foreign))
    if "misfit" in failed:
        ratio = best.misfit / told.comparison.record.noise
        reasons.append(
            f"integrated, the equation misses the samples by {ratio:.1f} times their noise: a term is missing"
            " or the record is not of one equation; add terms"
        )
    if "significance" in failed:
        ratios = np.abs(best.xi) / np.maximum(standard_errors(best), _TINY)
        names = [f"{told.comparison.library.names[j]} ({ratios[j]:.1f})" for j in best.support]
        reasons.append(
            f"coefficients in standard errors: {', '.join(names)}; add samples, or measure with less noise"
        )
    return reasons


def _exchange(told: Forecast, other: TrajectoryFit, params: VerdictParams) -> str:
    names, best = told.comparison.library.names, told.comparison.best
    gone = [j for j in best.support if j not in other.support]
    new = [j for j in other.support if j not in best.support]
    remedy = "measure another initial state, with more wavenumbers or amplitudes, or with less noise"
    for i in gone:
        for j in new:
            if abs(best.information[i, j]) > params.alike * np.sqrt(
                best.information[i, i] * best.information[j, j]
            ):
                return f"{names[i]} and {names[j]} cannot be told apart: they move the state alike; {remedy}"
    instead = f", with {' and '.join(names[j] for j in new)} instead" if new else ""
    without = " and ".join(names[j] for j in gone)
    return f"without {without} another equation follows the samples as well{instead}; {remedy}"


def _equation(library: Library, fit: TrajectoryFit) -> Equation:
    return Equation(tuple(library[j] for j in fit.support), fit.xi[list(fit.support)])
