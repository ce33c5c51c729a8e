"""Error of a Gaussian process on slices of its own samples left out, from one fit."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from fts.kernel.covariance import SampleAxis, Spectrum, precision


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
