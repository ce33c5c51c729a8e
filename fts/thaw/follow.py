"""Samples, their frozen field and a selected equation -> the same equation, as exact as the samples allow.

Selection needs no equation in the fit. Afterwards the terms are known, and using them is no longer circular:
the equation is integrated and fitted to the raw samples, from the frozen field and the selected coefficients
on. What is left over can be held against the noise, and every term left out says whether it is wanted.
"""

from dataclasses import dataclass

from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params import FORECAST, ForecastParams
from fts.thaw.around import deviations, excluded
from fts.thaw.stretches import begin


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
    if not len(equation.terms):
        raise ValueError("an empty equation moves nothing: select terms first")
    xi = equation.on(library)
    record, (fit,) = begin(observations, field, library, [xi], params)
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
