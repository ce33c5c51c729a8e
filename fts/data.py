"""Problem -> Trajectory -> Observations: reference fields and the sparse samples taken of them (A.1).

Observations are samples (x_i, t_i, y_i) in general; where they fill a sensor x frame grid the grid is kept,
because it makes training and kernels fast. They save to one documented file, the shared observation record
of the paper.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import platformdirs
from jaxtyping import Float

from fts import files, solvers
from fts.domain import Domain, grid_points
from fts.problems import Problem, problem

# Change when a generator changes, so that cached trajectories of the old one are not used.
_GENERATOR_VERSION = 1
# Streams of the seeded generators: sensors, frames and noise never share draws.
_SENSORS, _FRAMES, _NOISE = 1, 2, 3
# Four points carry a cubic spline, the least any of the fields can use along an axis.
_LEAST_POINTS = 4


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
        _refuse_nonfinite("u", self.u)
        _refuse_disorder(self.t)

    @property
    def points(self) -> Float[np.ndarray, "n d"]:
        """All spatial grid points in C order."""
        return grid_points(self.axes)


@dataclass(frozen=True)
class SensorGrid:
    """Samples at every sensor for every frame; `axes` is kept when the sensors fill a full tensor grid."""

    sensors: Float[np.ndarray, "S d"]
    frames: Float[np.ndarray, " F"]
    values: Float[np.ndarray, "S F"]
    axes: tuple[np.ndarray, ...] | None

    @property
    def widest_gap(self) -> float:
        """The largest distance between neighboring sensors on a line."""
        if self.sensors.shape[1] != 1:
            raise ValueError(
                f"sensors in {self.sensors.shape[1]} dimensions have no order: look along one axis"
            )
        return float(np.diff(self.sensors[:, 0]).max())


@dataclass(frozen=True)
class Observations:
    """Sparse samples y_i = u(x_i, t_i) + noise; `problem` names the settings, None for a user's own data."""

    x: Float[np.ndarray, "n_x d"]  # one row per sample; equal lengths are checked below, with a remedy
    t: Float[np.ndarray, " n_t"]
    y: Float[np.ndarray, " n_y"]
    domain: Domain
    problem: str | None = None
    protocol: str | None = None
    seed: int | None = None
    noise: float = 0.0
    source: str = "user"

    def __post_init__(self) -> None:
        if not (self.x.ndim == 2 and self.x.shape[0] == self.t.size == self.y.size):
            raise ValueError(
                f"x {self.x.shape}, t {self.t.shape} and y {self.y.shape} must list the same samples: "
                "x is (n, d), t and y are (n,)"
            )
        if self.x.shape[1] != self.domain.dimension:
            raise ValueError(
                f"x has {self.x.shape[1]} columns, the domain {self.domain.dimension} axes: make them agree"
            )
        for name, values in (("x", self.x), ("t", self.t), ("y", self.y)):
            _refuse_nonfinite(name, values)
        self._refuse_outside()
        self._refuse_duplicates()
        for name, values in (("frames", np.unique(self.t)), ("positions", np.unique(self.x, axis=0))):
            if len(values) < _LEAST_POINTS:
                raise ValueError(
                    f"only {len(values)} distinct {name}: a field needs at least {_LEAST_POINTS}, add samples"
                )

    def __len__(self) -> int:
        return self.y.size

    @cached_property
    def grid(self) -> SensorGrid | None:
        """The sensor x frame grid the samples fill, or None when they are scattered."""
        sensors, row = np.unique(self.x, axis=0, return_inverse=True)
        frames, column = np.unique(self.t, return_inverse=True)
        if len(sensors) * len(frames) != len(self):
            return None
        values = np.empty((len(sensors), len(frames)))
        values[row.ravel(), column] = self.y  # no duplicates, so n pairs fill all n places
        return SensorGrid(sensors, frames, values, _tensor_axes(sensors))

    def save(self, path: str | Path) -> None:
        """Write the observation record: arrays x, t, y and a header with domain, problem, seed and noise."""
        header = {
            "domain": self.domain.as_dict(),
            "problem": self.problem,
            "protocol": self.protocol,
            "seed": self.seed,
            "noise": self.noise,
            "source": self.source,
        }
        files.save_arrays(Path(path), "observations", header, {"x": self.x, "t": self.t, "y": self.y})

    @staticmethod
    def load(path: str | Path) -> "Observations":
        """The observations saved at `path`, every byte verified."""
        remedy = "make it again with observations.save(path)"
        header, arrays = files.load_arrays(Path(path), "observations", remedy)
        domain = Domain.from_dict(header.pop("domain"))
        return Observations(arrays["x"], arrays["t"], arrays["y"], domain, **header)

    def _refuse_outside(self) -> None:
        domain = self.domain
        low, high = np.array((*domain.low, domain.t0)), np.array((*domain.high, domain.t1))
        points = np.column_stack([self.x, self.t])
        # Coordinates computed in another order may stand one rounding outside.
        slack = 1e-9 * (high - low)
        outside = np.any((points < low - slack) | (points > high + slack), axis=1)
        if outside.any():
            raise ValueError(
                f"sample {points[outside][0]} lies outside {low} to {high}: enlarge the domain or drop it"
            )

    def _refuse_duplicates(self) -> None:
        points, counts = np.unique(np.column_stack([self.x, self.t]), axis=0, return_counts=True)
        if counts.max(initial=1) > 1:
            raise ValueError(
                f"{points[counts > 1][0]} is sampled {counts.max()} times: average repeated measurements"
            )


def simulate(name: str, *, cache: bool = True) -> Trajectory:
    """The reference trajectory of a benchmark, generated once and then read from the user's cache."""
    entry = problem(name)
    path = _cache_path(entry)
    if cache and path.is_file():
        try:
            _, arrays = files.load_arrays(path, "trajectory", "it is generated anew")
            return _trajectory(entry, arrays["u"])
        except files.FileError:
            path.unlink(missing_ok=True)
    u = solvers.solve(entry)
    if cache:
        files.save_arrays(path, "trajectory", {"problem": name}, {"u": u})
    return _trajectory(entry, u)


def observe(trajectory: Trajectory, protocol: str, *, seed: int, noise: float = 0.0) -> Observations:
    """What a protocol keeps: "S20" 20 % of the sensors at all frames, "T20" frame 0 among 20 % of the frames.

    Fractions are nested for one seed. Noise is Gaussian, `noise` times the clean field's standard deviation.
    """
    kind, fraction = _parse_protocol(protocol)
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise {noise!r} is not a fraction of the field's deviation: give 0.1 for 10 %")
    points = trajectory.points
    sensors, frames = np.arange(len(points)), np.arange(trajectory.t.size)
    if kind == "S":
        count = _count(fraction, sensors.size, protocol)
        sensors = np.sort(np.random.default_rng([seed, _SENSORS]).permutation(sensors)[:count])
    else:
        count = _count(fraction, frames.size, protocol)
        later = np.random.default_rng([seed, _FRAMES]).permutation(frames[1:])[: count - 1]
        frames = np.sort(np.concatenate([[0], later]))
    u = trajectory.u.reshape(len(points), -1)
    y = u[np.ix_(sensors, frames)]
    if noise > 0:
        # Drawn on the whole grid, so that a denser subset contains the sparser one's very samples.
        draws = np.random.default_rng([seed, _NOISE]).standard_normal(u.shape)
        y = y + noise * u.std() * draws[np.ix_(sensors, frames)]
    return Observations(
        x=np.repeat(points[sensors], frames.size, axis=0),
        t=np.tile(trajectory.t[frames], sensors.size),
        y=y.ravel(),
        domain=trajectory.domain,
        problem=trajectory.problem,
        protocol=protocol,
        seed=seed,
        noise=float(noise),
        source=trajectory.source,
    )


def _parse_protocol(protocol: str) -> tuple[str, float]:
    match = re.fullmatch(r"([ST])(\d+(?:\.\d+)?)", protocol)
    percent = float(match[2]) if match else 0.0
    if not match or not 0 < percent <= 100:
        raise ValueError(
            f"unknown protocol {protocol!r}: write S20 (20 % of the sensors) or T20 (20 % of the frames)"
        )
    return match[1], percent / 100


def _count(fraction: float, n: int, protocol: str) -> int:
    # floor, on a product rounded first: 0.29 * 100 is 28.999999999999996.
    count = int(np.floor(round(fraction * n, 9)))
    if count < _LEAST_POINTS:
        raise ValueError(
            f"{protocol} keeps {count} of {n}: at least {_LEAST_POINTS} are needed, take a larger fraction"
        )
    return count


def _trajectory(entry: Problem, u: np.ndarray) -> Trajectory:
    return Trajectory(entry.axes, entry.frames, u, entry.domain, entry.name, "generated")


def _cache_path(entry: Problem) -> Path:
    key = files.content_key(
        [entry.name, entry.domain.as_dict(), entry.shape, entry.truth, _GENERATOR_VERSION]
    )
    return Path(platformdirs.user_cache_dir("fts")) / "trajectories" / f"{entry.name}-{key}.fts"


def _tensor_axes(sensors: np.ndarray) -> tuple[np.ndarray, ...] | None:
    axes = tuple(np.unique(column) for column in sensors.T)
    # np.unique sorts rows lexicographically, which is C order over the axes.
    return axes if np.prod([axis.size for axis in axes]) == len(sensors) else None


def _refuse_nonfinite(name: str, values: np.ndarray) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name}{list(place)} is {values[place]}: drop the sample or mend it before fitting")


def _refuse_disorder(t: np.ndarray) -> None:
    wrong = np.flatnonzero(np.diff(t) <= 0)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"times go from {t[i]} to {t[i + 1]} at frame {i + 1}: sort the frames, one per time"
        )
