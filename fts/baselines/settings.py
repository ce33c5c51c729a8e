"""What every number of the baselines that train a network means; a file of its own, as `types` is full.

Configurations of the baselines: one per problem, shared across protocols and seeds.
"""

import math
from dataclasses import dataclass
from typing import Literal

from fts.params.paper import PAPER, REFINED
from fts.params.types import (
    PDEFindParams,
    SpectralParams,
    STRidgeParams,
    StrongRegressionParams,
    WeakParams,
    WeakRegressionParams,
    WSINDyParams,
)

# A network sees the coordinates as they are, or mapped to [-1, 1].
Inputs = Literal["raw", "unit"]


@dataclass(frozen=True)
class DeepMoDParams:
    """DeepMoD: a tanh network whose residual is least squares on the terms in play, dropped as it trains."""

    width: int
    depth: int  # hidden layers
    inputs: Inputs
    samples: int  # observations used, drawn once; all where there are no more
    held_out: float  # fraction of them that only judges
    learning_rate: float
    betas: tuple[float, float]
    max_iterations: int
    check_every: int  # iterations between two checks
    patience: int  # iterations without a lower held-out error before terms are dropped
    min_decrease: float  # what counts as lower, in units of the data squared
    periodicity: int  # iterations between two decisions about terms, from the first one on
    threshold: float  # on lasso coefficients of unit columns and unit u_t
    folds: int  # of the lasso's cross-validation
    alphas: int  # penalties it tries
    alpha_ratio: float  # smallest to largest of them
    settled_patience: int  # iterations so long without change end the training
    settled_change: float  # of the sum of scaled coefficients


@dataclass(frozen=True)
class SurrogateParams:
    """A network fitted to the samples alone, kept where its held-out error was lowest."""

    width: int
    depth: int
    activation: Literal["tanh", "sin"]
    inputs: Inputs
    learning_rate: float
    batch: int  # training samples per step, drawn anew each time; all where there are no more
    held_out: float  # fraction of the samples that only judge
    check_every: int  # steps between two looks at them
    patience: int  # looks without a lower error before training stops
    steps: int  # at most


@dataclass(frozen=True)
class DLPDEParams:
    """DL-PDE: a surrogate network, its derivatives on a grid, thresholded ridge."""

    surrogate: SurrogateParams
    grid: tuple[int, ...]  # meta-data per axis (x, [y,] t); the product is the number of rows
    margin: float  # fraction of every axis left out at either end
    stridge: STRidgeParams


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


@dataclass(frozen=True)
class PINNSRParams:
    """PINN-SR: network and coefficients jointly, then in turns of thresholded ridge and training (ADO)."""

    width: int
    depth: int
    samples: int  # observations used, drawn once; all where there are no more
    held_out: float  # fraction of them that is only watched
    collocation: int  # Latin hypercube points of the residual
    residual_samples: int  # coordinates of training samples that join them, drawn once
    sparsity: float  # weight of ||lambda||_1
    residual_weight: float  # alpha of the pretraining
    adam_steps: int  # of the pretraining
    adam_rate: float
    lbfgs_iterations: int  # of the pretraining, at most
    lbfgs_memory: int
    lbfgs_line_search: int  # evaluations per line search, at most
    lbfgs_tolerance: float  # relative decrease of the loss below which it stops
    cycles: int
    cycle_residual_weight: float  # alpha of the cycles
    cycle_steps: int
    cycle_rate: float
    cycle_betas: tuple[float, float]
    ridge: float
    rounds: int  # of a search for the tolerance
    tolerance_step: float  # its first step
    thresholdings: int  # per tolerance, at most
    test_rows: float  # fraction of the residual points that scores tolerances


@dataclass(frozen=True)
class PathParams:
    """What a recorded training keeps of its fields, to be looked at later."""

    fields: int  # at most so many, evenly over the training
    selections: int  # about how often the equation is read off a field that trains without one
    grid: tuple[int, int]  # points each is kept at in one dimension, (x, t)
    plane: tuple[int, int, int]  # the same in two, (x, y, t)


# Shared by PDE-FIND and WSINDy. The paper names the ridge; which of the numbers of waves is taken, the
# samples of each run decide.
SPECTRAL = SpectralParams(
    penalty=1e-3,
    continuation=1.25,
    modes=(2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96),
    ends=0.05,
    unknowns=2500,
)
# The values the paper tried for both.
THRESHOLDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 2.0, 5.0)


def _stridge(threshold: float) -> STRidgeParams:
    return STRidgeParams(threshold=threshold, ridge=1e-5, max_iterations=20, refit_ridge=1e-4)


def _pde_find(grid: tuple[int, ...], threshold: float) -> PDEFindParams:
    return PDEFindParams(SPECTRAL, StrongRegressionParams(grid, 0.05, _stridge(threshold)))


def _wsindy(weak: WeakParams, threshold: float) -> WSINDyParams:
    return WSINDyParams(SPECTRAL, WeakRegressionParams(weak, 0.05, _stridge(threshold)))


# The patches WSINDy may take: those of our own weak systems, or wide ones, a tenth of space and a sixth of
# time to either side (a fifth each in 2D).
PATCHES: dict[str, dict[str, WeakParams]] = {
    "kdv": {
        "ours": PAPER["kdv"].weak,
        "wide": WeakParams(half_widths=(6.0, 20 / 6), patches=(20, 15), nodes=(64, 64), power=8),
    },
    "ks": {
        "ours": PAPER["ks"].weak,
        "wide": WeakParams(half_widths=(3.2 * math.pi, 100 / 6), patches=(20, 15), nodes=(64, 128), power=8),
    },
    "ad": {
        "ours": REFINED["ad"],
        "wide": WeakParams(half_widths=(2.0, 2.0, 1.2), patches=(8, 8, 5), nodes=(24, 24, 16), power=8),
    },
}
# Thresholds and patches as chosen on the development seeds: book/records/candidates.json. WSINDy's margin was
# compared with none on the same seeds before that (27 exact recoveries of 30 on our patches, 26 without); the
# record does not repeat it. PDE-FIND's margin was not varied.
PDE_FIND: dict[str, PDEFindParams] = {
    "kdv": _pde_find((256, 100), 0.4),
    "ks": _pde_find((256, 100), 2.0),
    "ad": _pde_find((32, 32, 24), 5.0),
}
WSINDY: dict[str, WSINDyParams] = {
    "kdv": _wsindy(PATCHES["kdv"]["wide"], 0.05),
    "ks": _wsindy(PATCHES["ks"]["ours"], 1.0),
    "ad": _wsindy(PATCHES["ad"]["ours"], 0.4),
}


def _deepmod(width: int, patience: int, settled_change: float) -> DeepMoDParams:
    return DeepMoDParams(
        width=width,
        depth=4,
        inputs="raw",
        samples=2000,
        held_out=0.2,
        learning_rate=1e-3,
        betas=(0.99, 0.99),
        max_iterations=100_000,
        check_every=25,
        patience=patience,
        min_decrease=1e-5,
        periodicity=50,
        threshold=0.1,
        folds=5,
        alphas=100,
        alpha_ratio=1e-3,
        settled_patience=200,
        settled_change=settled_change,
    )


# Those of the release's notebooks on the same three equations; the paper names depth, width, threshold and
# budget, and they agree.
DEEPMOD: dict[str, DeepMoDParams] = {
    "kdv": _deepmod(width=30, patience=10, settled_change=1e-3),
    "ks": _deepmod(width=30, patience=10, settled_change=1e-3),
    "ad": _deepmod(width=50, patience=200, settled_change=1e-5),
}


def _dl_pde(inputs: Inputs, grid: tuple[int, ...], threshold: float) -> DLPDEParams:
    return DLPDEParams(
        SurrogateParams(
            width=50,
            depth=5,
            activation="sin",
            inputs=inputs,
            learning_rate=1e-3,
            batch=4000,
            held_out=0.2,
            check_every=500,
            patience=10,
            steps=20_000,
        ),
        grid=grid,
        margin=0.05,
        stridge=STRidgeParams(threshold=threshold, ridge=1e-5, max_iterations=10, refit_ridge=1e-4),
    )


# The values the paper tried; each belongs to some 10,000 rows.
TOLERANCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
# Chosen on two of the development seeds, a training for each: book/records/candidates.json.
DL_PDE: dict[str, DLPDEParams] = {
    "kdv": _dl_pde("unit", (100, 100), 0.5),
    # Raw coordinates halve the field's error here, and lose the equation: the derivatives get rougher.
    "ks": _dl_pde("unit", (100, 100), 5.0),
    "ad": _dl_pde("unit", (24, 24, 18), 0.5),
}


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


def _pinn_sr(width: int, alpha: float, rate: float, betas: tuple[float, float]) -> PINNSRParams:
    return PINNSRParams(
        width=width,
        depth=8,
        samples=10_000,
        held_out=0.2,
        collocation=4000,
        residual_samples=2000,
        sparsity=1e-7,
        residual_weight=1.0,
        adam_steps=5000,
        adam_rate=1e-3,
        lbfgs_iterations=5000,
        lbfgs_memory=50,
        lbfgs_line_search=50,
        lbfgs_tolerance=2.2e-16,
        cycles=6,
        cycle_residual_weight=alpha,
        cycle_steps=1000,
        cycle_rate=rate,
        cycle_betas=betas,
        ridge=1e-5,
        rounds=100,
        tolerance_step=1.0,
        thresholdings=10,
        test_rows=0.2,
    )


# Network, weights and rates of the cycles are those of the authors' Burgers and KS examples; their
# pretraining takes up to ten times as long, with up to ten times as many residual points.
PINN_SR: dict[str, PINNSRParams] = {
    "kdv": _pinn_sr(width=20, alpha=2.0, rate=1e-3, betas=(0.99, 0.9)),
    "ks": _pinn_sr(width=40, alpha=10.0, rate=1e-5, betas=(0.9, 0.999)),
    "ad": _pinn_sr(width=20, alpha=2.0, rate=1e-3, betas=(0.99, 0.9)),
}

# Enough to see a field move by, and a few hundred kilobytes for the longest training.
PATHS = PathParams(fields=48, selections=100, grid=(64, 40), plane=(24, 24, 4))
