"""Problems on which the settings of two fields were chosen: none is a benchmark, none is in a table.

Their equations, states and grids differ from those of `fts.problems.problems`, so what works here was not
fitted to what is reported there. This is truth: selection code never imports it.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.domain import Domain
from fts.equations.integration import evolve
from fts.equations.terms import Library
from fts.params.paper import LIBRARIES
from fts.problems.problems import Problem
from fts.problems.trajectories import Trajectory

# Steps of the integrator between two frames, and times a chaotic state is carried before the record begins.
_STEPS, _SETTLING = 10, 80.0

# Kuramoto-Sivashinsky equations with other coefficients, lengths and grids: their waves are sampled well and
# badly, by many sensors and by few, which is where false terms were seen.
_WAVY: tuple[tuple[str, str, str, float, float, tuple[int, int]], ...] = (
    ("slow ks", "Slow", "u_t = -0.8 u*u_x - 0.9 u_xx - 1.2 u_xxxx", 64.0, 100.0, (240, 281)),
    ("fast ks", "Fast", "u_t = -1.5 u*u_x - 1.3 u_xx - u_xxxx", 60.0, 60.0, (240, 281)),
    ("long ks", "Long", "u_t = -u*u_x - 1.1 u_xx - 0.9 u_xxxx", 90.0, 60.0, (360, 301)),
    ("calm ks", "Calm", "u_t = -0.7 u*u_x - u_xx - 1.4 u_xxxx", 75.0, 90.0, (300, 361)),
    ("dispersed ks", "Dispersed", "u_t = -u*u_x - 0.8 u_xx + 0.5 u_xxx - 0.7 u_xxxx", 55.0, 70.0, (220, 301)),
    ("coarse ks", "Coarse", "u_t = -0.9 u*u_x - 1.2 u_xx - 1.1 u_xxxx", 95.0, 120.0, (240, 281)),
    ("steep ks", "Steep", "u_t = -1.3 u*u_x - 0.7 u_xx - 0.5 u_xxxx", 75.0, 130.0, (220, 261)),
    ("wide ks", "Wide", "u_t = -0.3 u_x - 0.6 u*u_x - u_xx - 1.5 u_xxxx", 110.0, 200.0, (220, 281)),
    ("mild ks", "Mild", "u_t = -1.2 u*u_x - 0.9 u_xx - 1.1 u_xxxx", 100.0, 160.0, (240, 261)),
    ("dense ks", "Dense", "u_t = -1.1 u*u_x - 0.9 u_xx - 0.8 u_xxxx", 90.0, 100.0, (800, 251)),
    ("fine ks", "Fine", "u_t = -0.8 u*u_x - 1.1 u_xx - 1.2 u_xxxx", 105.0, 100.0, (900, 251)),
    ("broad ks", "Broad", "u_t = -1.2 u*u_x - 0.8 u_xx - 0.9 u_xxxx", 95.0, 120.0, (800, 251)),
)


@dataclass(frozen=True)
class StartingState:
    """A problem and the state it starts from: a mean and waves of the given amplitudes."""

    problem: Problem
    mean: float
    waves: tuple[float, ...]  # amplitude of wavenumber 1, 2, ...; phases are drawn from the title
    settled: bool = False  # the record begins on the attractor


def development_names() -> tuple[str, ...]:
    """The names of the development problems; the plane is the last."""
    return (*(entry.problem.name for entry in _lines()), "plane")


def wavy_names() -> tuple[str, ...]:
    """The names of the variants of the Kuramoto-Sivashinsky equation among them."""
    return tuple(name for name, *_ in _WAVY)


def development(name: str) -> tuple[Problem, Trajectory]:
    """The problem called `name` and its reference trajectory."""
    if name == "plane":
        entry = _plane()
        return entry, _record(entry, _drifting_blobs(entry))
    table = {entry.problem.name: entry for entry in _lines()}
    if name not in table:
        raise ValueError(f"unknown development problem {name!r}: known are {', '.join(development_names())}")
    entry = table[name]
    return entry.problem, _record(entry.problem, _carried(entry))


def offered(entry: Problem) -> Library:
    """43 terms on a line; on the plane, whose small library is the harder case, the paper's seven."""
    return entry.library if entry.terms else Library.parse(LIBRARIES["ad"])


def _record(entry: Problem, u: Float[np.ndarray, "..."]) -> Trajectory:
    return Trajectory(entry.axes, entry.frames, u, entry.domain, entry.name, "generated")


def _carried(entry: StartingState) -> Float[np.ndarray, "nx nt"]:
    (x,), length = entry.problem.axes, entry.problem.domain.extents[0]
    rng = np.random.default_rng(list(entry.problem.title.encode()))
    phases = rng.uniform(0, 2 * np.pi, len(entry.waves))
    k = np.arange(1, len(entry.waves) + 1)
    u = entry.mean + np.sin(2 * np.pi / length * np.outer(x, k) + phases) @ np.array(entry.waves)
    equation, frames = entry.problem.equation, entry.problem.shape[-1]
    duration = entry.problem.domain.t1
    if entry.settled:
        step = duration / (frames - 1)
        u = evolve(equation, u, length, 1 + round(_SETTLING / step), _SETTLING, _STEPS)[:, -1]
    return evolve(equation, u, length, frames, duration, _STEPS)


def _lines() -> tuple[StartingState, ...]:
    """Equations on a circle: name, title, truth, length, duration, mean and waves."""
    circle = 2 * np.pi
    soft, rough = (0.7, 0.5, 0.3, 0.2), (0.6, -0.5, 0.4, 0.4, -0.3, 0.3)
    every = (
        ("burgers", "Viscous Burgers", "u_t = -u*u_x + 0.1 u_xx", circle, 2.0, 0.3, rough),
        ("cubic burgers", "Cubic Burgers", "u_t = -0.5 D_x(u^3) + 0.1 u_xx", circle, 2.0, 0.0, rough),
        ("fisher-kpp", "Fisher-KPP", "u_t = 0.1 u_xx + 2 u - 2 u^2", circle, 1.5, 0.4, (0.2, 0.15, 0.1)),
        ("allen-cahn", "Allen-Cahn", "u_t = 0.1 u_xx + 2 u - 2 u^3", circle, 1.0, 0.0, rough),
        ("dispersion", "Dispersion", "u_t = 0.5 u_x - 0.05 u_xxx", circle, 3.0, 0.0, rough),
        ("mkdv", "Modified KdV", "u_t = -D_x(u^3) - 0.05 u_xxx", circle, 1.5, 0.2, soft),
        ("kdv-burgers", "KdV-Burgers", "u_t = -u*u_x + 0.03 u_xx - 0.02 u_xxx", circle, 2.5, 0.0, soft),
        ("kawahara", "Kawahara", "u_t = -u*u_x - 0.05 u_xxx + 0.002 u_xxxxx", circle, 3.0, 0.0, soft),
        ("hyper", "Hyperdiffusion", "u_t = -0.5 u_x + 0.05 u_xx - 0.004 u_xxxx", circle, 1.5, 0.0, rough),
    )
    chaotic = (
        ("benney-lin", "Benney-Lin", "u_t = -u*u_x - u_xx - 0.2 u_xxx - u_xxxx", 80.0, 100.0),
        ("drifting ks", "Drifting", "u_t = -0.4 u_x - 1.2 u*u_x - 1.1 u_xx - 0.8 u_xxxx", 70.0, 90.0),
    )
    transient = tuple(
        StartingState(_line(name, title, truth, length, duration, (200, 201)), mean, waves)
        for name, title, truth, length, duration, mean, waves in every
    )
    shaped = (*((*entry, (240, 281)) for entry in chaotic), *_WAVY)
    return transient + tuple(
        StartingState(_line(*entry), 0.0, rough, settled=True)  # name, title, truth, length, duration, shape
        for entry in shaped
    )


def _line(
    name: str, title: str, truth: str, length: float, duration: float, shape: tuple[int, int]
) -> Problem:
    return Problem(
        name, title, truth, Domain((0.0,), (length,), 0.0, duration, (True,)), shape, False, "powers"
    )


def _plane() -> Problem:
    return Problem(
        "plane",
        "Drift and diffusion of two blobs on a plane",
        "u_t = -0.4 u_x + 0.3 u_y + 0.4 u_xx + 0.6 u_yy",
        Domain((-5.0, -5.0), (5.0, 5.0), 0.0, 5.0, (False, False)),
        (51, 51, 61),
        False,
    )


def _drifting_blobs(entry: Problem) -> Float[np.ndarray, "nx ny nt"]:
    """Two Gaussians of unit variance, carried by the drift and spread by 2 D t along each axis: exact."""
    (x, y), t = entry.axes, entry.frames
    coefficient = dict(
        zip((str(term) for term in entry.equation.terms), entry.equation.coefficients, strict=True)
    )
    total = np.zeros(entry.shape)
    for amplitude, (x0, y0) in ((4.0, (-1.0, 1.0)), (-2.5, (1.5, -1.0))):
        blob = amplitude * np.ones(entry.shape)
        for axis, (points, start, name) in enumerate(((x, x0, "x"), (y, y0, "y"))):
            spread = 1.0 + 2 * coefficient[f"u_{name * 2}"] * t
            center = start - coefficient[f"u_{name}"] * t
            factor = np.exp(-((points[:, None] - center) ** 2) / (2 * spread)) / np.sqrt(spread)
            blob *= np.expand_dims(factor, 1 - axis)
        total += blob
    return total
