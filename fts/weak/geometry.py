"""Field -> WeakParams: patches for a problem the paper has no table for, from the field alone.

Half-widths follow the corner rule of WSINDy: beyond the corner wavenumber k* of an axis the spectrum of the
field is tail, so the test function should pass what lies below and damp what lies above. rho_p of half-width
h has a nearly Gaussian spectrum of width sqrt(2 p + 3) / h; k* is put `tail` widths out:

    h = tail sqrt(2 p + 3) / k*.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import prod

import numpy as np
from jaxtyping import Float

from fts.equations.algebra import symbol
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.fields.system import Fields, components
from fts.observations import InsufficientData
from fts.params.types import WeakParams
from fts.weak.assembly import U_T, WeakSystem, assemble


@dataclass(frozen=True)
class GeometryParams:
    """What the automatic geometry aims at.

    tail: the best of 0.25 ... 3 on kernel fields of KS and KdV with 10 % noise, development seeds 42 and 505.
    """

    tail: float = 2.0  # how many spectral widths of the test function lie below the corner wavenumber
    patches: int = 300  # rows of one system, about
    samples: tuple[int, int, int] = (256, 64, 32)  # points per axis of the spectrum, by dimension
    narrowest: int = 6  # a half-width spans at least so many of these samples
    widest: float = 0.2  # and at most this fraction of the axis
    accuracy: tuple[float, float, float] = (1e-6, 1e-6, 1e-4)  # relative, of a column, by dimension
    most_nodes: tuple[int, int, int] = (96, 32, 16)  # nodes per patch and axis, by dimension


GENERAL = GeometryParams()


def automatic(field: Fields, library: Library, params: GeometryParams = GENERAL) -> WeakParams:
    """Half-widths from the field's spectrum, some 300 patches, as many nodes as the quadrature needs.

    Of several components the one with the finest structure decides.

    The power is twice the highest derivative order, the paper's own choice, but at least 6. Gauss's rule wins
    on smooth fields, above all in several dimensions; midpoints cope better with the kinks of splines. The
    field decides: the rule that needs fewer nodes is taken.
    """
    d, extents, power = field.domain.dimension, field.domain.extents, power_for(library)
    n, width = params.samples[d - 1], params.tail * np.sqrt(2 * power + 3)
    half_widths = tuple(
        float(np.clip(width / k, params.narrowest * extent / n, params.widest * extent))
        for k, extent in zip(corners(field, params), extents, strict=True)
    )
    patches = _patch_counts(half_widths, extents, params.patches)
    start = WeakParams(half_widths, patches, (2 * power,) * (d + 1), power)
    gauss = replace(start, nodes=(power + 2,) * (d + 1), rule="gauss")
    refined = [refine_nodes(field, library, each, params) for each in (gauss, start)]
    return min(refined, key=lambda each: prod(each.nodes))


def power_for(library: Library) -> int:
    """The power of the test function: twice the highest derivative order, at least 6."""
    return max(6, 2 * library.order)


def corners(field: Fields, params: GeometryParams = GENERAL) -> list[float]:
    """Corner wavenumber of each axis, space and then time: the largest of all components."""
    every = [_corners(each, params) for each in components(field).values()]
    return [max(axis) for axis in zip(*every, strict=True)]


def _corners(field: Field, params: GeometryParams) -> list[float]:
    domain, n = field.domain, params.samples[field.domain.dimension - 1]
    u = field.on_grid(*(low + (high - low) * (np.arange(n) + 0.5) / n for low, high, _ in domain.axes))
    return [
        _corner(np.moveaxis(u, i, -1).reshape(-1, n), high - low, closed, name)
        for i, (name, (low, high, closed)) in enumerate(zip(domain.names, domain.axes, strict=True))
    ]


def _corner(rows: Float[np.ndarray, "m n"], extent: float, periodic: bool, name: str) -> float:
    """Where the cumulative amplitude spectrum bends: the best fit by two straight lines that meet there."""
    n = rows.shape[1]
    if not periodic:
        # A jump between the ends would put a slow 1/k tail under the spectrum: take off the line that joins
        # them and taper.
        ramp = np.linspace(0.0, 1.0, n)
        rows = rows - rows[:, :1] - (rows[:, -1:] - rows[:, :1]) * ramp
        rows = rows * np.hanning(n)
    else:
        rows = rows - rows.mean(axis=1, keepdims=True)
    amplitude = np.abs(np.fft.rfft(rows, axis=1)).mean(axis=0)[1:]
    if amplitude.max() == 0.0:
        raise InsufficientData(
            f"the field does not vary along {name}, so terms cannot be told apart: measure a record in which "
            "it does" + ("" if name == "t" else ", or drop the axis")
        )
    total = np.cumsum(amplitude)
    misfits = [_line_misfit(total[: i + 1]) + _line_misfit(total[i:]) for i in range(1, len(total) - 1)]
    corner = 1 + int(np.argmin(misfits))
    return 2 * np.pi * (corner + 1) / extent


def _line_misfit(values: np.ndarray) -> float:
    """Relative misfit of the straight line through the first and the last value."""
    line = np.linspace(values[0], values[-1], len(values))
    return float(np.linalg.norm((values - line) / values[-1]))


def _patch_counts(half_widths: tuple[float, ...], extents: tuple[float, ...], wanted: int) -> tuple[int, ...]:
    """Counts in proportion to the half-widths that fit, at least three per axis, in all near `wanted`."""
    fits = np.array([(extent - 2 * h) / h for h, extent in zip(half_widths, extents, strict=True)])
    counts = np.full(len(fits), 3.0)
    free = np.ones(len(fits), dtype=bool)
    while free.any():
        factor = (wanted / prod(counts[~free]) / prod(fits[free])) ** (1 / free.sum())
        low = free & (factor * fits < 3)
        if not low.any():
            counts[free] = factor * fits[free]
            break
        free &= ~low
    return tuple(round(float(count)) for count in counts)


def refine_nodes(
    field: Fields, library: Library, start: WeakParams, params: GeometryParams = GENERAL
) -> WeakParams:
    """Nodes raised axis by axis until half as many again change no column by more than `accuracy`."""
    most, accuracy = (each[field.domain.dimension - 1] for each in (params.most_nodes, params.accuracy))
    probe = replace(start, patches=tuple(min(count, 4) for count in start.patches))
    phase = np.full(len(start.nodes), 0.5)
    target = replace(U_T, q=symbol(next(iter(components(field)))))  # the first component has an equation

    @cache
    def columns(nodes: tuple[int, ...]) -> np.ndarray:
        return _columns(assemble(field, library, replace(probe, nodes=nodes), phase, target))

    nodes = start.nodes
    for axis in range(len(nodes)):
        while nodes[axis] < most:
            more = min(most, nodes[axis] + (nodes[axis] + 1) // 2)
            finer = tuple(more if a == axis else n for a, n in enumerate(nodes))
            change = np.linalg.norm(columns(finer) - columns(nodes), axis=0)
            if (change <= accuracy * np.linalg.norm(columns(finer), axis=0)).all():
                break
            nodes = finer
    return replace(start, nodes=nodes)


def _columns(system: WeakSystem) -> Float[np.ndarray, "m J1"]:
    return np.column_stack([system.b, system.A])
