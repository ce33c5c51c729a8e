"""FrozenField -> WeakSystem: one row per patch, one column per term (Section 3, "Weak systems"; B.1).

    b_l = -<u, d_t psi_l>,     A_lj = scale_j (-1)^|alpha_j| <q_j(u), D^alpha_j psi_l>.

The equations of several components share their columns: `assemble_all` returns one system for each left-hand
side, which may be u_tt as well; q may hold other components, inputs, coordinates and derivatives of fields.

The nodes of all patches form one tensor grid, so a column is one small contraction per axis. How far a field
error can move an entry is bounded by Cauchy-Schwarz (Supplement B.1),

    |b_l(v) - b_l(u)|   <=     ||v - u||_l ||d_t psi||,
    |A_lj(v) - A_lj(u)| <= L_j ||v - u||_l ||D^alpha_j psi||,

with L_j = scale_j max |q_j'| on the range of u and v. Norms and ranges are taken on the quadrature nodes,
where the inequalities hold for the assembled numbers themselves, not only for the integrals they approximate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float

from fts.domain import grid_points
from fts.equations.algebra import derivative, state
from fts.equations.expressions import Expression
from fts.equations.terms import Alpha, Library, Term
from fts.fields.frozen import Field
from fts.fields.system import Fields, check_known, values_on_grid
from fts.params.types import WeakParams
from fts.weak.test_functions import Phase, check_geometry, patch_centers, patch_nodes, quadrature, weights

# The left-hand side of a scalar equation, and of the paper's.
U_T = Term((), 1.0, state(), time=1)
# One block of patches at a time: at most so many nodes (16 MB per array of values), on at most so many
# spatial nodes (a factorized field also holds R + 1 features at each), unless a single patch has more.
BLOCK_NODES = 1 << 21
BLOCK_SPATIAL_NODES = 1 << 17
# Values of a block integrated over time at once, so that u and q(u) stay in the second-level cache.
CACHE_NODES = 1 << 14

# By the orders of differentiation of the axes contracted already: those of the next axis with their weights,
_Stage = dict[tuple[int, ...], tuple[list[int], np.ndarray]]
_Parts = dict[tuple[int, ...], np.ndarray]  # and what is contracted.


@dataclass(frozen=True)
class WeakSystem:
    """A xi ~ b, one row per patch; integrals carry their physical quadrature weights."""

    A: Float[np.ndarray, "m J"]
    b: Float[np.ndarray, " m"]
    library: Library
    centers: Float[np.ndarray, "m d1"]  # patch centers (x, [y, [z,]] t)
    phase: Phase
    target: Term = U_T  # the left-hand side, b

    def __post_init__(self) -> None:
        if self.A.shape != (len(self.b), len(self.library)) or self.centers.shape[0] != len(self.b):
            raise ValueError(
                f"A {self.A.shape}, b {self.b.shape} and centers {self.centers.shape} must agree on "
                f"the patches and with the {len(self.library)} terms of the library"
            )

    def __len__(self) -> int:
        return len(self.b)


def assemble(
    field: Fields, library: Library, params: WeakParams, phase: Phase, target: Term = U_T
) -> WeakSystem:
    """The weak system of `library` on the patch grid shifted by `phase` spacings per axis."""
    return assemble_all(field, library, params, phase, (target,))[0]


def assemble_all(
    field: Fields,
    library: Library,
    params: WeakParams,
    phase: Phase,
    targets: Sequence[Term],
) -> tuple[WeakSystem, ...]:
    """The weak systems of several equations with the same terms, their columns integrated once."""
    terms, first = (*targets, *library), len(targets)
    check_known(field, frozenset().union(*(term.states for term in terms)), {term.unknown for term in terms})
    check_geometry(field.domain, Library(tuple(dict.fromkeys(terms))), params)
    centers = patch_centers(field.domain, params, phase)
    plans = _plans(terms, params)
    symbols = frozenset().union(*(plan.q.symbols for plan in plans))
    m = tuple(len(axis) for axis in centers)
    columns = np.empty((*m, len(terms)))
    for block in _blocks(m, params.nodes):
        nodes = patch_nodes([axis[part] for axis, part in zip(centers, block, strict=True)], params)
        shape = tuple(len(axis) for axis in nodes)
        columns[block] = _integrate(values_on_grid(field, symbols, nodes), shape, plans, params)
    columns = columns.reshape(-1, len(terms))
    if not np.isfinite(columns).all():
        bad = [str(terms[j]) for j in np.flatnonzero(~np.isfinite(columns).all(axis=0))]
        raise ValueError(f"columns {bad} are not finite, for the field is not finite on all patches")
    grid, A = grid_points(tuple(centers)), np.ascontiguousarray(columns[:, first:])
    return tuple(
        WeakSystem(A, columns[:, k].copy(), library, grid, phase, target) for k, target in enumerate(targets)
    )


def add_terms(system: WeakSystem, field: Fields, library: Library, params: WeakParams) -> WeakSystem:
    """The system of a larger library on the same patches; columns it has already are kept."""
    new = missing_terms(library, system.library)
    added = assemble(field, new, params, system.phase, system.target)
    columns = dict(zip((*system.library, *new), (*system.A.T, *added.A.T), strict=True))
    return replace(system, A=np.column_stack([columns[term] for term in library]), library=library)


class LastValues:
    """A field that keeps its values on the last nodes: another field built on it need not evaluate them."""

    def __init__(self, field: Field) -> None:
        self.field, self.domain = field, field.domain
        self._axes, self._values = (), np.empty(0)

    def on_grid(self, *axes: np.ndarray, **derivative: Any) -> Float[np.ndarray, "..."]:
        """The field's values, not to be changed, or a derivative."""
        if derivative:
            return self.field.on_grid(*axes, **derivative)
        if len(axes) != len(self._axes) or not all(map(np.array_equal, axes, self._axes)):
            self._axes, self._values = axes, self.field.on_grid(*axes)
        return self._values


def missing_terms(library: Library, known: Library) -> Library:
    """Terms of `library` that are not in `known`."""
    return Library(tuple(term for term in library if term not in known))


@dataclass(frozen=True)
class _Column:
    """What column `index` of [b, A] gets: factor * <q, test function differentiated by `orders`>."""

    index: int
    factor: float
    orders: tuple[int, ...]  # spatial axes, then time


@dataclass(frozen=True)
class _Plan:
    """All columns of one q, and the 1D weights that contract q(u) to them, last axis first.

    Columns that agree on a tail of their `orders` share the work on it.
    """

    q: Expression
    columns: list[_Column]
    stages: list[_Stage]


def _plans(terms: Sequence[Term], params: WeakParams) -> list[_Plan]:
    """One plan per distinct q; b is a column like others, with the time derivative on the test function."""
    d = len(params.nodes) - 1
    columns: dict[Expression, list[_Column]] = {}
    for j, term in enumerate(terms):
        for alpha, q in term.weak_parts:
            factor, q = _unit(q)
            sign = -1.0 if sum(alpha) % 2 else 1.0
            columns.setdefault(q, []).append(_Column(j, sign * factor, _of_axes(alpha, d)))
    table = {
        (axis, order): weights(params.half_widths[axis], params.nodes[axis], params.power, order, params.rule)
        for axis in range(d + 1)
        for order in {column.orders[axis] for group in columns.values() for column in group}
    }
    return [_Plan(q, group, _stages(group, table, d)) for q, group in columns.items()]


def _unit(q: Expression) -> tuple[float, Expression]:
    """Coefficient and monomial, so that multiples of a function share their values; a sum stays as it is."""
    if len(q.monomials) != 1:
        return 1.0, q
    ((factors, coefficient),) = q.monomials
    return coefficient, Expression(((factors, 1.0),))


def _of_axes(alpha: Alpha, d: int) -> tuple[int, ...]:
    """Orders in x, y, z and t as those of d spatial axes and time."""
    return (*alpha[:d], alpha[3])


def _stages(columns: list[_Column], table: dict[tuple[int, int], np.ndarray], d: int) -> list[_Stage]:
    stages = []
    for axis in reversed(range(d + 1)):
        stage = {}
        for tail in sorted({column.orders[axis + 1 :] for column in columns}):
            orders = sorted({column.orders[axis] for column in columns if column.orders[axis + 1 :] == tail})
            stage[tail] = orders, np.stack([table[axis, order] for order in orders])
        stages.append(stage)
    return stages


def _blocks(patches: tuple[int, ...], nodes: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices of the patch grid within the bounds above.

    Space is split before time: a block evaluates the spatial features of its own nodes, and splitting time
    would evaluate them again for every piece.
    """
    sizes = list(patches)
    for axis in range(len(sizes)):
        while sizes[axis] > 1 and (
            prod(m * n for m, n in zip(sizes, nodes, strict=True)) > BLOCK_NODES
            or prod(m * n for m, n in zip(sizes[:-1], nodes[:-1], strict=True)) > BLOCK_SPATIAL_NODES
        ):
            sizes[axis] = (sizes[axis] + 1) // 2
    starts = [range(0, m, size) for m, size in zip(patches, sizes, strict=True)]
    for corner in product(*starts):
        yield tuple(slice(i, i + size) for i, size in zip(corner, sizes, strict=True))


def _integrate(
    values: Mapping[str, np.ndarray], shape: tuple[int, ...], plans: list[_Plan], params: WeakParams
) -> np.ndarray:
    """All columns [*patches, targets + J] on a block of patches, from all symbols on the block's nodes."""
    patches = tuple(size // n for size, n in zip(shape, params.nodes, strict=True))
    result = np.zeros((*patches, 1 + max(column.index for plan in plans for column in plan.columns)))
    varying = sorted((plan for plan in plans if plan.q.constant is None), key=lambda plan: plan.q.key)
    for plan, parts in zip(varying, _integrate_time(values, shape, varying, params), strict=True):
        _integrate_space(parts, plan, params, result)
    for plan in plans:
        if plan.q.constant is not None:  # the same integral of the test function on every patch
            for column in plan.columns:
                result[..., column.index] += column.factor * bump_integral(params)
    return result


def _integrate_time(
    values: Mapping[str, np.ndarray], shape: tuple[int, ...], plans: list[_Plan], params: WeakParams
) -> list[_Parts]:
    """For every plan, q contracted along time: one pass over all nodes, in pieces that fit the cache."""
    n, times, count = params.nodes[-1], shape[-1], prod(shape[:-1])
    rows = {name: _rows(array, shape) for name, array in values.items()}
    cells = times // n
    weighted = [list(zip(*plan.stages[0][()], strict=True)) for plan in plans]
    results = [{(order,): np.empty(count * cells) for order, _ in each} for each in weighted]
    step = max(1, CACHE_NODES // times)
    for first in range(0, count, step):
        piece = slice(first * cells, (first + step) * cells)
        near = {name: each if len(each) == 1 else each[first : first + step] for name, each in rows.items()}
        size = (min(step, count - first), times)
        functions = _functions(near, size, [plan.q for plan in plans])
        for each, result, value in zip(weighted, results, functions, strict=True):
            for order, w in each:
                np.dot(value.reshape(-1, n), w, out=result[(order,)][piece])
    return results


def _rows(values: np.ndarray, shape: tuple[int, ...]) -> Float[np.ndarray, "#nodes #times"]:
    """One row per spatial node; values of time alone stay one row, those of a coordinate one column."""
    if values.ndim and values.shape[-1] == 1 != shape[-1]:
        return np.broadcast_to(values, (*shape[:-1], 1)).reshape(-1, 1)
    return values.reshape(-1, shape[-1])


def _functions(
    values: Mapping[str, np.ndarray], shape: tuple[int, int], functions: list[Expression]
) -> Iterator[np.ndarray]:
    """The values of each q; in ascending order a power of u costs one multiplication by u."""
    u = values.get("u", np.empty(0))
    previous, degree = u, 1.0
    for q in functions:
        if q.degree == degree + 1.0:
            previous, degree = previous * u, degree + 1.0
        yield previous if q.degree == degree else np.broadcast_to(q(values), shape)


def _integrate_space(parts: _Parts, plan: _Plan, params: WeakParams, result: np.ndarray) -> None:
    """Contract the spatial axes, last first, and write the columns <q(u), D^orders psi> of one q."""
    behind = result.shape[-2]  # patches of the axes contracted so far
    for axis, stage in zip(reversed(range(result.ndim - 2)), plan.stages[1:], strict=True):
        grown = {}
        for tail, (orders, rows) in stage.items():
            contracted = rows @ parts[tail].reshape(-1, params.nodes[axis], behind)
            grown |= {(order, *tail): contracted[:, k] for k, order in enumerate(orders)}
        parts = grown
        behind *= result.shape[axis]
    for column in plan.columns:
        result[..., column.index] += column.factor * parts[column.orders].reshape(result.shape[:-1])


def bump_integral(params: WeakParams) -> float:
    """Quadrature of the test function over its patch."""
    axes = zip(params.half_widths, params.nodes, strict=True)
    return prod(float(weights(h, n, params.power, 0, params.rule).sum()) for h, n in axes)


# |q'| is taken on so many points of a patch's range, both ends included: exact where q' is monotone.
_RANGE_POINTS = 65


@dataclass(frozen=True)
class EntryBounds:
    """Bounds on the change of every entry between two fields, and the patchwise errors they come from."""

    A: Float[np.ndarray, "m J"]
    b: Float[np.ndarray, " m"]
    errors: Float[np.ndarray, " m"]  # ||v - u|| on each patch


def entry_bounds(
    field: Field, other: Field, library: Library, params: WeakParams, phase: Phase
) -> EntryBounds:
    """Bounds on |A(field) - A(other)| and |b(field) - b(other)|, patch by patch."""
    check_geometry(field.domain, library, params)
    nodes = patch_nodes(patch_centers(field.domain, params, phase), params)
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
