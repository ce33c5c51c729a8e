"""Observations: sparse samples (x_i, t_i, y_i) of a field, checked once and saved as one documented file.

Where they fill a sensor x frame grid the grid is kept, because it makes training and kernels fast.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from fts import containers, validation
from fts.domain import Domain

# Four points carry a cubic spline, the least any of the fields can use along an axis.
LEAST_POINTS = 4
# Amplitudes within these: cubes of the values, and of their inverse, stay within float64.
_SMALLEST, _LARGEST = 1e-60, 1e60
# Shifts and factors that mix the bits of a number (splitmix64).
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
# Coordinates computed in another order may stand one rounding outside, as a fraction of the extent.
_SLACK = 1e-9
# Both ends of a periodic axis are one point. They disagree where they differ by more than so many standard
# deviations of noise, and by more than a sensor's bias, as a fraction of the values' deviation.
_DEVIATIONS, _BIAS = 3.0, 0.2
# Samples among which enough distinct frames and positions are looked for before all of them are.
_FIRST_LOOK = 1000
# Distinct rows are looked for among so many times the rows that would have to differ.
_AMPLE, _SEED = 4, 20_270
# What the header of a saved record holds.
_HEADER: dict[str, tuple[type, ...]] = {
    "domain": (dict,),
    "problem": (str, type(None)),
    "protocol": (str, type(None)),
    "seed": (int, type(None)),
    "noise": (float,),
    "source": (str,),
}


class InsufficientData(ValueError):
    """The samples carry no field to read an equation off: too few, or nothing in them varies."""


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
            raise ValueError("sensors in several dimensions have no order: look along one axis")
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
        validation.require_type(Domain, self.domain, "domain", "give fts.Domain((0,), (1,), 0, 1, (False,))")
        for name in ("x", "t", "y"):
            # Copies that cannot be written to: what the caller does to the arrays changes no samples.
            array = validation.real_array(name, getattr(self, name)).copy(order="K")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        self._check_labels()
        if not (self.x.ndim == 2 and self.t.ndim == 1 and self.x.shape[:1] == self.t.shape == self.y.shape):
            raise ValueError(
                f"x {self.x.shape}, t {self.t.shape} and y {self.y.shape} must list the same samples: "
                "x is (n, d), t and y are (n,)"
            )
        if self.x.shape[1] != self.domain.dimension:
            raise ValueError(
                f"x has {self.x.shape[1]} columns, the domain {self.domain.dimension} axes: make them agree"
            )
        for name, values in (("x", self.x), ("t", self.t), ("y", self.y)):
            require_finite(name, values)
        amplitude = require_amplitude(self.y)
        if 0 < amplitude < _SMALLEST:
            raise ValueError(f"values of {amplitude:.3g} leave float64 when multiplied: change their unit")
        require_inside(self.domain, self.x, self.t)
        self._refuse_duplicates()
        for name, columns in (("frames", (self.t,)), ("positions", tuple(self.x.T))):
            distinct = _count_distinct(columns)
            if distinct < LEAST_POINTS:
                raise InsufficientData(
                    f"only {distinct} distinct {name}: a field needs at least {LEAST_POINTS}, add samples"
                )
        for axis in np.flatnonzero(self.domain.periodic):
            self._refuse_unequal_ends(int(axis))

    def __len__(self) -> int:
        return self.y.size

    def __repr__(self) -> str:
        source = validation.shortened(repr(self.source))
        return f"<Observations: {len(self)} samples in {self.domain.as_text()}, source {source}>"

    @cached_property
    def grid(self) -> SensorGrid | None:
        """The sensor x frame grid the samples fill, or None when they are scattered."""
        if self.spans_more_than(len(self)):
            return None
        frames = np.unique(self.t)
        # Scattered samples mostly show it here, before their positions are sorted out.
        if len(self) % len(frames) or len(self) < LEAST_POINTS * len(frames):
            return None
        sensors, row = unique_rows(self.x)
        if len(sensors) * len(frames) != len(self):
            return None
        values = np.empty((len(sensors), len(frames)))
        values[row, np.searchsorted(frames, self.t)] = self.y  # no duplicates, so n pairs fill all n places
        return SensorGrid(sensors, frames, values, tensor_axes(sensors))

    def spans_more_than(self, count: int) -> bool:
        """Whether some thousand samples show that distinct positions x frames exceed the count.

        True is certain, for a part has no more of either than the whole; False is not.
        """
        rows = _some_rows(len(self), float(np.sqrt(count)))
        return _distinct_rows(self.x[rows]) * _distinct_rows(self.t[rows, None]) > count

    def save(self, path: str | Path) -> None:
        """Write the observation record: arrays x, t, y and a header with domain, problem, seed and noise."""
        containers.write_atomic(Path(path), self.packed())

    def packed(self) -> bytes:
        """The record as its file holds it."""
        header = {name: getattr(self, name) for name in _HEADER} | {"domain": self.domain.as_dict()}
        return containers.pack_arrays("observations", header, {"x": self.x, "t": self.t, "y": self.y})

    @staticmethod
    def load(path: str | Path) -> "Observations":
        """The observations saved at `path`, every byte verified."""
        remedy = "make it again with observations.save(path)"
        header, arrays = containers.load_arrays(Path(path), "observations", remedy)
        with containers.file_errors(Path(path), remedy):
            return Observations.from_file(header, arrays)

    @staticmethod
    def from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "Observations":
        """The observations a file's header and arrays describe."""
        containers.require_entries(header, _HEADER)
        if set(arrays) != {"x", "t", "y"} or any(array.dtype != float for array in arrays.values()):
            raise containers.FileError(f"holds arrays {sorted(arrays)} instead of x, t, y in float64")
        labels = {name: header[name] for name in _HEADER if name != "domain"}
        domain = Domain.from_dict(header["domain"])
        return Observations(arrays["x"], arrays["t"], arrays["y"], domain, **labels)

    def _check_labels(self) -> None:
        remedy = "leave it out, or give a text"
        for name, kinds in (("problem", (str, type(None))), ("protocol", (str, type(None))), ("source", str)):
            validation.require_type(kinds, getattr(self, name), name, remedy)
        if self.seed is not None:
            validation.require_type((int, np.integer), self.seed, "seed", "give a whole number or None")
            object.__setattr__(self, "seed", int(self.seed))
        validation.require_type((int, float, np.number), self.noise, "noise", "give a number")
        object.__setattr__(self, "noise", float(self.noise))

    def _refuse_duplicates(self) -> None:
        columns = (*self.x.T, self.t)
        codes = row_codes(columns)
        ordered = np.sort(codes)
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        if not again.size:
            return
        # Equal codes are equal points but for one pair in 2^64: these few are compared as they are.
        suspects = np.column_stack([column[np.isin(codes, again)] for column in columns])
        points, counts = np.unique(suspects, axis=0, return_counts=True)
        if counts.max() > 1:
            point = points[counts > 1][0]
            raise ValueError(f"{point} is sampled {counts.max()} times: average repeated measurements")

    def _refuse_unequal_ends(self, axis: int) -> None:
        """An error where samples of one point of a ring, taken at both its ends, disagree."""
        low, high, position = self.domain.low[axis], self.domain.high[axis], self.x[:, axis]
        slack = _SLACK * (high - low)
        first, last = np.flatnonzero(position <= low + slack), np.flatnonzero(position >= high - slack)
        if min(len(first), len(last)) < LEAST_POINTS:
            return
        columns = (*self.x.T, self.t)
        codes = row_codes((*columns[:axis], *columns[axis + 1 :]))
        _, i, j = np.intersect1d(codes[first], codes[last], return_indices=True)
        if len(i) < LEAST_POINTS:
            return
        gap = float(np.sqrt(np.mean((self.y[last[j]] - self.y[first[i]]) ** 2)))
        spread = float(self.y.std())
        if gap <= _BIAS * spread:
            return
        noise = min(_noise_along(columns, line, self.y) for line in (axis, len(columns) - 1))
        if gap > _DEVIATIONS * np.sqrt(2) * noise:
            letter = "xyz"[axis]
            raise ValueError(
                f"samples at {letter} = {low:g} and {letter} = {high:g}, one point of a periodic axis, "
                f"differ by {gap:.3g} where all deviate by {spread:.3g}: give the axis as not periodic, "
                "or leave one end out"
            )


def _noise_along(columns: tuple[np.ndarray, ...], line: int, y: np.ndarray) -> float:
    """An upper bound of the noise: what linear interpolation between neighbors along a coordinate leaves."""
    codes = row_codes((*columns[:line], *columns[line + 1 :]))
    order = np.lexsort((columns[line], codes))
    c, y, codes = columns[line][order], y[order], codes[order]
    inside = codes[2:] == codes[:-2]
    if not inside.any():
        return float("inf")
    before, here, after = (c[i : len(c) - 2 + i][inside] for i in range(3))
    weight = (here - before) / (after - before)
    left, middle, right = (y[i : len(y) - 2 + i][inside] for i in range(3))
    rest = middle - (1 - weight) * left - weight * right
    return float(np.sqrt(np.mean(rest**2 / (1 + weight**2 + (1 - weight) ** 2))))


def row_codes(columns: tuple[np.ndarray, ...]) -> np.ndarray:
    """A 64-bit number per row, equal for equal rows: sorting it takes a tenth of sorting the rows."""
    codes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        # Adding zero turns -0.0, equal to 0.0 in another writing, into it.
        codes ^= np.ascontiguousarray(column + 0.0).view(np.uint64)
        # Mixed as in splitmix64, so that the next column cannot undo what this one did.
        for shift, factor in _MIXING:
            codes ^= codes >> shift
            codes *= factor
        codes ^= codes >> np.uint64(31)
    return codes


def _count_distinct(columns: tuple[np.ndarray, ...]) -> int:
    """How many rows differ; beyond the least number needed, only that they are at least so many."""
    few = len(np.unique(np.column_stack([column[:_FIRST_LOOK] for column in columns]), axis=0))
    if few >= LEAST_POINTS or len(columns[0]) <= _FIRST_LOOK:
        return few
    return len(np.unique(row_codes(columns)))


def has_more_rows_than(most: float, x: Float[np.ndarray, "n d"]) -> bool:
    """Whether more than `most` rows differ; all are compared only where a part leaves it open."""
    rows = _some_rows(len(x), most)
    if _distinct_rows(x[rows]) > most:
        return True
    return len(rows) < len(x) and len(unique_rows(x)[0]) > most


def _some_rows(count: int, most: float) -> np.ndarray:
    """Rows at random, the same every time: ample to show more than `most` distinct ones, or all."""
    size = _FIRST_LOOK + round(_AMPLE * most)
    return np.arange(count) if size >= count else np.random.default_rng(_SEED).integers(count, size=size)


def _distinct_rows(x: Float[np.ndarray, "n d"]) -> int:
    return len(np.unique(x, axis=0))


def unique_rows(x: Float[np.ndarray, "n d"]) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows in lexicographic order, and which of them each row is."""
    code = np.zeros(len(x), dtype=np.int64)
    for values in x.T:
        distinct = np.unique(values)
        code = code * len(distinct) + np.searchsorted(distinct, values)
        # Numbered anew after every axis, so that the codes stay below the square of the number of rows.
        code = np.searchsorted(np.unique(code), code)
    first = np.empty(int(code.max()) + 1, dtype=np.int64)
    first[code] = np.arange(len(x))
    return x[first], code


def tensor_axes(sensors: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """The axes of the tensor grid that the distinct positions fill, or None."""
    axes = tuple(np.unique(column) for column in sensors.T)
    # np.unique sorts rows lexicographically, which is C order over the axes.
    return axes if np.prod([axis.size for axis in axes]) == len(sensors) else None


def require_finite(name: str, values: np.ndarray) -> None:
    """A ValueError with the first value that is not a finite number."""
    bad = ~np.isfinite(values)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        what = f"{name}{list(index)} is {values[index]}"
        raise ValueError(f"{what}: drop the sample, correct it or leave its cell blank")


def require_amplitude(y: Float[np.ndarray, " n"]) -> float:
    """The largest absolute value; a ValueError where its cube would leave float64."""
    amplitude = float(max(y.max(initial=0.0), -y.min(initial=0.0)))
    if amplitude > _LARGEST:
        raise ValueError(f"values of {amplitude:.3g} leave float64 when multiplied: change their unit")
    return amplitude


def require_inside(domain: Domain, x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"]) -> None:
    """A ValueError with the first sample that lies outside of the domain."""
    for values, (low, high, _) in zip((*x.T, t), domain.axes, strict=True):
        slack = _SLACK * (high - low)
        if values.size and (values.min() < low - slack or values.max() > high + slack):
            i = int(np.argmax((values < low - slack) | (values > high + slack)))
            sample, box = np.array((*x[i], t[i])), domain.as_text()
            raise ValueError(f"sample {sample} lies outside {box}: enlarge the domain or drop it")
