"""Error of a Gaussian process on slices of its own samples left out, from one fit.

Kernels and nugget -> better ones: the simplex search of Nelder and Mead, downhill along an error.

Sensor x frame samples -> kernels, length scales and nugget: those that predict slices left out best.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from jaxtyping import Float
from scipy import optimize

from fts.kernel.covariance import FAMILIES, Kernel, SampleAxis, Spectrum, decompose, multiply, precision


def left_out(
    spectra: Sequence[Spectrum], rotated: Float[np.ndarray, "..."], nugget: float, axis: int, part: SampleAxis
) -> tuple[float, float]:
    """Mean square error at a slice of `axis` left out, alone and with its neighbour, from one fit.

    In the eigenbasis of the other axes the block of (K + s)^-1 that belongs to slice j is diagonal, D_j, so
    the residual of the left-out slice is a_j / D_j with a = (K + s)^-1 y; a pair needs 2 x 2 solves.
    """
    weights = precision(spectra, nugget)
    if part.circulant:
        return _left_out_of_circle(np.moveaxis(weights, axis, 0), np.moveaxis(rotated, axis, 0))
    v = spectra[axis].vectors
    first, second = part.partners.T
    a = np.tensordot(v, rotated * weights, (1, axis))
    d = np.tensordot(v**2, weights, (1, axis))
    c = np.tensordot(v[first] * v[second], weights, (1, axis))
    inverse = _inverse(d[first] * d[second], c)
    one = (d[second] * a[first] - c * a[second]) * inverse
    two = (d[first] * a[second] - c * a[first]) * inverse
    return float(np.mean((a / d) ** 2)), float(np.mean(one**2 + two**2) / 2)


def _left_out_of_circle(
    weights: Float[np.ndarray, "n ..."], rotated: Float[np.ndarray, "n ..."]
) -> tuple[float, float]:
    """The same on a circle, where slices are alike: D and C are means over modes, sums follow Parseval."""
    n = len(weights)
    shift = np.cos(2 * np.pi / n * ((np.arange(n) + 1) // 2))  # of each real mode between neighbours
    d = np.mean(weights, axis=0)
    c = np.tensordot(shift, weights, 1) / n
    power = (rotated * weights) ** 2
    square, lagged = np.mean(power, axis=0), np.tensordot(shift, power, 1) / n
    pair = ((d**2 + c**2) * square - 2 * d * c * lagged) * _inverse(d**2, c) ** 2
    return float(np.mean(square / d**2)), float(np.mean(pair))


def _inverse(product_of_diagonals: np.ndarray, c: np.ndarray) -> np.ndarray:
    # The determinant of a 2 x 2 block is positive, but for rounding.
    return 1 / np.maximum(product_of_diagonals - c**2, 1e-12 * product_of_diagonals)


# Sides of the simplex, and differences of its values, at which the search ends.
_SIDE, _DIFFERENCE = 0.02, 0.005
# First steps of length scales and nugget; length scales within these fractions of the extents; nuggets.
_FIRST, _SHORTEST, _LONGEST, _NUGGET_LIMITS = (0.7, 0.05), 1e-3, 10.0, (1e-13, 10.0)

Error = Callable[[tuple[Kernel, ...], float], float]


def lowered(
    kernels: tuple[Kernel, ...], nugget: float, extents: tuple[float, ...], error: Error, most: int
) -> tuple[tuple[Kernel, ...], float]:
    """Length scales and nugget downhill from these: both change together along the valley."""
    ends = np.cumsum([len(chosen.lengths) for chosen in kernels])[:-1]
    low = np.log([*(_SHORTEST * np.array(extents)), _NUGGET_LIMITS[0]])
    high = np.log([*(_LONGEST * np.array(extents)), _NUGGET_LIMITS[1]])

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


# Nuggets of the coarse scan, in units of the kernel's variance; below the least, rounding acts as one.
_NUGGETS = tuple(10.0**k for k in range(-14, 1, 2))
_SCAN = 8  # length scales per factor in the coarse scan
_SWEEPS = 2
# Ratios of the pattern search that follows: (length scale, nugget).
_STEPS = ((1.4, 10.0), (1.1, 3.0))
_KEPT, _FEWEST_KEPT = 1 << 27, 8  # numbers in decompositions kept: a gigabyte
# Grids whose decompositions and products take more operations than this are searched on so many slices.
_OPERATIONS, _SLICES = 12e9, 350
_LEAST_GAIN = 1e-3  # a smaller relative decrease of the error is not worth another step


@dataclass(frozen=True)
class Choice:
    """What the search chose, and the root mean square error of leaving one slice out, per factor."""

    kernels: tuple[Kernel, ...]
    nugget: float
    errors: tuple[float, ...]


def search(
    parts: tuple[SampleAxis, ...],
    values: Float[np.ndarray, "..."],
    step: Callable[[], object],
    least: float = _NUGGETS[0],
) -> Choice:
    """Kernels, length scales and nugget with the least error on left-out slices and pairs, over all axes.

    A slice is a frame, a sensor or a grid line: what a protocol leaves out is what the criterion leaves out.
    `values` have mean zero and unit variance; `step` is called once per factor and sweep, and at the end. No
    nugget is below `least`.
    """
    allowed = tuple(s for s in _NUGGETS if s >= least)
    every = range(len(parts))
    size = prod(len(part.points) for part in parts)
    # eigenvectors of every axis that is no circle, and their products with all values
    turned = (len(part.points) for part in parts if not part.circulant)
    if sum(n**3 + n * size for n in turned) > _OPERATIONS:
        return _search_thinned(parts, values, step, least)
    error = _errors(parts, values)
    kernels = tuple(_candidates(part)[1] for part in parts)
    # The axis with the largest error decides about the nugget; the others follow it.
    order = sorted(every, key=lambda axis: -min(sum(error(kernels, s, axis)) for s in allowed[::2]))
    nugget = allowed[0]
    for sweep, axis in product(range(_SWEEPS), order):
        nuggets = allowed if (sweep, axis) == (0, order[0]) else (nugget,)
        around = [
            (*kernels[:axis], candidate, *kernels[axis + 1 :]) for candidate in _candidates(parts[axis])
        ]
        tried = [(sum(error(k, s, axis)), i, s) for i, k in enumerate(around) for s in nuggets]
        _, best, nugget = min(tried)
        kernels = around[best]
        step()
    kernels, nugget = polish(
        kernels, nugget, lambda k, s: sum(sum(error(k, s, axis)) for axis in every), _STEPS, least
    )
    step()
    return Choice(kernels, nugget, tuple(float(np.sqrt(error(kernels, nugget, axis)[0])) for axis in every))


def _search_thinned(
    parts: tuple[SampleAxis, ...], values: np.ndarray, step: Callable[[], object], least: float
) -> Choice:
    """The better of two searches, on slices from all over and on a block, judged where samples are dense."""
    spread, block = (
        _part_of(parts, values, [pick(part) for part in parts]) for pick in (_every_so_many, _innermost)
    )
    found = [search(*thinned, step, least) for thinned in (spread, block)]
    judge = _errors(*block)

    def judged(choice: Choice) -> tuple[float, ...]:
        return tuple(judge(choice.kernels, choice.nugget, axis)[0] for axis in range(len(parts)))

    best = min(found, key=lambda choice: sum(judged(choice)))
    return Choice(best.kernels, best.nugget, tuple(float(np.sqrt(e)) for e in judged(best)))


def _every_so_many(part: SampleAxis) -> np.ndarray:
    return np.arange(len(part.points))[:: -(-len(part.points) // _SLICES)]


def _innermost(part: SampleAxis) -> np.ndarray:
    """The slices nearest to the middle, in their order."""
    scaled = (part.points - np.median(part.points, axis=0)) / np.array(part.extents)
    return np.sort(np.argsort(np.max(np.abs(scaled), axis=1), kind="stable")[:_SLICES])


def _part_of(
    parts: tuple[SampleAxis, ...], values: np.ndarray, rows: list[np.ndarray]
) -> tuple[tuple[SampleAxis, ...], np.ndarray]:
    thinned = tuple(
        SampleAxis(part.points[own], part.extents, part.periods)
        for part, own in zip(parts, rows, strict=True)
    )
    return thinned, values[np.ix_(*rows)]


def _errors(
    parts: tuple[SampleAxis, ...], values: np.ndarray
) -> Callable[[tuple[Kernel, ...], float, int], tuple[float, float]]:
    """`left_out` as a function of kernels, nugget and axis, with every decomposition made once."""
    every = range(len(parts))
    for axis in every:
        # Fourier modes do not depend on the kernel: the samples turn into them here, once.
        if parts[axis].circulant:
            values = multiply(values, parts[axis].modes.T, axis)

    # A second sweep meets the candidates of the first again; the limit bounds the memory of large grids.
    largest = max(len(part.points) for part in parts)

    @functools.lru_cache(maxsize=max(_FEWEST_KEPT, _KEPT // largest**2))
    def spectrum(axis: int, chosen: Kernel) -> Spectrum:
        return decompose(parts[axis], chosen)

    @functools.lru_cache(maxsize=4)
    def rotated(kernels: tuple[Kernel, ...]) -> np.ndarray:
        tensor = values
        for axis in every:
            if not parts[axis].circulant:
                tensor = multiply(tensor, spectrum(axis, kernels[axis]).vectors.T, axis)
        return tensor

    def error(kernels: tuple[Kernel, ...], nugget: float, axis: int) -> tuple[float, float]:
        spectra = [spectrum(i, chosen) for i, chosen in enumerate(kernels)]
        return left_out(spectra, rotated(kernels), nugget, axis, parts[axis])

    return error


def _candidates(part: SampleAxis) -> list[Kernel]:
    # From the mean spacing, below which samples know nothing of each other, to the whole extent.
    n = len(part.points) ** (1 / len(part.extents))
    fractions = np.geomspace(1 / n, 1, _SCAN)
    return [
        Kernel(family, tuple(float(f * extent) for extent in part.extents))
        for family in FAMILIES
        for f in fractions
    ]


def polish(
    kernels: tuple[Kernel, ...],
    nugget: float,
    error: Callable[[tuple[Kernel, ...], float], float],
    steps: Sequence[tuple[float, float]],
    least: float,
) -> tuple[tuple[Kernel, ...], float]:
    """Pattern search over all length scales and the nugget, downhill; `steps` are ratios of both."""
    coordinates = [(axis, i) for axis, chosen in enumerate(kernels) for i in range(len(chosen.lengths))]
    best = error(kernels, nugget)
    for ratio, factor in steps:
        moves = [(factor, None), (1 / factor, None), *product((ratio, 1 / ratio), coordinates)]
        before = np.inf
        while best < before * (1 - _LEAST_GAIN):
            before = best
            for move in moves:
                trial = _moved(kernels, nugget, *move)
                while trial[1] >= least and (value := error(*trial)) < best * (1 - _LEAST_GAIN):
                    (kernels, nugget), best = trial, value
                    trial = _moved(kernels, nugget, *move)
    return kernels, nugget


def _moved(
    kernels: tuple[Kernel, ...], nugget: float, ratio: float, coordinate: tuple[int, int] | None
) -> tuple[tuple[Kernel, ...], float]:
    if coordinate is None:
        return kernels, nugget * ratio
    axis, i = coordinate
    lengths = kernels[axis].lengths
    changed = Kernel(kernels[axis].family, (*lengths[:i], lengths[i] * ratio, *lengths[i + 1 :]))
    return (*kernels[:axis], changed, *kernels[axis + 1 :]), nugget
