"""Observations -> Selection by two fields, or by the paper's rule where half of the samples is too little."""

import time
from dataclasses import replace

import numpy as np

from fts.cross.halves import Pair, halves
from fts.cross.moments import CrossMoments, measure
from fts.cross.rule import choose
from fts.equations.terms import Library
from fts.fields.frozen import Field, FrozenField
from fts.kernel.closed_form import freeze
from fts.kernel.posterior import Posterior, condition
from fts.observations import Observations
from fts.params import SVWSParams, TwoFieldsParams
from fts.svws import refits, rule
from fts.svws.selection import Refit, Selection
from fts.weak.assembly import WeakSystem
from fts.weak.geometry import automatic

# The halves resolve the field when they agree on so much of u_t.
RESOLVED = 0.1


def two_fields(
    observations: Observations, library: Library, params: TwoFieldsParams, rng: np.random.Generator
) -> Selection:
    """Freeze, then select, by fields of disjoint halves; the paper's rule on the whole field in `variants`.

    Nothing is drawn from `rng`: halves, regions and phases have seeds of their own in `params`.
    """
    posterior = condition(observations, progress=False)
    return select_halves(observations, posterior, freeze(posterior, observations), library, params)


def select_halves(
    observations: Observations,
    posterior: Posterior,
    field: FrozenField,
    library: Library,
    params: TwoFieldsParams,
) -> Selection:
    """The same for a process already conditioned on the observations, and its frozen mean."""
    # CPU time: runs beside each other do not change it.
    began = time.process_time()
    weak = params.weak or automatic(field, library)
    systems = rule.build(field, library, weak, params.svws)
    svws = params.svws
    if params.relative:
        svws = replace(svws, lam0=rule.relative_threshold(systems))
    single = rule.select_from(systems, svws)
    alone = time.process_time() - began
    pairs = halves(observations, posterior, params)
    phases = [system.phase for system in systems[: params.phases]]
    moments = (
        measure([_light(pair, observations) for pair in pairs], library, weak, phases) if pairs else None
    )
    seconds = {"fit": field.made.seconds, "one_field": round(alone, 4)}
    if moments is None or moments.reliability[0] < RESOLVED:
        agreed = 0.0 if moments is None else float(moments.reliability[0])
        said = f"halves of the samples agree on {agreed:.0%} of u_t, too little: one field, the paper's rule"
        chosen = replace(single, notes={"fields": 1, "said": said})
    else:
        chosen = _by_two(moments, systems, svws, params)
    seconds["select"] = round(time.process_time() - began, 4)
    return replace(chosen, method="two fields", field=field, seconds=seconds, variants={"svws": single})


def _light(pair: Pair, observations: Observations) -> tuple[Field, Field]:
    """The pair as it is, or frozen where kernels between all nodes and scattered sensors would be slow."""
    if len(pair[0].parts) == observations.domain.dimension + 1:
        return pair
    return freeze(pair[0], observations), freeze(pair[1], observations)


def _by_two(
    moments: CrossMoments, systems: tuple[WeakSystem, ...], svws: SVWSParams, params: TwoFieldsParams
) -> Selection:
    """The selection by cross moments; refits of its support on the whole field stand beside its own."""
    chosen = choose(moments, params)
    notes = {"fields": 2, "agreed": float(moments.reliability[0])}
    if not chosen.support:
        return replace(chosen, notes=notes)
    generation, fit, validation = rule.roles(systems, svws)
    whole = refits.refits(chosen, (*generation, fit), validation, svws)
    # What `refits` calls ridge is the selection it was given.
    every = {name: one for name, one in whole.refits.items() if name != "ridge"} | dict(chosen.refits)
    distance = disagreement(every[whole.preferred], every["cross"])
    preferred = whole.preferred if distance <= params.disagreement else "cross"
    notes["disagreement"] = distance
    return replace(whole, xi=every[preferred].xi, refits=every, preferred=preferred, notes=notes)


def disagreement(whole: Refit, cross: Refit) -> float:
    """Root mean square difference of two refits in standard errors of the second: Hausman's test.

    Without noise both estimate the same. With it a refit on the whole field is steadier but biased, the cross
    estimate is not; where they differ by more than its standard errors, that is the bias.
    """
    inside = cross.deviation > 0
    if not inside.any():
        return 0.0
    return float(np.sqrt(np.mean(((whole.xi - cross.xi)[inside] / cross.deviation[inside]) ** 2)))
