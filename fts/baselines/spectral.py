"""Observations -> FrozenField: Fourier series fitted by ridge, which PDE-FIND and WSINDy read.

    minimize (1/n) ||A c - y||^2 + penalty ||c||^2,

with A the products of 1, sqrt 2 cos, sqrt 2 sin along the axes and y without its mean. On an axis that does
not close, the period is longer than the axis, so that the series need not repeat within it. How many waves
there are, one number for all of space and one for time, the samples decide alone, by leave-one-out: those
that predict best what was measured at one place, when that is left out, and what was measured at one time.

Neither solver refits anything. With H the matrix that maps y to the fitted values, the residual of the
samples i left out together is (I - H_ii)^-1 times theirs in the fit with them.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import cho_solve, cholesky, solve_triangular

from fts.domain import Domain
from fts.fields.frozen import FrozenField, provenance_of
from fts.fields.series import Basis, SeriesCoefficients, SeriesFeatures
from fts.observations import Observations, SensorGrid

# Rows of A held at once: some 40 MB with the most unknowns that the parameters usually allow.
_ROWS = 2048


@dataclass(frozen=True)
class SpectralParams:
    """The reconstruction PDE-FIND and WSINDy share: Fourier series by ridge, their length by the samples."""

    penalty: float = 1e-3  # ridge, beside the mean square of the misfit, on functions of unit mean square
    continuation: float = 1.25  # period of a series on an axis that does not close, in its extents
    # Numbers of waves tried on the spatial axes, and those tried in time.
    modes: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96)
    ends: float = 0.05  # fraction of such an axis at either end where samples left out are not scored
    unknowns: int = 2500  # most coefficients of a system that has to be solved densely


# The paper names the ridge; which of the numbers of waves is taken, the samples of each run decide.
SPECTRAL = SpectralParams()

# One basis per spatial axis, then one for time.
Bases = tuple[Basis, ...]
# Series by their numbers of waves in space and in time.
Series = Mapping[tuple[int, int], Bases]


@dataclass(frozen=True)
class SpectralFit:
    """The field, its waves in space and time, and the leave-one-out errors of all that were tried."""

    field: FrozenField
    waves: tuple[int, int]
    errors: dict[tuple[int, int], float]


def reconstruct(observations: Observations, params: SpectralParams) -> FrozenField:
    """The ridge fit with the numbers of waves that predict samples left out best."""
    return compare(observations, params).field


def compare(observations: Observations, params: SpectralParams) -> SpectralFit:
    """Every number of waves by its error on samples left out; where two tie, the fewer waves win."""
    began = time.process_time()
    scattered = observations.grid is None
    series = {waves: bases(observations.domain, waves, params) for waves in candidates(observations, params)}
    errors = (scattered_leave_one_out if scattered else grid_leave_one_out)(observations, series, params)
    waves = min(errors, key=lambda each: (errors[each], each))
    solve = solve_scattered if scattered else solve_grid
    coefficients = solve(observations, series[waves], params.penalty)
    space, temporal = _halves(series[waves], coefficients, float(observations.y.mean()))
    chosen = {"waves": list(waves), "left_out_error": errors[waves], "penalty": params.penalty}
    seconds = time.process_time() - began
    made = provenance_of(observations, "spectral", chosen, seconds=seconds, device="cpu")
    return SpectralFit(FrozenField(space, temporal, observations.domain, made), waves, errors)


def candidates(observations: Observations, params: SpectralParams) -> list[tuple[int, int]]:
    """Waves in space and time with no more functions along an axis, or in all of space, than sensors.

    A matrix of functions of space is decomposed as a whole, and scattered samples are fitted by one dense
    system of space and time: neither may have more unknowns than the parameters allow.
    """
    d = observations.domain.dimension
    positions = len(np.unique(observations.x, axis=0))
    along = min(len(np.unique(column)) for column in observations.x.T)
    frames = len(np.unique(observations.t))
    most = min(params.unknowns, len(observations))
    kept = []
    for waves in product(params.modes, repeat=2):
        space, temporal = 2 * waves[0] + 1, 2 * waves[1] + 1
        together = space**d * (temporal if observations.grid is None else 1)
        if space <= along and space**d <= positions and temporal <= frames and together <= most:
            kept.append(waves)
    if not kept:
        raise ValueError(
            f"{len(observations)} samples at {positions} positions and {frames} times carry no series of "
            f"{min(params.modes)} or more waves with at most {params.unknowns} unknowns: add samples, try "
            "fewer waves, or measure at the same places every time"
        )
    return kept


def bases(domain: Domain, waves: tuple[int, int], params: SpectralParams) -> Bases:
    """So many waves along every spatial axis and in time, continued beyond the axes that do not close."""
    low, periodic = (*domain.low, domain.t0), (*domain.periodic, False)
    counts = (*(waves[0] for _ in domain.low), waves[1])
    factors = (1.0 if closes else params.continuation for closes in periodic)
    axes = zip(low, domain.extents, factors, counts, strict=True)
    return tuple(Basis(start, start + c * extent, True, 2 * n + 1) for start, extent, c, n in axes)


def functions(bases: Bases, points: Float[np.ndarray, "n axes"]) -> Float[np.ndarray, "n K"]:
    """Products of the functions of unit mean square at scattered points, the last axis varying fastest."""
    rows = np.ones((len(points), 1))
    for basis, column in zip(bases, points.T, strict=True):
        values = basis.at(column, 0) * _scale(basis)
        rows = (rows[:, :, None] * values[:, None, :]).reshape(len(points), -1)
    return rows


def inner_points(domain: Domain, x: Float[np.ndarray, "n d"], ends: float) -> Bool[np.ndarray, " n"]:
    """Places not at the very ends of an axis that does not close: nobody predicts beyond the data."""
    inside = np.ones(len(x), dtype=bool)
    for column, low, high, periodic in zip(x.T, domain.low, domain.high, domain.periodic, strict=True):
        if not periodic:
            inside &= _inner(column, low, high, ends)
    return inside


def inner_times(domain: Domain, t: Float[np.ndarray, " n"], ends: float) -> Bool[np.ndarray, " n"]:
    """Times that are not at the very ends of the record."""
    return _inner(t, domain.t0, domain.t1, ends)


@dataclass(frozen=True)
class _Factor:
    """Thin singular value decomposition of a matrix of functions, or of a Kronecker product of such."""

    U: Float[np.ndarray, "n r"]
    s: Float[np.ndarray, " r"]
    V: Float[np.ndarray, "K r"]


def solve_grid(observations: Observations, bases: Bases, penalty: float) -> Float[np.ndarray, "K Kt"]:
    """Coefficients of the products of functions of space (rows) and of time (columns), samples on a grid.

    A is a Kronecker product of one matrix in space and one in time; where the sensors fill a grid themselves,
    the matrix in space is one, too. With A = U S V^T they are V (f / S) U^T y, f = S^2 / (S^2 + n penalty).
    """
    grid = _grid(observations)
    space, temporal = _space(grid, bases[:-1]), _decompose(functions(bases[-1:], grid.frames[:, None]))
    s = np.multiply.outer(space.s, temporal.s)
    projected = space.U.T @ (grid.values - observations.y.mean()) @ temporal.U
    return space.V @ (projected * s / (s**2 + len(observations) * penalty)) @ temporal.V.T


def grid_leave_one_out(
    observations: Observations, series: Series, params: SpectralParams
) -> dict[tuple[int, int], float]:
    """Mean square error of sensors left out one by one, plus that of frames left out, by series."""
    grid = _grid(observations)
    y = grid.values - observations.y.mean()
    sensors = inner_points(observations.domain, grid.sensors, params.ends)
    times = inner_times(observations.domain, grid.frames, params.ends)
    # Many series share their functions of space or of time: each of these is decomposed once.
    space = {each: _space(grid, each) for each in {bases[:-1] for bases in series.values()}}
    halves, frames = {bases[-1:] for bases in series.values()}, grid.frames[:, None]
    temporal = {each: _decompose(functions(each, frames)) for each in halves}
    errors = {}
    for waves, bases in series.items():
        left, right = space[bases[:-1]], temporal[bases[-1:]]
        by_sensor = _rows_left_out(y, left, right, params.penalty)[sensors]
        by_frame = _rows_left_out(y.T, right, left, params.penalty)[times]
        errors[waves] = float(by_sensor.mean() + by_frame.mean())
    return errors


def solve_scattered(observations: Observations, bases: Bases, penalty: float) -> Float[np.ndarray, "K Kt"]:
    """The same coefficients for scattered samples, by dense normal equations."""
    _, coefficients = _normal_fit(observations, bases, penalty)
    return coefficients.reshape(-1, bases[-1].size)


def scattered_leave_one_out(
    observations: Observations, series: Series, params: SpectralParams
) -> dict[tuple[int, int], float]:
    """Mean square error of what one place, plus that of what one time holds, left out, by series."""
    domain, x, t = observations.domain, observations.x, observations.t
    sensors = np.unique(x, axis=0, return_inverse=True)[1].ravel()
    times = np.unique(t, return_inverse=True)[1]
    scored = inner_points(domain, x, params.ends), inner_times(domain, t, params.ends)
    errors = {}
    for waves, bases in series.items():
        fitted = _normal_fit(observations, bases, params.penalty)
        pairs = zip((sensors, times), scored, strict=True)
        left_out = ((_groups_left_out(observations, bases, fitted, group), mask) for group, mask in pairs)
        errors[waves] = sum(float(np.square(error)[mask].mean()) for error, mask in left_out)
    return errors


def _halves(
    bases: Bases, coefficients: Float[np.ndarray, "K Kt"], mean: float
) -> tuple[SeriesFeatures, SeriesCoefficients]:
    """The series as features of space, the mean as background, times the functions of time."""
    *space, temporal = bases
    weight = np.ones(1)
    for basis in space:
        weight = np.multiply.outer(weight, _scale(basis)).ravel()
    background = np.zeros((len(coefficients), 1))
    background[0] = mean
    features = np.hstack([background, weight[:, None] * coefficients])
    return SeriesFeatures(tuple(space), features), SeriesCoefficients(temporal, np.diag(_scale(temporal)))


def _scale(basis: Basis) -> Float[np.ndarray, " size"]:
    """What gives the functions 1, cos, sin, ... unit mean square over a period."""
    return np.where(np.arange(basis.size) == 0, 1.0, np.sqrt(2.0))


def _inner(values: np.ndarray, low: float, high: float, ends: float) -> np.ndarray:
    slack = ends * (high - low)
    inside = (values >= low + slack) & (values <= high - slack)
    if not inside.any():
        raise ValueError(f"no sample lies {ends:.0%} of the axis inside [{low:g}, {high:g}]: lower `ends`")
    return inside


def _grid(observations: Observations) -> SensorGrid:
    if observations.grid is None:
        raise ValueError("the samples are scattered: fit them with solve_scattered")
    return observations.grid


def _space(grid: SensorGrid, bases: Bases) -> _Factor:
    """The functions of space at the sensors; axis by axis where these fill a grid, which is much cheaper."""
    if grid.axes is None:
        return _decompose(functions(bases, grid.sensors))
    product = _Factor(np.ones((1, 1)), np.ones(1), np.ones((1, 1)))
    for basis, axis in zip(bases, grid.axes, strict=True):
        factor = _decompose(functions((basis,), axis[:, None]))
        pairs = ((product.U, factor.U), (product.s, factor.s), (product.V, factor.V))
        product = _Factor(*(np.kron(left, right) for left, right in pairs))
    return product


def _decompose(matrix: np.ndarray) -> _Factor:
    U, s, Vt = np.linalg.svd(matrix, full_matrices=False)
    return _Factor(U, s, Vt.T)


def _rows_left_out(
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


def _normal_fit(observations: Observations, bases: Bases, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """The lower Cholesky factor L of A^T A + n penalty I, and the coefficients."""
    size = int(np.prod([basis.size for basis in bases]))
    gram, moment = len(observations) * penalty * np.eye(size), np.zeros(size)
    y, points = observations.y - observations.y.mean(), _points(observations)
    for start in range(0, len(observations), _ROWS):
        part = slice(start, start + _ROWS)
        A = functions(bases, points[part])
        gram += A.T @ A
        moment += A.T @ y[part]
    factor = cholesky(gram, lower=True)
    return factor, cho_solve((factor, True), moment)


def _groups_left_out(
    observations: Observations, bases: Bases, fitted: tuple[np.ndarray, np.ndarray], group: np.ndarray
) -> Float[np.ndarray, " n"]:
    """The error at every sample, predicted without the samples of its group; H = W W^T with W = A L^-T."""
    y, points = observations.y - observations.y.mean(), _points(observations)
    (factor, coefficients), errors = fitted, np.empty_like(y)
    counts = np.bincount(group)
    alone = np.flatnonzero(counts[group] == 1)
    together = [np.flatnonzero(group == each) for each in np.flatnonzero(counts > 1)]
    pieces = [alone[start : start + _ROWS] for start in range(0, len(alone), _ROWS)]
    for piece in (*pieces, *together):
        A = functions(bases, points[piece])
        residual = y[piece] - A @ coefficients
        W = solve_triangular(factor, A.T, lower=True)
        if counts[group[piece[0]]] == 1:
            errors[piece] = residual / (1 - np.einsum("kn,kn->n", W, W))
        else:
            errors[piece] = np.linalg.solve(np.eye(len(piece)) - W.T @ W, residual)
    return errors


def _points(observations: Observations) -> Float[np.ndarray, "n axes"]:
    return np.column_stack([observations.x, observations.t])
