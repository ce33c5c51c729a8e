"""The halves of a network field in NumPy, with derivatives of any order: no torch, float64 (paper, eq. 4).

u_hat(x, t) = b(x) + Phi(x)^T C (beta(t) - mean): the spatial half returns R + 1 columns (b first), the
temporal half R + 1 rows (the constant one first), so that the field is one matrix product.

Derivatives are carried through the layers as truncated Taylor series. A jet maps each multi-index beta <=
alpha to the Taylor coefficient D^beta f / beta!. Products are Cauchy products, and a function with w' = v(w)
is composed by its differential equation, beta_i w_beta = sum gamma_i z_gamma v_{beta-gamma}.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import factorial, prod

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline
from scipy.special import expit

from fts.domain import grid_points
from fts.validation import require_finite_floats

# Points evaluated at once: twice as fast while the layers' arrays stay in cache.
_CACHE_POINTS = 256

Index = tuple[int, ...]
Jet = dict[Index, np.ndarray]


def indices_below(alpha: Index) -> list[Index]:
    """All multi-indices beta <= alpha, lower total order first."""
    return sorted(product(*(range(a + 1) for a in alpha)), key=sum)


def derivative(jet: Jet, alpha: Index) -> np.ndarray:
    """D^alpha f = alpha! times its Taylor coefficient."""
    return factorials(alpha) * jet[alpha]


def factorials(alpha: Index) -> int:
    """alpha!, the product of the factorials of its entries."""
    return prod(factorial(a) for a in alpha)


def multiply(f: Jet, g: Jet) -> Jet:
    """The jet of the product f g."""
    return {beta: _convolve(beta, f, g) for beta in f}


def sigmoid(z: Jet) -> Jet:
    """The jet of 1 / (1 + exp(-z)), from w' = w (1 - w)."""
    w: Jet = {}
    v: Jet = {}
    for beta in z:
        w[beta] = expit(z[beta]) if sum(beta) == 0 else _step(beta, z, v)
        v[beta] = w[beta] - _convolve(beta, w, w)
    return w


def swish(z: Jet) -> Jet:
    """The jet of z sigmoid(z)."""
    return multiply(z, sigmoid(z))


def softplus(z: Jet) -> Jet:
    """The jet of log(1 + exp(z)), whose derivative is the sigmoid."""
    s = sigmoid(z)
    return {beta: np.logaddexp(0.0, z[beta]) if sum(beta) == 0 else _step(beta, z, s) for beta in z}


def _step(beta: Index, z: Jet, v: Jet) -> np.ndarray:
    """w_beta from beta_i w_beta = sum over gamma with gamma_i >= 1 of gamma_i z_gamma v_{beta - gamma}."""
    i = next(axis for axis, order in enumerate(beta) if order)
    weighted = {gamma: gamma[i] / beta[i] * z[gamma] for gamma in indices_below(beta) if gamma[i]}
    return _convolve(beta, weighted, v)


def _convolve(beta: Index, f: Jet, g: Jet) -> np.ndarray:
    """Coefficient beta of the product, over the gamma that f holds."""
    terms = [f[gamma] * g[_minus(beta, gamma)] for gamma in indices_below(beta) if gamma in f]
    return np.sum(terms, axis=0)


def _minus(beta: Index, gamma: Index) -> Index:
    return tuple(b - g for b, g in zip(beta, gamma, strict=True))


@dataclass(frozen=True)
class NetworkFeatures:
    """gamma(x) = [sin(B s x), cos(B s x)] through Swish layers; column 0 of the output is the background."""

    frequencies: Float[np.ndarray, "rows d"]  # B; no rows: the raw coordinates enter
    scale: float  # s of the affine rescaling
    weights: tuple[np.ndarray, ...]  # each (inputs, outputs)
    biases: tuple[np.ndarray, ...]
    kind: str = "network"

    def __post_init__(self) -> None:
        inputs = 2 * len(self.frequencies) or self.dimension
        for weight, bias in zip(self.weights, self.biases, strict=True):
            if weight.ndim != 2 or weight.shape[0] != inputs or bias.shape != weight.shape[1:]:
                raise ValueError(f"weights {weight.shape} and biases {bias.shape} after {inputs} outputs")
            inputs = weight.shape[1]
        layers, d = len(self.weights), self.dimension
        if not layers or not 1 <= d <= 4:
            raise ValueError(f"{layers} layers of {d} coordinates: one at least, of 1 to 4")
        require_finite_floats("a network", *self.arrays().values())

    @property
    def dimension(self) -> int:
        """Spatial axes."""
        return self.frequencies.shape[1]

    def shifted(self, origin: tuple[float, ...]) -> "NetworkFeatures":
        """The same features for x counted from `origin`: phases shift in the first layer."""
        if not any(origin):
            return self
        first, shift = self.weights[0], self.scale * np.array(origin)
        if not len(self.frequencies):
            return replace(self, biases=(self.biases[0] - shift @ first, *self.biases[1:]))
        sine, cosine = np.split(first, 2)
        phase = (self.frequencies.astype(float) @ shift)[:, None]
        turned = np.concatenate(
            [np.cos(phase) * sine + np.sin(phase) * cosine, np.cos(phase) * cosine - np.sin(phase) * sine]
        )
        return replace(self, weights=(turned, *self.weights[1:]))

    @property
    def rank(self) -> int:
        """R, the number of features beside the background."""
        return self.biases[-1].size - 1

    def at(self, points: Float[np.ndarray, "n d"], alpha: tuple[int, ...]) -> Float[np.ndarray, "n R1"]:
        """D^alpha of background and features, propagated forward through the layers."""
        points = np.asarray(points, dtype=float)
        if not any(alpha):
            return self._values(len(points), lambda piece: self._encode(points[piece], alpha)[alpha])
        z = self._encode(points, alpha)
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            w = weight.astype(float)
            z = {beta: value @ w + (bias if sum(beta) == 0 else 0.0) for beta, value in z.items()}
            if layer < last:
                z = swish(z)
        return derivative(z, alpha)

    def on_axes(
        self, axes: tuple[np.ndarray, ...], alpha: tuple[int, ...], precision: type = np.float64
    ) -> Float[np.ndarray, "n R1"]:
        """The same on the tensor grid of `axes`, in C order; values may be had in single precision."""
        if any(alpha) or len(axes) == 1:
            return self.at(grid_points(axes), alpha)
        if not len(self.frequencies):
            x = grid_points(axes)
            return self._values(len(x), lambda piece: self._encode(x[piece], alpha)[alpha], precision)
        # exp(i k.x) is the product of the axes' exp(i k_a x_a): sines are taken per axis, not per point.
        waves = [
            np.exp(1j * self.scale * np.outer(axis, row)).astype(np.result_type(precision, np.complex64))
            for axis, row in zip(axes, self.frequencies.T.astype(float), strict=True)
        ]
        shape = tuple(axis.size for axis in axes)

        def encode(piece: slice) -> np.ndarray:
            index = np.unravel_index(np.arange(piece.start, piece.stop), shape)
            wave = reduce(np.multiply, [along[i] for along, i in zip(waves, index, strict=True)])
            return np.concatenate([np.imag(wave), np.real(wave)], axis=1)

        return self._values(prod(shape), encode, precision)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file stores."""
        layers = {f"weight{i}": w for i, w in enumerate(self.weights)}
        layers |= {f"bias{i}": b for i, b in enumerate(self.biases)}
        return {"frequencies": self.frequencies, "scale": np.array([self.scale]), **layers}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> "NetworkFeatures":
        """The features a file stores."""
        layers = range(sum(name.startswith("weight") for name in arrays))
        return NetworkFeatures(
            frequencies=arrays["frequencies"],
            scale=float(arrays["scale"][0]),
            weights=tuple(arrays[f"weight{i}"] for i in layers),
            biases=tuple(arrays[f"bias{i}"] for i in layers),
        )

    def _values(self, n: int, encode: Callable[[slice], np.ndarray], precision: type = float) -> np.ndarray:
        """The outputs at n points, some hundred at a time: twice as fast while the layers stay in cache."""
        weights = [weight.astype(precision) for weight in self.weights]
        outputs = np.empty((n, self.rank + 1))
        for first in range(0, n, _CACHE_POINTS):
            piece = slice(first, min(first + _CACHE_POINTS, n))
            z = encode(piece).astype(precision, copy=False)
            for weight, bias in zip(weights[:-1], self.biases[:-1], strict=True):
                z = z @ weight
                z += bias
                _swish(z)
            outputs[piece] = z @ weights[-1] + self.biases[-1]
        return outputs

    def _encode(self, points: np.ndarray, alpha: tuple[int, ...]) -> Jet:
        rows = self.frequencies.astype(float) * self.scale
        encoded: Jet = {}
        for beta in indices_below(alpha):
            if not len(rows):
                encoded[beta] = _coordinate_jet(points * self.scale, beta, self.scale)
                continue
            # D^beta sin(k x) / beta! = k^beta / beta! sin(k x + |beta| pi/2), and the same for the cosine.
            phase = points @ rows.T + sum(beta) * np.pi / 2
            factor = np.prod(rows ** np.array(beta), axis=1) / factorials(beta)
            encoded[beta] = np.concatenate([np.sin(phase) * factor, np.cos(phase) * factor], axis=1)
        return encoded


@dataclass(frozen=True)
class SplineCoefficients:
    """c(t) = C (beta(t) - mean), with beta a clamped uniform cubic B-spline basis on [t0, t1]."""

    C: Float[np.ndarray, "R M"]
    mean: Float[np.ndarray, " M"]
    interval: tuple[float, float]
    kind: str = "splines"

    def __post_init__(self) -> None:
        low, high = self.interval
        if self.C.ndim != 2 or self.mean.shape != self.C.shape[1:] or self.mean.size < 4 or not low < high:
            raise ValueError(
                f"{self.C.shape} coefficients of {self.mean.shape} splines on {self.interval}: four at least"
            )
        require_finite_floats("splines", self.C, self.mean, np.array(self.interval))

    @property
    def rank(self) -> int:
        """R, the number of coefficients."""
        return len(self.C)

    def at(self, t: Float[np.ndarray, " n"], order: int) -> Float[np.ndarray, "R1 n"]:
        """The order-th time derivative of the constant one and of c(t)."""
        basis = spline_basis(t, self.mean.size, self.interval, order)
        if order == 0:
            basis = basis - self.mean
        constant = np.full((1, basis.shape[0]), 1.0 if order == 0 else 0.0)
        return np.concatenate([constant, self.C.astype(float) @ basis.T])

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file stores."""
        return {"C": self.C, "mean": self.mean, "interval": np.array(self.interval)}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> "SplineCoefficients":
        """The coefficients a file stores."""
        low, high = (float(end) for end in arrays["interval"])
        return SplineCoefficients(arrays["C"], arrays["mean"], (low, high))


def spline_basis(
    t: Float[np.ndarray, " n"], size: int, interval: tuple[float, float], order: int = 0
) -> Float[np.ndarray, "n M"]:
    """The order-th derivative of the `size` clamped uniform cubic B-splines on `interval`, at `t`."""
    low, high = interval
    internal = np.linspace(low, high, size - 2)[1:-1]
    knots = np.concatenate([np.full(4, low), internal, np.full(4, high)])
    # A time a rounding outside the interval belongs to its end.
    t = np.clip(np.asarray(t, dtype=float), low, high)
    if order == 0:
        return BSpline.design_matrix(t, knots, 3).toarray()
    if order > 3:
        return np.zeros((t.size, size))
    return BSpline(knots, np.eye(size), 3).derivative(order)(t)


def _swish(z: np.ndarray) -> None:
    """z / (1 + exp(-z)) in place."""
    if z.dtype == np.float32:
        # NumPy's single-precision exp is vectorized and SciPy's expit is not; an overflow gives the limit, 0.
        with np.errstate(over="ignore"):
            z /= 1 + np.exp(-z)
    else:
        z *= expit(z)


def _coordinate_jet(points: np.ndarray, beta: tuple[int, ...], scale: float) -> np.ndarray:
    if sum(beta) == 0:
        return points
    unit = np.array([scale if b == 1 and sum(beta) == 1 else 0.0 for b in beta])
    return np.broadcast_to(unit, points.shape)
