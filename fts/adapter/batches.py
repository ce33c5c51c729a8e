"""Observations -> the tensors training reads: distinct positions, distinct frames, and the pairs measured.

A factorized field needs the network only at distinct positions. On a sensor x frame grid all pairs are one
matrix product; scattered samples gather their rows and columns from the same two factors.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fts.observations import Observations

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

    def draw_frames(self, count: int, rng: torch.Generator) -> Tensor:
        """Distinct frames for one update, more than `count` where scattered samples are few to a frame."""
        total = len(self.frames)
        if self.values is None:
            count = max(count, math.ceil(_SCATTERED_BATCH * total / len(self.y)))
        if count >= total:
            return torch.arange(total, device=self.y.device)
        return torch.randperm(total, generator=rng)[:count].to(self.y.device)

    def of_frames(self, frames: Tensor) -> Tensor:
        """Which samples were measured in these frames, frame by frame."""
        counts = self.starts[frames + 1] - self.starts[frames]
        # Sample i of its frame: a running index minus where the frame's run began, plus where it begins in y.
        shift = self.starts[frames] - (torch.cumsum(counts, 0) - counts)
        shifts = torch.repeat_interleave(shift, counts)
        return torch.arange(len(shifts), device=frames.device) + shifts


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
