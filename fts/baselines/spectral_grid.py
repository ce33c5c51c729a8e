"""The spectral ridge fit on a sensor x frame grid, by one singular value decomposition per factor.

A is a Kronecker product of one matrix in space and one in time; where the sensors fill a grid themselves, the
matrix in space is one, too. With A = U S V^T and f = S^2 / (S^2 + n penalty), the coefficients are
V (f / S) U^T y and the fitted values U f U^T y. For all samples y_i of one sensor left out, the residual is
(I - H_ii)^-1 times that of the fit with them; the functions of time diagonalize H_ii, so nothing is refitted.
For frames left out, space and time change places.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.baselines.fourier import Bases, Tried, functions, inner_places, inner_times
from fts.observations import Observations, SensorGrid
from fts.params.types import SpectralParams


@dataclass(frozen=True)
class _Factor:
    """Thin singular value decomposition of a matrix of functions, or of a Kronecker product of such."""

    U: Float[np.ndarray, "n r"]
    s: Float[np.ndarray, " r"]
    V: Float[np.ndarray, "K r"]


def solve(observations: Observations, bases: Bases, penalty: float) -> Float[np.ndarray, "K Kt"]:
    """Coefficients of the products of functions of space (rows) and of time (columns)."""
    grid = _grid(observations)
    space, temporal = _space(grid, bases[:-1]), _time(grid, bases[-1:])
    s = np.multiply.outer(space.s, temporal.s)
    projected = space.U.T @ (grid.values - observations.y.mean()) @ temporal.U
    return space.V @ (projected * s / (s**2 + len(observations) * penalty)) @ temporal.V.T


def left_out_errors(
    observations: Observations, tried: Tried, params: SpectralParams
) -> dict[tuple[int, int], float]:
    """Mean square error of sensors left out one by one, plus that of frames left out, by series tried."""
    grid = _grid(observations)
    y = grid.values - observations.y.mean()
    places = inner_places(observations.domain, grid.sensors, params.ends)
    times = inner_times(observations.domain, grid.frames, params.ends)
    # Many series share their functions of space or of time: each of these is decomposed once.
    space = {each: _space(grid, each) for each in {bases[:-1] for bases in tried.values()}}
    temporal = {each: _time(grid, each) for each in {bases[-1:] for bases in tried.values()}}
    errors = {}
    for waves, bases in tried.items():
        left, right = space[bases[:-1]], temporal[bases[-1:]]
        by_sensor = _left_out(y, left, right, params.penalty)[places]
        by_frame = _left_out(y.T, right, left, params.penalty)[times]
        errors[waves] = float(by_sensor.mean() + by_frame.mean())
    return errors


def _left_out(
    y: Float[np.ndarray, "n m"], rows: _Factor, columns: _Factor, penalty: float
) -> Float[np.ndarray, " n"]:
    """Mean square error of every row of y, predicted from all the others."""
    s = np.multiply.outer(rows.s, columns.s) ** 2
    shrunk = s / (s + y.size * penalty)
    inner = y @ columns.U
    # H_ii has the eigenvectors columns.U and these eigenvalues, all below one.
    leverage = rows.U**2 @ shrunk
    residual = inner - rows.U @ (shrunk * (rows.U.T @ inner))
    outside = np.einsum("nm,nm->n", y, y) - np.einsum("nr,nr->n", inner, inner)
    inside = np.square(residual / (1 - leverage)).sum(axis=1)
    return (np.maximum(outside, 0.0) + inside) / y.shape[1]


def _grid(observations: Observations) -> SensorGrid:
    if observations.grid is None:
        raise ValueError("the samples are scattered: fit them with spectral_scattered")
    return observations.grid


def _space(grid: SensorGrid, bases: Bases) -> _Factor:
    """The functions of space at the sensors; axis by axis where these fill a grid, which is much cheaper."""
    if grid.axes is None:
        return _decompose(functions(bases, grid.sensors))
    product = _Factor(np.ones((1, 1)), np.ones(1), np.ones((1, 1)))
    for basis, axis in zip(bases, grid.axes, strict=True):
        factor = _decompose(functions((basis,), axis[:, None]))
        product = _Factor(
            np.kron(product.U, factor.U), np.kron(product.s, factor.s), np.kron(product.V, factor.V)
        )
    return product


def _time(grid: SensorGrid, bases: Bases) -> _Factor:
    return _decompose(functions(bases, grid.frames[:, None]))


def _decompose(matrix: np.ndarray) -> _Factor:
    U, s, Vt = np.linalg.svd(matrix, full_matrices=False)
    return _Factor(U, s, Vt.T)
