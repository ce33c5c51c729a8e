"""A frozen field -> the bytes a page carries: every spatial half as a series, all that a browser evaluates.

The features of a network are analytic, so few Chebyshev coefficients hold them: the shipped fields take 32 to
146 KB with float32 series, 85 KB in the mean, where they take 76 to 89 KB with weights, 84 KB in the mean.
Features then agree to 4e-7 of their largest values and columns of weak systems to 1e-7.
"""

import hashlib
import tempfile
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from fts.domain import Domain
from fts.fields.frozen import FrozenField
from fts.fields.network import Features
from fts.fields.series import Basis, SeriesFeatures

# Relative to a feature's largest coefficient; float32 resolves 6e-8.
_TOLERANCE = 5e-8
_FEWEST = 32
# Points at which features are sampled at most: 512 on each of two axes.
_MOST = 1 << 18


def field_bytes(field: FrozenField) -> bytes:
    """The field's file, with series in place of a network."""
    if field.space.kind != "series":
        field = replace(field, space=chebyshev_features(field.space, field.domain))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.fts"
        field.save(path)
        return path.read_bytes()


def field_key(data: bytes) -> str:
    """Sixteen hex digits that name a field by its content."""
    return hashlib.sha256(data).hexdigest()[:16]


def chebyshev_features(space: Features, domain: Domain) -> SeriesFeatures:
    """Features on the domain as float32 Chebyshev series along every axis, cut where all are below 5e-8."""
    sizes = [_FEWEST] * domain.dimension
    while prod(sizes) <= _MOST:
        series = _transform(space, _bases(domain, sizes))
        kept = _sizes_above(series)
        # Once the last eighth is below the tolerance, what the nodes cannot tell apart is too.
        rough = [k > n - n // 8 for k, n in zip(kept, sizes, strict=True)]
        if not any(rough):
            cut = series[tuple(slice(k) for k in kept)]
            return SeriesFeatures(_bases(domain, kept), cut.reshape(-1, series.shape[-1]).astype(np.float32))
        sizes = [2 * n if more else n for n, more in zip(sizes, rough, strict=True)]
    raise ValueError(f"{_MOST} coefficients do not hold these features: fit a smoother field to explore it")


def _bases(domain: Domain, sizes: list[int]) -> tuple[Basis, ...]:
    axes = zip(domain.low, domain.high, sizes, strict=True)
    return tuple(Basis(low, high, False, size) for low, high, size in axes)


def _transform(space: Features, bases: tuple[Basis, ...]) -> np.ndarray:
    """Coefficients [n_1, ..., n_d, R + 1] from values at the bases' nodes, one axis after the other."""
    values = space.on_axes(tuple(basis.nodes for basis in bases), (0,) * len(bases))
    series = values.reshape(*(basis.size for basis in bases), -1)
    for axis, basis in enumerate(bases):
        front = np.moveaxis(series, axis, 0)
        turned = basis.transform(front.reshape(basis.size, -1)).reshape(front.shape)
        series = np.moveaxis(turned, 0, axis)
    return series


def _sizes_above(series: np.ndarray) -> list[int]:
    """Coefficients per axis up to the last one above the tolerance of its feature."""
    axes = tuple(range(series.ndim - 1))
    above = (np.abs(series) > _TOLERANCE * np.abs(series).max(axis=axes)).any(axis=-1)
    places = np.argwhere(above)
    return [int(last) + 1 for last in places.max(axis=0)] if len(places) else [1] * len(axes)
