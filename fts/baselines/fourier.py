"""Fourier series along the axes of a box: their functions, and where samples left out can be predicted."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float

from fts.domain import Domain
from fts.fields.series import Basis
from fts.params.types import SpectralParams

# One basis per spatial axis, then one for time.
Bases = tuple[Basis, ...]
# Series by their numbers of waves in space and in time.
Tried = Mapping[tuple[int, int], Bases]


def bases(domain: Domain, waves: tuple[int, int], params: SpectralParams) -> Bases:
    """So many waves along every spatial axis and in time, continued beyond the axes that do not close."""
    counts = (*(waves[0] for _ in domain.low), waves[1])
    made = []
    for low, extent, k, periodic in zip(
        (*domain.low, domain.t0), domain.extents, counts, (*domain.periodic, False), strict=True
    ):
        period = extent if periodic else params.continuation * extent
        made.append(Basis(low, low + period, True, 2 * k + 1))
    return tuple(made)


def scale(basis: Basis) -> Float[np.ndarray, " size"]:
    """What gives the functions 1, cos, sin, ... unit mean square over a period."""
    return np.where(np.arange(basis.size) == 0, 1.0, np.sqrt(2.0))


def functions(bases: Bases, points: Float[np.ndarray, "n axes"]) -> Float[np.ndarray, "n K"]:
    """Products of the functions of unit mean square at scattered points, the last axis varying fastest."""
    rows = np.ones((len(points), 1))
    for basis, column in zip(bases, points.T, strict=True):
        values = basis.at(column, 0) * scale(basis)
        rows = (rows[:, :, None] * values[:, None, :]).reshape(len(points), -1)
    return rows


def inner_places(domain: Domain, x: Float[np.ndarray, "n d"], ends: float) -> Bool[np.ndarray, " n"]:
    """Places not at the very ends of an axis that does not close: nobody predicts beyond the data."""
    inside = np.ones(len(x), dtype=bool)
    for column, low, high, periodic in zip(x.T, domain.low, domain.high, domain.periodic, strict=True):
        if not periodic:
            inside &= _inner(column, low, high, ends)
    return inside


def inner_times(domain: Domain, t: Float[np.ndarray, " n"], ends: float) -> Bool[np.ndarray, " n"]:
    """Times that are not at the very ends of the record."""
    return _inner(t, domain.t0, domain.t1, ends)


def _inner(values: np.ndarray, low: float, high: float, ends: float) -> np.ndarray:
    slack = ends * (high - low)
    inside = (values >= low + slack) & (values <= high - slack)
    if not inside.any():
        raise ValueError(f"no sample lies {ends:.0%} of the axis inside [{low:g}, {high:g}]: lower `ends`")
    return inside
