"""Pairs of fields -> cross moments of their weak systems, region by region.

With (A1, b1) and (A2, b2) on the same patches, sym([b1 A1]^T [b2 A2]) has the expectation it would have
without noise, because the noise of the halves is independent: solving it is an instrumental-variable estimate
that nothing attenuates, and b1^T b2 - 2 c^T xi + xi^T G xi estimates the unexplained part with no noise
floor. All that follows works on these matrices of J + 1 rows; the number of patches no longer matters.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.params.types import WeakParams
from fts.selection.refits import regions
from fts.selection.split_sample import Pair
from fts.weak.assembly import assemble


@dataclass(frozen=True)
class CrossMoments:
    """CrossMoments of the columns [b, A], per region; in units of the cross norms over all regions."""

    library: Library
    cross: Float[np.ndarray, "regions J1 J1"]
    own: Float[np.ndarray, "regions J1 J1"]  # the same products within one field, noise included
    norms: Float[np.ndarray, " J1"]  # cross norms; one where both fields share nothing of a column

    @property
    def total(self) -> Float[np.ndarray, "J1 J1"]:
        """Cross moments over all regions."""
        return self.cross.sum(axis=0)

    @property
    def reliability(self) -> Float[np.ndarray, " J1"]:
        """Share of each column, b first, that the fields agree on; one without noise."""
        own = np.diag(self.own.sum(axis=0))
        return np.divide(np.diag(self.total), own, out=np.zeros_like(own), where=own > 0)

    def physical(self, x: Float[np.ndarray, " J"]) -> Float[np.ndarray, " J"]:
        """Coefficients of the columns as they were given."""
        return x * self.norms[0] / self.norms[1:]


def measure(
    pairs: Sequence[Pair] | Sequence[tuple[Field, Field]],
    library: Library,
    weak: WeakParams,
    phases: Iterable[Float[np.ndarray, " d1"]],
    trusts: Callable[[Float[np.ndarray, " d1"]], Float[np.ndarray, " m"]] = lambda _: np.ones(1),
) -> CrossMoments:
    """The moments of all pairs on the patches of all phases, averaged over the pairs.

    `trusts` gives a factor for every row of a phase; without it all rows count alike.
    """
    rows = []
    for phase in phases:
        trust = trusts(phase)[:, None]
        for first, second in pairs:
            one, two = (assemble(field, library, weak, phase) for field in (first, second))
            columns = [trust * np.column_stack([system.b, system.A]) for system in (one, two)]
            rows.append((*columns, regions(one.centers)))
    return from_rows(library, rows)


def from_rows(library: Library, rows: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> CrossMoments:
    """CrossMoments of columns [b, A] of two fields, given with the region of every row."""
    cross: dict[int, np.ndarray] = {}
    own: dict[int, np.ndarray] = {}
    for first, second, region in rows:
        for k in np.unique(region):
            a, b = first[region == k], second[region == k]
            product = a.T @ b
            cross[k] = cross.get(k, 0.0) + (product + product.T) / 2
            own[k] = own.get(k, 0.0) + (a.T @ a + b.T @ b) / 2
    if not cross:
        raise ValueError("no rows: give at least one pair of fields and one phase")
    stacked = np.stack([cross[k] for k in sorted(cross)])
    power = np.diag(stacked.sum(axis=0))
    norms = np.sqrt(np.where(power > 0, power, 1.0))
    units = np.outer(norms, norms)
    return CrossMoments(library, stacked / units, np.stack([own[k] for k in sorted(own)]) / units, norms)
