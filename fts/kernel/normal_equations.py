"""Samples by group and Fourier mode -> the normal equations of a Gaussian process, and their solution.

u = sum_rk lambda_r^1/2 S_k^1/2 w_rk phi_r e_k: products of Fourier modes e_k along axes where samples lie
anywhere and of eigenvectors phi_r along those where they come in groups. The coefficients w are white
beforehand, and so are z = V^T w for rotations V per axis; given the samples z solves
(Phi^T Phi + s) z = Phi^T y. The V are those that make the normal matrix of each axis alone diagonal: their
product is the preconditioner, and what lives beside the samples, half of a closed open axis, is left out
because they say nothing of it. Groups are sensors that keep their place, or frames that keep their time.

On a sensor x frame grid with holes u = m + V lambda^1/2 z in the eigenbasis of the full grid, and z solves
(lambda^1/2 V^T M V lambda^1/2 + s) z = lambda^1/2 V^T M y with M = 1 where there is a sample. Holes that are
spread leave V^T M V close to the share of samples times the identity, which is the preconditioner.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Complex, Float, Int

from fts.domain import Domain, grid_points
from fts.kernel import covariance
from fts.kernel.covariance import FAMILIES, Kernel, SampleAxis, Spectrum, decompose, multiply
from fts.kernel.fourier import Circle, FourierBasis, circle, fourier_sums, trigonometric
from fts.observations import Observations, tensor_axes, unique_rows

# Modes whose prior variance is below this of what the samples leave open, or of the largest, change nothing.
_NEGLIGIBLE, _LEAST = 1e-4, 1e-13
# Beyond two modes per sample, but in any case this many and up to the last, the smallest modes are dropped.
_MODES_PER_SAMPLE, _FEWEST_MODES, _MOST_MODES = 2, 1 << 12, 1 << 19
_ROUNDING = 1e-13  # eigenvalues below this of the largest are rounding
_FFT = 300  # operations of matrix products that take as long as transforms, per point of their grid
_GRID_ROUNDING, _LEAST_NUGGET = 1e-15, 1e-14  # the same on a grid with holes, and its least nugget
MOST_PER_SAMPLE = 4  # points of the grid per sample beyond which samples count as scattered
_BLOCK = 4096  # points whose covariances with the samples are computed at once
_DRAW_TOLERANCE, _DRAW_STEPS = 1e-3, 300  # a draw is one of many: its solve may stop early

# Seconds on one core of a laptop-like machine, of which a factor of two either way is to be expected: per
# point of the grid in one step of conjugate gradients, and per sample and Fourier sum by the number of axes.
_POINT, _SUM = 3e-8, (2e-7, 1e-6, 1e-5)
# Steps of all solves with all samples: the error of what is left out, draws that calibrate it, the field.
_STEPS, _SUMS = 400, 20

Linear = Callable[[np.ndarray], np.ndarray]
_T = TypeVar("_T")


@dataclass(frozen=True)
class SampleLayout:
    """How samples lie: in groups along some axes, anywhere along the others, which are closed to circles."""

    domain: Domain
    axis: SampleAxis | None  # the groups: sensors or frames; None where there are none
    circles: tuple[Circle, ...]  # of the Fourier axes: those of space, then time, without the groups'
    grouping: str  # "sensors", "frames", or "" for none
    count: int  # of samples

    @property
    def groups(self) -> int:
        """Sensors or frames; one where samples are scattered along all axes."""
        return 1 if self.axis is None else len(self.axis.points)

    def along_fourier(self, space: Sequence[_T], time: _T) -> tuple[_T, ...]:
        """Of what belongs to the axes of space and to time: that of the Fourier axes."""
        return {"": (*space, time), "sensors": (time,), "frames": tuple(space)}[self.grouping]

    def angles(
        self, x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " n"], ...]:
        """Angles of samples around the Fourier axes."""
        columns = self.along_fourier(list(x.T), t)
        return tuple(c.angles(column) for c, column in zip(self.circles, columns, strict=True))

    def fourier_kernels(self, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
        """One kernel per Fourier axis."""
        space, time = kernels
        return self.along_fourier([Kernel(space.family, (length,)) for length in space.lengths], time)

    def group_kernel(self, kernels: Sequence[Kernel]) -> Kernel:
        """The kernel between groups."""
        return kernels[0] if self.grouping == "sensors" else kernels[1]


def arrange(
    points: Float[np.ndarray, "G k"] | None, domain: Domain, grouping: str, count: int
) -> SampleLayout:
    """The layout of so many samples in groups at these points: sensors or frames, or ("") in none."""
    *space, time = (circle(*end) for end in domain.axes)
    axis = None
    if points is not None:
        nothing = np.empty(0)
        if grouping == "sensors":
            axis, _ = covariance.factors(points, None, nothing, domain)
        else:
            _, axis = covariance.factors(nothing[:, None], None, points[:, 0], domain)
    empty = SampleLayout(domain, axis, (), grouping, count)
    return replace(empty, circles=empty.along_fourier(space, time))


class KnownSums(ABC):
    """Fourier sums of a layout's samples per group."""

    layout: SampleLayout

    @abstractmethod
    def up_to(self, most: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Sums of ones up to twice the wavenumbers, and of the values up to the wavenumbers, or to more."""

    def available(self, most: tuple[int, ...]) -> tuple[int, ...]:
        """The wavenumbers, or less where the samples are gone and their sums go no further."""
        return most


class FourierSums(KnownSums):
    """The sums of samples at hand; made when first needed, again only for higher modes."""

    def __init__(
        self,
        x: Float[np.ndarray, "n d"],
        t: Float[np.ndarray, " n"],
        y: Float[np.ndarray, " n"],
        domain: Domain,
        grouping: str,
    ) -> None:
        points, group = None, None
        if grouping:
            points, group = unique_rows(x if grouping == "sensors" else t[:, None])
        self.layout = arrange(points, domain, grouping, len(y))
        self.y = y
        self._theta = self.layout.angles(x, t)
        self._most: tuple[int, ...] = ()
        self._rows: Sequence[np.ndarray | slice] = [slice(None)]
        if group is not None:
            ends = np.cumsum(np.bincount(group, minlength=self.layout.groups))
            self._rows = np.split(np.argsort(group, kind="stable"), ends[:-1])

    def up_to(self, most: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Sums of ones up to twice the wavenumbers, and of the values up to the wavenumbers."""
        if not self._most or any(m > have for m, have in zip(most, self._most, strict=True)):
            self._most = tuple(max(m, have) for m, have in zip(most, self._most or most, strict=True))
            self._ones = self.of(np.ones(len(self.y)), [2 * m for m in self._most])
            self._values = self.of(self.y, self._most)
        return self._ones, self._values

    def of(self, values: Float[np.ndarray, " n"], most: Sequence[int]) -> Complex[np.ndarray, "..."]:
        """Sums of values of the samples up to the wavenumbers."""
        theta = self._theta
        return np.stack([fourier_sums([a[rows] for a in theta], values[rows], most) for rows in self._rows])


@dataclass(frozen=True)
class Solution:
    """What the iteration reached, in how many steps, and whether to the tolerance."""

    z: Float[np.ndarray, "..."]
    steps: int
    residual: float
    converged: bool


# By hand: SciPy's cg tests convergence in another norm and returns neither steps nor residual.
def conjugate_gradients(
    apply: Linear, precondition: Linear, right: Float[np.ndarray, "..."], *, tolerance: float, most: int
) -> Solution:
    """z with apply(z) = right, to `tolerance` of the right side in the preconditioner's norm."""
    z, r = np.zeros_like(right), right.copy()
    p = precondition(r)
    product = float(np.vdot(r, p))
    goal = tolerance**2 * product
    steps = 0
    while product > goal and steps < most:
        a = apply(p)
        length = product / float(np.vdot(p, a))
        z += length * p
        r -= length * a
        q = precondition(r)
        product, before = float(np.vdot(r, q)), product
        p = q + product / before * p
        steps += 1
    residual = tolerance * float(np.sqrt(product / goal)) if goal > 0 else 0.0
    return Solution(z, steps, residual, converged=product <= goal)


@dataclass(frozen=True)
class NormalEquations:
    """The normal equations of one choice of kernels."""

    layout: SampleLayout
    kernels: tuple[Kernel, ...]
    nugget: float
    basis: FourierBasis
    spectrum: Spectrum  # of the groups
    roots: tuple[np.ndarray, ...]  # S^1/2 of each function, per Fourier axis
    density: Float[np.ndarray, "..."]
    right: Float[np.ndarray, "..."]
    marginals: tuple[Spectrum, ...]

    @cached_property
    def root(self) -> np.ndarray:
        """S^1/2 over the basis."""
        return reduce(np.multiply.outer, self.roots)

    @cached_property
    def group_features(self) -> Float[np.ndarray, "G r"]:
        """lambda^1/2 phi at the groups."""
        return self.spectrum.vectors * np.sqrt(self.spectrum.values)

    @cached_property
    def functions(self) -> tuple[Float[np.ndarray, "K k"], ...]:
        """S^1/2 V per Fourier axis: the series of the functions whose coefficients are z."""
        return tuple(root[:, None] * m.vectors for root, m in zip(self.roots, self.marginals, strict=True))

    def apply(self, z: np.ndarray) -> np.ndarray:
        """(Phi^T Phi + s) z."""
        return self.normal(z) + self.nugget * z

    def normal(self, z: np.ndarray) -> np.ndarray:
        """Phi^T Phi z."""
        if self._tables is not None:
            values = apply_along_axes(z, self._tables)
            return apply_along_axes(self.density * values, [table.T for table in self._tables])
        values = self.basis.synthesize(apply_along_axes(z, (self.group_features, *self.functions)))
        return self.project(self.basis.analyze(self.density * values))

    def project(self, sums: np.ndarray) -> np.ndarray:
        """From sums over the samples of each group to the coefficients."""
        return apply_along_axes(sums, (self.group_features.T, *(f.T for f in self.functions)))

    def precondition(self, z: np.ndarray) -> np.ndarray:
        """The inverse for samples that fill the product of their marginals."""
        return z / self.diagonal

    def solve(self, right: np.ndarray, *, tolerance: float, most: int) -> Solution:
        """White coefficients given the sums on the right."""
        return conjugate_gradients(self.apply, self.precondition, right, tolerance=tolerance, most=most)

    @cached_property
    def _tables(self) -> list[np.ndarray] | None:
        """The functions on the grid, where products with them are cheaper than transforms."""
        shape, grid = [f.shape[1] for f in self.functions], self.basis.grid
        rest, operations = self.layout.groups * prod(shape), 0
        for k, n in zip(shape, grid, strict=True):
            operations += 4 * rest * n
            rest = rest // k * n
        if operations > _FFT * self.density.size:
            return None
        turns = (2 * np.pi * np.arange(n) / n for n in grid)
        on_grid = zip(turns, self.basis.most, self.functions, strict=True)
        return [self.group_features, *(trigonometric(theta, m) @ f for theta, m, f in on_grid)]

    @property
    def freedom(self) -> float:
        """Effective number of coefficients that the samples decide."""
        return float(np.sum(1 - self.nugget / self.diagonal))

    @cached_property
    def diagonal(self) -> np.ndarray:
        """The preconditioner: what the normal matrix would be were samples a product of their marginals."""
        share = self.layout.count / self.layout.groups
        values = [share * self.spectrum.values, *(marginal.values for marginal in self.marginals)]
        return reduce(np.multiply.outer, values) + self.nugget


def assemble(sums: KnownSums, kernels: tuple[Kernel, ...], nugget: float) -> NormalEquations:
    """The normal equations for these kernels and this nugget, in units of the kernel's variance."""
    layout = sums.layout
    spectrum = _group_spectrum(layout, kernels)
    coefficients, basis = resolved_modes(layout, kernels, nugget, len(spectrum.values))
    basis = FourierBasis(sums.available(basis.most))
    kept = [c[: m + 1] for c, m in zip(coefficients, basis.most, strict=True)]
    roots = tuple(np.sqrt(np.concatenate([c, c[1:]])) for c in kept)
    ones, values = sums.up_to(basis.most)
    density = np.stack([basis.density(each) for each in ones])
    least = _NEGLIGIBLE * nugget / layout.count
    marginals = tuple(_marginal(ones.sum(axis=0), i, basis, root, least) for i, root in enumerate(roots))
    system = NormalEquations(layout, kernels, nugget, basis, spectrum, roots, density, np.empty(0), marginals)
    return replace(system, right=system.project(np.stack([basis.project(each) for each in values])))


def resolved_modes(
    layout: SampleLayout, kernels: Sequence[Kernel], nugget: float, groups: int
) -> tuple[list[np.ndarray], FourierBasis]:
    """Fourier coefficients of the kernels, and the modes that the samples determine."""
    coefficients = [
        FAMILIES[kernel.family].fourier_coefficients(kernel.lengths[0], c.period)
        for c, kernel in zip(layout.circles, layout.fourier_kernels(kernels), strict=True)
    ]
    least = _least_variance(layout, coefficients, nugget)
    limit = min(max(_FEWEST_MODES, _MODES_PER_SAMPLE * layout.count), _MOST_MODES) / groups
    while True:
        most = _modes_above(coefficients, least)
        if prod(2 * m + 1 for m in most) <= limit or least > 1e-3:
            return coefficients, FourierBasis(most)
        least *= 10


def _least_variance(layout: SampleLayout, coefficients: Sequence[np.ndarray], nugget: float) -> float:
    """Of a mode that the samples determine, in units of the largest."""
    largest = prod(float(c[0]) for c in coefficients)
    return max(_LEAST, _NEGLIGIBLE * nugget / (layout.count * largest))


def _modes_above(coefficients: Sequence[np.ndarray], least: float) -> tuple[int, ...]:
    # spectra fall monotonically, but for rounding
    return tuple(max(1, int(np.argmax(np.append(c, 0) <= least * c[0])) - 1) for c in coefficients)


def needed_modes(
    layout: SampleLayout, kernels: Sequence[Kernel], nugget: float
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Wavenumbers of a solve, and those it would take if as many as the samples determine were allowed."""
    groups = len(_group_spectrum(layout, kernels).values)
    coefficients, basis = resolved_modes(layout, kernels, nugget, groups)
    return basis.most, _modes_above(coefficients, _least_variance(layout, coefficients, nugget))


@dataclass(frozen=True)
class MeanFunction:
    """The posterior mean in units of the samples' deviation: coefficients by group and Fourier mode."""

    layout: SampleLayout
    kernels: tuple[Kernel, ...]
    basis: FourierBasis
    spectrum: Spectrum
    series: Float[np.ndarray, "..."]

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """Values on the tensor grid of the axes (x, [y,] t)."""
        *space, t = (np.asarray(axis, dtype=float) for axis in axes)
        if self.layout.axis is None:
            return self.sum_modes(self.series, *axes)
        points = t[:, None] if self.layout.grouping == "frames" else grid_points(tuple(space))
        return self.sum_modes(self._rows(self.layout.axis, points), *axes)

    def sum_modes(self, rows: Float[np.ndarray, "..."], *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The same from Fourier coefficients at the groups' coordinates on the grid."""
        *space, t = (np.asarray(axis, dtype=float) for axis in axes)
        along = zip(self.layout.circles, self.layout.along_fourier(space, t), self.basis.most, strict=True)
        for i, (c, x, m) in enumerate(along, 1):
            rows = multiply(rows, trigonometric(c.angles(x), m), i)
        if self.layout.grouping == "frames":
            return np.moveaxis(rows, 0, -1)
        return rows.reshape(tuple(axis.size for axis in axes))

    def at(self, x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Values at scattered points."""
        if self.layout.axis is None:
            return self.at_rows(self.series, np.zeros(len(t), dtype=int), x, t)
        points, group = unique_rows(x if self.layout.grouping == "sensors" else t[:, None])
        return self.at_rows(self._rows(self.layout.axis, points), group, x, t)

    def at_rows(
        self,
        rows: Float[np.ndarray, "..."],
        group: Int[np.ndarray, " n"],
        x: Float[np.ndarray, "n d"],
        t: Float[np.ndarray, " n"],
    ) -> Float[np.ndarray, " n"]:
        """The same from Fourier coefficients, of which each point takes the row of its group."""
        theta = self.layout.angles(x, t)
        values = np.empty(len(t))
        for i, row in enumerate(rows):
            members = group == i
            values[members] = self.basis.values([angle[members] for angle in theta], row)
        return values

    def _rows(self, axis: SampleAxis, points: np.ndarray) -> Float[np.ndarray, "..."]:
        """Fourier coefficients at any coordinates of groups: lambda^1/2 phi there by Nystrom's extension."""
        kernel = self.layout.group_kernel(self.kernels)
        down = self.spectrum.vectors / np.sqrt(self.spectrum.values)
        blocks = [points[i : i + _BLOCK] for i in range(0, len(points), _BLOCK)]
        columns = [axis.cross(block, kernel) @ down for block in blocks]
        return np.tensordot(np.concatenate(columns), self.series, 1)


def mean_function(system: NormalEquations, z: np.ndarray) -> MeanFunction:
    """The function whose white coefficients are z."""
    series = apply_along_axes(z, (np.eye(len(z)), *system.functions))
    return MeanFunction(system.layout, system.kernels, system.basis, system.spectrum, series)


def apply_along_axes(tensor: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """The tensor with one matrix applied along each axis, in products that copy nothing."""
    for matrix in matrices:  # the first axis goes, its image comes last
        product = tensor.reshape(matrix.shape[1], -1).T @ matrix.T
        tensor = product.reshape(*tensor.shape[1:], len(matrix))
    return tensor


def draw_prior(
    system: NormalEquations, wanted: Float[np.ndarray, "P k"], rng: np.random.Generator
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """One function: its Fourier coefficients at the groups, and at the wanted coordinates of groups."""
    layout, shape = system.layout, system.basis.shape
    if layout.axis is None:
        z = system.root * rng.standard_normal((1, *shape))
        return z, z
    frequencies = covariance.sample_frequencies(layout.axis, layout.group_kernel(system.kernels), rng)
    weights = covariance.feature_weights((int(np.prod(shape)),), rng).T
    known, there = (
        np.real(covariance.fourier_features(layout.axis, points, frequencies) @ weights).reshape(
            len(points), *shape
        )
        for points in (layout.axis.points, wanted)
    )
    return system.root * known, system.root * there


def fit_to_draw(
    sums: FourierSums, system: NormalEquations, known: Float[np.ndarray, "..."], rng: np.random.Generator
) -> MeanFunction:
    """The mean given the samples of that function, with noise."""
    noise = np.sqrt(system.nugget) * rng.standard_normal(system.layout.count)
    noisy = np.stack([system.basis.project(each) for each in sums.of(noise, system.basis.most)])
    values = system.density * system.basis.synthesize(known)
    right = system.project(system.basis.analyze(values) + noisy)
    return mean_function(system, system.solve(right, tolerance=_DRAW_TOLERANCE, most=_DRAW_STEPS).z)


def draw_error(
    sums: FourierSums,
    system: NormalEquations,
    x: Float[np.ndarray, "n d"],
    t: Float[np.ndarray, " n"],
    rng: np.random.Generator,
) -> Float[np.ndarray, " n"]:
    """One function less the fit to it, at scattered points."""
    grouping = system.layout.grouping
    wanted, group = unique_rows(x if grouping == "sensors" else t[:, None])
    known, there = draw_prior(system, wanted, rng)
    mean = fit_to_draw(sums, system, known, rng)
    return mean.at_rows(there, group if grouping else np.zeros(len(t), dtype=int), x, t) - mean.at(x, t)


@dataclass(frozen=True)
class MaskedNormalEquations:
    """The normal equations of samples that select points of the grid."""

    spectra: tuple[Spectrum, ...]
    known: Bool[np.ndarray, "..."]
    nugget: float

    @cached_property
    def root(self) -> Float[np.ndarray, "..."]:
        """lambda^1/2 over the product eigenbasis."""
        values = reduce(np.multiply.outer, [s.values for s in self.spectra])
        return np.sqrt(np.where(values > _GRID_ROUNDING * values.max(), values, 0))

    def at_samples(self, z: np.ndarray) -> np.ndarray:
        """The function with white coefficients z on the grid."""
        values = self.root * z
        for axis, spectrum in enumerate(self.spectra):
            values = multiply(values, spectrum.vectors, axis)
        return values

    def project(self, values: np.ndarray) -> np.ndarray:
        """lambda^1/2 V^T M values."""
        return self.root * covariance.rotate(np.where(self.known, values, 0), self.spectra)

    def solve(self, values: np.ndarray, tolerance: float = 1e-8, most: int = 1000) -> Solution:
        """White coefficients given values at the samples."""
        diagonal = self.known.mean() * self.root**2 + self.nugget

        def apply(z: np.ndarray) -> np.ndarray:
            return self.project(self.at_samples(z)) + self.nugget * z

        right = self.project(values)
        return conjugate_gradients(apply, lambda r: r / diagonal, right, tolerance=tolerance, most=most)

    def weights(self, z: np.ndarray) -> np.ndarray:
        """Weights of the kernels at the points of the grid, in its eigenbasis: lambda^-1/2 z."""
        return np.divide(z, self.root, out=np.zeros_like(z), where=self.root > 0)


@dataclass(frozen=True)
class PartialGrid:
    """Samples on a part of a product grid: `values` are zero in the holes."""

    parts: tuple[SampleAxis, ...]
    known: Bool[np.ndarray, "..."]
    values: Float[np.ndarray, "..."]

    def system(
        self, kernels: Sequence[Kernel], nugget: float, known: Bool[np.ndarray, "..."]
    ) -> MaskedNormalEquations:
        """The normal equations of the known samples."""
        spectra = tuple(decompose(part, kernel) for part, kernel in zip(self.parts, kernels, strict=True))
        return MaskedNormalEquations(spectra, known, max(nugget, _LEAST_NUGGET))


def partial_grid(observations: Observations, standardized: Float[np.ndarray, " n"]) -> PartialGrid | None:
    """The grid the samples fill in part, or None where they lie anywhere."""
    if observations.spans_more_than(MOST_PER_SAMPLE * len(observations)):
        return None
    sensors, row = unique_rows(observations.x)
    frames, column = np.unique(observations.t, return_inverse=True)
    if len(sensors) * len(frames) > MOST_PER_SAMPLE * len(observations):
        return None
    values, known = np.zeros((2, len(sensors), len(frames)))
    values[row, column], known[row, column] = standardized, 1
    parts = covariance.factors(sensors, tensor_axes(sensors), frames, observations.domain)
    shape = tuple(len(part.points) for part in parts)
    return PartialGrid(parts, known.reshape(shape) > 0, values.reshape(shape))


def seconds_of_scattered(layout: SampleLayout, kernels: tuple[Kernel, ...], nugget: float) -> float:
    """Seconds that all samples take once kernels are chosen: their sums, and the steps of the solves."""
    _, basis = resolved_modes(layout, kernels, nugget, layout.groups)
    axes = len(_SUM)  # of one transform: the modes of a fourth axis are summed one by one
    single = _SUM[min(len(basis.most), axes) - 1] * prod(basis.shape[axes:])
    return _SUMS * single * layout.count + _STEPS * _POINT * layout.groups * prod(basis.grid)


def _group_spectrum(layout: SampleLayout, kernels: Sequence[Kernel]) -> Spectrum:
    if layout.axis is None:
        return Spectrum(np.ones(1), np.ones((1, 1)))
    whole = decompose(layout.axis, layout.group_kernel(kernels))
    kept = whole.values > _ROUNDING * whole.values.max()
    return Spectrum(whole.values[kept], whole.vectors[:, kept])


def _marginal(ones: np.ndarray, axis: int, basis: FourierBasis, root: np.ndarray, least: float) -> Spectrum:
    """Eigenvectors of the normal matrix along one axis, per sample, as if alone: those samples determine."""
    middle = [n // 2 for n in ones.shape]
    sums = ones[tuple(slice(None) if i == axis else c for i, c in enumerate(middle))]
    single = FourierBasis((basis.most[axis],))
    theta = 2 * np.pi * np.arange(single.grid[0]) / single.grid[0]
    rows = trigonometric(theta, single.most[0]) * root
    weights = single.density(sums) / sums[len(sums) // 2].real
    values, vectors = np.linalg.eigh(rows.T @ (weights[:, None] * rows))
    kept = values > max(least, float(np.finfo(float).eps) * values[-1])
    return Spectrum(values[kept], vectors[:, kept])
