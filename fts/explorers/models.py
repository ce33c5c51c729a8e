"""Frozen fields and the explorers' module as widget models that a notebook holds once.

A page then carries a field's bytes, about 80 KB, and the module's text once for all its explorers.
"""

from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import ipywidgets
import numpy as np
import traitlets

from fts.data.trajectories import Trajectory
from fts.equations.equation import Equation
from fts.equations.expressions import Expression
from fts.equations.grammar import TermError
from fts.equations.terms import Library, Term, split
from fts.explorers import scripts
from fts.explorers.payload import field_bytes, field_key
from fts.fields.frozen import FrozenField
from fts.fields.given import TabulatedField
from fts.observations import Observations
from fts.params import SHORT_NAMES, SVWSParams, WeakParams
from fts.svws import rule
from fts.weak.assembly import WeakSystem
from fts.weak.patches import quadrature


class Code(ipywidgets.Widget):
    """The explorers' module, one per notebook."""

    text = traitlets.Unicode().tag(sync=True)


class Payload(ipywidgets.Widget):
    """Bytes that a page carries once, and what an explorer must know to read them."""

    data = traitlets.Bytes().tag(sync=True)
    info = traitlets.Dict().tag(sync=True)


class Source(Payload):
    """A frozen field's bytes, with the library and settings it is explored with."""

    def __init__(
        self,
        field: FrozenField,
        library: Library,
        geometry: WeakParams,
        params: SVWSParams,
        truth: Equation | None,
    ) -> None:
        self.field, self.library, self.geometry, self.params = field, library, geometry, params
        data = field_bytes(field)
        domain = field.domain
        info = {
            "key": field_key(data),
            "label": field_label(field),
            "dimension": domain.dimension,
            "low": [*domain.low, domain.t0],
            "high": [*domain.high, domain.t1],
            "rank": field.rank,
            "library": [term_values(term) for term in library],
            "weak": geometry_values(geometry),
            "svws": asdict(params),
            "truth": None if truth is None else true_values(truth, library),
            "highest": max(sum(term.alpha) for term in library),
        }
        super().__init__(data=data, info=info)

    def systems(self, params: SVWSParams) -> tuple[WeakSystem, ...]:
        """R_g + 1 + R_v systems of the seed in NumPy, kept while only thresholds change."""
        return _systems(self, params.generation, params.validation, params.phase_seed)


class Reference(ipywidgets.Widget):
    """What an explorer lays beside a field: the true values on its grid, and where the samples lie."""

    data = traitlets.Bytes().tag(sync=True)  # 16-bit integers; u = low + step * integer
    info = traitlets.Dict().tag(sync=True)

    def __init__(self, truth: Trajectory, samples: Observations | None, shape: tuple[int, ...]) -> None:
        domain = truth.domain
        ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), shape, strict=True)
        points = [np.linspace(low, high, n) for low, high, n in ends]
        field = TabulatedField((*truth.axes, truth.t), truth.u, domain)
        u = field.on_grid(*points)
        step = max(float(np.ptp(u)) / 65535, 1e-300)
        levels = np.round((u - u.min()) / step).astype("<u2")
        grid = samples.grid if samples is not None else None
        seen = {} if grid is None else {"sensors": grid.sensors.tolist(), "frames": grid.frames.tolist()}
        super().__init__(data=levels.tobytes(), info={"low": float(u.min()), "step": step, **seen})


@lru_cache(maxsize=1)
def shared_code() -> Code:
    """The one model of the module's text."""
    return Code(text=scripts.module())


def geometry_values(geometry: WeakParams) -> dict[str, Any]:
    """The geometry for the browser, with nodes and weights on [-1, 1] for each axis: it knows no rules."""
    axes = [[part.tolist() for part in quadrature(n, geometry.rule)] for n in geometry.nodes]
    return asdict(geometry) | {"quadrature": axes}


def field_label(field: FrozenField) -> str:
    """What a reader sees of where a field comes from: "KS T20, seed 1301, 10 % noise, kernel"."""
    made = field.made
    if not made.problem:
        return "Frozen field"
    parts = [f"{SHORT_NAMES.get(made.problem, made.problem)} {made.protocol or ''}".strip()]
    parts += [f"seed {made.seed}"] if made.seed is not None else []
    parts += [f"{100 * made.noise:g} % noise"] if made.noise else []
    parts += [made.recipe] if made.recipe not in ("", "paper") else []
    return ", ".join(parts)


def term_values(term: Term) -> dict[str, Any]:
    """A term as JSON: its text, and scale * D_alpha q(u) as numbers."""
    # "2*u_x" is said as 2c u_x: the factor goes into the coefficient, as in Equation.
    factor, body = split(term)
    return {
        "name": str(term),
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


def true_places(truth: Equation, library: Library) -> list[int] | None:
    """Places of the true terms, or None when the library cannot say the truth."""
    values = true_values(truth, library)
    return None if values is None else [j for j, value in enumerate(values) if value]


def true_values(truth: Equation, library: Library) -> list[float] | None:
    """The true coefficients on the library, or None when it cannot say the truth."""
    try:
        return truth.on(library).tolist()
    except TermError:
        return None


@lru_cache(maxsize=32)
def _systems(source: Source, generation: int, validation: int, seed: int) -> tuple[WeakSystem, ...]:
    params = replace(source.params, generation=generation, validation=validation)
    return rule.build(source.field, source.library, source.geometry, params, seed=seed)
