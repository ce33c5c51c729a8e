"""Terms with an unknown coefficient function -> columns of a few splines each, and curves with their errors.

c(z)*u_zz becomes the columns B_k(z)*u_zz, which enter the search over supports as one term: together or not
at all. A constant coefficient is the simpler equation, and the search takes it where it does as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from fts.discovery.evidence import FLOOR, Evidence, SupportFit, weights_of
from fts.equations.expressions import unknown_axis
from fts.equations.grammar import TermError
from fts.equations.terms import Library
from fts.fields.varying import Curve, OneCoordinate, SplineBasis
from fts.observations import Observations
from fts.selection.moments import Moments

_MOST_SPLINES = 12
_LEAST_SPLINES = 4
_SENSORS = 2  # positions along the axis that a spline needs
_CURVATURE = 30.0  # tau
_ROWS = 100  # independent ones among those of overlapping patches, about
_POINTS = 200  # where the curvature is taken


@dataclass(frozen=True)
class ExpandedLibrary:
    """The terms of a library, and the columns that stand for each of them."""

    terms: Library
    library: Library
    groups: tuple[tuple[int, ...], ...]
    bases: Mapping[str, SplineBasis]  # by the letter of the axis

    @cached_property
    def functions(self) -> dict[str, OneCoordinate]:
        """Every spline by the name it has in a column."""
        bases = self.bases.items()
        return {_spline(axis, k): basis.single(k) for axis, basis in bases for k in range(basis.count)}

    def on(self, terms: Library) -> tuple[list[int], tuple[tuple[int, ...], ...]]:
        """The columns of some of the terms, and each one's places among these."""
        chosen = [self.groups[self.terms.terms.index(term)] for term in terms]
        ends = np.cumsum([len(group) for group in chosen])
        groups = tuple(tuple(range(end - len(group), end)) for group, end in zip(chosen, ends, strict=True))
        return list(chain.from_iterable(chosen)), groups if self.bases else ()


def expand(library: Library, samples: Sequence[Observations]) -> ExpandedLibrary:
    """The columns of all terms; refuses to let a coefficient vary along an axis that few sensors see."""
    axes = sorted({unknown_axis(term.unknown) for term in library} - {""})
    bases = {axis: _basis(axis, library, samples) for axis in axes}
    columns, groups = [], []
    for term in library:
        basis = bases.get(unknown_axis(term.unknown))
        names = [_spline(basis.axis, k) for k in range(basis.count)] if basis else []
        groups.append(tuple(range(len(columns), len(columns) + max(1, len(names)))))
        columns += [term.with_unknown(name) for name in names] or [term]
    return ExpandedLibrary(library, Library(tuple(columns)) if bases else library, tuple(groups), bases)


def _basis(axis: str, library: Library, samples: Sequence[Observations]) -> SplineBasis:
    """Splines over all samples along an axis, as many as its positions carry."""
    index = samples[0].domain.names.index(axis)
    positions = [np.unique(each.t if axis == "t" else each.x[:, index]) for each in samples]
    count = min(_MOST_SPLINES, min(map(len, positions)) // _SENSORS)
    if count < _LEAST_SPLINES:
        term = next(str(term) for term in library if unknown_axis(term.unknown) == axis)
        least, seen = _SENSORS * _LEAST_SPLINES, f"{min(map(len, positions))} positions along {axis}"
        raise TermError(
            f"{term} varies along {axis}, where {seen} were measured: measure at {least} or more, or take a "
            "constant coefficient"
        )
    low, high, closed = zip(*(each.domain.axes[index] for each in samples), strict=True)
    periodic = closed[0] and len(set(low)) == len(set(high)) == 1 and SplineBasis.may_close(count)
    return SplineBasis(axis, min(low), max(high), periodic, count)


def _spline(axis: str, k: int) -> str:
    """A name that no text of a term contains."""
    return f"B[{k}]({axis})"


def smoothed(evidence: Evidence, columns: ExpandedLibrary) -> Evidence:
    """The evidence with rows that ask curves to be smooth."""
    if not evidence.groups:
        return evidence
    total, size = evidence.regions.total, len(evidence.norms)
    variance = max(float(total.risk(total.solve())[0]), FLOOR) / _ROWS
    rows = np.zeros((size, size))
    for term, group in zip(evidence.library, evidence.groups, strict=True):
        if basis := columns.bases.get(unknown_axis(term.unknown)):
            norms, block = evidence.norms[list(group)], np.ix_(group, group)
            constant = np.sqrt(norms @ total.gram[0][block] @ norms)
            points = np.linspace(basis.low, basis.high, _POINTS)
            bends = (basis.high - basis.low) ** 2 * constant * basis(points, 2) / norms
            rows[block] = bends.T @ bends / (_POINTS * _CURVATURE**2)
    added = np.pad(variance * rows, (1, 0))
    moments = {
        name: Moments(each.products + added / (len(each.products) if name == "regions" else 1))
        for name in ("regions", "fields", "drawn")
        if (each := getattr(evidence, name)) is not None
    }
    return replace(evidence, **moments, doubt=variance**2 * rows)


def curves_of(evidence: Evidence, chosen: SupportFit, columns: ExpandedLibrary) -> dict[str, Curve]:
    """The curve of every chosen term whose coefficient varies, by the term's text."""
    if not columns.bases or not chosen.support:
        return {}
    weights, covariance = weights_of(evidence, chosen)
    curves, start = {}, 0
    for j in chosen.support:
        part = slice(start, start := start + len(evidence.columns(j)))
        if basis := columns.bases.get(unknown_axis(evidence.library[j].unknown)):
            curves[evidence.library.names[j]] = Curve(basis, weights[part], covariance[part, part])
    return curves
