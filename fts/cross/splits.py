"""Points -> ways of halving them so that each half covers what the whole does, and the halves' nugget."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool
from scipy.spatial import KDTree

from fts.kernel.covariance import SampleAxis


def splits(part: SampleAxis, count: int, rng: np.random.Generator) -> Iterator[Bool[np.ndarray, " n"]]:
    """Ways of halving the points of an axis: of every two neighbours the first, and then one by lot."""
    n = len(part.points)
    # Scattered points have no order: the leaves of a tree put neighbours beside each other.
    order = np.arange(n) if part.points.shape[1] == 1 else KDTree(part.points, leafsize=2).indices
    for number in range(count):
        flips = rng.integers(0, 2, (n + 1) // 2) if number else np.zeros((n + 1) // 2, dtype=int)
        first = np.empty(n, dtype=bool)
        first[order] = np.arange(n) % 2 == np.repeat(flips, 2)[:n]
        yield first


def lowered(nugget: float, smoothing: float, samples: int) -> float:
    """A smaller nugget: the smoothing error is shared by both halves, and cross products do not remove it.

    Never below rounding, unless the search itself went there.
    """
    rounding = float(np.finfo(float).eps) * samples
    return min(nugget, max(smoothing * nugget, rounding))
