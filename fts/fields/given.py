"""Fields that nobody fitted: values on a grid, or a function, with the interface weak systems read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline, make_interp_spline

from fts.domain import Domain


@dataclass(frozen=True)
class TabulatedField:
    """Values on a grid, read between its points by quintic splines, periodic where the axis is."""

    axes: tuple[np.ndarray, ...]  # spatial axes, then time
    u: Float[np.ndarray, "..."]
    domain: Domain

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The interpolant on the tensor grid of the axes (x, [y,] t)."""
        knots, values = self._splines
        periodic, lengths = (*self.domain.periodic, False), self.domain.extents
        for axis, where in enumerate(axes):
            start = self.axes[axis][0]
            if periodic[axis]:
                where = start + np.mod(where - start, lengths[axis])
            degree = len(knots[axis]) - values.shape[axis] - 1
            basis = BSpline.design_matrix(where, knots[axis], degree)
            moved = np.moveaxis(values, axis, 0)
            product = basis @ moved.reshape(len(moved), -1)
            values = np.moveaxis(product.reshape(len(where), *moved.shape[1:]), 0, axis)
        return values

    @cached_property
    def _splines(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Knots per axis and the tensor of B-spline coefficients, solved for once."""
        knots, values = [], self.u
        for axis, (where, length, periodic) in enumerate(
            zip(self.axes, self.domain.extents, (*self.domain.periodic, False), strict=True)
        ):
            moved = np.moveaxis(values, axis, 0)
            if periodic:
                where, moved = np.append(where, where[0] + length), np.concatenate([moved, moved[:1]])
            degree = 5 if len(where) > 5 else 3
            boundary = "periodic" if periodic else None
            spline = make_interp_spline(where, moved, k=degree, bc_type=boundary)
            knots.append(spline.t)
            values = np.moveaxis(spline.c, 0, axis)
        return knots, values


@dataclass(frozen=True)
class CallableField:
    """A plain function f(x, [y,] t) of broadcast arrays, seen as a field."""

    function: Callable[..., np.ndarray]
    domain: Domain

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The function's values on the tensor grid of the axes (x, [y,] t)."""
        values = self.function(*np.meshgrid(*axes, indexing="ij", sparse=True))
        return np.broadcast_to(values, tuple(axis.size for axis in axes))
