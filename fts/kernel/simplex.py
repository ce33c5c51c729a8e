"""Kernels and nugget -> better ones: the simplex search of Nelder and Mead, downhill along an error."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import optimize

from fts.kernel.covariance import Kernel

# Sides of the simplex, and differences of its values, at which the search ends.
_SIDE, _DIFFERENCE = 0.02, 0.005
# First steps of length scales and nugget; length scales within these fractions of the extents; nuggets.
_FIRST, _SHORTEST, _LONGEST, _NUGGETS = (0.7, 0.05), 1e-3, 10.0, (1e-13, 10.0)

Error = Callable[[tuple[Kernel, ...], float], float]


def lowered(
    kernels: tuple[Kernel, ...], nugget: float, extents: tuple[float, ...], error: Error, most: int
) -> tuple[tuple[Kernel, ...], float]:
    """Length scales and nugget downhill from these: both change together along the valley."""
    ends = np.cumsum([len(chosen.lengths) for chosen in kernels])[:-1]
    low = np.log([*(_SHORTEST * np.array(extents)), _NUGGETS[0]])
    high = np.log([*(_LONGEST * np.array(extents)), _NUGGETS[1]])

    def unpacked(logarithms: np.ndarray) -> tuple[tuple[Kernel, ...], float]:
        *lengths, last = np.exp(np.clip(logarithms, low, high)).tolist()
        own = np.split(np.array(lengths), ends)
        chosen = zip(kernels, own, strict=True)
        return tuple(Kernel(k.family, tuple(each.tolist())) for k, each in chosen), last

    start = np.log([*(length for chosen in kernels for length in chosen.lengths), nugget])
    steps = np.log([*[_FIRST[0]] * (len(start) - 1), _FIRST[1]])
    return unpacked(downhill(lambda p: float(np.log(error(*unpacked(p)))), start, steps, most))


def downhill(
    error: Callable[[np.ndarray], float],
    start: Float[np.ndarray, " n"],
    steps: Float[np.ndarray, " n"],
    most: int,
) -> Float[np.ndarray, " n"]:
    """The best of at most `most` points tried, the start among them; `steps` span the first simplex."""
    simplex = np.vstack([start, start + np.diag(steps)])
    options = {"initial_simplex": simplex, "maxfev": most, "xatol": _SIDE, "fatol": _DIFFERENCE}
    return optimize.minimize(error, start, method="Nelder-Mead", options=options).x
