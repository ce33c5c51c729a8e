"""Preconditioned conjugate gradients on arrays of any shape."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Linear = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Solution:
    """What the iteration reached, in how many steps, and whether to the tolerance."""

    z: Float[np.ndarray, "..."]
    steps: int
    residual: float
    converged: bool


def solve(
    apply: Linear,
    precondition: Linear,
    right: Float[np.ndarray, "..."],
    *,
    tolerance: float,
    most: int,
    start: Float[np.ndarray, "..."] | None = None,
) -> Solution:
    """z with apply(z) = right, to `tolerance` of the right side in the preconditioner's norm."""
    z = np.zeros_like(right) if start is None else start.copy()
    r = right - apply(z) if start is not None else right.copy()
    p = precondition(r)
    product = float(np.vdot(r, p))
    goal = tolerance**2 * float(np.vdot(right, precondition(right)))
    for step in range(most):
        if product <= goal:
            return Solution(z, step, _ratio(product, goal, tolerance), converged=True)
        a = apply(p)
        length = product / float(np.vdot(p, a))
        z += length * p
        r -= length * a
        q = precondition(r)
        product, before = float(np.vdot(r, q)), product
        p = q + product / before * p
    return Solution(z, most, _ratio(product, goal, tolerance), converged=product <= goal)


def _ratio(product: float, goal: float, tolerance: float) -> float:
    return tolerance * float(np.sqrt(product / goal)) if goal > 0 else 0.0
