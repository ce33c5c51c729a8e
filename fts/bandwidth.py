"""Observations -> the scale of the Fourier encoding, for data no table gives one for.

Linear regression on random Fourier features stands in for the network: its leave-one-out error is closed
form, and the scale with the smallest one is what the positions and the field's roughness allow.
"""

import numpy as np
from jaxtyping import Float

from fts.data import Observations

_ROWS = 64
# Periods of the longest axis at one deviation of the rows, and ridges relative to the largest singular value.
_PERIODS = tuple(0.25 * 2**k for k in range(8))
_RIDGES = (1e-6, 1e-4, 1e-2)
# Leave-one-out needs one decomposition of samples x features; more samples than this add nothing to a choice.
_MOST = 2000


def coordinate_scale(observations: Observations) -> float:
    """The factor on x before the encoding, by leave-one-out error over positions (or scattered samples)."""
    rng = np.random.default_rng(0)
    extent = max(observations.domain.extents[:-1])
    points, targets = _problem(observations, rng)
    errors = {}
    for periods in _PERIODS:
        scale = 2 * np.pi * periods / extent
        errors[scale] = _leave_one_out(_encode(points, scale, rng), targets)
    return min(errors, key=lambda scale: errors[scale])


def _problem(observations: Observations, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points and the values to regress there: all frames of a position, or samples with their time."""
    grid = observations.grid
    if grid is not None:
        chosen = rng.permutation(len(grid.sensors))[:_MOST]
        return grid.sensors[chosen], grid.values[chosen]
    chosen = rng.permutation(len(observations))[:_MOST]
    # Time enters as one more axis, stretched to the longest: a record then counts as one extent.
    domain = observations.domain
    stretch = max(domain.extents[:-1]) / domain.extents[-1]
    time = (observations.t[chosen, None] - domain.t0) * stretch
    return np.column_stack([observations.x[chosen], time]), observations.y[chosen, None]


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
