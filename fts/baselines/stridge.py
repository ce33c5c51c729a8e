"""A field -> Selection by thresholded ridge at a fixed tolerance, on its derivatives or on weak systems.

The tolerance is compared with the coefficients of unit columns and the target as it is, which grow with the
square root of the number of rows and, on weak systems, with the size of the patches: it belongs to these.
Everything falling below it is an answer, too: an empty equation.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from fts.domain import Domain
from fts.equations.equation import strong
from fts.equations.terms import Library
from fts.fields.frozen import FrozenField
from fts.params.types import STRidgeParams, StrongRegressionParams, WeakRegressionParams
from fts.selection import sparse
from fts.selection.selection import Selection
from fts.weak.assembly import assemble
from fts.weak.test_functions import phases


def select_strong(field: FrozenField, library: Library, params: StrongRegressionParams) -> Selection:
    """The terms that survive on the field's derivatives on a grid, refit there by ridge."""
    A, b = strong_rows(field, library, params)
    kept = survivors(A, b, params.stridge)
    xi = sparse.refit(A, b, kept, params.stridge.refit_ridge)
    return Selection(library, xi, "strong STRidge", field=field)


def select_weak(
    field: FrozenField, library: Library, params: WeakRegressionParams, rng: np.random.Generator
) -> Selection:
    """The terms that survive on one weak system, refit by ridge on a second one with patches elsewhere."""
    inner = replace(field, domain=inner_domain(field.domain, params.margin))
    first, second = (
        assemble(inner, library, params.weak, phase) for phase in phases(rng, 2, field.domain.dimension)
    )
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
    domain = field.domain
    library.check_dimension(domain.dimension)
    axes = inner_axes(domain, params.grid, params.margin)
    known: dict[tuple[int, ...], np.ndarray] = {}

    def partial(alpha: tuple[int, int, int]) -> np.ndarray:
        index = alpha[: domain.dimension]
        if index not in known:
            known[index] = field.on_grid(*axes, alpha=index).ravel()
        return known[index]

    A = np.column_stack([strong(term, partial) for term in library])
    return A, field.on_grid(*axes, order=1).ravel()


def inner_axes(domain: Domain, grid: tuple[int, ...], margin: float) -> list[Float[np.ndarray, " n"]]:
    """Equidistant points per axis, round the whole circle or from end to end of what the margin leaves."""
    if len(grid) != domain.dimension + 1 or min(grid) < 2:
        raise ValueError(
            f"a grid of {grid} points: give two or more for each of {domain.dimension} spatial axes and time"
        )
    inner = inner_domain(domain, margin)
    axes = []
    for low, high, n, periodic in zip(
        (*inner.low, inner.t0), (*inner.high, inner.t1), grid, (*domain.periodic, False), strict=True
    ):
        axes.append(np.linspace(low, high, n, endpoint=not periodic))
    return axes


def inner_domain(domain: Domain, margin: float) -> Domain:
    """The box without a margin at both ends of time and of every axis that does not close."""
    if not 0 <= margin < 0.5:
        raise ValueError(f"margin {margin}: leave out less than half of an axis at either end")
    *cuts, late = (
        0.0 if periodic else margin * extent
        for extent, periodic in zip(domain.extents, (*domain.periodic, False), strict=True)
    )
    low = tuple(end + cut for end, cut in zip(domain.low, cuts, strict=True))
    high = tuple(end - cut for end, cut in zip(domain.high, cuts, strict=True))
    return Domain(low, high, domain.t0 + late, domain.t1 - late, domain.periodic)
