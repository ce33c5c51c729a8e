"""What freezing, weighting and verdicts need of a posterior, however its samples lie.

Posterior -> fields it holds for possible: the frozen field plus errors drawn from the posterior.

A function drawn from the prior is sampled where the data were, noise is added, and the process is fitted to
these samples: what it misses of the function has the distribution of what the field misses of the truth
(Matheron's rule). Prior functions are sums of random waves, whose spectrum is the kernel's.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from fts.domain import Domain
from fts.fields.frozen import Field
from fts.fields.series import Basis, transform
from fts.kernel.covariance import multiply
from fts.kernel.search import Choice


@runtime_checkable
class Process(Protocol):
    """A Gaussian process given samples: its mean on grids, and draws of what the mean may miss."""

    @property
    def domain(self) -> Domain: ...
    @property
    def choice(self) -> Choice: ...
    @property
    def mean(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def noise(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`, on the tensor grid of the axes."""
        ...

    def error(self, nodes: list[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """Truth less posterior mean, as the process expects it, drawn on the tensor grid of the nodes."""
        ...


# Errors behind a variance: a fifth off at a point, and less over a patch.
_COUNT = 48
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


@dataclass(frozen=True)
class DrawnVariance:
    """The variance given the samples, as the mean square of errors drawn; has the interface of a field."""

    posterior: Process
    count: int = _COUNT
    seed: int = 0

    @property
    def domain(self) -> Domain:
        """The box the process lives on."""
        return self.posterior.domain

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The mean square of the errors on the tensor grid of the axes (x, [y,] t)."""
        bases, errors = self._errors
        for i, (basis, axis) in enumerate(zip(bases, axes, strict=True), 1):
            errors = multiply(errors, basis.at(axis, 0), i)
        return np.mean(errors**2, axis=0)

    @cached_property
    def _errors(self) -> tuple[tuple[Basis, ...], Float[np.ndarray, "..."]]:
        """Series of the errors; drawn when first asked for, the same for the same seed."""
        rng = np.random.default_rng(self.seed)
        bases = _bases(self.posterior)
        nodes = [basis.nodes for basis in bases]
        return bases, np.stack(
            [transform(self.posterior.error(nodes, rng), bases) for _ in range(self.count)]
        )


def drawn(posterior: Process, field: Field, count: int, rng: np.random.Generator) -> tuple[DrawnField, ...]:
    """`count` fields the samples allow, around the frozen posterior mean `field`."""
    bases = _bases(posterior)
    nodes = [basis.nodes for basis in bases]
    return tuple(
        DrawnField(field, bases, transform(posterior.error(nodes, rng), bases)) for _ in range(count)
    )


def _bases(posterior: Process) -> tuple[Basis, ...]:
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
