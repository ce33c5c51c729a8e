"""A seed -> a random well-posed problem and what was measured of it: for the calibration of verdicts.

An equation is drawn from a grammar with random coefficients, a smooth random state is carried through time,
and sensors, frames or scattered points of it are measured with noise, all in random units. Some problems have
no answer: a term of the truth is not in the library, or the state carries too little to tell terms apart.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from fts.domain import Domain
from fts.equations.equation import Equation, spectral_partials, strong
from fts.equations.integration import evolve
from fts.equations.terms import parse_term
from fts.observations import Observations

Kind = Literal["complete", "missing term", "little content"]
Layout = Literal["sensors", "frames", "scattered"]

# Right-hand sides by name; the sign a term must have for the equation to be well posed, 0 for either.
GRAMMAR: dict[str, dict[str, int]] = {
    "advection-diffusion": {"u_x": 0, "u_xx": 1},
    "heat": {"u_xx": 1},
    "dispersion": {"u_x": 0, "u_xxx": 0},
    "hyperdiffusion": {"u_xx": 1, "u_xxxx": -1},
    "Burgers": {"u*u_x": 0, "u_xx": 1},
    "Burgers with drift": {"u_x": 0, "u*u_x": 0, "u_xx": 1},
    "KdV": {"u*u_x": 0, "u_xxx": 0},
    "KdV-Burgers": {"u*u_x": 0, "u_xx": 1, "u_xxx": 0},
    "Fisher": {"u": 1, "u^2": -1, "u_xx": 1},
    "Allen-Cahn": {"u": 1, "u^3": -1, "u_xx": 1},
    "Kuramoto-Sivashinsky": {"u*u_x": 0, "u_xx": -1, "u_xxxx": -1},
}
_LINEAR = ("advection-diffusion", "heat", "dispersion", "hyperdiffusion")
_KINDS: dict[Kind, float] = {"complete": 0.7, "missing term": 0.15, "little content": 0.15}
NOISES = (0.0, 0.01, 0.05, 0.1, 0.2)
_GRID, _FRAMES, _STEPS = 128, 121, 10
# A trajectory is kept when its upper modes are this small, and its state neither explodes nor dies.
_RESOLVED, _LARGEST, _LEAST = 1e-5, 5.0, 0.15
_ATTEMPTS = 200


@dataclass(frozen=True)
class DrawnProblem:
    """One random problem: the truth, the library offered, and the samples."""

    seed: int
    family: str
    kind: Kind
    layout: Layout
    truth: Equation
    library: tuple[str, ...]
    observations: Observations


def draw(seed: int, library: tuple[str, ...]) -> DrawnProblem:
    """The problem of this seed; `library` is what a user offers by default."""
    rng = np.random.default_rng([seed, 20_270])
    kind = rng.choice(list(_KINDS), p=list(_KINDS.values()))
    families = _LINEAR if kind == "little content" else tuple(GRAMMAR)
    for _ in range(_ATTEMPTS):
        family = str(rng.choice(families))
        length = 2 * np.pi
        with np.errstate(all="ignore"):  # some explode, and are drawn again
            if family == "Kuramoto-Sivashinsky":
                truth, u, length, duration = _chaotic(rng)
            else:
                truth, u, duration = _transient(rng, family, 2 if kind == "little content" else 8)
        if _usable(u):
            break
    else:
        raise ValueError(f"seed {seed} gave no usable trajectory in {_ATTEMPTS} attempts: take another")
    truth, u, length, duration = _in_units(rng, truth, u, length, duration)
    names = [str(term) for term in truth.terms]
    offered = tuple(dict.fromkeys((*library, *names)))
    if kind == "missing term":
        gone = str(rng.choice(names))
        offered = tuple(name for name in offered if name != gone)
    layout, observations = _measure(rng, u, length, duration)
    return DrawnProblem(seed, family, kind, layout, truth, offered, observations)


def _transient(rng: np.random.Generator, family: str, modes: int) -> tuple[Equation, np.ndarray, float]:
    """A random smooth state under an equation whose terms are of like size on it."""
    highest = int(rng.integers(1, 3)) if modes == 2 else int(rng.integers(3, modes + 1))
    x = 2 * np.pi * np.arange(_GRID) / _GRID
    k = np.arange(1, highest + 1)
    amplitude = rng.standard_normal((2, highest)) / (1 + (k / 3) ** 2)
    u = amplitude[0] @ np.cos(np.outer(k, x)) + amplitude[1] @ np.sin(np.outer(k, x))
    u = u / u.std()
    if family == "Fisher":
        u = 0.5 + 0.2 * u
    elif rng.random() < 0.3:
        u = u + rng.normal()
    terms = {parse_term(name): sign for name, sign in GRAMMAR[family].items()}
    partial = spectral_partials(u[:, None], 2 * np.pi)
    sizes = [float(np.std(strong(term, partial))) for term in terms]
    signs = [sign or int(rng.choice([-1, 1])) for sign in terms.values()]
    values = [s * rng.uniform(0.4, 1.6) / size for s, size in zip(signs, sizes, strict=True)]
    truth = Equation(tuple(terms), values)
    rate = sum(c * strong(term, partial) for term, c in zip(terms, values, strict=True))
    duration = float(rng.uniform(0.6, 2.0) * u.std() / np.std(rate))
    return truth, evolve(truth, u, 2 * np.pi, _FRAMES, duration, _STEPS), duration


def _chaotic(rng: np.random.Generator) -> tuple[Equation, np.ndarray, float, float]:
    """Kuramoto-Sivashinsky on its attractor: several unstable waves, a few of their lifetimes."""
    length, duration = float(rng.uniform(25, 50)), float(rng.uniform(15, 40))
    terms = tuple(parse_term(name) for name in GRAMMAR["Kuramoto-Sivashinsky"])
    truth = Equation(terms, [-rng.uniform(0.7, 1.3), -rng.uniform(0.9, 1.2), -rng.uniform(0.8, 1.1)])
    start = rng.standard_normal(_GRID)
    smooth = np.fft.irfft(np.fft.rfft(start) * (np.arange(_GRID // 2 + 1) < 6), n=_GRID)
    settled = evolve(truth, smooth - smooth.mean(), length, 2, 60.0, 1200)[:, -1]
    return truth, evolve(truth, settled, length, _FRAMES, duration, _STEPS), length, duration


def _usable(u: np.ndarray) -> bool:
    if not np.isfinite(u).all():
        return False
    tail = np.abs(np.fft.rfft(u, axis=0))
    resolved = tail[_GRID // 3 :].max() <= _RESOLVED * tail[1:].max()
    deviation = (u - u[:, :1].mean()).std(axis=0)
    return bool(
        resolved and deviation.max() <= _LARGEST * deviation[0] and deviation[-1] >= _LEAST * deviation[0]
    )


def _in_units(
    rng: np.random.Generator, truth: Equation, u: np.ndarray, length: float, duration: float
) -> tuple[Equation, np.ndarray, float, float]:
    """The same problem in other units of length, time and value, each up to ten times larger or smaller."""
    x, t, y = (10 ** rng.uniform(-1, 1) for _ in range(3))
    values = []
    for term, c in zip(truth.terms, truth.coefficients, strict=True):
        degree = term.q.degree
        assert degree is not None  # every term drawn is a derivative of a power
        values.append(float(c) * x**term.order / t * y ** (1 - degree))
    return Equation(truth.terms, values), y * u, x * length, t * duration


def _measure(
    rng: np.random.Generator, u: np.ndarray, length: float, duration: float
) -> tuple[Layout, Observations]:
    """Samples of the trajectory: where, when, and with which noise."""
    layout: Layout = rng.choice(["sensors", "frames", "scattered"], p=[0.5, 0.3, 0.2])
    noise = float(rng.choice(NOISES))
    low, high, periodic = 0.0, length, True
    if rng.random() < 0.25:  # a window of the field, whose ends know nothing of each other
        low = float(rng.uniform(0, 0.3)) * length
        high, periodic = low + float(rng.uniform(0.5, 0.7)) * length, False
    times = np.linspace(0, duration, _FRAMES)
    if layout == "scattered":
        count = int(np.exp(rng.uniform(np.log(500), np.log(2500))))
        x, frame = np.sort(rng.uniform(low, high, count)), rng.integers(0, _FRAMES, count)
    else:
        if layout == "sensors":
            frames = np.unique(np.linspace(0, _FRAMES - 1, int(rng.integers(30, _FRAMES + 1))).astype(int))
            positions = np.sort(rng.uniform(low, high, int(rng.integers(16, 65))))
        else:
            frames = np.sort(rng.permutation(_FRAMES)[: int(rng.integers(12, 41))])
            positions = low + (high - low) * np.arange(96) / (96 if periodic else 95)
        x, frame = np.repeat(positions, frames.size), np.tile(frames, positions.size)
    y = _interpolated(u, x / length, frame)
    y = y + noise * u.std() * rng.standard_normal(y.size)
    domain = Domain((low,), (high,), 0.0, duration, (periodic,))
    return layout, Observations(x[:, None], times[frame], y, domain, noise=noise, source="drawn")


def _interpolated(u: Float[np.ndarray, "nx nt"], x: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """u between its grid points by its Fourier series; x in units of the period."""
    spectrum = np.fft.rfft(u, axis=0) / len(u)
    spectrum[1:-1] *= 2
    values = np.empty(x.size)
    for first in range(0, x.size, 4096):
        part = slice(first, first + 4096)
        waves = np.exp(2j * np.pi * np.outer(x[part], np.arange(len(spectrum))))
        values[part] = np.einsum("nk,kn->n", waves, spectrum[:, frame[part]]).real
    return values
