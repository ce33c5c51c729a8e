"""Scattered samples -> Fourier sums around closed axes, made once, and the functions they are sums of.

Every axis is a circle: its own where it is periodic, otherwise one of twice its extent. A real function is
u = sum_j c_j e_j with products of 1, sqrt(2) cos k theta, sqrt(2) sin k theta, and sum_i e_j(x_i) e_l(x_i)
depends on sums and differences of wavenumbers alone: it is multiplication with the density of the samples,
band-limited, on a regular grid. After one pass over the samples nothing depends on their number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
from jaxtyping import Complex, Float, Inexact
from scipy import fft, sparse, special

try:
    import finufft
except ModuleNotFoundError:  # it has no build for every platform: then sums are spread by NumPy
    finufft = None

PADDING = 2.0  # the circle of an open axis, in its extents
_PRECISION = 1e-13  # of the Fourier sums, relative to the sum of all strengths
_CHUNK = 1 << 20  # samples summed at once: bounds what the sums need beside the samples to some 200 MB
_MOST_AXES = 3  # of one transform
# Spreading by NumPy: points of the grid per wavenumber and axis, points a sample is spread over per axis, and
# numbers in memory at once. The error exp(-pi width sqrt(1 - 1/oversampling)) is 3e-15.
_OVERSAMPLING, _WIDTH, _SPREAD_AT_ONCE = 2, 15, 1 << 20


@dataclass(frozen=True)
class Circle:
    """One closed axis: positions become angles (x - middle) 2 pi / period."""

    middle: float
    period: float

    def angles(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Angles of the positions, within [-pi, pi]."""
        turns = (np.asarray(x, dtype=float) - self.middle) / self.period
        return 2 * np.pi * (turns - np.round(turns))


def circle(low: float, high: float, periodic: bool) -> Circle:
    """The circle an axis is closed into."""
    return Circle((low + high) / 2, (high - low) * (1.0 if periodic else PADDING))


def trigonometric(theta: Float[np.ndarray, " n"], most: int) -> Float[np.ndarray, "n K"]:
    """1, sqrt(2) cos k theta for k = 1 to most, then sqrt(2) sin k theta."""
    phase = np.outer(theta, np.arange(1, most + 1))
    return np.hstack([np.ones((len(theta), 1)), np.sqrt(2) * np.cos(phase), np.sqrt(2) * np.sin(phase)])


def fourier_sums(
    theta: Sequence[Float[np.ndarray, " n"]], strengths: Inexact[np.ndarray, " n"], most: Sequence[int]
) -> Complex[np.ndarray, "..."]:
    """sum_i strength_i exp(-i k . theta_i) for |k_a| <= most_a, the least wavenumber first."""
    shape = tuple(2 * m + 1 for m in most)
    total = np.zeros(shape, dtype=complex)
    for part in _chunks(len(strengths)):
        angles = [np.ascontiguousarray(angle[part]) for angle in theta]
        weights = strengths[part].astype(complex)
        if len(theta) <= _MOST_AXES:
            total += _transform(angles, weights, shape)
            continue
        for i, k in enumerate(range(-most[-1], most[-1] + 1)):
            total[..., i] += _transform(angles[:-1], weights * np.exp(-1j * k * angles[-1]), shape[:-1])
    return total


def evaluate_at_points(
    theta: Sequence[Float[np.ndarray, " n"]], coefficients: Complex[np.ndarray, "..."]
) -> Float[np.ndarray, " n"]:
    """sum_k coefficient_k exp(i k . theta) at scattered angles, the least wavenumber first."""
    values = np.empty(len(theta[0]))
    for part in _chunks(len(values)):
        angles = [np.ascontiguousarray(angle[part]) for angle in theta]
        if len(theta) <= _MOST_AXES:
            values[part] = np.real(_evaluate(angles, coefficients))
            continue
        total, half = np.zeros(len(angles[0])), coefficients.shape[-1] // 2
        for j, k in enumerate(range(-half, half + 1)):
            wave = _evaluate(angles[:-1], np.ascontiguousarray(coefficients[..., j]))
            total += np.real(wave * np.exp(1j * k * angles[-1]))
        values[part] = total
    return values


@dataclass(frozen=True)
class FourierBasis:
    """Products of 1, cosines and sines up to wavenumber `most` per axis, and a regular grid for them."""

    most: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Functions per axis."""
        return tuple(2 * m + 1 for m in self.most)

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Points per axis: products of three functions, of which two are ours, are told apart."""
        return tuple(int(fft.next_fast_len(4 * m + 1, real=True) or 0) for m in self.most)

    def synthesize(self, series: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Values on the grid; leading axes beyond those of the basis are carried along."""
        coefficients = self.to_complex(series, padded=True)
        return np.asarray(fft.irfftn(coefficients, self.grid, axes=self._axes, norm="forward"))

    def analyze(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Sums of values times each function over the grid: the transpose of `synthesize`."""
        return self.from_complex(np.asarray(fft.rfftn(values, axes=self._axes)))

    def to_complex(self, series: np.ndarray, *, padded: bool) -> Complex[np.ndarray, "..."]:
        """Coefficients of exp(i k . theta), in the order of the FFT, k >= 0 along the last axis."""
        c = series
        for axis, m, n in zip(self._axes[::-1], self.most[::-1], self.grid[::-1], strict=True):
            c = np.moveaxis(c, axis, 0)
            up = (c[1 : m + 1] - 1j * c[m + 1 :]) / np.sqrt(2)
            down = [] if axis == -1 else [((c[1 : m + 1] + 1j * c[m + 1 :]) / np.sqrt(2))[::-1]]
            gap = (n // 2 - m if axis == -1 else n - 2 * m - 1) if padded else 0
            c = np.moveaxis(np.concatenate([c[:1], up, np.zeros((gap, *up.shape[1:])), *down]), 0, axis)
        return c

    def from_complex(self, coefficients: Complex[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The transpose of `to_complex`, of an array in the order of the FFT with or without padding."""
        c = coefficients
        for axis, m in zip(self._axes, self.most, strict=True):
            c = np.moveaxis(c, axis, 0)
            up = c[1 : m + 1]
            if axis == -1:
                parts = [np.real(c[:1]), np.sqrt(2) * np.real(up), -np.sqrt(2) * np.imag(up)]
            else:
                down = c[::-1][:m]
                parts = [c[:1], (up + down) / np.sqrt(2), 1j * (up - down) / np.sqrt(2)]
            c = np.moveaxis(np.concatenate(parts), 0, axis)
        return np.ascontiguousarray(c)

    def project(self, sums: Complex[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """sum_i strength_i e_j(x_i) from Fourier sums over at least these wavenumbers."""
        cropped = _crop(sums, self.most)[..., self.most[-1] :]
        return self.from_complex(np.fft.ifftshift(cropped, axes=tuple(range(cropped.ndim - 1))))

    def density(self, sums: Complex[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The samples' density on the grid from Fourier sums up to twice the wavenumbers of the basis."""
        doubled = tuple(2 * m for m in self.most)
        c = np.zeros((*self.grid[:-1], self.grid[-1] // 2 + 1), dtype=complex)
        rows = [np.arange(-m, m + 1) % n for m, n in zip(doubled[:-1], self.grid[:-1], strict=True)]
        c[np.ix_(*rows, np.arange(doubled[-1] + 1))] = _crop(sums, doubled)[..., doubled[-1] :]
        return np.asarray(fft.irfftn(c, self.grid))

    def values(self, theta: Sequence[np.ndarray], series: np.ndarray) -> Float[np.ndarray, " n"]:
        """The function at scattered angles."""
        half = self.to_complex(series, padded=False)
        low = np.conj(np.flip(half[..., 1:], axis=-1))
        others = tuple(range(len(self.most) - 1))
        for axis in others:  # k -> -k in the order of the FFT
            low = np.roll(np.flip(low, axis), 1, axis)
        full = np.concatenate([low, half], axis=-1)
        return evaluate_at_points(theta, np.ascontiguousarray(np.fft.fftshift(full, axes=others)))

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-len(self.most), 0))


def _transform(angles: list[np.ndarray], weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if finufft is None:
        return spread_sums(angles, weights, shape)
    transform = {1: finufft.nufft1d1, 2: finufft.nufft2d1, 3: finufft.nufft3d1}[len(angles)]
    return transform(*angles, weights, shape, eps=_PRECISION, isign=-1, nthreads=1)


def _evaluate(angles: list[np.ndarray], coefficients: np.ndarray) -> np.ndarray:
    if finufft is None:
        return interpolated_sums(angles, coefficients)
    transform = {1: finufft.nufft1d2, 2: finufft.nufft2d2, 3: finufft.nufft3d2}[len(angles)]
    return transform(*angles, coefficients, eps=_PRECISION, isign=1, nthreads=1)


def spread_sums(
    angles: Sequence[Float[np.ndarray, " n"]], weights: Complex[np.ndarray, " n"], shape: tuple[int, ...]
) -> Complex[np.ndarray, "..."]:
    """sum_i weight_i exp(-i k . theta_i) by NumPy: spread over a fine grid, which is transformed."""
    grid = _fine_grid(shape)
    strengths = weights if np.any(np.imag(weights)) else np.real(weights)
    spread = np.zeros((prod(grid[:-1]), grid[-1]), dtype=strengths.dtype)
    for part in _spread_parts(len(weights), grid):
        before, last = _spread([angle[part] for angle in angles], grid)
        spread += before.T @ (strengths[part, None] * last)
    transformed = np.asarray(fft.fftn(spread.reshape(grid)))
    return transformed[_wavenumbers(shape, grid)] / _spread_transform(shape, grid)


def interpolated_sums(
    angles: Sequence[Float[np.ndarray, " n"]], coefficients: Complex[np.ndarray, "..."]
) -> Complex[np.ndarray, " n"]:
    """sum_k coefficient_k exp(i k . theta) by NumPy: the transpose of `spread_sums`."""
    shape, grid = coefficients.shape, _fine_grid(coefficients.shape)
    padded = np.zeros(grid, dtype=complex)
    padded[_wavenumbers(shape, grid)] = coefficients / _spread_transform(shape, grid)
    fine = np.asarray(fft.ifftn(padded, norm="forward")).reshape(-1, grid[-1])
    values = np.empty(len(angles[0]), dtype=complex)
    for part in _spread_parts(len(values), grid):
        before, last = _spread([angle[part] for angle in angles], grid)
        values[part] = np.einsum("ng,ng->n", before @ fine, last)
    return values


def _fine_grid(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(fft.next_fast_len(max(_OVERSAMPLING * n, 2 * _WIDTH)) or 0) for n in shape)


def _wavenumbers(shape: tuple[int, ...], grid: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Where the wavenumbers, the least first, stand in the transform of the grid."""
    return np.ix_(*((np.arange(n) - n // 2) % fine for n, fine in zip(shape, grid, strict=True)))


# Kaiser and Bessel's window I_0(beta sqrt(1 - (2 x / width)^2)), whose transform has a closed form.
_BETA = np.pi * _WIDTH * (1 - 0.5 / _OVERSAMPLING)


def _spread(
    angles: Sequence[np.ndarray], grid: tuple[int, ...]
) -> tuple[sparse.csr_array, Float[np.ndarray, "n last"]]:
    """Every sample's share at points of the grid: a table along the last axis, sparse along the others."""
    count = len(angles[0])
    indices, shares = np.zeros((count, 1), dtype=np.int64), np.ones((count, 1))
    for angle, size in zip(angles[:-1], grid[:-1], strict=True):
        near, share = _window(angle, size)
        indices = (indices[:, :, None] * size + near[:, None]).reshape(count, -1)
        shares = (shares[:, :, None] * share[:, None]).reshape(count, -1)
    rows = np.arange(count + 1) * indices.shape[1]
    before = sparse.csr_array((shares.ravel(), indices.ravel(), rows), shape=(count, prod(grid[:-1])))
    last = np.zeros((count, grid[-1]))
    near, share = _window(angles[-1], grid[-1])
    np.put_along_axis(last, near, share, axis=1)
    return before, last


def _window(angle: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The points of a closed axis nearest to every sample, and the window at each."""
    position = angle * (size / (2 * np.pi))
    near = np.ceil(position - _WIDTH / 2)[:, None] + np.arange(_WIDTH)
    inside = np.maximum(1 - (2 * (near - position[:, None]) / _WIDTH) ** 2, 0.0)
    return near.astype(np.int64) % size, special.i0(_BETA * np.sqrt(inside))


def _spread_transform(shape: tuple[int, ...], grid: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """The window's Fourier transform at the wavenumbers."""
    factors = []
    for n, fine in zip(shape, grid, strict=True):
        root = np.sqrt(_BETA**2 - (np.pi * _WIDTH * (np.arange(n) - n // 2) / fine) ** 2)
        factors.append(_WIDTH * np.sinh(root) / root)
    return reduce(np.multiply.outer, factors)


def _spread_parts(count: int, grid: tuple[int, ...]) -> Iterator[slice]:
    size = max(1, _SPREAD_AT_ONCE // (_WIDTH ** (len(grid) - 1) + grid[-1]))
    return (slice(i, min(i + size, count)) for i in range(0, count, size))


def _crop(sums: np.ndarray, most: Sequence[int]) -> np.ndarray:
    middles = [n // 2 for n in sums.shape]
    return sums[tuple(slice(c - m, c + m + 1) for c, m in zip(middles, most, strict=True))]


def _chunks(count: int) -> Iterator[slice]:
    return (slice(i, min(i + _CHUNK, count)) for i in range(0, count, _CHUNK))
