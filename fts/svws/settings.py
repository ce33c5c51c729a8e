"""Which terms, patches and thresholds a field and a library get; the one place that decides it.

A library's name is only a list of terms. The paper's geometry and threshold belong to fields of the paper's
problems, its quadrature to fields no better than its own; any other field gets patches from its own spectrum
and a threshold relative to ||b||.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fts import asked
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.params import CLOSED_FORM, LIBRARIES, PAPER, REFINED, SVWSParams, WeakParams
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
    asked.refuse_unless(
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
    asked.refuse_unless(texts, library, "library", "give a name like 'ks', or terms like ['u*u_x', 'u_xx']")
    if isinstance(library, str):
        if library not in LIBRARIES:
            raise ValueError(
                f"unknown library {library!r}: known are {', '.join(LIBRARIES)}; or give a list of terms"
            )
        return Library.parse(LIBRARIES[library])
    return Library.parse(library)
