"""Covariances of a separable Gaussian process: kernels of a distance, and one matrix per axis of the samples.

The covariance of samples on a product grid is K_1 (x) ... (x) K_n + s I, one factor per axis. Its
eigenvectors are products of the factors' eigenvectors, so a solve costs a few small matrix products.

Functions drawn from a prior: sums of random waves, whose spectrum is the kernel's.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Complex, Float, Int

from fts.domain import Domain

Family = Literal["gaussian", "rational"]
FAMILIES: tuple[Family, ...] = ("gaussian", "rational")


def kernel(family: Family, r: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """exp(-r^2 / 2), or the rational quadratic (1 + r^2 / 4)^-2, whose spectrum decays only exponentially."""
    # Both are infinitely smooth: fourth derivatives of the field exist. The rational one expects analyticity
    # in a strip, as of a soliton, rather than in the whole plane, and overshoots less in wide gaps.
    if family == "gaussian":
        return np.exp(-0.5 * r**2)
    if family == "rational":
        return (1 + r**2 / 4) ** -2
    raise ValueError(f"unknown kernel family {family!r}: choose one of {FAMILIES}")


def distance(
    a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"], period: float | None
) -> Float[np.ndarray, "n m"]:
    """|a - b|, or the chord (L / pi) |sin(pi (a - b) / L)| on an axis of period L."""
    # The chord embeds the circle in the plane, so every kernel that is positive there stays positive here.
    difference = a[:, None] - b[None, :]
    if period is None:
        return np.abs(difference)
    return period / np.pi * np.abs(np.sin(np.pi / period * difference))


@dataclass(frozen=True)
class Kernel:
    """The kernel of one factor: a family, and one length scale per coordinate (their product is taken)."""

    family: Family
    lengths: tuple[float, ...]


@dataclass(frozen=True)
class SampleAxis:
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

    def of_distances(self, distances: Sequence[np.ndarray], chosen: Kernel) -> np.ndarray:
        """The product of the coordinates' kernels."""
        values = np.ones(distances[0].shape)
        for d, length in zip(distances, chosen.lengths, strict=True):
            values *= kernel(chosen.family, d / length)
        return values


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues (none negative) and orthonormal eigenvectors of a kernel matrix, all or the largest."""

    values: Float[np.ndarray, " r"]
    vectors: Float[np.ndarray, "n r"]


def factors(
    sensors: Float[np.ndarray, "S d"],
    axes: tuple[np.ndarray, ...] | None,
    frames: Float[np.ndarray, " F"],
    domain: Domain,
) -> tuple[SampleAxis, ...]:
    """One factor per spatial axis of a full grid, or one for all scattered sensors; then one for time."""
    *extents, duration = domain.extents
    periods = tuple(e if closed else None for e, closed in zip(extents, domain.periodic, strict=True))
    time = SampleAxis(frames[:, None], (duration,), (None,))
    if axes is None:
        return SampleAxis(sensors, tuple(extents), periods), time
    space = (SampleAxis(x[:, None], (e,), (p,)) for x, e, p in zip(axes, extents, periods, strict=True))
    return *space, time


def decompose(factor: SampleAxis, chosen: Kernel) -> Spectrum:
    """Eigendecomposition of the factor's kernel matrix; by FFT for equidistant points on a circle."""
    if factor.circulant:
        row = factor.cross(factor.points[:1], chosen)[0]
        values = np.fft.rfft(row).real
        # Every wavenumber owns a cosine and a sine, but for 0 and Nyquist.
        doubled = np.repeat(values, 2)[1 : len(row) + 1]
        return Spectrum(np.maximum(doubled, 0), factor.modes)
    values, vectors = np.linalg.eigh(factor.of_distances(factor.distances, chosen))
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


_WAVES = 1000


def wave_vectors(
    part: SampleAxis, chosen: Kernel, rng: np.random.Generator
) -> list[Float[np.ndarray, "k waves"]]:
    """Wave vectors per coordinate, from the kernel's spectrum; two components where the axis is a circle."""
    result = []
    for period, length in zip(part.periods, chosen.lengths, strict=True):
        wave = rng.standard_normal((1 if period is None else 2, _WAVES)) / length
        if chosen.family == "rational":  # a Gaussian whose precision is Gamma(2, 1/2)
            wave = wave * np.sqrt(rng.gamma(2.0, 0.5, _WAVES))
        result.append(wave)
    return result


def phases(part: SampleAxis, points: np.ndarray, waves: list[np.ndarray]) -> Complex[np.ndarray, "n waves"]:
    """exp(i w . x) at the points; a circle is embedded in the plane, as for its kernel."""
    phase = np.zeros((len(points), _WAVES))
    for x, period, wave in zip(points.T, part.periods, waves, strict=True):
        if period is None:
            place = x[:, None] - part.points[:, 0].mean()
        else:
            angle = 2 * np.pi * x / period
            place = period / (2 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle)])
        phase += place @ wave
    return np.exp(1j * phase)


def on_product(weights: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    """sum over waves of Re(weight * product of the factors' phases), shaped like the sample grid."""
    *space, last = factors
    rows = weights[None, :]
    for factor in space:
        rows = (rows[:, None, :] * factor[None, :, :]).reshape(-1, len(weights))
    values = np.real(rows) @ np.real(last).T - np.imag(rows) @ np.imag(last).T
    return values.reshape(*(len(factor) for factor in factors))


def weights(shape: tuple[int, ...], rng: np.random.Generator) -> Complex[np.ndarray, "..."]:
    """Weights of the waves for functions of unit variance: an array of this shape of them."""
    size = (*shape, _WAVES)
    return (rng.standard_normal(size) + 1j * rng.standard_normal(size)) / np.sqrt(_WAVES)
