"""Frozen field -> weak systems for any q(u) at all: integrals over patches as integrals over states.

q sees the state alone, so the column of D^k q(u) on patch l is

    (-1)^k <q(u), d_x^k psi_l> = sum_i w_i q(u_i) = integral of q(s) dmu_l(s),

with mu_l the occupation measure: the weights w_i of the patch's nodes at their states u_i. It is deposited
once on a fine grid of states, by the cubic Lagrange polynomials of the four nearest states; after that a
candidate costs its values on some thousand states and one small product, however many nodes there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline

from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.params.types import WeakParams
from fts.weak.test_functions import check_geometry, patch_centers, patch_nodes, weights

_DEGREE = 3  # of splines in u


@dataclass(frozen=True)
class PatchParams:
    """The weak systems of a run: a small one fits a candidate's scale, a large one judges it."""

    search_half_widths: tuple[float, float] = (0.105, 0.03)  # of the searches and of the validation
    refit_half_widths: tuple[float, float] = (0.14, 0.045)
    small: tuple[int, int] = (16, 8)  # patches of systems that fit or generate
    large: tuple[int, int] = (16, 12)  # patches of systems that validate
    quadrature: tuple[int, int] = (24, 16)  # nodes per patch
    smoothness: int = 8  # p of the test function
    states: int = 1024  # cells of the grid of state values that integrals are pushed onto

    @property
    def proposal(self) -> WeakParams:
        """A system that fits or generates during a search."""
        return WeakParams(self.search_half_widths, self.small, self.quadrature, self.smoothness)

    @property
    def judging(self) -> WeakParams:
        """A system that validates, in a search or at the end."""
        return replace(self.proposal, patches=self.large)

    @property
    def refit(self) -> WeakParams:
        """The independent system on which continuous parameters are fitted."""
        return replace(self.proposal, half_widths=self.refit_half_widths)


@dataclass(frozen=True)
class StateSystem:
    """u_t = D^k q(u) on patches: columns are `on_states[k] @ q(states)`, the left-hand side is b."""

    states: Float[np.ndarray, " s"]
    on_states: dict[int, Float[np.ndarray, "m s"]]  # by the order k of the derivative before q
    b: Float[np.ndarray, " m"]

    def column(self, q: Float[np.ndarray, " s"], order: int = 2) -> Float[np.ndarray, " m"]:
        """The weak column of D^order q(u), from the values of q on the states."""
        return self.on_states[order] @ q

    def risk(self, q: Float[np.ndarray, " s"], order: int = 2) -> float:
        """Normalized squared residual of u_t = D^order q(u)."""
        residual = self.column(q, order) - self.b
        return float(residual @ residual / (self.b @ self.b))

    def scale(self, q: Float[np.ndarray, " s"], order: int = 2) -> float:
        """The factor of q that least squares prefers; 0 where the column vanishes."""
        column = self.column(q, order)
        size = float(column @ column)
        return float(column @ self.b) / size if size > 0 else 0.0


def state_systems(
    field: Field,
    geometries: Sequence[tuple[WeakParams, np.ndarray]],
    states: int,
    orders: Sequence[int] = (2,),
) -> list[StateSystem]:
    """One system per geometry and phase, all on one grid of states that covers the field's values."""
    values = [_values(field, params, phase) for params, phase in geometries]
    low, high = min(u.min() for u in values), max(u.max() for u in values)
    if not (np.isfinite(low) and low < high):
        raise ValueError(
            f"the field lies in [{low:g}, {high:g}] on the patches: no function to be found on it"
        )
    grid = np.linspace(low, high, states)
    systems = []
    for (params, _), u in zip(geometries, values, strict=True):
        deposit = _Deposition(u, grid)
        b = -(u @ _weights(params, (0, 1)))
        systems.append(StateSystem(grid, {k: _columns(deposit, params, k) for k in orders}, b))
    return systems


def residual(
    field: Field,
    params: WeakParams,
    phase: Float[np.ndarray, " d1"],
    q: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]],
) -> Float[np.ndarray, " m"]:
    """The rows of D_xx q(u) - u_t on one field, by the quadrature itself: one field needs no states."""
    u = _values(field, params, phase)
    return q(u.ravel()).reshape(u.shape) @ _weights(params, (2, 0)) + u @ _weights(params, (0, 1))


def spline_basis(low: float, high: float, count: int) -> BSpline:
    """Clamped cubic B-splines on [low, high]; beyond, the end polynomials go on."""
    inner = np.linspace(low, high, count - _DEGREE + 1)
    knots = np.concatenate([[low] * _DEGREE, inner, [high] * _DEGREE])
    return BSpline(knots, np.eye(count), _DEGREE)


def _values(field: Field, params: WeakParams, phase: np.ndarray) -> np.ndarray:
    """u at the nodes, one row per patch."""
    check_geometry(field.domain, Library.parse(["u_xx"]), params)
    nodes = patch_nodes(patch_centers(field.domain, params, phase), params)
    (m, k), (n, r) = params.patches, params.nodes
    u = np.asarray(field.on_grid(*nodes), dtype=np.float64)
    return np.ascontiguousarray(u.reshape(m, n, k, r).transpose(0, 2, 1, 3)).reshape(m * k, n * r)


def _weights(params: WeakParams, orders: tuple[int, int]) -> np.ndarray:
    """Quadrature weights of the differentiated test function at the nodes of one patch."""
    axes = zip(params.half_widths, params.nodes, orders, strict=True)
    x, t = (weights(h, n, params.power, order, params.rule) for h, n, order in axes)
    return np.outer(x, t).ravel()


def _columns(deposit: "_Deposition", params: WeakParams, order: int) -> np.ndarray:
    """Occupation measures of all patches, one row each, for D^order."""
    measures = (-1.0) ** order * deposit(_weights(params, (order, 0)))
    if order:
        # A derivative sees q - q(middle state) as it sees q; the quadrature of a constant is not quite zero.
        measures[:, measures.shape[1] // 2] -= measures.sum(axis=1)
    return measures


class _Deposition:
    """Where each node's weight goes: four neighbouring states and the cubic Lagrange weights on them."""

    def __init__(self, u: np.ndarray, grid: np.ndarray) -> None:
        self.shape = (len(u), grid.size)
        position = (u - grid[0]) / (grid[1] - grid[0])
        first = np.clip(np.floor(position).astype(np.int64) - 1, 0, grid.size - 4)
        s = position - first  # in units of the grid, with the four states at 0, 1, 2, 3
        self.first = first + grid.size * np.arange(len(u))[:, None]
        a, b, c = s - 1, s - 2, s - 3
        self.shares = (-a * b * c / 6, s * b * c / 2, -s * a * c / 2, s * a * b / 6)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """The weights of every patch's nodes, summed on the grid of states."""
        size = self.shape[0] * self.shape[1]
        total = np.zeros(size)
        for k, share in enumerate(self.shares):
            total += np.bincount((self.first + k).ravel(), (share * weights).ravel(), minlength=size)
        return total.reshape(self.shape)
