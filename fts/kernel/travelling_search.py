"""Travelling parts and a nugget -> how unlikely they make the samples, its gradient, and likelier ones.

Few sensors say little about what lies between them, but every pair of samples says something about speeds and
scales: the marginal likelihood hears all of them, where sensors left out only judge what was predicted.

Observations -> the process with a travelling kernel, where that predicts left-out sensors clearly better.

Speeds are scanned, and from the likeliest all numbers climb the likelihood together: first of one part, then
of two, which are kept where they are likelier by more than their numbers cost. Whole sensors (or frames) left
out then say whether the kernel that was found predicts better than products of space and time.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize

from fts.domain import Domain
from fts.kernel.covariance import Kernel, kernel
from fts.kernel.dense import inverse_and_determinant, inverted, residuals_of
from fts.kernel.posterior import Posterior
from fts.kernel.search import Choice
from fts.kernel.travelling import AxisWaves, Part, TravellingPosterior, covariance, line
from fts.observations import Observations, SensorGrid, unique_rows

_IMPOSSIBLE = 1e10  # where rounding leaves nothing to invert
_STEPS, _MEMORY = 100, 20  # steps of the search at most, and those it remembers
# Bounds: speeds in extents per duration, lengths in extents, durations of the record, spreading in squared
# extents per duration, amplitudes in variances of the data, nuggets.
_FASTEST, _LENGTH_LIMITS, _LONGEST, _WIDEST = 8.0, (0.01, 10.0), 100.0, 1.0
_AMPLITUDES, _NUGGETS = (1e-6, 1e3), (1e-10, 1.0)
_SPREAD = 0.03  # the unit in which the search moves spreading, in the same units


@dataclass(frozen=True)
class Fit:
    """Parts, their nugget, and how unlikely they make the samples."""

    parts: tuple[Part, ...]
    nugget: float
    unlikely: float = np.inf


@dataclass(frozen=True)
class StandardizedSamples:
    """Places, times and standardized values."""

    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]
    domain: Domain


def unlikely(
    samples: StandardizedSamples, parts: Sequence[Part], nugget: float
) -> tuple[float, Float[np.ndarray, " p"]]:
    """The negative log-likelihood per sample, less log(2 pi) / 2, and its gradient.

    The gradient is in velocity, log lengths, spreading, log duration and log amplitude of every part, then in
    the log nugget: with M = K^-1 - K^-1 y (K^-1 y)' it is half the trace of M dK.
    """
    values, kernels = samples.values, [_PartKernel(part, samples) for part in parts]
    matrix = sum((own.matrix for own in kernels), np.zeros((len(values), len(values))))
    matrix[np.diag_indices(len(values))] += nugget
    solved = inverse_and_determinant(matrix)
    if solved is None:
        return _IMPOSSIBLE, np.zeros(len(parts) * (3 * samples.domain.dimension + 2) + 1)
    inverse, determinant = solved
    weights = inverse @ values
    half = 0.5 * (inverse - np.outer(weights, weights))
    gradient = [own.slopes(half) for own in kernels]
    value = 0.5 * (float(values @ weights) + determinant)
    return value / len(values), np.append(np.concatenate(gradient), np.trace(half) * nugget) / len(values)


class _PartKernel:
    """The kernel matrix of one part, and what sums against it change with the part's numbers."""

    def __init__(self, part: Part, samples: StandardizedSamples) -> None:
        self.part, self.samples = part, samples
        self.between = samples.t[:, None] - samples.t
        self.forgetting = part.amplitude * kernel("gaussian", self.between / part.duration)
        self.lines = [line(part, a, samples.x, samples.t, samples.domain) for a in range(len(part.lengths))]
        self.factors = [own.cosines @ own.cosines.T + own.sines @ own.sines.T for own in self.lines]
        self.matrix = math.prod(self.factors, start=self.forgetting)

    def slopes(self, half: Float[np.ndarray, "n n"]) -> Float[np.ndarray, " own"]:
        """Of sum half * matrix: in velocity, log lengths, spreading, log duration and log amplitude."""
        d = len(self.lines)
        along = []
        for axis, own in enumerate(self.lines):
            others = [self.factors[b] for b in range(d) if b != axis]
            along.append(self._along(own, axis, math.prod(others, start=half * self.forgetting)))
        weighted = half * self.matrix
        lasting = np.sum(weighted * self.between**2) / self.part.duration**2
        return np.array([*np.transpose(along).ravel(), lasting, np.sum(weighted)])

    def _along(
        self, own: AxisWaves, axis: int, weights: Float[np.ndarray, "n n"]
    ) -> tuple[float, float, float]:
        """The same for one axis, in velocity, log length and spreading; the weights are symmetric."""
        cosines, sines = weights @ own.cosines, weights @ own.sines
        t = self.samples.t
        turned = t @ (own.sines * cosines - own.cosines * sines)
        kept = own.cosines * cosines + own.sines * sines
        squared = (own.k * self.part.lengths[axis]) ** 2
        narrower = own.shares @ squared - squared  # the shares sum to one at every length
        decayed = -2 * (t - self.samples.domain.t0) @ kept
        return 2 * float(turned @ own.k), float(kept.sum(axis=0) @ narrower), float(decayed @ own.k**2)


def likelier(start: Fit, samples: StandardizedSamples, shortest: float, step: Callable[[], object]) -> Fit:
    """All numbers of the parts uphill together; durations stay above `shortest`."""
    domain = samples.domain
    units = _units(domain, len(start.parts))
    bounds = _bounds(domain, shortest, len(start.parts))

    def measured(p: np.ndarray) -> tuple[float, np.ndarray]:
        step()
        value, gradient = unlikely(samples, *_unpacked(p * units, domain.dimension))
        return value, gradient * units

    first = np.clip(_packed(start.parts, start.nugget) / units, *bounds.T)
    options = {"maxiter": _STEPS, "maxcor": _MEMORY}
    found = optimize.minimize(measured, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return _shared(*_unpacked(found.x * units, domain.dimension), float(found.fun))


def _shared(parts: Sequence[Part], nugget: float, value: float) -> Fit:
    """Amplitudes as shares of the variance, which is one."""
    total = sum(part.amplitude for part in parts)
    own = tuple(replace(part, amplitude=part.amplitude / total) for part in parts)
    return Fit(own, nugget / total, value)


def _packed(parts: Sequence[Part], nugget: float) -> Float[np.ndarray, " p"]:
    own = [
        [*q.velocity, *np.log(q.lengths), *q.spreading, np.log(q.duration), np.log(q.amplitude)]
        for q in parts
    ]
    return np.array([*np.concatenate(own), np.log(nugget)])


def _unpacked(p: Float[np.ndarray, " p"], d: int) -> tuple[tuple[Part, ...], float]:
    parts = []
    for own in p[:-1].reshape(-1, 3 * d + 2):
        velocity, lengths, spreading = own[: 3 * d].reshape(3, d)
        duration, amplitude = np.exp(own[3 * d :]).tolist()
        c, length, spread = (tuple(each.tolist()) for each in (velocity, np.exp(lengths), spreading))
        parts.append(Part(amplitude, c, length, duration, spread))
    return tuple(parts), float(np.exp(p[-1]))


def _units(domain: Domain, count: int) -> Float[np.ndarray, " p"]:
    """The units in which the search moves the numbers."""
    *extents, duration = domain.extents
    space = np.array(extents)
    own = [*space / duration, *np.ones(len(space)), *_SPREAD * space**2 / duration, 1.0, 1.0]
    return np.array([*own * count, 1.0])


def _bounds(domain: Domain, shortest: float, count: int) -> Float[np.ndarray, "p 2"]:
    """The least and largest numbers, in those units."""
    *extents, duration = domain.extents
    lengths = [np.log(np.array(_LENGTH_LIMITS) * extent) for extent in extents]
    spreading = [(0.0, _WIDEST / _SPREAD)] * len(extents)
    times = np.log((shortest, _LONGEST * duration))
    own = [*[(-_FASTEST, _FASTEST)] * len(extents), *lengths, *spreading, times, np.log(_AMPLITUDES)]
    return np.array([*own * count, np.log(_NUGGETS)])


# A separable process is kept as it is where it errs less than this on what is left out, in deviations of the
# data, or hardly more than along its best axis: then noise is what it errs by, unless it errs along all.
_WELL, _LIKE_NOISE, _LOST = 5e-4, 1.5, 0.6
_CLEARLY = 0.8  # of the separable error, for a travelling kernel to be taken
_SCANNED, _SEARCHED, _SOLVED = 350, 700, 3000  # samples of the scan, the search and the solve
_MORE_PLACES = 2.0  # the search takes so many times as many sensors as frames, where there are as many
_HOPELESS = 50.0  # times the separable error: one part that errs so much more is not mended by a second
_CHECKED = 1000  # samples beside those of the solve at which it must do as well
# Speeds of the scan along each axis, in extents of space per duration of the record, by the number of axes;
# length scales in distances of neighbouring sensors, and the shortest in extents; time scales in durations.
_SPEEDS = {
    1: (*np.linspace(-1.0, 1.0, 21), -2.0, -1.5, 1.5, 2.0),
    2: (-2.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0),
    3: (-1.0, -0.3, 0.0, 0.3, 1.0),
}
_LENGTHS, _SHORTEST, _TIMES, _NUGGET = (0.5, 1.5), 0.02, (0.15, 0.6), 1e-4
_SPREADING = (0.0, 0.03)  # in squared extents per duration
# A second part begins with these lengths of the first, and both last for so many durations. Lasting parts are
# told apart by their speeds alone, and from every speed the search ends at nearly the same two, unless the
# first is still a compromise between them.
_WIDER, _LASTING = (1.0, 2.0), (5.0, 1.0, 0.3)
_CLIMBED, _FOLLOWED = 3, 2  # starts of a kind that climb on few samples, and of all those on more


@dataclass(frozen=True)
class Subset:
    """Some of the samples, and how they are left out."""

    samples: StandardizedSamples
    groups: list[Int[np.ndarray, " k"]]
    rows: Int[np.ndarray, " n"]  # of all samples

    def measured(self, fit: Fit) -> tuple[float, float]:
        """Mean square error at groups left out, and what the process expects of it."""
        own, values = (self.samples.x, self.samples.t), self.samples.values
        inverse = inverted(covariance(fit.parts, self.samples.domain, own, own), fit.nugget)
        if inverse is None:
            return 1e12, 1.0
        return residuals_of(inverse, inverse @ values, self.groups)


def travel(observations: Observations, separable: Posterior, step: Callable[[], object]) -> Posterior:
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
    found = _searched(observations, standardized, final, errors[worst], step)
    if found is None:
        return separable
    parts, nugget = found.parts, found.nugget
    error, expected = final.measured(found)
    if not np.sqrt(error) < _CLEARLY * errors[worst]:
        return separable
    lengths = tuple(np.min([part.lengths for part in parts], axis=0).tolist())
    duration = min(part.resting_duration for part in parts)
    kernels = (Kernel("gaussian", lengths), Kernel("gaussian", (duration,)))
    choice = Choice(kernels, nugget, (float(np.sqrt(error)),))
    amplitude = error / expected
    travelling = TravellingPosterior(
        x=final.samples.x,
        t=final.samples.t,
        values=final.samples.values,
        parts=parts,
        amplitude=amplitude,
        domain=observations.domain,
        choice=choice,
        mean=separable.mean,
        scale=separable.scale,
        noise=separable.scale * float(np.sqrt(amplitude * nugget)),
        seconds=separable.seconds + time.perf_counter() - began,
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
    judge: Subset,
    separable: float,
    step: Callable[[], object],
) -> Fit | None:
    """One part, or two where they are likelier; None where one errs many times what the separable does."""
    few, more = (_spread_out(observations, values, most) for most in (_SCANNED, _SEARCHED))
    ones = [_climbed(few, start, step) for start in _likeliest(few, _singles(observations), step)]
    one = min(ones, key=_unlikely)
    if np.sqrt(judge.measured(one)[0]) >= _HOPELESS * separable:
        return None
    kinds = _doubles(one, observations.domain)
    starts = [start for kind in kinds for start in _likeliest(few, kind, step)]
    twos = sorted((_climbed(few, start, step) for start in starts), key=_unlikely)
    one, *twos = (_climbed(more, fit, step) for fit in (one, *twos[:_FOLLOWED]))
    two = min(twos, key=_unlikely)
    # Schwarz: a number is worth half the logarithm of the samples
    samples = len(more.values)
    added = (2 + 3 * observations.domain.dimension) * np.log(samples) / (2 * samples)
    return two if two.unlikely + added < one.unlikely else one


def _likeliest(samples: StandardizedSamples, starts: list[Fit], step: Callable[[], object]) -> list[Fit]:
    """A few of the likeliest, their last parts at speeds that differ."""
    known = []
    for start in starts:
        step()
        known.append(unlikely(samples, start.parts, start.nugget)[0])
    kept: dict[tuple[float, ...], Fit] = {}
    for place in np.argsort(known, kind="stable"):
        kept.setdefault(starts[place].parts[-1].velocity, starts[place])
    return list(kept.values())[:_CLIMBED]


def _climbed(samples: StandardizedSamples, start: Fit, step: Callable[[], object]) -> Fit:
    """The likeliest numbers near these."""
    # A part that forgets from one frame to the next fits each by itself and knows nothing between them.
    gap = float(np.max(np.diff(np.unique(samples.t)), initial=0.0))
    return likelier(start, samples, max(1e-3 * samples.domain.extents[-1], gap), step)


def _unlikely(fit: Fit) -> float:
    return fit.unlikely


def _singles(observations: Observations) -> list[Fit]:
    """One part at every speed, with lengths from the distances of neighbouring sensors."""
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
        Fit((Part(1.0, velocity, _lengths(a, spacing, extents), b * duration, _spread(c, domain)),), _NUGGET)
        for velocity in _velocities(domain)
        for a, b, c in product(_LENGTHS, _TIMES, _SPREADING)
    ]


def _lengths(share: float, spacing: list[float], extents: list[float]) -> tuple[float, ...]:
    return tuple(max(share * s, _SHORTEST * e) for s, e in zip(spacing, extents, strict=True))


def _spread(share: float, domain: Domain) -> tuple[float, ...]:
    *extents, duration = domain.extents
    return tuple(share * extent**2 / duration for extent in extents)


def _doubles(one: Fit, domain: Domain) -> list[list[Fit]]:
    """The one part and a second at every speed, by how long both last."""
    (first,) = one.parts
    kinds = []
    for lasting in (share * domain.extents[-1] for share in _LASTING):
        own = replace(first, amplitude=0.5, duration=max(first.duration, lasting))
        others = [
            replace(
                own, velocity=c, lengths=tuple(wider * length for length in own.lengths), duration=lasting
            )
            for c, wider in product(_velocities(domain), _WIDER)
        ]
        kinds.append([Fit((own, other), one.nugget) for other in others])
    return kinds


def _velocities(domain: Domain) -> list[tuple[float, ...]]:
    *extents, duration = domain.extents
    lines = [np.array(_SPEEDS[domain.dimension]) * extent / duration for extent in extents]
    return [tuple(map(float, velocity)) for velocity in product(*lines)]


def _subset(observations: Observations, values: np.ndarray, worst: int, most: int) -> Subset | None:
    """All slices that are left out, thinned along the other axis to at most so many samples."""
    if observations.grid is None:
        if len(observations) > most:
            return None
        rows = place = np.arange(len(observations))
    else:
        rows, place = _thinned(observations.grid, observations, worst, most)
        if len(rows) > most:
            return None
    groups = [np.flatnonzero(place == one) for one in np.unique(place)]
    return Subset(_samples(observations, values, rows), groups, rows)


def _spread_out(observations: Observations, values: np.ndarray, most: int) -> StandardizedSamples:
    """At most so many samples, thinned among sensors and among frames: speeds need some of both."""
    grid = observations.grid
    if grid is None:
        return _samples(observations, values, np.arange(len(observations))[:: -(-len(observations) // most)])
    sensors, frames = len(grid.sensors), len(grid.frames)
    kept = min(sensors, max(int(np.sqrt(_MORE_PLACES * most)), most // frames))
    # drawn, since every k-th sensor of a plane may stand in one line
    places = np.random.default_rng(0).permutation(sensors)[:kept]
    times = np.linspace(0, frames - 1, min(frames, most // kept)).round().astype(int)
    chosen = np.isin(unique_rows(observations.x)[1], places)
    chosen &= np.isin(np.searchsorted(grid.frames, observations.t), times)
    return _samples(observations, values, np.flatnonzero(chosen))


def _samples(observations: Observations, values: np.ndarray, rows: np.ndarray) -> StandardizedSamples:
    return StandardizedSamples(observations.x[rows], observations.t[rows], values[rows], observations.domain)


def _thinned(
    grid: SensorGrid, observations: Observations, worst: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of every k-th frame, left out by sensor; or of every k-th sensor, left out by frame."""
    place = unique_rows(observations.x)[1]
    frame = np.searchsorted(grid.frames, observations.t)
    by_frame = worst > 0
    kept, count = (place, len(grid.sensors)) if by_frame else (frame, len(grid.frames))
    other = len(grid.frames) if by_frame else len(grid.sensors)
    stride = -(-count // max(most // other, 1))
    rows = np.flatnonzero(kept % stride == stride // 2)
    return rows, (frame if by_frame else place)[rows]
