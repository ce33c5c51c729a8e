"""Observations -> Selection by the fields of two disjoint halves of the samples: method "two fields".

A field's own noise is explained by terms that are not there, and the same field confirms them. The noise of
two halves is independent, so what their fields agree on is the equation's: supports are chosen by cross
products (`selection.instrumental`). Where half of the samples is too little, the paper's rule on the whole
field stands.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.fitting import Fit
from fts.kernel.closed_form import condition, freeze
from fts.kernel.posterior import Posterior
from fts.kernel.separable import condition_grid
from fts.observations import Observations
from fts.params.types import WeakParams
from fts.selection import refits
from fts.selection.instrumental import TwoFieldsParams, choose
from fts.selection.moments import CrossMoments, cross_moments, regions
from fts.selection.selection import Refit, Selection
from fts.svws import rule
from fts.svws.select import Prepared, prepare
from fts.weak.assembly import assemble, bump_integral
from fts.weak.geometry import automatic

# The halves resolve the field when they agree on so much of u_t.
_RESOLVED = 0.1


@dataclass(frozen=True)
class SplitSample:
    """What the halves say of an equation: theirs, or that of the whole field where they are too little."""

    selection: Selection
    by_halves: bool
    reasons: tuple[str, ...]  # to doubt it


@dataclass(frozen=True)
class Gap:
    """What left-out slices of the worst-sampled axis miss beyond what those of the best-sampled one do."""

    axis: str
    error: float  # in deviations of the samples

    @property
    def reason(self) -> str:
        """Why the field may be wrong, and what to do about it."""
        return (
            f"left-out samples along {self.axis} miss by {self.error:.0%} of the field's deviation beyond "
            f"the noise, so the field between them is not resolved: measure more densely along {self.axis}"
        )


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
    one_field = rule.select_from(ready.systems, ready.params)
    alone = time.process_time() - began
    chosen = select_prepared(fit, ready, one_field, params).selection
    spent = round(time.process_time() - began, 4)
    seconds = {"fit": fit.field.made.seconds, "one_field": round(alone, 4), "select": spent}
    return replace(chosen, seconds=seconds)


def prepare_halves(fit: Fit, library: Library, params: TwoFieldsParams) -> Prepared:
    """The systems of the whole field, on patches from the field itself."""
    ready = prepare(fit.field, library, params.svws, params.weak or automatic(fit.field, library))
    if not params.relative:
        return ready
    return replace(ready, params=replace(params.svws, lam0=rule.relative_threshold(ready.systems)))


def select_prepared(fit: Fit, ready: Prepared, one_field: Selection, params: TwoFieldsParams) -> SplitSample:
    """The same from systems that are prepared, and what the paper's rule selects on them."""
    assert fit.posterior is not None
    moments = moments_of_halves(fit, ready, params)
    agreed = 0.0 if moments is None else float(moments.reliability[0])
    by_halves, chosen, notes = agreed >= _RESOLVED, one_field, dict[str, Any](fields=1)
    if moments is not None and by_halves:
        crossed = choose(moments, params, tuple(np.flatnonzero(one_field.xi).tolist()))
        chosen, disagreed = _beside_whole_field(crossed, ready.with_variances(fit.variance), params)
        notes = {"fields": 2, "agreed": agreed} | disagreed
    elif moments is not None:
        share = f"halves of the samples agree on {agreed:.0%} of u_t"
        notes["said"] = f"{share}, too little: one field, the paper's rule"
    gap = unresolved(fit.posterior)
    notes["left_out"] = gap.error
    if gap.error > params.unresolved:
        notes["doubt"] = gap.reason
    variants = {"svws": one_field}
    chosen = replace(chosen, method="two fields", field=fit.field, notes=notes, variants=variants)
    return SplitSample(chosen, by_halves, tuple(notes[name] for name in ("said", "doubt") if name in notes))


def moments_of_halves(fit: Fit, ready: Prepared, params: TwoFieldsParams) -> CrossMoments | None:
    """The cross moments of the halves, on the phases that the paper's rule begins with; None without any."""
    assert fit.posterior is not None
    rng, differentiated = np.random.default_rng(params.split_seed), ready.library.strong_derivatives > 0
    pairs = fit.halves(params.splits, params.smoothing, rng, derivatives=differentiated)
    variances = ready.with_variances(fit.variance).variances if pairs else None
    if variances is None:
        return None
    by_system = variances.reshape(len(ready.systems), -1)[: params.phases]
    weights = row_weights(by_system, ready.weak, fit.posterior.scale, params.negligible)
    phases = [system.phase for system in ready.systems[: params.phases]]
    return measure(pairs, ready.library, ready.weak, phases, weights)


def measure(
    pairs: Sequence[tuple[Field, Field]],
    library: Library,
    weak: WeakParams,
    phases: Sequence[Float[np.ndarray, " d1"]] | Float[np.ndarray, "n d1"],
    weights: Iterable[Float[np.ndarray, " m"]] | None = None,
) -> CrossMoments:
    """The cross moments of all pairs on the patches of all phases, the rows of each phase weighted."""
    rows, equal = [], np.ones((len(phases), 1))
    for phase, factors in zip(phases, equal if weights is None else weights, strict=True):
        for pair in pairs:
            systems = [assemble(field, library, weak, phase) for field in pair]
            columns = (factors[:, None] * np.column_stack([system.b, system.A]) for system in systems)
            rows.append((*columns, regions(systems[0].centers)))
    return cross_moments(library, rows)


def row_weights(
    variances: Float[np.ndarray, "..."], weak: WeakParams, scale: float, negligible: float
) -> Float[np.ndarray, "..."]:
    """n / (n + v) for every patch: v its mean variance in units of the samples', n the negligible one.

    Where samples are far apart the field is extrapolated, and both halves alike: an error that cross
    products do not remove. The process says beforehand where that is, from the places of the samples alone,
    so weights made of it are independent of the noise and bias nothing. Weighing by 1 / variance would let
    every row bring the same share of that error; by its square the badly known ones bring less. An error that
    is negligible everywhere must not decide which rows count: it is what all variances are compared with.

    `variances` are those of rows (`refits.row_variances`), `scale` is the deviation of the samples. The
    weights are square roots: both fields' rows are multiplied by them.
    """
    share = variances / bump_integral(replace(weak, nodes=refits.coarser(weak))) / scale**2
    return negligible / (negligible + share)


def unresolved(posterior: Posterior) -> Gap:
    """How far the field is unresolved between its samples; halves would share that error and agree on it.

    The noise is in the errors of all axes; what one axis has beyond another is what its samples leave open.
    """
    errors = np.array(posterior.choice.errors)
    names = posterior.domain.names
    names = names if len(errors) == len(names) else ("space", "t")
    worst = int(np.argmax(errors))
    return Gap(names[worst], float(np.sqrt(errors[worst] ** 2 - errors.min() ** 2)))


def _beside_whole_field(
    crossed: Selection, ready: Prepared, params: TwoFieldsParams
) -> tuple[Selection, dict[str, Any]]:
    """The selection by cross moments with refits of its support on the whole field; their disagreement."""
    if not crossed.support:
        return crossed, {}
    generation, fit, validation = rule.roles(ready.systems, ready.params)
    whole = refits.with_refits(crossed, (*generation, fit), validation, ready.params, ready.variances)
    # What `with_refits` calls ridge is the selection it was given.
    fits = {name: refit for name, refit in whole.refits.items() if name != "ridge"} | dict(crossed.refits)
    distance = disagreement(fits[whole.preferred], fits["cross"])
    preferred = whole.preferred if distance <= params.disagreement else "cross"
    chosen = replace(whole, xi=fits[preferred].xi, refits=fits, preferred=preferred)
    return chosen, {"disagreement": distance}


def disagreement(whole: Refit, cross: Refit) -> float:
    """Root mean square difference of two refits in standard errors of the second: Hausman's test.

    Without noise both estimate the same. With it a refit on the whole field is steadier but biased, the cross
    estimate is not; where they differ by more than its standard errors, that is the bias.
    """
    inside = cross.deviation > 0
    if not inside.any():
        return 0.0
    return float(np.sqrt(np.mean(((whole.xi - cross.xi)[inside] / cross.deviation[inside]) ** 2)))
