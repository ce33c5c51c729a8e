"""Samples and first supports -> the support whose equation fits the samples best, and its rivals.

Around a fit chi^2 is a quadratic form of all coefficients, those of terms left out too: what another support
gains, to second order, is a small solve and no integration. Supports are proposed so around the best, fitted
in turn, and compared by

    chi^2 + per_term * number of terms,   chi^2 = squared residuals / noise^2 + prior of the states.

Thawing fits one selected equation. Selection needs no equation in the fit of the field; afterwards the terms
are known, and using them is no longer circular: from the frozen field and the selected coefficients on, the
equation is integrated and fitted to the raw samples. What is left over can be held against the noise, and a
score test of every term left out says whether it is wanted.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from fts import validation
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fitting import Fit
from fts.selection.support_search import Support, neighbours, subsets
from fts.trajectory.fit import Record, TrajectoryFit, fit_trajectory, multiple_shooting
from fts.trajectory.integration import FORECAST, ForecastParams

# Directions that the samples leave undetermined, relative to the best determined.
_UNSEEN = 1e-10
# Rounds of the search in a larger library, each around the cheapest equation of the last.
_WIDER_ROUNDS = 4
# All supports of up to so many terms are looked at in libraries up to that size.
_LARGEST_SUPPORT, _LARGEST_LIBRARY = 5, 14


@dataclass(frozen=True)
class Comparison:
    """Supports fitted to the samples, by what each leaves and costs; the one preferred comes first."""

    library: Library
    record: Record
    fits: tuple[TrajectoryFit, ...]
    costs: tuple[float, ...]
    per_term: float

    @property
    def best(self) -> TrajectoryFit:
        """The support preferred: that which explains the samples at the least cost, unless said otherwise."""
        return self.fits[0]

    def preferring(self, preferred: int) -> "Comparison":
        """The same with another fit first."""
        order = [preferred, *(i for i in range(len(self.fits)) if i != preferred)]
        fits, costs = tuple(self.fits[i] for i in order), tuple(self.costs[i] for i in order)
        return replace(self, fits=fits, costs=costs)

    def gap(self, other: int) -> float:
        """By how much another fit is worse, in squared noise units; a term more is not held against it."""
        spare = max(len(self.fits[other].support) - len(self.best.support), 0)
        return self.costs[other] - self.costs[0] - self.per_term * spare


@dataclass(frozen=True)
class ThawedEquation:
    """An equation fitted to the samples by integrating it."""

    equation: Equation
    standard_errors: dict[str, float]
    misfit: float  # root mean square of samples minus solution: the noise, if the equation is right
    noise: float  # as the frozen field estimates it
    wanted: dict[str, float]  # scores of terms left out that are significant, in standard errors
    windows: int  # of the record, each integrated from a state of its own

    def __str__(self) -> str:
        lines = [str(self.equation)]
        for term, value in zip(self.equation.terms, self.equation.coefficients, strict=True):
            lines.append(f"  {term}: {value:.6g} ± {self.standard_errors[str(term)]:.2g}")
        noise, wanted = f"the field estimates a noise of {self.noise:.3g}", self.wanted.items()
        lines.append(f"misses the samples by {self.misfit:.3g}; {noise}")
        lines += [f"- the samples ask for {name} ({ratio:.1f} standard errors)" for name, ratio in wanted]
        return "\n".join(lines)


def thaw_equation(
    fit: Fit, equation: Equation, library: Library, params: ForecastParams = FORECAST
) -> ThawedEquation:
    """`equation` fitted to the samples; terms of `library` that it leaves out are tested beside it."""
    validation.require_type(Fit, fit, "fit", "give the fit of a discovery, fts.discover(...).fit")
    validation.require_type(Equation, equation, "equation", "give fts.Equation.parse('u_t = ...')")
    validation.require_type(Library, library, "library", "give an fts.Library")
    if not len(equation.terms):
        raise ValueError("an empty equation moves nothing: select terms first")
    record, (thawed,) = multiple_shooting(fit, library, [equation.on(library)], params)
    return describe_fit(record, thawed, library)


def describe_fit(record: Record, fit: TrajectoryFit, library: Library) -> ThawedEquation:
    """What a fit to the samples says of its equation, and of the terms of `library` that it leaves out."""
    errors, inside = standard_errors(fit), list(fit.support)
    ratios = {library.names[j]: abs(value) / error for j, (value, error) in score_tests(fit).items()}
    return ThawedEquation(
        equation=Equation(tuple(library[j] for j in inside), fit.xi[inside]),
        standard_errors={str(library[j]): float(errors[j]) for j in inside},
        misfit=fit.misfit,
        noise=record.noise,
        wanted={name: ratio for name, ratio in ratios.items() if ratio >= record.params.wanted},
        windows=len(record.windows),
    )


def compare_supports(
    fit: Fit,
    library: Library,
    starts: Sequence[Float[np.ndarray, " J"]],
    params: ForecastParams,
    step: Callable[[], object] = lambda: None,
) -> Comparison:
    """The comparison that begins with the supports of `starts`; `step` is called after every fit."""
    record, first = multiple_shooting(fit, library, starts, params, step)
    known: dict[Support, TrajectoryFit | None] = {fit.support: fit for fit in first}

    def fit_all(around: TrajectoryFit, supports: Iterable[Support]) -> None:
        new = [support for support in supports if support not in known][: params.proposals]
        for support in new:
            xi = second_order_coefficients(around, support)
            known[support] = fit_trajectory(record, library, xi, around.states)
            step()

    for _ in range(params.rounds):
        best = _ranked(record, known)[0][1]
        fit_all(best, second_order_search(best, params))
        if _ranked(record, known)[0][1] is best:
            fit_all(best, second_order_rivals(best, params))
        if _ranked(record, known)[0][1] is best:
            break
    costs, fits = zip(*_ranked(record, known), strict=True)
    return Comparison(library, record, fits, costs, params.per_term)


def compare_wider(
    comparison: Comparison,
    around: TrajectoryFit,
    library: Library,
    step: Callable[[], object] = lambda: None,
    *,
    incomplete: bool,
) -> tuple[TrajectoryFit, ...]:
    """Equations of a larger `library`, that of the comparison first, that may follow the samples as well.

    `around` is a fit with the information about all of `library`. Where it is `incomplete` the search adds
    terms and goes on from the cheapest equation; elsewhere only equations of no more terms are fitted.
    """
    record, known = comparison.record, len(comparison.library)
    fits: dict[Support, TrajectoryFit | None] = {}
    best = around
    for _ in range(_WIDER_ROUNDS if incomplete else 1):
        supports = [*second_order_search(best, record.params)] if incomplete else []
        supports += [
            each for each in second_order_rivals(best, record.params) if len(each) <= len(best.support)
        ]
        supports = [each for each in dict.fromkeys(supports) if max(each) >= known and each not in fits]
        for support in supports[: record.params.proposals]:
            xi = second_order_coefficients(best, support)
            fits[support] = fit_trajectory(record, library, xi, best.states)
            step()
        ranked = _ranked(record, fits | {best.support: best})
        if ranked[0][1] is best:
            break
        best = ranked[0][1]
    return tuple(fit for _, fit in _ranked(record, fits)) if any(fits.values()) else ()


def cost_of(fit: TrajectoryFit, noise: float, per_term: float) -> float:
    """What a fit leaves of the samples in units of the noise, and what its states and terms cost."""
    return fit.square / noise**2 + fit.prior + per_term * len(fit.support)


def _ranked(record: Record, known: dict[Support, TrajectoryFit | None]) -> list[tuple[float, TrajectoryFit]]:
    params = record.params
    fits = [fit for fit in known.values() if fit is not None]
    # A term that does next to nothing explains the integrator's error, or the field's truncation.
    fits = [fit for fit in fits if fit.least_share >= params.least_share] or fits
    # Below the integrator's own error differences mean nothing.
    noise = max(min(fit.misfit for fit in fits), params.least_noise * record.scale)
    costs = [cost_of(fit, noise, params.per_term) for fit in fits]
    return sorted(zip(costs, fits, strict=True), key=lambda pair: pair[0])


def standard_errors(fit: TrajectoryFit) -> Float[np.ndarray, " J"]:
    """Standard errors of the coefficients in the support."""
    inside, errors = list(fit.support), np.zeros(len(fit.xi))
    covariance = np.linalg.pinv(fit.information[np.ix_(inside, inside)], hermitian=True)
    errors[inside] = np.sqrt(np.maximum(np.diag(covariance), 0))
    return errors


def score_tests(fit: TrajectoryFit) -> dict[int, tuple[float, float]]:
    """For every term left out its coefficient if it were added, and the standard error of that."""
    inside, tests = list(fit.support), {}
    for j in (j for j in range(len(fit.xi)) if j not in inside):
        column = fit.information[inside, j]
        share = np.linalg.lstsq(fit.information[np.ix_(inside, inside)], column, rcond=None)[0]
        schur = fit.information[j, j] - column @ share
        if schur > _UNSEEN * fit.information[j, j]:
            tests[j] = (float((fit.score[j] - fit.score[inside] @ share) / schur), float(schur**-0.5))
        else:
            tests[j] = (0.0, float("inf"))
    return tests


def second_order_search(best: TrajectoryFit, params: ForecastParams) -> list[Support]:
    """Other supports that may cost less than the best or little more, cheapest first."""
    scaled, target, _ = _quadratic_form(best)

    def cost(support: Support) -> float:
        return params.per_term * len(support) - _gain(scaled, target, support)

    least = cost(best.support)
    costs = sorted((cost(support) - least, support) for support in _supports_around(best))
    return [support for more, support in costs if more < params.promising]


def second_order_rivals(best: TrajectoryFit, params: ForecastParams) -> list[Support]:
    """Supports without one of the best one's terms that may leave as little, one more term allowed."""
    scaled, target, _ = _quadratic_form(best)
    most = _gain(scaled, target, best.support)
    rivals = (support for support in _supports_around(best) if not set(best.support) <= set(support))
    lost = sorted((most - _gain(scaled, target, support), support) for support in rivals)
    # To second order only: exact samples make a tiny error of the state look like a large gap.
    limit = max(params.hopeless, params.unexplained * most)
    return [support for gap, support in lost if gap < limit]


def second_order_coefficients(best: TrajectoryFit, support: Support) -> Float[np.ndarray, " J"]:
    """Where a fit of another support begins."""
    scaled, target, units = _quadratic_form(best)
    xi, inside = np.zeros(len(target)), list(support)
    xi[inside] = _solved(scaled, target, support) / units[inside]
    return xi


def _supports_around(best: TrajectoryFit) -> Iterable[Support]:
    """All supports of up to one term more; in a large library those that differ by a term or two."""
    terms = range(len(best.xi))
    if len(terms) > _LARGEST_LIBRARY:
        return neighbours(best.support, terms)
    return subsets(terms, min(len(best.support) + 1, _LARGEST_SUPPORT))


def _quadratic_form(fit: TrajectoryFit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Information in unit diagonal, the linear part of chi^2 around zero, and the units."""
    units = np.sqrt(np.maximum(np.diag(fit.information), np.finfo(float).tiny))
    scaled = fit.information / np.outer(units, units)
    return scaled, scaled @ (fit.xi * units) + fit.score / units, units


def _gain(scaled: np.ndarray, target: np.ndarray, support: Support) -> float:
    return float(target[list(support)] @ _solved(scaled, target, support))


def _solved(scaled: np.ndarray, target: np.ndarray, support: Support) -> np.ndarray:
    inside = list(support)
    return np.linalg.solve(scaled[np.ix_(inside, inside)] + _UNSEEN * np.eye(len(inside)), target[inside])
