"""Series a kernel field is frozen into: Fourier where an axis is periodic, Chebyshev elsewhere, truncated.

A kernel field is a sum of large weights that cancel; the same smooth function in an orthogonal basis has
small, decaying coefficients that survive float32. Derivatives are those of the basis, exact to any order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.polynomial import chebyshev
from scipy.fft import dct

from fts.domain import Domain
from fts.validation import require_finite_floats

# Chebyshev coefficients per axis to begin with, and in all at most: 512 on each of two axes.
_FEWEST, _MOST = 32, 1 << 18
# Functions of one basis: evaluating one takes a matrix of this size.
_LARGEST = 1 << 12
# Scattered points evaluated at once in several dimensions; bounds the intermediate of the first contraction.
_BLOCK = 1024


@runtime_checkable
class Features(Protocol):
    """Spatial half of a factorized field: background and R features, with derivatives."""

    @property
    def kind(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def rank(self) -> int: ...
    def at(self, points: Float[np.ndarray, "n d"], alpha: tuple[int, ...]) -> Float[np.ndarray, "n R1"]: ...
    def on_axes(self, axes: tuple[np.ndarray, ...], alpha: tuple[int, ...]) -> Float[np.ndarray, "n R1"]: ...
    def arrays(self) -> dict[str, np.ndarray]: ...


@runtime_checkable
class Coefficients(Protocol):
    """Temporal half of a factorized field: the constant one and R coefficients, with derivatives."""

    @property
    def kind(self) -> str: ...
    @property
    def rank(self) -> int: ...
    def at(self, t: Float[np.ndarray, " n"], order: int) -> Float[np.ndarray, "R1 n"]: ...
    def arrays(self) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True)
class Basis:
    """The first `size` functions of one axis: 1, cos, sin, cos 2, ... when periodic, else T_0, T_1, ..."""

    low: float
    high: float
    periodic: bool
    size: int

    def __post_init__(self) -> None:
        if self.size < 1 or (self.periodic and self.size % 2 == 0):
            raise ValueError(f"a basis of {self.size}: take at least 1, an odd number on a periodic axis")
        if self.size > _LARGEST or not (np.isfinite([self.low, self.high]).all() and self.low < self.high):
            ends = f"[{self.low}, {self.high}]"
            raise ValueError(f"{self.size} functions on {ends}: take at most {_LARGEST}, and low < high")

    @property
    def nodes(self) -> Float[np.ndarray, " size"]:
        """Where a function is sampled for `transform`: equidistant points, or Chebyshev roots."""
        steps = np.arange(self.size)
        if self.periodic:
            return self.low + (self.high - self.low) * steps / self.size
        roots = np.cos(np.pi * (2 * steps + 1) / (2 * self.size))
        return self.low + (self.high - self.low) * (1 + roots) / 2

    def transform(self, values: Float[np.ndarray, "size columns"]) -> Float[np.ndarray, "size columns"]:
        """Coefficients of the functions with these values at the nodes."""
        if not self.periodic:
            series = np.asarray(dct(values, axis=0)) / self.size
            series[0] /= 2
            return series
        spectrum = np.fft.rfft(values, axis=0) * 2 / self.size
        series = np.empty(values.shape)
        series[0] = spectrum[0].real / 2
        series[1::2], series[2::2] = spectrum[1:].real, -spectrum[1:].imag
        return series

    def at(self, x: Float[np.ndarray, " n"], order: int) -> Float[np.ndarray, "n size"]:
        """The order-th derivative of every basis function at the points `x`."""
        scale = 1 / (self.high - self.low)
        x = np.asarray(x, dtype=float)
        if self.periodic:
            wave = 2 * np.pi * scale * np.arange(1, self.size // 2 + 1)
            phase = np.outer(x - self.low, wave) + order * np.pi / 2
            columns = np.empty((x.size, self.size))
            columns[:, 0] = 1.0 if order == 0 else 0.0
            columns[:, 1::2], columns[:, 2::2] = wave**order * np.cos(phase), wave**order * np.sin(phase)
            return columns
        if order >= self.size:
            return np.zeros((x.size, self.size))
        # A point a rounding outside the interval belongs to its end.
        unit = np.clip(2 * scale * (x - self.low) - 1, -1, 1)
        if order == 0:
            return chebyshev.chebvander(unit, self.size - 1)
        derivative = chebyshev.chebder(np.eye(self.size), order)
        return (2 * scale) ** order * (chebyshev.chebvander(unit, self.size - 1 - order) @ derivative)


@dataclass(frozen=True)
class SeriesFeatures:
    """Background and features as series: column r is sum_k coefficients[k, r] prod_i basis_{i, k_i}(x_i)."""

    bases: tuple[Basis, ...]
    coefficients: Float[np.ndarray, "K R1"]  # K runs over the tensor product of the bases in C order
    kind: str = "series"

    def __post_init__(self) -> None:
        sizes = [basis.size for basis in self.bases]
        if self.coefficients.ndim != 2 or self.coefficients.shape[0] != prod(sizes):
            raise ValueError(f"coefficients of shape {self.coefficients.shape} for bases of sizes {sizes}")
        require_finite_floats("a series", self.coefficients)

    @property
    def dimension(self) -> int:
        """Spatial axes."""
        return len(self.bases)

    @property
    def rank(self) -> int:
        """R, the number of features beside the background."""
        return self.coefficients.shape[1] - 1

    def at(self, points: Float[np.ndarray, "n d"], alpha: tuple[int, ...]) -> Float[np.ndarray, "n R1"]:
        """D^alpha of background and features at scattered points."""
        tensor = self._tensor()
        values = np.empty((len(points), tensor.shape[-1]))
        for start in range(0, len(points), _BLOCK):
            block = points[start : start + _BLOCK]
            rows = [b.at(x, a) for b, x, a in zip(self.bases, block.T, alpha, strict=True)]
            part = np.tensordot(rows[0], tensor, 1)
            for row in rows[1:]:
                part = np.einsum("nk,nk...->n...", row, part)
            values[start : start + _BLOCK] = part
        return values

    def on_axes(self, axes: tuple[np.ndarray, ...], alpha: tuple[int, ...]) -> Float[np.ndarray, "n R1"]:
        """The same on the tensor grid of `axes`, in C order, one axis contracted after the other."""
        tensor = self._tensor()
        for i, (basis, x, order) in enumerate(zip(self.bases, axes, alpha, strict=True)):
            tensor = np.moveaxis(np.tensordot(basis.at(x, order), tensor, (1, i)), 0, i)
        return tensor.reshape(-1, tensor.shape[-1])

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file stores."""
        return {"coefficients": self.coefficients, **_basis_arrays(self.bases)}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> "SeriesFeatures":
        """The features a file stores."""
        return SeriesFeatures(_bases(arrays), arrays["coefficients"])

    def _tensor(self) -> np.ndarray:
        sizes = (basis.size for basis in self.bases)
        return self.coefficients.astype(float).reshape(*sizes, -1)


def as_series(space: Features, domain: Domain, tolerance: float) -> SeriesFeatures:
    """Features as Chebyshev series along every axis, cut where all are below `tolerance` of their largest."""
    sizes = [_FEWEST] * domain.dimension
    while prod(sizes) <= _MOST and max(sizes) <= _LARGEST:
        bases = _chebyshev(domain, sizes)
        values = space.on_axes(tuple(basis.nodes for basis in bases), (0,) * len(bases))
        series = transform(values.reshape(*sizes, -1), bases)
        kept = _sizes_above(series, tolerance)
        # Once the last eighth is below the tolerance, what the nodes cannot tell apart is too.
        rough = [k > n - n // 8 for k, n in zip(kept, sizes, strict=True)]
        if not any(rough):
            cut = series[tuple(slice(k) for k in kept)]
            return SeriesFeatures(_chebyshev(domain, kept), cut.reshape(-1, series.shape[-1]))
        sizes = [2 * n if more else n for n, more in zip(sizes, rough, strict=True)]
    raise ValueError(f"a series of {sizes} does not hold the features to {tolerance}: fit a smoother field")


def transform(values: Float[np.ndarray, "..."], bases: Sequence[Basis]) -> Float[np.ndarray, "..."]:
    """Coefficients from values at the nodes of the bases, one leading axis after the other."""
    for axis, basis in enumerate(bases):
        front = np.moveaxis(values, axis, 0)
        turned = basis.transform(front.reshape(basis.size, -1)).reshape(front.shape)
        values = np.moveaxis(turned, 0, axis)
    return values


def _chebyshev(domain: Domain, sizes: Sequence[int]) -> tuple[Basis, ...]:
    axes = zip(domain.low, domain.high, sizes, strict=True)
    return tuple(Basis(low, high, False, size) for low, high, size in axes)


def _sizes_above(series: np.ndarray, tolerance: float) -> list[int]:
    """Coefficients per axis up to the last one above the tolerance of its feature."""
    axes = tuple(range(series.ndim - 1))
    above = (np.abs(series) > tolerance * np.abs(series).max(axis=axes)).any(axis=-1)
    indices = np.argwhere(above)
    return [int(last) + 1 for last in indices.max(axis=0)] if len(indices) else [1] * len(axes)


@dataclass(frozen=True)
class SeriesCoefficients:
    """c_r(t) = sum_k coefficients[k, r] T_k(t), with the constant one as row 0."""

    basis: Basis
    coefficients: Float[np.ndarray, "K R"]
    kind: str = "series"

    def __post_init__(self) -> None:
        if self.coefficients.ndim != 2 or self.coefficients.shape[0] != self.basis.size:
            raise ValueError(f"coefficients {self.coefficients.shape} for {self.basis.size} functions")
        require_finite_floats("a series", self.coefficients)

    @property
    def rank(self) -> int:
        """R, the number of coefficients."""
        return self.coefficients.shape[1]

    def at(self, t: Float[np.ndarray, " n"], order: int) -> Float[np.ndarray, "R1 n"]:
        """The order-th time derivative of the constant one and of c(t)."""
        constant = np.full((1, np.size(t)), 1.0 if order == 0 else 0.0)
        return np.concatenate([constant, (self.basis.at(t, order) @ self.coefficients.astype(float)).T])

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file stores."""
        return {"coefficients": self.coefficients, **_basis_arrays((self.basis,))}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> "SeriesCoefficients":
        """The coefficients a file stores."""
        (basis,) = _bases(arrays)
        return SeriesCoefficients(basis, arrays["coefficients"])


def _basis_arrays(bases: tuple[Basis, ...]) -> dict[str, np.ndarray]:
    return {
        "low": np.array([basis.low for basis in bases]),
        "high": np.array([basis.high for basis in bases]),
        "size": np.array([basis.size for basis in bases], dtype=np.int32),
        "periodic": np.array([basis.periodic for basis in bases], dtype=np.int32),
    }


def _bases(arrays: Mapping[str, np.ndarray]) -> tuple[Basis, ...]:
    if not all(arrays[name].dtype.kind == "i" for name in ("size", "periodic")):
        raise ValueError("sizes of bases that are no integers: fit it again")
    if not set(arrays["periodic"].tolist()) <= {0, 1}:
        raise ValueError(f"periodic {arrays['periodic'].tolist()}: 0 or 1 for every axis")
    columns = zip(arrays["low"], arrays["high"], arrays["periodic"], arrays["size"], strict=True)
    return tuple(Basis(float(low), float(high), bool(closed), int(n)) for low, high, closed, n in columns)
