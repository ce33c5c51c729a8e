"""Samples, their frozen field and equations to begin with -> stretches of the record they can be followed in.

One long stretch says most about the coefficients; a chaotic or badly begun equation is followed only in
shorter ones. The fewest are taken in which one of the equations follows the samples as well as in more.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params import ForecastParams
from fts.thaw.fit import Following, approach, thaw
from fts.thaw.flow import Flow, Unbounded
from fts.thaw.windows import Record, divide, survey


class Unfollowed(ValueError):
    """Samples through which no equation can be followed here, whichever it is, with the reason."""


def begin(
    observations: Observations,
    field: Field,
    library: Library,
    starts: Sequence[Float[np.ndarray, " J"]],
    params: ForecastParams,
    step: Callable[[], object] = lambda: None,
) -> tuple[Record, tuple[Following, ...]]:
    """The record in stretches, and every start that can be integrated fitted to it."""
    surveyed = _surveyed(observations, field, params)
    steps = _steps(surveyed, observations, library, starts, params)
    per_step = (len(surveyed.spread) + len(library) + 1) * surveyed.circle.points
    shortest = -(-steps // params.windows[-1])
    if shortest * per_step > params.budget:
        raise Unfollowed(f"a stretch of {shortest} steps costs too much: follow a shorter record")
    kept: tuple[Record, tuple[Following, ...]] | None = None
    least = np.inf
    for count in params.windows:
        last, each = count == params.windows[-1], -(-steps // count)
        affordable = params.budget // (each * per_step)
        if not affordable:
            continue
        record = divide(surveyed, field, observations, count, each, params, affordable)
        fits = _fitted(record, library, starts, params, step, patient=last)
        misfit = min((one.misfit for one in fits), default=np.inf)
        if misfit < params.better * least:
            kept, least = (record, fits), misfit
        elif kept is not None:
            break
        if misfit <= max(params.follows * record.noise, params.negligible * record.scale):
            break
    if kept is None:
        raise Unbounded("no equation proposed can be integrated: their solutions grow without bound")
    return kept


def _surveyed(observations: Observations, field: Field, params: ForecastParams) -> Record:
    if observations.domain.dimension != 1 or not observations.domain.periodic[0]:
        raise Unfollowed("an equation is followed on one periodic axis: say domain=... with periodic=(True,)")
    surveyed = survey(field, observations, params)
    if surveyed is None:
        raise Unfollowed(f"the field has more than {params.most_waves} waves: follow a shorter axis")
    return surveyed


def _steps(
    surveyed: Record,
    observations: Observations,
    library: Library,
    starts: Sequence[np.ndarray],
    params: ForecastParams,
) -> int:
    """Of the whole record: as many as the fastest product needs."""
    rates = [Flow(library, xi, surveyed.circle).fastest(observations.y, surveyed.waves) for xi in starts]
    turns = max(rates) * observations.domain.extents[-1] / params.courant
    return int(np.clip(np.ceil(turns), params.steps, params.most_steps))


def _fitted(
    record: Record,
    library: Library,
    starts: Sequence[np.ndarray],
    params: ForecastParams,
    step: Callable[[], object],
    *,
    patient: bool,
) -> tuple[Following, ...]:
    """Starts fitted that one pass brings near; none where it tells that stretches so long are too long."""
    probes = [approach(record, library, xi, replace(params, passes=1)) for xi in starts]
    reached = [one for one in probes if one is not None]
    least = min((one.square for one in reached), default=np.inf)
    # Noise is no sign that an equation was lost.
    if least > record.samples * ((params.lost * record.scale) ** 2 + record.noise**2) and not patient:
        return ()
    near = [one for one in reached if one.square <= params.near**2 * least]
    fits = []
    for one in near:
        fits.append(thaw(record, library, one.xi, params, one.states))
        step()
    return tuple(one for one in fits if one is not None)
