"""Travelling parts and a nugget -> how unlikely they make the samples, its gradient, and likelier ones.

Few sensors say little about what lies between them, but every pair of samples says something about speeds and
scales: the marginal likelihood hears all of them, where sensors left out only judge what was predicted.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy import optimize

from fts.domain import Domain
from fts.kernel.covariance import kernel
from fts.kernel.dense import inverse_and_determinant
from fts.kernel.travelling import AxisWaves, Part, line

_IMPOSSIBLE = 1e10  # where rounding leaves nothing to invert
_STEPS, _MEMORY = 100, 20  # steps of the search at most, and those it remembers
# Bounds: speeds in extents per duration, lengths in extents, durations of the record, spreading in squared
# extents per duration, amplitudes in variances of the data, nuggets.
_FASTEST, _LENGTHS, _LONGEST, _WIDEST = 8.0, (0.01, 10.0), 100.0, 1.0
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
    lengths = [np.log(np.array(_LENGTHS) * extent) for extent in extents]
    spreading = [(0.0, _WIDEST / _SPREAD)] * len(extents)
    times = np.log((shortest, _LONGEST * duration))
    own = [*[(-_FASTEST, _FASTEST)] * len(extents), *lengths, *spreading, times, np.log(_AMPLITUDES)]
    return np.array([*own * count, np.log(_NUGGETS)])
