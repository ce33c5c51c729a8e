"""CoordinateField: a network of (x, t) together, frozen; the ablation's counterpart of a factorized field.

u_hat(x, t) = f(gamma(s (x, t))): only the encoding factorizes; the layers see a grid point by point. Values
on a grid come in single precision, as in training; derivatives, which amplify rounding, in double.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from fts import files
from fts.domain import Domain, grid_points
from fts.fields.network import NetworkFeatures
from fts.fields.provenance import Provenance

# Points evaluated at once: the layers' arrays then stay near the processor.
_CHUNK = 1 << 13


@dataclass(frozen=True)
class CoordinateField:
    """A frozen coordinate network; evaluated, differentiated and saved like a FrozenField."""

    network: NetworkFeatures  # d + 1 coordinates in, one column out
    domain: Domain
    made: Provenance

    def __post_init__(self) -> None:
        if self.network.dimension != self.domain.dimension + 1:
            raise ValueError(
                f"a network of {self.network.dimension} coordinates cannot describe a domain with "
                f"{self.domain.dimension} spatial axes: it takes one more, the time"
            )

    def __call__(self, points: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """u_hat at the points (x, [y,] t)."""
        return self.derivative(points, (0,) * self.domain.dimension, 0)

    def derivative(
        self, points: Float[np.ndarray, "n d1"], alpha: tuple[int, ...], order: int = 0
    ) -> Float[np.ndarray, " n"]:
        """D^alpha in space and the order-th derivative in time, at the points (x, [y,] t)."""
        chunks = [points[i : i + _CHUNK] for i in range(0, len(points), _CHUNK)] or [points]
        return np.concatenate([self.network.at(chunk, (*alpha, order))[:, 0] for chunk in chunks])

    def on_grid(
        self, *axes: np.ndarray, alpha: tuple[int, ...] | None = None, order: int = 0
    ) -> Float[np.ndarray, "..."]:
        """u_hat, or its derivative, on the tensor grid of the axes (x, [y,] t), shaped like a trajectory."""
        alpha = alpha or (0,) * self.domain.dimension
        if any(alpha) or order:
            values = self.derivative(grid_points(axes), alpha, order)
        else:
            values = self.network.on_axes(axes, (*alpha, 0), np.float32)[:, 0]
        return values.reshape(*(axis.size for axis in axes))

    def save(self, path: str | Path) -> None:
        """Write the field to one small file, atomically."""
        header = {"form": "coordinate", "domain": self.domain.as_dict(), "made": self.made.as_dict()}
        files.save_arrays(Path(path), "field", header, self.network.arrays())

    @staticmethod
    def from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "CoordinateField":
        """The field whose file holds this header and these arrays."""
        files.expect(header, {"form": (str,), "domain": (dict,), "made": (dict,)})
        if header["form"] != "coordinate":
            raise files.FileError(f"holds a field of the unknown form {header['form'][:60]!r}")
        domain, made = Domain.from_dict(header["domain"]), Provenance.from_dict(header["made"])
        network = NetworkFeatures.from_arrays(arrays)
        if set(network.arrays()) != set(arrays) or network.rank != 0:
            raise files.FileError(f"holds the arrays {sorted(arrays)[:8]}, which are not one network's")
        return CoordinateField(network, domain, made)
