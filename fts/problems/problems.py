"""Benchmark problems: each one entry of equation, domain, grid, initial state and reference solver (A.1, F).

The equation's text is its only statement: `solve` integrates what it says. The paper's four come first, then
three with two terms, four on which WeakIdent was measured, and a shock. A new problem is a new entry.
This is truth: selection code never imports it. `fts.simulate` turns a Problem into a Trajectory.
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array

from fts import validation
from fts.domain import Domain
from fts.equations.algebra import scale
from fts.equations.equation import Equation
from fts.equations.integration import evolve_by_lines, evolve_linear, march, semilinear, stepper
from fts.equations.terms import Library
from fts.params.paper import LARGE_LIBRARIES, LIBRARIES

Group = Literal["paper", "further", "noisy", "shock"]
State = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class Problem:
    """One benchmark PDE: its truth, its grid, its candidate library and how its reference is computed."""

    name: str
    title: str
    truth: str  # the equation's text
    domain: Domain
    shape: tuple[int, ...]  # spatial grid points per axis, then frames
    right_closed: bool = False  # a periodic axis stored as (low, high] instead of [low, high)
    terms: str | tuple[str, ...] = ()  # its library, or the name of one; else that of its own name
    group: Group | None = None  # of the benchmarks
    initial: Callable[[State], State] | None = None  # the state at t0 along the axis x
    solver: Callable[["Problem"], State] | None = None

    @property
    def equation(self) -> Equation:
        """The true equation."""
        return Equation.parse(self.truth)

    @property
    def library(self) -> Library:
        """The shared candidate library."""
        terms = self.terms or self.name
        return Library.parse(terms if isinstance(terms, tuple) else (LARGE_LIBRARIES | LIBRARIES)[terms])

    @property
    def axes(self) -> tuple[np.ndarray, ...]:
        """Spatial grid coordinates, one array per axis."""
        ends = zip(self.domain.low, self.domain.high, self.shape[:-1], self.domain.periodic, strict=True)
        first = 1 if self.right_closed else 0
        return tuple(
            low + (high - low) * (np.arange(n) + first) / n if periodic else np.linspace(low, high, n)
            for low, high, n, periodic in ends
        )

    @property
    def frames(self) -> np.ndarray:
        """The stored times."""
        return np.linspace(self.domain.t0, self.domain.t1, self.shape[-1])

    @property
    def start(self) -> State:
        """The state at t0 on the grid of its one axis."""
        if self.initial is None:
            raise ValueError(f"{self.name!r} has no initial state: give Problem(..., initial=f) with f(x)")
        return self.initial(self.axes[0])


def problem(name: str) -> Problem:
    """The benchmark called `name`; a misspelt name is answered with the nearest one."""
    table = {entry.name: entry for entry in _benchmarks()}
    validation.require_type(str, name, "problem", f"give one of {', '.join(map(repr, table))}")
    if name not in table:
        # People write titles too: "kuramoto" is near "Kuramoto-Sivashinsky".
        titles = {e.name: (e.name, *re.split(r"[ -]", e.title)) for e in reversed(table.values())}
        words = {word.lower(): known for known, parts in titles.items() for word in parts}
        near = difflib.get_close_matches(name.lower(), words, n=1, cutoff=0.5)
        hint = f"did you mean {words[near[0]]!r}? " if near else ""
        raise ValueError(f"unknown problem {name!r}: {hint}Known are {', '.join(table)}.")
    return table[name]


def names(group: Group = "paper") -> tuple[str, ...]:
    """The names of a group of benchmarks, in its order."""
    return tuple(entry.name for entry in _benchmarks() if entry.group == group)


def solve(entry: Problem) -> State:
    """u on the problem's grid, shaped (nx, [ny], nt): float64, deterministic, a few seconds at most."""
    if entry.solver is None:
        raise ValueError(f"no reference solver for {entry.name!r}: give Problem(..., solver=f)")
    return entry.solver(entry)


def spectral(
    entry: Problem, step: float, linear: Callable[[np.ndarray], np.ndarray] | None = None
) -> Float[np.ndarray, "nx nt"]:
    """Exponential time differencing at steps that agree with the released trajectories.

    KS to 3e-12, KdV to the released integrator's own error. `linear` replaces the equation's own multiplier.
    """
    u, length, t = entry.start, entry.domain.extents[0], entry.frames
    multiplier, rate = semilinear(entry.equation, u.size, length, highest=u.size)
    if linear is not None:
        multiplier = linear(2 * np.pi / length * np.arange(multiplier.size))
    return march(stepper(multiplier, step), rate, u, t.size, round((t[1] - t[0]) / step))


def exact(entry: Problem) -> Float[np.ndarray, "nx nt"]:
    """A linear equation on a circle."""
    return evolve_linear(entry.equation, entry.start, entry.domain.extents[0], entry.frames)


def by_lines(entry: Problem) -> Float[np.ndarray, "nx nt"]:
    """Fourier differentiation in x, BDF in time."""
    equation, u = entry.equation, entry.start
    parts = [
        (c * term.scale * _fourier_matrix(u.size, term.order), term.q)
        for term, c in zip(equation.terms, equation.coefficients, strict=True)
    ]
    return evolve_by_lines(parts, u, entry.frames, rtol=1e-9, atol=1e-11)


def _fourier_matrix(n: int, order: int) -> np.ndarray:
    """Differentiation of the given order on n points of [0, 1)."""
    k = 2j * np.pi * np.fft.fftfreq(n, 1 / n)
    if order % 2:
        k[n // 2] = 0.0  # an odd derivative of the Nyquist mode has no meaning on the grid
    return np.fft.ifft(k[:, None] ** order * np.fft.fft(np.eye(n), axis=0), axis=0).real


def by_differences(entry: Problem) -> Float[np.ndarray, "nx nt"]:
    """u_t = D_xx q(u) by second-order periodic differences in space and BDF in time, as in the paper (F)."""
    (term,), (coefficient,), u = entry.equation.terms, entry.equation.coefficients, entry.start
    n, shift = u.size, np.roll(np.eye(u.size), 1, axis=1)
    laplacian = csr_array((shift - 2 * np.eye(n) + shift.T) / (1 / n) ** 2)
    parts = [(laplacian, scale(term.q, float(coefficient) * term.scale))]
    return evolve_by_lines(parts, u, entry.frames, rtol=2e-7, atol=1e-9)


def _advected_gaussian(entry: Problem) -> Float[np.ndarray, "nx ny nt"]:
    """u = 10/(s + 1/2) exp(-((x + s/4)^2 + (y + s/2)^2) / (2 s + 1)) with s = t + 3, as the paper has it."""
    (x, y), s = entry.axes, entry.frames + 3
    x, y, s = x[:, None, None], y[None, :, None], s[None, None, :]
    return 10 / (s + 0.5) * np.exp(-((x + s / 4) ** 2 + (y + s / 2) ** 2) / (2 * (s + 0.5)))


def _three_waves(mean: float, amplitude: float, x: np.ndarray) -> np.ndarray:
    """A positive state for the problems on [0, 1)."""
    first, second = 0.30 * np.sin(2 * np.pi * x), 0.14 * np.cos(4 * np.pi * x - 0.35)
    return mean + amplitude * (first + second + 0.07 * np.sin(6 * np.pi * x + 0.60))


def _benchmarks() -> tuple[Problem, ...]:
    circle = Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
    saturating = "u_t = 0.02 u_xx - D_x(u^2 / (1 + u^2))"
    further = (
        ("decay", "Nonlinear diffusion with decay", "u_t = 0.1 D_xx(u^1.73) - 0.3 u", 0.5, 0.75, 1.0),
        ("fisher", "Fisher reaction", "u_t = 0.01 u_xx + 3 u - 3 u^2", 1.0, 0.5, 1.0),
        ("saturation", "Burgers with a saturating flux", saturating, 1.0, 1.1, 2.0),
    )
    noisy = partial(Problem, terms="powers", group="noisy")
    return (
        Problem(
            "kdv",
            "Korteweg-de Vries",
            "u_t = -6 u*u_x - u_xxx",
            Domain((-30.0,), (30.0,), 0.0, 20.0, (True,)),
            (512, 201),
            group="paper",
            # Two solitons, u = c/2 sech^2(sqrt(c)/2 (x - x0)), with speeds c = 1 and 1/2.
            initial=lambda x: (
                0.5 / np.cosh(0.5 * (x + 20)) ** 2 + 0.25 / np.cosh(0.5 * np.sqrt(0.5) * (x - 5)) ** 2
            ),
            # i k^3 rounds otherwise than the equation's -(i k)^3, and every record rests on these bits.
            solver=partial(spectral, step=0.01, linear=lambda k: 1j * np.r_[k[:-1], 0.0] ** 3),
        ),
        Problem(
            "ks",
            "Kuramoto-Sivashinsky",
            "u_t = -u*u_x - u_xx - u_xxxx",
            Domain((0.0,), (32 * np.pi,), 0.0, 100.0, (True,)),
            (1024, 251),
            right_closed=True,
            group="paper",
            initial=lambda x: np.cos(x / 16) * (1 + np.sin(x / 16)),
            solver=partial(spectral, step=0.025),
        ),
        Problem(
            "ad",
            "2D advection-diffusion",
            "u_t = 0.25 u_x + 0.5 u_y + 0.5 u_xx + 0.5 u_yy",
            Domain((-5.0, -5.0), (5.0, 5.0), 0.0, 6.0, (False, False)),
            (51, 51, 61),
            group="paper",
            solver=_advected_gaussian,
        ),
        Problem(
            "diffusion",
            "Nonlinear diffusion",
            "u_t = 0.1 D_xx(u^1.73)",
            replace(circle, t1=0.3),
            (192, 121),
            group="paper",
            initial=partial(_three_waves, 0.75, 1.0),
            solver=by_differences,
        ),
        *(
            Problem(
                name,
                title,
                truth,
                replace(circle, t1=duration),
                (192, 121),
                group="further",
                initial=partial(_three_waves, mean, amplitude),
                solver=by_lines,
            )
            for name, title, truth, duration, mean, amplitude in further
        ),
        # Equations, domains and grids on which WeakIdent was measured; the initial states are our own.
        noisy(
            "transport",
            "Transport with diffusion",
            "u_t = -u_x + 0.05 u_xx",
            replace(circle, t1=0.03),
            (256, 300),
            initial=lambda x: (
                0.5 * np.sin(6 * np.pi * x) + 0.3 * np.cos(12 * np.pi * x + 1) + 0.2 * np.sin(20 * np.pi * x)
            ),
            solver=exact,
        ),
        noisy(
            "heat",
            "Heat",
            "u_t = 0.16 u_xx",
            Domain((-5.0,), (5.0,), 0.0, 0.5, (True,)),
            (240, 501),
            initial=lambda x: (
                np.sin(3 * (2 * np.pi * x / 10))
                + 0.8 * np.cos(7 * (2 * np.pi * x / 10) + 0.5)
                + 0.5 * np.sin(12 * (2 * np.pi * x / 10))
            ),
            solver=exact,
        ),
        noisy(
            "ks sines",
            "Kuramoto-Sivashinsky from sines",
            "u_t = -u*u_x - u_xx - u_xxxx",
            Domain((0.0,), (32 * np.pi,), 0.0, 150.0, (True,)),
            (256, 301),
            initial=lambda x: np.sin(x / 16) + 0.5 * np.cos(x / 8) + 0.3 * np.sin(5 * x / 16),
            solver=partial(spectral, step=0.025),
        ),
        noisy(
            "tall kdv",
            "Tall solitons",
            "u_t = -u*u_x - u_xxx",
            Domain((-np.pi,), (np.pi,), 0.0, 0.006, (True,)),
            (400, 601),
            # Two solitons, u = 3 c sech^2(sqrt(c)/2 (x - x0)), with speeds c = 625 and 256.
            initial=lambda x: 1875 / np.cosh(12.5 * (x + 2)) ** 2 + 768 / np.cosh(8 * (x + 1)) ** 2,
            solver=partial(spectral, step=1e-6),
        ),
        # The shock that methods for scattered samples are measured on; the grid is the one PDE-FIND released.
        Problem(
            "burgers",
            "Viscous Burgers",
            "u_t = -u*u_x + 0.1 u_xx",
            Domain((-8.0,), (8.0,), 0.0, 10.0, (True,)),
            (256, 101),
            group="shock",
            initial=lambda x: np.exp(-((x + 2) ** 2)),
            solver=partial(spectral, step=0.01),
        ),
    )
