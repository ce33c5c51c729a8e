"""Error of a Gaussian process at samples left out, in the ways in which they are missing.

With Q = (K + s)^-1 and a = Q y the residual of a group S left out is (Q_SS)^-1 a_S, and its variance
(Q_SS)^-1: every group is left out in turn, and nothing is solved again. Where there are too many samples to
invert a matrix, a tenth of the groups is held out and the rest is solved for.

Groups are whole sensors, or tiles of space that a probe would have passed; whole frames; single samples.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import get_lapack_funcs

from fts.kernel.covariance import Kernel, SampleAxis, Spectrum, precision
from fts.kernel.normal_equations import (
    FourierSums,
    PartialGrid,
    SampleLayout,
    assemble,
    draw_error,
    mean_function,
)
from fts.observations import Observations, unique_rows

MOST_DENSE = 650  # samples up to which a dense inverse is affordable; it judges better than a tenth left out

_FAILED = 1e12  # the error where rounding leaves nothing to invert
_SHARE = 0.1  # of the groups held out
_ACCURACY, _LOOSEST, _STEPS = 0.03, 1e-2, 150  # of the solves, relative to the least error
_TIGHTEST, _TIGHTEST_ON_GRID = 1e-6, 1e-8
_PREDICTED = 10_000  # samples predicted at most
_DRAWS, _CALIBRATED = 8, 400  # draws, and samples, that say what error the process expects
_COMMON = 8  # samples per frame, at least, for probes to share a clock
_STAYING = 0.5  # correlation of how many samples a tile of space has now and next, from which probes stay
_CACHED = 1 << 13  # numbers per array of a sum over pairs of points: its temporaries stay in the cache

Groups = Int[np.ndarray, " n"]  # the group of each sample
Error = Callable[[tuple[Kernel, ...], float], float]


def inverse_and_determinant(matrix: Float[np.ndarray, "n n"]) -> tuple[np.ndarray, float] | None:
    """Inverse and logarithm of the determinant of a symmetric matrix; None where it is not positive."""
    # LAPACK itself: half of what solving for the identity takes, and no exception on the way of a search.
    factorize, invert = get_lapack_funcs(("potrf", "potri"), (matrix,))
    factor, failed = factorize(matrix, lower=1)
    if failed:
        return None
    logarithm = 2 * float(np.sum(np.log(np.diag(factor))))
    lower, _ = invert(factor, lower=1)
    return np.tril(lower) + np.tril(lower, -1).T, logarithm


def leave_group_out(
    matrix: Float[np.ndarray, "n n"],
    nugget: float,
    values: Float[np.ndarray, " n"],
    ways: Sequence[list[np.ndarray] | None],
) -> list[tuple[float, float]]:
    """Mean square of the residuals of groups left out, and what the process expects of it, per way.

    A way is a list of the groups' rows, or None for every sample by itself.
    """
    size = len(matrix)
    solved = inverse_and_determinant(matrix + max(nugget, float(np.finfo(float).eps) * size) * np.eye(size))
    if solved is None:
        return [(_FAILED, 1.0)] * len(ways)
    inverse = solved[0]
    weights = inverse @ values
    return [_leave_one_way(inverse, weights, way) for way in ways]


def rows_of_groups(group: Groups) -> list[Int[np.ndarray, " k"]]:
    """The rows of each group."""
    return [np.flatnonzero(group == each) for each in np.unique(group)]


def leave_group_out_of_grid(
    spectra: Sequence[Spectrum],
    rotated: Float[np.ndarray, "..."],
    nugget: float,
    axis: int,
    points: SampleAxis,
    bound: float = np.inf,
    share: int = 1,
) -> tuple[float, float]:
    """Mean square error at the samples of one point of `axis`, left out alone and with its neighbour.

    In the eigenbasis of the other axes the block of Q that belongs to a point j is diagonal, D_j, so that its
    residual is a_j / D_j; a pair needs 2 x 2 solves. Where the first error exceeds `bound` the second is
    infinite. With a `share` only one of so many points counts, a lower bound of the first error.
    """
    weights = precision(spectra, nugget)
    if points.circulant:
        return _leave_group_out_of_circle(np.moveaxis(weights, axis, 0), np.moveaxis(rotated, axis, 0))
    v = spectra[axis].vectors
    a, d = _blocks(v[::share], rotated * weights, weights, axis)
    alone = float(np.sum((a / d) ** 2)) / rotated.size
    if share > 1 or alone > bound:
        return alone, np.inf
    first, second = points.neighbours.T
    c = np.tensordot(v[first] * v[second], weights, (1, axis))
    squares = np.empty_like(c)
    step = max(1, _CACHED * len(c) // c.size)
    for rows in (slice(i, i + step) for i in range(0, len(c), step)):
        i, j = first[rows], second[rows]
        squares[rows] = _squares_of_pairs(a[i], a[j], d[i], d[j], c[rows])
    return alone, float(np.mean(squares) / 2)


def _squares_of_pairs(
    a: np.ndarray, b: np.ndarray, d: np.ndarray, e: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """Squared residuals of pairs left out: blocks [[d, c], [c, e]] of Q, right-hand sides (a, b)."""
    inverse = _inverse(d * e, c)
    return ((e * a - c * b) * inverse) ** 2 + ((d * b - c * a) * inverse) ** 2


def implied_variance(
    spectra: Sequence[Spectrum], weights: Float[np.ndarray, "..."], nugget: float, axis: int
) -> float:
    """Prior variance for which the same residuals, of points left out alone, are as large as expected."""
    a, d = _blocks(spectra[axis].vectors, weights, precision(spectra, nugget), axis)
    return float(np.mean((a / d) ** 2) / np.mean(1 / d))


class CrossValidation(ABC):
    """Mean square error at samples left out, over all ways of grouping them."""

    def __init__(self, step: Callable[[], object]) -> None:
        self.step = step  # called once per evaluation
        self._known: dict[tuple[tuple[Kernel, ...], float], Any] = {}

    def __call__(self, kernels: tuple[Kernel, ...], nugget: float) -> float:
        """The sum over the ways."""
        return sum(self.errors(kernels, nugget))

    @abstractmethod
    def errors(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        """One mean square per way."""

    def _measured(self, kernels: tuple[Kernel, ...], nugget: float) -> Any:
        """What `_measure` returns, computed once. No `functools.cache`: its cycle would keep the samples."""
        key = (kernels, nugget)
        if key not in self._known:
            self.step()
            self._known[key] = self._measure(kernels, nugget)
        return self._known[key]

    @abstractmethod
    def _measure(self, kernels: tuple[Kernel, ...], nugget: float) -> Any: ...


class LeaveGroupOut(CrossValidation):
    """Every group of a few hundred samples left out in turn, from one dense inverse."""

    def __init__(
        self,
        axes: Sequence[SampleAxis],  # with one point per sample
        values: Float[np.ndarray, " n"],
        ways: Sequence[Groups | None],
        step: Callable[[], object],
    ) -> None:
        super().__init__(step)
        self.axes, self.values = axes, values
        self.ways = [None if way is None else rows_of_groups(way) for way in ways]

    def errors(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        """One mean square per way."""
        return tuple(error for error, _ in self._measured(kernels, nugget))

    def calibration(
        self, kernels: tuple[Kernel, ...], nugget: float, rng: np.random.Generator
    ) -> Callable[[], float]:
        """Prior variance for which samples left out in the worst way err as much as the process expects."""
        error, expected = max(self._measured(kernels, nugget))
        return lambda: error / expected

    def _measure(self, kernels: tuple[Kernel, ...], nugget: float) -> list[tuple[float, float]]:
        pairs = zip(self.axes, kernels, strict=True)
        matrix = prod(kernel.covariance(axis.distances) for axis, kernel in pairs)
        return leave_group_out(np.asarray(matrix), nugget, self.values, self.ways)


class HoldOut(CrossValidation):
    """Scattered samples of a tenth of the groups held out, in every way; the rest is solved for."""

    def __init__(
        self,
        observations: Observations,
        values: Float[np.ndarray, " n"],
        grouping: str,
        ways: Sequence[Groups | None],
        rng: np.random.Generator,
        step: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(step)
        self.observations, self.values, self.grouping = observations, values, grouping
        self.least = 1.0  # the least error so far, which says how accurate solves must be
        self.masks = held_out(ways, len(values), rng)
        self._sums = [_sums_without(observations, values, grouping, mask) for mask in self.masks]

    def errors(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        """One mean square per way."""
        return self._measured(kernels, nugget)

    def calibration(
        self, kernels: tuple[Kernel, ...], nugget: float, rng: np.random.Generator
    ) -> Callable[[], float]:
        """Least prior variance for which what is left out errs no more than expected, in any of the ways.

        Where kernels and nugget are right all ways imply the same. It takes as long as the field and is drawn
        when first needed, which a field alone never does; until then masks are kept, not the sums.
        """
        errors = self.errors(kernels, nugget)
        o, values, grouping, masks = self.observations, self.values, self.grouping, self.masks

        def implied(error: float, mask: np.ndarray) -> float:
            sums, rows = _sums_without(o, values, grouping, mask), _spread(mask, _CALIBRATED)
            system = assemble(sums, kernels, nugget)
            squares = [draw_error(sums, system, o.x[rows], o.t[rows], rng) ** 2 for _ in range(_DRAWS)]
            return error / (float(np.mean(squares)) + nugget)

        return cache(lambda: max(map(implied, errors, masks)))

    @property
    def layout(self) -> SampleLayout:
        """How the samples that stay lie, in the first way."""
        return self._sums[0].layout

    def _measure(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        errors = []
        for sums, mask in zip(self._sums, self.masks, strict=True):
            system = assemble(sums, kernels, nugget)
            solution = system.solve(system.right, tolerance=_tolerance(self.least, _TIGHTEST), most=_STEPS)
            rows = _spread(mask, _PREDICTED)
            mean = mean_function(system, solution.z)
            predicted = mean.at(self.observations.x[rows], self.observations.t[rows])
            errors.append(float(np.mean((predicted - self.values[rows]) ** 2)))
        self.least = min(self.least, sum(errors))
        return tuple(errors)


class HoldOutOfGrid(CrossValidation):
    """Samples of a grid with holes: a tenth of the points of each axis held out, one way per axis."""

    def __init__(self, samples: PartialGrid, rng: np.random.Generator, step: Callable[[], object]) -> None:
        super().__init__(step)
        self.samples, self.least = samples, 1.0
        self.masks = []
        for mask in held_out(np.nonzero(samples.known), int(samples.known.sum()), rng):
            on_grid = np.zeros(samples.known.shape, dtype=bool)
            on_grid[samples.known] = mask
            self.masks.append(on_grid)

    def errors(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        """One mean square per axis; measured anew every time, so that the last is the most accurate."""
        self.step()
        return self._measure(kernels, nugget)

    def _measure(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        tolerance, values = _tolerance(self.least, _TIGHTEST_ON_GRID), self.samples.values
        errors = []
        for mask in self.masks:
            system = self.samples.system(kernels, nugget, self.samples.known & ~mask)
            mean = system.at_samples(system.solve(values, tolerance, _STEPS).z)
            errors.append(float(np.mean((mean - values)[mask] ** 2)))
        self.least = min(self.least, sum(errors))
        return tuple(errors)


def ways_of_grouping(observations: Observations, grouping: str) -> list[Groups | None]:
    """Ways of leaving samples out, as the group of each sample; None for each by itself."""
    if grouping == "sensors":
        return [unique_rows(observations.x)[1], None]
    if grouping == "frames":
        frames, frame = np.unique(observations.t, return_inverse=True)
        return [_tiles(observations, len(frames)), frame]
    return [None]


def tracks(observations: Observations) -> Groups | None:
    """The tile of space of each sample where probes stay in such tiles for a while; None where none do.

    A sample on a track is predicted by its neighbours on it down to the noise, whatever the field does
    between the tracks; what a missing probe would leave open is a tile at all times.
    """
    o = observations
    frames, moment = np.unique(o.t, return_inverse=True)
    if len(frames) * _COMMON > len(o):  # clocks of their own
        steps = round(len(o) ** (1 / (1 + o.domain.dimension)))
        moment = np.minimum((o.t - o.domain.t0) / o.domain.extents[-1] * steps, steps - 1).astype(int)
    count = int(moment.max()) + 1
    tile = _tiles(o, count)
    held = np.bincount(tile * count + moment, minlength=(int(tile.max()) + 1) * count).reshape(-1, count)
    now, following = held[:, :-1].ravel(), held[:, 1:].ravel()
    if not (now.std() and following.std()):
        return None
    return tile if np.corrcoef(now, following)[0, 1] > _STAYING else None


def held_out(
    ways: Sequence[Groups | None], count: int, rng: np.random.Generator
) -> list[Bool[np.ndarray, " n"]]:
    """The samples of a share of the groups of each way, of at least one."""
    masks = []
    for group in ways:
        if group is None:
            masks.append(rng.random(count) < _SHARE)
            continue
        every = np.unique(group)
        masks.append(np.isin(group, rng.choice(every, max(1, round(_SHARE * len(every))), replace=False)))
    return masks


def _leave_one_way(
    inverse: np.ndarray, weights: np.ndarray, groups: list[np.ndarray] | None
) -> tuple[float, float]:
    if groups is None:
        diagonal = np.diag(inverse)
        return float(np.mean((weights / diagonal) ** 2)), float(np.mean(1 / diagonal))
    error, expected = 0.0, 0.0
    for group in groups:
        block = np.linalg.inv(inverse[np.ix_(group, group)])
        error += float(np.sum((block @ weights[group]) ** 2))
        expected += float(np.trace(block))
    return error / len(weights), expected / len(weights)


def _blocks(
    vectors: np.ndarray, rotated: np.ndarray, weights: np.ndarray, axis: int
) -> tuple[np.ndarray, np.ndarray]:
    """a and the diagonal of Q for every point of the axis, in the eigenbasis of the others."""
    return np.tensordot(vectors, rotated, (1, axis)), np.tensordot(vectors**2, weights, (1, axis))


def _leave_group_out_of_circle(
    weights: Float[np.ndarray, "n ..."], rotated: Float[np.ndarray, "n ..."]
) -> tuple[float, float]:
    """The same on a circle, whose points are alike: D and C are means over modes, sums follow Parseval."""
    n = len(weights)
    shift = np.cos(2 * np.pi / n * ((np.arange(n) + 1) // 2))  # of each real mode between neighbours
    d = np.mean(weights, axis=0)
    c = np.tensordot(shift, weights, 1) / n
    power = (rotated * weights) ** 2
    square, lagged = np.mean(power, axis=0), np.tensordot(shift, power, 1) / n
    pair = ((d**2 + c**2) * square - 2 * d * c * lagged) * _inverse(d**2, c) ** 2
    return float(np.mean(square / d**2)), float(np.mean(pair))


def _inverse(product_of_diagonals: np.ndarray, c: np.ndarray) -> np.ndarray:
    # The determinant of a 2 x 2 block is positive, but for rounding.
    return 1 / np.maximum(product_of_diagonals - c**2, 1e-12 * product_of_diagonals)


def _tolerance(least: float, tightest: float) -> float:
    """Accuracy of the solves: finer than the least error found."""
    return float(np.clip(_ACCURACY * np.sqrt(least), tightest, _LOOSEST))


def _spread(mask: Bool[np.ndarray, " n"], most: int) -> Int[np.ndarray, " k"]:
    """At most so many rows of a mask, from all over: the first ones may be those of one probe."""
    rows = np.flatnonzero(mask)
    return rows[:: max(1, -(-len(rows) // most))]


def _sums_without(
    observations: Observations, values: np.ndarray, grouping: str, mask: np.ndarray
) -> FourierSums:
    """Sums of the samples that are not left out."""
    o = observations
    return FourierSums(o.x[~mask], o.t[~mask], values[~mask], o.domain, grouping)


def _tiles(observations: Observations, frames: int) -> np.ndarray:
    """Tiles of space that hold one sample per frame on average: what a missing probe would leave open."""
    domain = observations.domain
    per_axis = max(2, round((len(observations) / frames) ** (1 / domain.dimension)))
    low, extents = np.array(domain.low), np.array(domain.extents[:-1])
    cells = np.minimum((per_axis * (observations.x - low) / extents).astype(int), per_axis - 1)
    return np.asarray(np.ravel_multi_index(tuple(cells.T), (per_axis,) * domain.dimension))
