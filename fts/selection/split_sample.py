"""Settings of selection by two fields, and the large libraries it is meant for.

Points -> ways of halving them so that each half covers what the whole does, and the halves' nugget.

Observations -> pairs of fields fitted to disjoint halves of the samples, with independent noise.

Kernels and nugget are searched once, on all samples; a half is one more solve with them. The halves are taken
along the axis that is sampled most densely for its length scale, so that each still resolves the field: every
other frame where sensors are few, every other sensor where frames are.

Scattered samples -> pairs of fields from disjoint halves: of every two neighbours in space-time, one each.

Neighbours are near in units of the kernel's length scales, so that either half covers what the whole does.
The kernels are those chosen on all samples; a half is one more solve with them.

Posterior variance -> how far each patch is trusted: rows of the cross moments count less where it is high.

Where samples are far apart the field is a guess, and both halves guess alike: an error that cross products
do not remove. The process says beforehand where that is, from the places of the samples alone, so weights
made of it are independent of the noise and bias nothing. Weighing by 1 / variance would let every row bring
the same share of that error; by its square the badly known ones bring less. An error that is negligible
everywhere must not decide which rows count: it is what all variances are compared with.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial import KDTree

from fts.equations.terms import Library
from fts.kernel.closed_form import Variance
from fts.kernel.covariance import SampleAxis, decompose, precision, rotate
from fts.kernel.fourier import Sums, arrange
from fts.kernel.scattered import ScatteredPosterior, solved
from fts.kernel.separable import Posterior
from fts.observations import LEAST_POINTS, Observations
from fts.params.types import WeakParams
from fts.selection.instrumental import TwoFieldsParams
from fts.selection.refits import coarser
from fts.weak.assembly import assemble


def splits(part: SampleAxis, count: int, rng: np.random.Generator) -> Iterator[Bool[np.ndarray, " n"]]:
    """Ways of halving the points of an axis: of every two neighbours the first, and then one by lot."""
    n = len(part.points)
    # Scattered points have no order: the leaves of a tree put neighbours beside each other.
    order = np.arange(n) if part.points.shape[1] == 1 else KDTree(part.points, leafsize=2).indices
    for number in range(count):
        flips = rng.integers(0, 2, (n + 1) // 2) if number else np.zeros((n + 1) // 2, dtype=int)
        first = np.empty(n, dtype=bool)
        first[order] = np.arange(n) % 2 == np.repeat(flips, 2)[:n]
        yield first


def lowered(nugget: float, smoothing: float, samples: int) -> float:
    """A smaller nugget: the smoothing error is shared by both halves, and cross products do not remove it.

    Never below rounding, unless the search itself went there.
    """
    rounding = float(np.finfo(float).eps) * samples
    return min(nugget, max(smoothing * nugget, rounding))


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


def row_weights(
    variance: Variance, weak: WeakParams, phase: Float[np.ndarray, " d1"], negligible: float
) -> Float[np.ndarray, " m"]:
    """n / (n + v) for every patch: v its mean variance in units of the samples', n the negligible one.

    These are square roots of weights: both fields' rows are multiplied by them.
    """
    columns = assemble(variance, Library.parse(["1", "u"]), replace(weak, nodes=coarser(weak)), phase).A
    share = columns[:, 1] / columns[:, 0] / variance.posterior.scale**2
    return negligible / (negligible + share)
