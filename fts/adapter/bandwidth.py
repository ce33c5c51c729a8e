"""Observations -> the scale of the Fourier encoding, for data no table gives one for.

Linear regression on random Fourier features stands in for the network: its leave-one-out error is closed
form, and the scale with the smallest one is what the positions and the field's roughness allow.
"""

import numpy as np
from jaxtyping import Float

from fts.observations import Observations

_ROWS = 64
# Periods of the longest axis at one deviation of the rows, and ridges relative to the largest singular value.
_PERIODS = tuple(0.25 * 2**k for k in range(8))
_RIDGES = (1e-6, 1e-4, 1e-2)
# Leave-one-out needs one decomposition of samples x features; more samples than this add nothing to a choice.
_MOST = 2000
# The same for scattered samples, whose matrix is square; widths in time relative to the run looked at.
_MOST_SCATTERED = 1200
_WIDTHS = (0.3, 1.0, 3.0)
_NUGGET = 1e-4


def coordinate_scale(observations: Observations) -> float:
    """The factor on x before the encoding, by leave-one-out error over positions or scattered samples."""
    extent = max(observations.domain.extents[:-1])
    scales = [2 * np.pi * periods / extent for periods in _PERIODS]
    grid = observations.grid
    if grid is None:
        errors = _scattered_errors(observations, scales)
    else:
        rng = np.random.default_rng(0)
        chosen = rng.permutation(len(grid.sensors))[:_MOST]
        points, targets = grid.sensors[chosen], grid.values[chosen]
        errors = [_leave_one_out(_encode(points, scale, rng), targets) for scale in scales]
    return scales[int(np.argmin(errors))]


def _scattered_errors(observations: Observations, scales: list[float]) -> list[float]:
    """Leave-one-out errors with exp(-s^2 |x - x'|^2 / 2), the limit of random features, times time's."""
    # A run of samples around the middle of the record is as dense as the data are; a random choice is not.
    order = np.argsort(observations.t, kind="stable")
    begin = max(0, (len(order) - _MOST_SCATTERED) // 2)
    chosen = order[begin : begin + _MOST_SCATTERED]
    x, t, y = observations.x[chosen], observations.t[chosen], observations.y[chosen]
    space = ((x[:, None] - x[None, :]) ** 2).sum(axis=2)
    time = ((t[:, None] - t[None, :]) / max(np.ptp(t), 1e-300)) ** 2
    return [
        min(
            _kernel_leave_one_out(-(scale**2) * space / 2 - time / (2 * width**2), y - y.mean())
            for width in _WIDTHS
        )
        for scale in scales
    ]


def _kernel_leave_one_out(exponent: np.ndarray, y: np.ndarray) -> float:
    """Mean squared alpha_i / (K^-1)_ii with alpha = K^-1 y, over K = exp(exponent) and a nugget."""
    K = np.exp(np.maximum(exponent, -700.0))
    K[np.diag_indices_from(K)] += _NUGGET
    inverse = np.linalg.inv(K)
    return float(np.mean((inverse @ y / np.diag(inverse)) ** 2))


def _encode(points: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
    phase = points @ (scale * rng.standard_normal((_ROWS, points.shape[1]))).T
    return np.column_stack([np.ones(len(points)), np.sin(phase), np.cos(phase)])


def _leave_one_out(features: Float[np.ndarray, "n m"], targets: Float[np.ndarray, "n k"]) -> float:
    """The smallest mean squared leave-one-out residual over the ridges: (y - H y) / (1 - diag H)."""
    U, s, _ = np.linalg.svd(features, full_matrices=False)
    rotated = U.T @ targets
    best = np.inf
    for ridge in _RIDGES:
        shrink = s**2 / (s**2 + ridge * s[0] ** 2)
        residual = targets - (U * shrink) @ rotated
        leverage = np.minimum((U**2) @ shrink, 1 - 1e-9)
        best = min(best, float(np.mean((residual / (1 - leverage)[:, None]) ** 2)))
    return best
