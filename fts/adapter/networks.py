"""A Fourier encoding and a Swish network on it (Supplement A.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import linear, silu


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

    def __call__(self, x: Tensor) -> Tensor:
        """The encoded positions, (n, outputs)."""
        if not len(self.rows):
            return self.scale * x
        phase = x @ self._scaled
        return torch.cat([torch.sin(phase), torch.cos(phase)], dim=1)


# Products with 75 columns take longer than with 80, which fill the processor's vectors: with layers left as
# they are, an update of the coordinate networks on 2D AD, the slowest of all, takes 11 to 16 % longer.
_LANES = 8


class Network:
    """Swish layers on an encoding; PyTorch's default initial weights, uniform in +-1/sqrt(inputs).

    Hidden layers are filled up to whole vectors with units whose weights are zero: swish(0) = 0, so neither
    their values nor their gradients ever leave zero, and `layers` shows the network without them.
    """

    def __init__(
        self, encoding: Encoding, width: int, depth: int, outputs: int, generator: torch.Generator
    ) -> None:
        self.encoding = encoding
        self.sizes = [encoding.outputs, *[width] * depth, outputs]
        filled = [encoding.outputs, *[-(-width // _LANES) * _LANES] * depth, outputs]
        # A tensor each: in one flat vector for all, updates of KS and KdV take 4 to 8 % less time.
        self.parameters = [
            torch.zeros(shape, device=encoding.rows.device, requires_grad=True)
            for n_in, n_out in pairwise(filled)
            for shape in ((n_out, n_in), (n_out,))
        ]
        for weight, bias in self.layers:
            for part in (weight, bias):
                draw = torch.rand(part.shape, generator=generator)
                part.copy_((2 * draw - 1) * weight.shape[1] ** -0.5)

    @property
    def layers(self) -> list[tuple[Tensor, Tensor]]:
        """(weight, bias) of every layer, without the units that fill it up; they share memory."""
        parts = zip(self.parameters[0::2], self.parameters[1::2], pairwise(self.sizes), strict=True)
        return [
            (weight.detach()[:n_out, :n_in], bias.detach()[:n_out]) for weight, bias, (n_in, n_out) in parts
        ]

    @property
    def size(self) -> int:
        """Trainable parameters."""
        return sum(part.numel() for layer in self.layers for part in layer)

    def __call__(self, encoded: Tensor) -> Tensor:
        """The outputs at encoded positions."""
        *hidden, last = zip(self.parameters[0::2], self.parameters[1::2], strict=True)
        z = encoded
        for weight, bias in hidden:
            z = silu(linear(z, weight, bias))
        return linear(z, *last)


def whole_waves(rows: Tensor, scale: float, periods: Sequence[float | None]) -> Tensor:
    """B with whole waves along every axis that has a period: the encoding closes as the axis does."""
    rows = rows.clone()
    for axis, period in enumerate(periods):
        if period is not None:
            unit = 2 * torch.pi / (scale * period)
            rows[:, axis] = unit * torch.round(rows[:, axis] / unit)
    return rows


def gaussian_rows(rows: int, dimension: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """B, drawn once from a standard Gaussian."""
    return torch.randn(rows, dimension, generator=generator).to(device)
