"""Random smooth test functions and a field on one grid -> the weak system, differentiable in the field.

The weak form of Weak-PDE-LEARN. A test function is a product of bumps exp(k - k / (1 - s^2)), s = (x - c)/r,
one per axis. All share one quadrature grid over the whole box: the field is evaluated there once, and every
integral <D^alpha q(u), psi> = (-1)^|alpha| <q(u), D^alpha psi> is a contraction axis by axis.
"""

from dataclasses import dataclass
from math import comb, factorial
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fts.domain import Domain
from fts.equations.expressions import STATE
from fts.equations.terms import Library, Term

# One radius for all axes, in shortest sides of the box, or one per axis, in its own side.
Radius = Literal["shortest", "per axis"]


@dataclass(frozen=True)
class Bumps:
    """Test functions by center and radius along (x, [y,] t)."""

    centers: Float[np.ndarray, "m d1"]
    radii: Float[np.ndarray, "m d1"]

    def __len__(self) -> int:
        return len(self.centers)

    def __getitem__(self, rows: np.ndarray) -> "Bumps":
        return Bumps(self.centers[rows], self.radii[rows])

    def __add__(self, other: "Bumps") -> "Bumps":
        pairs = ((self.centers, other.centers), (self.radii, other.radii))
        return Bumps(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class Column:
    """One term without its scale: the sign and orders of the test function's derivative, q as u^n: c."""

    alpha: tuple[int, ...]
    sign: float
    powers: tuple[tuple[int, float], ...]


def draw_bumps(
    domain: Domain,
    count: int,
    radius: Radius,
    fractions: tuple[float, float],
    margin: float,
    rng: np.random.Generator,
) -> Bumps:
    """Test functions with supports uniform in the box, `margin` and more away from its faces."""
    sides = np.array(domain.extents)
    low = np.array((*domain.low, domain.t0))
    reach = np.full_like(sides, sides.min()) if radius == "shortest" else sides
    radii = rng.uniform(*fractions, (count, 1)) * reach
    free = sides - 2 * (radii + margin)
    return Bumps(low + radii + margin + free * rng.random((count, sides.size)), radii)


def bump_derivatives(s: Float[np.ndarray, "..."], steepness: float, order: int) -> Float[np.ndarray, "k ..."]:
    """g, g', ... of g(s) = exp(k - k / (1 - s^2)), zero where |s| >= 1.

    With g = exp(h), g^(n+1) = sum_j C(n, j) h^(j+1) g^(n-j), and h is a sum of two simple fractions.
    """
    inside = np.abs(s) < 1
    s = np.where(inside, s, 0.0)
    slopes = [
        -0.5 * steepness * factorial(n) * ((1 - s) ** -(n + 1.0) + (-1.0) ** n * (1 + s) ** -(n + 1.0))
        for n in range(order + 1)
    ]
    g = [np.where(inside, np.exp(steepness + slopes[0]), 0.0)]
    for n in range(order):
        g.append(sum(comb(n, j) * slopes[j + 1] * g[n - j] for j in range(n + 1)) + np.zeros_like(s))
    return np.stack(g)


def quadrature_axes(domain: Domain, nodes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Equispaced nodes over the box, ends included, along (x, [y,] t)."""
    ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), nodes, strict=True)
    return tuple(np.linspace(low, high, n) for low, high, n in ends)


def factors(
    bumps: Bumps, axes: tuple[np.ndarray, ...], orders: tuple[int, ...], steepness: float
) -> list[Tensor]:
    """Per axis the test functions' derivatives times the node spacing, (order + 1, nodes, m).

    Bumps vanish with all derivatives at the ends of their supports: equal weights are the trapezoidal rule.
    """
    found = []
    for axis, nodes, order in zip(range(len(axes)), axes, orders, strict=True):
        center, radius = bumps.centers[:, axis], bumps.radii[:, axis]
        g = bump_derivatives((nodes[:, None] - center) / radius, steepness, order)
        scale = radius ** -np.arange(order + 1.0)[:, None, None]
        found.append(torch.from_numpy((g * scale * (nodes[1] - nodes[0])).astype(np.float32)))
    return found


def highest_orders(library: Library, dimension: int) -> tuple[int, ...]:
    """Highest derivative of the test functions along (x, [y,] t)."""
    return (*(max(term.alpha[axis] for term in library) for axis in range(dimension)), 1)


def plan(library: Library, dimension: int) -> tuple[Column, ...]:
    """How every column is integrated; refuses functions of u that are no polynomials."""
    library.check_dimension(dimension)
    return tuple(Column(term.alpha[:dimension], (-1.0) ** term.order, _powers(term)) for term in library)


def weak_system(u: Tensor, parts: list[Tensor], columns: tuple[Column, ...]) -> tuple[Tensor, Tensor]:
    """A (m, J), the terms without their scales, and b (m,), the time derivative, from u on the nodes."""
    b = -_contract(u @ parts[-1][1], parts, (0,) * (u.dim() - 1))
    needed = sorted({n for column in columns for n, _ in column.powers})
    over_time = {n: _power(u, n) @ parts[-1][0] for n in needed}
    values = []
    for column in columns:
        inner = [c * over_time[n] for n, c in column.powers]
        values.append(column.sign * _contract(sum(inner[1:], inner[0]), parts, column.alpha))
    return torch.stack(values, dim=1), b


def _powers(term: Term) -> tuple[tuple[int, float], ...]:
    found = []
    for product, coefficient in term.q.monomials:
        if any(factor != STATE or e < 0 or not float(e).is_integer() for factor, e in product):
            raise ValueError(
                f"{term} is no polynomial in u: this method takes powers u^n, replace or drop it"
            )
        found.append((int(sum(e for _, e in product)), float(coefficient)))
    return tuple(found)


def _power(u: Tensor, n: int) -> Tensor:
    return torch.ones_like(u) if n == 0 else u if n == 1 else u * _power(u, n - 1)


def _contract(inner: Tensor, parts: list[Tensor], alpha: tuple[int, ...]) -> Tensor:
    """Sum over the nodes of the spatial axes, last first, against the derivatives of order alpha."""
    for axis in reversed(range(len(alpha))):
        inner = (inner * parts[axis][alpha[axis]]).sum(dim=-2)
    return inner
