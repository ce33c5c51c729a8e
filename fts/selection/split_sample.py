"""Posterior variance -> how far each patch is trusted: rows of the cross moments count less where it is high.

Where samples are far apart the field is a guess, and both halves guess alike: an error that cross products
do not remove. The process says beforehand where that is, from the places of the samples alone, so weights
made of it are independent of the noise and bias nothing. Weighing by 1 / variance would let every row bring
the same share of that error; by its square the badly known ones bring less. An error that is negligible
everywhere must not decide which rows count: it is what all variances are compared with.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from fts.equations.terms import Library
from fts.kernel.posterior import PosteriorVariance
from fts.params.types import WeakParams
from fts.selection.refits import coarser
from fts.weak.assembly import assemble


def row_weights(
    variance: PosteriorVariance, weak: WeakParams, phase: Float[np.ndarray, " d1"], negligible: float
) -> Float[np.ndarray, " m"]:
    """n / (n + v) for every patch: v its mean variance in units of the samples', n the negligible one.

    These are square roots of weights: both fields' rows are multiplied by them.
    """
    columns = assemble(variance, Library.parse(["1", "u"]), replace(weak, nodes=coarser(weak)), phase).A
    share = columns[:, 1] / columns[:, 0] / variance.posterior.scale**2
    return negligible / (negligible + share)
