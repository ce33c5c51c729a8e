"""Kernels that travel: k = sum_q a_q g((dx - c_q dt) / l_q) h(dt / tau_q), and the process they give.

A wave of speed c is simple along x - c t and needs many products of functions of x and of t. Space is closed
into circles, as for scattered samples, and the chord of dx - c dt keeps every part positive. With the Fourier
series g_m of a part the posterior mean is a sum over m of g_m e_m(x - c t) times
sum_i h(t - t_i) conj(e_m(x_i - c t_i)) alpha_i: on a grid of positions and times a few matrix products.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Complex, Float
from scipy.linalg import cho_factor, cho_solve

from fts.domain import Domain
from fts.kernel.covariance import kernel
from fts.kernel.search import Choice
from fts.kernel.waves import Circle, circle

_LEAST = 1e-10  # terms of a Fourier series below this of the largest are dropped
_WAVES = 400  # random waves in time of a drawn function


@dataclass(frozen=True)
class Part:
    """One travelling part: its share of the variance, velocity, and length scales in space and time."""

    amplitude: float
    velocity: tuple[float, ...]
    lengths: tuple[float, ...]
    duration: float

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
class Differences:
    """Differences of positions per axis, and of times, between all pairs of points and samples."""

    space: tuple[Float[np.ndarray, "m n"], ...]
    time: Float[np.ndarray, "m n"]
    periods: tuple[float, ...]

    def covariance(self, parts: Sequence[Part]) -> Float[np.ndarray, "m n"]:
        """The kernel matrix."""
        total = np.zeros(self.time.shape)
        for part in parts:
            squared = (self.time / part.duration) ** 2
            for dx, period, c, length in zip(
                self.space, self.periods, part.velocity, part.lengths, strict=True
            ):
                squared += (period / (np.pi * length) * np.sin(np.pi / period * (dx - c * self.time))) ** 2
            total += part.amplitude * np.exp(-0.5 * squared)
        return total


def differences(x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"], domain: Domain) -> Differences:
    """All pairs of samples."""
    return between(x, t, x, t, domain)


def between(
    x: Float[np.ndarray, "m d"],
    t: Float[np.ndarray, " m"],
    own: Float[np.ndarray, "n d"],
    times: Float[np.ndarray, " n"],
    domain: Domain,
) -> Differences:
    """All pairs of a point and a sample."""
    space = tuple(column[:, None] - mine for column, mine in zip(x.T, own.T, strict=True))
    return Differences(space, t[:, None] - times, tuple(c.period for c in circles(domain)))


@dataclass(frozen=True)
class TravellingPosterior:
    """A Gaussian process with a travelling kernel given some thousand samples, solved densely."""

    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]  # standardized
    parts: tuple[Part, ...]
    choice: Choice
    mean: float
    scale: float
    amplitude: float  # prior variance, in squared units of scale and of the parts' sum
    domain: Domain
    seconds: float = 0.0

    @property
    def noise(self) -> float:
        """Standard deviation of the noise, estimated."""
        return self.scale * float(np.sqrt(self.amplitude * self.choice.nugget))

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        matrix = differences(self.x, self.t, self.domain).covariance(self.parts)
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
        return between(x, t, self.x, self.t, self.domain).covariance(self.parts) @ self._weights

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean on the tensor grid of the axes (x, [y,] t)."""
        return self.mean + self.scale * self.standardized(*axes)

    def error(self, nodes: list[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        known, truth = np.zeros(len(self.t)), np.zeros([axis.size for axis in nodes])
        for part in self.parts:
            waves, series = _series(part, self.domain)
            frequencies = rng.standard_normal(_WAVES) / part.duration
            mixed = rng.standard_normal((2, _WAVES, len(series)))
            mixed = (mixed[0] + 1j * mixed[1]) * np.sqrt(series / _WAVES)
            moving = np.exp(1j * np.outer(self.t, frequencies)) @ mixed
            known += np.real(np.sum(moving * _at(self.x, self.t, part, waves), axis=1))
            truth += _on_nodes(np.exp(1j * np.outer(nodes[-1], frequencies)) @ mixed, nodes, part, waves)
        known += np.sqrt(self.choice.nugget) * rng.standard_normal(len(known))
        refit = self._spread(cho_solve(self._factor, known), nodes)
        return self.scale * np.sqrt(self.amplitude) * (truth - refit)

    def _spread(self, weights: np.ndarray, axes: Sequence[np.ndarray]) -> Float[np.ndarray, "..."]:
        """sum_i weight_i k(., sample_i) on the tensor grid of the axes."""
        *_, t = axes
        total = np.zeros([axis.size for axis in axes])
        for part in self.parts:
            waves, series = _series(part, self.domain)
            moving = np.conj(_at(self.x, self.t, part, waves)) * weights[:, None]
            decay = kernel("gaussian", (np.asarray(t)[:, None] - self.t) / part.duration)
            total += _on_nodes((decay @ moving) * series, axes, part, waves)
        return total


def _series(part: Part, domain: Domain) -> tuple[Float[np.ndarray, "M d"], Float[np.ndarray, " M"]]:
    """Wave vectors 2 pi m / L of a part, and the Fourier coefficients of its kernel in space."""
    lines, numbers = [], []
    for closed, length in zip(circles(domain), part.lengths, strict=True):
        line = closed.spectrum("gaussian", length)
        most = max(1, int(np.argmax(np.append(line, 0) <= _LEAST * line[0])) - 1)
        lines.append(line[np.abs(np.arange(-most, most + 1))])
        numbers.append(2 * np.pi / closed.period * np.arange(-most, most + 1))
    waves = np.array(list(product(*numbers)))
    series = np.array([np.prod(each) for each in product(*lines)])
    kept = series > _LEAST * series.max()
    return waves[kept], part.amplitude * series[kept]


def _at(x: np.ndarray, t: np.ndarray, part: Part, waves: np.ndarray) -> Complex[np.ndarray, "n M"]:
    """e_m(x - c t) at the samples."""
    return np.exp(1j * (x - np.outer(t, part.velocity)) @ waves.T)


def _on_nodes(
    amplitudes: Complex[np.ndarray, "T M"], axes: Sequence[np.ndarray], part: Part, waves: np.ndarray
) -> Float[np.ndarray, "..."]:
    """Re sum_m amplitude_m(t) e_m(x - c t) on the tensor grid of the axes."""
    *space, t = (np.asarray(axis, dtype=float) for axis in axes)
    rows = amplitudes * np.exp(-1j * np.outer(t, waves @ np.array(part.velocity)))
    return np.real(_sum(rows, space, waves))


def _sum(rows: np.ndarray, space: Sequence[np.ndarray], waves: np.ndarray) -> Complex[np.ndarray, "..."]:
    """The same on the spatial axes, one after the other: waves that share a first number come together."""
    if len(space) == 1:
        return np.exp(1j * np.outer(space[0], waves[:, 0])) @ rows.T
    first, place = np.unique(waves[:, 0], return_inverse=True)
    inner = np.stack([_sum(rows[:, place == i], space[1:], waves[place == i, 1:]) for i in range(len(first))])
    return np.tensordot(np.exp(1j * np.outer(space[0], first)), inner, 1)
