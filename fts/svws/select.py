"""Which terms, patches and thresholds a field and a library get; the one place that decides it.

A library's name is only a list of terms. The paper's geometry and threshold belong to fields of the paper's
problems, its quadrature to fields no better than its own; any other field gets patches from its own spectrum
and a threshold relative to ||b||.

Frozen field -> Selection, and the whole method from observations on: freeze, then select.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fts import fitting, validation
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params.paper import CLOSED_FORM, LIBRARIES, PAPER, REFINED
from fts.params.types import FreezeThenSelectParams, SVWSParams, WeakParams
from fts.selection import refits
from fts.selection.selection import Selection
from fts.svws import rule
from fts.svws.rule import build, relative_threshold
from fts.weak.assembly import WeakSystem
from fts.weak.geometry import automatic


@dataclass(frozen=True)
class Prepared:
    """Everything the rule needs: terms, patches, parameters, and the systems in the order of their roles."""

    library: Library
    weak: WeakParams
    params: SVWSParams
    systems: tuple[WeakSystem, ...]


def prepare(
    field: Field,
    library: str | Sequence[str] | Library,
    params: SVWSParams | None = None,
    weak: WeakParams | None = None,
    *,
    seed: int | None = None,
) -> Prepared:
    """Settings for the field and the library, where none are given, and the systems built with them."""
    validation.require_type(
        Field, field, "field", "give a field, as fts.fit(observations) or fts.load_field('ks') return it"
    )
    terms = resolve_library(library)
    terms.check_dimension(field.domain.dimension)
    name = problem_of(field)
    weak = weak or (_geometry(field, name) if name else automatic(field, terms))
    rule = params or PAPER[name or "kdv"].svws
    systems = build(field, terms, weak, rule, seed=seed)
    if params is None and name is None:
        rule = replace(rule, lam0=relative_threshold(systems))
    return Prepared(terms, weak, rule, systems)


def _geometry(field: Field, name: str) -> WeakParams:
    """The paper's patches for its problem; quadrature that does not limit a field better than its own."""
    made = getattr(field, "made", None)
    closed = made is not None and made.recipe in CLOSED_FORM
    return REFINED.get(name, PAPER[name].weak) if closed else PAPER[name].weak


def problem_of(field: Field) -> str | None:
    """The paper's problem whose observations the field was fitted to, if it was."""
    made = getattr(field, "made", None)
    return made.problem if made is not None and made.problem in PAPER else None


def resolve_library(library: str | Sequence[str] | Library) -> Library:
    """The library a user means: a name of the paper's, a list of term texts, or one already made."""
    if isinstance(library, Library):
        return library
    texts = (str, list, tuple)
    validation.require_type(
        texts, library, "library", "give a name like 'ks', or terms like ['u*u_x', 'u_xx']"
    )
    if isinstance(library, str):
        if library not in LIBRARIES:
            raise ValueError(
                f"unknown library {library!r}: known are {', '.join(LIBRARIES)}; or give a list of terms"
            )
        return Library.parse(LIBRARIES[library])
    return Library.parse(library)


@validation.explain_signature_errors
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
    return replace(chosen, variants=rule.variants(systems, params.svws))


def _freeze_then_select(
    observations: Observations, library: Library, params: FreezeThenSelectParams
) -> tuple[Selection, tuple[WeakSystem, ...]]:
    field = fitting.obtain(observations, params.field)
    variance = fitting.posterior_variance(observations) if params.refit == "weighted" else None
    # CPU time: runs beside each other do not change it.
    began = time.process_time()
    systems = rule.build(field, library, params.weak, params.svws)
    variances = None if variance is None else refits.row_variances(variance, params.weak, systems)
    chosen = rule.select_from(systems, params.svws, variances)
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    reported = chosen.with_refit("ridge") if params.refit == "ridge" else chosen
    return replace(reported, field=field, seconds=seconds), systems
