"""Observations -> pairs of fields fitted to disjoint halves of the samples, with independent noise.

Kernels and nugget are searched once, on all samples; a half is one more solve with them. The halves are taken
along the axis that is sampled most densely for its length scale, so that each still resolves the field: every
other frame where sensors are few, every other sensor where frames are.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from fts.cross.splits import lowered, splits
from fts.kernel.covariance import SampleAxis, decompose, precision, rotate
from fts.kernel.posterior import Posterior
from fts.observations import LEAST_POINTS, Observations
from fts.params import TwoFieldsParams

Pair = tuple[Posterior, Posterior]


def halves(observations: Observations, posterior: Posterior, params: TwoFieldsParams) -> tuple[Pair, ...]:
    """Pairs of half fields, one pair per split; none where no axis has samples enough for two."""
    axis = split_axis(posterior)
    part = posterior.parts[axis]
    if observations.grid is None or len(part.points) < 2 * LEAST_POINTS:
        return ()
    sizes = (len(each.points) for each in posterior.parts)
    values = ((observations.grid.values - posterior.mean) / posterior.scale).reshape(*sizes)
    nugget = lowered(posterior.choice.nugget, params.smoothing, posterior.weights.size)
    rng = np.random.default_rng(params.split_seed)
    return tuple(
        (
            _condition(posterior, values, axis, first, nugget),
            _condition(posterior, values, axis, ~first, nugget),
        )
        for first in splits(part, params.splits, rng)
    )


def split_axis(posterior: Posterior) -> int:
    """The axis with the smallest spacing of samples in units of its kernel's length scale."""

    def spacing(axis: int) -> float:
        part, lengths = posterior.parts[axis], np.array(posterior.choice.kernels[axis].lengths)
        relative = np.exp(np.mean(np.log(np.array(part.extents) / lengths)))
        return float(relative / len(part.points) ** (1 / len(lengths)))

    return min(range(len(posterior.parts)), key=spacing)


def _condition(
    posterior: Posterior,
    values: Float[np.ndarray, "..."],
    axis: int,
    kept: Bool[np.ndarray, " n"],
    nugget: float,
) -> Posterior:
    """The process given the samples at the kept points of one axis."""
    part = posterior.parts[axis]
    parts, spectra = list(posterior.parts), list(posterior.spectra)
    parts[axis] = SampleAxis(part.points[kept], part.extents, part.periods)
    spectra[axis] = decompose(parts[axis], posterior.choice.kernels[axis])
    weights = rotate(np.compress(kept, values, axis), spectra) * precision(spectra, nugget)
    choice = replace(posterior.choice, nugget=nugget)
    return replace(posterior, parts=tuple(parts), spectra=tuple(spectra), choice=choice, weights=weights)
