"""DeepMoD: observations -> a network held to an equation, whose terms are dropped as it trains.

Both, Choudhury, Sens and Kusters (2021); Both, Vermarien and Kusters (2021). The settings are those of the
authors' release, DeePyMoD 2.2.0: raw coordinates and data, equal weights, Adam, a lasso estimator with a
threshold; `training.deepymod_reference` runs the release itself on the same rows.
"""

from dataclasses import dataclass
from typing import Literal

from fts.baselines.registry import register_training


@dataclass(frozen=True)
class DeepMoDParams:
    """DeepMoD: a tanh network whose residual is least squares on the terms in play, dropped as it trains."""

    width: int
    depth: int  # hidden layers
    inputs: Literal["raw", "unit"]  # coordinates as they are, or mapped to [-1, 1]
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

register_training("DeepMoD", DeepMoDParams, DEEPMOD, "deepmod")
