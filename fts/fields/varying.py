"""Functions of one coordinate as a few splines: the unknown coefficient of a term, and what was found of it.

    B_0, ..., B_{K-1} on [low, high], on a periodic axis closed;    c(z) = sum_k c_k B_k(z).

A term that is linear in c becomes K columns, one for each B_k in place of c. Integration by parts moves its
derivatives onto B_k psi, so the splines are smooth enough for terms of fourth order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline

from fts import validation

_DEGREE = 5
_GRID = 101  # points of a curve that is printed or drawn
_ROUNDING = 1e-9  # of the axis, by which a point may lie beyond its end

# (points, derivative order) -> values
OneCoordinate = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class SplineBasis:
    """K splines along one axis."""

    axis: str
    low: float
    high: float
    periodic: bool
    count: int

    def __call__(self, points: Float[np.ndarray, "*n"], order: int = 0) -> Float[np.ndarray, "*n K"]:
        """All splines at the points, or a derivative of them."""
        return self._spline(points, nu=order)

    @staticmethod
    def may_close(count: int) -> bool:
        """Whether so many splines are enough for a periodic axis."""
        return count > _DEGREE

    def single(self, k: int) -> OneCoordinate:
        """The k-th spline and its derivatives."""
        return lambda points, order: self(points, order)[..., k]

    @cached_property
    def _spline(self) -> BSpline:
        identity, degree = np.eye(self.count), min(_DEGREE, self.count - 1)
        if not self.periodic:
            inner, ends = np.linspace(self.low, self.high, self.count - degree + 1), np.ones(degree)
            return BSpline(np.concatenate([self.low * ends, inner, self.high * ends]), identity, degree)
        steps = np.arange(-_DEGREE, self.count + _DEGREE + 1)
        knots = self.low + (self.high - self.low) * steps / self.count
        wrapped = np.concatenate([identity, identity[:_DEGREE]])
        closed: Any = "periodic"  # SciPy's stubs know booleans only
        return BSpline(knots, wrapped, _DEGREE, extrapolate=closed)


@dataclass(frozen=True)
class Curve:
    """A coefficient found as a function of one coordinate, with the covariance of its splines' weights."""

    basis: SplineBasis
    weights: Float[np.ndarray, " K"]
    covariance: Float[np.ndarray, "K K"]

    @property
    def axis(self) -> str:
        """The coordinate's letter."""
        return self.basis.axis

    @property
    def points(self) -> Float[np.ndarray, " n"]:
        """A grid over the axis on which `values` and `errors` are given."""
        return np.linspace(self.basis.low, self.basis.high, _GRID)

    @property
    def values(self) -> Float[np.ndarray, " n"]:
        """The coefficient at `points`."""
        return self(self.points)

    @property
    def errors(self) -> Float[np.ndarray, " n"]:
        """Its standard error at `points`."""
        return self.error(self.points)

    def __call__(self, points: Any, order: int = 0) -> Float[np.ndarray, "..."]:
        """The coefficient, or a derivative of it, at points inside the axis."""
        validation.require_whole(order, "order", "give 0 for the coefficient, 1 for its slope")
        return np.asarray(self.basis(self._inside(points), min(order, _DEGREE + 1)) @ self.weights)

    def error(self, points: Any) -> Float[np.ndarray, "..."]:
        """The standard error of the coefficient at points inside the axis."""
        rows = self.basis(self._inside(points))
        square = np.einsum("...i,ij,...j->...", rows, self.covariance, rows)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def _inside(self, points: Any) -> Float[np.ndarray, "..."]:
        """The points; an error where they leave an open axis, on which nothing was measured beyond."""
        values, basis = validation.real_array("points", points), self.basis
        slack = _ROUNDING * (basis.high - basis.low)
        low, high = (-np.inf, np.inf) if basis.periodic else (basis.low - slack, basis.high + slack)
        outside = values[~(np.isfinite(values) & (low <= values) & (values <= high))]
        if outside.size:
            raise ValueError(
                f"points hold {basis.axis} = {outside[0]:g}: the coefficient is known from {basis.low:g} to "
                f"{basis.high:g}"
            )
        return values

    def as_dict(self) -> dict[str, Any]:
        """JSON form: the axis, and the curve with its errors."""
        numbers = {name: getattr(self, name).tolist() for name in ("points", "values", "errors")}
        return {"axis": self.axis} | numbers

    def __str__(self) -> str:
        low, high, error = self.values.min(), self.values.max(), np.median(self.errors)
        return f"{low:.3g} to {high:.3g} along {self.axis}, ± {error:.2g} at the median"
