"""Configurations of the baselines: one per problem, shared across protocols and seeds."""

import math
from typing import Literal

from fts.params.neural import (
    DeepMoDParams,
    DLPDEParams,
    Inputs,
    PathParams,
    PINNSRParams,
    SurrogateParams,
    WeakFormParams,
    WeakPDELearnParams,
)
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
