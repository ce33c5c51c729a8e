"""What every trained recipe does before it starts: settings, refusals, the unit of the data, the seed."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from fts.adapter.bandwidth import coordinate_scale
from fts.observations import Observations
from fts.params import PAPER, AdapterParams, ModelParams, changed


def settings(observations: Observations) -> AdapterParams:
    """The paper's settings for a benchmark; for other data those of KS, with a scale that suits the data."""
    if observations.problem in PAPER:
        return PAPER[observations.problem].adapter
    return changed(PAPER["ks"].adapter, coordinate_scale=coordinate_scale(observations))


def periods(observations: Observations) -> tuple[float | None, ...]:
    """Periods of axes that close on themselves; none for the paper's problems, whose encoding has none."""
    domain = observations.domain
    if observations.problem in PAPER:
        return (None,) * domain.dimension
    return tuple(e if closed else None for e, closed in zip(domain.extents, domain.periodic, strict=False))


@dataclass(frozen=True)
class Origin:
    """Where coordinates and values of a training begin."""

    place: tuple[float, ...]
    value: float


def centered(observations: Observations, *, positive: bool) -> tuple[Observations, Origin]:
    """The observations from the corner of their domain and from their mean, as single precision needs them.

    The paper's problems stay where they are, and positive fields keep their zero.
    """
    domain = observations.domain
    if observations.problem in PAPER:
        return observations, Origin((0.0,) * domain.dimension, 0.0)
    origin = Origin(domain.low, 0.0 if positive else float(observations.y.mean()))
    moved = replace(domain, low=(0.0,) * domain.dimension, high=domain.extents[:-1])
    x, y = np.clip(observations.x - domain.low, 0.0, moved.high), observations.y - origin.value
    return replace(observations, x=x, y=y, domain=moved), origin


def refuse_misfit(observations: Observations, model: ModelParams) -> None:
    """Raise where the model cannot be determined by the observations at all."""
    frames, positions = len(np.unique(observations.t)), len(np.unique(observations.x, axis=0))
    if positions <= model.rank:
        raise ValueError(
            f"{positions} positions cannot carry {model.rank} spatial features: observe more positions or "
            "lower the rank"
        )
    if len(observations) <= model.rank * 4:
        raise ValueError(
            f"{len(observations)} samples ({positions} positions, {frames} frames) are too few for "
            f"{model.rank} features: add samples or lower the rank"
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
