"""Samples, their frozen field and a selected equation -> the same equation, as exact as the samples allow.

Selection needs no equation in the fit. Afterwards the terms are known, and using them is no longer circular:
the equation is integrated and fitted to the raw samples, from the frozen field and the selected coefficients
on. What is left over can be held against the noise, and every term left out says whether it is wanted.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params import FORECAST, ForecastParams
from fts.thaw.fit import Following, thaw
from fts.thaw.flow import Flow
from fts.thaw.windows import Record, divide, survey

# Directions the samples say nothing about, relative to those they know best.
_UNSEEN = 1e-10


@dataclass(frozen=True)
class Followed:
    """An equation fitted to the samples by integrating it."""

    equation: Equation
    standard_errors: dict[str, float]
    misfit: float  # root mean square of samples minus solution: the noise, if the equation is right
    noise: float  # as the frozen field estimates it
    wanted: dict[str, float]  # terms left out that the samples ask for, and by how many standard errors
    stretches: int  # of the record, each followed from a state of its own

    def __str__(self) -> str:
        lines = [str(self.equation)]
        for term, value in zip(self.equation.terms, self.equation.coefficients, strict=True):
            lines.append(f"  {term}: {value:.6g} ± {self.standard_errors[str(term)]:.2g}")
        lines.append(
            f"misses the samples by {self.misfit:.3g}; the field estimates a noise of {self.noise:.3g}"
        )
        lines += [
            f"- the samples ask for {name} ({ratio:.1f} standard errors)"
            for name, ratio in self.wanted.items()
        ]
        return "\n".join(lines)


def follow(
    observations: Observations,
    field: Field,
    equation: Equation,
    library: Library,
    params: ForecastParams = FORECAST,
) -> Followed:
    """`equation` fitted to the observations; terms of `library` that it leaves out are judged beside it."""
    if observations.domain.dimension != 1 or not observations.domain.periodic[0]:
        raise ValueError("an equation is followed on one periodic axis: say domain=... with periodic=(True,)")
    if not len(equation.terms):
        raise ValueError("an empty equation moves nothing: select terms first")
    xi = equation.on(library)
    record, fit = _fitted(observations, field, library, xi, params)
    errors, inside = deviations(fit), list(fit.support)
    ratios = {library.names[j]: abs(value) / error for j, (value, error) in excluded(fit).items()}
    return Followed(
        equation=Equation(tuple(library[j] for j in inside), fit.xi[inside]),
        standard_errors={str(library[j]): float(errors[j]) for j in inside},
        misfit=fit.misfit,
        noise=record.noise,
        wanted={name: ratio for name, ratio in ratios.items() if ratio >= params.wanted},
        stretches=len(record.windows),
    )


def deviations(fit: Following) -> Float[np.ndarray, " J"]:
    """Standard errors of the coefficients in the support."""
    inside, result = list(fit.support), np.zeros(len(fit.xi))
    covariance = np.linalg.pinv(fit.information[np.ix_(inside, inside)], hermitian=True)
    result[inside] = np.sqrt(np.maximum(np.diag(covariance), 0))
    return result


def excluded(fit: Following) -> dict[int, tuple[float, float]]:
    """For every term left out its coefficient if it were added, and the standard error of that."""
    inside, found = list(fit.support), {}
    for j in range(len(fit.xi)):
        if j in inside:
            continue
        column = fit.information[inside, j]
        share = np.linalg.lstsq(fit.information[np.ix_(inside, inside)], column, rcond=None)[0]
        own = fit.information[j, j] - column @ share
        if own > _UNSEEN * fit.information[j, j]:
            found[j] = (float((fit.score[j] - fit.score[inside] @ share) / own), float(own**-0.5))
        else:
            found[j] = (0.0, float("inf"))
    return found


def _fitted(
    observations: Observations, field: Field, library: Library, xi: np.ndarray, params: ForecastParams
) -> tuple[Record, Following]:
    """The fewest stretches in which the equation follows the samples as well as in more of them."""
    surveyed = survey(field, observations, params)
    if surveyed is None:
        raise ValueError(f"the field has more than {params.most_waves} waves: follow a shorter axis")
    rate = Flow(library, xi, surveyed.circle).fastest(observations.y, surveyed.waves)
    rate *= observations.domain.extents[-1]
    steps = int(np.clip(np.ceil(rate / params.courant), params.steps, params.most_steps))
    per_step = (len(surveyed.spread) + len(library) + 1) * surveyed.circle.points
    kept: tuple[Record, Following] | None = None
    for count in params.windows:
        each = -(-steps // count)
        affordable = params.budget // (each * per_step)
        if not affordable and count != params.windows[-1]:
            continue
        record = _some(divide(surveyed, field, observations, count, each, params), affordable)
        found = thaw(record, library, xi, params)
        if found is None:
            continue
        if kept is not None and found.misfit > params.better * kept[1].misfit:
            break
        kept = record, found
        if found.misfit <= max(params.follows * record.noise, params.negligible * record.scale):
            break
    if kept is None:
        raise ValueError("the equation cannot be integrated: its solutions grow without bound")
    return kept


def _some(record: Record, count: int) -> Record:
    """So many of the windows, evenly spaced, one at least."""
    kept = min(max(count, 1), len(record.windows))
    chosen = np.linspace(0, len(record.windows) - 1, kept).round().astype(int)
    return replace(record, windows=tuple(record.windows[i] for i in chosen))
