"""Observations -> what every training starts from: settings, units, seed, device and tensors.

A factorized field needs the network only at distinct positions. On a sensor x frame grid all pairs are one
matrix product; scattered samples gather their rows and columns from the same two factors.

For data no table gives settings for, the scale of the Fourier encoding is chosen by linear regression on
random Fourier features in place of the network: its leave-one-out error is closed form, and the scale with
the smallest one is what the positions and the field's roughness allow.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fts.observations import Observations
from fts.params.paper import PAPER
from fts.params.types import AdapterParams, ModelParams, changed

# Scattered samples an update sees; about as many as a 32-frame update of the largest benchmark grid needs.
_SCATTERED_BATCH = 4096
_ROWS = 64
# Periods of the longest axis at one deviation of the rows, and ridges relative to the largest singular value.
_PERIODS = tuple(0.25 * 2**k for k in range(8))
_RIDGES = (1e-6, 1e-4, 1e-2)
# Leave-one-out needs one decomposition of samples x features; more samples than this add nothing to a choice.
_MOST = 2000
# The same for scattered samples, whose matrix is square; widths in time relative to the run looked at.
_MOST_SCATTERED = 1200
_WIDTHS = (0.3, 1.0, 3.0)
_NUGGET = 1e-4


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


@dataclass(frozen=True)
class Origin:
    """Where coordinates and values of a training begin."""

    corner: tuple[float, ...]
    value: float


def device() -> torch.device:
    """FTS_DEVICE if set ("cpu", "cuda", "cuda:1"), else the first GPU, else the CPU."""
    name = os.environ.get("FTS_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"FTS_DEVICE={name!r} cannot be used here ({error}): set it to cpu") from None


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside the block, the caller's own setting after it: parallelism is over runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def prepare(observations: Observations, device: torch.device) -> Samples:
    """The observations as float32 tensors, factorized into distinct positions and frames."""
    positions, row = np.unique(observations.x, axis=0, return_inverse=True)
    frames, column = np.unique(observations.t, return_inverse=True)
    order = np.argsort(column, kind="stable")
    starts = np.searchsorted(column[order], np.arange(len(frames) + 1))
    grid = observations.grid

    def tensor(array: np.ndarray) -> Tensor:
        kind = torch.float32 if array.dtype.kind == "f" else torch.int64
        return torch.as_tensor(np.ascontiguousarray(array), dtype=kind, device=device)

    values = None if grid is None else tensor(grid.values.T)
    by_frame = (observations.y[order], row.ravel()[order], column[order], starts)
    y, row, column, starts = (tensor(array) for array in by_frame)
    return Samples(tensor(positions), frames, values, y, row, column, starts, float(observations.y.var()))


def settings(observations: Observations) -> AdapterParams:
    """The paper's settings for a benchmark; for other data those of KS, with a scale that suits the data."""
    if observations.problem in PAPER:
        return PAPER[observations.problem].adapter
    return changed(PAPER["ks"].adapter, coordinate_scale=coordinate_scale(observations))


def periods(observations: Observations) -> tuple[float | None, ...]:
    """Periods of axes that close on themselves; none for the paper's problems, whose encoding has none."""
    domain = observations.domain
    if observations.problem in PAPER:
        return (None,) * domain.dimension
    return tuple(e if closed else None for e, closed in zip(domain.extents, domain.periodic, strict=False))


def centered(observations: Observations, *, positive: bool) -> tuple[Observations, Origin]:
    """The observations from the corner of their domain and from their mean, as single precision needs them.

    The paper's problems stay where they are, and positive fields keep their zero.
    """
    domain = observations.domain
    if observations.problem in PAPER:
        return observations, Origin((0.0,) * domain.dimension, 0.0)
    origin = Origin(domain.low, 0.0 if positive else float(observations.y.mean()))
    moved = replace(domain, low=(0.0,) * domain.dimension, high=domain.extents[:-1])
    x, y = np.clip(observations.x - domain.low, 0.0, moved.high), observations.y - origin.value
    return replace(observations, x=x, y=y, domain=moved), origin


def require_determined(observations: Observations, model: ModelParams) -> None:
    """Raise where the model cannot be determined by the observations at all."""
    frames, positions = len(np.unique(observations.t)), len(np.unique(observations.x, axis=0))
    if positions <= model.rank:
        raise ValueError(
            f"{positions} positions cannot carry {model.rank} spatial features: observe more positions or "
            "lower the rank"
        )
    if len(observations) <= model.rank * 4:
        raise ValueError(
            f"{len(observations)} samples ({positions} positions, {frames} frames) are too few for "
            f"{model.rank} features: add samples or lower the rank"
        )


def value_unit(observations: Observations) -> float:
    """The standard deviation of the values: the unit networks are trained in."""
    value = float(observations.y.std())
    if value == 0:
        raise ValueError(f"all {len(observations)} values are {observations.y[0]}: there is no field to fit")
    return value


def generator(observations: Observations, seed: int | None) -> torch.Generator:
    """The run's source of randomness, on the CPU so that every device draws the same numbers."""
    chosen = seed if seed is not None else observations.seed
    return torch.Generator().manual_seed(0 if chosen is None else chosen)


def coordinate_scale(observations: Observations) -> float:
    """The factor on x before the encoding, by leave-one-out error over positions or scattered samples."""
    extent = max(observations.domain.extents[:-1])
    scales = [2 * np.pi * periods / extent for periods in _PERIODS]
    grid = observations.grid
    if grid is None:
        errors = _scattered_errors(observations, scales)
    else:
        rng = np.random.default_rng(0)
        chosen = rng.permutation(len(grid.sensors))[:_MOST]
        points, targets = grid.sensors[chosen], grid.values[chosen]
        errors = [_leave_one_out(_encode(points, scale, rng), targets) for scale in scales]
    return scales[int(np.argmin(errors))]


def _scattered_errors(observations: Observations, scales: list[float]) -> list[float]:
    """Leave-one-out errors with exp(-s^2 |x - x'|^2 / 2), the limit of random features, times time's."""
    # A run of samples around the middle of the record is as dense as the data are; a random choice is not.
    order = np.argsort(observations.t, kind="stable")
    begin = max(0, (len(order) - _MOST_SCATTERED) // 2)
    chosen = order[begin : begin + _MOST_SCATTERED]
    x, t, y = observations.x[chosen], observations.t[chosen], observations.y[chosen]
    space = ((x[:, None] - x[None, :]) ** 2).sum(axis=2)
    time = ((t[:, None] - t[None, :]) / max(np.ptp(t), 1e-300)) ** 2
    y = y - y.mean()

    def error(scale: float, width: float) -> float:
        """Mean squared alpha_i / (K^-1)_ii with alpha = K^-1 y, over the kernel K and a nugget."""
        K = np.exp(np.maximum(-(scale**2) * space / 2 - time / (2 * width**2), -700.0))
        K[np.diag_indices_from(K)] += _NUGGET
        inverse = np.linalg.inv(K)
        return float(np.mean((inverse @ y / np.diag(inverse)) ** 2))

    return [min(error(scale, width) for width in _WIDTHS) for scale in scales]


def _encode(points: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
    phase = points @ (scale * rng.standard_normal((_ROWS, points.shape[1]))).T
    return np.column_stack([np.ones(len(points)), np.sin(phase), np.cos(phase)])


def _leave_one_out(features: Float[np.ndarray, "n m"], targets: Float[np.ndarray, "n k"]) -> float:
    """The smallest mean squared leave-one-out residual over the ridges: (y - H y) / (1 - diag H)."""
    U, s, _ = np.linalg.svd(features, full_matrices=False)
    rotated = U.T @ targets
    best = np.inf
    for ridge in _RIDGES:
        shrink = s**2 / (s**2 + ridge * s[0] ** 2)
        residual = targets - (U * shrink) @ rotated
        leverage = np.minimum((U**2) @ shrink, 1 - 1e-9)
        best = min(best, float(np.mean((residual / (1 - leverage)[:, None]) ** 2)))
    return best
