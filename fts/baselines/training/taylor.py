"""A network of (t, x[, y]) and points -> its value, u_t and space derivatives in one pass (Taylor mode).

Beside every neuron's value its derivatives are carried through the layers by Faa di Bruno's formula, six
slices in all: (u, u_t, u_x, u_xx, u_xxx, u_xxxx) on a line, (u, u_t, u_x, u_y, u_xx, u_yy) in a plane. One
ordinary backward pass then gives the gradient in the weights, where nested autograd needs five.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fts.baselines.mlp_field import Bounds, MLPField
from fts.domain import Domain
from fts.equations.expressions import STATE
from fts.equations.terms import Library, Term
from fts.observations import Observations

Activation = Literal["tanh", "sin"]
TIME = 1  # the slice u_t; the others are derivatives in space
# The multi-indices of the slices by the number of spatial axes; u_t has none.
_SPACE: dict[int, dict[tuple[int, ...], int]] = {
    1: {(0, 0, 0): 0, (1, 0, 0): 2, (2, 0, 0): 3, (3, 0, 0): 4, (4, 0, 0): 5},
    2: {(0, 0, 0): 0, (1, 0, 0): 2, (0, 1, 0): 3, (2, 0, 0): 4, (0, 2, 0): 5},
}
# A term as a sum of coefficient * product of slices, the slices ascending.
Products = tuple[tuple[float, tuple[int, ...]], ...]
# Products of derivatives of u, by their multi-indices, and their coefficients.
_Monomials = dict[tuple[tuple[int, ...], ...], float]


@dataclass(frozen=True)
class Weights:
    """The layers of a network: `weights` of shape (in, out) and `biases` (out,), the last of one output."""

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    @property
    def vector(self) -> Float[Tensor, " parameters"]:
        """All of them in one vector, a copy."""
        return torch.cat([tensor.detach().reshape(-1) for tensor in (*self.weights, *self.biases)])

    def freeze(self, activation: Activation, bounds: Bounds | None, domain: Domain) -> MLPField:
        """The network as plain arrays."""
        weights, biases = (
            tuple(tensor.detach().cpu().numpy().astype("float64") for tensor in group)
            for group in (self.weights, self.biases)
        )
        return MLPField(weights, biases, activation, bounds, domain)


@dataclass(frozen=True)
class Perceptron:
    """The shape of a network on a box; its weights are one vector, which the optimizer sees whole."""

    sizes: tuple[int, ...]
    activation: Activation
    bounds: Bounds | None  # None where it takes the coordinates raw
    domain: Domain

    def values(self, theta: Tensor, points: Float[Tensor, "n d1"]) -> Float[Tensor, " n"]:
        """u_hat at the points (t, x[, y])."""
        return values(unpack(theta, self.sizes), points, self.activation, self.bounds)

    def jet(self, theta: Tensor, points: Float[Tensor, "n d1"]) -> Float[Tensor, "6 n"]:
        """The slices at the points (t, x[, y])."""
        return propagate(unpack(theta, self.sizes), points, self.activation, self.bounds)

    def freeze(self, theta: Tensor) -> MLPField:
        """The network as plain arrays."""
        return unpack(theta, self.sizes).freeze(self.activation, self.bounds, self.domain)


def perceptron(
    domain: Domain, width: int, depth: int, activation: Activation, inputs: Literal["raw", "unit"]
) -> Perceptron:
    """A network of (t, x[, y]) with hidden layers of one width, its inputs raw or mapped to [-1, 1]."""
    bounds = ((domain.t0, *domain.low), (domain.t1, *domain.high)) if inputs == "unit" else None
    return Perceptron((domain.dimension + 1, *(width,) * depth, 1), activation, bounds, domain)


def unpack(vector: Float[Tensor, " parameters"], sizes: Sequence[int]) -> Weights:
    """Views of a vector as the layers of a network of these sizes; gradients arrive in the vector."""
    shapes = [*pairwise(sizes), *((after,) for after in sizes[1:])]
    parts = vector.split([math.prod(shape) for shape in shapes])
    tensors = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
    return Weights(tuple(tensors[: len(sizes) - 1]), tuple(tensors[len(sizes) - 1 :]))


def propagate(
    net: Weights, points: Float[Tensor, "n d1"], activation: Activation, bounds: Bounds | None = None
) -> Float[Tensor, "6 n"]:
    """The slices of the network at the points (t, x[, y]).

    With `bounds` (low, high), the inputs are mapped to [-1, 1] inside the network; derivatives are physical
    either way.
    """
    first, *weights = net.weights
    if not weights or points.shape[1] not in (2, 3) or first.shape[0] != points.shape[1]:
        raise ValueError(
            f"{len(net.weights)} layers from {first.shape[0]} inputs at points {tuple(points.shape)}: give "
            "a hidden layer at least, and points (t, x) or (t, x, y) as the network takes them"
        )
    rows = first  # d z / d (t, x[, y]), the same at every point
    if bounds is not None:
        low, high = (points.new_tensor(side) for side in bounds)
        points = 2.0 * (points - low) / (high - low) - 1.0
        rows = rows * (2.0 / (high - low))[:, None]
    line = points.shape[1] == 2
    outer = _outer(points @ first + net.biases[0], activation, 4 if line else 2)
    slices = _line_first(outer, rows) if line else _plane_first(outer, rows)
    for weight, bias in zip(weights[:-1], net.biases[1:-1], strict=True):
        z = _product_of(slices, weight)
        # The bias belongs to the value alone.
        outer = _outer(z[0] + bias, activation, 4 if line else 2)
        slices = _line(outer, z) if line else _plane(outer, z)
    last = _product_of(slices, weights[-1])[..., 0]
    return torch.cat([last[:1] + net.biases[-1], last[1:]])


def values(
    net: Weights, points: Float[Tensor, "n d1"], activation: Activation, bounds: Bounds | None = None
) -> Float[Tensor, " n"]:
    """The network at the points (t, x[, y]), without derivatives: a sixth of the work."""
    if bounds is not None:
        low, high = (points.new_tensor(side) for side in bounds)
        points = 2.0 * (points - low) / (high - low) - 1.0
    function = torch.tanh if activation == "tanh" else torch.sin
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        points = function(points @ weight + bias)
    return (points @ net.weights[-1] + net.biases[-1])[:, 0]


def evaluate(plan: tuple[Products, ...], jet: Float[Tensor, "6 n"]) -> Float[Tensor, "n J"]:
    """The library's terms from the slices, one column each; a compiled caller sees plain numbers."""
    known: dict[tuple[int, ...], Tensor] = {(): torch.ones_like(jet[0])}
    return torch.stack([_sum(products, jet, known) for products in plan], dim=-1)


@lru_cache(maxsize=64)
def plan_columns(library: Library, dimension: int) -> tuple[Products, ...]:
    """Every term as a sum of products of slices; refuses what the six slices cannot express."""
    library.check_dimension(dimension)
    if dimension not in _SPACE:
        raise ValueError(f"{dimension} spatial axes: the slices are made for one or two, drop an axis")
    return tuple(_expand(term, dimension) for term in library)


def powers(term: Term) -> tuple[tuple[int, float], ...]:
    """q of a term D_alpha q(u) as powers of u and their coefficients; refuses what is no polynomial."""
    kept = []
    for product, coefficient in term.q.monomials:
        if any(factor != STATE or e < 0 or not float(e).is_integer() for factor, e in product):
            raise ValueError(
                f"{term} is no polynomial in u: this method takes powers u^n, replace or drop it"
            )
        kept.append((int(sum(e for _, e in product)), float(coefficient)))
    return tuple(kept)


def sample_tensors(
    observations: Observations, rows: np.ndarray | None = None
) -> tuple[Float[Tensor, "n d1"], Float[Tensor, " n"]]:
    """Points (t, x[, y]) and values of the samples, or of some rows of them, in single precision."""
    chosen = np.arange(len(observations)) if rows is None else rows
    points = np.column_stack([observations.t, observations.x])[chosen]
    inputs, y = (torch.from_numpy(part.astype(np.float32)) for part in (points, observations.y[chosen]))
    return inputs, y


def uniform_fan_in(sizes: Sequence[int], dtype: torch.dtype, generator: torch.Generator) -> Weights:
    """PyTorch's own start of a linear layer: weights and biases U(-1/sqrt(in), 1/sqrt(in))."""
    weights, biases = [], []
    for size, after in pairwise(sizes):
        bound = 1.0 / math.sqrt(size)
        weights.append(_uniform((size, after), bound, dtype, generator))
        biases.append(_uniform((after,), bound, dtype, generator))
    return Weights(tuple(weights), tuple(biases))


def uniform_wide(sizes: Sequence[int], dtype: torch.dtype, generator: torch.Generator) -> Weights:
    """Weights U(-3/sqrt(w), 3/sqrt(w)) with w the width of the first hidden layer; biases zero."""
    bound = 3.0 / math.sqrt(sizes[1])
    weights = tuple(_uniform(pair, bound, dtype, generator) for pair in pairwise(sizes))
    return Weights(weights, _zeros(sizes, dtype))


def xavier_truncated(sizes: Sequence[int], dtype: torch.dtype, generator: torch.Generator) -> Weights:
    """Weights normal with deviation sqrt(2/(in + out)), cut at two deviations; biases zero."""
    weights = []
    for size, after in pairwise(sizes):
        std = math.sqrt(2.0 / (size + after))
        # By the inverse distribution function: one draw per entry, so the stream does not depend on luck.
        edge = math.erf(math.sqrt(2.0))
        uniform = torch.rand((size, after), dtype=torch.float64, generator=generator)
        normal = math.sqrt(2.0) * torch.erfinv(edge * (2.0 * uniform - 1.0))
        weights.append((std * normal).to(dtype))
    return Weights(tuple(weights), _zeros(sizes, dtype))


def _product_of(slices: Tensor, weight: Tensor) -> Tensor:
    """A layer's weights on all slices by one product."""
    k, n, width = slices.shape
    return (slices.reshape(k * n, width) @ weight).reshape(k, n, -1)


def _outer(z: Tensor, activation: Activation, order: int) -> list[Tensor]:
    """The activation and its first derivatives at z, up to the order."""
    if activation == "sin":
        sine, cosine = torch.sin(z), torch.cos(z)
        return [sine, cosine, -sine, -cosine, sine][: order + 1]
    a = torch.tanh(z)
    s = 1.0 - a * a
    derivatives = [a, s, -2.0 * a * s]
    if order > 2:
        derivatives += [s * (6.0 * a * a - 2.0), a * s * (16.0 - 24.0 * a * a)]
    return derivatives


def _line_first(f: list[Tensor], rows: Tensor) -> Tensor:
    """Behind the first layer z_xx and higher vanish."""
    t, x = rows[0], rows[1]
    return torch.stack([f[0], f[1] * t, f[1] * x, f[2] * x**2, f[3] * x**3, f[4] * x**4])


def _plane_first(f: list[Tensor], rows: Tensor) -> Tensor:
    t, x, y = rows[0], rows[1], rows[2]
    return torch.stack([f[0], f[1] * t, f[1] * x, f[1] * y, f[2] * x**2, f[2] * y**2])


def _line(f: list[Tensor], z: Tensor) -> Tensor:
    """Faa di Bruno: f3 counts 1, f2 3 ways of pairing three, f4 to f1 1, 6, (4, 3), 1 ways for four."""
    _, t, z1, z2, z3, z4 = z.unbind(0)
    s = z1 * z1
    lower = [f[0], f[1] * t, f[1] * z1, f[2] * s + f[1] * z2]
    third = f[3] * s * z1 + 3.0 * f[2] * z1 * z2 + f[1] * z3
    fourth = f[4] * s * s + 6.0 * f[3] * s * z2 + f[2] * (4.0 * z1 * z3 + 3.0 * z2 * z2) + f[1] * z4
    return torch.stack([*lower, third, fourth])


def _plane(f: list[Tensor], z: Tensor) -> Tensor:
    _, t, x, y, xx, yy = z.unbind(0)
    lower = [f[0], f[1] * t, f[1] * x, f[1] * y]
    return torch.stack([*lower, f[2] * x * x + f[1] * xx, f[2] * y * y + f[1] * yy])


def _expand(term: Term, dimension: int) -> Products:
    """D_alpha q(u) for polynomial q, by the product rule on monomials of derivatives of u."""
    products: _Monomials = {}
    for degree, coefficient in powers(term):
        key = ((0, 0, 0),) * degree
        products[key] = products.get(key, 0.0) + term.scale * coefficient
    for axis, order in enumerate(term.alpha):
        for _ in range(order):
            products = _differentiate(products, axis)
    slices = _SPACE[dimension]
    missing = {beta for key in products for beta in key if beta not in slices}
    if missing:
        there = "u_x to u_xxxx" if dimension == 1 else "u_x, u_y, u_xx, u_yy"
        raise ValueError(
            f"{term} needs the derivatives {sorted(missing)}, but only {there} are carried: drop the term"
        )
    return tuple((c, tuple(sorted(slices[beta] for beta in key))) for key, c in sorted(products.items()))


def _differentiate(products: _Monomials, axis: int) -> _Monomials:
    result: _Monomials = {}
    for key, coefficient in products.items():
        for i, beta in enumerate(key):
            raised = tuple(order + (k == axis) for k, order in enumerate(beta))
            grown = tuple(sorted((*key[:i], raised, *key[i + 1 :])))
            result[grown] = result.get(grown, 0.0) + coefficient
    return result


def _sum(products: Products, jet: Tensor, known: dict[tuple[int, ...], Tensor]) -> Tensor:
    parts = ((c, _product(slices, jet, known)) for c, slices in products)
    first, *others = (part if c == 1.0 else c * part for c, part in parts)
    return sum(others, first)


def _product(slices: tuple[int, ...], jet: Tensor, known: dict[tuple[int, ...], Tensor]) -> Tensor:
    """The product of slices; those of fewer factors are taken again."""
    if slices not in known:
        first, rest = jet[slices[-1]], slices[:-1]
        known[slices] = _product(rest, jet, known) * first if rest else first
    return known[slices]


def _uniform(shape: Sequence[int], bound: float, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return bound * (2.0 * torch.rand(tuple(shape), dtype=dtype, generator=generator) - 1.0)


def _zeros(sizes: Sequence[int], dtype: torch.dtype) -> tuple[Tensor, ...]:
    return tuple(torch.zeros(after, dtype=dtype) for after in sizes[1:])
