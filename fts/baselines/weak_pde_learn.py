"""Weak-PDE-LEARN: observations -> a rational network and the equation's coefficients, learned in one loss.

Stephany and Earls (2024). Data misfit plus the residual of the weak form under random test functions; after a
free burn-in a p-norm penalty, by reweighted squares, makes the coefficients sparse. Each column is
D^alpha q(u) without its scale, D_x(u^2) for u*u_x, as in the authors' code; what is reported, and compared
with the threshold, is the coefficient of the library's own term.
"""

from dataclasses import dataclass
from typing import Literal

from fts.baselines.registry import register_training


@dataclass(frozen=True, kw_only=True)
class WeakFormParams:
    """The weak form of Weak-PDE-LEARN: random smooth test functions on one quadrature grid."""

    quadrature: tuple[int, ...]  # nodes over the whole box, along (x, [y,] t)
    functions: int = 200  # test functions of a draw
    held_out_functions: int = 50  # those of the held-out loss, which is only watched
    refresh: int = 25  # epochs between two draws
    radius: Literal["shortest", "per axis"]  # equal on all axes, or in proportion to each side
    fractions: tuple[float, float] = (0.2, 0.3)  # radii are uniform between these fractions of a side
    margin: float = 5e-4  # between supports and the faces of the box, in units of the coordinates
    steepness: float = 5.0  # k of exp(k - k / (1 - s^2))
    deviations: float = 3.0  # residuals so many above their mean keep their test function one more epoch


@dataclass(frozen=True, kw_only=True)
class WeakPDELearnParams:
    """Weak-PDE-LEARN: network and coefficients in one loss, trained freely, then with a sparsity penalty."""

    width: int = 40
    depth: int = 5
    batch: int = 4000  # samples per epoch, drawn anew each time; the authors' data sets have as many
    weak: WeakFormParams
    learning_rate: float = 1e-3
    data_weight: float = 1.0
    weak_weight: float = 1.0
    penalty_weight: float = 2e-4  # of the p-norm, in the second phase
    penalty_power: float = 0.1  # p
    penalty_floor: float = 1e-7  # least |xi|^(2 - p) in the penalty's weights
    size_weight: float = 5e-6  # of ||theta||^2
    burn_in: int = 6000  # epochs without the penalty
    sparsification: int = 5000  # epochs with it
    threshold: float = 1e-3  # smaller coefficients leave at its start, and are not reported at its end
    watch_every: int = 10  # epochs between two looks at the held-out loss, where a callback asks for it


# The paper names network and epochs, the authors' code the rest. One radius for all axes, as theirs, but in
# 2D, where time is the shorter; nodes for a dozen or more on the smallest radius where fourth derivatives
# fall on the test function.
WEAK_PDE_LEARN: dict[str, WeakPDELearnParams] = {
    "kdv": WeakPDELearnParams(weak=WeakFormParams(quadrature=(192, 40), radius="shortest")),
    "ks": WeakPDELearnParams(weak=WeakFormParams(quadrature=(128, 64), radius="shortest")),
    "ad": WeakPDELearnParams(weak=WeakFormParams(quadrature=(24, 24, 20), radius="per axis")),
}

register_training("Weak-PDE-LEARN", WeakPDELearnParams, WEAK_PDE_LEARN, "weak_pde_learn")
