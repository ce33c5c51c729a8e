"""Frozen field -> Selection, and the whole method from observations on: freeze, then select."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fts import asked, recipes
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params import FreezeThenSelectParams, SVWSParams, WeakParams
from fts.svws import ablation, refits, rule
from fts.svws.selection import Selection
from fts.svws.settings import prepare
from fts.weak.assembly import WeakSystem


@asked.helpful
def select(
    field: Field,
    library: str | Sequence[str] | Library,
    params: SVWSParams | None = None,
    weak: WeakParams | None = None,
    *,
    seed: int | None = None,
    variance: Field | None = None,
) -> Selection:
    """The equation SVWS reads off a frozen field: u_t = sum_{j in S} xi_j Theta_j, with its trace.

    `library` is a name ("ks") or a list of terms. Without `weak` the paper's geometry is used for fields of
    the paper's problems, a geometry from the field itself otherwise; `seed` draws the phases. With the
    field's posterior `variance` the refit trusts each patch as far as the field is known there; which terms
    are selected does not depend on it.
    """
    ready = prepare(field, library, params, weak, seed=seed)
    variances = None if variance is None else refits.row_variances(variance, ready.weak, ready.systems)
    return replace(rule.select_from(ready.systems, ready.params, variances), field=field)


def freeze_then_select(
    observations: Observations, library: Library, params: FreezeThenSelectParams, rng: np.random.Generator
) -> Selection:
    """Our method: the field fitted and frozen, then SVWS on its weak systems.

    Nothing is drawn from `rng`: the field's training is seeded by the observations, the phases by
    `params.svws.phase_seed`, as in the paper.
    """
    return _freeze_then_select(observations, library, params)[0]


def freeze_then_compare(
    observations: Observations, library: Library, params: FreezeThenSelectParams, rng: np.random.Generator
) -> Selection:
    """The same, with what every selector of the ablation says of the same systems in `variants`."""
    chosen, systems = _freeze_then_select(observations, library, params)
    return replace(chosen, variants=ablation.variants(systems, params.svws))


def _freeze_then_select(
    observations: Observations, library: Library, params: FreezeThenSelectParams
) -> tuple[Selection, tuple[WeakSystem, ...]]:
    field = recipes.obtain(observations, params.field)
    variance = recipes.posterior_variance(observations) if params.refit == "weighted" else None
    # CPU time: runs beside each other do not change it.
    began = time.process_time()
    systems = rule.build(field, library, params.weak, params.svws)
    variances = None if variance is None else refits.row_variances(variance, params.weak, systems)
    chosen = rule.select_from(systems, params.svws, variances)
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    reported = chosen.with_refit("ridge") if params.refit == "ridge" else chosen
    return replace(reported, field=field, seconds=seconds), systems
