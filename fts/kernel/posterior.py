"""What freezing, row weights, split samples and verdicts need of a posterior, however its samples lie.

Draws follow Matheron's rule: a function drawn from the prior is sampled where the data were, noise is added,
and the process is fitted to these samples. What the fit misses of that function has the distribution of what
the posterior mean misses of the truth.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial import KDTree

from fts.domain import Domain
from fts.fields.frozen import Field
from fts.fields.series import Basis, transform
from fts.kernel.covariance import Choice, multiply

# Errors behind a variance: a fifth off at a point, and less over a patch.
_COUNT = 48
# Functions per length scale and at least: resolves the kernel's spectrum to about a thousandth.
_PER_LENGTH, _FEWEST, _MOST = (3.0, 2.0, 1.5), 24, (256, 96, 48)


@dataclass(frozen=True, kw_only=True)
class Posterior(ABC):
    """A Gaussian process given samples; has the interface of a field, which is its mean."""

    recipe: ClassVar[str] = "kernel"

    domain: Domain
    choice: Choice
    mean: float
    scale: float  # deviation of the samples
    noise: float  # estimated standard deviation of the noise
    seconds: float = 0.0  # what choosing the kernels and conditioning took

    @abstractmethod
    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`, on the tensor grid of the axes."""

    @abstractmethod
    def draw_error(self, nodes: Sequence[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""

    @property
    def fast_on_grids(self) -> bool:
        """Whether values on a tensor grid take one small product per axis: such a mean needs no freezing."""
        return False

    @property
    def parameters(self) -> dict[str, Any]:
        """What else than kernels and nugget provenance names."""
        return {}

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean on the tensor grid of the axes (x, [y,] t)."""
        return self.mean + self.scale * self.standardized(*axes)

    def variance(self) -> "PosteriorVariance":
        """The posterior variance as a field: exact on a full grid, from draws elsewhere."""
        return DrawnVariance(self)

    def draw(self, field: Field, count: int, rng: np.random.Generator) -> tuple["DrawnField", ...]:
        """`count` fields the samples allow, around the frozen posterior mean `field`."""
        bases, errors = _draw_errors(self, count, rng)
        return tuple(DrawnField(field, bases, error) for error in errors)

    def split(
        self, count: int, smoothing: float, rng: np.random.Generator
    ) -> tuple[tuple["Posterior", "Posterior"], ...]:
        """`count` pairs of posteriors given disjoint halves of the samples, with independent noise.

        Kernels are those chosen on all samples, and the nugget is `smoothing` times theirs. Empty where
        halves are too few samples for a field, and where the solve cannot be split: on a grid with holes, and
        for travelling kernels.
        """
        return ()


@dataclass(frozen=True)
class PosteriorVariance(ABC):
    """The variance given the samples, with the interface of a field."""

    posterior: Posterior

    @property
    def domain(self) -> Domain:
        """The box the process lives on."""
        return self.posterior.domain

    @abstractmethod
    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The variance on the tensor grid of the axes (x, [y,] t)."""


@dataclass(frozen=True)
class DrawnVariance(PosteriorVariance):
    """The mean square of drawn errors; they are drawn when first needed, the same for the same seed."""

    count: int = _COUNT
    seed: int = 0

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The mean square of the errors on the tensor grid of the axes (x, [y,] t)."""
        bases, errors = self._errors
        return np.mean(_on_grid(bases, errors, axes) ** 2, axis=0)

    @cached_property
    def _errors(self) -> tuple[tuple[Basis, ...], Float[np.ndarray, "..."]]:
        return _draw_errors(self.posterior, self.count, np.random.default_rng(self.seed))


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

    def on_grid(
        self, *axes: np.ndarray, alpha: tuple[int, ...] = (), order: int = 0
    ) -> Float[np.ndarray, "..."]:
        """The field with its error, or a derivative, on the tensor grid of the axes (x, [y,] t)."""
        orders = (*(alpha or (0,) * self.domain.dimension), order)
        derivative: dict[str, Any] = {"alpha": alpha, "order": order} if any(orders) else {}
        return self.field.on_grid(*axes, **derivative) + _on_grid(self.bases, self.series, axes, orders)


def interleaved_halves(
    points: Float[np.ndarray, "n k"], count: int, rng: np.random.Generator
) -> Iterator[Bool[np.ndarray, " n"]]:
    """Ways of halving points so that each half covers what all do: of every two neighbours one each.

    The first way takes the first of every two, the others draw lots.
    """
    n = len(points)
    # Scattered points have no order: the leaves of a tree put neighbours beside each other.
    order = np.arange(n) if points.shape[1] == 1 else KDTree(points, leafsize=2).indices
    for number in range(count):
        flips = rng.integers(0, 2, (n + 1) // 2) if number else np.zeros((n + 1) // 2, dtype=int)
        first = np.empty(n, dtype=bool)
        first[order] = np.arange(n) % 2 == np.repeat(flips, 2)[:n]
        yield first


def nugget_of_halves(nugget: float, smoothing: float, samples: int) -> float:
    """A smaller nugget: the smoothing error is shared by both halves, and cross products do not remove it.

    Never below rounding, unless the search itself went there.
    """
    rounding = float(np.finfo(float).eps) * samples
    return min(nugget, max(smoothing * nugget, rounding))


def _draw_errors(
    posterior: Posterior, count: int, rng: np.random.Generator
) -> tuple[tuple[Basis, ...], Float[np.ndarray, "..."]]:
    """Bases that resolve the kernels, and the series of `count` errors."""
    domain, d = posterior.domain, posterior.domain.dimension - 1
    lengths = [length for kernel in posterior.choice.kernels for length in kernel.lengths]
    bases = []
    for (low, high, closed), length in zip(domain.axes, lengths, strict=True):
        size = int(np.clip(_PER_LENGTH[d] * (high - low) / length, _FEWEST, _MOST[d]))
        bases.append(Basis(low, high, closed, size + (closed and size % 2 == 0)))
    nodes = [basis.nodes for basis in bases]
    errors = [transform(posterior.draw_error(nodes, rng), bases) for _ in range(count)]
    return tuple(bases), np.stack(errors)


def _on_grid(
    bases: Sequence[Basis], series: np.ndarray, axes: Sequence[np.ndarray], orders: Sequence[int] = ()
) -> np.ndarray:
    """Values of series on the tensor grid of the axes; leading axes of several series are carried along."""
    each = zip(bases, axes, orders or (0,) * len(bases), strict=True)
    for i, (basis, axis, order) in enumerate(each, series.ndim - len(bases)):
        series = multiply(series, basis.at(axis, order), i)
    return series
