"""A field -> Selection by thresholded ridge at a fixed tolerance, on its derivatives or on weak systems.

The tolerance is compared with the coefficients of unit columns and the target as it is, which grow with the
square root of the number of rows and, on weak systems, with the size of the patches: it belongs to these.
Everything falling below it is an answer, too: an empty equation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from jaxtyping import Bool, Float

from fts.domain import Domain
from fts.equations.equation import strong
from fts.equations.terms import Library
from fts.fields.frozen import FrozenField
from fts.params.types import WeakParams
from fts.selection import sparse
from fts.selection.selection import Selection
from fts.weak.assembly import assemble
from fts.weak.test_functions import phases


@dataclass(frozen=True)
class STRidgeParams:
    """Thresholded ridge at a fixed tolerance: unit columns, the target as it is."""

    threshold: float  # on coefficients of unit columns: it belongs to a number of rows
    ridge: float  # while terms are dropped
    max_iterations: int
    refit_ridge: float  # of the coefficients reported


@dataclass(frozen=True)
class StrongRegressionParams:
    """Thresholded ridge on derivatives of a field on a grid."""

    grid: tuple[int, ...]  # points per axis, whose product is the number of rows
    margin: float  # fraction left out at either end of time and of axes that do not close
    stridge: STRidgeParams


@dataclass(frozen=True)
class WeakRegressionParams:
    """Thresholded ridge on one weak system of a field, its coefficients refit on another."""

    weak: WeakParams
    margin: float  # as above: patches keep clear of it
    stridge: STRidgeParams


def select_strong(field: FrozenField, library: Library, params: StrongRegressionParams) -> Selection:
    """The terms that survive on the field's derivatives on a grid, refit there by ridge."""
    A, b = strong_rows(field, library, params)
    xi = sparse.refit(A, b, survivors(A, b, params.stridge), params.stridge.refit_ridge)
    return Selection(library, xi, "strong STRidge", field=field)


def select_weak(
    field: FrozenField, library: Library, params: WeakRegressionParams, rng: np.random.Generator
) -> Selection:
    """The terms that survive on one weak system, refit by ridge on a second one with patches elsewhere."""
    inner = replace(field, domain=inner_domain(field.domain, params.margin))
    shifts = phases(rng, 2, field.domain.dimension)
    first, second = (assemble(inner, library, params.weak, phase) for phase in shifts)
    kept = survivors(first.A, first.b, params.stridge)
    xi = sparse.refit(second.A, second.b, kept, params.stridge.refit_ridge)
    return Selection(library, xi, "weak STRidge", field=field)


def survivors(
    A: Float[np.ndarray, "m J"], b: Float[np.ndarray, " m"], params: STRidgeParams
) -> Bool[np.ndarray, " J"]:
    """The terms left when no coefficient of a unit column is below the tolerance any more."""
    normal = sparse.normalize(A, b)
    return sparse.stlsq(normal, params.threshold, params.ridge, params.max_iterations) != 0


def strong_rows(
    field: FrozenField, library: Library, params: StrongRegressionParams
) -> tuple[Float[np.ndarray, "m J"], Float[np.ndarray, " m"]]:
    """Every term of the library and u_t on a grid, from the field's exact derivatives."""
    axes = inner_axes(field.domain, params.grid, params.margin)
    return _system(field, library, lambda a, k: field.on_grid(*axes, alpha=a, order=k).ravel())


def strong_system(
    field: FrozenField, library: Library, points: Float[np.ndarray, "n d1"]
) -> tuple[Float[np.ndarray, "n J"], Float[np.ndarray, " n"]]:
    """The same at scattered points (x, [y,] t): A_ij = Theta_j(u_hat) and b_i = d_t u_hat."""
    return _system(field, library, lambda alpha, order: field.derivative(points, alpha, order))


def inner_axes(domain: Domain, grid: tuple[int, ...], margin: float) -> list[Float[np.ndarray, " n"]]:
    """Equidistant points per axis, round the whole circle or from end to end of what the margin leaves."""
    if len(grid) != domain.dimension + 1 or min(grid) < 2:
        raise ValueError(
            f"a grid of {grid} points: give two or more for each of {domain.dimension} spatial axes and time"
        )
    inner = inner_domain(domain, margin)
    ends = zip((*inner.low, inner.t0), (*inner.high, inner.t1), grid, (*domain.periodic, False), strict=True)
    return [np.linspace(low, high, n, endpoint=not periodic) for low, high, n, periodic in ends]


def inner_domain(domain: Domain, margin: float) -> Domain:
    """The box without a margin at both ends of time and of every axis that does not close."""
    if not 0 <= margin < 0.5:
        raise ValueError(f"margin {margin}: leave out less than half of an axis at either end")
    closed = (*domain.periodic, False)
    *cuts, late = (0.0 if closes else margin * e for e, closes in zip(domain.extents, closed, strict=True))
    low = tuple(end + cut for end, cut in zip(domain.low, cuts, strict=True))
    high = tuple(end - cut for end, cut in zip(domain.high, cuts, strict=True))
    return Domain(low, high, domain.t0 + late, domain.t1 - late, domain.periodic)


def _system(
    field: FrozenField, library: Library, derivative: Callable[[tuple[int, ...], int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The terms and u_t from derivative(alpha, order in time), each taken once."""
    dimension = field.domain.dimension
    library.check_dimension(dimension)
    once = cache(lambda alpha: derivative(alpha, 0))
    A = np.column_stack([strong(term, lambda alpha: once(alpha[:dimension])) for term in library])
    return A, derivative((0,) * dimension, 1)
