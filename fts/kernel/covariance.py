"""Kernels with their spectra and samplers, and one kernel matrix per axis of the samples.

The covariance of samples on a product grid is K_1 (x) ... (x) K_n + s I, one factor per axis. Its
eigenvectors are products of the factors' eigenvectors, so a solve costs a few small matrix products.

Functions drawn from the prior are sums of random Fourier features, whose frequencies have the kernel's
spectral density.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy import fft

from fts.domain import Domain, cosine_and_sine

_FINEST = 1 << 14  # points on a circle where a kernel is sampled for its Fourier coefficients
_FEATURES = 1000  # random Fourier features of a drawn function


@dataclass(frozen=True)
class KernelFamily:
    """A kernel of unit length scale, k(r) = E exp(-v r^2 / 2): a mixture of Gaussians, positive everywhere.

    `precisions` draws v, or is None for a single Gaussian.
    """

    covariance: Callable[[Float[np.ndarray, "..."]], Float[np.ndarray, "..."]]
    precisions: Callable[[np.random.Generator, int], Float[np.ndarray, " n"]] | None = None

    def fourier_coefficients(self, length: float, period: float) -> Float[np.ndarray, " k"]:
        """S_0, S_1, ... of the kernel of the chord around a circle; k(0) = S_0 + 2 sum S_k."""
        step = np.arange(_FINEST) / _FINEST
        values = self.covariance(period / (np.pi * length) * np.sin(np.pi * step))
        return np.maximum(np.real(np.asarray(fft.rfft(values))) / _FINEST, 0)

    def sample_frequencies(
        self, length: float, dimension: int, rng: np.random.Generator
    ) -> Float[np.ndarray, "d features"]:
        """Frequencies of random Fourier features, from the kernel's spectral density."""
        frequencies = rng.standard_normal((dimension, _FEATURES)) / length
        if self.precisions is None:
            return frequencies
        return frequencies * np.sqrt(self.precisions(rng, _FEATURES))


# All that defines a family. Both are infinitely smooth: fourth derivatives of the field exist. The
# spectrum of the rational quadratic (1 + r^2 / 4)^-2 decays only exponentially: it expects analyticity in a
# strip, as of a soliton, rather than in the whole plane, and overshoots less in wide gaps.
GAUSSIAN = KernelFamily(lambda r: np.exp(-0.5 * r**2))
FAMILIES: dict[str, KernelFamily] = {
    "gaussian": GAUSSIAN,
    "rational": KernelFamily(lambda r: (1 + r**2 / 4) ** -2, lambda rng, n: rng.gamma(2.0, 0.5, n)),
}


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

    family: str
    lengths: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"unknown kernel family {self.family!r}: choose one of {tuple(FAMILIES)}")

    def covariance(self, distances: Sequence[Float[np.ndarray, "..."]]) -> Float[np.ndarray, "..."]:
        """The product over the coordinates, given the distances along each."""
        values = np.ones(distances[0].shape)
        for r, length in zip(distances, self.lengths, strict=True):
            values *= FAMILIES[self.family].covariance(r / length)
        return values


@dataclass(frozen=True)
class Choice:
    """What a search chose, and the root mean square error of each way of leaving samples out."""

    kernels: tuple[Kernel, ...]
    nugget: float
    errors: tuple[float, ...]


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
        return self.distances_from(self.points)

    @cached_property
    def neighbours(self) -> Int[np.ndarray, "pairs 2"]:
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

    def subset(self, rows: np.ndarray) -> "SampleAxis":
        """The same axis with some of its points, or with points repeated."""
        return SampleAxis(self.points[rows], self.extents, self.periods)

    def distances_from(self, points: Float[np.ndarray, "m k"]) -> tuple[np.ndarray, ...]:
        """Distances between points and samples, per coordinate."""
        axes = zip(points.T, self.points.T, self.periods, strict=True)
        return tuple(distance(x, sample, period) for x, sample, period in axes)

    def cross(self, points: Float[np.ndarray, "m k"], kernel: Kernel) -> Float[np.ndarray, "m n"]:
        """k(point, sample) for all pairs."""
        return kernel.covariance(self.distances_from(points))

    def cross_by_coordinate(self, axes: Sequence[np.ndarray], kernel: Kernel) -> list[np.ndarray]:
        """The factors of k(point, sample) along each coordinate of a tensor grid of points."""
        coordinates = zip(axes, self.points.T, self.periods, kernel.lengths, strict=True)
        covariance = FAMILIES[kernel.family].covariance
        return [covariance(distance(x, sample, p) / length) for x, sample, p, length in coordinates]


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


def decompose(axis: SampleAxis, kernel: Kernel) -> Spectrum:
    """Eigendecomposition of the axis' kernel matrix; by FFT for equidistant points on a circle."""
    if axis.circulant:
        row = axis.cross(axis.points[:1], kernel)[0]
        values = np.fft.rfft(row).real
        # Every wavenumber owns a cosine and a sine, but for 0 and Nyquist.
        doubled = np.repeat(values, 2)[1 : len(row) + 1]
        return Spectrum(np.maximum(doubled, 0), axis.modes)
    values, vectors = np.linalg.eigh(kernel.covariance(axis.distances))
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


def sample_frequencies(axis: SampleAxis, kernel: Kernel, rng: np.random.Generator) -> list[np.ndarray]:
    """Frequencies of random Fourier features per coordinate; two components where the axis is a circle."""
    family = FAMILIES[kernel.family]
    coordinates = zip(axis.periods, kernel.lengths, strict=True)
    return [family.sample_frequencies(length, 1 if p is None else 2, rng) for p, length in coordinates]


def fourier_features(
    axis: SampleAxis, points: Float[np.ndarray, "n k"], frequencies: Sequence[np.ndarray]
) -> Complex[np.ndarray, "n features"]:
    """exp(i w . x) at the points; a circle is embedded in the plane, as for its kernel."""
    phase = np.zeros((len(points), _FEATURES))
    for x, period, w in zip(points.T, axis.periods, frequencies, strict=True):
        if period is None:
            position = x[:, None] - axis.points[:, 0].mean()
        else:
            angle = 2 * np.pi * x / period
            position = period / (2 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle)])
        phase += position @ w
    return np.stack(cosine_and_sine(phase), axis=-1).view(complex)[..., 0]


def feature_weights(shape: tuple[int, ...], rng: np.random.Generator) -> Complex[np.ndarray, "..."]:
    """Weights of the features for functions of unit variance: an array of this shape of them."""
    size = (*shape, _FEATURES)
    return (rng.standard_normal(size) + 1j * rng.standard_normal(size)) / np.sqrt(_FEATURES)


def sum_features(weights: np.ndarray, features: Sequence[np.ndarray]) -> np.ndarray:
    """Re sum of weight * product of the axes' features, on the product grid of the axes."""
    *space, last = features
    rows = weights[None, :]
    for feature in space:
        rows = (rows[:, None, :] * feature[None, :, :]).reshape(-1, len(weights))
    # Re(a b) = Re a Re b - Im a Im b, over real and imaginary parts in turn.
    np.conj(rows, out=rows)
    values = rows.view(float) @ last.view(float).T
    return values.reshape(*(len(feature) for feature in features))
