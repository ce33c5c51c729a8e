"""Frozen fields and the explorers' module as widget models that a notebook holds once.

A page then carries a field's bytes, about 80 KB, and the module's text once for all its explorers.
"""

import hashlib
import re
import tempfile
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np
import traitlets

from fts import scripts, svws
from fts.expressions import Expression
from fts.frozen import FrozenField
from fts.params import SVWSParams, WeakParams
from fts.terms import Equation, Library, Term, TermError
from fts.weak import WeakSystem, quadrature

# How a reader calls the benchmarks.
_SHORT = {"kdv": "KdV", "ks": "KS", "ad": "2D AD", "diffusion": "Diffusion"}


class Code(ipywidgets.Widget):
    """The explorers' module, one per notebook."""

    text = traitlets.Unicode().tag(sync=True)


class Source(ipywidgets.Widget):
    """A frozen field's bytes, with the library and settings it is explored with."""

    data = traitlets.Bytes().tag(sync=True)
    info = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        field: FrozenField,
        library: Library,
        geometry: WeakParams,
        params: SVWSParams,
        truth: Equation | None = None,
        label: str = "",
    ) -> None:
        self.field, self.library, self.geometry, self.params, self.truth = (
            field,
            library,
            geometry,
            params,
            truth,
        )
        data = field_bytes(field)
        domain = field.domain
        info = {
            "key": field_key(data),
            "label": label or field_label(field),
            "dimension": domain.dimension,
            "low": [*domain.low, domain.t0],
            "high": [*domain.high, domain.t1],
            "rank": field.rank,
            "library": [term_values(term) for term in library],
            "weak": geometry_values(geometry),
            "svws": asdict(params),
            "truth": None if truth is None else _true_places(truth, library),
        }
        super().__init__(data=data, info=info)

    def systems(self, params: SVWSParams) -> tuple[WeakSystem, ...]:
        """R_g + 1 + R_v systems of the seed in NumPy, kept while only thresholds change."""
        return _systems(self, params.generation, params.validation, params.phase_seed)


@lru_cache(maxsize=1)
def shared_code() -> Code:
    """The one model of the module's text."""
    return Code(text=scripts.module())


def geometry_values(geometry: WeakParams) -> dict[str, Any]:
    """The geometry for the browser, with nodes and weights on [-1, 1] for each axis: it knows no rules."""
    axes = [[part.tolist() for part in quadrature(n, geometry.rule)] for n in geometry.nodes]
    return asdict(geometry) | {"quadrature": axes}


def field_bytes(field: FrozenField) -> bytes:
    """The field's file, as it would be on disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.fts"
        field.save(path)
        return path.read_bytes()


def field_key(data: bytes) -> str:
    """Sixteen hex digits that name a field by its content."""
    return hashlib.sha256(data).hexdigest()[:16]


def field_label(field: FrozenField) -> str:
    """What a reader sees of where a field comes from: "KS T20, seed 1301, 10 % noise, kernel"."""
    made = field.made
    if not made.get("problem"):
        return "Frozen field"
    parts = [f"{_SHORT.get(made['problem'], made['problem'])} {made.get('protocol') or ''}".strip()]
    parts += [f"seed {made['seed']}"] if made.get("seed") is not None else []
    parts += [f"{100 * made['noise']:g} % noise"] if made.get("noise") else []
    parts += [made["recipe"]] if made.get("recipe", "paper") != "paper" else []
    return ", ".join(parts)


def term_values(term: Term) -> dict[str, Any]:
    """A term as JSON: its text, and scale * D_alpha q(u) as numbers."""
    name = str(term)
    # "2*u_x" is said as 2c u_x: the factor goes into the coefficient, as in fts.terms.Equation.
    found = re.fullmatch(r"(-?[\d.]+(?:e-?\d+)?)(?:\*(.*))?", name)
    factor, body = (float(found[1]), found[2] or "1") if found else (1.0, name)
    if body.startswith("-"):
        factor, body = -factor, body[1:]
    return {
        "name": name,
        "factor": factor,
        "body": body,
        "alpha": list(term.alpha),
        "scale": term.scale,
        "q": _expression_values(term.q),
    }


def _expression_values(q: Expression) -> list[Any]:
    return [
        [
            [[factor.name, _expression_values(factor.argument), exponent] for factor, exponent in factors],
            coefficient,
        ]
        for factors, coefficient in q.monomials
    ]


def _true_places(truth: Equation, library: Library) -> list[int] | None:
    """Places of the true terms, or None when the library cannot say the truth."""
    try:
        return [int(j) for j in np.flatnonzero(truth.on(library))]
    except TermError:
        return None


@lru_cache(maxsize=32)
def _systems(source: Source, generation: int, validation: int, seed: int) -> tuple[WeakSystem, ...]:
    params = replace(source.params, generation=generation, validation=validation)
    return svws.build(source.field, source.library, source.geometry, params, seed=seed)
