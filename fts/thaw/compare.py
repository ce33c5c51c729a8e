"""Samples and first supports -> the support whose equation follows the samples best, and its rivals.

Supports are proposed to second order around the best (`around`), fitted in turn, and compared by

    chi^2 + per_term * number of terms,   chi^2 = squared residuals / noise^2 + prior of the states.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params import ForecastParams
from fts.thaw.around import Support, coefficients, others, promising
from fts.thaw.fit import Following, thaw
from fts.thaw.stretches import begin
from fts.thaw.windows import Record


@dataclass(frozen=True)
class Comparison:
    """Supports fitted to the samples, by what each leaves and costs; the one preferred comes first."""

    library: Library
    record: Record
    fits: tuple[Following, ...]
    costs: tuple[float, ...]
    per_term: float

    @property
    def best(self) -> Following:
        """The support preferred: that which explains the samples at the least cost, unless said otherwise."""
        return self.fits[0]

    def preferring(self, one: int) -> "Comparison":
        """The same with another fit first."""
        order = [one, *(i for i in range(len(self.fits)) if i != one)]
        fits, costs = tuple(self.fits[i] for i in order), tuple(self.costs[i] for i in order)
        return replace(self, fits=fits, costs=costs)

    def gap(self, other: int) -> float:
        """By how much another fit is worse, in squared noise units; a term more is not held against it."""
        spare = max(len(self.fits[other].support) - len(self.best.support), 0)
        return self.costs[other] - self.costs[0] - self.per_term * spare


def compare(
    observations: Observations,
    field: Field,
    library: Library,
    starts: Sequence[Float[np.ndarray, " J"]],
    params: ForecastParams,
    step: Callable[[], object] = lambda: None,
) -> Comparison:
    """The comparison that begins with the supports of `starts`; `step` is called after every fit."""
    record, first = begin(observations, field, library, starts, params, step)
    known: dict[Support, Following | None] = {one.support: one for one in first}

    def fit(around: Following, supports: Iterable[Support]) -> None:
        new = [support for support in supports if support not in known][: params.proposals]
        for support in new:
            known[support] = thaw(record, library, coefficients(around, support), params, around.states)
            step()

    for _ in range(params.rounds):
        best = _ranked(record, known, params)[0][1]
        fit(best, promising(best, params))
        if _ranked(record, known, params)[0][1] is best:
            fit(best, others(best, params))
        if _ranked(record, known, params)[0][1] is best:
            break
    costs, fits = zip(*_ranked(record, known, params), strict=True)
    return Comparison(library, record, fits, costs, params.per_term)


def _ranked(
    record: Record, known: dict[Support, Following | None], params: ForecastParams
) -> list[tuple[float, Following]]:
    fits = [one for one in known.values() if one is not None]
    # A term that does next to nothing explains the integrator's error, or the field's truncation.
    fits = [one for one in fits if one.least_share >= params.least_share] or fits
    # Below the integrator's own error differences mean nothing.
    noise = max(min(one.misfit for one in fits), params.least_noise * record.scale)
    costs = [one.square / noise**2 + one.prior + params.per_term * len(one.support) for one in fits]
    return sorted(zip(costs, fits, strict=True), key=lambda pair: pair[0])
