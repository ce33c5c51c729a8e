"""PINN-SR: observations -> a network and coefficients, trained jointly, then in turns (ADO).

Chen, Liu and Sun (2021). Pretraining fits both; then every cycle projects the coefficients by STRidge and
trains the network against them. Reported is the projection after the last cycle.
"""

from dataclasses import dataclass

from fts.baselines.registry import register_training


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

register_training("PINN-SR", PINNSRParams, PINN_SR, "pinn_sr")
