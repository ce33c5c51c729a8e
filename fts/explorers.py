"""fts.explore: an explorer on the reader's own frozen field, or on one that ships with the book."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fts import svws
from fts.frozen import FrozenField
from fts.params import PAPER, SVWSParams, WeakParams
from fts.problems import names, problem
from fts.sources import Source, field_bytes, field_key
from fts.terms import Equation, Library
from fts.widgets import AdapterExplorer, Explorer, PatchExplorer, PathExplorer, SelectionExplorer

_VIEWS: dict[str, type[Explorer]] = {
    "selection": SelectionExplorer,
    "patches": PatchExplorer,
    "path": PathExplorer,
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
    **values: Any,
) -> Explorer:
    """An explorer of one field, or of several to choose from, at the paper's values or at `values`.

    `view` is "selection", "patches", "path" or "adapter". `library` and `truth`, an equation's text, may stay
    out for fields of the benchmarks. The truth is only displayed beside the result: nothing computed sees it.
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
    return _VIEWS[view]([_source(one, library, text) for one in fields], **values)


def _source(field: FrozenField, library: str | Sequence[str] | Library | None, truth: str | None) -> Source:
    name = field.made.get("problem")
    if library is None and name not in PAPER:
        raise ValueError('this field names no benchmark: give its library, e.g. ["u", "u*u_x", "u_xx"]')
    terms = svws.resolve_library(str(name) if library is None else library)
    terms.check_dimension(field.domain.dimension)
    key = (field_key(field_bytes(field)), terms, truth)
    if key not in _sources:
        geometry, params = _settings(field, terms)
        _sources[key] = Source(field, terms, geometry, params, _truth(field, truth))
    return _sources[key]


def _truth(field: FrozenField, text: str | None) -> Equation | None:
    name = field.made.get("problem")
    if text is not None:
        return Equation.parse(text)
    return problem(name).equation if name in names() else None


def _settings(field: FrozenField, terms: Library) -> tuple[WeakParams, SVWSParams]:
    """The paper's for a benchmark; otherwise what fts.select takes for a field it does not know."""
    settings = PAPER.get(field.made.get("problem") or "")
    if settings:
        return settings.weak, settings.svws
    geometry, rule = svws.automatic(field, terms), PAPER["kdv"].svws
    systems = svws.build(field, terms, geometry, rule)
    return geometry, replace(rule, lam0=svws.relative_threshold(systems))
