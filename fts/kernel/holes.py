"""A sensor x frame grid with holes -> the same posterior as without: samples select points of the grid.

In the eigenbasis of the full grid u = m + V lambda^1/2 z, and z solves
(lambda^1/2 V^T M V lambda^1/2 + s) z = lambda^1/2 V^T M y with M = 1 where there is a sample. Holes that are
spread leave V^T M V close to the share of samples times the identity, which is the preconditioner.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from jaxtyping import Bool, Float
from scipy.interpolate import CubicSpline

from fts.kernel import normal_equations
from fts.kernel.covariance import Kernel, SampleAxis, Spectrum, decompose, factors, multiply, rotate
from fts.kernel.dense import MOST, DenseLeftOut, on_closed_axes
from fts.kernel.search import Choice, lowered, search
from fts.observations import Observations, tensor_axes, unique_rows

MOST_PER_SAMPLE = 4  # points of the grid per sample beyond which samples count as scattered
_FEW_HOLES = 0.02  # share up to which what fills them hardly matters
_TOLERANCE, _MOST = 1e-8, 1000
# Where the first field leaves less than this of its samples, in their deviation, holes are completed anew so
# many times, with nuggets whose solves converge; where it leaves more, noise is what limits the search.
_NOISE, _ROUNDS, _SOLVABLE = 0.03, 2, 1e-9
_CUBIC = 4  # samples of a sensor that a cubic spline takes
# Simplex search: share of slices left out, evaluations, solves.
_SHARE, _EVALUATIONS, _LEAST_NUGGET = 0.1, 40, 1e-14
_ACCURACY, _LOOSEST, _MOST_SEARCHING = 0.03, 1e-2, 150
_ROUNDING = 1e-15  # eigenvalues below this of the largest are rounding


@dataclass(frozen=True)
class Holed:
    """Samples on a part of a product grid: `values` are zero in the holes."""

    parts: tuple[SampleAxis, ...]
    known: Bool[np.ndarray, "..."]
    values: Float[np.ndarray, "..."]


@dataclass(frozen=True)
class Selected:
    """The normal equations of samples that select points of the grid."""

    spectra: tuple[Spectrum, ...]
    known: Bool[np.ndarray, "..."]
    nugget: float

    @cached_property
    def root(self) -> Float[np.ndarray, "..."]:
        """lambda^1/2 over the product eigenbasis."""
        values = reduce(np.multiply.outer, [s.values for s in self.spectra])
        return np.sqrt(np.where(values > _ROUNDING * values.max(), values, 0))

    def at_samples(self, z: np.ndarray) -> np.ndarray:
        """The function with white coefficients z on the grid."""
        values = self.root * z
        for axis, spectrum in enumerate(self.spectra):
            values = multiply(values, spectrum.vectors, axis)
        return values

    def project(self, values: np.ndarray) -> np.ndarray:
        """lambda^1/2 V^T M values."""
        return self.root * rotate(np.where(self.known, values, 0), self.spectra)

    def solve(
        self, values: np.ndarray, tolerance: float = _TOLERANCE, most: int = _MOST
    ) -> normal_equations.Solution:
        """White coefficients given values at the samples."""
        diagonal = self.known.mean() * self.root**2 + self.nugget
        return normal_equations.conjugate_gradients(
            lambda z: self.project(self.at_samples(z)) + self.nugget * z,
            lambda r: r / diagonal,
            self.project(values),
            tolerance=tolerance,
            most=most,
        )

    def weights(self, z: np.ndarray) -> np.ndarray:
        """Weights of the kernels at the points of the grid, in its eigenbasis: lambda^-1/2 z."""
        return np.divide(z, self.root, out=np.zeros_like(z), where=self.root > 0)


def holed(observations: Observations, standardized: Float[np.ndarray, " n"]) -> Holed | None:
    """The grid the samples fill in part, or None where they lie anywhere."""
    sensors, row = unique_rows(observations.x)
    frames, column = np.unique(observations.t, return_inverse=True)
    if len(sensors) * len(frames) > MOST_PER_SAMPLE * len(observations):
        return None
    values, known = np.zeros((2, len(sensors), len(frames)))
    values[row, column], known[row, column] = standardized, 1
    parts = factors(sensors, tensor_axes(sensors), frames, observations.domain)
    shape = tuple(len(part.points) for part in parts)
    return Holed(parts, known.reshape(shape) > 0, values.reshape(shape))


def choose(
    samples: Holed, rng: np.random.Generator, step: Callable[[], object]
) -> tuple[Choice, Selected, normal_equations.Solution, Float[np.ndarray, "..."]]:
    """Kernels and nugget by what they predict of slices left out; the completed grid comes last.

    The search on the grid completed along time comes first. What fills the holes is a part of its verdict:
    without noise they are filled anew from the field it gave, under noise a simplex search follows by the
    error at real samples left out.
    """
    choice = search(samples.parts, _along_time(samples), step)
    few = samples.known.sum() <= MOST
    refined = None if few else _refined(samples, choice, step)
    if refined is not None:
        choice = refined
    elif 1 - samples.known.mean() > _FEW_HOLES:
        error = _dense(samples, step) if few else LeftOutOfGrid(samples, rng, step)
        extents = tuple(extent for part in samples.parts for extent in part.extents)
        kernels, nugget = lowered(choice.kernels, choice.nugget, extents, error, _EVALUATIONS)
        choice = Choice(kernels, nugget, tuple(float(np.sqrt(e)) for e in error.errors(kernels, nugget)))
    system = _system(samples, choice.kernels, choice.nugget, samples.known)
    solution = system.solve(samples.values, _TOLERANCE, _MOST)
    mean = system.at_samples(solution.z)
    noise = np.std((samples.values - mean)[samples.known]) * rng.standard_normal(mean.shape)
    return choice, system, solution, np.where(samples.known, samples.values, mean + noise)


def _refined(samples: Holed, choice: Choice, step: Callable[[], object]) -> Choice | None:
    """The search again on holes filled from the field before; None where noise limits that field.

    A line between neighbours errs as noise of a few per cent would. The field errs less, and along time what
    it leaves of the samples is smooth: added back, it takes the holes to where the samples are.
    """
    for _ in range(_ROUNDS):
        system = _system(samples, choice.kernels, max(choice.nugget, _SOLVABLE), samples.known)
        mean = system.at_samples(system.solve(samples.values).z)
        left = Holed(samples.parts, samples.known, np.where(samples.known, samples.values - mean, 0))
        if np.std(left.values[left.known]) > _NOISE:
            return None
        choice = search(samples.parts, mean + _smoothly(left), step, _SOLVABLE)
    return choice


class LeftOutOfGrid:
    """Mean square error at samples of left-out slices, one way per axis, and of left-out samples."""

    def __init__(self, samples: Holed, rng: np.random.Generator, step: Callable[[], object]) -> None:
        self.samples, self.step, self.least = samples, step, 1.0
        shape = samples.known.shape
        self.masks = []
        for axis, n in enumerate(shape):
            out = np.zeros(n, dtype=bool)
            out[rng.choice(n, max(1, round(_SHARE * n)), replace=False)] = True
            self.masks.append(
                samples.known & np.expand_dims(out, tuple(i for i in range(len(shape)) if i != axis))
            )

    def __call__(self, kernels: tuple[Kernel, ...], nugget: float) -> float:
        return sum(self.errors(kernels, nugget))

    def errors(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        """One mean square per axis."""
        self.step()
        tolerance = float(np.clip(_ACCURACY * np.sqrt(self.least), _TOLERANCE, _LOOSEST))
        found = []
        for mask in self.masks:
            system = _system(self.samples, kernels, nugget, self.samples.known & ~mask)
            z = system.solve(self.samples.values, tolerance, _MOST_SEARCHING).z
            found.append(float(np.mean((system.at_samples(z) - self.samples.values)[mask] ** 2)))
        self.least = min(self.least, sum(found))
        return tuple(found)


def _system(samples: Holed, kernels: tuple[Kernel, ...], nugget: float, known: np.ndarray) -> Selected:
    spectra = tuple(decompose(p, k) for p, k in zip(samples.parts, kernels, strict=True))
    return Selected(spectra, known, max(nugget, _LEAST_NUGGET))


def _dense(samples: Holed, step: Callable[[], object]) -> DenseLeftOut:
    """All slices of all axes left out, one after the other."""
    places = np.nonzero(samples.known)
    parts = [
        SampleAxis(part.points[own], part.extents, part.periods)
        for part, own in zip(samples.parts, places, strict=True)
    ]
    return DenseLeftOut(on_closed_axes(parts), samples.values[samples.known], places, step)


def _along_time(samples: Holed) -> Float[np.ndarray, "..."]:
    """Holes filled linearly between the samples of the same sensor."""
    return _filled(samples, np.interp)


def _smoothly(samples: Holed) -> Float[np.ndarray, "..."]:
    """The same by a cubic spline, which beyond the first and last sample stays what it is there."""
    return _filled(samples, _cubic)


def _cubic(wanted: np.ndarray, t: np.ndarray, values: np.ndarray) -> np.ndarray:
    if len(t) < _CUBIC:
        return np.interp(wanted, t, values)
    return CubicSpline(t, values)(np.clip(wanted, t[0], t[-1]))


def _filled(samples: Holed, between: Callable[..., np.ndarray]) -> Float[np.ndarray, "..."]:
    t = samples.parts[-1].points[:, 0]
    rows = samples.values.reshape(-1, len(t)).copy()
    for row, known in zip(rows, samples.known.reshape(rows.shape), strict=True):
        row[~known] = between(t[~known], t[known], row[known])
    return rows.reshape(samples.values.shape)
