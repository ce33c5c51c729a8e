"""The four benchmark problems of the paper as values: equation, domain, grid, library (Supplement A.1, F).

This is truth: selection code never imports it. `fts.data.simulate` turns a Problem into a Trajectory.
"""

import difflib
from dataclasses import dataclass

import numpy as np

from fts.domain import Domain
from fts.terms import Equation, Library

_LIBRARY_1D = ("1", "u", "u^2", "u^3", "u*u_x", "u_xx", "u_xxx", "u_xxxx")
_LIBRARY_2D = ("1", "u", "u^2", "u_x", "u_y", "u_xx", "u_yy")


@dataclass(frozen=True)
class Problem:
    """One benchmark PDE: its truth, its grid and its candidate library."""

    name: str
    title: str
    truth: tuple[tuple[str, float], ...]  # (term, coefficient) pairs of the right-hand side
    domain: Domain
    shape: tuple[int, ...]  # spatial grid points per axis, then frames
    right_closed: bool  # a periodic axis stored as (low, high] instead of [low, high)
    library_terms: tuple[str, ...]

    @property
    def equation(self) -> Equation:
        """The true equation."""
        names, coefficients = zip(*self.truth, strict=True)
        return Equation(Library.parse(names).terms, np.array(coefficients))

    @property
    def library(self) -> Library:
        """The shared candidate library."""
        return Library.parse(self.library_terms)

    @property
    def axes(self) -> tuple[np.ndarray, ...]:
        """Spatial grid coordinates, one array per axis."""
        domain = self.domain
        return tuple(
            _axis(low, high, n, periodic, self.right_closed)
            for low, high, n, periodic in zip(
                domain.low, domain.high, self.shape[:-1], domain.periodic, strict=True
            )
        )

    @property
    def frames(self) -> np.ndarray:
        """The stored times."""
        return np.linspace(self.domain.t0, self.domain.t1, self.shape[-1])


def problem(name: str) -> Problem:
    """The benchmark called `name`; a misspelt name is answered with the nearest one."""
    table = {entry.name: entry for entry in _table()}
    if name not in table:
        near = difflib.get_close_matches(name.lower(), table, n=1, cutoff=0.3)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown problem {name!r}: {hint}known are {', '.join(table)}")
    return table[name]


def names() -> tuple[str, ...]:
    """All benchmark names, in the paper's order."""
    return tuple(entry.name for entry in _table())


def _axis(low: float, high: float, n: int, periodic: bool, right_closed: bool) -> np.ndarray:
    if not periodic:
        return np.linspace(low, high, n)
    return low + (high - low) * (np.arange(n) + (1 if right_closed else 0)) / n


def _table() -> tuple[Problem, ...]:
    return (
        Problem(
            name="kdv",
            title="Korteweg-de Vries",
            truth=(("u*u_x", -6.0), ("u_xxx", -1.0)),
            domain=Domain((-30.0,), (30.0,), 0.0, 20.0, (True,)),
            shape=(512, 201),
            right_closed=False,
            library_terms=_LIBRARY_1D,
        ),
        Problem(
            name="ks",
            title="Kuramoto-Sivashinsky",
            truth=(("u*u_x", -1.0), ("u_xx", -1.0), ("u_xxxx", -1.0)),
            domain=Domain((0.0,), (32 * np.pi,), 0.0, 100.0, (True,)),
            shape=(1024, 251),
            right_closed=True,
            library_terms=_LIBRARY_1D,
        ),
        Problem(
            name="ad",
            title="2D advection-diffusion",
            truth=(("u_x", 0.25), ("u_y", 0.5), ("u_xx", 0.5), ("u_yy", 0.5)),
            domain=Domain((-5.0, -5.0), (5.0, 5.0), 0.0, 6.0, (False, False)),
            shape=(51, 51, 61),
            right_closed=False,
            library_terms=_LIBRARY_2D,
        ),
        Problem(
            name="diffusion",
            title="Nonlinear diffusion",
            truth=(("D_xx(u^1.73)", 0.1),),
            domain=Domain((0.0,), (1.0,), 0.0, 0.3, (True,)),
            shape=(192, 121),
            right_closed=False,
            # The symbolic chapter searches beyond any library; this one serves the fixed-library baselines.
            library_terms=("1", "u", "u^2", "u_x", "u_xx", "D_xx(u^2)", "D_xx(u^3)"),
        ),
    )
