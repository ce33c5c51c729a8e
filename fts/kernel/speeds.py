"""Observations -> the process with a travelling kernel, where that predicts left-out sensors clearly better.

Speeds are scanned over a few values, then a simplex search moves speeds, length scales, shares and nugget
along the error at whole sensors (or frames) left out; a second part is kept where it lowers that further.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float, Int

from fts.domain import Domain
from fts.kernel.covariance import Kernel
from fts.kernel.dense import inverted, residuals_of
from fts.kernel.left_samples import groupings
from fts.kernel.process import Process
from fts.kernel.search import Choice
from fts.kernel.simplex import downhill
from fts.kernel.travelling import Differences, Part, TravellingPosterior, differences
from fts.observations import Observations, SensorGrid, distinct_rows

# A separable process is kept as it is where it errs less than this on what is left out, in deviations of the
# data, or hardly more than along its best axis: then noise is what it errs by, unless it errs along all.
_WELL, _LIKE_NOISE, _LOST = 5e-4, 1.5, 0.6
_CLEARLY = 0.8  # of the separable error, for a travelling kernel to be taken
_SCANNED, _SEARCHED, _SOLVED = 350, 700, 3000  # samples of the scan, the simplex search and the solve
_HOPELESS = 8.0  # times the separable error: one part that errs so much more is not mended by a second
_CHECKED = 1000  # samples beside those of the solve at which it must do as well
# Speeds of the scan in extents of space per duration of the record; length scales in distances of
# neighbouring sensors; time scales in durations.
_SPEEDS, _LENGTHS, _TIMES, _NUGGET = (0.06, 0.12, 0.25, 0.5, 1.0, 2.0), (0.5, 1.5), (0.15, 0.6), 1e-4
_SECOND = 0.5  # share of a second part to begin with
_EVALUATIONS = (90, 400)  # of the simplex search for one part and for two
# A second part is kept where the logarithm of the mean square falls by so much per number that it adds and
# per sensor left out: few sensors cannot decide about many numbers.
_WORTH = 1.0
_NUGGETS = (1e-10, 1.0)


@dataclass(frozen=True)
class Subset:
    """Some of the samples, and how they are left out."""

    pairs: Differences
    values: Float[np.ndarray, " n"]
    groups: list[Int[np.ndarray, " k"]]
    rows: Int[np.ndarray, " n"]  # of all samples
    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]

    def measured(self, parts: tuple[Part, ...], nugget: float) -> tuple[float, float]:
        """Mean square error at groups left out, and what the process expects of it."""
        inverse = inverted(self.pairs.covariance(parts), nugget)
        if inverse is None:
            return 1e12, 1.0
        return residuals_of(inverse, inverse @ self.values, self.groups)


def travel(
    observations: Observations, separable: Process, rng: np.random.Generator, step: Callable[[], object]
) -> Process:
    """The travelling process if it predicts what is left out clearly better, else the separable one."""
    began = time.perf_counter()
    errors, standardized = separable.choice.errors, (observations.y - separable.mean) / separable.scale
    worst = int(np.argmax(errors))
    noisy = len(errors) > 1 and errors[worst] < min(_LOST, _LIKE_NOISE * min(errors))
    if errors[worst] < _WELL or noisy:
        return separable
    final = _subset(observations, standardized, worst, _SOLVED)
    if final is None:
        return separable
    found = _searched(observations, standardized, worst, errors[worst], step)
    if found is None:
        return separable
    parts, nugget = found
    error, expected = final.measured(parts, nugget)
    if not np.sqrt(error) < _CLEARLY * errors[worst]:
        return separable
    lengths = tuple(np.min([part.lengths for part in parts], axis=0).tolist())
    duration = min(part.resting_duration for part in parts)
    kernels = (Kernel("gaussian", lengths), Kernel("gaussian", (duration,)))
    choice = Choice(kernels, nugget, (float(np.sqrt(error)),))
    travelling = TravellingPosterior(
        final.x,
        final.t,
        final.values,
        parts,
        choice,
        separable.mean,
        separable.scale,
        error / expected,
        observations.domain,
        separable.seconds + time.perf_counter() - began,
    )
    unseen = _missed(travelling, observations, standardized, final.rows)
    return travelling if unseen < _CLEARLY * errors[worst] else separable


def _missed(
    travelling: TravellingPosterior, observations: Observations, values: np.ndarray, used: np.ndarray
) -> float:
    """Root mean square error at samples the solve was not given: what sensors left out cannot tell."""
    others = np.setdiff1d(np.arange(len(values)), used)
    if not len(others):
        return 0.0
    rows = others[:: -(-len(others) // _CHECKED)]
    error = travelling.standardized_at(observations.x[rows], observations.t[rows]) - values[rows]
    return float(np.sqrt(np.mean(error**2)))


def _searched(
    observations: Observations,
    values: np.ndarray,
    worst: int,
    separable: float,
    step: Callable[[], object],
) -> tuple[tuple[Part, ...], float] | None:
    """One part, or two where they are worth it; None where one errs many times what the separable does."""
    domain = observations.domain
    scanned, searched = (_subset(observations, values, worst, most) for most in (_SCANNED, _SEARCHED))
    assert scanned is not None
    assert searched is not None

    def scan(before: tuple[Part, ...], candidates: list[Part], nugget: float) -> tuple[Part, ...]:
        tried = []
        for candidate in candidates:
            step()
            tried.append(scanned.measured((*before, candidate), nugget)[0])
        return (*before, candidates[int(np.argmin(tried))])

    one = scan((), _candidates(observations, worst), _NUGGET)
    one, nugget = _lowered(one, _NUGGET, searched, domain, _EVALUATIONS[0], step)
    alone = searched.measured(one, nugget)[0]
    if np.sqrt(alone) >= _HOPELESS * separable:
        return None
    first = one[0]
    others = [Part(_SECOND, velocity, first.lengths, first.duration) for velocity in _velocities(domain)]
    two = scan(one, others, nugget)
    two, lower = _lowered(two, nugget, searched, domain, _EVALUATIONS[1], step)
    gain = np.log(alone / searched.measured(two, lower)[0])
    added = 2 + 2 * domain.dimension
    return (two, lower) if gain * len(searched.groups) > _WORTH * added else (one, nugget)


def _candidates(observations: Observations, worst: int) -> list[Part]:
    domain = observations.domain
    *extents, duration = domain.extents
    # distance of neighbours among what is sampled least densely
    grid = observations.grid
    sensors = (
        len(grid.sensors)
        if grid is not None
        else len(observations) ** (domain.dimension / (1 + domain.dimension))
    )
    spacing = [extent / sensors ** (1 / domain.dimension) for extent in extents]
    return [
        Part(
            1.0,
            velocity,
            tuple(max(a * s, 0.02 * e) for s, e in zip(spacing, extents, strict=True)),
            b * duration,
        )
        for velocity in _velocities(domain)
        for a, b in product(_LENGTHS, _TIMES)
    ]


def _velocities(domain: Domain) -> list[tuple[float, ...]]:
    """No motion, and a few speeds in a few directions."""
    *extents, duration = domain.extents
    directions = [d for d in product((-1, 0, 1), repeat=len(extents)) if any(d)]
    return [
        (0.0,) * len(extents),
        *(
            tuple(speed * k * extent / duration for k, extent in zip(direction, extents, strict=True))
            for speed in _SPEEDS
            for direction in directions
        ),
    ]


def _lowered(
    parts: tuple[Part, ...],
    nugget: float,
    subset: Subset,
    domain: Domain,
    most: int,
    step: Callable[[], object],
) -> tuple[tuple[Part, ...], float]:
    """All numbers of the parts downhill together."""
    d, duration = domain.dimension, domain.extents[-1]
    unit = np.array(domain.extents[:-1]) / duration
    # A part that forgets from one frame to the next fits each by itself and knows nothing between them.
    gap = max(1e-3 * duration, float(np.max(np.diff(np.unique(subset.t)), initial=0.0)))

    def packed(part: Part) -> list[float]:
        return [
            *(np.array(part.velocity) / unit),
            *np.log(part.lengths),
            np.log(part.duration),
            np.log(part.amplitude),
        ]

    def unpacked(p: np.ndarray) -> tuple[tuple[Part, ...], float]:
        found = []
        for own in np.split(p[:-1], len(parts)):
            scales = np.exp(np.clip(own[d:], -60, 60))
            lengths = np.clip(scales[:d], 1e-3 * unit * duration, 10 * unit * duration)
            found.append(
                Part(
                    float(scales[-1]),
                    tuple((own[:d] * unit).tolist()),
                    tuple(lengths.tolist()),
                    float(np.clip(scales[d], gap, 100 * duration)),
                )
            )
        total = sum(part.amplitude for part in found)
        shares = tuple(Part(q.amplitude / total, q.velocity, q.lengths, q.duration) for q in found)
        return shares, float(np.exp(np.clip(p[-1], *np.log(_NUGGETS))))

    def error(p: np.ndarray) -> float:
        step()
        return float(np.log(subset.measured(*unpacked(p))[0]))

    start = np.array([*(value for part in parts for value in packed(part)), np.log(nugget)])
    # speeds move by a fraction of themselves, and at least a little
    single = [*[0.1] * d, *[-0.3] * d, 0.4, 0.5]
    steps = np.array([*single * len(parts), -2.5])
    return unpacked(downhill(error, start, steps, most))


def _subset(observations: Observations, values: np.ndarray, worst: int, most: int) -> Subset | None:
    """All slices that are left out, thinned along the other axis to at most so many samples."""
    if observations.grid is None:
        if len(observations) > _SOLVED:
            return None
        rows = np.arange(len(observations))[:: -(-len(observations) // most)]
        way = groupings(observations, "")[0]
        place = np.arange(len(rows)) if way is None else way[rows]
    else:
        rows, place = _thinned(observations.grid, observations, worst, most)
        if len(rows) > most:
            return None
    x, t = observations.x[rows], observations.t[rows]
    groups = [np.flatnonzero(place == one) for one in np.unique(place)]
    return Subset(differences(x, t, observations.domain), values[rows], groups, rows, x, t)


def _thinned(
    grid: SensorGrid, observations: Observations, worst: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of every k-th frame, left out by sensor; or of every k-th sensor, left out by frame."""
    place = distinct_rows(observations.x)[1]
    frame = np.searchsorted(grid.frames, observations.t)
    by_frame = worst > 0
    kept, count = (place, len(grid.sensors)) if by_frame else (frame, len(grid.frames))
    other = len(grid.frames) if by_frame else len(grid.sensors)
    stride = -(-count // max(most // other, 1))
    rows = np.flatnonzero(kept % stride == stride // 2)
    return rows, (frame if by_frame else place)[rows]
