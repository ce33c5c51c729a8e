"""Observations -> posterior of a separable Gaussian process: its mean and its variance on any grid.

On a sensor x frame grid u_hat(x, t) = m + k_x(x)^T alpha k_t(t), with alpha from eigendecompositions of the
kernel matrices, one per axis; nothing is trained. With probes that move, clocks of their own or points at
random, the solve does not depend on the number of samples after one pass of Fourier sums over them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod

import numpy as np
from jaxtyping import Bool, Float
from tqdm.auto import tqdm

from fts.domain import grid_points
from fts.io.streams import MOST_GROUPS
from fts.kernel.covariance import (
    Choice,
    SampleAxis,
    Spectrum,
    decompose,
    factors,
    feature_weights,
    fourier_features,
    multiply,
    precision,
    rotate,
    sample_frequencies,
    sum_features,
)
from fts.kernel.cross_validation import implied_variance
from fts.kernel.normal_equations import (
    FourierSums,
    KnownSums,
    MaskedNormalEquations,
    MeanFunction,
    NormalEquations,
    PartialGrid,
    Solution,
    assemble,
    draw_prior,
    fit_to_draw,
    mean_function,
    partial_grid,
)
from fts.kernel.posterior import (
    DrawnVariance,
    Posterior,
    PosteriorVariance,
    interleaved_halves,
    nugget_of_halves,
)
from fts.kernel.search import search_grid, search_partial_grid, search_scattered
from fts.observations import LEAST_POINTS, InsufficientData, Observations, has_more_rows_than
from fts.validation import warn_if_long

BAR_DELAY = 2.0  # seconds; what is faster shows no bar
_BLOCK = 4096  # grid points of scattered sensors evaluated at once
# Seconds per cube of a matrix's size, of which a factor of two either way is to be expected; decompositions
# of the whole grid: what a search takes beyond these is bounded.
_EIGENVECTORS, _DECOMPOSITIONS = 2e-10, 2
_FEW = 8  # samples per sensor, or per frame, at least, for these to be groups
# A solve that has come close when its steps end is kept: ten times the nugget costs more than the rest does.
_TOLERANCE, _CLOSE, _MOST, _EASIER = 1e-7, 1e-6, 1500, 10.0


@dataclass(frozen=True, kw_only=True)
class SeparablePosterior(Posterior):
    """A Gaussian process given samples on a product grid; `weights` is (K + s)^-1 y in its eigenbasis."""

    parts: tuple[SampleAxis, ...]
    spectra: tuple[Spectrum, ...]
    values: Float[np.ndarray, "..."]  # the samples in units of scale, zero in holes
    weights: Float[np.ndarray, "..."]
    amplitude: float  # prior variance, in squared units of scale
    holes: MaskedNormalEquations | None = None  # where samples are missing from the grid

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

    def draw_error(self, nodes: Sequence[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        pairs = zip(self.parts, self.choice.kernels, strict=True)
        frequencies = [sample_frequencies(part, kernel, rng) for part, kernel in pairs]
        weights = feature_weights((), rng)
        known, truth = (
            sum_features(weights, list(map(fourier_features, self.parts, points, frequencies)))
            for points in ([part.points for part in self.parts], self._points(nodes))
        )
        known = known + np.sqrt(self.nugget) * rng.standard_normal(known.shape)
        mean = replace(self, weights=self._weights_given(known)).standardized(*nodes)
        return self.scale * np.sqrt(self.amplitude) * (truth.reshape(mean.shape) - mean)

    def variance(self) -> PosteriorVariance:
        """The posterior variance: exact on a full grid, from draws where it has holes."""
        return ExactVariance(self) if self.holes is None else DrawnVariance(self)

    def split(
        self, count: int, smoothing: float, rng: np.random.Generator
    ) -> tuple[tuple["SeparablePosterior", "SeparablePosterior"], ...]:
        """Halves along the axis sampled most densely for its length scale: each still resolves the field."""
        axis = min(range(len(self.parts)), key=self._spacing)
        points = self.parts[axis].points
        if self.holes is not None or len(points) < 2 * LEAST_POINTS:
            return ()
        nugget = nugget_of_halves(self.choice.nugget, smoothing, self.weights.size)
        return tuple(
            (self._half(axis, first, nugget), self._half(axis, ~first, nugget))
            for first in interleaved_halves(points, count, rng)
        )

    def _spacing(self, axis: int) -> float:
        """Between samples along the axis, in units of its kernel's length scale."""
        part, lengths = self.parts[axis], np.array(self.choice.kernels[axis].lengths)
        relative = np.exp(np.mean(np.log(np.array(part.extents) / lengths)))
        return float(relative / len(part.points) ** (1 / len(lengths)))

    def _half(self, axis: int, kept: Bool[np.ndarray, " n"], nugget: float) -> "SeparablePosterior":
        """The process given the samples at the kept points of one axis."""
        parts, spectra = list(self.parts), list(self.spectra)
        parts[axis] = parts[axis].subset(kept)
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

    def _weights_given(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The weights that other values at the same samples would get."""
        if self.holes is not None:
            return self.holes.weights(self.holes.solve(values).z)
        return rotate(values, self.spectra) * precision(self.spectra, self.nugget)

    def _points(self, axes: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The tensor grid of the axes, by the factors of the kernel."""
        *space, t = (np.asarray(axis, dtype=float) for axis in axes)
        together = len(self.parts) != len(axes)
        return [*([grid_points(tuple(space))] if together else [x[:, None] for x in space]), t[:, None]]

    def _rows(self, axes: Sequence[np.ndarray]) -> list[np.ndarray]:
        """k(point, samples) in the eigenbasis, for each factor."""
        axes = [np.asarray(axis, dtype=float) for axis in axes]
        together = len(self.parts) != len(axes)
        grids = [axes[:-1], axes[-1:]] if together else [[axis] for axis in axes]
        rows = []
        for grid, part, kernel, spectrum in zip(
            grids, self.parts, self.choice.kernels, self.spectra, strict=True
        ):
            # Along each coordinate of a grid the kernel is evaluated once.
            first, *others = part.cross_by_coordinate(grid, kernel)
            step = max(1, _BLOCK // prod(map(len, others)))
            blocks = ([first[i : i + step], *others] for i in range(0, len(first), step))
            rows.append(np.concatenate([reduce(_products, block) @ spectrum.vectors for block in blocks]))
        return rows


def _products(a: Float[np.ndarray, "m n"], b: Float[np.ndarray, "k n"]) -> Float[np.ndarray, "_ n"]:
    """Every row of one matrix times every row of another, entry by entry."""
    return (a[:, None] * b[None]).reshape(-1, a.shape[1])


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


@dataclass(frozen=True, kw_only=True)
class ScatteredPosterior(Posterior):
    """A Gaussian process given scattered samples, by coefficients of groups and Fourier modes."""

    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]
    sums: FourierSums
    system: NormalEquations
    z: Float[np.ndarray, "..."]
    calibrate: Callable[[], float]  # draws the amplitude: prior variance, in squared units of scale
    steps: int  # of the conjugate gradients

    @cached_property
    def _function(self) -> MeanFunction:
        return mean_function(self.system, self.z)

    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`."""
        return self._function.on_grid(*axes)

    def draw_error(self, nodes: Sequence[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        frames = self.system.layout.grouping == "frames"
        wanted = nodes[-1][:, None] if frames else grid_points(tuple(nodes[:-1]))
        known, truth = draw_prior(self.system, wanted, rng)
        mean = fit_to_draw(self.sums, self.system, known, rng)
        missed = mean.sum_modes(truth, *nodes) - mean.on_grid(*nodes)
        return self.scale * np.sqrt(self.calibrate()) * missed

    def split(
        self, count: int, smoothing: float, rng: np.random.Generator
    ) -> tuple[tuple["ScatteredPosterior", "ScatteredPosterior"], ...]:
        """Of every two neighbours in space-time one each; near is meant in units of the length scales."""
        space, time = self.choice.kernels
        if len(self.t) < 2 * LEAST_POINTS**2:
            return ()
        points = np.column_stack([self.x / np.array(space.lengths), self.t / time.lengths[0]])
        nugget = nugget_of_halves(self.choice.nugget, smoothing, len(self.t))
        return tuple(
            (self._half(first, nugget), self._half(~first, nugget))
            for first in interleaved_halves(points, count, rng)
        )

    def _half(self, kept: Bool[np.ndarray, " n"], nugget: float) -> "ScatteredPosterior":
        """The process given the kept samples."""
        x, t = self.x[kept], self.t[kept]
        sums = FourierSums(x, t, self.sums.y[kept], self.domain, self.system.layout.grouping)
        choice, system, solution = solve_with_nugget(sums, replace(self.choice, nugget=nugget))
        return replace(
            self,
            x=x,
            t=t,
            sums=sums,
            system=system,
            z=solution.z,
            choice=choice,
            steps=solution.steps,
            seconds=0.0,
        )


def condition_grid(observations: Observations, *, progress: bool = True) -> SeparablePosterior:
    """The Gaussian process given the observations, kernels chosen by what they predict of left-out groups."""
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
        seconds_of_grid(parts),
        f"fitting {len(grid.sensors):,} sensors x {len(grid.frames):,} frames",
        "give every second sensor or frame",
    )
    values = ((grid.values - mean) / scale).reshape(*(len(part.points) for part in parts))
    with tqdm(total=2 * len(parts) + 1, desc="fit", disable=not progress, delay=BAR_DELAY) as bar:
        choice = search_grid(parts, values, bar.update)
    spectra = tuple(decompose(part, kernel) for part, kernel in zip(parts, choice.kernels, strict=True))
    weights = rotate(values, spectra) * precision(spectra, choice.nugget)
    grid_samples = PartialGrid(parts, np.ones(values.shape, dtype=bool), values)
    return _posterior(observations, grid_samples, (mean, scale), choice, spectra, weights, began)


def condition_partial_grid(
    observations: Observations, rng: np.random.Generator, step: Callable[[], object]
) -> SeparablePosterior | None:
    """The same for a grid with holes; None where samples lie anywhere."""
    began = time.perf_counter()
    mean, scale = float(observations.y.mean()), float(observations.y.std())
    samples = partial_grid(observations, (observations.y - mean) / scale)
    if samples is None:
        return None
    choice, system, solution, completed = search_partial_grid(samples, rng, step)
    # Which variance left-out groups imply is read off the completed grid.
    weights = rotate(completed, system.spectra) * precision(system.spectra, choice.nugget)
    posterior = _posterior(observations, samples, (mean, scale), choice, system.spectra, weights, began)
    return replace(posterior, weights=system.weights(solution.z), holes=system)


def _posterior(
    observations: Observations,
    samples: PartialGrid,
    units: tuple[float, float],
    choice: Choice,
    spectra: tuple[Spectrum, ...],
    weights: Float[np.ndarray, "..."],
    began: float,
) -> SeparablePosterior:
    """The process of these weights, with the prior variance that left-out groups of the worst axis imply."""
    mean, scale = units
    amplitude = implied_variance(spectra, weights, choice.nugget, int(np.argmax(choice.errors)))
    return SeparablePosterior(
        parts=samples.parts,
        spectra=spectra,
        values=samples.values,
        weights=weights,
        amplitude=amplitude,
        domain=observations.domain,
        choice=choice,
        mean=mean,
        scale=scale,
        noise=_noise(scale, amplitude, choice.nugget),
        seconds=time.perf_counter() - began,
    )


def condition_scattered(
    observations: Observations, rng: np.random.Generator, step: Callable[[], object]
) -> ScatteredPosterior:
    """The Gaussian process given samples anywhere, kernels chosen by what they predict of those left out."""
    began = time.perf_counter()
    x, t, y = observations.x, observations.t, observations.y
    mean, scale = float(y.mean()), float(y.std())
    values, grouping = (y - mean) / scale, _grouping(observations)
    choice, calibrate = search_scattered(observations, values, grouping, rng, step)
    sums = FourierSums(x, t, values, observations.domain, grouping)
    choice, system, solution = solve_with_nugget(sums, choice)
    step()
    z = solution.z
    return ScatteredPosterior(
        x=x,
        t=t,
        sums=sums,
        system=system,
        z=z,
        calibrate=calibrate,
        steps=solution.steps,
        domain=observations.domain,
        choice=choice,
        mean=mean,
        scale=scale,
        noise=scale * residual_deviation(system, z, float(values @ values)),
        seconds=time.perf_counter() - began,
    )


def residual_deviation(system: NormalEquations, z: Float[np.ndarray, "..."], square: float) -> float:
    """Of the residuals, less the freedom that the field has taken from them; `square` sums the samples'."""
    left = square - 2 * float(np.vdot(z, system.right)) + float(np.vdot(z, system.normal(z)))
    return float(np.sqrt(max(left, 0.0) / max(system.layout.count - system.freedom, 1)))


def solve_with_nugget(sums: KnownSums, choice: Choice) -> tuple[Choice, NormalEquations, Solution]:
    """The solve, with a larger nugget where it does not come close."""
    while True:
        system = assemble(sums, choice.kernels, choice.nugget)
        solution = system.solve(system.right, tolerance=_TOLERANCE, most=_MOST)
        if solution.residual < _CLOSE or choice.nugget >= 1:
            return choice, system, solution
        choice = replace(choice, nugget=_EASIER * choice.nugget)


def refuse_constant(values: Float[np.ndarray, "..."]) -> None:
    """Refuse samples that are all the same."""
    mean = float(values.mean())
    if float(values.std()) <= 1e-12 * max(abs(mean), np.finfo(float).tiny):
        raise InsufficientData(
            f"all samples equal {mean}: a constant field tells no terms apart, measure one that varies"
        )


def seconds_of_grid(parts: Sequence[SampleAxis]) -> float:
    """Seconds that a sensor x frame grid takes beyond its search, which is bounded."""
    return _EIGENVECTORS * _DECOMPOSITIONS * sum(len(p.points) ** 3 for p in parts if not p.circulant)


def most_groups(count: int) -> float:
    """Sensors, or frames, up to which so many samples are grouped by them: each has some samples then."""
    return min(count / _FEW, float(MOST_GROUPS), float(np.sqrt(count)))


def _grouping(observations: Observations) -> str:
    """Whether sensors or frames recur often enough to be groups."""
    most = most_groups(len(observations))
    for name, points in (("sensors", observations.x), ("frames", observations.t[:, None])):
        if not has_more_rows_than(most, points):
            return name
    return ""


def _noise(scale: float, amplitude: float, nugget: float) -> float:
    return scale * float(np.sqrt(amplitude * nugget))
