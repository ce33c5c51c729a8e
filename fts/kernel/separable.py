"""Observations -> posterior of a separable Gaussian process: its mean and its variance on any grid.

u_hat(x, t) = m + k_x(x)^T alpha k_t(t) with alpha from eigendecompositions of the kernel matrices, one per
axis; nothing is trained.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float
from tqdm.auto import tqdm

from fts.domain import grid_points
from fts.kernel.covariance import (
    SampleAxis,
    Spectrum,
    decompose,
    factors,
    multiply,
    on_product,
    phases,
    precision,
    rotate,
    wave_vectors,
)
from fts.kernel.covariance import weights as random_weights
from fts.kernel.holes import Selected, choose, holed
from fts.kernel.normal_equations import of_grid
from fts.kernel.posterior import (
    DrawnVariance,
    Posterior,
    PosteriorVariance,
    interleaved_halves,
    nugget_of_halves,
)
from fts.kernel.search import Choice, search
from fts.observations import LEAST_POINTS, InsufficientData, Observations
from fts.validation import warn_if_long

BAR_DELAY = 2.0  # seconds; what is faster shows no bar
_BLOCK = 4096  # grid points of scattered sensors evaluated at once


@dataclass(frozen=True, kw_only=True)
class SeparablePosterior(Posterior):
    """A Gaussian process given samples on a product grid; `weights` is (K + s)^-1 y in its eigenbasis."""

    parts: tuple[SampleAxis, ...]
    spectra: tuple[Spectrum, ...]
    values: Float[np.ndarray, "..."]  # the samples in units of scale, zero in holes
    weights: Float[np.ndarray, "..."]
    amplitude: float  # prior variance, in squared units of scale
    holes: Selected | None = None  # where samples are missing from the grid

    @property
    def nugget(self) -> float:
        """The nugget, or the rounding of K where that is more: eigenvalues reach the number of samples."""
        return max(self.choice.nugget, float(np.finfo(float).eps) * self.weights.size)

    @property
    def fast_on_grids(self) -> bool:
        """Scattered sensors need a kernel between all of them and all nodes of space."""
        return len(self.parts) == self.domain.dimension + 1

    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`."""
        values = self.weights
        for i, rows in enumerate(self._rows(axes)):
            values = multiply(values, rows, i)
        return values.reshape(*(axis.size for axis in axes))

    def refit(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The weights that other values at the same samples would get."""
        if self.holes is not None:
            return self.holes.weights(self.holes.solve(values).z)
        return rotate(values, self.spectra) * precision(self.spectra, self.nugget)

    def draw_error(self, nodes: Sequence[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        points = self._points(nodes)
        waves = [wave_vectors(part, k, rng) for part, k in zip(self.parts, self.choice.kernels, strict=True)]
        weights = random_weights((), rng)
        known, wanted = (
            on_product(
                weights,
                [phases(part, at, wave) for part, at, wave in zip(self.parts, where, waves, strict=True)],
            )
            for where in ([part.points for part in self.parts], points)
        )
        known = known + np.sqrt(self.nugget) * rng.standard_normal(known.shape)
        mean = replace(self, weights=self.refit(known)).standardized(*nodes)
        return self.scale * np.sqrt(self.amplitude) * (wanted.reshape(mean.shape) - mean)

    def variance(self) -> PosteriorVariance:
        """The posterior variance: exact on a full grid, from draws where it has holes."""
        return ExactVariance(self) if self.holes is None else DrawnVariance(self)

    def split(
        self, count: int, smoothing: float, rng: np.random.Generator
    ) -> tuple[tuple["SeparablePosterior", "SeparablePosterior"], ...]:
        """Halves along the axis sampled most densely for its length scale: each still resolves the field."""
        axis = self._densest
        points = self.parts[axis].points
        if self.holes is not None or len(points) < 2 * LEAST_POINTS:
            return ()
        nugget = nugget_of_halves(self.choice.nugget, smoothing, self.weights.size)
        return tuple(
            (self._half(axis, first, nugget), self._half(axis, ~first, nugget))
            for first in interleaved_halves(points, count, rng)
        )

    @property
    def _densest(self) -> int:
        """The axis with the smallest spacing of samples in units of its kernel's length scale."""

        def spacing(axis: int) -> float:
            part, lengths = self.parts[axis], np.array(self.choice.kernels[axis].lengths)
            relative = np.exp(np.mean(np.log(np.array(part.extents) / lengths)))
            return float(relative / len(part.points) ** (1 / len(lengths)))

        return min(range(len(self.parts)), key=spacing)

    def _half(self, axis: int, kept: Bool[np.ndarray, " n"], nugget: float) -> "SeparablePosterior":
        """The process given the samples at the kept points of one axis."""
        part = self.parts[axis]
        parts, spectra = list(self.parts), list(self.spectra)
        parts[axis] = SampleAxis(part.points[kept], part.extents, part.periods)
        spectra[axis] = decompose(parts[axis], self.choice.kernels[axis])
        values = np.compress(kept, self.values, axis)
        return replace(
            self,
            parts=tuple(parts),
            spectra=tuple(spectra),
            choice=replace(self.choice, nugget=nugget),
            values=values,
            weights=rotate(values, spectra) * precision(spectra, nugget),
            noise=_noise(self.scale, self.amplitude, nugget),
        )

    def _points(self, axes: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The tensor grid of the axes, by the factors of the kernel."""
        *space, t = (np.asarray(axis, dtype=float) for axis in axes)
        together = len(self.parts) != len(axes)
        return [*([grid_points(tuple(space))] if together else [x[:, None] for x in space]), t[:, None]]

    def _rows(self, axes: Sequence[np.ndarray]) -> list[np.ndarray]:
        """k(point, samples) in the eigenbasis, for each factor."""
        every = zip(self._points(axes), self.parts, self.choice.kernels, self.spectra, strict=True)
        return [
            np.concatenate(
                [part.cross(x[i : i + _BLOCK], chosen) @ s.vectors for i in range(0, len(x), _BLOCK)]
            )
            for x, part, chosen, s in every
        ]


@dataclass(frozen=True)
class ExactVariance(PosteriorVariance):
    """The variance given samples on a full product grid, in closed form."""

    posterior: SeparablePosterior

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """amplitude (1 - k^T (K + s)^-1 k) on the tensor grid of the axes (x, [y,] t)."""
        explained = precision(self.posterior.spectra, self.posterior.nugget)
        for i, rows in enumerate(self.posterior._rows(axes)):
            explained = multiply(explained, rows**2, i)
        # Near a sample prior and data term cancel; rounding may leave less than nothing.
        rest = np.maximum(1 - explained, 0).reshape(*(axis.size for axis in axes))
        return self.posterior.scale**2 * self.posterior.amplitude * rest


def condition(observations: Observations, *, progress: bool = True) -> SeparablePosterior:
    """The Gaussian process given the observations, kernels chosen by what they predict of left-out slices."""
    began, grid = time.perf_counter(), observations.grid
    if grid is None:
        raise ValueError(
            f"the {len(observations)} samples fill no sensor x frame grid, which halves of it need: "
            "use fts.fit, which takes any samples"
        )
    parts = factors(grid.sensors, grid.axes, grid.frames, observations.domain)
    mean, scale = float(grid.values.mean()), float(grid.values.std())
    refuse_constant(grid.values)
    warn_if_long(
        of_grid(parts),
        f"fitting {len(grid.sensors):,} sensors x {len(grid.frames):,} frames",
        "give every second sensor or frame",
    )
    values = ((grid.values - mean) / scale).reshape(*(len(part.points) for part in parts))
    with tqdm(total=2 * len(parts) + 1, desc="fit", disable=not progress, delay=BAR_DELAY) as bar:
        choice = search(parts, values, bar.update)
    spectra = tuple(decompose(part, chosen) for part, chosen in zip(parts, choice.kernels, strict=True))
    rotated = rotate(values, spectra)
    weights = rotated * precision(spectra, choice.nugget)
    amplitude = _amplitude(spectra, weights, choice)
    return SeparablePosterior(
        parts=parts,
        spectra=spectra,
        values=values,
        weights=weights,
        amplitude=amplitude,
        domain=observations.domain,
        choice=choice,
        mean=mean,
        scale=scale,
        noise=_noise(scale, amplitude, choice.nugget),
        seconds=time.perf_counter() - began,
    )


def condition_holed(
    observations: Observations, rng: np.random.Generator, step: Callable[[], object]
) -> SeparablePosterior | None:
    """The same for a grid with holes; None where samples lie anywhere."""
    began = time.perf_counter()
    mean, scale = float(observations.y.mean()), float(observations.y.std())
    samples = holed(observations, (observations.y - mean) / scale)
    if samples is None:
        return None
    choice, system, solution, completed = choose(samples, rng, step)
    # Which variance left-out slices imply is read off the completed grid.
    weights = rotate(completed, system.spectra) * precision(system.spectra, choice.nugget)
    amplitude = _amplitude(system.spectra, weights, choice)
    return SeparablePosterior(
        parts=samples.parts,
        spectra=system.spectra,
        values=samples.values,
        weights=system.weights(solution.z),
        amplitude=amplitude,
        holes=system,
        domain=observations.domain,
        choice=choice,
        mean=mean,
        scale=scale,
        noise=_noise(scale, amplitude, choice.nugget),
        seconds=time.perf_counter() - began,
    )


def refuse_constant(values: Float[np.ndarray, "..."]) -> None:
    """Refuse samples that are all the same."""
    mean = float(values.mean())
    if float(values.std()) <= 1e-12 * max(abs(mean), np.finfo(float).tiny):
        raise InsufficientData(
            f"all samples equal {mean}: a constant field tells no terms apart, measure one that varies"
        )


def _noise(scale: float, amplitude: float, nugget: float) -> float:
    return scale * float(np.sqrt(amplitude * nugget))


def _amplitude(spectra: Sequence[Spectrum], weights: np.ndarray, choice: Choice) -> float:
    """Prior variance for which left-out slices of the worst axis err as much as the process expects."""
    axis = int(np.argmax(choice.errors))
    v = spectra[axis].vectors
    d = np.tensordot(v**2, precision(spectra, choice.nugget), (1, axis))
    residual = np.tensordot(v, weights, (1, axis)) / d
    return float(np.mean(residual**2) / np.mean(1 / d))
