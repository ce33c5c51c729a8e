"""A stream of samples -> posterior of a Gaussian process, in two passes and bounded memory.

The first pass leaves a reservoir, on which kernels and nugget are chosen and the prior variance is
calibrated. The second adds up the Fourier sums of ones and of values at the waves these kernels need, apart
for four parts of the samples: solves, draws and halves of the samples follow from the sums. More samples in
memory than the reservoir holds are a stream, too.
"""

import time
import warnings
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.linalg import eigh_tridiagonal
from tqdm.auto import tqdm

from fts.containers import FileError, content_key
from fts.domain import Domain, grid_points
from fts.io.passes import Kept, reduce_chunks
from fts.io.streams import Block, Chunk, SampleStream, Survey, survey_chunk
from fts.kernel.covariance import Choice
from fts.kernel.fourier import fourier_sums
from fts.kernel.normal_equations import (
    KnownSums,
    MeanFunction,
    NormalEquations,
    SampleLayout,
    arrange,
    draw_prior,
    mean_function,
    needed_modes,
)
from fts.kernel.posterior import Posterior, nugget_of_halves
from fts.kernel.search import search_scattered
from fts.kernel.separable import (
    BAR_DELAY,
    most_groups,
    refuse_constant,
    residual_deviation,
    solve_with_nugget,
)
from fts.observations import Observations, row_codes

# Parts of the samples that are summed up apart, by the last bits of their codes: two and two are halves.
_PARTS = 4
_HALVES = ((0, 1), (0, 2), (0, 3))
_LARGEST_SUMS = 1 << 22  # numbers; where parts would take more, the samples are summed up as one
# Steps of a draw, numbers its vectors may take, and the relative change at which it ends.
_STEPS, _VECTORS, _CHANGE, _LOOK = 200, 1 << 24, 1e-3, 8
_UNPREDICTED = 0.9  # error of what is left out, in deviations, from which on it is as good as not predicted
_SEED = 0  # of what is left out: the same samples give the same field
_UNCHANGED = "read samples that nobody changes meanwhile"


@dataclass(frozen=True)
class SumsPlan:
    """What the second pass sums up."""

    domain: Domain
    grouping: str
    points: Float[np.ndarray, "G k"] | None  # sensors or frames, in lexicographic order
    mean: float
    scale: float
    most: tuple[int, ...]
    parts: int

    @cached_property
    def layout(self) -> SampleLayout:
        """The layout, but for the number of samples."""
        return arrange(self.points, self.domain, self.grouping, 0)

    @cached_property
    def codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the groups in ascending order, and which group each is."""
        assert self.points is not None
        codes = row_codes(tuple(self.points.T))
        order = np.argsort(codes)
        return codes[order], order

    @property
    def key(self) -> str:
        """Names the plan."""
        points = None if self.points is None else self.points.tolist()
        sums = [self.domain.as_dict(), self.grouping, points, self.mean, self.scale, self.most, self.parts]
        return content_key(sums)


@dataclass(frozen=True)
class PartialSums:
    """Fourier sums of some samples by part and group: exp(-i k theta) of ones and of values."""

    count: Int[np.ndarray, " 1"]
    square: Float[np.ndarray, " 1"]  # of the values, summed
    ones: Complex[np.ndarray, "..."]
    values: Complex[np.ndarray, "..."]

    def __add__(self, other: "PartialSums") -> "PartialSums":
        return PartialSums(
            self.count + other.count,
            self.square + other.square,
            self.ones + other.ones,
            self.values + other.values,
        )


def sum_chunk(plan: SumsPlan, chunk: Chunk) -> PartialSums | None:
    """The sums over the samples of one chunk; None where it is empty."""
    total: PartialSums | None = None
    for block in chunk.blocks():
        part = _sums(plan, block, chunk.name)
        total = part if total is None else total + part
    return total


def _sums(plan: SumsPlan, block: Block, where: str) -> PartialSums:
    values = (block.u - plan.mean) / plan.scale
    # Both sums are of real numbers: one transform of 1 + i y gives them, apart by symmetry.
    strengths = 1 + 1j * values
    theta, doubled = plan.layout.angles(block.x, block.t), [2 * m for m in plan.most]
    groups = plan.layout.groups
    sums = np.zeros((plan.parts * groups, *(2 * m + 1 for m in doubled)), dtype=complex)
    for i, rows in enumerate(_rows_of_parts(plan, block, where)):
        if len(rows):
            sums[i] = fourier_sums([angle[rows] for angle in theta], strengths[rows], doubled)
    sums = sums.reshape(plan.parts, groups, *sums.shape[1:])
    mirrored = np.conj(np.flip(sums, axis=tuple(range(2, sums.ndim))))
    ones, both = (sums + mirrored) / 2, (sums - mirrored) / 2j
    cropped = both[(..., *(slice(m, 3 * m + 1) for m in plan.most))]
    return PartialSums(np.array([len(values)]), np.array([values @ values]), ones, cropped.copy())


def _rows_of_parts(plan: SumsPlan, block: Block, where: str) -> Sequence[np.ndarray]:
    """The samples of each part and group, parts first."""
    codes = row_codes((*block.x.T, block.t))
    part = (codes % np.uint64(plan.parts)).astype(np.int64)
    if plan.points is not None:
        known, order = plan.codes
        own = row_codes(tuple(block.x.T) if plan.grouping == "sensors" else (block.t,))
        at = np.minimum(np.searchsorted(known, own), len(known) - 1)
        if not np.array_equal(known[at], own):
            raise FileError(f"{where} holds other {plan.grouping} than when it was first read: {_UNCHANGED}")
        part = part * len(known) + order[at]
    size = plan.parts * plan.layout.groups
    small = part.astype(np.uint8 if size <= 256 else np.uint16)  # sorted by counting
    ends = np.cumsum(np.bincount(part, minlength=size))
    return np.split(np.argsort(small, kind="stable"), ends[:-1])


class StoredSums(KnownSums):
    """Sums that a pass has left of samples that are gone."""

    def __init__(self, plan: SumsPlan, sums: PartialSums, parts: Sequence[int]) -> None:
        chosen = list(parts)
        self.most = plan.most
        self.ones, self.values = sums.ones[chosen].sum(axis=0), sums.values[chosen].sum(axis=0)
        middle = tuple(2 * m for m in plan.most)
        count = round(float(np.real(self.ones[(slice(None), *middle)].sum())))
        self.layout = arrange(plan.points, plan.domain, plan.grouping, count)

    def available(self, most: tuple[int, ...]) -> tuple[int, ...]:
        """Less where the sums go no further."""
        return tuple(map(min, most, self.most))

    def up_to(self, most: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """All there are."""
        return self.ones, self.values


@dataclass(frozen=True, kw_only=True)
class StreamedPosterior(Posterior):
    """A Gaussian process given the sums over samples, by coefficients of groups and Fourier modes."""

    reservoir: Observations
    plan: SumsPlan
    sums: PartialSums
    system: NormalEquations
    z: Float[np.ndarray, "..."]
    calibrate: Callable[[], float]  # draws the amplitude: prior variance, in squared units of scale
    steps: int  # of the conjugate gradients

    @property
    def count(self) -> int:
        """Samples, of which the reservoir holds some."""
        return int(self.sums.count[0])

    @cached_property
    def _function(self) -> MeanFunction:
        return mean_function(self.system, self.z)

    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`."""
        return self._function.on_grid(*axes)

    def draw_error(self, nodes: Sequence[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        system = self.system
        missed = mean_function(system, draw_coefficients(system, rng)).on_grid(*nodes)
        if system.layout.axis is not None:
            # What f does between the groups is not determined by what it is at them.
            frames = system.layout.grouping == "frames"
            wanted = nodes[-1][:, None] if frames else grid_points(tuple(nodes[:-1]))
            known, there = draw_prior(system, wanted, rng)
            spectrum = system.spectrum
            series = np.tensordot(spectrum.vectors.T / np.sqrt(spectrum.values)[:, None], known, 1)
            expected = replace(self._function, series=series)
            missed = missed + expected.sum_modes(there, *nodes) - expected.on_grid(*nodes)
        return self.scale * np.sqrt(self.calibrate()) * missed

    def split(
        self, count: int, smoothing: float, rng: np.random.Generator
    ) -> tuple[tuple["StreamedPosterior", "StreamedPosterior"], ...]:
        """Two of the four parts each, in at most three ways; none where samples were summed up as one."""
        if self.plan.parts != _PARTS:
            return ()
        nugget = nugget_of_halves(self.choice.nugget, smoothing, self.count)
        return tuple(
            (self._half(first, nugget), self._half(tuple({*range(_PARTS)} - {*first}), nugget))
            for first in _HALVES[:count]
        )

    def _half(self, parts: tuple[int, ...], nugget: float) -> "StreamedPosterior":
        """The process given the samples of these parts."""
        sums = StoredSums(self.plan, self.sums, parts)
        choice, system, solution = solve_with_nugget(sums, replace(self.choice, nugget=nugget))
        return replace(self, system=system, z=solution.z, choice=choice, steps=solution.steps, seconds=0.0)


def condition_stream(
    stream: SampleStream, client: Any = None, *, progress: bool = True
) -> StreamedPosterior | Observations:
    """The Gaussian process given the samples of a stream; the samples where the reservoir holds them all."""
    began = time.perf_counter()
    domain = stream.domain if isinstance(stream.domain, Domain) else None
    box = None if domain is None else domain.as_dict()
    surveyed, summed = _kept(stream, "survey", Survey, content_key(box)), None
    with _bar("read", stream, progress) as bar:
        survey = reduce_chunks(stream.chunks, partial(survey_chunk, domain), surveyed, client, bar)
    reservoir = survey.observations(stream)
    posterior: StreamedPosterior | Observations = reservoir
    if len(reservoir) < survey.count[0]:
        with tqdm(desc="search", unit="step", disable=not progress, delay=BAR_DELAY) as bar:
            plan, choice, calibrate = _choose(survey, reservoir, bar.update)
        summed = _kept(stream, "sums", PartialSums, plan.key)
        with _bar("sum", stream, progress) as bar:
            sums = reduce_chunks(stream.chunks, partial(sum_chunk, plan), summed, client, bar)
        first, now = int(survey.count[0]), int(sums.count[0])
        if now != first:
            raise FileError(f"{stream.source} held {first:,} samples at first, now {now:,}: {_UNCHANGED}")
        posterior = _solve(plan, sums, choice, calibrate, reservoir, began)
    for file in (surveyed, summed):
        if file is not None:
            file.path.unlink(missing_ok=True)
    return posterior


def _kept(stream: SampleStream, stage: str, kind: type, plan: str) -> Kept | None:
    if stream.kept is None:
        return None
    return Kept(stream.kept.with_name(f"{stream.kept.name}-{stage}.fts"), kind, plan)


def _bar(what: str, stream: SampleStream, progress: bool) -> tqdm:
    total = len(stream.chunks) if isinstance(stream.chunks, Sized) else None
    return tqdm(total=total, desc=what, unit="chunk", disable=not progress, delay=BAR_DELAY)


def _choose(
    survey: Survey, reservoir: Observations, step: Callable[[], object]
) -> tuple[SumsPlan, Choice, Callable[[], float]]:
    """Kernels and nugget by the reservoir, and the sums that a solve with them takes."""
    refuse_constant(reservoir.y)
    count, domain = int(survey.count[0]), reservoir.domain
    grouping, points = "", None
    for name, groups in (("sensors", survey.sensors), ("frames", survey.frames)):
        if groups is not None and len(groups) <= most_groups(count):
            grouping, points = name, groups
            break
    mean, scale = float(reservoir.y.mean()), float(reservoir.y.std())
    values, rng = (reservoir.y - mean) / scale, np.random.default_rng(_SEED)
    choice, calibrate = search_scattered(reservoir, values, grouping, rng, step)
    if min(choice.errors) > _UNPREDICTED:
        warnings.warn(
            f"{len(reservoir):,} of {count:,} samples, which choose kernels, hardly predict each other: "
            "noise, or waves shorter than their distances; fit parts of the domain one by one to see them",
            stacklevel=2,
        )
    layout = arrange(points, domain, grouping, count)
    most, wanted = needed_modes(layout, choice.kernels, choice.nugget)
    if most != wanted:
        warnings.warn(
            f"{count:,} samples resolve waves up to {wanted} around the axes, {most} are fitted: fit parts "
            "of the domain one by one for finer detail",
            stacklevel=2,
        )
    fits = _PARTS * layout.groups * prod(4 * m + 1 for m in most) <= _LARGEST_SUMS
    plan = SumsPlan(domain, grouping, points, mean, scale, most, _PARTS if fits else 1)
    return plan, choice, calibrate


def _solve(
    plan: SumsPlan,
    sums: PartialSums,
    choice: Choice,
    calibrate: Callable[[], float],
    reservoir: Observations,
    began: float,
) -> StreamedPosterior:
    choice, system, solution = solve_with_nugget(StoredSums(plan, sums, range(plan.parts)), choice)
    return StreamedPosterior(
        reservoir=reservoir,
        plan=plan,
        sums=sums,
        system=system,
        z=solution.z,
        calibrate=calibrate,
        steps=solution.steps,
        domain=plan.domain,
        choice=choice,
        mean=plan.mean,
        scale=plan.scale,
        noise=plan.scale * residual_deviation(system, solution.z, float(sums.square[0])),
        seconds=time.perf_counter() - began,
    )


def draw_coefficients(system: NormalEquations, rng: np.random.Generator) -> Float[np.ndarray, "..."]:
    """White coefficients of what the mean misses of a function from the prior: N(0, s (A + s)^-1).

    Here A = Phi^T Phi. With the preconditioner P they are s^1/2 P^-1/2 M^-1/2 xi for white xi and
    M = P^-1/2 (A + s) P^-1/2: no sample is needed. M is near the identity, and Lanczos' method gives the rest
    in a few products with M.
    """
    root = np.sqrt(system.diagonal)
    start = rng.standard_normal(root.shape)
    norm = float(np.linalg.norm(start))
    vectors, diagonal, beside = [start / norm], [], []
    before, weights = np.zeros(0), np.zeros(0)
    for step in range(1, max(_LOOK, min(_STEPS, _VECTORS // root.size)) + 1):
        product_ = system.apply(vectors[-1] / root) / root
        diagonal.append(float(np.vdot(product_, vectors[-1])))
        product_ -= diagonal[-1] * vectors[-1]
        if beside:
            product_ -= beside[-1] * vectors[-2]
        beside.append(float(np.linalg.norm(product_)))
        if step % _LOOK == 0 or beside[-1] < _CHANGE**2:
            values, rotation = eigh_tridiagonal(diagonal, beside[:-1])
            weights = rotation @ (rotation[0] / np.sqrt(np.maximum(values, np.finfo(float).tiny)))
            change = np.linalg.norm(weights - np.pad(before, (0, step - len(before))))
            if change < _CHANGE * np.linalg.norm(weights) or beside[-1] < _CHANGE**2:
                break
            before = weights
        vectors.append(product_ / beside[-1])
    total = sum(weight * vector for weight, vector in zip(weights, vectors, strict=False))
    return np.sqrt(system.nugget) * norm * total / root
