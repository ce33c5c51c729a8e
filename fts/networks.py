"""A Fourier encoding and a Swish network whose parameters lie in one flat vector (Supplement A.3).

One vector makes clipping one norm, a checkpoint one copy and an AdamW step one kernel: at these sizes an
update is otherwise mostly the overhead of handling a dozen small tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import linear, silu


class Flat:
    """Tensors of given shapes that share one vector, with gradients that share another."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], device: torch.device) -> None:
        sizes = [int(torch.Size(shape).numel()) for shape in shapes]
        self.vector = torch.nn.Parameter(torch.zeros(sum(sizes), device=device))
        self.gradient = torch.zeros_like(self.vector)
        self.parts: list[Tensor] = []
        chunks = zip(shapes, self.vector.detach().split(sizes), self.gradient.split(sizes), strict=True)
        for shape, values, gradient in chunks:
            part = values.view(shape).requires_grad_()
            part.grad = gradient.view(shape)  # backward accumulates in place
            self.parts.append(part)

    def __len__(self) -> int:
        return self.vector.numel()


@dataclass(frozen=True)
class Encoding:
    """gamma(x) = [sin(B s x), cos(B s x)], or s x itself when B has no rows."""

    rows: Tensor  # (rows, d)
    scale: float

    @cached_property
    def _scaled(self) -> Tensor:
        return (self.scale * self.rows).T.contiguous()

    @property
    def outputs(self) -> int:
        """Inputs the network receives."""
        rows, dimension = self.rows.shape
        return 2 * rows if rows else dimension

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """The encoded positions, (n, outputs), written to `out` when it is given."""
        if out is None:
            out = torch.empty(len(x), self.outputs, device=x.device, dtype=x.dtype)
        n = len(self.rows)
        if n == 0:
            return torch.mul(x, self.scale, out=out)
        phase = x @ self._scaled
        torch.sin(phase, out=out[:, :n])
        torch.cos(phase, out=out[:, n:])
        return out


# Products with 75 columns take longer than with 80, which fill the processor's vectors.
_LANES = 8


class Network:
    """Swish layers on an encoding; PyTorch's default initial weights, uniform in +-1/sqrt(inputs).

    Hidden layers are filled up to whole vectors with units whose weights are zero: swish(0) = 0, so neither
    their values nor their gradients ever leave zero, and `layers` shows the network without them.
    """

    def __init__(
        self, encoding: Encoding, width: int, depth: int, outputs: int, generator: torch.Generator
    ) -> None:
        sizes = [encoding.outputs, *[width] * depth, outputs]
        filled = [encoding.outputs, *[-(-width // _LANES) * _LANES] * depth, outputs]
        shapes = [shape for n_in, n_out in pairwise(filled) for shape in ((n_out, n_in), (n_out,))]
        self.encoding = encoding
        self.flat = Flat(shapes, encoding.rows.device)
        self.weights, self.biases = self.flat.parts[0::2], self.flat.parts[1::2]
        with torch.no_grad():
            self.layers = [
                (weight[:n_out, :n_in], bias[:n_out])
                for weight, bias, (n_in, n_out) in zip(
                    self.weights, self.biases, pairwise(sizes), strict=True
                )
            ]
            for layer in self.layers:
                bound = layer[0].shape[1] ** -0.5
                for part in layer:
                    draw = torch.rand(part.shape, generator=generator)
                    part.copy_((2 * draw - 1) * bound)

    @property
    def size(self) -> int:
        """Trainable parameters."""
        return sum(part.numel() for layer in self.layers for part in layer)

    def __call__(self, encoded: Tensor) -> Tensor:
        """The outputs at encoded positions."""
        z = encoded
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            z = silu(linear(z, weight, bias))
        return linear(z, self.weights[-1], self.biases[-1])


def gaussian_rows(rows: int, dimension: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """B, drawn once from a standard Gaussian."""
    return torch.randn(rows, dimension, generator=generator).to(device)
