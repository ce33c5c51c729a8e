"""Posterior -> fields it holds for possible: the frozen field plus errors drawn from the posterior.

A function drawn from the prior is sampled where the data were, noise is added, and the process is fitted to
these samples: what it misses of the function has the distribution of what the field misses of the truth
(Matheron's rule). Prior functions are sums of random waves, whose spectrum is the kernel's.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Complex, Float

from fts.domain import Domain, grid_points
from fts.fields.frozen import Field
from fts.fields.series import Basis, transform
from fts.kernel.covariance import Kernel, SampleAxis, multiply, precision, rotate
from fts.kernel.posterior import Posterior

_WAVES = 1000
# Functions per length scale and at least: resolves the kernel's spectrum to about a thousandth.
_PER_LENGTH, _FEWEST, _MOST = (3.0, 2.0, 1.5), 24, (256, 96, 48)


@dataclass(frozen=True)
class DrawnField:
    """A field and one error it may have, as a series; has the interface of a field."""

    field: Field
    bases: tuple[Basis, ...]
    series: Float[np.ndarray, "..."]

    @property
    def domain(self) -> Domain:
        """The box of the field."""
        return self.field.domain

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The field with its error on the tensor grid of the axes (x, [y,] t)."""
        error = self.series
        for i, (basis, axis) in enumerate(zip(self.bases, axes, strict=True)):
            error = multiply(error, basis.at(axis, 0), i)
        return self.field.on_grid(*axes) + error


def drawn(posterior: Posterior, field: Field, count: int, rng: np.random.Generator) -> tuple[DrawnField, ...]:
    """`count` fields the samples allow, around the frozen posterior mean `field`."""
    bases = _bases(posterior)
    nodes = [basis.nodes for basis in bases]
    return tuple(
        DrawnField(field, bases, transform(_error(posterior, nodes, rng), bases)) for _ in range(count)
    )


def _error(posterior: Posterior, nodes: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
    space = [axis[:, None] for axis in nodes[:-1]]
    tensor = len(posterior.parts) == len(nodes)
    points = [*(space if tensor else [grid_points(tuple(nodes[:-1]))]), nodes[-1][:, None]]
    waves = [
        _waves(part, chosen, rng)
        for part, chosen in zip(posterior.parts, posterior.choice.kernels, strict=True)
    ]
    weights = (rng.standard_normal(_WAVES) + 1j * rng.standard_normal(_WAVES)) / np.sqrt(_WAVES)
    known, wanted = (
        _sum(
            weights,
            [_phases(part, at, wave) for part, at, wave in zip(posterior.parts, where, waves, strict=True)],
        )
        for where in ([part.points for part in posterior.parts], points)
    )
    known = known + np.sqrt(posterior.nugget) * rng.standard_normal(known.shape)
    refit = rotate(known, posterior.spectra) * precision(posterior.spectra, posterior.nugget)
    mean = replace(posterior, weights=refit, mean=0.0, scale=1.0).on_grid(*nodes)
    return posterior.scale * np.sqrt(posterior.amplitude) * (wanted.reshape(mean.shape) - mean)


def _bases(posterior: Posterior) -> tuple[Basis, ...]:
    domain = posterior.domain
    lengths = [length for chosen in posterior.choice.kernels for length in chosen.lengths]
    d = domain.dimension - 1
    sizes = [
        int(np.clip(_PER_LENGTH[d] * extent / length, _FEWEST, _MOST[d]))
        for extent, length in zip(domain.extents, lengths, strict=True)
    ]
    limits = zip(
        (*domain.low, domain.t0), (*domain.high, domain.t1), (*domain.periodic, False), sizes, strict=True
    )
    return tuple(
        Basis(low, high, closed, size + (closed and size % 2 == 0)) for low, high, closed, size in limits
    )


def _waves(part: SampleAxis, chosen: Kernel, rng: np.random.Generator) -> list[Float[np.ndarray, "k waves"]]:
    """Wave vectors per coordinate, from the kernel's spectrum; two components where the axis is a circle."""
    result = []
    for period, length in zip(part.periods, chosen.lengths, strict=True):
        wave = rng.standard_normal((1 if period is None else 2, _WAVES)) / length
        if chosen.family == "rational":  # a Gaussian whose precision is Gamma(2, 1/2)
            wave = wave * np.sqrt(rng.gamma(2.0, 0.5, _WAVES))
        result.append(wave)
    return result


def _phases(part: SampleAxis, points: np.ndarray, waves: list[np.ndarray]) -> Complex[np.ndarray, "n waves"]:
    """exp(i w . x) at the points; a circle is embedded in the plane, as for its kernel."""
    phase = np.zeros((len(points), _WAVES))
    for x, period, wave in zip(points.T, part.periods, waves, strict=True):
        if period is None:
            place = x[:, None] - part.points[:, 0].mean()
        else:
            angle = 2 * np.pi * x / period
            place = period / (2 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle)])
        phase += place @ wave
    return np.exp(1j * phase)


def _sum(weights: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    """sum over waves of Re(weight * product of the factors' phases), shaped like the sample grid."""
    *space, last = factors
    rows = weights[None, :]
    for factor in space:
        rows = (rows[:, None, :] * factor[None, :, :]).reshape(-1, len(weights))
    values = np.real(rows) @ np.real(last).T - np.imag(rows) @ np.imag(last).T
    return values.reshape(*(len(factor) for factor in factors))
