"""Kernels that travel and spread, and the process they give.

A wave of speed c is simple along x - c t and needs many products of functions of x and of t. A part of the
kernel is a sum of waves k around closed axes, as for scattered samples, each moving with its velocity and
decaying as a spreading pulse does, and all forgotten after a while:

    sum_k g_k exp(-sum_a D_a k_a^2 (t + t' - 2 t_0)) cos k (x - x' - c (t - t')) h((t - t') / tau)

with g_k those of a Gaussian of length l. A wave is a function of (x, t) times one of (x', t'), so the
posterior mean on a grid of positions and times takes a few matrix products.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Complex, Float
from scipy.linalg import cho_factor, cho_solve

from fts.domain import Domain
from fts.kernel.covariance import kernel
from fts.kernel.fourier import Circle, circle
from fts.kernel.posterior import Posterior

_LEAST = 1e-10  # waves below this of the largest are dropped
_WAVES = 400  # random waves in time of a drawn function


@dataclass(frozen=True)
class Part:
    """One part: its share of the variance at first, velocity, lengths in space and time, and spreading."""

    amplitude: float
    velocity: tuple[float, ...]
    lengths: tuple[float, ...]
    duration: float
    spreading: tuple[float, ...]  # D_a: a pulse widens as l^2 + 2 D (t - t_0)

    @property
    def resting_duration(self) -> float:
        """The time scale at a place that rests, where the part passes by."""
        passing = sum((c / length) ** 2 for c, length in zip(self.velocity, self.lengths, strict=True))
        return float((self.duration**-2 + passing) ** -0.5)


def circles(domain: Domain) -> tuple[Circle, ...]:
    """The spatial axes, closed."""
    ends = zip(domain.low, domain.high, domain.periodic, strict=True)
    return tuple(circle(*end) for end in ends)


@dataclass(frozen=True)
class AxisWaves:
    """The waves of a part along one axis at points: g_k^1/2 exp(-D k^2 (t - t_0)) times cos and sin."""

    k: Float[np.ndarray, " m"]
    shares: Float[np.ndarray, " m"]  # g_k
    cosines: Float[np.ndarray, "n m"]
    sines: Float[np.ndarray, "n m"]


def line(
    part: Part, axis: int, x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"], domain: Domain
) -> AxisWaves:
    """The waves along one axis."""
    k, shares = _gaussian(circles(domain)[axis], part.lengths[axis])
    phase = np.outer(x[:, axis] - part.velocity[axis] * t, k)
    decay = np.exp(-part.spreading[axis] * np.outer(t - domain.t0, k**2)) * np.sqrt(shares)
    return AxisWaves(k, shares, decay * np.cos(phase), decay * np.sin(phase))


def covariance(
    parts: Sequence[Part],
    domain: Domain,
    at: tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]],
    samples: tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]],
) -> Float[np.ndarray, "m n"]:
    """The kernel between points (x, t) and samples."""
    between = at[1][:, None] - samples[1]
    total = np.zeros(between.shape)
    for part in parts:
        own = part.amplitude * kernel("gaussian", between / part.duration)
        for axis in range(domain.dimension):
            here, there = (line(part, axis, *points, domain) for points in (at, samples))
            own *= here.cosines @ there.cosines.T + here.sines @ there.sines.T
        total += own
    return total


@dataclass(frozen=True, kw_only=True)
class TravellingPosterior(Posterior):
    """A Gaussian process with a travelling kernel given some thousand samples, solved densely."""

    recipe: ClassVar[str] = "travelling"

    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]  # standardized
    parts: tuple[Part, ...]
    amplitude: float  # prior variance, in squared units of scale and of the parts' sum

    @property
    def parameters(self) -> dict[str, Any]:
        """The parts."""
        return {"parts": [asdict(part) for part in self.parts]}

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        samples = self.x, self.t
        matrix = covariance(self.parts, self.domain, samples, samples)
        floor = float(np.finfo(float).eps) * len(matrix) * 10
        matrix[np.diag_indices(len(matrix))] += max(self.choice.nugget, floor)
        return cho_factor(matrix, lower=True)

    @cached_property
    def _weights(self) -> Float[np.ndarray, " n"]:
        return cho_solve(self._factor, self.values)

    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`, on the tensor grid of the axes."""
        return self._spread(self._weights, axes)

    def standardized_at(self, x: Float[np.ndarray, "m d"], t: Float[np.ndarray, " m"]) -> np.ndarray:
        """The same at scattered points."""
        return covariance(self.parts, self.domain, (x, t), (self.x, self.t)) @ self._weights

    def draw_error(self, nodes: Sequence[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        known, truth = np.zeros(len(self.t)), np.zeros([axis.size for axis in nodes])
        for part in self.parts:
            waves, series = _series(part, self.domain)
            frequencies = rng.standard_normal(_WAVES) / part.duration
            mixed = rng.standard_normal((2, _WAVES, len(series)))
            mixed = (mixed[0] + 1j * mixed[1]) * np.sqrt(series / _WAVES)
            moving = np.exp(1j * np.outer(self.t, frequencies)) @ mixed
            known += np.real(np.sum(moving * _at(self.x, self.t, part, waves, self.domain), axis=1))
            truth += _on_nodes(
                np.exp(1j * np.outer(nodes[-1], frequencies)) @ mixed, nodes, part, waves, self.domain
            )
        known += np.sqrt(self.choice.nugget) * rng.standard_normal(len(known))
        refit = self._spread(cho_solve(self._factor, known), nodes)
        return self.scale * np.sqrt(self.amplitude) * (truth - refit)

    def _spread(self, weights: np.ndarray, axes: Sequence[np.ndarray]) -> Float[np.ndarray, "..."]:
        """sum_i weight_i k(., sample_i) on the tensor grid of the axes."""
        *_, t = axes
        total = np.zeros([axis.size for axis in axes])
        for part in self.parts:
            waves, series = _series(part, self.domain)
            moving = np.conj(_at(self.x, self.t, part, waves, self.domain)) * weights[:, None]
            decay = kernel("gaussian", (np.asarray(t)[:, None] - self.t) / part.duration)
            total += _on_nodes((decay @ moving) * series, axes, part, waves, self.domain)
        return total


def _gaussian(closed: Circle, length: float) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Wave numbers 0, 1, ... around a circle and their shares in a Gaussian; cos and sin count once each."""
    most = int(np.sqrt(-2 * np.log(_LEAST)) * closed.period / (2 * np.pi * length)) + 1
    k = 2 * np.pi / closed.period * np.arange(most + 1)
    series = np.where(k > 0, 2.0, 1.0) * np.exp(-0.5 * (k * length) ** 2)
    return k, series / series.sum()


def _series(part: Part, domain: Domain) -> tuple[Float[np.ndarray, "M d"], Float[np.ndarray, " M"]]:
    """All wave vectors of a part, of either sign, and their shares of its variance."""
    lines, numbers = [], []
    for closed, length in zip(circles(domain), part.lengths, strict=True):
        k, shares = _gaussian(closed, length)
        lines.append(np.concatenate([shares[:0:-1] / 2, shares[:1], shares[1:] / 2]))
        numbers.append(np.concatenate([-k[:0:-1], k]))
    waves = np.array(list(product(*numbers)))
    series = np.array([np.prod(each) for each in product(*lines)])
    kept = series > _LEAST * series.max()
    return waves[kept], part.amplitude * series[kept]


def _decay(t: np.ndarray, part: Part, waves: np.ndarray, domain: Domain) -> Float[np.ndarray, "n M"]:
    """What spreading leaves of every wave."""
    return np.exp(-np.outer(t - domain.t0, waves**2 @ np.array(part.spreading)))


def _at(
    x: np.ndarray, t: np.ndarray, part: Part, waves: np.ndarray, domain: Domain
) -> Complex[np.ndarray, "n M"]:
    """e_m(x - c t) at the samples, as far as they have not decayed."""
    moving = np.exp(1j * (x - np.outer(t, part.velocity)) @ waves.T)
    return moving * _decay(t, part, waves, domain)


def _on_nodes(
    amplitudes: Complex[np.ndarray, "T M"],
    axes: Sequence[np.ndarray],
    part: Part,
    waves: np.ndarray,
    domain: Domain,
) -> Float[np.ndarray, "..."]:
    """Re sum_m amplitude_m(t) e_m(x - c t) on the tensor grid of the axes."""
    *space, t = (np.asarray(axis, dtype=float) for axis in axes)
    rows = amplitudes * np.exp(-1j * np.outer(t, waves @ np.array(part.velocity)))
    return np.real(_sum(rows * _decay(t, part, waves, domain), space, waves))


def _sum(rows: np.ndarray, space: Sequence[np.ndarray], waves: np.ndarray) -> Complex[np.ndarray, "..."]:
    """The same on the spatial axes, one after the other: waves that share a first number come together."""
    if len(space) == 1:
        return np.exp(1j * np.outer(space[0], waves[:, 0])) @ rows.T
    first, place = np.unique(waves[:, 0], return_inverse=True)
    inner = np.stack([_sum(rows[:, place == i], space[1:], waves[place == i, 1:]) for i in range(len(first))])
    return np.tensordot(np.exp(1j * np.outer(space[0], first)), inner, 1)
