"""A few hundred samples, anywhere -> errors on samples left out, all of them, from one dense inverse."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import get_lapack_funcs

from fts.kernel.covariance import Kernel, SampleAxis

MOST = 650  # samples up to which a dense inverse is affordable; it judges better than a tenth left out

_FAILED = 1e12  # the error where rounding leaves nothing to invert

Covariance = Callable[[tuple[Kernel, ...]], np.ndarray]


class DenseLeftOut:
    """Mean square error at groups of samples left out, summed over ways of grouping them.

    With a = (K + s)^-1 y the residual of a left-out group S is ((K + s)^-1_SS)^-1 a_S, and its variance is
    ((K + s)^-1_SS)^-1.
    """

    def __init__(
        self,
        covariance: Covariance,
        values: Float[np.ndarray, " n"],
        ways: Sequence[Int[np.ndarray, " n"] | None],
        step: Callable[[], object],
    ) -> None:
        self.covariance, self.values, self.step = covariance, values, step
        # None leaves out every sample by itself
        self.ways = [
            None if way is None else [np.flatnonzero(way == one) for one in np.unique(way)] for way in ways
        ]
        self._known: dict[tuple[tuple[Kernel, ...], float], list[tuple[float, float]]] = {}

    def __call__(self, kernels: tuple[Kernel, ...], nugget: float) -> float:
        return sum(self.errors(kernels, nugget))

    def errors(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        """One mean square per way."""
        return tuple(error for error, _ in self._measured(kernels, nugget))

    def calibration(
        self, kernels: tuple[Kernel, ...], nugget: float, rng: np.random.Generator
    ) -> Callable[[], float]:
        """Prior variance for which samples left out in the worst way err as much as the process expects."""
        error, expected = max(self._measured(kernels, nugget))
        return lambda: error / expected

    def _measured(self, kernels: tuple[Kernel, ...], nugget: float) -> list[tuple[float, float]]:
        """Mean square and expected square, per way."""
        key = (kernels, nugget)
        if key not in self._known:
            self.step()
            inverse = inverted(self.covariance(kernels), nugget)
            if inverse is None:
                self._known[key] = [(_FAILED, 1.0)] * len(self.ways)
            else:
                weights = inverse @ self.values
                self._known[key] = [residuals_of(inverse, weights, way) for way in self.ways]
        return self._known[key]


def inverted(matrix: Float[np.ndarray, "n n"], nugget: float) -> Float[np.ndarray, "n n"] | None:
    """(K + s)^-1 for a symmetric matrix, or None where rounding leaves it not positive."""
    matrix = matrix + max(nugget, float(np.finfo(float).eps) * len(matrix)) * np.eye(len(matrix))
    found = inverse_and_determinant(matrix)
    return None if found is None else found[0]


def inverse_and_determinant(matrix: Float[np.ndarray, "n n"]) -> tuple[np.ndarray, float] | None:
    """Inverse and logarithm of the determinant of a symmetric matrix; None where it is not positive."""
    factorize, invert = get_lapack_funcs(("potrf", "potri"), (matrix,))
    factor, failed = factorize(matrix, lower=1)
    if failed:
        return None
    logarithm = 2 * float(np.sum(np.log(np.diag(factor))))
    lower, _ = invert(factor, lower=1)
    return np.tril(lower) + np.tril(lower, -1).T, logarithm


def on_closed_axes(parts: Sequence[SampleAxis]) -> Covariance:
    """The product of the parts' kernels between their points, one point of each part per sample."""
    distances = [part.distances for part in parts]

    def covariance(kernels: tuple[Kernel, ...]) -> np.ndarray:
        matrix = np.ones_like(distances[0][0])
        for part, chosen, own in zip(parts, kernels, distances, strict=True):
            matrix *= part.of_distances(own, chosen)
        return matrix

    return covariance


def residuals_of(
    inverse: np.ndarray, weights: np.ndarray, groups: list[np.ndarray] | None
) -> tuple[float, float]:
    """Mean square of the residuals of groups left out, and what the process expects of it."""
    if groups is None:
        diagonal = np.diag(inverse)
        return float(np.mean((weights / diagonal) ** 2)), float(np.mean(1 / diagonal))
    error, expected = 0.0, 0.0
    for group in groups:
        block = np.linalg.inv(inverse[np.ix_(group, group)])
        error += float(np.sum((block @ weights[group]) ** 2))
        expected += float(np.trace(block))
    return error / len(weights), expected / len(weights)
