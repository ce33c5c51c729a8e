"""The spectral ridge fit of scattered samples, by dense normal equations.

With A^T A + n penalty I = L L^T and W = A L^-T, the fitted values are W W^T y. Samples that share a place, or
a time, are left out together: with H = W W^T restricted to them, their residual is (I - H)^-1 times the
fit's.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, cholesky, solve_triangular

from fts.baselines.fourier import Bases, Tried, functions, inner_places, inner_times
from fts.observations import Observations
from fts.params.types import SpectralParams

# Rows of A held at once: some 40 MB with the most unknowns that the parameters usually allow.
_ROWS = 2048


def solve(observations: Observations, bases: Bases, penalty: float) -> Float[np.ndarray, "K Kt"]:
    """Coefficients of the products of functions of space (rows) and of time (columns)."""
    _, coefficients = _fit(observations, bases, penalty)
    return coefficients.reshape(-1, bases[-1].size)


def left_out_errors(
    observations: Observations, tried: Tried, params: SpectralParams
) -> dict[tuple[int, int], float]:
    """Mean square error of what one place, plus that of what one time holds, left out, by series tried."""
    domain, x, t = observations.domain, observations.x, observations.t
    places = np.unique(x, axis=0, return_inverse=True)[1].ravel()
    times = np.unique(t, return_inverse=True)[1]
    scored = inner_places(domain, x, params.ends), inner_times(domain, t, params.ends)
    errors = {}
    for waves, bases in tried.items():
        factor, coefficients = _fit(observations, bases, params.penalty)
        errors[waves] = sum(
            float(np.square(_left_out(observations, bases, factor, coefficients, group))[mask].mean())
            for group, mask in zip((places, times), scored, strict=True)
        )
    return errors


def _fit(observations: Observations, bases: Bases, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """The lower Cholesky factor L and the coefficients."""
    size = int(np.prod([basis.size for basis in bases]))
    gram, moment = len(observations) * penalty * np.eye(size), np.zeros(size)
    y = observations.y - observations.y.mean()
    for start in range(0, len(observations), _ROWS):
        part = slice(start, start + _ROWS)
        A = functions(bases, _points(observations)[part])
        gram += A.T @ A
        moment += A.T @ y[part]
    factor = cholesky(gram, lower=True)
    return factor, cho_solve((factor, True), moment)


def _left_out(
    observations: Observations,
    bases: Bases,
    factor: np.ndarray,
    coefficients: np.ndarray,
    group: Int[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """The error at every sample, predicted without the samples of its group."""
    y = observations.y - observations.y.mean()
    errors = np.empty_like(y)
    counts = np.bincount(group)
    alone = np.flatnonzero(counts[group] == 1)
    together = [np.flatnonzero(group == each) for each in np.flatnonzero(counts > 1)]
    pieces = [alone[start : start + _ROWS] for start in range(0, len(alone), _ROWS)]
    for piece in (*pieces, *together):
        A = functions(bases, _points(observations)[piece])
        residual = y[piece] - A @ coefficients
        W = solve_triangular(factor, A.T, lower=True)
        if counts[group[piece[0]]] == 1:
            errors[piece] = residual / (1 - np.einsum("kn,kn->n", W, W))
        else:
            errors[piece] = np.linalg.solve(np.eye(len(piece)) - W.T @ W, residual)
    return errors


def _points(observations: Observations) -> Float[np.ndarray, "n axes"]:
    return np.column_stack([observations.x, observations.t])
