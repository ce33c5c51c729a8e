"""Waves around closed axes: scattered samples -> Fourier sums, made once, and the normal matrix they define.

Every axis is a circle: its own where it is periodic, otherwise one of twice its extent. A real function is
u = sum_j c_j e_j with products of 1, sqrt(2) cos k theta, sqrt(2) sin k theta, and sum_i e_j(x_i) e_l(x_i)
depends on sums and differences of wave numbers alone: it is multiplication with the density of the samples,
band-limited, on a regular grid. After one pass over the samples nothing depends on their number.

Samples by slice and by angle: sensors that keep their place, frames that keep their time, or neither.

Along the axes of the slices a function is known by its values there; along the others by waves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import finufft
import numpy as np
from jaxtyping import Complex, Float, Int
from scipy import fft

from fts.domain import Domain
from fts.kernel.covariance import Family, Kernel, SampleAxis, kernel
from fts.observations import unique_rows

PADDING = 2.0  # the circle of an open axis, in its extents
_PRECISION = 1e-13  # of the Fourier sums, relative to the sum of all strengths
_CHUNK = 1 << 20  # samples summed at once: bounds what the sums need beside the samples to some 200 MB
_FINEST = 1 << 14  # points on a circle where a kernel is sampled for its spectrum


@dataclass(frozen=True)
class Circle:
    """One closed axis: positions become angles (x - middle) 2 pi / period."""

    middle: float
    period: float

    def angles(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Angles of the positions, within [-pi, pi]."""
        turns = (np.asarray(x, dtype=float) - self.middle) / self.period
        return 2 * np.pi * (turns - np.round(turns))

    def spectrum(self, family: Family, length: float) -> Float[np.ndarray, " waves"]:
        """Fourier coefficients S_0, S_1, ... of the kernel of the chord; k(0) = S_0 + 2 sum S_k."""
        step = np.arange(_FINEST) / _FINEST
        values = kernel(family, self.period / (np.pi * length) * np.sin(np.pi * step))
        return np.maximum(np.real(np.asarray(fft.rfft(values))) / _FINEST, 0)


def circle(low: float, high: float, periodic: bool) -> Circle:
    """The circle an axis is closed into."""
    return Circle((low + high) / 2, (high - low) * (1.0 if periodic else PADDING))


def trigonometric(theta: Float[np.ndarray, " n"], most: int) -> Float[np.ndarray, "n K"]:
    """1, sqrt(2) cos k theta for k = 1 to most, then sqrt(2) sin k theta."""
    phase = np.outer(theta, np.arange(1, most + 1))
    return np.hstack([np.ones((len(theta), 1)), np.sqrt(2) * np.cos(phase), np.sqrt(2) * np.sin(phase)])


def fourier_sums(
    theta: Sequence[Float[np.ndarray, " n"]], strengths: Float[np.ndarray, " n"], most: Sequence[int]
) -> Complex[np.ndarray, "..."]:
    """sum_i strength_i exp(-i k . theta_i) for |k_a| <= most_a, the least wave number first."""
    shape = tuple(2 * m + 1 for m in most)
    total = np.zeros(shape, dtype=complex)
    for part in _chunks(len(strengths)):
        angles = [np.ascontiguousarray(angle[part]) for angle in theta]
        weights = strengths[part].astype(complex)
        if len(theta) <= 3:
            total += _sums(angles, weights, shape)
            continue
        # the transform goes to three axes: the waves of the last are taken one by one
        for place, k in enumerate(range(-most[-1], most[-1] + 1)):
            total[..., place] += _sums(angles[:-1], weights * np.exp(-1j * k * angles[-1]), shape[:-1])
    return total


def at_points(
    theta: Sequence[Float[np.ndarray, " n"]], waves: Complex[np.ndarray, "..."]
) -> Float[np.ndarray, " n"]:
    """sum_k waves_k exp(i k . theta) at scattered angles, the least wave number first."""
    count = len(theta[0])
    values = np.empty(count)
    options = {"eps": _PRECISION, "isign": 1, "nthreads": 1}
    transform = {1: finufft.nufft1d2, 2: finufft.nufft2d2, 3: finufft.nufft3d2}
    for part in _chunks(count):
        angles = [np.ascontiguousarray(angle[part]) for angle in theta]
        if len(theta) <= 3:
            values[part] = transform[len(theta)](*angles, waves, **options).real
            continue
        half = waves.shape[-1] // 2
        values[part] = sum(
            (
                transform[3](*angles[:-1], np.ascontiguousarray(waves[..., j]), **options)
                * np.exp(1j * k * angles[-1])
            ).real
            for j, k in enumerate(range(-half, half + 1))
        )
    return values


@dataclass(frozen=True)
class Box:
    """Waves up to `most` per axis: products of 1, cosines and sines, and a regular grid for them."""

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
        """Values on the grid; leading axes beyond those of the box are carried along."""
        waves = self.as_waves(series, padded=True)
        return np.asarray(fft.irfftn(waves, self.grid, axes=self._axes, norm="forward"))

    def analyze(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Sums of values times each function over the grid: the transpose of `synthesize`."""
        return self.from_waves(np.asarray(fft.rfftn(values, axes=self._axes)))

    def as_waves(self, series: np.ndarray, *, padded: bool) -> Complex[np.ndarray, "..."]:
        """Coefficients of exp(i k . theta), in the order of the FFT, k >= 0 along the last axis."""
        waves = series
        for axis, m, n in zip(self._axes[::-1], self.most[::-1], self.grid[::-1], strict=True):
            waves = np.moveaxis(waves, axis, 0)
            up = (waves[1 : m + 1] - 1j * waves[m + 1 :]) / np.sqrt(2)
            if axis == -1:
                gap = n // 2 - m if padded else 0
                parts = [waves[:1], up, np.zeros((gap, *up.shape[1:]))]
            else:
                down = ((waves[1 : m + 1] + 1j * waves[m + 1 :]) / np.sqrt(2))[::-1]
                gap = n - 2 * m - 1 if padded else 0
                parts = [waves[:1], up, np.zeros((gap, *up.shape[1:])), down]
            waves = np.moveaxis(np.concatenate(parts), 0, axis)
        return waves

    def from_waves(self, waves: Complex[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The transpose of `as_waves`, of an array in the order of the FFT with or without padding."""
        for axis, m in zip(self._axes, self.most, strict=True):
            waves = np.moveaxis(waves, axis, 0)
            up = waves[1 : m + 1]
            if axis == -1:
                parts = [np.real(waves[:1]), np.sqrt(2) * np.real(up), -np.sqrt(2) * np.imag(up)]
            else:
                down = waves[::-1][:m]
                parts = [waves[:1], (up + down) / np.sqrt(2), 1j * (up - down) / np.sqrt(2)]
            waves = np.moveaxis(np.concatenate(parts), 0, axis)
        return np.ascontiguousarray(waves)

    def sums(self, ordered: Complex[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """sum_i strength_i e_j(x_i) from Fourier sums over at least these waves."""
        return self.from_waves(_half(_cropped(ordered, self.most)))

    def density(self, ordered: Complex[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The samples' density on the grid from Fourier sums up to twice the waves of the box."""
        doubled = tuple(2 * m for m in self.most)
        waves = np.zeros((*self.grid[:-1], self.grid[-1] // 2 + 1), dtype=complex)
        places = [np.arange(-m, m + 1) % n for m, n in zip(doubled[:-1], self.grid[:-1], strict=True)]
        waves[np.ix_(*places, np.arange(doubled[-1] + 1))] = _cropped(ordered, doubled)[..., doubled[-1] :]
        return np.asarray(fft.irfftn(waves, self.grid))

    def values(
        self, theta: Sequence[np.ndarray], series: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, " n"]:
        """The function at scattered angles."""
        half = self.as_waves(series, padded=False)
        low = np.conj(np.flip(half[..., 1:], axis=-1))
        for axis in range(len(self.most) - 1):  # k -> -k in the order of the FFT
            low = np.roll(np.flip(low, axis), 1, axis)
        full = np.concatenate([low, half], axis=-1)
        return at_points(
            theta, np.ascontiguousarray(np.fft.fftshift(full, axes=tuple(range(len(self.most) - 1))))
        )

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-len(self.most), 0))


def _sums(angles: list[np.ndarray], weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    transform = {1: finufft.nufft1d1, 2: finufft.nufft2d1, 3: finufft.nufft3d1}[len(angles)]
    return transform(*angles, weights, shape, eps=_PRECISION, isign=-1, nthreads=1)


def _cropped(ordered: np.ndarray, most: Sequence[int]) -> np.ndarray:
    middles = [n // 2 for n in ordered.shape]
    return ordered[tuple(slice(c - m, c + m + 1) for c, m in zip(middles, most, strict=True))]


def _half(ordered: np.ndarray) -> np.ndarray:
    """The order of the FFT, k >= 0 along the last axis."""
    last = ordered.shape[-1] // 2
    return np.fft.ifftshift(ordered[..., last:], axes=tuple(range(ordered.ndim - 1)))


def _chunks(count: int) -> Iterator[slice]:
    return (slice(i, min(i + _CHUNK, count)) for i in range(0, count, _CHUNK))


@dataclass(frozen=True)
class Arranged:
    """Samples by slice and by angle along the axes where they lie anywhere."""

    domain: Domain
    part: SampleAxis | None  # sensors or frames; None where there are no slices
    place: Int[np.ndarray, " n"] | None  # the slice of each sample
    circles: tuple[Circle, ...]  # of the axes of waves: those of space, then time, without the slices'
    theta: tuple[Float[np.ndarray, " n"], ...]
    sliced: str  # what the slices are: "sensors", "frames", or "" for none

    @property
    def count(self) -> int:
        """Samples."""
        return len(self.theta[0])

    @property
    def slices(self) -> int:
        """Sensors or frames; one where samples are scattered along all axes."""
        return 1 if self.part is None else len(self.part.points)

    def wave_kernels(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        """One kernel per axis of waves."""
        space, time = kernels
        single = [Kernel(space.family, (length,)) for length in space.lengths]
        return {"": [*single, time], "sensors": [time], "frames": single}[self.sliced]

    def slice_kernel(self, kernels: Sequence[Kernel]) -> Kernel:
        """The kernel between slices."""
        return kernels[0] if self.sliced == "sensors" else kernels[1]


class Sums:
    """Fourier sums of a layout's samples, per slice; made when first needed and again only for more waves."""

    def __init__(self, layout: Arranged, y: Float[np.ndarray, " n"]) -> None:
        self.layout, self.y = layout, y
        self._most: tuple[int, ...] = ()
        order = np.argsort(layout.place, kind="stable") if layout.place is not None else np.arange(len(y))
        ends = (
            np.cumsum(np.bincount(layout.place, minlength=layout.slices))
            if layout.place is not None
            else [len(y)]
        )
        self._rows = np.split(order, ends[:-1]) if layout.place is not None else [slice(None)]

    def of(self, most: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Sums of ones up to twice the waves, and of the values up to the waves."""
        if not self._most or any(m > have for m, have in zip(most, self._most, strict=True)):
            self._most = tuple(max(m, have) for m, have in zip(most, self._most or most, strict=True))
            self._ones = self._make(np.ones(len(self.y)), [2 * m for m in self._most])
            self._values = self.strengths(self.y, self._most)
        return self._ones, self._values

    def strengths(self, values: np.ndarray, most: Sequence[int]) -> np.ndarray:
        """Sums of values of the samples up to the waves."""
        return self._make(values, most)

    def _make(self, values: np.ndarray, most: Sequence[int]) -> np.ndarray:
        return np.stack(
            [fourier_sums([a[rows] for a in self.layout.theta], values[rows], most) for rows in self._rows]
        )


def arrange(x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"], domain: Domain, sliced: str) -> Arranged:
    """Samples in slices of sensors or frames, or ("") in none."""
    ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), (*domain.periodic, False), strict=True)
    *space, time = (circle(*end) for end in ends)
    *extents, duration = domain.extents
    angles = [c.angles(column) for c, column in zip(space, x.T, strict=True)]
    if not sliced:
        return Arranged(domain, None, None, (*space, time), (*angles, time.angles(t)), "")
    if sliced == "sensors":
        points, place = unique_rows(x)
        periods = tuple(e if closed else None for e, closed in zip(extents, domain.periodic, strict=True))
        part = SampleAxis(points, tuple(extents), periods)
        return Arranged(domain, part, place, (time,), (time.angles(t),), sliced)
    points, place = np.unique(t, return_inverse=True)
    part = SampleAxis(points[:, None], (duration,), (None,))
    return Arranged(domain, part, place, tuple(space), tuple(angles), sliced)
