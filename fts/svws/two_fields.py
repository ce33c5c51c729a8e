"""Observations -> Selection by two fields, or by the paper's rule where half of the samples is too little."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fts.equations.terms import Library
from fts.fitting import Fit
from fts.kernel.closed_form import condition, freeze
from fts.kernel.posterior import Posterior
from fts.kernel.separable import condition_grid
from fts.observations import Observations
from fts.selection import refits
from fts.selection.instrumental import TwoFieldsParams, choose
from fts.selection.moments import CrossMoments, measure
from fts.selection.selection import Refit, Selection
from fts.selection.split_sample import row_weights
from fts.svws import rule
from fts.svws.select import Prepared, prepare
from fts.weak.geometry import automatic

# The halves resolve the field when they agree on so much of u_t.
RESOLVED = 0.1


def two_fields(
    observations: Observations, library: Library, params: TwoFieldsParams, rng: np.random.Generator
) -> Selection:
    """Freeze, then select, by fields of disjoint halves; the paper's rule on the whole field in `variants`.

    Nothing is drawn from `rng`: halves, regions and phases have seeds of their own in `params`.
    """
    # On a grid always the separable process: its halves are taken along an axis.
    conditioned = condition if observations.grid is None else condition_grid
    posterior = conditioned(observations, progress=False)
    return select_halves(Fit(observations, freeze(posterior, observations), posterior), library, params)


def select_halves(fit: Fit, library: Library, params: TwoFieldsParams) -> Selection:
    """The same for a fitted field."""
    # CPU time: runs beside each other do not change it.
    began = time.process_time()
    ready = prepare_halves(fit, library, params)
    single = rule.select_from(ready.systems, ready.params)
    alone = time.process_time() - began
    chosen = select_prepared(fit, ready, single, params)
    spent = round(time.process_time() - began, 4)
    seconds = {"fit": fit.field.made.seconds, "one_field": round(alone, 4), "select": spent}
    return replace(chosen, seconds=seconds)


def prepare_halves(fit: Fit, library: Library, params: TwoFieldsParams) -> Prepared:
    """The systems of the whole field, on patches from the field itself."""
    ready = prepare(fit.field, library, params.svws, params.weak or automatic(fit.field, library))
    if not params.relative:
        return ready
    return replace(ready, params=replace(params.svws, lam0=rule.relative_threshold(ready.systems)))


def select_prepared(fit: Fit, ready: Prepared, single: Selection, params: TwoFieldsParams) -> Selection:
    """The same from systems that are prepared, and what the paper's rule selects on them."""
    assert fit.posterior is not None
    moments = halved(fit, ready, params).moments
    if moments is None:
        chosen = replace(single, notes={"fields": 1})
    elif (agreed := float(moments.reliability[0])) < RESOLVED:
        said = f"halves of the samples agree on {agreed:.0%} of u_t, too little: one field, the paper's rule"
        chosen = replace(single, notes={"fields": 1, "said": said})
    else:
        one_field = tuple(np.flatnonzero(single.xi).tolist())
        chosen = choose(moments, params, one_field)
        chosen = _by_two(chosen, moments, ready.with_variances(fit.variance), params)
    notes = dict(chosen.notes) | _warnings(unresolved(fit.posterior), params)
    return replace(chosen, method="two fields", field=fit.field, notes=notes, variants={"svws": single})


@dataclass(frozen=True)
class Halved:
    """Cross moments of a library; None where the samples cannot be halved."""

    library: Library
    moments: CrossMoments | None


def halved(fit: Fit, ready: Prepared, params: TwoFieldsParams) -> Halved:
    """The cross moments of the halves, on the phases that the paper's rule begins with."""
    assert fit.posterior is not None
    pairs = fit.halves(params.splits, params.smoothing, np.random.default_rng(params.split_seed))
    if not pairs:
        return Halved(ready.library, None)
    variances = ready.with_variances(fit.variance).variances
    assert variances is not None
    rows = variances.reshape(len(ready.systems), -1)
    weights = row_weights(rows, ready.weak, fit.posterior.scale, params.negligible)
    by_phase = {one.phase.tobytes(): row for one, row in zip(ready.systems, weights, strict=True)}
    places = [one.phase for one in ready.systems[: params.phases]]
    moments = measure(pairs, ready.library, ready.weak, places, lambda phase: by_phase[phase.tobytes()])
    return Halved(ready.library, moments)


def _warnings(gap: "Gap", params: TwoFieldsParams) -> dict[str, Any]:
    """What the notes say of a field that its samples do not resolve; halves of them cannot see it."""
    return {"left_out": gap.error} | ({"doubt": gap.sentence} if gap.error > params.unresolved else {})


@dataclass(frozen=True)
class Gap:
    """What left-out slices of the worst-sampled axis miss beyond what those of the best-sampled one do."""

    axis: str
    error: float  # in deviations of the samples

    @property
    def sentence(self) -> str:
        """What to tell a user of it."""
        return (
            f"left-out samples along {self.axis} miss by {self.error:.0%} of the field's deviation beyond "
            f"the noise, so the field between them is not resolved: measure more densely along {self.axis}"
        )


def unresolved(posterior: Posterior) -> Gap:
    """How far the field is unresolved between its samples; halves would share that error and agree on it.

    The noise is in the errors of all axes; what one axis has beyond another is what its samples leave open.
    """
    errors = np.array(posterior.choice.errors)
    dimension = posterior.domain.dimension
    names = (*"xyz"[:dimension], "t") if len(errors) == dimension + 1 else ("space", "t")
    worst = int(np.argmax(errors))
    return Gap(names[worst], float(np.sqrt(errors[worst] ** 2 - errors.min() ** 2)))


def _by_two(chosen: Selection, moments: CrossMoments, ready: Prepared, params: TwoFieldsParams) -> Selection:
    """The selection by cross moments; refits of its support on the whole field stand beside its own."""
    notes = {"fields": 2, "agreed": float(moments.reliability[0])}
    if not chosen.support:
        return replace(chosen, notes=notes)
    generation, fit, validation = rule.roles(ready.systems, ready.params)
    whole = refits.with_refits(chosen, (*generation, fit), validation, ready.params, ready.variances)
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
