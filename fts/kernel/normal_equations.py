"""Preconditioned conjugate gradients on arrays of any shape.

Samples by slices and waves -> the normal equations of a Gaussian process, and the function they give.

u = sum_rk lambda_r^1/2 S_k^1/2 w_rk phi_r e_k: products of waves e_k along axes where samples lie anywhere
and of eigenvectors phi_r along those where they come in slices. The coefficients w are white beforehand, and
so are z = V^T w for rotations V per axis; given the samples z solves (Phi^T Phi + s) z = Phi^T y. The V are
those that make the normal matrix of each axis alone diagonal: their product is the preconditioner, and what
lives beside the samples, half of a closed open axis, is left out because they say nothing of it.

Functions drawn from the prior of slices and waves, and what a refit to their samples makes of them.

Samples -> seconds that a fit will take on one core, estimated before the long part of it begins.

Measured on one core of a laptop-like machine; a factor of two either way is what to expect.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod

import numpy as np
from jaxtyping import Float, Int

from fts.domain import grid_points
from fts.kernel.covariance import (
    Kernel,
    SampleAxis,
    Spectrum,
    decompose,
    multiply,
    phases,
    wave_vectors,
    weights,
)
from fts.kernel.fourier import Arranged, Box, Sums, trigonometric
from fts.observations import unique_rows

Linear = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Solution:
    """What the iteration reached, in how many steps, and whether to the tolerance."""

    z: Float[np.ndarray, "..."]
    steps: int
    residual: float
    converged: bool


def conjugate_gradients(
    apply: Linear,
    precondition: Linear,
    right: Float[np.ndarray, "..."],
    *,
    tolerance: float,
    most: int,
    start: Float[np.ndarray, "..."] | None = None,
) -> Solution:
    """z with apply(z) = right, to `tolerance` of the right side in the preconditioner's norm."""
    z = np.zeros_like(right) if start is None else start.copy()
    r = right - apply(z) if start is not None else right.copy()
    p = precondition(r)
    product = float(np.vdot(r, p))
    goal = tolerance**2 * float(np.vdot(right, precondition(right)))
    for step in range(most):
        if product <= goal:
            return Solution(z, step, _ratio(product, goal, tolerance), converged=True)
        a = apply(p)
        length = product / float(np.vdot(p, a))
        z += length * p
        r -= length * a
        q = precondition(r)
        product, before = float(np.vdot(r, q)), product
        p = q + product / before * p
    return Solution(z, most, _ratio(product, goal, tolerance), converged=product <= goal)


def _ratio(product: float, goal: float, tolerance: float) -> float:
    return tolerance * float(np.sqrt(product / goal)) if goal > 0 else 0.0


# Waves whose prior variance is below this of what the samples leave open, or of the largest, change nothing.
_NEGLIGIBLE, _LEAST = 1e-4, 1e-13
_WAVES_PER_SAMPLE, _FEWEST_WAVES = 2, 1 << 12  # beyond these the smallest waves are dropped
_ROUNDING = 1e-13  # eigenvalues below this of the largest are rounding
_FFT = 300  # operations of matrix products that take as long as transforms, per point of their grid
_BLOCK = 4096


@dataclass(frozen=True)
class System:
    """The normal equations of one choice of kernels."""

    layout: Arranged
    kernels: tuple[Kernel, ...]
    nugget: float
    box: Box
    spectrum: Spectrum  # of the slices
    roots: tuple[np.ndarray, ...]  # S^1/2 of each function, per axis of waves
    density: Float[np.ndarray, "..."]
    right: Float[np.ndarray, "..."]
    marginals: tuple[Spectrum, ...]

    @cached_property
    def root(self) -> np.ndarray:
        """S^1/2 over the box."""
        return reduce(np.multiply.outer, self.roots)

    @cached_property
    def features(self) -> Float[np.ndarray, "S r"]:
        """lambda^1/2 phi at the slices."""
        return self.spectrum.vectors * np.sqrt(self.spectrum.values)

    @cached_property
    def functions(self) -> tuple[Float[np.ndarray, "K k"], ...]:
        """S^1/2 V per axis of waves: the series of the functions whose coefficients are z."""
        return tuple(root[:, None] * m.vectors for root, m in zip(self.roots, self.marginals, strict=True))

    def apply(self, z: np.ndarray) -> np.ndarray:
        """(Phi^T Phi + s) z."""
        return self.normal(z) + self.nugget * z

    def normal(self, z: np.ndarray) -> np.ndarray:
        """Phi^T Phi z."""
        if self._tables is not None:
            values = along(z, self._tables)
            return along(self.density * values, [table.T for table in self._tables])
        values = self.box.synthesize(along(z, (self.features, *self.functions)))
        return self.project(self.box.analyze(self.density * values))

    def project(self, sums: np.ndarray) -> np.ndarray:
        """From sums over the samples of each slice to the coefficients."""
        return along(sums, (self.features.T, *(f.T for f in self.functions)))

    def precondition(self, z: np.ndarray) -> np.ndarray:
        """The inverse for samples that fill the product of their marginals."""
        return z / self._diagonal

    @cached_property
    def _tables(self) -> list[np.ndarray] | None:
        """The functions on the grid, where products with them are cheaper than transforms."""
        shape, grid = [f.shape[1] for f in self.functions], self.box.grid
        rest, operations = self.layout.slices * prod(shape), 0
        for k, n in zip(shape, grid, strict=True):
            operations += 4 * rest * n
            rest = rest // k * n
        if operations > _FFT * self.density.size:
            return None
        turns = (2 * np.pi * np.arange(n) / n for n in grid)
        on_grid = zip(turns, self.box.most, self.functions, strict=True)
        return [self.features, *(trigonometric(theta, m) @ f for theta, m, f in on_grid)]

    @property
    def freedom(self) -> float:
        """Effective number of coefficients that the samples decide."""
        return float(np.sum(1 - self.nugget / self._diagonal))

    @cached_property
    def _diagonal(self) -> np.ndarray:
        share = self.layout.count / self.layout.slices
        values = [share * self.spectrum.values, *(marginal.values for marginal in self.marginals)]
        return reduce(np.multiply.outer, values) + self.nugget


def build(sums: Sums, kernels: tuple[Kernel, ...], nugget: float) -> System:
    """The normal equations for these kernels and this nugget, in units of the kernel's variance."""
    layout = sums.layout
    spectrum = _slices(layout, kernels)
    lines, box = waves_of(layout, kernels, nugget, len(spectrum.values))
    roots = tuple(
        np.sqrt(np.concatenate([line[: m + 1], line[1 : m + 1]]))
        for line, m in zip(lines, box.most, strict=True)
    )
    ones, values = sums.of(box.most)
    density = np.stack([box.density(one) for one in ones])
    told = _NEGLIGIBLE * nugget / layout.count
    marginals = tuple(_marginal(ones.sum(axis=0), axis, box, root, told) for axis, root in enumerate(roots))
    system = System(layout, kernels, nugget, box, spectrum, roots, density, np.empty(0), marginals)
    return replace(system, right=system.project(np.stack([box.sums(value) for value in values])))


def waves_of(
    layout: Arranged, kernels: Sequence[Kernel], nugget: float, slices: int
) -> tuple[list[np.ndarray], Box]:
    """Spectra along the axes of waves, and the waves that the samples can tell from nothing."""
    lines = [
        c.spectrum(k.family, k.lengths[0])
        for c, k in zip(layout.circles, layout.wave_kernels(kernels), strict=True)
    ]
    return lines, Box(_most(lines, layout.count, nugget, slices))


@dataclass(frozen=True)
class Mean:
    """The posterior mean in units of the samples' deviation: coefficients of slices and waves."""

    layout: Arranged
    kernels: tuple[Kernel, ...]
    box: Box
    spectrum: Spectrum
    series: Float[np.ndarray, "..."]

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """Values on the tensor grid of the axes (x, [y,] t)."""
        *space, t = (np.asarray(axis, dtype=float) for axis in axes)
        rows = self.series
        if self.layout.part is not None:
            points = t[:, None] if self.layout.sliced == "frames" else grid_points(tuple(space))
            rows = np.tensordot(self._slices(points), rows, 1)
        return self.along(rows, *axes)

    def along(self, rows: Float[np.ndarray, "..."], *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The same from coefficients of waves at the slices' coordinates on the grid."""
        *space, t = (np.asarray(axis, dtype=float) for axis in axes)
        waves = {"": [*space, t], "sensors": [t], "frames": space}[self.layout.sliced]
        for i, (c, x, m) in enumerate(zip(self.layout.circles, waves, self.box.most, strict=True), 1):
            rows = multiply(rows, trigonometric(c.angles(x), m), i)
        if self.layout.sliced == "frames":
            return np.moveaxis(rows, 0, -1)
        return rows.reshape(tuple(axis.size for axis in axes))

    def at(self, x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Values at scattered points."""
        if self.layout.part is None:
            return self.at_rows(self.series, np.zeros(len(t), dtype=int), x, t)
        points, place = unique_rows(x if self.layout.sliced == "sensors" else t[:, None])
        return self.at_rows(np.tensordot(self._slices(points), self.series, 1), place, x, t)

    def at_rows(
        self,
        rows: Float[np.ndarray, "..."],
        place: Int[np.ndarray, " n"],
        x: Float[np.ndarray, "n d"],
        t: Float[np.ndarray, " n"],
    ) -> Float[np.ndarray, " n"]:
        """The same from coefficients of waves, of which each point takes its row."""
        waves = {"": (*x.T, t), "sensors": (t,), "frames": tuple(x.T)}[self.layout.sliced]
        theta = [c.angles(column) for c, column in zip(self.layout.circles, waves, strict=True)]
        values = np.empty(len(t))
        for i, row in enumerate(rows):
            own = place == i
            values[own] = self.box.values([angle[own] for angle in theta], row)
        return values

    def _slices(self, points: np.ndarray) -> np.ndarray:
        """lambda^1/2 phi at any points, by Nystrom's extension."""
        assert self.layout.part is not None
        chosen = self.layout.slice_kernel(self.kernels)
        down = self.spectrum.vectors / np.sqrt(self.spectrum.values)
        return np.concatenate(
            [
                self.layout.part.cross(points[i : i + _BLOCK], chosen) @ down
                for i in range(0, len(points), _BLOCK)
            ]
        )


def mean_of(system: System, z: np.ndarray) -> Mean:
    """The function whose white coefficients are z."""
    series = along(z, (np.eye(len(z)), *system.functions))
    return Mean(system.layout, system.kernels, system.box, system.spectrum, series)


def along(tensor: Float[np.ndarray, "..."], matrices: Sequence[np.ndarray]) -> Float[np.ndarray, "..."]:
    """The tensor with one matrix applied along each axis, in products that copy nothing."""
    for matrix in matrices:  # the first axis goes, its image comes last
        product = tensor.reshape(matrix.shape[1], -1).T @ matrix.T
        tensor = product.reshape(*tensor.shape[1:], len(matrix))
    return tensor


def solve(
    system: System, right: np.ndarray, *, tolerance: float, most: int, start: np.ndarray | None = None
) -> Solution:
    """White coefficients given the sums on the right."""
    return conjugate_gradients(
        system.apply, system.precondition, right, tolerance=tolerance, most=most, start=start
    )


def _slices(layout: Arranged, kernels: Sequence[Kernel]) -> Spectrum:
    if layout.part is None:
        return Spectrum(np.ones(1), np.ones((1, 1)))
    whole = decompose(layout.part, layout.slice_kernel(kernels))
    kept = whole.values > _ROUNDING * whole.values.max()
    return Spectrum(whole.values[kept], whole.vectors[:, kept])


def _most(lines: Sequence[np.ndarray], count: int, nugget: float, slices: int) -> tuple[int, ...]:
    """Waves per axis that the samples can tell from nothing."""
    largest = prod(float(line[0]) for line in lines)
    least = max(_LEAST, _NEGLIGIBLE * nugget / (count * largest))
    limit = max(_FEWEST_WAVES, _WAVES_PER_SAMPLE * count) / slices
    while True:
        # spectra fall monotonically, but for rounding
        most = tuple(max(1, int(np.argmax(np.append(line, 0) <= least * line[0])) - 1) for line in lines)
        if prod(2 * m + 1 for m in most) <= limit or least > 1e-3:
            return most
        least *= 10


def _marginal(ones: np.ndarray, axis: int, box: Box, root: np.ndarray, told: float) -> Spectrum:
    """Eigenvectors of the normal matrix along one axis, per sample, as if alone: those that samples tell."""
    middle = [n // 2 for n in ones.shape]
    line = ones[tuple(slice(None) if i == axis else c for i, c in enumerate(middle))]
    single = Box((box.most[axis],))
    theta = 2 * np.pi * np.arange(single.grid[0]) / single.grid[0]
    rows = trigonometric(theta, single.most[0]) * root
    weights = single.density(line) / line[len(line) // 2].real
    values, vectors = np.linalg.eigh(rows.T @ (weights[:, None] * rows))
    kept = values > max(told, float(np.finfo(float).eps) * values[-1])
    return Spectrum(values[kept], vectors[:, kept])


# A draw is one of many: its solve may stop early.
_TOLERANCE, _MOST = 1e-3, 300


def prior(
    system: System, wanted: Float[np.ndarray, "P k"], rng: np.random.Generator
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """One function: its coefficients of waves at the slices, and at the wanted coordinates of slices."""
    layout, shape = system.layout, system.box.shape
    if layout.part is None:
        z = system.root * rng.standard_normal((1, *shape))
        return z, z
    waves = wave_vectors(layout.part, layout.slice_kernel(system.kernels), rng)
    mixed = weights((int(np.prod(shape)),), rng).T
    known, there = (
        np.real(phases(layout.part, points, waves) @ mixed).reshape(len(points), *shape)
        for points in (layout.part.points, wanted)
    )
    return system.root * known, system.root * there


def refit(
    sums: Sums, system: System, known: Float[np.ndarray, "..."], rng: np.random.Generator
) -> Float[np.ndarray, "..."]:
    """White coefficients given the samples of that function, with noise."""
    noise = np.sqrt(system.nugget) * rng.standard_normal(system.layout.count)
    noisy = np.stack([system.box.sums(one) for one in sums.strengths(noise, system.box.most)])
    right = system.project(system.box.analyze(system.density * system.box.synthesize(known)) + noisy)
    return solve(system, right, tolerance=_TOLERANCE, most=_MOST).z


def drawn_error(
    sums: Sums,
    system: System,
    x: Float[np.ndarray, "n d"],
    t: Float[np.ndarray, " n"],
    rng: np.random.Generator,
) -> Float[np.ndarray, " n"]:
    """One function less its refit, at scattered points."""
    layout = system.layout
    wanted, place = unique_rows(x if layout.sliced == "sensors" else t[:, None])
    known, there = prior(system, wanted, rng)
    mean = mean_of(system, refit(sums, system, known, rng))
    truth = mean.at_rows(there, place if layout.sliced else np.zeros(len(t), dtype=int), x, t)
    return truth - mean.at(x, t)


_EIGENVECTORS = 2e-10  # seconds per cube of a matrix's size
_DECOMPOSITIONS = 2  # of the whole grid: what a search takes beyond these is bounded
_POINT = 3e-8  # seconds per point of the grid in one step of conjugate gradients
# Steps of all solves with all samples: the error of what is left out, draws that calibrate it, the field.
_STEPS = 400
_SUM = (2e-7, 1e-6, 1e-5)  # seconds per sample and Fourier sum, by the number of axes
_SUMS = 20
_MOST_AXES = 3  # of one transform; the waves of a fourth axis are summed one by one


def of_grid(parts: Sequence[SampleAxis]) -> float:
    """Seconds that a sensor x frame grid takes beyond its search, which is bounded."""
    return _EIGENVECTORS * _DECOMPOSITIONS * sum(len(p.points) ** 3 for p in parts if not p.circulant)


def of_scattered(layout: Arranged, kernels: tuple[Kernel, ...], nugget: float) -> float:
    """Seconds that all samples take once kernels are chosen: their sums, and the steps of the solves."""
    _, box = waves_of(layout, kernels, nugget, layout.slices)
    axes = len(box.most)
    single = _SUM[min(axes, _MOST_AXES) - 1] * prod(box.shape[_MOST_AXES:])
    return _SUMS * single * layout.count + _STEPS * _POINT * layout.slices * prod(box.grid)
