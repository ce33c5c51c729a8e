"""Observations -> FrozenField: Fourier series fitted by ridge, which PDE-FIND and WSINDy read.

    minimize (1/n) ||A c - y||^2 + penalty ||c||^2,

with A the products of 1, sqrt 2 cos, sqrt 2 sin along the axes and y without its mean. On an axis that does
not close, the period is longer than the axis, so that the series need not repeat within it. How many waves
there are, one number for all of space and one for time, the samples decide alone: those that predict best
what was measured at one place, when that is left out, and what was measured at one time.
"""

import time
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

from fts.baselines import spectral_grid, spectral_scattered
from fts.baselines.fourier import Bases, bases, scale
from fts.fields.frozen import FrozenField, provenance_of
from fts.fields.series import SeriesCoefficients, SeriesFeatures
from fts.observations import Observations
from fts.params.types import SpectralParams


@dataclass(frozen=True)
class SpectralFit:
    """The field, its waves in space and time, and the left-out errors of all that were tried."""

    field: FrozenField
    waves: tuple[int, int]
    errors: dict[tuple[int, int], float]


def reconstruct(observations: Observations, params: SpectralParams) -> FrozenField:
    """The ridge fit with the numbers of waves that predict samples left out best."""
    return compare(observations, params).field


def compare(observations: Observations, params: SpectralParams) -> SpectralFit:
    """Every number of waves by its error on samples left out; where two tie, the fewer waves win."""
    began = time.process_time()
    solver = spectral_scattered if observations.grid is None else spectral_grid
    tried = {waves: bases(observations.domain, waves, params) for waves in candidates(observations, params)}
    errors = solver.left_out_errors(observations, tried, params)
    waves = min(errors, key=lambda each: (errors[each], each))
    coefficients = solver.solve(observations, tried[waves], params.penalty)
    space, temporal = _halves(tried[waves], coefficients, float(observations.y.mean()))
    chosen = {"waves": list(waves), "left_out_error": errors[waves], "penalty": params.penalty}
    seconds = time.process_time() - began
    made = provenance_of(observations, "spectral", chosen, seconds=seconds, device="cpu")
    return SpectralFit(FrozenField(space, temporal, observations.domain, made), waves, errors)


def candidates(observations: Observations, params: SpectralParams) -> list[tuple[int, int]]:
    """Waves in space and time with no more functions along an axis, or in all of space, than places sampled.

    A matrix of functions of space is decomposed as a whole, and scattered samples are fitted by one dense
    system of space and time: neither may have more unknowns than the parameters allow.
    """
    d = observations.domain.dimension
    places = len(np.unique(observations.x, axis=0))
    along = min(len(np.unique(column)) for column in observations.x.T)
    frames = len(np.unique(observations.t))
    most = min(params.unknowns, len(observations))
    kept = []
    for waves in product(params.modes, repeat=2):
        space, temporal = 2 * waves[0] + 1, 2 * waves[1] + 1
        together = space**d * (temporal if observations.grid is None else 1)
        if space <= along and space**d <= places and temporal <= frames and together <= most:
            kept.append(waves)
    if not kept:
        raise ValueError(
            f"{len(observations)} samples at {places} places and {frames} times carry no series of "
            f"{min(params.modes)} or more waves with at most {params.unknowns} unknowns: add samples, try "
            "fewer waves, or measure at the same places every time"
        )
    return kept


def _halves(
    made: Bases, coefficients: Float[np.ndarray, "K Kt"], mean: float
) -> tuple[SeriesFeatures, SeriesCoefficients]:
    """The series as features of space, the mean as background, times the functions of time."""
    *space, temporal = made
    weight = np.ones(1)
    for basis in space:
        weight = np.multiply.outer(weight, scale(basis)).ravel()
    background = np.zeros((len(coefficients), 1))
    background[0] = mean
    features = np.hstack([background, weight[:, None] * coefficients])
    return SeriesFeatures(tuple(space), features), SeriesCoefficients(temporal, np.diag(scale(temporal)))
