"""fts.explore: an explorer on the reader's own frozen field, or on one that ships with the book."""

from collections.abc import Sequence
from typing import Any

from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.explorers.explorer import Explorer, Source, field_key
from fts.explorers.widgets import (
    AdapterExplorer,
    PatchExplorer,
    PathExplorer,
    ProposalsExplorer,
    SelectionExplorer,
)
from fts.fields.frozen import FrozenField
from fts.observations import Observations
from fts.problems.problems import problem
from fts.problems.trajectories import Trajectory
from fts.svws.select import prepare, problem_of, resolve_library

_VIEWS: dict[str, type[Explorer]] = {
    "selection": SelectionExplorer,
    "patches": PatchExplorer,
    "path": PathExplorer,
    "proposals": ProposalsExplorer,
    "adapter": AdapterExplorer,
}

# Explorers of one notebook share the models of their fields; a model lives as long as the kernel anyway.
_sources: dict[tuple[str, Library, str | None], Source] = {}


def explore(
    field: FrozenField | Sequence[FrozenField],
    library: str | Sequence[str] | Library | None = None,
    view: str = "selection",
    *,
    truth: str | Equation | None = None,
    samples: Observations | Sequence[Observations | None] | None = None,
    reference: Trajectory | Sequence[Trajectory | None] | None = None,
    **values: Any,
) -> Explorer:
    """An explorer of one field, or of several to choose from, at the paper's values or at `values`.

    `view` is "selection", "patches", "path", "proposals" or "adapter". `library` and `truth`, an equation's
    text, may stay out for fields of the benchmarks. The adapter view lays a `reference`, the true trajectory,
    and the `samples` of each field beside it. Truths are only displayed: nothing computed sees them.
    """
    if view not in _VIEWS:
        raise ValueError(f"unknown view {view!r}: there are {', '.join(_VIEWS)}")
    fields = [field] if isinstance(field, FrozenField) else list(field)
    for one in fields:
        if not isinstance(one, FrozenField):
            raise ValueError(
                f"{type(one).__name__} cannot be sent to a browser: explore a FrozenField, as fts.fit returns"
            )
    text = str(truth) if isinstance(truth, Equation) else truth
    made = _VIEWS[view]([_source(one, library, text) for one in fields], **values)
    if reference is None and samples is None:
        return made
    if not isinstance(made, AdapterExplorer):
        raise ValueError(f"view {view!r} shows neither reference nor samples: leave them out")
    return made.lay_beside(_per_field(reference, len(fields)), _per_field(samples, len(fields)))


def _per_field(given: Any, count: int) -> list[Any]:
    if given is None:
        return [None] * count
    return list(given) if isinstance(given, list | tuple) else [given]


def _source(field: FrozenField, library: str | Sequence[str] | Library | None, truth: str | None) -> Source:
    name = problem_of(field)
    wanted = name if library is None else library
    if wanted is None:
        raise ValueError('this field names no benchmark: give its library, e.g. ["u", "u*u_x", "u_xx"]')
    terms = resolve_library(wanted)
    key = (field_key(field.packed()), terms, truth)
    if key not in _sources:
        ready = prepare(field, terms)
        true = _truth(name, truth)
        _sources[key] = Source(field, terms, ready.weak, ready.params, true, ready.systems)
    return _sources[key]


def _truth(name: str | None, text: str | None) -> Equation | None:
    if text is not None:
        return Equation.parse(text)
    return problem(name).equation if name is not None else None
