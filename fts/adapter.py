"""Observations -> FrozenField by the paper's recipe (Section "Structured field adapter", Supplement A.3).

u_hat = b(x) + Phi(x)^T C (beta(t) - mean): a Swish network on fixed Fourier features gives background and
features at the distinct positions, splines the coefficients; both are descended on jointly, then frozen.
"""

import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from fts.bandwidth import coordinate_scale
from fts.data import Observations
from fts.device import device, threads
from fts.frozen import FrozenField
from fts.params import PAPER, AdapterParams
from fts.samples import prepare
from fts.structured import Reconstruction, Structured
from fts.training import Trace, train


def fit(
    observations: Observations,
    params: AdapterParams | None = None,
    *,
    seed: int | None = None,
    progress: bool = True,
    cores: int = 1,
) -> FrozenField:
    """The adapter trained on the observations and frozen.

    `params` are the paper's for the problem and `seed` is the observations' own unless they are given.
    """
    params = params or settings(observations)
    refuse_misfit(observations, params)
    began = time.perf_counter()
    # Softplus does not commute with a change of units: positive fields are trained in their own.
    unit = 1.0 if params.positive else deviation(observations)
    with threads(cores):
        samples = prepare(replace(observations, y=observations.y / unit), device())
        model = Structured(samples, observations.domain, params, generator(observations, seed))
        trace = train(
            Reconstruction(model, samples, params),
            [model.network.flat, model.coefficients],
            params,
            samples.variance,
            progress,
            # C stays at zero until the background has been fitted.
            ready=lambda update, flat: flat == 0 or update >= params.background_epochs,
        )
        made = describe(observations, params, "paper", seed, trace, time.perf_counter() - began)
        return model.freeze(made, unit)


def settings(observations: Observations) -> AdapterParams:
    """The paper's settings for a benchmark; for other data those of KS, with a scale that suits the data."""
    if observations.problem in PAPER:
        return PAPER[observations.problem].adapter
    return replace(PAPER["ks"].adapter, coordinate_scale=coordinate_scale(observations))


def refuse_misfit(observations: Observations, params: AdapterParams) -> None:
    """Raise where the model cannot be determined by the observations at all."""
    frames, positions = len(np.unique(observations.t)), len(np.unique(observations.x, axis=0))
    if positions <= params.rank:
        raise ValueError(
            f"{positions} positions cannot carry {params.rank} spatial features: observe more positions or "
            "lower params.rank"
        )
    if len(observations) <= params.rank * 4:
        raise ValueError(
            f"{len(observations)} samples ({positions} positions, {frames} frames) are too few for "
            f"{params.rank} features: add samples or lower params.rank"
        )


def deviation(observations: Observations) -> float:
    """The standard deviation of the values: the unit networks are trained in."""
    value = float(observations.y.std())
    if value == 0:
        raise ValueError(f"all {len(observations)} values are {observations.y[0]}: there is no field to fit")
    return value


def generator(observations: Observations, seed: int | None) -> torch.Generator:
    """The run's source of randomness, on the CPU so that every device draws the same numbers."""
    chosen = seed if seed is not None else observations.seed
    return torch.Generator().manual_seed(0 if chosen is None else chosen)


def describe(
    observations: Observations,
    params: AdapterParams,
    recipe: str,
    seed: int | None,
    trace: Trace,
    seconds: float,
) -> dict[str, Any]:
    """What a field's file says about its making."""
    return {
        "recipe": recipe,
        "parameters": asdict(params),
        "problem": observations.problem,
        "protocol": observations.protocol,
        "seed": observations.seed if seed is None else seed,
        "noise": observations.noise,
        "seconds": round(seconds, 2),
        "device": str(device()),
        **trace.as_dict(),
    }
