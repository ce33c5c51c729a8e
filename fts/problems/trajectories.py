"""Values on a grid -> values between its points: what a probe reads that is not where the grid is.

Along an axis that closes on itself by the trigonometric interpolant, to rounding for a field the grid
resolves; along others by splines of degree seven, whose error tests/test_data.py measures.

A protocol's text -> which samples it takes: sensors, frames, random points, drifting probes, gaps (A.1).

    S20     20 % of the sensors, at all frames          R20     20 % of all points (x, t), at random
    T20     20 % of the frames, at all sensors          N500    500 points at random
    S20-30  the same with 30 % of its samples missing   D20     20 % as many probes as sensors, drifting

For one seed a larger amount contains the smaller one's samples, and fewer gaps contain those of more gaps.

Problem -> Trajectory -> Observations: reference fields and the sparse samples taken of them (A.1).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import platformdirs
from jaxtyping import Float, Int
from scipy.interpolate import make_interp_spline

from fts import containers, validation
from fts.domain import Domain, grid_points
from fts.observations import LEAST_POINTS, Observations, require_finite
from fts.problems import solvers
from fts.problems.problems import Problem, problem

_DEGREE = 7


def between(
    axes: Sequence[np.ndarray],
    periods: Sequence[float | None],
    u: Float[np.ndarray, "..."],
    x: Float[np.ndarray, "n d"],
    frame: Int[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """u(x_i) in frame_i; `u` is shaped (nx, [ny, [nz,]] nt), a period is None where an axis has ends."""
    interpolants = [_rows(axis, period) for axis, period in zip(axes, periods, strict=True)]
    values = np.empty(len(x))
    order = np.argsort(frame, kind="stable")
    # Frame by frame: rows for every sample at once would be as long as the samples times the grid.
    for here in np.split(order, np.flatnonzero(np.diff(frame[order])) + 1):
        first, *rest = (rows(points) for rows, points in zip(interpolants, x[here].T, strict=True))
        part = np.tensordot(first, u[..., frame[here[0]]], 1)
        for row in rest:
            part = np.einsum("nk,nk...->n...", row, part)
        values[here] = part
    return values


def _rows(axis: np.ndarray, period: float | None) -> Callable[[np.ndarray], np.ndarray]:
    """Points -> the weights of the grid's values at each of them."""
    if period is not None:
        return lambda points: _trigonometric(axis, period, points)
    return make_interp_spline(axis, np.eye(axis.size), min(_DEGREE, (axis.size - 2) | 1))


def _trigonometric(axis: np.ndarray, period: float, points: np.ndarray) -> np.ndarray:
    """Barycentric weights (-1)^j cot or csc of half the angle to grid point j, which add up to one."""
    # Sines and cosines of differences from those of the points: a hundredth as many to compute.
    at, of = np.pi / period * points[:, None], np.pi / period * axis
    sine = np.sin(at) * np.cos(of) - np.cos(at) * np.sin(of)
    hit = np.abs(sine) < 1e-14
    even = axis.size % 2 == 0
    factor = np.cos(at) * np.cos(of) + np.sin(at) * np.sin(of) if even else 1.0
    weights = np.where(np.arange(axis.size) % 2, -1.0, 1.0) * factor / np.where(hit, 1.0, sine)
    weights /= weights.sum(axis=1, keepdims=True)
    on_grid = hit.any(axis=1)
    weights[on_grid] = hit[on_grid]
    return weights


_WRITE = (
    "write S20 (20 % of the sensors), T20 (of the frames), R20 (of all points, at random), "
    "N500 (500 points), D20 (drifting probes), or S20-30 (30 % of the samples missing)"
)
# Streams of the seeded generators: choices of different kinds, and noise, never share draws.
_SENSORS, _FRAMES, NOISE, _POINTS, _GAPS, _PROBES = 1, 2, 3, 4, 5, 6
# A probe drifts by at most this share of an axis while the record lasts.
_DRIFT = 0.1


@dataclass(frozen=True)
class Protocol:
    """What is taken: its kind, a fraction (for N a number of samples), and the share that is missing."""

    text: str
    kind: str
    amount: float
    missing: float


def parse(text: str) -> Protocol:
    """The protocol a text means; an unknown one is answered with those that are known."""
    validation.require_type(str, text, "protocol", _WRITE)
    match = re.fullmatch(r"([STRD])(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?|(N)(\d+)", text)
    if not match:
        raise ValueError(f"unknown protocol {text!r}: {_WRITE}")
    if match[4]:
        return Protocol(text, "N", float(match[5]), 0.0)
    percent, missing = float(match[2]), float(match[3] or 0)
    if not (0 < percent <= 100 and missing < 100) or (missing and match[1] == "R"):
        raise ValueError(f"unknown protocol {text!r}: {_WRITE}")
    return Protocol(text, match[1], percent / 100, missing / 100)


def places(
    protocol: Protocol, points: int, frames: int, seed: int
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Which of the spatial points (or probes) are sampled, and in which frames: one pair per sample."""
    if protocol.kind in "RN":
        every = points * frames
        count = int(protocol.amount) if protocol.kind == "N" else _count(protocol, every)
        if not LEAST_POINTS <= count <= every:
            raise ValueError(
                f"{protocol.text} asks for {count} of {every} points: take {LEAST_POINTS} to all of them"
            )
        chosen = np.sort(np.random.default_rng([seed, _POINTS]).permutation(every)[:count])
        return np.divmod(chosen, frames)
    rows, columns = np.arange(points), np.arange(frames)
    if protocol.kind == "S":
        order = np.random.default_rng([seed, _SENSORS]).permutation(rows)
        rows = np.sort(order[: _count(protocol, points)])
    elif protocol.kind == "D":
        rows = rows[: _count(protocol, points)]
    else:
        later = np.random.default_rng([seed, _FRAMES]).permutation(columns[1:])
        columns = np.sort(np.concatenate([[0], later[: _count(protocol, frames) - 1]]))
    row, column = np.repeat(rows, columns.size), np.tile(columns, rows.size)
    if protocol.missing:
        # Drawn on the whole grid, as the noise is, so that a denser subset has the sparser one's gaps.
        kept = np.random.default_rng([seed, _GAPS]).random((points, frames))[row, column] >= protocol.missing
        row, column = row[kept], column[kept]
    return row, column


def drift(
    domain: Domain, t: Float[np.ndarray, " nt"], probes: int, seed: int
) -> Float[np.ndarray, "probes nt d"]:
    """Where probes are: each starts anywhere and moves steadily, at most a tenth of an axis in the record.

    An axis that closes on itself is gone round; at an end a probe turns back.
    """
    rng = np.random.default_rng([seed, _PROBES])
    # One row per probe, so that the first probes of many are the probes of few.
    drawn = rng.random((probes, 2, domain.dimension))
    elapsed = (t - domain.t0) / domain.extents[-1]
    unit = drawn[:, None, 0] + _DRIFT * (2 * drawn[:, None, 1] - 1) * elapsed[:, None]
    turned = 1 - np.abs(1 - unit % 2)
    unit = np.where(domain.periodic, unit % 1, turned)
    return np.array(domain.low) + np.array(domain.extents[:-1]) * unit


def _count(protocol: Protocol, n: int) -> int:
    # floor, on a product rounded first: 0.29 * 100 is 28.999999999999996.
    count = int(np.floor(round(protocol.amount * n, 9)))
    if count < LEAST_POINTS:
        raise ValueError(
            f"{protocol.text} keeps {count} of {n}: at least {LEAST_POINTS} are needed, "
            "take a larger fraction"
        )
    return count


# Change when a generator changes, so that cached trajectories of the old one are not used.
_GENERATOR_VERSION = 1


@dataclass(frozen=True)
class Trajectory:
    """A reference field on its grid; truth, for scoring and plots only."""

    axes: tuple[np.ndarray, ...]
    t: Float[np.ndarray, " nt"]
    u: Float[np.ndarray, "..."]  # (nx, [ny], nt)
    domain: Domain
    problem: str
    source: str  # "generated", or the released file's name and sha256

    def __post_init__(self) -> None:
        shape = (*(axis.size for axis in self.axes), self.t.size)
        if self.u.shape != shape:
            raise ValueError(f"u has shape {self.u.shape} but the axes say {shape}: order it (x, [y], t)")
        require_finite("u", self.u)
        _refuse_disorder(self.t)

    @property
    def points(self) -> Float[np.ndarray, "n d"]:
        """All spatial grid points in C order."""
        return grid_points(self.axes)


@validation.explain_signature_errors
def simulate(name: str, *, cache: bool = True) -> Trajectory:
    """The reference trajectory of a benchmark, generated once and then read from the user's cache."""
    entry = problem(name)
    path = _cache_path(entry)
    if cache and path.is_file():
        try:
            _, arrays = containers.load_arrays(path, "trajectory", "it is generated anew")
            return _trajectory(entry, arrays["u"])
        except (ValueError, KeyError, OSError):  # FileError is a ValueError; so is a grid of another shape
            containers.remove_from_cache(path)
    u = solvers.solve(entry)
    if cache:
        containers.write_to_cache(
            path, lambda path: containers.save_arrays(path, "trajectory", {"problem": name}, {"u": u})
        )
    return _trajectory(entry, u)


@validation.explain_signature_errors
def observe(trajectory: Trajectory, protocol: str, *, seed: int, noise: float = 0.0) -> Observations:
    """What a protocol takes: "S20" 20 % of the sensors at all frames, "T20" frame 0 among 20 % of the frames.

    "R20" is 20 % of all points at random, "N500" 500 of them, "D20" probes that drift, as many as S20 has
    sensors; "S20-30" is S20 with 30 % of its samples missing. Amounts are nested for one seed. Noise is
    Gaussian, `noise` times the clean field's standard deviation.
    """
    validation.require_type(Trajectory, trajectory, "trajectory", "give what fts.simulate('ks') returns")
    validation.require_type(int, seed, "seed", "give a whole number, so that the draw can be repeated")
    validation.require_type((int, float), noise, "noise", "give 0.1 for 10 % of the field's deviation")
    if seed < 0:
        raise ValueError(f"seed {seed}: give zero or a positive number")
    kept = parse(protocol)
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise {noise!r} is not a fraction of the field's deviation: give 0.1 for 10 %")
    points = trajectory.points
    row, frame = places(kept, len(points), trajectory.t.size, seed)
    if kept.kind == "D":
        x, y = _probed(trajectory, row, frame, seed)
    else:
        x, y = points[row], trajectory.u.reshape(len(points), -1)[row, frame]
    if noise > 0:
        # Drawn on the whole grid, so that a denser subset contains the sparser one's very samples.
        draws = np.random.default_rng([seed, NOISE]).standard_normal((len(points), trajectory.t.size))
        y = y + noise * trajectory.u.std() * draws[row, frame]
    return Observations(
        x=x,
        t=trajectory.t[frame],
        y=y,
        domain=trajectory.domain,
        problem=trajectory.problem,
        protocol=protocol,
        seed=seed,
        noise=float(noise),
        source=trajectory.source,
    )


def _probed(
    trajectory: Trajectory, probe: np.ndarray, frame: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of drifting probes, and what the trajectory is there, between the points of its grid."""
    domain = trajectory.domain
    x = drift(domain, trajectory.t, int(probe.max()) + 1, seed)[probe, frame]
    periods = [
        extent if closed else None
        for extent, closed in zip(domain.extents[:-1], domain.periodic, strict=True)
    ]
    return x, between(trajectory.axes, periods, trajectory.u, x, frame)


def _trajectory(entry: Problem, u: np.ndarray) -> Trajectory:
    return Trajectory(entry.axes, entry.frames, u, entry.domain, entry.name, "generated")


def _cache_path(entry: Problem) -> Path:
    key = containers.content_key(
        [entry.name, entry.domain.as_dict(), entry.shape, entry.truth, _GENERATOR_VERSION]
    )
    return Path(platformdirs.user_cache_dir("fts")) / "trajectories" / f"{entry.name}-{key}.fts"


def _refuse_disorder(t: np.ndarray) -> None:
    wrong = np.flatnonzero(np.diff(t) <= 0)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"times go from {t[i]} to {t[i + 1]} at frame {i + 1}: sort the frames, one per time"
        )
