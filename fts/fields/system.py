"""Several fields on one domain: the components of a system and its measured inputs, by name.

`values_on_grid` is what weak systems integrate: components, their derivatives and the coordinates, as arrays
that broadcast against each other. A scalar field is the component u of a system of one.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fts.domain import Domain
from fts.equations.expressions import unknown_axis
from fts.equations.grammar import COORDINATES, check_states
from fts.fields.frozen import Field
from fts.fields.varying import OneCoordinate
from fts.validation import require_type


@dataclass(frozen=True)
class FieldSystem:
    """Components and inputs on the same domain, and what stands for functions such as c(z) in terms."""

    fields: Mapping[str, Field]
    functions: Mapping[str, OneCoordinate] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        require_type(Mapping, self.fields, "fields", "give {'u': field, 'v': another}")
        if not self.fields:
            raise ValueError("no fields: give at least one, by the name of its component")
        check_states(tuple(self.fields))
        for name, field in self.fields.items():
            require_type(Field, field, f"field {name!r}", "give what fts.fit returns")
        require_shared({name: field.domain for name, field in self.fields.items()})

    @property
    def domain(self) -> Domain:
        """The box all of them live on."""
        return next(iter(self.fields.values())).domain

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the components and inputs."""
        return tuple(self.fields)


def require_shared(domains: Mapping[str, Domain]) -> None:
    """Refuse components that live on different domains."""
    first = next(iter(domains.values()))
    for name, domain in domains.items():
        if domain != first:
            raise ValueError(
                f"{name} lives on {domain.as_text()}, others on {first.as_text()}: fit all components on one "
                "domain, domain= says which"
            )


Fields = Field | FieldSystem


def components(field: Fields) -> Mapping[str, Field]:
    """The fields by name; one by itself is u."""
    return field.fields if isinstance(field, FieldSystem) else {"u": field}


def functions(field: Fields) -> Mapping[str, OneCoordinate]:
    """The functions of one coordinate by their text."""
    return field.functions if isinstance(field, FieldSystem) else {}


def check_known(field: Fields, states: Iterable[str], unknown: Iterable[str] = ()) -> None:
    """Refuse terms in components that there are no fields of, and in functions that are not known."""
    free = sorted(set(unknown) - {"", *functions(field)})
    if free:
        raise ValueError(
            f"{', '.join(free)} in the library is an unknown function: take fts.discover, which finds it, or "
            "write what it is, as (1 + x^2)*u_x"
        )
    missing = sorted(set(states) - set(components(field)))
    if missing:
        raise ValueError(
            f"the library needs {', '.join(missing)}, the fields are {', '.join(components(field))}: measure "
            "it, give it as an input, or drop its terms"
        )


def values_on_grid(
    field: Fields, symbols: Iterable[str], nodes: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Values of every symbol on the grid of the nodes: fields in full, coordinates along their axis."""
    letters = (*COORDINATES[: len(nodes) - 1], "t")
    axes: dict[str, int] = dict(zip(letters, range(len(nodes)), strict=True))
    values, shape = {}, tuple(len(axis) for axis in nodes)
    for symbol in sorted(symbols):
        if symbol in axes:
            index = [1] * len(nodes)
            index[axes[symbol]] = -1
            values[symbol] = np.asarray(nodes[axes[symbol]], dtype=np.float64).reshape(index)
            continue
        if letter := unknown_axis(symbol):
            order, index = symbol.count("'"), [1] * len(nodes)
            index[axes[letter]] = -1
            function = functions(field)[symbol.replace("'", "")]
            values[symbol] = np.ascontiguousarray(function(nodes[axes[letter]], order)).reshape(index)
            continue
        name, _, letters = symbol.partition("_")
        array = np.ascontiguousarray(_on_grid(field, name, letters, nodes), dtype=np.float64)
        if array.shape != shape:
            raise ValueError(f"the field has shape {array.shape} on a grid of {list(shape)} points")
        values[symbol] = array
    return values


def _on_grid(field: Fields, name: str, letters: str, nodes: Sequence[np.ndarray]) -> np.ndarray:
    component = components(field)[name]
    if not letters:
        return component.on_grid(*nodes)
    alpha = tuple(letters.count(letter) for letter in COORDINATES[: len(nodes) - 1])
    evaluate: Any = component.on_grid  # frozen and drawn fields give derivatives, others do not
    try:
        return evaluate(*nodes, alpha=alpha, order=letters.count("t"))
    except TypeError:
        raise ValueError(
            f"a term needs {name}_{letters} of the field itself, which a {type(component).__name__} does not "
            "give: take a field that fts.fit returns"
        ) from None
