"""Observations -> posterior of a separable Gaussian process: its mean and its variance on any grid.

u_hat(x, t) = m + k_x(x)^T alpha k_t(t) with alpha from eigendecompositions of the kernel matrices, one per
axis; nothing is trained.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from tqdm.auto import tqdm

from fts.domain import Domain, grid_points
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
from fts.kernel.search import Choice, search
from fts.observations import Observations, TooLittle
from fts.validation import announce

BAR_DELAY = 2.0  # seconds; what is faster shows no bar
_BLOCK = 4096  # grid points of scattered sensors evaluated at once


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process given samples on a product grid; `weights` is (K + s)^-1 y in its eigenbasis."""

    parts: tuple[SampleAxis, ...]
    spectra: tuple[Spectrum, ...]
    choice: Choice
    weights: Float[np.ndarray, "..."]
    mean: float
    scale: float  # deviation of the samples, the unit of weights and amplitude
    amplitude: float  # prior variance, in squared units of scale
    domain: Domain
    seconds: float = 0.0  # what choosing the kernels and conditioning took
    holes: Selected | None = None  # where samples are missing from the grid

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
        return self.mean + self.scale * self.standardized(*axes)

    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The same less the mean, in units of the scale."""
        values = self.weights
        for i, rows in enumerate(self._rows(axes)):
            values = multiply(values, rows, i)
        return values.reshape(*(axis.size for axis in axes))

    def refit(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The weights that other values at the same samples would get."""
        if self.holes is not None:
            return self.holes.weights(self.holes.solve(values).z)
        return rotate(values, self.spectra) * precision(self.spectra, self.nugget)

    def error(self, nodes: list[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        space = [axis[:, None] for axis in nodes[:-1]]
        tensor = len(self.parts) == len(nodes)
        points = [*(space if tensor else [grid_points(tuple(nodes[:-1]))]), nodes[-1][:, None]]
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


def condition(observations: Observations, *, progress: bool = True) -> Posterior:
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
    announce(
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
    seconds = time.perf_counter() - began
    return Posterior(parts, spectra, choice, weights, mean, scale, amplitude, observations.domain, seconds)


def condition_holed(
    observations: Observations, rng: np.random.Generator, step: Callable[[], object]
) -> Posterior | None:
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
    seconds = time.perf_counter() - began
    return Posterior(
        samples.parts,
        system.spectra,
        choice,
        system.weights(solution.z),
        mean,
        scale,
        amplitude,
        observations.domain,
        seconds,
        system,
    )


def refuse_constant(values: Float[np.ndarray, "..."]) -> None:
    """Refuse samples that are all the same."""
    mean = float(values.mean())
    if float(values.std()) <= 1e-12 * max(abs(mean), np.finfo(float).tiny):
        raise TooLittle(
            f"all samples equal {mean}: a constant field tells no terms apart, measure one that varies"
        )


def _amplitude(spectra: Sequence[Spectrum], weights: np.ndarray, choice: Choice) -> float:
    """Prior variance for which left-out slices of the worst axis err as much as the process expects."""
    axis = int(np.argmax(choice.errors))
    v = spectra[axis].vectors
    d = np.tensordot(v**2, precision(spectra, choice.nugget), (1, axis))
    residual = np.tensordot(v, weights, (1, axis)) / d
    return float(np.mean(residual**2) / np.mean(1 / d))
