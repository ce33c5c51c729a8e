"""Samples -> seconds that a fit will take on one core, estimated before the long part of it begins.

Measured on one core of a laptop-like machine; a factor of two either way is what to expect.
"""

from collections.abc import Sequence
from math import prod

from fts.kernel.covariance import Kernel, SampleAxis
from fts.kernel.normal import waves_of
from fts.kernel.slices import Arranged

_EIGENVECTORS = 2e-10  # seconds per cube of a matrix's size
_DECOMPOSITIONS = 2  # of the whole grid: what a search takes beyond these is bounded
_POINT = 3e-8  # seconds per point of the grid in one step of conjugate gradients
# Steps of all solves with all samples: the error of what is left out, draws that calibrate it, the field.
_STEPS = 400
_SUM = (2e-7, 1e-6, 1e-5)  # seconds per sample and Fourier sum, by the number of axes
_SUMS = 20
_MOST_AXES = 3  # of one transform; the waves of a fourth axis are summed one by one


def of_grid(parts: Sequence[SampleAxis]) -> float:
    """Seconds that a sensor x frame grid takes beyond its search, which is bounded."""
    return _EIGENVECTORS * _DECOMPOSITIONS * sum(len(p.points) ** 3 for p in parts if not p.circulant)


def of_scattered(layout: Arranged, kernels: tuple[Kernel, ...], nugget: float) -> float:
    """Seconds that all samples take once kernels are chosen: their sums, and the steps of the solves."""
    _, box = waves_of(layout, kernels, nugget, layout.slices)
    axes = len(box.most)
    single = _SUM[min(axes, _MOST_AXES) - 1] * prod(box.shape[_MOST_AXES:])
    return _SUMS * single * layout.count + _STEPS * _POINT * layout.slices * prod(box.grid)
