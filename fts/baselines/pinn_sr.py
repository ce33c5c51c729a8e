"""PINN-SR: observations -> a network and coefficients, trained jointly, then in turns (ADO).

Chen, Liu and Sun (2021). Pretraining fits both; then every cycle projects the coefficients by STRidge and
trains the network against them. Reported is the projection after the last cycle.
"""

from dataclasses import dataclass

from fts.baselines.registry import register_training


@dataclass(frozen=True, kw_only=True)
class PINNSRParams:
    """PINN-SR: network and coefficients jointly, then in turns of thresholded ridge and training (ADO)."""

    width: int
    depth: int = 8
    samples: int = 10_000  # observations used, drawn once; all where there are no more
    held_out: float = 0.2  # fraction of them that is only watched
    collocation: int = 4000  # Latin hypercube points of the residual
    residual_samples: int = 2000  # coordinates of training samples that join them, drawn once
    sparsity: float = 1e-7  # weight of ||lambda||_1
    residual_weight: float = 1.0  # alpha of the pretraining
    adam_steps: int = 5000  # of the pretraining
    adam_rate: float = 1e-3
    lbfgs_iterations: int = 5000  # of the pretraining, at most
    lbfgs_memory: int = 50
    lbfgs_line_search: int = 50  # evaluations per line search, at most
    lbfgs_tolerance: float = 2.2e-16  # relative decrease of the loss below which it stops
    cycles: int = 6
    cycle_residual_weight: float  # alpha of the cycles
    cycle_steps: int = 1000
    cycle_rate: float
    cycle_betas: tuple[float, float]
    ridge: float = 1e-5
    rounds: int = 100  # of a search for the tolerance
    tolerance_step: float = 1.0  # its first step
    thresholdings: int = 10  # per tolerance, at most
    test_rows: float = 0.2  # fraction of the residual points that scores tolerances


# Network, weights and rates of the cycles are those of the authors' Burgers and KS examples; their
# pretraining takes up to ten times as long, with up to ten times as many residual points.
_BURGERS = PINNSRParams(width=20, cycle_residual_weight=2.0, cycle_rate=1e-3, cycle_betas=(0.99, 0.9))
PINN_SR: dict[str, PINNSRParams] = {
    "kdv": _BURGERS,
    "ks": PINNSRParams(width=40, cycle_residual_weight=10.0, cycle_rate=1e-5, cycle_betas=(0.9, 0.999)),
    "ad": _BURGERS,
}

register_training("PINN-SR", PINNSRParams, PINN_SR, "pinn_sr")
