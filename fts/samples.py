"""Observations -> the tensors training reads: distinct positions, distinct frames, and the pairs measured.

A factorized field needs the network only at distinct positions. On a sensor x frame grid all pairs are one
matrix product; scattered samples gather their rows and columns from the same two factors.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fts.data import Observations

# Scattered samples an update sees; about as many as a 32-frame update of the largest benchmark grid needs.
_SCATTERED_BATCH = 4096


@dataclass(frozen=True)
class Samples:
    """What was measured where: `values` (F, S) on a grid, and `y` with each sample's row and column."""

    positions: Tensor  # (S, d)
    frames: np.ndarray  # (F,) float64, for the splines
    values: Tensor | None  # (F, S)
    y: Tensor  # (n,), sorted by frame
    row: Tensor  # (n,) index into positions
    column: Tensor  # (n,) index into frames
    starts: Tensor  # (F + 1,) where a frame's samples begin in y
    variance: float

    @property
    def batch_frames(self) -> int:
        """Frames that carry a batch of scattered samples."""
        return int(np.ceil(_SCATTERED_BATCH * len(self.frames) / len(self.y)))

    def of_frames(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(y, row, place of the frame in `frames`) of the samples measured in these frames."""
        counts = self.starts[frames + 1] - self.starts[frames]
        place = torch.repeat_interleave(torch.arange(len(frames), device=frames.device), counts)
        # Sample i of its frame: a running index minus where the frame's run began, plus where it begins in y.
        offset = torch.cumsum(counts, 0) - counts
        index = torch.arange(len(place), device=frames.device) - offset[place] + self.starts[frames][place]
        return self.y[index], self.row[index], place


def prepare(observations: Observations, device: torch.device) -> Samples:
    """The observations as float32 tensors, factorized into distinct positions and frames."""
    positions, row = np.unique(observations.x, axis=0, return_inverse=True)
    frames, column = np.unique(observations.t, return_inverse=True)
    variance = float(observations.y.var())
    order = np.argsort(column, kind="stable")
    starts = np.searchsorted(column[order], np.arange(len(frames) + 1))
    grid = observations.grid

    def tensor(array: np.ndarray) -> Tensor:
        kind = torch.float32 if array.dtype.kind == "f" else torch.int64
        return torch.as_tensor(np.ascontiguousarray(array), dtype=kind, device=device)

    return Samples(
        positions=tensor(positions),
        frames=frames,
        values=None if grid is None else tensor(grid.values.T),
        y=tensor(observations.y[order]),
        row=tensor(row.ravel()[order]),
        column=tensor(column[order]),
        starts=tensor(starts),
        variance=variance,
    )
