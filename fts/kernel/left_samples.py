"""Scattered samples -> error at samples left out, in the ways in which they are missing.

At random; whole sensors, or places that a probe would have passed; whole frames.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from jaxtyping import Bool, Float, Int

from fts.kernel.covariance import Kernel
from fts.kernel.normal import build, mean_of, solve
from fts.kernel.prior import drawn_error
from fts.kernel.slices import Arranged, Sums, arrange
from fts.observations import Observations, distinct_rows

_SHARE = 0.1  # of the samples, sensors or frames left out
_COMMON = 8  # samples per frame, at least, for probes to share a clock
_STAYING = 0.5  # correlation of how many samples a tile of space has now and next, from which probes stay
_HELD = 10_000  # samples predicted at most
_ACCURACY, _LOOSEST, _TIGHTEST, _MOST = 0.03, 1e-2, 1e-6, 150  # of the solves, relative to the least error
_DRAWS, _CALIBRATED = 8, 400  # draws, and samples, that say what error the process expects


@dataclass
class LeftOut:
    """Mean square error at samples left out, over all ways, as a function of kernels and nugget."""

    observations: Observations
    values: Float[np.ndarray, " n"]
    sliced: str
    ways: Sequence[Int[np.ndarray, " n"] | None]
    rng: np.random.Generator
    step: Callable[[], object] = lambda: None
    least: float = 1.0  # the least error so far, which says how accurate solves must be
    known: dict[tuple[tuple[Kernel, ...], float], tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        o = self.observations
        self.masks = masks_of(self.ways, len(o), self.rng)
        self._sums = [_staying(o, self.values, self.sliced, mask) for mask in self.masks]

    def __call__(self, kernels: tuple[Kernel, ...], nugget: float) -> float:
        return sum(self.errors(kernels, nugget))

    def errors(self, kernels: tuple[Kernel, ...], nugget: float) -> tuple[float, ...]:
        """One mean square per way."""
        key = (kernels, nugget)
        if key not in self.known:
            self.step()
            self.known[key] = tuple(
                self._error(sums, mask, kernels, nugget)
                for sums, mask in zip(self._sums, self.masks, strict=True)
            )
            self.least = min(self.least, sum(self.known[key]))
        return self.known[key]

    def calibration(
        self, kernels: tuple[Kernel, ...], nugget: float, rng: np.random.Generator
    ) -> Callable[[], float]:
        """Least prior variance for which what is left out errs no more than expected, in any of the ways.

        Where kernels and nugget are right all ways ask for the same. It takes as long as the field and is
        drawn when first asked for, which a field alone never does; until then masks are kept, not the sums.
        """
        errors = self.errors(kernels, nugget)
        o, values, sliced, masks = self.observations, self.values, self.sliced, self.masks

        def asked(error: float, mask: np.ndarray) -> float:
            sums, rows = _staying(o, values, sliced, mask), _some(mask, _CALIBRATED)
            system = build(sums, kernels, nugget)
            spread = [drawn_error(sums, system, o.x[rows], o.t[rows], rng) ** 2 for _ in range(_DRAWS)]
            return error / (float(np.mean(spread)) + nugget)

        return cache(lambda: max(map(asked, errors, masks)))

    @property
    def layout(self) -> Arranged:
        """How the samples that stay lie, when left out the first way."""
        return self._sums[0].layout

    @property
    def tolerance(self) -> float:
        """Accuracy of the solves: finer than the least error found."""
        return float(np.clip(_ACCURACY * np.sqrt(self.least), _TIGHTEST, _LOOSEST))

    def _error(self, sums: Sums, mask: np.ndarray, kernels: tuple[Kernel, ...], nugget: float) -> float:
        system = build(sums, kernels, nugget)
        solution = solve(system, system.right, tolerance=self.tolerance, most=_MOST)
        rows = _some(mask, _HELD)
        predicted = mean_of(system, solution.z).at(self.observations.x[rows], self.observations.t[rows])
        return float(np.mean((predicted - self.values[rows]) ** 2))


def _some(mask: Bool[np.ndarray, " n"], most: int) -> Int[np.ndarray, " k"]:
    """At most so many rows of a mask, from all over: the first ones may be those of one probe."""
    rows = np.flatnonzero(mask)
    return rows[:: max(1, -(-len(rows) // most))]


def _staying(observations: Observations, values: np.ndarray, sliced: str, mask: np.ndarray) -> Sums:
    """Sums of the samples that are not left out."""
    o = observations
    return Sums(arrange(o.x[~mask], o.t[~mask], o.domain, sliced), values[~mask])


def groupings(observations: Observations, sliced: str) -> list[Int[np.ndarray, " n"] | None]:
    """Ways of leaving samples out, as the group of each sample; None for each by itself."""
    if sliced == "sensors":
        return [distinct_rows(observations.x)[1], None]
    if sliced == "frames":
        frames, place = np.unique(observations.t, return_inverse=True)
        return [_tiles(observations, len(frames)), place]
    return [None]


def tracks(observations: Observations) -> Int[np.ndarray, " n"] | None:
    """The tile of space of each sample where probes stay in such tiles for a while; None where none do.

    A sample on a track is predicted by its neighbours on it down to the noise, whatever the field does
    between the tracks; what a missing probe would leave open is a tile at all times.
    """
    o = observations
    frames, moment = np.unique(o.t, return_inverse=True)
    if len(frames) * _COMMON > len(o):  # clocks of their own
        steps = round(len(o) ** (1 / (1 + o.domain.dimension)))
        moment = np.minimum((o.t - o.domain.t0) / o.domain.extents[-1] * steps, steps - 1).astype(int)
    count = int(moment.max()) + 1
    place = _tiles(o, count)
    held = np.bincount(place * count + moment, minlength=(int(place.max()) + 1) * count).reshape(-1, count)
    now, following = held[:, :-1].ravel(), held[:, 1:].ravel()
    if not (now.std() and following.std()):
        return None
    return place if np.corrcoef(now, following)[0, 1] > _STAYING else None


def masks_of(
    groups: Sequence[Int[np.ndarray, " n"] | None], count: int, rng: np.random.Generator
) -> list[Bool[np.ndarray, " n"]]:
    """A share of the groups of each way, at least one."""
    masks = []
    for place in groups:
        if place is None:
            masks.append(rng.random(count) < _SHARE)
            continue
        every = np.unique(place)
        out = rng.choice(every, max(1, round(_SHARE * len(every))), replace=False)
        masks.append(np.isin(place, out))
    return masks


def _tiles(observations: Observations, frames: int) -> np.ndarray:
    """Tiles of space that hold one sample per frame on average: what a missing probe would leave open."""
    domain = observations.domain
    per_axis = max(2, round((len(observations) / frames) ** (1 / domain.dimension)))
    low, extents = np.array(domain.low), np.array(domain.extents[:-1])
    cells = np.minimum((per_axis * (observations.x - low) / extents).astype(int), per_axis - 1)
    return np.asarray(np.ravel_multi_index(tuple(cells.T), (per_axis,) * domain.dimension))
