"""Networks of (t, x[, y]) as fields: what a method that trains one hands back, to be scored and drawn.

An MLPField is plain arrays, evaluated without torch.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.domain import Domain, grid_points

# Lowest and highest (t, x[, y]) that a network maps to [-1, 1] before its first layer.
Bounds = tuple[tuple[float, ...], tuple[float, ...]]
_ACTIVATIONS = {"tanh": np.tanh, "sin": np.sin}
# Points evaluated at once: the layers' arrays then stay near the processor.
_CHUNK = 1 << 13


class PointField:
    """A network evaluated point by point, from `values` at (t, x[, y])."""

    def values(self, inputs: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """u_hat with the time first, as the network takes its inputs."""
        raise NotImplementedError

    def __call__(self, points: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """u_hat at the points (x, [y,] t)."""
        inputs = np.roll(np.asarray(points, dtype=float), 1, axis=1)
        chunks = [inputs[i : i + _CHUNK] for i in range(0, len(inputs), _CHUNK)] or [inputs]
        return np.concatenate([self.values(chunk) for chunk in chunks])

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """u_hat on the tensor grid of the axes (x, [y,] t), shaped like a trajectory."""
        return self(grid_points(axes)).reshape(*(axis.size for axis in axes))


@dataclass(frozen=True)
class MLPField(PointField):
    """A frozen network: layers (in, out) with inputs (t, x[, y]), one output, the activation between them."""

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    activation: str
    bounds: Bounds | None
    domain: Domain

    def __post_init__(self) -> None:
        if self.activation not in _ACTIVATIONS:
            raise ValueError(f"unknown activation {self.activation!r}: take {' or '.join(_ACTIVATIONS)}")
        inputs, outputs = self.weights[0].shape[0], self.weights[-1].shape[1]
        if inputs != self.domain.dimension + 1 or outputs != 1:
            raise ValueError(
                f"layers from {inputs} inputs to {outputs} outputs "
                f"cannot describe a field on {self.domain.dimension} spatial axes: take one more, give one"
            )

    def values(self, inputs: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """Layer by layer."""
        if self.bounds is not None:
            low, high = (np.array(side) for side in self.bounds)
            inputs = 2.0 * (inputs - low) / (high - low) - 1.0
        activation = _ACTIVATIONS[self.activation]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            inputs = activation(inputs @ weight + bias)
        return (inputs @ self.weights[-1] + self.biases[-1])[:, 0]
