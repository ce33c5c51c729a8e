"""Weak systems -> second moments of their columns [b, A], region by region: what is asked of any support.

[b A]^T [b A] holds b^T b, A^T b and A^T A. Fits of supports, what they leave, and both again without a region
are solves of |S| rows; the number of patches no longer matters.

With (A1, b1) and (A2, b2) of two fields on the same patches, sym([b1 A1]^T [b2 A2]) has the expectation it
would have without noise, because the noise of the halves is independent: solving it is an instrumental
variables estimate that nothing attenuates, and its risk estimates the unexplained part of b without noise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from fts.equations.terms import Library

# Regions left out in turn: enough for a standard error, few enough that each is longer than a field error.
_REGIONS = 16
# Added to the diagonal of Gram matrices of unit columns: dependent columns get large coefficients, no error.
_RIDGE = 1e-13


@dataclass(frozen=True)
class Moments:
    """Products of the columns [b, A], for n regions of space-time or n drawn fields."""

    products: Float[np.ndarray, "*batch n J1 J1"]

    @property
    def gram(self) -> Float[np.ndarray, "*batch n J J"]:
        """A^T A."""
        return self.products[..., 1:, 1:]

    @property
    def moment(self) -> Float[np.ndarray, "*batch n J"]:
        """A^T b."""
        return self.products[..., 1:, 0]

    @property
    def square(self) -> Float[np.ndarray, "*batch n"]:
        """b^T b."""
        return self.products[..., 0, 0]

    @property
    def total(self) -> "Moments":
        """The sum of all entries, as one."""
        return Moments(self.products.sum(axis=-3, keepdims=True))

    @property
    def without_each(self) -> "Moments":
        """The sum of all other entries, for every entry: what the jackknife is made of."""
        return Moments(self.total.products - self.products)

    def on(self, supports: Sequence[int] | Int[np.ndarray, "*batch m"]) -> "Moments":
        """Restricted to the columns of one support, or of every one of a batch of the same size."""
        columns = np.asarray(supports, dtype=int) + 1
        columns = np.concatenate([np.zeros((*columns.shape[:-1], 1), dtype=int), columns], axis=-1)
        return Moments(np.moveaxis(self.products[:, columns[..., :, None], columns[..., None, :]], 0, -3))

    def solve(self) -> Float[np.ndarray, "*batch n J"]:
        """Least squares coefficients of every entry; the moments are those of one field, hence definite."""
        terms = self.gram.shape[-1]
        # Relative to the entry's own size: draws and regions have other norms than the whole.
        size = np.trace(self.gram, axis1=-2, axis2=-1)[..., None, None] / max(terms, 1)
        ridge = (_RIDGE * size + np.finfo(float).tiny) * np.eye(terms)
        return np.linalg.solve(self.gram + ridge, self.moment[..., None])[..., 0]

    def minimum_norm(self) -> Float[np.ndarray, "n J"]:
        """The same where A^T A may be singular, or indefinite as cross moments are: the shortest solution."""
        pairs = zip(self.gram, self.moment, strict=True)
        return np.array([np.linalg.lstsq(gram, moment, rcond=None)[0] for gram, moment in pairs])

    def risk(self, x: Float[np.ndarray, "*batch #n J"]) -> Float[np.ndarray, "*batch n"]:
        """b^T b - 2 x^T A^T b + x^T A^T A x: what the coefficients leave of b."""
        linear = np.einsum("...j,...j->...", x, self.moment)
        return self.square - 2 * linear + np.einsum("...j,...jk,...k->...", x, self.gram, x)


@dataclass(frozen=True)
class CrossMoments:
    """Moments of two fields region by region, in units of the cross norms over all regions."""

    library: Library
    cross: Moments
    within: Moments  # the same products within one field, noise included
    norms: Float[np.ndarray, " J1"]  # cross norms; one where both fields share nothing of a column

    @property
    def reliability(self) -> Float[np.ndarray, " J1"]:
        """Share of each column, b first, that the fields agree on; one without noise."""
        shared, within = (np.diag(each.total.products[0]) for each in (self.cross, self.within))
        return np.divide(shared, within, out=np.zeros_like(within), where=within > 0)

    def physical(self, support: Sequence[int], x: Float[np.ndarray, " m"]) -> Float[np.ndarray, " J"]:
        """Coefficients of a support as those of the columns that were given, zero outside."""
        xi, inside = np.zeros(len(self.library)), list(support)
        xi[inside] = x * self.norms[0] / self.norms[1:][inside]
        return xi


def regions(centers: Float[np.ndarray, "m d1"]) -> Int[np.ndarray, " m"]:
    """About sixteen boxes of space-time of equal size, as a number per patch: field errors are local."""
    per_axis = max(2, round(_REGIONS ** (1 / centers.shape[1])))
    low, high = centers.min(axis=0), centers.max(axis=0)
    position = (centers - low) / np.where(high > low, high - low, 1.0) * per_axis
    return np.clip(position, 0, per_axis - 1).astype(int) @ per_axis ** np.arange(centers.shape[1])


def jackknife(estimates: Float[np.ndarray, "..."], axis: int = 0) -> Float[np.ndarray, "..."]:
    """Standard errors from estimates without each region, se^2 = (n-1)/n sum_k (x_-k - mean)^2."""
    return np.asarray(np.sqrt((estimates.shape[axis] - 1) * estimates.var(axis=axis)))


def by_region(columns: Float[np.ndarray, "m J1"], region: Int[np.ndarray, " m"]) -> Moments:
    """The moments of columns [b, A], given with the region of every row."""
    parts = (columns[region == k] for k in np.unique(region))
    return Moments(np.stack([part.T @ part for part in parts]))


def cross_moments(library: Library, rows: Iterable[tuple[np.ndarray, ...]]) -> CrossMoments:
    """The moments of columns [b, A] of two fields, given with the region of every row."""
    cross: dict[int, np.ndarray] = {}
    within: dict[int, np.ndarray] = {}
    for first, second, region in rows:
        for k in np.unique(region):
            a, b = first[region == k], second[region == k]
            product = a.T @ b
            cross[k] = cross.get(k, 0.0) + (product + product.T) / 2
            within[k] = within.get(k, 0.0) + (a.T @ a + b.T @ b) / 2
    if not cross:
        raise ValueError("no rows: give at least one pair of fields and one phase")
    stacked = np.stack([cross[k] for k in sorted(cross)])
    power = np.diag(stacked.sum(axis=0))
    norms = np.sqrt(np.where(power > 0, power, 1.0))
    units = np.outer(norms, norms)
    inner = np.stack([within[k] for k in sorted(within)])
    return CrossMoments(library, Moments(stacked / units), Moments(inner / units), norms)
