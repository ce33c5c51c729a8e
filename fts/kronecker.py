"""Sensor x frame samples -> kernels, length scales and nugget: a Gaussian process on a product grid.

The covariance of the samples is K_1 (x) ... (x) K_n + s I, one factor per axis of the grid. Its eigenvectors
are products of the factors' eigenvectors, so a solve, the error at a slice left out, or a posterior variance
costs a few small matrix products.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Float, Int

from fts.domain import Domain
from fts.radial import FAMILIES, Family, distance, kernel

# Nuggets of the coarse scan, in units of the kernel's variance; below the least, rounding acts as one.
_NUGGETS = tuple(10.0**k for k in range(-14, 1, 2))
_SCAN = 8  # length scales per factor in the coarse scan
_SWEEPS = 2
# Ratios of the pattern search that follows: (length scale, nugget).
_STEPS = ((1.4, 10.0), (1.1, 3.0))
_LEAST_GAIN = 1e-3  # a smaller relative decrease of the error is not worth another step


@dataclass(frozen=True)
class Kernel:
    """The kernel of one factor: a family, and one length scale per coordinate (their product is taken)."""

    family: Family
    lengths: tuple[float, ...]


@dataclass(frozen=True)
class Factor:
    """One axis of the sample grid: an axis of positions, the frames, or all scattered sensors together."""

    points: Float[np.ndarray, "n k"]
    extents: tuple[float, ...]
    periods: tuple[float | None, ...]

    @cached_property
    def circulant(self) -> bool:
        """Equidistant points around a circle: the eigenvectors are Fourier modes, whatever the kernel."""
        n, period = len(self.points), self.periods[0]
        if len(self.periods) > 1 or period is None:
            return False
        return bool(np.allclose(np.diff(self.points[:, 0]), period / n, rtol=1e-9, atol=0))

    @cached_property
    def distances(self) -> tuple[np.ndarray, ...]:
        """Distances between all points, per coordinate."""
        return tuple(distance(x, x, period) for x, period in zip(self.points.T, self.periods, strict=True))

    @cached_property
    def partners(self) -> Int[np.ndarray, "pairs 2"]:
        """Pairs left out together: neighbours along an axis; a point and its nearest among scattered ones."""
        n = len(self.points)
        if len(self.periods) == 1:
            return np.column_stack([np.arange(n - 1), np.arange(1, n)])
        squared = sum((d / extent) ** 2 for d, extent in zip(self.distances, self.extents, strict=True))
        nearest = np.argmin(squared + np.diag(np.full(n, np.inf)), axis=1)
        return np.unique(np.sort(np.column_stack([np.arange(n), nearest]), axis=1), axis=0)

    @cached_property
    def modes(self) -> Float[np.ndarray, "n n"]:
        """Orthonormal real Fourier modes over equidistant points, by ascending wavenumber."""
        n = len(self.points)
        phase = 2 * np.pi / n * np.outer(np.arange(n), np.arange(n // 2 + 1))
        columns = np.stack([np.cos(phase), np.sin(phase)], axis=2).reshape(n, -1)
        keep = np.linalg.norm(columns, axis=0) > 0.5  # sin 0 and, for even n, the sine at Nyquist vanish
        return columns[:, keep] / np.linalg.norm(columns[:, keep], axis=0)

    def cross(self, points: Float[np.ndarray, "m k"], chosen: Kernel) -> Float[np.ndarray, "m n"]:
        """k(point, sample) for all pairs."""
        values = np.ones((len(points), len(self.points)))
        for x, own, period, length in zip(points.T, self.points.T, self.periods, chosen.lengths, strict=True):
            values *= kernel(chosen.family, distance(x, own, period) / length)
        return values


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues (none negative) and orthonormal eigenvectors of one factor's kernel matrix."""

    values: Float[np.ndarray, " n"]
    vectors: Float[np.ndarray, "n n"]


@dataclass(frozen=True)
class Choice:
    """What the search chose, and the root mean square error of leaving one slice out, per factor."""

    kernels: tuple[Kernel, ...]
    nugget: float
    errors: tuple[float, ...]


def factors(
    sensors: Float[np.ndarray, "S d"],
    axes: tuple[np.ndarray, ...] | None,
    frames: Float[np.ndarray, " F"],
    domain: Domain,
) -> tuple[Factor, ...]:
    """One factor per spatial axis of a full grid, or one for all scattered sensors; then one for time."""
    *extents, duration = domain.extents
    periods = tuple(e if closed else None for e, closed in zip(extents, domain.periodic, strict=True))
    time = Factor(frames[:, None], (duration,), (None,))
    if axes is None:
        return Factor(sensors, tuple(extents), periods), time
    space = (Factor(x[:, None], (e,), (p,)) for x, e, p in zip(axes, extents, periods, strict=True))
    return *space, time


def decompose(factor: Factor, chosen: Kernel) -> Spectrum:
    """Eigendecomposition of the factor's kernel matrix; by FFT for equidistant points on a circle."""
    if factor.circulant:
        row = factor.cross(factor.points[:1], chosen)[0]
        values = np.fft.rfft(row).real
        # Every wavenumber owns a cosine and a sine, but for 0 and Nyquist.
        doubled = np.repeat(values, 2)[1 : len(row) + 1]
        return Spectrum(np.maximum(doubled, 0), factor.modes)
    matrix = np.ones((len(factor.points),) * 2)
    for d, length in zip(factor.distances, chosen.lengths, strict=True):
        matrix *= kernel(chosen.family, d / length)
    values, vectors = np.linalg.eigh(matrix)
    # Rounding leaves tiny negative eigenvalues on a matrix that is positive.
    return Spectrum(np.maximum(values, 0), vectors)


def multiply(tensor: Float[np.ndarray, "..."], matrix: Float[np.ndarray, "m n"], axis: int) -> np.ndarray:
    """The tensor with `matrix` applied along one axis."""
    return np.moveaxis(np.tensordot(matrix, tensor, (1, axis)), 0, axis)


def rotate(values: Float[np.ndarray, "..."], spectra: Sequence[Spectrum]) -> np.ndarray:
    """The samples in the product eigenbasis."""
    for axis, spectrum in enumerate(spectra):
        values = multiply(values, spectrum.vectors.T, axis)
    return values


def precision(spectra: Sequence[Spectrum], nugget: float) -> np.ndarray:
    """1 / (lambda_1 ... lambda_n + s) over the product eigenbasis."""
    return 1 / (functools.reduce(np.multiply.outer, [s.values for s in spectra]) + nugget)


def left_out(
    spectra: Sequence[Spectrum], rotated: Float[np.ndarray, "..."], nugget: float, axis: int, part: Factor
) -> tuple[float, float]:
    """Mean square error at a slice of `axis` left out, alone and with its neighbour, from one fit.

    In the eigenbasis of the other axes the block of (K + s)^-1 that belongs to slice j is diagonal, D_j, so
    the residual of the left-out slice is a_j / D_j with a = (K + s)^-1 y; a pair needs 2 x 2 solves.
    """
    weights = precision(spectra, nugget)
    if part.circulant:
        return _left_out_of_circle(np.moveaxis(weights, axis, 0), np.moveaxis(rotated, axis, 0))
    v = spectra[axis].vectors
    first, second = part.partners.T
    a = np.tensordot(v, rotated * weights, (1, axis))
    d = np.tensordot(v**2, weights, (1, axis))
    c = np.tensordot(v[first] * v[second], weights, (1, axis))
    inverse = _inverse(d[first] * d[second], c)
    one = (d[second] * a[first] - c * a[second]) * inverse
    two = (d[first] * a[second] - c * a[first]) * inverse
    return float(np.mean((a / d) ** 2)), float(np.mean(one**2 + two**2) / 2)


def _left_out_of_circle(
    weights: Float[np.ndarray, "n ..."], rotated: Float[np.ndarray, "n ..."]
) -> tuple[float, float]:
    """The same on a circle, where slices are alike: D and C are means over modes, sums follow Parseval."""
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


def search(parts: tuple[Factor, ...], values: Float[np.ndarray, "..."], step: Callable[[], object]) -> Choice:
    """Kernels, length scales and nugget with the least error on left-out slices and pairs, over all axes.

    A slice is a frame, a sensor or a grid line: what a protocol leaves out is what the criterion leaves out.
    `values` have mean zero and unit variance; `step` is called once per factor and sweep, and at the end.
    """
    every = range(len(parts))
    error = _errors(parts, values)
    kernels = tuple(_candidates(part)[1] for part in parts)
    # The axis with the largest error decides about the nugget; the others follow it.
    order = sorted(every, key=lambda axis: -min(sum(error(kernels, s, axis)) for s in _NUGGETS[::2]))
    nugget = _NUGGETS[0]
    for sweep, axis in product(range(_SWEEPS), order):
        nuggets = _NUGGETS if (sweep, axis) == (0, order[0]) else (nugget,)
        around = [
            (*kernels[:axis], candidate, *kernels[axis + 1 :]) for candidate in _candidates(parts[axis])
        ]
        tried = [(sum(error(k, s, axis)), i, s) for i, k in enumerate(around) for s in nuggets]
        _, best, nugget = min(tried)
        kernels = around[best]
        step()
    kernels, nugget = _polish(kernels, nugget, lambda k, s: sum(sum(error(k, s, axis)) for axis in every))
    step()
    return Choice(kernels, nugget, tuple(float(np.sqrt(error(kernels, nugget, axis)[0])) for axis in every))


def _errors(
    parts: tuple[Factor, ...], values: np.ndarray
) -> Callable[[tuple[Kernel, ...], float, int], tuple[float, float]]:
    """`left_out` as a function of kernels, nugget and axis, with every decomposition made once."""
    every = range(len(parts))
    for axis in every:
        # Fourier modes do not depend on the kernel: the samples turn into them here, once.
        if parts[axis].circulant:
            values = multiply(values, parts[axis].modes.T, axis)

    @functools.cache
    def spectrum(axis: int, chosen: Kernel) -> Spectrum:
        return decompose(parts[axis], chosen)

    @functools.lru_cache(maxsize=4)
    def rotated(kernels: tuple[Kernel, ...]) -> np.ndarray:
        tensor = values
        for axis in every:
            if not parts[axis].circulant:
                tensor = multiply(tensor, spectrum(axis, kernels[axis]).vectors.T, axis)
        return tensor

    def error(kernels: tuple[Kernel, ...], nugget: float, axis: int) -> tuple[float, float]:
        spectra = [spectrum(i, chosen) for i, chosen in enumerate(kernels)]
        return left_out(spectra, rotated(kernels), nugget, axis, parts[axis])

    return error


def _candidates(part: Factor) -> list[Kernel]:
    # From the mean spacing, below which samples know nothing of each other, to the whole extent.
    n = len(part.points) ** (1 / len(part.extents))
    fractions = np.geomspace(1 / n, 1, _SCAN)
    return [
        Kernel(family, tuple(float(f * extent) for extent in part.extents))
        for family in FAMILIES
        for f in fractions
    ]


def _polish(
    kernels: tuple[Kernel, ...],
    nugget: float,
    error: Callable[[tuple[Kernel, ...], float], float],
) -> tuple[tuple[Kernel, ...], float]:
    """Pattern search over all length scales and the nugget, downhill from the scan's result."""
    coordinates = [(axis, i) for axis, chosen in enumerate(kernels) for i in range(len(chosen.lengths))]
    best = error(kernels, nugget)
    for ratio, factor in _STEPS:
        moves = [(factor, None), (1 / factor, None), *product((ratio, 1 / ratio), coordinates)]
        before = np.inf
        while best < before * (1 - _LEAST_GAIN):
            before = best
            for move in moves:
                trial = _moved(kernels, nugget, *move)
                while trial[1] >= _NUGGETS[0] and (value := error(*trial)) < best * (1 - _LEAST_GAIN):
                    (kernels, nugget), best = trial, value
                    trial = _moved(kernels, nugget, *move)
    return kernels, nugget


def _moved(
    kernels: tuple[Kernel, ...], nugget: float, ratio: float, coordinate: tuple[int, int] | None
) -> tuple[tuple[Kernel, ...], float]:
    if coordinate is None:
        return kernels, nugget * ratio
    axis, i = coordinate
    lengths = kernels[axis].lengths
    changed = Kernel(kernels[axis].family, (*lengths[:i], lengths[i] * ratio, *lengths[i + 1 :]))
    return (*kernels[:axis], changed, *kernels[axis + 1 :]), nugget
