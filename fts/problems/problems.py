"""Benchmark problems as values: equation, domain, grid, library; the paper's four (A.1, F), eight more.

This is truth: selection code never imports it. `fts.data.simulate` turns a Problem into a Trajectory.
"""

import difflib
import re
from dataclasses import dataclass, replace

import numpy as np

from fts import validation
from fts.domain import Domain
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.params.paper import LARGE_LIBRARIES, LIBRARIES


@dataclass(frozen=True)
class Problem:
    """One benchmark PDE: its truth, its grid and its candidate library."""

    name: str
    title: str
    truth: str  # the equation's text
    domain: Domain
    shape: tuple[int, ...]  # spatial grid points per axis, then frames
    right_closed: bool  # a periodic axis stored as (low, high] instead of [low, high)
    terms: str = ""  # name of its library, where it has none of its own

    @property
    def equation(self) -> Equation:
        """The true equation."""
        return Equation.parse(self.truth)

    @property
    def library(self) -> Library:
        """The shared candidate library."""
        return Library.parse(LARGE_LIBRARIES[self.terms] if self.terms else LIBRARIES[self.name])

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
    table = {entry.name: entry for entry in (*_table(), *_further(), *_noisy(), _burgers())}
    validation.require_type(str, name, "problem", f"give one of {', '.join(map(repr, table))}")
    if name not in table:
        # People write titles too: "kuramoto" is near "Kuramoto-Sivashinsky".
        words = {
            word.lower(): e.name
            for e in reversed(table.values())
            for word in (e.name, *re.split(r"[ -]", e.title))
        }
        near = difflib.get_close_matches(name.lower(), words, n=1, cutoff=0.5)
        hint = f"did you mean {words[near[0]]!r}? " if near else ""
        raise ValueError(f"unknown problem {name!r}: {hint}Known are {', '.join(table)}.")
    return table[name]


def names() -> tuple[str, ...]:
    """The names of the paper's benchmarks, in its order."""
    return tuple(entry.name for entry in _table())


def further_names() -> tuple[str, ...]:
    """The names of the benchmarks that are not in the paper: two terms, no library given."""
    return tuple(entry.name for entry in _further())


def noisy_names() -> tuple[str, ...]:
    """The names of the benchmarks for heavy noise and large libraries."""
    return tuple(entry.name for entry in _noisy())


def _axis(low: float, high: float, n: int, periodic: bool, right_closed: bool) -> np.ndarray:
    if not periodic:
        return np.linspace(low, high, n)
    return low + (high - low) * (np.arange(n) + (1 if right_closed else 0)) / n


def _table() -> tuple[Problem, ...]:
    return (
        Problem(
            name="kdv",
            title="Korteweg-de Vries",
            truth="u_t = -6 u*u_x - u_xxx",
            domain=Domain((-30.0,), (30.0,), 0.0, 20.0, (True,)),
            shape=(512, 201),
            right_closed=False,
        ),
        Problem(
            name="ks",
            title="Kuramoto-Sivashinsky",
            truth="u_t = -u*u_x - u_xx - u_xxxx",
            domain=Domain((0.0,), (32 * np.pi,), 0.0, 100.0, (True,)),
            shape=(1024, 251),
            right_closed=True,
        ),
        Problem(
            name="ad",
            title="2D advection-diffusion",
            truth="u_t = 0.25 u_x + 0.5 u_y + 0.5 u_xx + 0.5 u_yy",
            domain=Domain((-5.0, -5.0), (5.0, 5.0), 0.0, 6.0, (False, False)),
            shape=(51, 51, 61),
            right_closed=False,
        ),
        Problem(
            name="diffusion",
            title="Nonlinear diffusion",
            truth="u_t = 0.1 D_xx(u^1.73)",
            domain=Domain((0.0,), (1.0,), 0.0, 0.3, (True,)),
            shape=(192, 121),
            right_closed=False,
        ),
    )


def _further() -> tuple[Problem, ...]:
    circle = Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
    return (
        Problem(
            name="decay",
            title="Nonlinear diffusion with decay",
            truth="u_t = 0.1 D_xx(u^1.73) - 0.3 u",
            domain=replace(circle, t1=0.5),
            shape=(192, 121),
            right_closed=False,
        ),
        Problem(
            name="fisher",
            title="Fisher reaction",
            truth="u_t = 0.01 u_xx + 3 u - 3 u^2",
            domain=circle,
            shape=(192, 121),
            right_closed=False,
        ),
        Problem(
            name="saturation",
            title="Burgers with a saturating flux",
            truth="u_t = 0.02 u_xx - D_x(u^2 / (1 + u^2))",
            domain=circle,
            shape=(192, 121),
            right_closed=False,
        ),
    )


def _burgers() -> Problem:
    """The shock that methods for scattered samples are measured on; the grid is the one PDE-FIND released."""
    return Problem(
        name="burgers",
        title="Viscous Burgers",
        truth="u_t = -u*u_x + 0.1 u_xx",
        domain=Domain((-8.0,), (8.0,), 0.0, 10.0, (True,)),
        shape=(256, 101),
        right_closed=False,
    )


def _noisy() -> tuple[Problem, ...]:
    """Equations, domains and grids on which WeakIdent was measured; the initial states are our own."""
    every = (
        ("transport", "Transport with diffusion", "u_t = -u_x + 0.05 u_xx", (0.0, 1.0, 0.03), (256, 300)),
        ("heat", "Heat", "u_t = 0.16 u_xx", (-5.0, 5.0, 0.5), (240, 501)),
        (
            "ks sines",
            "Kuramoto-Sivashinsky from sines",
            "u_t = -u*u_x - u_xx - u_xxxx",
            (0.0, 32 * np.pi, 150.0),
            (256, 301),
        ),
        ("tall kdv", "Tall solitons", "u_t = -u*u_x - u_xxx", (-np.pi, np.pi, 0.006), (400, 601)),
    )
    return tuple(
        Problem(name, title, truth, Domain((low,), (high,), 0.0, end, (True,)), shape, False, "powers")
        for name, title, truth, (low, high, end), shape in every
    )
