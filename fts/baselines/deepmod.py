"""DeepMoD: observations -> a network held to an equation, whose terms are dropped as it trains.

Both, Choudhury, Sens and Kusters (2021); Both, Vermarien and Kusters (2021). The settings are those of the
authors' release, DeePyMoD 2.2.0: raw coordinates and data, equal weights, Adam, a lasso estimator with a
threshold; `training.deepymod_reference` runs the release itself on the same rows.
"""

from dataclasses import dataclass
from typing import Literal

from fts.baselines.registry import register_training


@dataclass(frozen=True, kw_only=True)
class DeepMoDParams:
    """DeepMoD: a tanh network whose residual is least squares on the terms in play, dropped as it trains."""

    width: int
    depth: int = 4  # hidden layers
    inputs: Literal["raw", "unit"] = "raw"  # coordinates as they are, or mapped to [-1, 1]
    samples: int = 2000  # observations used, drawn once; all where there are no more
    held_out: float = 0.2  # fraction of them that only judges
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.99, 0.99)
    max_iterations: int = 100_000
    check_every: int = 25  # iterations between two checks
    patience: int  # iterations without a lower held-out error before terms are dropped
    min_decrease: float = 1e-5  # what counts as lower, in units of the data squared
    periodicity: int = 50  # iterations between two decisions about terms, from the first one on
    threshold: float = 0.1  # on lasso coefficients of unit columns and unit u_t
    folds: int = 5  # of the lasso's cross-validation
    alphas: int = 100  # penalties it tries
    alpha_ratio: float = 1e-3  # smallest to largest of them
    settled_patience: int = 200  # iterations so long without change end the training
    settled_change: float  # of the sum of scaled coefficients


# Those of the release's notebooks on the same three equations; the paper names depth, width, threshold and
# budget, and they agree.
DEEPMOD: dict[str, DeepMoDParams] = {
    "kdv": DeepMoDParams(width=30, patience=10, settled_change=1e-3),
    "ks": DeepMoDParams(width=30, patience=10, settled_change=1e-3),
    "ad": DeepMoDParams(width=50, patience=200, settled_change=1e-5),
}

register_training("DeepMoD", DeepMoDParams, DEEPMOD, "deepmod")
