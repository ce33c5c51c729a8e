"""Scattered samples -> pairs of fields from disjoint halves: of every two neighbours in space-time, one each.

Neighbours are near in units of the kernel's length scales, so that either half covers what the whole does.
The kernels are those chosen on all samples; a half is one more solve with them.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from fts.cross.splits import lowered, splits
from fts.kernel.covariance import SampleAxis
from fts.kernel.scattered import ScatteredPosterior, solved
from fts.kernel.slices import Sums, arrange
from fts.observations import LEAST_POINTS, Observations
from fts.params import TwoFieldsParams

ScatteredPair = tuple[ScatteredPosterior, ScatteredPosterior]


def scattered_halves(
    observations: Observations, posterior: ScatteredPosterior, params: TwoFieldsParams
) -> tuple[ScatteredPair, ...]:
    """Pairs of half fields, one pair per split; none where a half has too few samples for a field."""
    n = len(observations)
    if n < 2 * LEAST_POINTS**2:
        return ()
    rng = np.random.default_rng(params.split_seed)
    nugget = lowered(posterior.choice.nugget, params.smoothing, n)
    return tuple(
        (_given(observations, posterior, first, nugget), _given(observations, posterior, ~first, nugget))
        for first in splits(_places(observations, posterior), params.splits, rng)
    )


def _places(observations: Observations, posterior: ScatteredPosterior) -> SampleAxis:
    """The samples as points of space-time in units of the length scales."""
    space, time = posterior.choice.kernels
    points = np.column_stack([observations.x / np.array(space.lengths), observations.t / time.lengths[0]])
    axes = points.shape[1]
    return SampleAxis(points, (1.0,) * axes, (None,) * axes)


def _given(
    observations: Observations, posterior: ScatteredPosterior, kept: Bool[np.ndarray, " n"], nugget: float
) -> ScatteredPosterior:
    """The process given the kept samples."""
    values = (observations.y[kept] - posterior.mean) / posterior.scale
    sliced = posterior.system.layout.sliced
    sums = Sums(arrange(observations.x[kept], observations.t[kept], observations.domain, sliced), values)
    choice, system, solution = solved(sums, replace(posterior.choice, nugget=nugget))
    return replace(
        posterior, sums=sums, system=system, z=solution.z, choice=choice, steps=solution.steps, seconds=0.0
    )
