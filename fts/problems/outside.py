"""Random problems beyond what a default library and a sound instrument say: famous confusions, and defects.

`draw_outside`: an equation with a part that no term of the default library states. Its texts are the only
statement; the known part, which the library has, is kept beside it, so that what is missing is measured on
the solution as u_t less the known part. `draw_defect`: an equation inside the library, measured by an
instrument that errs in one way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline
from scipy.special import j0, j1, jn_zeros

from fts.domain import Domain, grid_points
from fts.equations.equation import Equation
from fts.observations import Observations
from fts.problems.development import (
    DRAWN_FRAMES,
    DRAWN_GRID,
    DRAWN_STEPS,
    GRAMMAR,
    NOISES,
    chaotic,
    in_units,
    interpolated,
    transient,
    usable,
)
from fts.problems.pseudospectral import SystemProblem, SystemTrajectory, Waves, evaluate_on, evolve_system

Layout = Literal["sensors", "frames", "scattered"]
_CIRCLE = 2 * np.pi
_SHAPES = {1: (DRAWN_GRID, DRAWN_FRAMES), 2: (48, 48, 61)}
# Of the missing part in the known rate, on a logarithmic scale, where a class says nothing else.
_LEAST, _MOST = 0.03, 0.8
_ATTEMPTS = 200
# What a part that multiplies a positive coefficient may have of it, so that it stays positive.
_POSITIVE = 0.8


@dataclass(frozen=True)
class Outside:
    """A class of equations: terms the library has, by sign, and one part that it has not.

    A text may use {p}, a random phase, {w}, a random frequency, and {T}, the duration. `names` are those by
    which the missing part may be called; a hidden component has its own equation and start.
    """

    name: str
    known: Mapping[str, int]
    missing: str
    sign: int = 0
    names: tuple[str, ...] = ()
    hidden: str = ""
    positive: bool = False  # a state without zeros
    below: str = ""  # the known term that the missing part must not outweigh
    least: float = _LEAST
    most: float = _MOST
    steps: int = DRAWN_STEPS  # of the integrator between two frames
    axes: int = 1


_CARRIED = {"u_x": 0, "u_xx": 1}
_SHOCKS = {"u*u_x": 0, "u_xx": 1}
_SOLITONS = {"u*u_x": 0, "u_xxx": 0}
_PLANE = {"u_x": 0, "u_y": 0, "u_xx": 1, "u_yy": 1}
CLASSES: tuple[Outside, ...] = (
    Outside("Gardner", _SOLITONS, "u^2*u_x", names=("u^2*u_x",)),
    Outside("varying speed", _CARRIED, "sin(x+{p})*u_x", names=("x",)),
    Outside("hidden FitzHugh", {"u": 1, "u^3": -1, "u_xx": 1}, "v", -1, ("hidden",), "v_t = {a}*u - {b}*v"),
    Outside("Kawahara", _SOLITONS, "u_xxxxx", names=("u_xxxxx",)),
    Outside("forcing", _SHOCKS, "sin(x-{w}*t+{p})", names=("forcing",)),
    Outside("shear", _PLANE, "sin(y+{p})*u_x", names=("y",), axes=2),
    Outside("Cahn-Hilliard", {"u_xx": -1, "u_xxxx": -1}, "D_xx(u^3)", 1, ("D_xx(u^3)",), steps=40),
    Outside("fractional", {"u_x": 0, "u*u_x": 0}, "fractional(u,1.5)", -1, ("fractional",)),
    Outside("varying diffusivity", _SHOCKS, "D_x(cos(x+{p})*u_x)", 0, ("x",), below="u_xx"),
    Outside("BBM", {"u_x": 0, "u*u_x": 0}, "u_xxt", 1, ("u_xxt",)),
    Outside("drift in time", _SHOCKS, "(t/{T}-0.5)*u*u_x", names=("t",)),
    Outside(
        "hidden prey", {"u": 1, "u_xx": 1}, "u*v", -1, ("hidden",), "v_t = {d}*v_xx + {a}*u*v - {b}*v", True
    ),
    Outside("Benjamin-Ono", {"u*u_x": 0}, "hilbert(u_xx)", 0, ("nonlocal",), least=0.4, most=3.0),
    Outside("plane Burgers", _PLANE, "u*u_x", names=("u*u_x",), axes=2),
    Outside("porous", {"u_x": 0, "u_xx": 1}, "D_xx(u^2)", 1, ("D_xx(u^2)",), positive=True),
    Outside("saturating diffusivity", _CARRIED, "D_x(u_x/(1+u^2))", 1, ("D_xx(u^3)", "D_xx(u^2)")),
    Outside("telegraph", {"u_xx": 1}, "telegraph", names=("u_tt",)),
    Outside("small decay", _SHOCKS, "u", -1, ("u",), most=0.2),
    Outside("KPZ", {"u_x": 0, "u_xx": 1}, "u_x^2", 0, ("u_x^2",)),
    Outside("varying plane", _PLANE, "D_x(cos(x+{p})*u_x)", 0, ("x",), below="u_xx", axes=2),
    Outside("drifting diffusivity", _CARRIED, "(t/{T}-0.5)*u_xx", 0, ("t",), below="u_xx"),
    Outside("radial", {"u_xx": 1}, "radial", names=("x",)),
    Outside("cubic plane", {"u": 1, **_PLANE}, "u^3", -1, ("u^3",), axes=2),
    Outside("hyperdiffusion", _SHOCKS, "u_xxxxxx", 1, ("u_xxxxxx",)),
    Outside("mixed plane", _PLANE, "u_xy", 0, ("u_xy",), below="u_xx", axes=2),
)


@dataclass(frozen=True)
class OutsideProblem:
    """One random problem beyond the library: its texts, what is missing of them, and the samples."""

    seed: int
    family: str
    truth: Mapping[str, str]  # on a circle of length 2 pi, before units
    known: Mapping[str, float]  # coefficients of the part that the library states, in the samples' units
    names: tuple[str, ...]
    complete: bool  # where the library states the missing part, too, and `known` has it
    share: float  # ||missing part|| / ||u_t|| over the record
    unexplained: float  # the same of what no equation of the library explains
    layout: Layout
    observations: Observations


@dataclass(frozen=True)
class _Solution:
    """A trajectory, the rate of u on its grid, and the known part of the equation behind it."""

    trajectory: SystemTrajectory
    rate: Float[np.ndarray, "..."]
    truth: Mapping[str, str]
    known: Mapping[str, float]
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)  # the library's terms on the grid


def draw_outside(seed: int, kind: Outside, library: tuple[str, ...]) -> OutsideProblem:
    """The problem of this class and seed."""
    rng = np.random.default_rng([seed, 30_270])
    for _ in range(_ATTEMPTS):
        with np.errstate(all="ignore"):
            solution = solve_class(rng, kind, library)
        if solution is not None:
            break
    else:
        raise ValueError(f"seed {seed} gave no usable {kind.name} in {_ATTEMPTS} attempts: take another")
    rate, columns = solution.rate.ravel(), {n: c.ravel() for n, c in solution.columns.items()}
    missing = rate - sum((c * columns[name] for name, c in solution.known.items()), np.zeros(rate.size))
    share = float(np.linalg.norm(missing) / np.linalg.norm(rate))
    layout, observations, scales = _measure(rng, solution.trajectory, kind.axes)
    stated = dict(solution.known)
    if kind.missing in library:
        column = columns[kind.missing]
        stated[kind.missing] = float(column @ missing / (column @ column))
    return OutsideProblem(
        seed,
        kind.name,
        solution.truth,
        {name: _rescaled(name, c, scales) for name, c in stated.items()},
        kind.names,
        kind.missing in library,
        share,
        _unexplained(np.column_stack(list(columns.values())), rate),
        layout,
        observations,
    )


def solve_class(rng: np.random.Generator, kind: Outside, library: tuple[str, ...]) -> _Solution | None:
    """A random equation of the class, solved from a random state; None where that is no usable record."""
    if kind.missing == "radial":
        return _radial(rng, library)
    shape = _SHAPES[kind.axes]
    domain = Domain((0.0,) * kind.axes, (_CIRCLE,) * kind.axes, 0.0, 1.0, (True,) * kind.axes)
    entry = SystemProblem(kind.name, kind.name, {"u": "u_t = 0*u"}, domain, shape, library)
    start = _start(rng, kind, entry)
    sizes = {name: float(np.std(evaluate_on(entry, name, 0.0, start))) for name in kind.known}
    if min(sizes.values()) <= 0:
        return None
    known = {
        name: (sign or int(rng.choice([-1, 1]))) * float(rng.uniform(0.4, 1.6)) / sizes[name]
        for name, sign in kind.known.items()
    }
    rate = np.sum([c * evaluate_on(entry, name, 0.0, start) for name, c in known.items()], axis=0)
    duration = float(rng.uniform(0.6, 2.0) * start["u"].std() / rate.std())
    share = float(np.exp(rng.uniform(np.log(kind.least), np.log(kind.most))))
    truth, others = _complete(rng, kind, known, share, entry, start, rate, duration)
    domain = Domain(domain.low, domain.high, 0.0, duration, domain.periodic)
    entry = SystemProblem(kind.name, kind.name, truth, domain, shape, library)
    try:
        trajectory, rates = evolve_system(entry, start | others, kind.steps)
    except ValueError:  # it exploded
        return None
    if not all(_usable(u) for u in trajectory.values.values()):
        return None
    if kind.positive and trajectory.values["u"].min() <= 0:
        return None
    return _Solution(trajectory, rates["u"], truth, known, _columns(entry, trajectory, (*known, *library)))


def _start(rng: np.random.Generator, kind: Outside, entry: SystemProblem) -> dict[str, np.ndarray]:
    waves = Waves(entry.axes, entry.domain.extents[:-1], rng)
    u = waves(int(rng.integers(3, 7 if kind.axes == 1 else 4)))
    if kind.positive:
        u = u - 1.3 * u.min()
        u = u / u.mean()
    elif rng.random() < 0.3:
        u = u + rng.normal()
    if not kind.hidden:
        return {"u": u}
    v = waves(3)
    return {"u": u, "v": 1 + 0.3 * v / np.abs(v).max() if kind.positive else 0.5 * v}


def _complete(
    rng: np.random.Generator,
    kind: Outside,
    known: Mapping[str, float],
    share: float,
    entry: SystemProblem,
    start: dict[str, np.ndarray],
    rate: np.ndarray,
    duration: float,
) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The texts of all equations with a missing part of this share, and states of components they need."""
    right = " + ".join(f"{c!r}*{name}" for name, c in known.items())
    if kind.missing == "telegraph":
        # u_t + delay u_tt = known: the rate is a component of its own.
        delay = share * duration / 3
        start.pop("v", None)
        return {"u": "u_t = v", "v": f"v_t = ({right} - v)/{delay!r}"}, {
            "v": rate * float(rng.uniform(0.2, 1.0))
        }
    words = {"p": float(rng.uniform(0, _CIRCLE)), "w": float(rng.uniform(0.5, 3.0)) / duration, "T": duration}
    part = kind.missing.format(**{name: repr(value) for name, value in words.items()})
    if kind.missing == "u_xxt":
        # Of the known rate: what the mixed term makes of itself comes on top.
        modes = np.fft.rfft(rate)
        size = float(np.std(np.fft.irfft(np.arange(modes.size) ** 2 * modes, n=rate.size)))
    else:
        times = (0.0, duration)
        size = max(float(np.std(evaluate_on(entry, part, t, start))) for t in times)
    c = (kind.sign or int(rng.choice([-1, 1]))) * share * float(rate.std()) / size
    if kind.below:
        c = float(np.clip(c, -_POSITIVE * known[kind.below], _POSITIVE * known[kind.below]))
    texts = {"u": f"u_t = {right} + {c!r}*{part}"}
    if kind.hidden:
        pace = {name: float(rng.uniform(0.5, 2.0)) / duration for name in "ab"}
        values = pace | {"d": float(rng.uniform(0.2, 1.0)) * abs(known["u_xx"])}
        texts["v"] = kind.hidden.format(**{name: repr(value) for name, value in values.items()})
    return texts, {}


def _columns(
    entry: SystemProblem, trajectory: SystemTrajectory, names: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Terms of u alone on the whole grid, one after the other."""
    u = trajectory.values["u"]
    frames = range(u.shape[-1])
    return {
        name: np.stack([evaluate_on(entry, name, 0.0, {"u": u[..., i]}) for i in frames], axis=-1)
        for name in dict.fromkeys(names)
    }


def _radial(rng: np.random.Generator, library: tuple[str, ...]) -> _Solution:
    """Diffusion in a disc, u_t = D (u_rr + u_r / r) away from its center, by Bessel functions: exact."""
    outer, D = 1.0, float(rng.uniform(0.5, 1.5))
    inner = float(rng.uniform(0.1, 0.5))
    zeros = jn_zeros(0, 5)
    sizes = rng.standard_normal(5) / (1 + np.arange(5) / 2)
    duration = float(rng.uniform(0.5, 1.5)) / (D * zeros[1] ** 2)
    r, t = np.linspace(inner, outer, DRAWN_GRID), np.linspace(0, duration, DRAWN_FRAMES)
    decay = np.exp(-D * np.outer(zeros**2, t))
    waves, from_ = np.outer(r, zeros), -D * zeros[:, None] ** 2
    u = j0(waves) @ (sizes[:, None] * decay)
    rate = j0(waves) @ (from_ * sizes[:, None] * decay)
    # J0'' = -J0 + J1/s and J0' = -J1, so that u_rr = (rate - u_r D / r) / D.
    slope = -j1(waves) @ (zeros[:, None] * sizes[:, None] * decay)
    domain = Domain((inner,), (outer,), 0.0, duration, (False,))
    trajectory = SystemTrajectory(domain, (r,), t, {"u": u}, {}, "radial")
    columns = {"u_xx": rate / D - slope / r[:, None], "u_x": slope, "u": u, "1": np.ones(u.shape)}
    columns |= {"u^2": u**2, "u^3": u**3, "u*u_x": u * slope}
    truth = {"u": f"u_t = {D!r}*u_xx + {D!r}*u_x/x"}
    return _Solution(trajectory, rate, truth, {"u_xx": D}, columns)


def _unexplained(columns: Float[np.ndarray, "n J"], rate: Float[np.ndarray, " n"]) -> float:
    """The share of the rate that the best combination of all columns leaves."""
    sizes = np.linalg.norm(columns, axis=0)
    scaled = columns[:, sizes > 0] / sizes[sizes > 0]
    left = rate - scaled @ np.linalg.lstsq(scaled, rate, rcond=None)[0]
    return float(np.linalg.norm(left) / np.linalg.norm(rate))


def _usable(u: np.ndarray) -> bool:
    """Every axis of space is resolved, and the state neither explodes nor dies."""
    if not np.isfinite(u).all():
        return False
    if u.ndim == 2:
        return usable(u)
    for axis in range(u.ndim - 1):
        tail = np.abs(np.fft.rfft(u, axis=axis))
        tail = np.moveaxis(tail, axis, 0)
        if tail[u.shape[axis] // 3 :].max() > 1e-5 * tail[1:].max():
            return False
    deviation = u.reshape(-1, u.shape[-1]).std(axis=0)
    return bool(deviation.max() <= 5 * deviation[0] and deviation[-1] >= 0.15 * deviation[0])


def _rescaled(name: str, c: float, scales: tuple[float, float, float]) -> float:
    """A coefficient in other units of length, time and value."""
    x, t, y = scales
    (term,) = Equation.parse(f"u_t = {name}").terms
    degree = term.q.degree
    if degree is None:
        raise ValueError(f"{name!r} is no derivative of a power: its coefficient has no unit")
    return c * x**term.order / t * y ** (1 - degree)


def _measure(
    rng: np.random.Generator, trajectory: SystemTrajectory, axes: int
) -> tuple[Layout, Observations, tuple[float, float, float]]:
    """Samples of u somewhere, with noise, in random units; a third of the rings and boxes is seen in part."""
    layout: Layout = rng.choice(["sensors", "frames", "scattered"], p=[0.5, 0.3, 0.2])
    noise = float(rng.choice(NOISES))
    x, t, y = (float(10 ** rng.uniform(-1, 1)) for _ in range(3))
    u, times, domain = trajectory.values["u"], trajectory.t, trajectory.domain
    partly = bool(rng.random() < 0.33)
    sampled = _sample_plane if axes == 2 else _sample_line
    low, high, periodic, points, frame, values = sampled(rng, layout, u, domain, partly)
    values = values + noise * u.std() * rng.standard_normal(values.size)
    box = Domain(tuple(x * low), tuple(x * high), 0.0, t * times[-1], periodic)
    observations = Observations(x * points, t * times[frame], y * values, box, noise=noise, source="drawn")
    return layout, observations, (x, t, y)


def _sample_line(
    rng: np.random.Generator, layout: Layout, u: np.ndarray, domain: Domain, partly: bool
) -> tuple[np.ndarray, np.ndarray, tuple[bool, ...], np.ndarray, np.ndarray, np.ndarray]:
    low, length, periodic = domain.low[0], domain.extents[0], domain.periodic[0]
    start, high, closed = low, low + length, periodic
    if partly and periodic:
        start = low + float(rng.uniform(0, 0.3)) * length
        high, closed = start + float(rng.uniform(0.5, 0.7)) * length, False
    count = u.shape[1]
    if layout == "scattered":
        n = int(np.exp(rng.uniform(np.log(600), np.log(2500))))
        x, frame = np.sort(rng.uniform(start, high, n)), rng.integers(0, count, n)
    else:
        if layout == "sensors":
            frames = np.unique(np.linspace(0, count - 1, int(rng.integers(30, count + 1))).astype(int))
            positions = np.sort(rng.uniform(start, high, int(rng.integers(20, 65))))
        else:
            frames = np.sort(rng.permutation(count)[: int(rng.integers(12, 41))])
            positions = start + (high - start) * np.arange(96) / (96 if closed else 95)
        x, frame = np.repeat(positions, frames.size), np.tile(frames, positions.size)
    if periodic:
        values = interpolated(u, (x - low) / length, frame)
    else:
        grid = np.linspace(low, low + length, len(u))
        splines = CubicSpline(grid, u)(x)
        values = splines[np.arange(x.size), frame]
    return np.array([start]), np.array([high]), (closed,), x[:, None], frame, values


def _sample_plane(
    rng: np.random.Generator, layout: Layout, u: np.ndarray, domain: Domain, partly: bool
) -> tuple[np.ndarray, np.ndarray, tuple[bool, ...], np.ndarray, np.ndarray, np.ndarray]:
    """At points of the grid: of all of it, or of a box of two thirds of each side."""
    n, count = u.shape[0], u.shape[-1]
    size = 2 * n // 3 if partly else n
    axis = domain.extents[0] * np.arange(n) / n
    kept = axis[:size]
    points, fields = grid_points((kept, kept)), u[:size, :size].reshape(-1, count)
    if layout == "frames":
        # Every other point, in few frames.
        rows = np.flatnonzero((np.indices((size, size)) % 2 == 0).all(axis=0).ravel())
        frames = np.sort(rng.permutation(count)[: int(rng.integers(12, 21))])
    else:
        rows = np.sort(rng.permutation(len(points))[: int(rng.integers(80, 251))])
        frames = np.unique(np.linspace(0, count - 1, int(rng.integers(25, 42))).astype(int))
    x, frame = np.repeat(rows, frames.size), np.tile(frames, rows.size)
    if layout == "scattered":
        some = np.sort(rng.permutation(len(points) * count)[: int(rng.integers(1500, 4001))])
        x, frame = np.divmod(some, count)
    high = np.full(2, kept[-1] if partly else domain.extents[0])
    return np.zeros(2), high, (not partly,) * 2, points[x], frame, fields[x, frame]


# ---------------------------------------------------------------------------------------------- instruments


@dataclass(frozen=True)
class Reading:
    """What an instrument is asked: the true field, its sensors and frames, how loud it is."""

    rng: np.random.Generator
    field: Callable[[np.ndarray, np.ndarray], np.ndarray]  # positions, times -> [S, F]
    x: Float[np.ndarray, " S"]
    t: Float[np.ndarray, " F"]
    length: float
    scale: float  # deviation of the field
    noise: float  # of the scale

    @property
    def clean(self) -> Float[np.ndarray, "S F"]:
        """What a sound instrument without noise shows."""
        return self.field(self.x, np.broadcast_to(self.t, (self.x.size, self.t.size)))

    @property
    def white(self) -> Float[np.ndarray, "S F"]:
        """White noise."""
        return self.noise * self.scale * self.rng.standard_normal((self.x.size, self.t.size))


def _offset(r: Reading) -> np.ndarray:
    return r.clean + 0.1 * r.scale * r.rng.standard_normal((r.x.size, 1)) + r.white


def _gain(r: Reading) -> np.ndarray:
    return r.clean * (1 + 0.05 * r.rng.standard_normal((r.x.size, 1))) + r.white


def _bad_sensor(r: Reading) -> np.ndarray:
    """One or two that are stuck, or show something else altogether."""
    y = r.clean + r.white
    for i in r.rng.permutation(r.x.size)[: int(r.rng.integers(1, 3))]:
        y[i] = r.rng.normal() * r.scale + (0.0 if r.rng.random() < 0.5 else 1.7 * y[i])
        y[i] += 1e-3 * r.scale * r.rng.standard_normal(r.t.size)
    return y


def _lag(r: Reading) -> np.ndarray:
    """Every sensor follows the field with a delay of its own."""
    delay = 0.02 * (r.t[-1] - r.t[0]) * np.abs(r.rng.standard_normal((r.x.size, 1)))
    weights = np.polynomial.laguerre.laggauss(8)
    times = (np.maximum(r.t - node * delay, r.t[0]) for node in weights[0])
    return sum(w * r.field(r.x, each) for w, each in zip(weights[1], times, strict=True)) + r.white


def _clock(r: Reading) -> np.ndarray:
    shift = 0.01 * (r.t[-1] - r.t[0]) * r.rng.standard_normal((r.x.size, 1))
    return r.field(r.x, np.clip(r.t + shift, r.t[0], r.t[-1])) + r.white


def _position(r: Reading) -> np.ndarray:
    moved = r.x + 0.005 * r.length * r.rng.standard_normal(r.x.size)
    return r.field(moved, np.broadcast_to(r.t, (r.x.size, r.t.size))) + r.white


def _drift(r: Reading) -> np.ndarray:
    """All sensors drift alike."""
    phase = (r.t - r.t[0]) / (r.t[-1] - r.t[0])
    return r.clean + 0.1 * r.scale * r.rng.choice([-1, 1]) * 2 * phase ** r.rng.uniform(0.5, 2) + r.white


def _correlated(r: Reading) -> np.ndarray:
    """Noise that a sensor forgets after some five frames."""
    noise, keep = r.rng.standard_normal((r.x.size, r.t.size)), np.exp(-1 / 5)
    for i in range(1, r.t.size):
        noise[:, i] = keep * noise[:, i - 1] + np.sqrt(1 - keep**2) * noise[:, i]
    return r.clean + max(r.noise, 0.02) * r.scale * noise


def _heteroscedastic(r: Reading) -> np.ndarray:
    """Sensors of different quality, and more noise where the field is large."""
    quality = np.exp(0.7 * r.rng.standard_normal((r.x.size, 1)))
    size = quality * (0.5 + np.abs(r.clean) / r.scale / 2)
    return r.clean + max(r.noise, 0.02) * r.scale * size * r.rng.standard_normal(size.shape)


def _quantized(r: Reading) -> np.ndarray:
    step = r.scale / r.rng.integers(3, 9)
    return step * np.round((r.clean + r.white) / step)


def _outliers(r: Reading) -> np.ndarray:
    """One sample in a hundred misses by ten deviations of the noise."""
    noise = max(r.noise, 0.01) * r.scale
    y = r.clean + noise * r.rng.standard_normal((r.x.size, r.t.size))
    return np.where(r.rng.random(y.shape) < 0.01, y + 10 * noise * r.rng.choice([-1, 1], y.shape), y)


def _spikes(r: Reading) -> np.ndarray:
    """One sample in a hundred misses by ten deviations of the field."""
    y = r.clean + r.white
    return np.where(r.rng.random(y.shape) < 0.01, y + 10 * r.scale * r.rng.choice([-1, 1], y.shape), y)


DEFECTS: dict[str, Callable[[Reading], np.ndarray]] = {
    "offsets": _offset,
    "outliers": _outliers,
    "correlated noise": _correlated,
    "clock": _clock,
    "gains": _gain,
    "spikes": _spikes,
    "uneven noise": _heteroscedastic,
    "positions": _position,
    "bad sensor": _bad_sensor,
    "period": lambda r: r.clean + r.white,  # the domain is what errs
    "lag": _lag,
    "quantization": _quantized,
    "common drift": _drift,
}
# By how much a ring is taken too long.
_PERIOD = 0.03


@dataclass(frozen=True)
class DefectProblem:
    """One random problem inside the library, measured by an instrument that errs."""

    seed: int
    family: str
    defect: str
    truth: Equation
    observations: Observations


def draw_defect(seed: int, defect: str) -> DefectProblem:
    """The problem of this seed, with this defect."""
    rng = np.random.default_rng([seed, 30_271])
    for _ in range(_ATTEMPTS):
        family, length = str(rng.choice(list(GRAMMAR))), _CIRCLE
        with np.errstate(all="ignore"):  # some explode, and are drawn again
            if family == "Kuramoto-Sivashinsky":
                truth, u, length, duration = chaotic(rng)
            else:
                truth, u, duration = transient(rng, family, 8)
        if usable(u):
            break
    else:
        raise ValueError(f"seed {seed} gave no usable trajectory in {_ATTEMPTS} attempts: take another")
    truth, u, length, duration = in_units(rng, truth, u, length, duration)
    times = np.linspace(0, duration, DRAWN_FRAMES)
    low, high, periodic = 0.0, length, True
    if defect != "period" and rng.random() < 0.25:
        low = float(rng.uniform(0, 0.3)) * length
        high, periodic = low + float(rng.uniform(0.5, 0.7)) * length, False
    spectrum = CubicSpline(times, np.fft.rfft(u, axis=0), axis=1)

    def at(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The field at positions, each with times of its own."""
        k = np.arange(DRAWN_GRID // 2 + 1)
        weights = np.where((k == 0) | (k == k[-1]), 1, 2) / DRAWN_GRID
        waves = weights * np.exp(2j * np.pi / length * np.outer(x, k))
        same = np.ptp(t, axis=0).max() == 0
        if same:
            return (waves @ spectrum(t[0])).real
        return np.stack([(row @ spectrum(moments)).real for row, moments in zip(waves, t, strict=True)])

    frames = np.unique(np.linspace(0, DRAWN_FRAMES - 1, int(rng.integers(40, DRAWN_FRAMES + 1))).astype(int))
    positions = np.sort(rng.uniform(low, high, int(rng.integers(24, 65))))
    noise = float(rng.choice(NOISES))
    reading = Reading(rng, at, positions, times[frames], length, float(u.std()), noise)
    y = DEFECTS[defect](reading)
    if defect == "period":
        high = low + (1 + _PERIOD) * length
    domain = Domain((low,), (high,), 0.0, duration, (periodic,))
    x, t = np.repeat(positions, frames.size), np.tile(times[frames], positions.size)
    observations = Observations(x[:, None], t, y.ravel(), domain, noise=noise, source="drawn")
    return DefectProblem(seed, family, defect, truth, observations)
