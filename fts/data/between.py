"""Values on a grid -> values between its points: what a probe reads that is not where the grid is.

Along an axis that closes on itself by the trigonometric interpolant, to rounding for a field the grid
resolves; along others by splines of degree seven, whose error tests/test_data.py measures.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import make_interp_spline

_DEGREE = 7


def between(
    axes: Sequence[np.ndarray],
    periods: Sequence[float | None],
    u: Float[np.ndarray, "..."],
    x: Float[np.ndarray, "n d"],
    frame: Int[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """u(x_i) in frame_i; `u` is shaped (nx, [ny, [nz,]] nt), a period is None where an axis has ends."""
    interpolants = [_rows(axis, period) for axis, period in zip(axes, periods, strict=True)]
    values = np.empty(len(x))
    order = np.argsort(frame, kind="stable")
    # Frame by frame: rows for every sample at once would be as long as the samples times the grid.
    for here in np.split(order, np.flatnonzero(np.diff(frame[order])) + 1):
        first, *rest = (rows(points) for rows, points in zip(interpolants, x[here].T, strict=True))
        part = np.tensordot(first, u[..., frame[here[0]]], 1)
        for row in rest:
            part = np.einsum("nk,nk...->n...", row, part)
        values[here] = part
    return values


def _rows(axis: np.ndarray, period: float | None) -> Callable[[np.ndarray], np.ndarray]:
    """Points -> the weights of the grid's values at each of them."""
    if period is not None:
        return lambda points: _trigonometric(axis, period, points)
    return make_interp_spline(axis, np.eye(axis.size), min(_DEGREE, (axis.size - 2) | 1))


def _trigonometric(axis: np.ndarray, period: float, points: np.ndarray) -> np.ndarray:
    """Barycentric weights (-1)^j cot or csc of half the angle to grid point j, which add up to one."""
    # Sines and cosines of differences from those of the points: a hundredth as many to compute.
    at, of = np.pi / period * points[:, None], np.pi / period * axis
    sine = np.sin(at) * np.cos(of) - np.cos(at) * np.sin(of)
    hit = np.abs(sine) < 1e-14
    even = axis.size % 2 == 0
    factor = np.cos(at) * np.cos(of) + np.sin(at) * np.sin(of) if even else 1.0
    weights = np.where(np.arange(axis.size) % 2, -1.0, 1.0) * factor / np.where(hit, 1.0, sine)
    weights /= weights.sum(axis=1, keepdims=True)
    on_grid = hit.any(axis=1)
    weights[on_grid] = hit[on_grid]
    return weights
