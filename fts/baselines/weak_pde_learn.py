"""Weak-PDE-LEARN: observations -> a rational network and the equation's coefficients, learned in one loss.

Stephany and Earls (2024). Data misfit plus the residual of the weak form under random test functions; after a
free burn-in a p-norm penalty, by reweighted squares, makes the coefficients sparse. Each column is
D^alpha q(u) without its scale, D_x(u^2) for u*u_x, as in the authors' code; what is reported, and compared
with the threshold, is the coefficient of the library's own term.
"""

from dataclasses import dataclass
from typing import Literal

from fts.baselines.registry import register_training


@dataclass(frozen=True)
class WeakFormParams:
    """The weak form of Weak-PDE-LEARN: random smooth test functions on one quadrature grid."""

    quadrature: tuple[int, ...]  # nodes over the whole box, along (x, [y,] t)
    functions: int  # test functions of a draw
    held_out_functions: int  # those of the held-out loss, which is only watched
    refresh: int  # epochs between two draws
    radius: Literal["shortest", "per axis"]  # equal on all axes, or in proportion to each side
    fractions: tuple[float, float]  # radii are uniform between these fractions of a side
    margin: float  # between supports and the faces of the box, in units of the coordinates
    steepness: float  # k of exp(k - k / (1 - s^2))
    deviations: float  # residuals so many above their mean keep their test function for the next epoch


@dataclass(frozen=True)
class WeakPDELearnParams:
    """Weak-PDE-LEARN: network and coefficients in one loss, trained freely, then with a sparsity penalty."""

    width: int
    depth: int
    batch: int  # samples per epoch, drawn anew each time; all where there are no more
    weak: WeakFormParams
    learning_rate: float
    data_weight: float
    weak_weight: float
    penalty_weight: float  # of the p-norm, in the second phase
    penalty_power: float  # p
    penalty_floor: float  # least |xi|^(2 - p) in the penalty's weights
    size_weight: float  # of ||theta||^2
    burn_in: int  # epochs without the penalty
    sparsification: int  # epochs with it
    threshold: float  # smaller coefficients leave at its start, and are not reported at its end
    watch_every: int  # epochs between two looks at the held-out loss, where a callback asks for it


def _weak_pde_learn(
    quadrature: tuple[int, ...], radius: Literal["shortest", "per axis"]
) -> WeakPDELearnParams:
    return WeakPDELearnParams(
        width=40,
        depth=5,
        batch=4000,  # as many as the authors' data sets have
        weak=WeakFormParams(
            quadrature=quadrature,
            functions=200,
            held_out_functions=50,
            refresh=25,
            radius=radius,
            fractions=(0.2, 0.3),
            margin=5e-4,
            steepness=5.0,
            deviations=3.0,
        ),
        learning_rate=1e-3,
        data_weight=1.0,
        weak_weight=1.0,
        penalty_weight=2e-4,
        penalty_power=0.1,
        penalty_floor=1e-7,
        size_weight=5e-6,
        burn_in=6000,
        sparsification=5000,
        threshold=1e-3,
        watch_every=10,
    )


# The paper names network and epochs, the authors' code the rest. One radius for all axes, as theirs, but in
# 2D, where time is the shorter; nodes for a dozen or more on the smallest radius where fourth derivatives
# fall on the test function.
WEAK_PDE_LEARN: dict[str, WeakPDELearnParams] = {
    "kdv": _weak_pde_learn((192, 40), "shortest"),
    "ks": _weak_pde_learn((128, 64), "shortest"),
    "ad": _weak_pde_learn((24, 24, 20), "per axis"),
}

register_training("Weak-PDE-LEARN", WeakPDELearnParams, WEAK_PDE_LEARN, "weak_pde_learn")
