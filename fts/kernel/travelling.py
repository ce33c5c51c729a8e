"""Kernels that travel and spread, and the process they give.

A pulse of speed c is simple along x - c t and needs many products of functions of x and of t. A component of
the kernel is a sum of Fourier modes k around closed axes, as for scattered samples, each moving with its
velocity and decaying as a spreading pulse does, and all forgotten after a while:

    sum_k g_k exp(-sum_a D_a k_a^2 (t + t' - 2 t_0)) cos k (x - x' - c (t - t')) h((t - t') / tau)

with g_k those of a Gaussian of length l. A mode is a function of (x, t) times one of (x', t'), so the
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
from fts.kernel.covariance import GAUSSIAN
from fts.kernel.fourier import Circle, circle
from fts.kernel.posterior import Posterior

_LEAST = 1e-10  # modes below this of the largest are dropped
_FEATURES = 400  # random Fourier features in time of a drawn function


@dataclass(frozen=True)
class TravellingComponent:
    """Its share of the variance at first, velocity, lengths in space and time, and spreading."""

    amplitude: float
    velocity: tuple[float, ...]
    lengths: tuple[float, ...]
    duration: float
    spreading: tuple[float, ...]  # D_a: a pulse widens as l^2 + 2 D (t - t_0)

    @property
    def resting_duration(self) -> float:
        """The time scale at a fixed position, which the component passes."""
        passing = sum((c / length) ** 2 for c, length in zip(self.velocity, self.lengths, strict=True))
        return float((self.duration**-2 + passing) ** -0.5)


@dataclass(frozen=True)
class AxisModes:
    """The modes of a component along one axis at points: g_k^1/2 exp(-D k^2 (t - t_0)) times cos and sin."""

    k: Float[np.ndarray, " m"]
    shares: Float[np.ndarray, " m"]  # g_k
    cosines: Float[np.ndarray, "n m"]
    sines: Float[np.ndarray, "n m"]


def circles(domain: Domain) -> tuple[Circle, ...]:
    """The spatial axes, closed."""
    return tuple(circle(*end) for end in domain.axes[:-1])


def axis_modes(
    component: TravellingComponent,
    axis: int,
    x: Float[np.ndarray, "n d"],
    t: Float[np.ndarray, " n"],
    domain: Domain,
) -> AxisModes:
    """The modes along one axis."""
    k, shares = _gaussian(circles(domain)[axis], component.lengths[axis])
    phase = np.outer(x[:, axis] - component.velocity[axis] * t, k)
    decay = np.exp(-component.spreading[axis] * np.outer(t - domain.t0, k**2)) * np.sqrt(shares)
    return AxisModes(k, shares, decay * np.cos(phase), decay * np.sin(phase))


def covariance(
    components: Sequence[TravellingComponent],
    domain: Domain,
    at: tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]],
    samples: tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]],
) -> Float[np.ndarray, "m n"]:
    """The kernel between points (x, t) and samples."""
    between = at[1][:, None] - samples[1]
    total = np.zeros(between.shape)
    for component in components:
        matrix = component.amplitude * GAUSSIAN.covariance(between / component.duration)
        for axis in range(domain.dimension):
            here, there = (axis_modes(component, axis, *points, domain) for points in (at, samples))
            matrix *= here.cosines @ there.cosines.T + here.sines @ there.sines.T
        total += matrix
    return total


@dataclass(frozen=True, kw_only=True)
class TravellingPosterior(Posterior):
    """A Gaussian process with a travelling kernel given some thousand samples, solved densely."""

    recipe: ClassVar[str] = "travelling"

    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]  # standardized
    components: tuple[TravellingComponent, ...]
    amplitude: float  # prior variance, in squared units of scale and of the components' sum

    @property
    def parameters(self) -> dict[str, Any]:
        """The components, by the name they have in the fields that ship."""
        return {"parts": [asdict(component) for component in self.components]}

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        samples = self.x, self.t
        matrix = covariance(self.components, self.domain, samples, samples)
        floor = float(np.finfo(float).eps) * len(matrix) * 10
        matrix[np.diag_indices(len(matrix))] += max(self.choice.nugget, floor)
        return cho_factor(matrix, lower=True)

    @cached_property
    def _weights(self) -> Float[np.ndarray, " n"]:
        return cho_solve(self._factor, self.values)

    @cached_property
    def _modes(self) -> list["_Modes"]:
        return [_Modes.of(component, self.domain) for component in self.components]

    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`, on the tensor grid of the axes."""
        return self._mean(self._weights, axes)

    def standardized_at(self, x: Float[np.ndarray, "m d"], t: Float[np.ndarray, " m"]) -> np.ndarray:
        """The same at scattered points."""
        return covariance(self.components, self.domain, (x, t), (self.x, self.t)) @ self._weights

    def draw_error(self, nodes: Sequence[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        known, truth = np.zeros(len(self.t)), np.zeros([axis.size for axis in nodes])
        for modes in self._modes:
            frequencies = rng.standard_normal(_FEATURES) / modes.component.duration
            real, imaginary = rng.standard_normal((2, _FEATURES, len(modes.shares)))
            weights = (real + 1j * imaginary) * np.sqrt(modes.shares / _FEATURES)
            moving = np.exp(1j * np.outer(self.t, frequencies)) @ weights
            known += np.real(np.sum(moving * modes.at(self.x, self.t), axis=1))
            truth += modes.sum_on_grid(np.exp(1j * np.outer(nodes[-1], frequencies)) @ weights, nodes)
        known += np.sqrt(self.choice.nugget) * rng.standard_normal(len(known))
        mean = self._mean(cho_solve(self._factor, known), nodes)
        return self.scale * np.sqrt(self.amplitude) * (truth - mean)

    def _mean(self, weights: np.ndarray, axes: Sequence[np.ndarray]) -> Float[np.ndarray, "..."]:
        """sum_i weight_i k(., sample_i) on the tensor grid of the axes."""
        between = np.asarray(axes[-1])[:, None] - self.t
        total = np.zeros([axis.size for axis in axes])
        for modes in self._modes:
            moving = np.conj(modes.at(self.x, self.t)) * weights[:, None]
            decay = GAUSSIAN.covariance(between / modes.component.duration)
            total += modes.sum_on_grid((decay @ moving) * modes.shares, axes)
        return total


@dataclass(frozen=True)
class _Modes:
    """All modes e_k of a component, k of either sign, and their shares of its variance."""

    component: TravellingComponent
    domain: Domain
    k: Float[np.ndarray, "M d"]
    shares: Float[np.ndarray, " M"]

    @classmethod
    def of(cls, component: TravellingComponent, domain: Domain) -> "_Modes":
        """Those that are not negligible."""
        shares, numbers = [], []
        for closed, length in zip(circles(domain), component.lengths, strict=True):
            k, g = _gaussian(closed, length)
            shares.append(np.concatenate([g[:0:-1] / 2, g[:1], g[1:] / 2]))
            numbers.append(np.concatenate([-k[:0:-1], k]))
        k, total = np.array(list(product(*numbers))), np.array([np.prod(each) for each in product(*shares)])
        kept = total > _LEAST * total.max()
        return cls(component, domain, k[kept], component.amplitude * total[kept])

    def at(self, x: np.ndarray, t: np.ndarray) -> Complex[np.ndarray, "n M"]:
        """e_k(x - c t) at the samples, as far as they have not decayed."""
        moving = np.exp(1j * (x - np.outer(t, self.component.velocity)) @ self.k.T)
        return moving * self._decay(t)

    def sum_on_grid(self, amplitudes: Complex[np.ndarray, "T M"], axes: Sequence[np.ndarray]) -> np.ndarray:
        """Re sum_k amplitude_k(t) e_k(x - c t) on the tensor grid of the axes."""
        *space, t = (np.asarray(axis, dtype=float) for axis in axes)
        rows = amplitudes * np.exp(-1j * np.outer(t, self.k @ np.array(self.component.velocity)))
        return np.real(_sum_axis_by_axis(rows * self._decay(t), space, self.k))

    def _decay(self, t: np.ndarray) -> Float[np.ndarray, "n M"]:
        """What spreading leaves of every mode."""
        return np.exp(-np.outer(t - self.domain.t0, self.k**2 @ np.array(self.component.spreading)))


def _gaussian(closed: Circle, length: float) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Wavenumbers 0, 1, ... around a circle and their shares in a Gaussian; cos and sin count once each."""
    most = int(np.sqrt(-2 * np.log(_LEAST)) * closed.period / (2 * np.pi * length)) + 1
    k = 2 * np.pi / closed.period * np.arange(most + 1)
    series = np.where(k > 0, 2.0, 1.0) * np.exp(-0.5 * (k * length) ** 2)
    return k, series / series.sum()


def _sum_axis_by_axis(rows: np.ndarray, space: Sequence[np.ndarray], k: np.ndarray) -> np.ndarray:
    """Modes summed on the spatial axes, one after the other: those that share a first number together."""
    if len(space) == 1:
        return np.exp(1j * np.outer(space[0], k[:, 0])) @ rows.T
    first, index = np.unique(k[:, 0], return_inverse=True)
    inner = [_sum_axis_by_axis(rows[:, index == i], space[1:], k[index == i, 1:]) for i in range(len(first))]
    return np.tensordot(np.exp(1j * np.outer(space[0], first)), np.stack(inner), 1)
