"""Samples by slice and by angle: sensors that keep their place, frames that keep their time, or neither.

Along the axes of the slices a function is known by its values there; along the others by waves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from fts.domain import Domain
from fts.kernel.covariance import Kernel, SampleAxis
from fts.kernel.waves import Circle, circle, fourier_sums
from fts.observations import distinct_rows


@dataclass(frozen=True)
class Arranged:
    """Samples by slice and by angle along the axes where they lie anywhere."""

    domain: Domain
    part: SampleAxis | None  # sensors or frames; None where there are no slices
    place: Int[np.ndarray, " n"] | None  # the slice of each sample
    circles: tuple[Circle, ...]  # of the axes of waves: those of space, then time, without the slices'
    theta: tuple[Float[np.ndarray, " n"], ...]
    sliced: str  # what the slices are: "sensors", "frames", or "" for none

    @property
    def count(self) -> int:
        """Samples."""
        return len(self.theta[0])

    @property
    def slices(self) -> int:
        """Sensors or frames; one where samples are scattered along all axes."""
        return 1 if self.part is None else len(self.part.points)

    def wave_kernels(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        """One kernel per axis of waves."""
        space, time = kernels
        single = [Kernel(space.family, (length,)) for length in space.lengths]
        return {"": [*single, time], "sensors": [time], "frames": single}[self.sliced]

    def slice_kernel(self, kernels: Sequence[Kernel]) -> Kernel:
        """The kernel between slices."""
        return kernels[0] if self.sliced == "sensors" else kernels[1]


class Sums:
    """Fourier sums of a layout's samples, per slice; made when first needed and again only for more waves."""

    def __init__(self, layout: Arranged, y: Float[np.ndarray, " n"]) -> None:
        self.layout, self.y = layout, y
        self._most: tuple[int, ...] = ()
        order = np.argsort(layout.place, kind="stable") if layout.place is not None else np.arange(len(y))
        ends = (
            np.cumsum(np.bincount(layout.place, minlength=layout.slices))
            if layout.place is not None
            else [len(y)]
        )
        self._rows = np.split(order, ends[:-1]) if layout.place is not None else [slice(None)]

    def of(self, most: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Sums of ones up to twice the waves, and of the values up to the waves."""
        if not self._most or any(m > have for m, have in zip(most, self._most, strict=True)):
            self._most = tuple(max(m, have) for m, have in zip(most, self._most or most, strict=True))
            self._ones = self._make(np.ones(len(self.y)), [2 * m for m in self._most])
            self._values = self.strengths(self.y, self._most)
        return self._ones, self._values

    def strengths(self, values: np.ndarray, most: Sequence[int]) -> np.ndarray:
        """Sums of values of the samples up to the waves."""
        return self._make(values, most)

    def _make(self, values: np.ndarray, most: Sequence[int]) -> np.ndarray:
        return np.stack(
            [fourier_sums([a[rows] for a in self.layout.theta], values[rows], most) for rows in self._rows]
        )


def arrange(x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"], domain: Domain, sliced: str) -> Arranged:
    """Samples in slices of sensors or frames, or ("") in none."""
    ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), (*domain.periodic, False), strict=True)
    *space, time = (circle(*end) for end in ends)
    *extents, duration = domain.extents
    angles = [c.angles(column) for c, column in zip(space, x.T, strict=True)]
    if not sliced:
        return Arranged(domain, None, None, (*space, time), (*angles, time.angles(t)), "")
    if sliced == "sensors":
        points, place = distinct_rows(x)
        periods = tuple(e if closed else None for e, closed in zip(extents, domain.periodic, strict=True))
        part = SampleAxis(points, tuple(extents), periods)
        return Arranged(domain, part, place, (time,), (time.angles(t),), sliced)
    points, place = np.unique(t, return_inverse=True)
    part = SampleAxis(points[:, None], (duration,), (None,))
    return Arranged(domain, part, place, tuple(space), tuple(angles), sliced)
