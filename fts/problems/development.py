"""Problems on which the settings of two fields were chosen: none is a benchmark, none is in a table.

Their equations, states and grids differ from those of `fts.problems.problems`, so what works here was not
fitted to what is reported there. This is truth: selection code never imports it.
"""

from functools import partial

import numpy as np
from jaxtyping import Float

from fts.domain import Domain
from fts.equations.integration import evolve
from fts.equations.terms import Library
from fts.params.paper import LIBRARIES
from fts.problems.problems import Problem
from fts.problems.trajectories import Trajectory, reference

# Steps of the integrator between two frames, and times a chaotic state is carried before the record begins.
_STEPS, _SETTLING = 10, 80.0
# Amplitudes of the waves a state starts from, by wavenumber 1, 2, ...
_SOFT, _ROUGH = (0.7, 0.5, 0.3, 0.2), (0.6, -0.5, 0.4, 0.4, -0.3, 0.3)

# Name, title, truth, duration, mean and waves of equations on a circle of length 2 pi.
_TRANSIENT = (
    ("burgers", "Viscous Burgers", "u_t = -u*u_x + 0.1 u_xx", 2.0, 0.3, _ROUGH),
    ("cubic burgers", "Cubic Burgers", "u_t = -0.5 D_x(u^3) + 0.1 u_xx", 2.0, 0.0, _ROUGH),
    ("fisher-kpp", "Fisher-KPP", "u_t = 0.1 u_xx + 2 u - 2 u^2", 1.5, 0.4, (0.2, 0.15, 0.1)),
    ("allen-cahn", "Allen-Cahn", "u_t = 0.1 u_xx + 2 u - 2 u^3", 1.0, 0.0, _ROUGH),
    ("dispersion", "Dispersion", "u_t = 0.5 u_x - 0.05 u_xxx", 3.0, 0.0, _ROUGH),
    ("mkdv", "Modified KdV", "u_t = -D_x(u^3) - 0.05 u_xxx", 1.5, 0.2, _SOFT),
    ("kdv-burgers", "KdV-Burgers", "u_t = -u*u_x + 0.03 u_xx - 0.02 u_xxx", 2.5, 0.0, _SOFT),
    ("kawahara", "Kawahara", "u_t = -u*u_x - 0.05 u_xxx + 0.002 u_xxxxx", 3.0, 0.0, _SOFT),
    ("hyper", "Hyperdiffusion", "u_t = -0.5 u_x + 0.05 u_xx - 0.004 u_xxxx", 1.5, 0.0, _ROUGH),
)
# Name, title, truth, length, duration and grid of equations whose record begins on the attractor.
_CHAOTIC = (
    ("benney-lin", "Benney-Lin", "u_t = -u*u_x - u_xx - 0.2 u_xxx - u_xxxx", 80.0, 100.0, (240, 281)),
    ("drifting ks", "Drifting", "u_t = -0.4 u_x - 1.2 u*u_x - 1.1 u_xx - 0.8 u_xxxx", 70.0, 90.0, (240, 281)),
)

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


def development_names() -> tuple[str, ...]:
    """The names of the development problems; the plane is the last."""
    return tuple(entry.name for entry in _problems())


def wavy_names() -> tuple[str, ...]:
    """The names of the variants of the Kuramoto-Sivashinsky equation among them."""
    return tuple(name for name, *_ in _WAVY)


def development(name: str) -> tuple[Problem, Trajectory]:
    """The problem called `name` and its reference trajectory."""
    table = {entry.name: entry for entry in _problems()}
    if name not in table:
        raise ValueError(f"unknown development problem {name!r}: known are {', '.join(table)}")
    return table[name], reference(table[name])


def candidate_library(entry: Problem) -> Library:
    """43 terms on a line; on the plane, whose small library is the harder case, the paper's seven."""
    return entry.library if entry.terms else Library.parse(LIBRARIES["ad"])


def _problems() -> tuple[Problem, ...]:
    transient = (
        _line(name, title, truth, 2 * np.pi, duration, (200, 201), mean, waves)
        for name, title, truth, duration, mean, waves in _TRANSIENT
    )
    chaotic = (_line(*entry, 0.0, _ROUGH, settling=_SETTLING) for entry in (*_CHAOTIC, *_WAVY))
    plane = Problem(
        "plane",
        "Drift and diffusion of two blobs on a plane",
        "u_t = -0.4 u_x + 0.3 u_y + 0.4 u_xx + 0.6 u_yy",
        Domain((-5.0, -5.0), (5.0, 5.0), 0.0, 5.0, (False, False)),
        (51, 51, 61),
        solver=_drifting_blobs,
    )
    return (*transient, *chaotic, plane)


def _line(
    name: str,
    title: str,
    truth: str,
    length: float,
    duration: float,
    shape: tuple[int, int],
    mean: float,
    waves: tuple[float, ...],
    settling: float = 0.0,
) -> Problem:
    """An equation on a circle that starts from a mean and waves, whose phases are drawn from the title."""

    def initial(x: np.ndarray) -> np.ndarray:
        phases = np.random.default_rng(list(title.encode())).uniform(0, 2 * np.pi, len(waves))
        k = np.arange(1, len(waves) + 1)
        return mean + np.sin(2 * np.pi / length * np.outer(x, k) + phases) @ np.array(waves)

    return Problem(
        name,
        title,
        truth,
        Domain((0.0,), (length,), 0.0, duration, (True,)),
        shape,
        terms="powers",
        initial=initial,
        solver=partial(_carried, settling=settling),
    )


def _carried(entry: Problem, settling: float) -> Float[np.ndarray, "nx nt"]:
    equation, u, length = entry.equation, entry.start, entry.domain.extents[0]
    frames, duration = entry.shape[-1], entry.domain.t1
    if settling:
        step = duration / (frames - 1)
        u = evolve(equation, u, length, 1 + round(settling / step), settling, _STEPS)[:, -1]
    return evolve(equation, u, length, frames, duration, _STEPS)


def _drifting_blobs(entry: Problem) -> Float[np.ndarray, "nx ny nt"]:
    """Two Gaussians of unit variance, carried by the drift and spread by 2 D t along each axis: exact."""
    (x, y), t = entry.axes, entry.frames
    coefficient = {str(term): c for term, c in entry.equation.physical().items()}
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
