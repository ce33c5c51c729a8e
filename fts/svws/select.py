"""Observations, or a frozen field -> Selection: freeze, then select.

A library's name is only a list of terms. `prepare` is the one place that decides which terms, patches and
thresholds a field and a library get. The paper's geometry and threshold belong to fields of the paper's
problems, its quadrature to fields no better than its own; any other field gets patches from its own spectrum
and a threshold relative to ||b||.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from fts import fitting, validation
from fts.equations.grammar import TermError
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params.paper import LIBRARIES, PAPER, published_settings
from fts.params.types import FreezeThenSelectParams, SVWSParams, WeakParams
from fts.selection import refits
from fts.selection.selection import Selection
from fts.svws import rule
from fts.svws.rule import build, relative_threshold
from fts.weak.assembly import U_T, WeakSystem, add_terms, missing_terms
from fts.weak.geometry import automatic, power_for, refine_nodes


@dataclass(frozen=True)
class Prepared:
    """Everything the rule needs: terms, patches, parameters, and the systems in the order of their roles."""

    library: Library
    weak: WeakParams
    params: SVWSParams
    systems: tuple[WeakSystem, ...]
    variances: Float[np.ndarray, " m"] | None = None  # of all rows, where the field's variance is known

    def with_variances(self, variance: Field | None) -> "Prepared":
        """The same with the variances of the rows, computed once."""
        if variance is None or self.variances is not None:
            return self
        remedy = "give the variance that fts.fit_with_variance returns"
        validation.require_type(Field, variance, "variance", remedy)
        return replace(self, variances=refits.row_variances(variance, self.weak, self.systems))


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
    field's posterior `variance` the refit weights each patch by its precision there; which terms
    are selected does not depend on it.
    """
    ready = prepare(field, library, params, weak, seed=seed).with_variances(variance)
    return replace(rule.select_from(ready.systems, ready.params, ready.variances), field=field)


def freeze_then_select(
    observations: Observations, library: Library, params: FreezeThenSelectParams, rng: np.random.Generator
) -> Selection:
    """Our method: the field fitted and frozen, then SVWS on its weak systems.

    Nothing is drawn from `rng`: the field's training is seeded by the observations, the phases by
    `params.svws.phase_seed`, as in the paper.
    """
    return _frozen_and_selected(observations, library, params)[0]


def freeze_then_compare(
    observations: Observations, library: Library, params: FreezeThenSelectParams, rng: np.random.Generator
) -> Selection:
    """The same, with what every selector of the ablation says of the same systems in `variants`."""
    chosen, ready = _frozen_and_selected(observations, library, params)
    return replace(chosen, variants=rule.variants(ready.systems, params.svws))


def _frozen_and_selected(
    observations: Observations, library: Library, params: FreezeThenSelectParams
) -> tuple[Selection, Prepared]:
    if params.refit == "weighted":
        fit = fitting.obtain_with_posterior(observations, params.field)
        field, variance = fit.field, fit.variance
    else:
        field, variance = fitting.obtain(observations, params.field), None
    # CPU time: runs beside each other do not change it.
    began = time.process_time()
    systems = build(field, library, params.weak, params.svws)
    ready = Prepared(library, params.weak, params.svws, systems).with_variances(variance)
    chosen = rule.select_from(systems, params.svws, ready.variances)
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    reported = chosen.with_refit("ridge") if params.refit == "ridge" else chosen
    return replace(reported, field=field, seconds=seconds), ready


def prepare(
    field: Field,
    library: str | Sequence[str] | Library,
    params: SVWSParams | None = None,
    weak: WeakParams | None = None,
    *,
    seed: int | None = None,
) -> Prepared:
    """Settings for the field and the library, where none are given, and the systems built with them."""
    remedy = "give a field, as fts.fit(observations) or fts.load_field('ks') return it"
    validation.require_type(Field, field, "field", remedy)
    settings = "leave it out, or give dataclasses.replace(fts.params.paper.PAPER['ks'].{}, ...)"
    validation.require_type((SVWSParams, type(None)), params, "params", settings.format("svws"))
    validation.require_type((WeakParams, type(None)), weak, "weak", settings.format("weak"))
    if seed is not None:
        validation.require_whole(seed, "seed", "leave it out, or give a whole number that draws the phases")
    terms = resolve_library(library)
    terms.check_dimension(field.domain.dimension)
    published = published_settings(*origin(field))
    weak = weak or (published.weak if published else automatic(field, terms))
    rule = params or (published or PAPER["kdv"]).svws
    systems = build(field, terms, weak, rule, seed=seed)
    if params is None and published is None:
        rule = replace(rule, lam0=relative_threshold(systems))
    return Prepared(terms, weak, rule, systems)


def extend(ready: Prepared, field: Field, variance: Field | None, library: Library) -> Prepared:
    """The same for a larger library; on the same patches only the columns of its new terms are assembled."""
    weak = ready.weak
    if published_settings(*origin(field)) is None:
        if power_for(library) != weak.power:
            return prepare(field, library).with_variances(variance)
        weak = refine_nodes(field, missing_terms(library, ready.library), weak)
    if weak != ready.weak:
        return prepare(field, library, weak=weak).with_variances(variance)
    systems = tuple(add_terms(system, field, library, weak) for system in ready.systems)
    return replace(ready, library=library, systems=systems)


def origin(field: Field) -> tuple[str | None, str]:
    """The paper's problem whose observations the field was fitted to, if it was, and the recipe."""
    made = getattr(field, "made", None)
    return (None, "") if made is None else (made.problem if made.problem in PAPER else None, made.recipe)


def problem_of(field: Field) -> str | None:
    """The paper's problem whose observations the field was fitted to, if it was."""
    return origin(field)[0]


def resolve_library(library: str | Sequence[str] | Library) -> Library:
    """The library a user means: a name of the paper's, a list of term texts, or one already made."""
    terms = library if isinstance(library, Library) else _parse(library)
    if U_T in terms:
        raise TermError("u_t is the left-hand side of the equation: leave it out of the library")
    return terms


def _parse(library: str | Sequence[str]) -> Library:
    remedy = "give a name like 'ks', or terms like ['u*u_x', 'u_xx']"
    validation.require_type((str, list, tuple), library, "library", remedy)
    if isinstance(library, str):
        if library not in LIBRARIES:
            known = ", ".join(LIBRARIES)
            raise ValueError(f"unknown library {library!r}: known are {known}; or give a list of terms")
        return Library.parse(LIBRARIES[library])
    return Library.parse(library)
