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

from fts.params.types import WeakParams
from fts.selection.refits import coarser
from fts.weak.assembly import bump_integral


def row_weights(
    variances: Float[np.ndarray, "..."], weak: WeakParams, scale: float, negligible: float
) -> Float[np.ndarray, "..."]:
    """n / (n + v) for every patch: v its mean variance in units of the samples', n the negligible one.

    `variances` are those of rows (`refits.row_variances`), `scale` is the deviation of the samples. The
    weights are square roots: both fields' rows are multiplied by them.
    """
    share = variances / bump_integral(replace(weak, nodes=coarser(weak))) / scale**2
    return negligible / (negligible + share)
