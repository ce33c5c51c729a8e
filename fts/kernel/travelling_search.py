"""Observations -> the process with a travelling kernel, where that predicts left-out sensors clearly better.

Few sensors say little about what lies between them, but every pair of samples says something about speeds and
scales: the marginal likelihood hears all of them, where sensors left out only judge what was predicted.
Speeds are scanned, and from the likeliest all numbers climb the likelihood together: first of one component,
then of two, which are kept where they are likelier by more than their numbers cost. Whole sensors (or frames)
left out then say whether this kernel predicts better than products of space and time.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize

from fts.domain import Domain
from fts.kernel.covariance import GAUSSIAN, Choice, Kernel
from fts.kernel.cross_validation import inverse_and_determinant, leave_group_out, rows_of_groups
from fts.kernel.posterior import Posterior
from fts.kernel.travelling import AxisModes, TravellingComponent, TravellingPosterior, axis_modes, covariance
from fts.observations import Observations, SensorGrid, unique_rows

_IMPOSSIBLE = 1e10  # where rounding leaves nothing to invert
_STEPS, _MEMORY = 100, 20  # steps of the search at most, and those it remembers
# Bounds: speeds in extents per duration, lengths in extents, durations of the record, spreading in squared
# extents per duration, amplitudes in variances of the data, nuggets.
_FASTEST, _LENGTH_LIMITS, _LONGEST, _WIDEST = 8.0, (0.01, 10.0), 100.0, 1.0
_AMPLITUDES, _NUGGETS = (1e-6, 1e3), (1e-10, 1.0)
_SPREAD = 0.03  # the unit in which the search moves spreading, in the same units
# A separable process is kept as it is where it errs less than this on what is left out, in deviations of the
# data, or hardly more than along its best axis: then noise is what it errs by, unless it errs along all.
_WELL, _LIKE_NOISE, _LOST = 5e-4, 1.5, 0.6
_CLEARLY = 0.8  # of the separable error, for a travelling kernel to be taken
_SCANNED, _SEARCHED, _SOLVED = 350, 700, 3000  # samples of the scan, the search and the solve
_MORE_SENSORS = 2.0  # the search takes so many times as many sensors as frames, where there are as many
_HOPELESS = 50.0  # times the separable error: a component that errs so much more is not improved by a second
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
# A second component begins with these lengths of the first, and both last for so many durations. Lasting ones
# are told apart by their speeds alone, and from every speed the search ends at nearly the same two, unless
# the first is still a compromise between them.
_WIDER, _LASTING = (1.0, 2.0), (5.0, 1.0, 0.3)
_CLIMBED, _FOLLOWED = 3, 2  # starts of a kind that climb on few samples, and of all those on more

Step = Callable[[], object]


@dataclass(frozen=True)
class TravellingFit:
    """Components, their nugget, and the negative log-likelihood they give the samples."""

    components: tuple[TravellingComponent, ...]
    nugget: float
    negative_log_likelihood: float = np.inf


@dataclass(frozen=True)
class StandardizedSamples:
    """Places, times and standardized values."""

    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]
    domain: Domain


@dataclass(frozen=True)
class Subset:
    """Some of the samples, and how they are left out."""

    samples: StandardizedSamples
    groups: list[Int[np.ndarray, " k"]]
    rows: Int[np.ndarray, " n"]  # of all samples

    def leave_group_out(self, fit: TravellingFit) -> tuple[float, float]:
        """Mean square error at groups left out, and what the process expects of it."""
        points = self.samples.x, self.samples.t
        matrix = covariance(fit.components, self.samples.domain, points, points)
        return leave_group_out(matrix, fit.nugget, self.samples.values, [self.groups])[0]


def choose_travelling(observations: Observations, separable: Posterior, step: Step) -> Posterior:
    """The travelling process where it predicts what is left out clearly better, else the separable one."""
    began = time.perf_counter()
    errors, standardized = separable.choice.errors, (observations.y - separable.mean) / separable.scale
    worst = int(np.argmax(errors))
    noisy = len(errors) > 1 and errors[worst] < min(_LOST, _LIKE_NOISE * min(errors))
    if errors[worst] < _WELL or noisy:
        return separable
    final = _left_out_subset(observations, standardized, worst, _SOLVED)
    if final is None:
        return separable
    fit = _search(observations, standardized, final, errors[worst], step)
    if fit is None:
        return separable
    error, expected = final.leave_group_out(fit)
    if not np.sqrt(error) < _CLEARLY * errors[worst]:
        return separable
    lengths = tuple(np.min([each.lengths for each in fit.components], axis=0).tolist())
    duration = min(each.resting_duration for each in fit.components)
    kernels = (Kernel("gaussian", lengths), Kernel("gaussian", (duration,)))
    amplitude = error / expected
    travelling = TravellingPosterior(
        x=final.samples.x,
        t=final.samples.t,
        values=final.samples.values,
        components=fit.components,
        amplitude=amplitude,
        domain=observations.domain,
        choice=Choice(kernels, fit.nugget, (float(np.sqrt(error)),)),
        mean=separable.mean,
        scale=separable.scale,
        noise=separable.scale * float(np.sqrt(amplitude * fit.nugget)),
        seconds=separable.seconds + time.perf_counter() - began,
    )
    unseen = _error_elsewhere(travelling, observations, standardized, final.rows)
    return travelling if unseen < _CLEARLY * errors[worst] else separable


def _error_elsewhere(
    travelling: TravellingPosterior, observations: Observations, values: np.ndarray, used: np.ndarray
) -> float:
    """Root mean square error at samples the solve was not given: what sensors left out cannot tell."""
    others = np.setdiff1d(np.arange(len(values)), used)
    if not len(others):
        return 0.0
    rows = others[:: -(-len(others) // _CHECKED)]
    error = travelling.standardized_at(observations.x[rows], observations.t[rows]) - values[rows]
    return float(np.sqrt(np.mean(error**2)))


def negative_log_likelihood(
    samples: StandardizedSamples, components: Sequence[TravellingComponent], nugget: float
) -> tuple[float, Float[np.ndarray, " p"]]:
    """The negative log-likelihood per sample, less log(2 pi) / 2, and its gradient.

    The gradient is in velocity, log lengths, spreading, log duration and log amplitude of every component,
    then in the log nugget: with M = K^-1 - K^-1 y (K^-1 y)' it is half the trace of M dK.
    """
    values, terms = samples.values, [_CovarianceTerm(each, samples) for each in components]
    matrix = sum((term.matrix for term in terms), np.zeros((len(values), len(values))))
    matrix[np.diag_indices(len(values))] += nugget
    solved = inverse_and_determinant(matrix)
    if solved is None:
        return _IMPOSSIBLE, np.zeros(len(components) * (3 * samples.domain.dimension + 2) + 1)
    inverse, determinant = solved
    weights = inverse @ values
    half = 0.5 * (inverse - np.outer(weights, weights))
    gradient = [term.gradient(half) for term in terms]
    value = 0.5 * (float(values @ weights) + determinant)
    return value / len(values), np.append(np.concatenate(gradient), np.trace(half) * nugget) / len(values)


class _CovarianceTerm:
    """The kernel matrix of one component, and what sums against it change with the component's numbers."""

    def __init__(self, component: TravellingComponent, samples: StandardizedSamples) -> None:
        self.component, self.samples = component, samples
        self.between = samples.t[:, None] - samples.t
        self.decay = component.amplitude * GAUSSIAN.covariance(self.between / component.duration)
        x, t, domain = samples.x, samples.t, samples.domain
        self.modes = [axis_modes(component, axis, x, t, domain) for axis in range(domain.dimension)]
        self.factors = [each.cosines @ each.cosines.T + each.sines @ each.sines.T for each in self.modes]
        self.matrix = prod(self.factors, start=self.decay)

    def gradient(self, half: Float[np.ndarray, "n n"]) -> Float[np.ndarray, " own"]:
        """Of sum half * matrix: in velocity, log lengths, spreading, log duration and log amplitude."""
        along = []
        for axis, modes in enumerate(self.modes):
            others = [factor for i, factor in enumerate(self.factors) if i != axis]
            along.append(self._gradient_along(modes, axis, prod(others, start=half * self.decay)))
        weighted = half * self.matrix
        duration = np.sum(weighted * self.between**2) / self.component.duration**2
        return np.array([*np.transpose(along).ravel(), duration, np.sum(weighted)])

    def _gradient_along(
        self, modes: AxisModes, axis: int, weights: Float[np.ndarray, "n n"]
    ) -> tuple[float, float, float]:
        """The same for one axis, in velocity, log length and spreading; the weights are symmetric."""
        cosines, sines = weights @ modes.cosines, weights @ modes.sines
        t = self.samples.t
        turned = t @ (modes.sines * cosines - modes.cosines * sines)
        kept = modes.cosines * cosines + modes.sines * sines
        squared = (modes.k * self.component.lengths[axis]) ** 2
        narrower = modes.shares @ squared - squared  # the shares sum to one at every length
        decayed = -2 * (t - self.samples.domain.t0) @ kept
        return 2 * float(turned @ modes.k), float(kept.sum(axis=0) @ narrower), float(decayed @ modes.k**2)


def maximize_likelihood(
    start: TravellingFit, samples: StandardizedSamples, shortest: float, step: Step
) -> TravellingFit:
    """All numbers of the components uphill together; durations stay above `shortest`."""
    domain, count = samples.domain, len(start.components)
    units, bounds = _units(domain, count), _bounds(domain, shortest, count)

    def objective(p: np.ndarray) -> tuple[float, np.ndarray]:
        step()
        value, gradient = negative_log_likelihood(samples, *_unpacked(p * units, domain.dimension))
        return value, gradient * units

    first = np.clip(_packed(start.components, start.nugget) / units, *bounds.T)
    options = {"maxiter": _STEPS, "maxcor": _MEMORY}
    best = optimize.minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    components, nugget = _unpacked(best.x * units, domain.dimension)
    # Amplitudes as shares of the variance, which is one.
    total = sum(each.amplitude for each in components)
    shared = tuple(replace(each, amplitude=each.amplitude / total) for each in components)
    return TravellingFit(shared, nugget / total, float(best.fun))


def _packed(components: Sequence[TravellingComponent], nugget: float) -> Float[np.ndarray, " p"]:
    numbers = [
        [*q.velocity, *np.log(q.lengths), *q.spreading, np.log(q.duration), np.log(q.amplitude)]
        for q in components
    ]
    return np.array([*np.concatenate(numbers), np.log(nugget)])


def _unpacked(p: Float[np.ndarray, " p"], d: int) -> tuple[tuple[TravellingComponent, ...], float]:
    components = []
    for numbers in p[:-1].reshape(-1, 3 * d + 2):
        velocity, lengths, spreading = numbers[: 3 * d].reshape(3, d)
        duration, amplitude = np.exp(numbers[3 * d :]).tolist()
        c, length, spread = (tuple(each.tolist()) for each in (velocity, np.exp(lengths), spreading))
        components.append(TravellingComponent(amplitude, c, length, duration, spread))
    return tuple(components), float(np.exp(p[-1]))


def _units(domain: Domain, count: int) -> Float[np.ndarray, " p"]:
    """The units in which the search moves the numbers."""
    *extents, duration = domain.extents
    space = np.array(extents)
    units = [*space / duration, *np.ones(len(space)), *_SPREAD * space**2 / duration, 1.0, 1.0]
    return np.array([*units * count, 1.0])


def _bounds(domain: Domain, shortest: float, count: int) -> Float[np.ndarray, "p 2"]:
    """The least and largest numbers, in those units."""
    *extents, duration = domain.extents
    lengths = [np.log(np.array(_LENGTH_LIMITS) * extent) for extent in extents]
    spreading = [(0.0, _WIDEST / _SPREAD)] * len(extents)
    times = np.log((shortest, _LONGEST * duration))
    bounds = [*[(-_FASTEST, _FASTEST)] * len(extents), *lengths, *spreading, times, np.log(_AMPLITUDES)]
    return np.array([*bounds * count, np.log(_NUGGETS)])


def _search(
    observations: Observations, values: np.ndarray, judge: Subset, separable: float, step: Step
) -> TravellingFit | None:
    """One component, or two where they are likelier; None where one errs many times what separable does."""
    few, more = (_spread_out(observations, values, most) for most in (_SCANNED, _SEARCHED))
    starts = _likeliest(few, _single_starts(observations), step)
    single = min((_climb(few, start, step) for start in starts), key=_unlikeliness)
    if np.sqrt(judge.leave_group_out(single)[0]) >= _HOPELESS * separable:
        return None
    kinds = _double_starts(single, observations.domain)
    starts = [start for kind in kinds for start in _likeliest(few, kind, step)]
    doubles = sorted((_climb(few, start, step) for start in starts), key=_unlikeliness)
    single, *doubles = (_climb(more, fit, step) for fit in (single, *doubles[:_FOLLOWED]))
    double = min(doubles, key=_unlikeliness)
    # Schwarz: a number is worth half the logarithm of the samples
    samples = len(more.values)
    penalty = (2 + 3 * observations.domain.dimension) * np.log(samples) / (2 * samples)
    return double if _unlikeliness(double) + penalty < _unlikeliness(single) else single


def _unlikeliness(fit: TravellingFit) -> float:
    return fit.negative_log_likelihood


def _likeliest(samples: StandardizedSamples, starts: list[TravellingFit], step: Step) -> list[TravellingFit]:
    """A few of the likeliest, their last components at speeds that differ."""
    known = []
    for start in starts:
        step()
        known.append(negative_log_likelihood(samples, start.components, start.nugget)[0])
    kept: dict[tuple[float, ...], TravellingFit] = {}
    for i in np.argsort(known, kind="stable"):
        kept.setdefault(starts[i].components[-1].velocity, starts[i])
    return list(kept.values())[:_CLIMBED]


def _climb(samples: StandardizedSamples, start: TravellingFit, step: Step) -> TravellingFit:
    """The likeliest numbers near these."""
    # A component uncorrelated between frames fits each by itself and predicts nothing between them.
    gap = float(np.max(np.diff(np.unique(samples.t)), initial=0.0))
    return maximize_likelihood(start, samples, max(1e-3 * samples.domain.extents[-1], gap), step)


def _single_starts(observations: Observations) -> list[TravellingFit]:
    """One component at every speed, with lengths from the distances of neighbouring sensors."""
    domain, grid, d = observations.domain, observations.grid, observations.domain.dimension
    *extents, duration = domain.extents
    # distance of neighbours among what is sampled least densely
    sensors = len(grid.sensors) if grid is not None else len(observations) ** (d / (1 + d))
    spacing = [extent / sensors ** (1 / d) for extent in extents]
    starts = []
    for velocity, a, b, c in product(_velocities(domain), _LENGTHS, _TIMES, _SPREADING):
        lengths = tuple(max(a * s, _SHORTEST * e) for s, e in zip(spacing, extents, strict=True))
        spreading = tuple(c * extent**2 / duration for extent in extents)
        component = TravellingComponent(1.0, velocity, lengths, b * duration, spreading)
        starts.append(TravellingFit((component,), _NUGGET))
    return starts


def _double_starts(single: TravellingFit, domain: Domain) -> list[list[TravellingFit]]:
    """The one component and a second at every speed, by how long both last."""
    (first,) = single.components
    kinds = []
    for lasting in (share * domain.extents[-1] for share in _LASTING):
        half = replace(first, amplitude=0.5, duration=max(first.duration, lasting))
        others = [
            replace(half, velocity=c, lengths=tuple(w * length for length in half.lengths), duration=lasting)
            for c, w in product(_velocities(domain), _WIDER)
        ]
        kinds.append([TravellingFit((half, other), single.nugget) for other in others])
    return kinds


def _velocities(domain: Domain) -> list[tuple[float, ...]]:
    *extents, duration = domain.extents
    speeds = [np.array(_SPEEDS[domain.dimension]) * extent / duration for extent in extents]
    return [tuple(map(float, velocity)) for velocity in product(*speeds)]


def _left_out_subset(observations: Observations, values: np.ndarray, worst: int, most: int) -> Subset | None:
    """All groups that are left out, thinned along the other axis to at most so many samples."""
    if observations.grid is None:
        rows = group = np.arange(len(observations))
    else:
        rows, group = _thinned(observations.grid, observations, worst, most)
    if len(rows) > most:
        return None
    return Subset(_samples(observations, values, rows), rows_of_groups(group), rows)


def _thinned(grid: SensorGrid, observations: Observations, worst: int, most: int) -> tuple[np.ndarray, ...]:
    """Rows of every k-th frame, left out by sensor; or of every k-th sensor, left out by frame."""
    sensor = unique_rows(observations.x)[1]
    frame = np.searchsorted(grid.frames, observations.t)
    by_frame = worst > 0
    kept, count = (sensor, len(grid.sensors)) if by_frame else (frame, len(grid.frames))
    other = len(grid.frames) if by_frame else len(grid.sensors)
    stride = -(-count // max(most // other, 1))
    rows = np.flatnonzero(kept % stride == stride // 2)
    return rows, (frame if by_frame else sensor)[rows]


def _spread_out(observations: Observations, values: np.ndarray, most: int) -> StandardizedSamples:
    """At most so many samples, thinned among sensors and among frames: speeds need some of both."""
    grid = observations.grid
    if grid is None:
        return _samples(observations, values, np.arange(len(observations))[:: -(-len(observations) // most)])
    sensors, frames = len(grid.sensors), len(grid.frames)
    kept = min(sensors, max(int(np.sqrt(_MORE_SENSORS * most)), most // frames))
    # drawn, since every k-th sensor of a plane may stand in one line
    drawn = np.random.default_rng(0).permutation(sensors)[:kept]
    times = np.linspace(0, frames - 1, min(frames, most // kept)).round().astype(int)
    chosen = np.isin(unique_rows(observations.x)[1], drawn)
    chosen &= np.isin(np.searchsorted(grid.frames, observations.t), times)
    return _samples(observations, values, np.flatnonzero(chosen))


def _samples(observations: Observations, values: np.ndarray, rows: np.ndarray) -> StandardizedSamples:
    return StandardizedSamples(observations.x[rows], observations.t[rows], values[rows], observations.domain)
