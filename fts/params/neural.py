"""What every number of the baselines that train a network means; a file of its own, as `types` is full."""

from dataclasses import dataclass
from typing import Literal

from fts.params.types import STRidgeParams

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
