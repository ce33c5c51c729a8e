"""How far a field error can move a weak system: the entrywise Cauchy-Schwarz bounds of Supplement B.1.

    |b_l(v) - b_l(u)|   <=     ||v - u||_l ||d_t psi||,
    |A_lj(v) - A_lj(u)| <= L_j ||v - u||_l ||D^alpha_j psi||,

with L_j = scale_j max |q_j'| on the range of u and v. Norms and ranges are taken on the quadrature nodes,
where the inequalities hold for the assembled numbers themselves, not only for the integrals they approximate.
"""

from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from jaxtyping import Float

from fts.equations.algebra import derivative
from fts.equations.expressions import Expression
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.params.types import WeakParams
from fts.weak.test_functions import axis_nodes, check_geometry, patch_centers, quadrature, weights

# |q'| is taken on so many points of a patch's range, both ends included: exact where q' is monotone.
_RANGE_POINTS = 65


@dataclass(frozen=True)
class EntryBounds:
    """Bounds on the change of every entry between two fields, and the patchwise errors they come from."""

    A: Float[np.ndarray, "m J"]
    b: Float[np.ndarray, " m"]
    errors: Float[np.ndarray, " m"]  # ||v - u|| on each patch


def entry_bounds(
    field: Field, other: Field, library: Library, params: WeakParams, phase: Float[np.ndarray, " d1"]
) -> EntryBounds:
    """Bounds on |A(field) - A(other)| and |b(field) - b(other)|, patch by patch."""
    check_geometry(field.domain, library, params)
    centers = patch_centers(field.domain, params, phase)
    nodes = [
        axis_nodes(axis, h, n, params.rule)
        for axis, h, n in zip(centers, params.half_widths, params.nodes, strict=True)
    ]
    u, v = (_by_patch(each.on_grid(*nodes), params) for each in (field, other))
    cells = reduce(np.multiply.outer, _cells(params)).ravel()
    errors = np.sqrt((u - v) ** 2 @ cells)
    low, high = np.minimum(u.min(axis=1), v.min(axis=1)), np.maximum(u.max(axis=1), v.max(axis=1))
    d = field.domain.dimension
    columns = [
        abs(term.scale) * _lipschitz(term.q, low, high) * errors * bump_norm(params, (*term.alpha[:d], 0))
        for term in library
    ]
    return EntryBounds(np.stack(columns, axis=1), errors * bump_norm(params, (0,) * d + (1,)), errors)


def bump_norm(params: WeakParams, orders: tuple[int, ...]) -> float:
    """||D^orders psi|| on a patch in the quadrature-weighted norm, orders over space and then time."""
    total = 1.0
    for h, n, cells, order in zip(params.half_widths, params.nodes, _cells(params), orders, strict=True):
        # A weight is the test function times a cell, so the squared norm is sum w^2 / cell.
        total *= float((weights(h, n, params.power, order, params.rule) ** 2 / cells).sum())
    return float(np.sqrt(total))


def _cells(params: WeakParams) -> list[np.ndarray]:
    """Quadrature weights of a plain integral over a patch, axis by axis."""
    axes = zip(params.half_widths, params.nodes, strict=True)
    return [h * quadrature(n, params.rule)[1] for h, n in axes]


def _by_patch(values: np.ndarray, params: WeakParams) -> Float[np.ndarray, "m nodes"]:
    """Values on the tensor grid, regrouped to one row per patch."""
    shape = [part for size, n in zip(values.shape, params.nodes, strict=True) for part in (size // n, n)]
    order = (*range(0, len(shape), 2), *range(1, len(shape), 2))
    return values.reshape(shape).transpose(order).reshape(-1, prod(params.nodes))


def _lipschitz(q: Expression, low: np.ndarray, high: np.ndarray) -> Float[np.ndarray, " m"]:
    """max |q'| on [low, high], patch by patch."""
    points = np.linspace(low, high, _RANGE_POINTS, axis=1)
    return np.abs(derivative(q)(points)).max(axis=1)
