"""Networks with trainable rational activations, as Weak-PDE-LEARN has them: one flat vector -> u_hat(t, x).

Every hidden layer has an activation of its own, R(z) = (a0 + a1 z + a2 z^2 + a3 z^3) / (b0 + b1 z + b2 z^2).
All parameters stand in one vector, which the optimizer, the penalty on its size and a checkpoint see whole.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fts.domain import Domain, grid_points

# The rational function of this type nearest to max(z, 0) on [-1, 1].
_NUMERATOR = (0.0218, 0.5, 1.5957, 1.1915)
_DENOMINATOR = (1.0, 0.0, 2.383)
# Points evaluated at once.
_CHUNK = 1 << 13


@dataclass(frozen=True)
class RationalNetwork:
    """The shape of a network: coordinates in, hidden layers of one width, one value out."""

    inputs: int
    width: int
    depth: int

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the parts of the vector: numerators, denominators, then weights and bias of every layer."""
        sizes = [self.inputs, *[self.width] * self.depth, 1]
        layers = [shape for n_in, n_out in pairwise(sizes) for shape in ((n_in, n_out), (n_out,))]
        return [(self.depth, len(_NUMERATOR)), (self.depth, len(_DENOMINATOR)), *layers]

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, " p"]:
        """Initial parameters: Xavier-uniform weights, zero biases, activations near max(z, 0)."""
        parts: list[np.ndarray] = [
            np.tile(_NUMERATOR, (self.depth, 1)),
            np.tile(_DENOMINATOR, (self.depth, 1)),
        ]
        for shape in self.shapes[2:]:
            bound = np.sqrt(6.0 / sum(shape)) if len(shape) == 2 else 0.0
            parts.append(rng.uniform(-1.0, 1.0, shape) * bound)
        return np.concatenate([part.ravel() for part in parts])

    def values(self, theta: Tensor, points: Tensor) -> Tensor:
        """u_hat at the points (t, x, [y]), (n,)."""
        pieces = theta.split([prod(shape) for shape in self.shapes])
        a, b, *layers = (piece.view(shape) for piece, shape in zip(pieces, self.shapes, strict=True))
        z = points
        for place, (weight, bias) in enumerate(zip(layers[0::2], layers[1::2], strict=True)):
            z = torch.addmm(bias, z, weight)
            if place < self.depth:
                p, q = a[place], b[place]
                z = (((p[3] * z + p[2]) * z + p[1]) * z + p[0]) / ((q[2] * z + q[1]) * z + q[0])
        return z[:, 0]


@dataclass(frozen=True)
class RationalField:
    """A trained network on its box, frozen: a field as weak systems and plots read it."""

    network: RationalNetwork
    theta: Float[np.ndarray, " p"]
    domain: Domain

    def __call__(self, points: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """u_hat at the points (x, [y,] t)."""
        theta = torch.from_numpy(np.array(self.theta, dtype=np.float64))
        ordered = torch.from_numpy(np.roll(points, 1, axis=1))  # time first, as the network was trained
        with torch.no_grad():
            chunks = [self.network.values(theta, chunk) for chunk in ordered.split(_CHUNK)]
        return torch.cat(chunks).numpy()

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """u_hat on the tensor grid of the axes (x, [y,] t)."""
        return self(grid_points(axes)).reshape(*(axis.size for axis in axes))
