"""Observations -> FrozenField in closed form: the posterior mean of a separable Gaussian process.

u_hat(x, t) = m + k_x(x)^T alpha k_t(t) with alpha from eigendecompositions of the kernel matrices, one per
axis; nothing is trained. Kernels, length scales and nugget are those with the least error on slices of the
data that were left out. The mean is frozen as a low-rank Fourier and Chebyshev series to a stated tolerance;
the posterior variance is a field too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from tqdm.auto import tqdm

from fts.data import Observations
from fts.domain import Domain, grid_points
from fts.frozen import FrozenField
from fts.kronecker import Choice, Factor, Spectrum, decompose, factors, multiply, precision, rotate, search
from fts.radial import Basis, SeriesCoefficients, SeriesFeatures

# Error of freezing in deviations of the data: 1e-6, or a thousandth of the noise where that is more, or what
# it takes to store no more numbers than the largest; the bases are trimmed to a tenth of it.
_TOLERANCE, _NOISE_SHARE, _LARGEST, _TRIM = 1e-6, 1e-3, 24_000, 0.1
_SHORTEST = 32  # functions per axis to begin with
_BAR_DELAY = 2.0  # seconds; what is faster shows no bar
_BLOCK = 4096  # grid points of scattered sensors evaluated at once


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process given samples on a product grid; `weights` is (K + s)^-1 y in its eigenbasis."""

    parts: tuple[Factor, ...]
    spectra: tuple[Spectrum, ...]
    choice: Choice
    weights: Float[np.ndarray, "..."]
    mean: float
    scale: float  # deviation of the samples, the unit of weights and amplitude
    amplitude: float  # prior variance, in squared units of scale
    domain: Domain

    @property
    def nugget(self) -> float:
        """The nugget, or the rounding of K where that is more: eigenvalues reach the number of samples."""
        return max(self.choice.nugget, float(np.finfo(float).eps) * self.weights.size)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise, estimated: sqrt(amplitude * nugget)."""
        return self.scale * float(np.sqrt(self.amplitude * self.choice.nugget))

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean on the tensor grid of the axes (x, [y,] t)."""
        values = self.weights
        for i, rows in enumerate(self._rows(axes)):
            values = multiply(values, rows, i)
        return self.mean + self.scale * values.reshape(*(axis.size for axis in axes))

    def _rows(self, axes: Sequence[np.ndarray]) -> list[np.ndarray]:
        """k(point, samples) in the eigenbasis, for each factor."""
        *space, t = (np.asarray(axis, dtype=float) for axis in axes)
        tensor = len(self.parts) == len(axes)
        points = [axis[:, None] for axis in space] if tensor else [grid_points(tuple(space))]
        every = zip([*points, t[:, None]], self.parts, self.choice.kernels, self.spectra, strict=True)
        return [
            np.concatenate(
                [part.cross(x[i : i + _BLOCK], chosen) @ s.vectors for i in range(0, len(x), _BLOCK)]
            )
            for x, part, chosen, s in every
        ]


@dataclass(frozen=True)
class PosteriorVariance:
    """Where the field can be trusted: the variance given the samples, with the interface of a field."""

    posterior: Posterior

    @property
    def domain(self) -> Domain:
        """The box the process lives on."""
        return self.posterior.domain

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """amplitude (1 - k^T (K + s)^-1 k) on the tensor grid of the axes (x, [y,] t)."""
        explained = precision(self.posterior.spectra, self.posterior.nugget)
        for i, rows in enumerate(self.posterior._rows(axes)):
            explained = multiply(explained, rows**2, i)
        # Near a sample prior and data term cancel; rounding may leave less than nothing.
        rest = np.maximum(1 - explained, 0).reshape(*(axis.size for axis in axes))
        return self.posterior.scale**2 * self.posterior.amplitude * rest


def fit(observations: Observations, *, progress: bool = True) -> FrozenField:
    """The posterior mean given the observations, frozen; needs samples at every sensor for every frame."""
    return freeze(condition(observations, progress=progress), observations)


def fit_with_variance(
    observations: Observations, *, progress: bool = True
) -> tuple[FrozenField, PosteriorVariance]:
    """The frozen posterior mean, and the posterior variance as a field."""
    posterior = condition(observations, progress=progress)
    return freeze(posterior, observations), PosteriorVariance(posterior)


def condition(observations: Observations, *, progress: bool = True) -> Posterior:
    """The Gaussian process given the observations, kernels chosen by what they predict of left-out slices."""
    grid = observations.grid
    if grid is None:
        raise ValueError(
            f"the {len(observations)} samples fill no sensor x frame grid, which the closed form needs: "
            'use recipe="projected"'
        )
    parts = factors(grid.sensors, grid.axes, grid.frames, observations.domain)
    mean, scale = float(grid.values.mean()), float(grid.values.std())
    if scale <= 1e-12 * max(abs(mean), np.finfo(float).tiny):
        raise ValueError(f"all samples equal {mean}: a constant field has nothing to fit")
    values = ((grid.values - mean) / scale).reshape(*(len(part.points) for part in parts))
    with tqdm(total=2 * len(parts) + 1, desc="fit", disable=not progress, delay=_BAR_DELAY) as bar:
        choice = search(parts, values, bar.update)
    spectra = tuple(decompose(part, chosen) for part, chosen in zip(parts, choice.kernels, strict=True))
    rotated = rotate(values, spectra)
    weights = rotated * precision(spectra, choice.nugget)
    amplitude = _amplitude(spectra, weights, choice)
    return Posterior(parts, spectra, choice, weights, mean, scale, amplitude, observations.domain)


def freeze(posterior: Posterior, observations: Observations) -> FrozenField:
    """The posterior mean as a field of low rank: truncated series per axis, truncated singular values."""
    tolerance = max(_TOLERANCE, _NOISE_SHARE * posterior.noise / posterior.scale)
    bases, series = _expand(posterior, tolerance)
    halves = _truncate(bases, series, tolerance)
    while sum(half.size for half in halves[1:]) > _LARGEST:
        tolerance *= 1.5
        halves = _truncate(bases, series, tolerance)
    (*space, time), features, coefficients = halves[0], posterior.scale * halves[1], halves[2]
    features[0, 0] += posterior.mean
    return FrozenField(
        space=SeriesFeatures(tuple(space), features.astype(np.float32)),
        time=SeriesCoefficients(time, coefficients.astype(np.float32)),
        domain=posterior.domain,
        made=_made(posterior, observations, tolerance),
    )


def _expand(posterior: Posterior, tolerance: float) -> tuple[list[Basis], np.ndarray]:
    """Bases long enough for the posterior mean, and its coefficients."""
    domain = posterior.domain
    limits = zip((*domain.low, domain.t0), (*domain.high, domain.t1), (*domain.periodic, False), strict=True)
    bases = [Basis(*limit, _SHORTEST + limit[2]) for limit in limits]
    lengths = [length for chosen in posterior.choice.kernels for length in chosen.lengths]
    # Sixteen functions per length scale resolve the kernel itself: what is left beyond them is rounding.
    most = [16 * extent / length for extent, length in zip(domain.extents, lengths, strict=True)]
    while True:
        series = _series(posterior, bases)
        # A series is long enough when its last quarter can be dropped.
        short = [
            i
            for i, basis in enumerate(bases)
            if basis.size < most[i] and _kept(_power(series, i), _TRIM * tolerance) > 3 * basis.size // 4
        ]
        if not short:
            return bases, series
        for i in short:
            bases[i] = replace(bases[i], size=2 * bases[i].size - bases[i].periodic)


def _truncate(
    bases: list[Basis], series: np.ndarray, tolerance: float
) -> tuple[list[Basis], Float[np.ndarray, "K R1"], Float[np.ndarray, "N R"]]:
    """Bases, features and temporal coefficients that keep the series to the tolerance."""
    bases = list(bases)
    for axis, basis in enumerate(bases):
        size = _kept(_power(series, axis), _TRIM * tolerance)
        # A cosine keeps its sine.
        bases[axis] = replace(basis, size=size + (basis.periodic and size % 2 == 0))
        series = np.take(series, range(bases[axis].size), axis)
    table = series.reshape(-1, bases[-1].size)
    # The part that is constant in time is the background.
    background, table = table[:, :1], table.copy()
    table[:, 0] = 0
    left, singular, right = np.linalg.svd(table, full_matrices=False)
    rank = _kept(singular**2, tolerance)
    features = np.concatenate([background, left[:, :rank] * singular[:rank]], axis=1)
    return bases, features, right[:rank].T


def _series(posterior: Posterior, bases: Sequence[Basis]) -> np.ndarray:
    values = posterior.weights
    for i, rows in enumerate(posterior._rows([basis.nodes for basis in bases])):
        values = multiply(values, rows, i)
    values = values.reshape(*(basis.size for basis in bases))
    for axis, basis in enumerate(bases):
        moved = np.moveaxis(values, axis, 0)
        table = basis.transform(moved.reshape(basis.size, -1))
        values = np.moveaxis(table.reshape(moved.shape), 0, axis)
    return values


def _power(series: np.ndarray, axis: int) -> np.ndarray:
    others = tuple(i for i in range(series.ndim) if i != axis)
    return np.sum(series**2, axis=others)


def _kept(power: np.ndarray, tolerance: float) -> int:
    """How many leading entries leave behind at most the tolerance, squared, of all power."""
    tail = np.cumsum(power[::-1])[::-1]
    return max(1, int(np.sum(tail > tolerance**2 * tail[0])))


def _amplitude(spectra: Sequence[Spectrum], weights: np.ndarray, choice: Choice) -> float:
    """Prior variance for which left-out slices of the worst axis err as much as the process expects."""
    axis = int(np.argmax(choice.errors))
    v = spectra[axis].vectors
    d = np.tensordot(v**2, precision(spectra, choice.nugget), (1, axis))
    residual = np.tensordot(v, weights, (1, axis)) / d
    return float(np.mean(residual**2) / np.mean(1 / d))


def _made(posterior: Posterior, observations: Observations, tolerance: float) -> dict[str, Any]:
    kernels = [{"family": k.family, "lengths": list(k.lengths)} for k in posterior.choice.kernels]
    return {
        "recipe": "kernel",
        "parameters": {
            "kernels": kernels,
            "nugget": posterior.choice.nugget,
            "tolerance": tolerance,
            "left_out": list(posterior.choice.errors),
            "noise_estimate": posterior.noise,
        },
        "problem": observations.problem,
        "protocol": observations.protocol,
        "seed": observations.seed,
        "noise": observations.noise,
    }
