"""Scattered samples -> error at samples left out, in the ways in which they are missing.

At random; whole sensors, or places that a probe would have passed; whole frames.

Scattered samples -> kernels, length scales and nugget: those that predict samples left out best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from jaxtyping import Bool, Float, Int

from fts.domain import Domain
from fts.kernel.covariance import FAMILIES, Kernel, SampleAxis
from fts.kernel.dense import MOST, DenseLeftOut, on_closed_axes
from fts.kernel.fourier import PADDING, Arranged, Sums, arrange
from fts.kernel.normal_equations import build, drawn_error, mean_of, of_scattered, solve
from fts.kernel.search import Choice, Error, lowered
from fts.observations import Observations, unique_rows
from fts.validation import warn_if_long

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
        return [unique_rows(observations.x)[1], None]
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


# Scan: common fraction of the extents from the largest down by a ratio, these nuggets, so many samples.
_LARGEST, _RATIO, _NUGGETS, _SCANNED = 0.5, 1.7, (1e-6, 1e-2), 4000
_RISES = 2  # the scan ends when the error has risen this often
# Simplex search: on a window of so many length scales per axis, whose samples are as dense as all are, and on
# so many samples of it.
_WINDOW, _SEARCHED = 12.0, 10_000
# Where the scan's kernels err less than this, in deviations of the data, noise does not limit the search: so
# many samples of a smaller window, and so many evaluations, tell as much, unless all samples err by more than
# this times the mean square of that window, as along the tracks of probes.
_CLEAN, _ENOUGH, _AGREE = 0.03, 2000, 4.0
_PLACES = 16  # windows looked at; the one where most happens is taken
# Kernels chosen by what lies between tracks: this ratio of mean squares at single samples is no worse; what
# refuses the others, in variances of the data.
_NO_WORSE, _REFUSED = 1.05, 10.0
_HOPELESS = 4.0  # times the mean square of a larger nugget: a smaller one is not tried at shorter scales

Found = tuple[tuple[Kernel, ...], float]
Ways = Sequence[np.ndarray | None]


@dataclass(frozen=True)
class Effort:
    """Evaluations of a simplex search, and how near in mean square another family must come to get some."""

    first: int
    others: int
    near: float


_WHOLE, _QUICK = Effort(60, 30, 4.0), Effort(32, 16, 1.5)


def choose(
    observations: Observations,
    values: Float[np.ndarray, " n"],
    sliced: str,
    rng: np.random.Generator,
    step: Callable[[], object],
) -> tuple[Choice, Callable[[], float]]:
    """Kernels and nugget with the least error on what was left out, and what draws the variance it implies.

    `values` are standardized; `step` is called once per evaluation.
    """
    error = _dense if len(observations) <= MOST else _by_waves
    everything, best = error(observations, values, sliced, rng, step)
    errors = tuple(float(np.sqrt(e)) for e in everything.errors(*best))
    return Choice(*best, errors), everything.calibration(*best, rng)


def _dense(
    observations: Observations,
    values: np.ndarray,
    sliced: str,
    rng: np.random.Generator,
    step: Callable[[], object],
) -> tuple[DenseLeftOut, Found]:
    *extents, duration = observations.domain.extents
    padded = zip(extents, observations.domain.periodic, strict=True)
    space = SampleAxis(observations.x, tuple(extents), tuple(e * (1 if p else PADDING) for e, p in padded))
    time = SampleAxis(observations.t[:, None], (duration,), (PADDING * duration,))
    covariance = on_closed_axes((space, time))
    error = DenseLeftOut(covariance, values, groupings(observations, sliced), step)
    found = _scanned(observations.domain, len(values), error)
    best = _simplex(found, observations.domain, error, _WHOLE)
    if ways := _hidden(observations, sliced, error, best):
        error = DenseLeftOut(covariance, values, ways, step)
        best = _between_tracks(found, best, observations.domain, error)
    return error, best


def _by_waves(
    observations: Observations,
    values: np.ndarray,
    sliced: str,
    rng: np.random.Generator,
    step: Callable[[], object],
) -> tuple[LeftOut, Found]:
    domain = observations.domain

    def within(rows: np.ndarray, box: Domain, sliced: str, ways: Ways = ()) -> LeftOut:
        o = observations
        part = o if len(rows) == len(o) else Observations(o.x[rows], o.t[rows], o.y[rows], box)
        own = [None if way is None else way[rows] for way in ways] or groupings(part, sliced)
        return LeftOut(part, values[rows], sliced, own, rng, step)

    everything = within(np.arange(len(values)), domain, sliced)
    few = _rows(len(values), _SCANNED, rng)
    # a few samples of each sensor or frame are scattered samples
    error = everything if len(few) == len(values) else within(few, domain, "")
    found = _scanned(domain, len(few), error)
    window, rows = _window(observations, values, found[0], rng, _SEARCHED)
    error = everything if window is domain else within(rows, window, sliced)
    if window is not domain and error(*found) < _CLEAN**2:
        smaller, few = _window(observations, values, found[0], rng, _ENOUGH)
        quick = within(few, smaller, sliced)
        best = _simplex(found, domain, quick, _QUICK)
        _prepare(everything, quick, best)
        if everything(*best) < _AGREE * quick(*best):
            return everything, best
    best = _simplex(found, domain, error, _WHOLE)
    if ways := _hidden(observations, sliced, error, best):
        everything = within(np.arange(len(values)), domain, sliced, ways)
        error = everything if window is domain else within(rows, window, sliced, ways)
        best = _between_tracks(found, best, domain, error)
    _prepare(everything, error, best)
    return everything, best


def _hidden(observations: Observations, sliced: str, error: Error, found: Found) -> Ways:
    """What else to leave out where noise hides from single samples what the field does between tracks."""
    if sliced or error(*found) < _CLEAN**2:
        return ()
    place = tracks(observations)
    return () if place is None else (place, None)


def _between_tracks(found: Found, best: Found, domain: Domain, error: LeftOut | DenseLeftOut) -> Found:
    """What predicts all that is left out best, of kernels that miss hardly more of single samples.

    What lies between tracks may not be predictable at all; a smoother field would then give up the samples
    for it, and call what it misses of them noise.
    """
    most = _NO_WORSE * error.errors(*best)[-1]

    def limited(kernels: tuple[Kernel, ...], nugget: float) -> float:
        errors = error.errors(kernels, nugget)
        return sum(errors) + (0.0 if errors[-1] <= most else _REFUSED)

    return min(best, _simplex(found, domain, limited, _WHOLE), key=lambda one: limited(*one))


def _prepare(everything: LeftOut, searched: LeftOut, best: Found) -> None:
    """Say how long all samples will take, and solve for them as accurately as the search did."""
    count = len(everything.values)
    seconds = of_scattered(everything.layout, *best)
    warn_if_long(seconds, f"fitting {count:,} samples", "thin them, or give those of a shorter record")
    everything.least = min(everything.least, searched.least)


def _simplex(found: Found, domain: Domain, error: Error, effort: Effort) -> Found:
    """Downhill from what the scan found, then with the other family for each factor where that is near."""
    kernels, nugget = lowered(*found, domain.extents, error, effort.first)
    for axis in range(len(kernels)):
        other = FAMILIES[1 - FAMILIES.index(kernels[axis].family)]
        changed = Kernel(other, kernels[axis].lengths)
        trial = (*kernels[:axis], changed, *kernels[axis + 1 :])
        if error(trial, nugget) < effort.near * error(kernels, nugget):
            candidate = lowered(trial, nugget, domain.extents, error, effort.others)
            if error(*candidate) < error(kernels, nugget):
                kernels, nugget = candidate
    return kernels, nugget


def _scanned(domain: Domain, count: int, error: Error) -> Found:
    *extents, duration = domain.extents
    least = count ** (-1 / (len(extents) + 1))
    found = []
    for family in FAMILIES:
        fraction, rises, lowest, nuggets = _LARGEST, 0, np.inf, _NUGGETS
        while fraction > least and rises < _RISES:
            kernels = (
                Kernel(family, tuple(fraction * e for e in extents)),
                Kernel(family, (fraction * duration,)),
            )
            tried = [(error(kernels, nugget), kernels, nugget) for nugget in nuggets]
            best = min(tried, key=lambda entry: entry[0])
            # where a nugget is too small it is so for shorter scales as well, and its solves take longest
            nuggets = tuple(s for value, _, s in tried if s >= best[2] or value < _HOPELESS * best[0])
            rises += best[0] > lowest
            lowest = min(lowest, best[0])
            found.append(best)
            fraction /= _RATIO
    _, kernels, nugget = min(found, key=lambda entry: entry[0])
    return kernels, nugget


def _rows(count: int, most: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(count) if count <= 1.5 * most else np.sort(rng.choice(count, most, replace=False))


def _window(
    observations: Observations,
    values: np.ndarray,
    kernels: tuple[Kernel, ...],
    rng: np.random.Generator,
    most: int,
) -> tuple[Domain, np.ndarray]:
    """A box of a dozen length scales per axis, or of about `most` samples if that is smaller, where most
    happens, and rows of samples in it.
    """
    domain = observations.domain
    lengths = np.array([length for chosen in kernels for length in chosen.lengths])
    low, extents = np.array((*domain.low, domain.t0)), np.array(domain.extents)
    if len(observations) <= most:
        return domain, np.arange(len(observations))
    size = np.minimum(extents, _WINDOW * lengths)
    if most < _SEARCHED:  # a larger one is thinned instead
        share = most / (len(observations) * float(np.prod(size / extents)))
        size = size * min(1.0, share ** (1 / len(size)))
    points = np.column_stack([observations.x, observations.t])
    best = (-1.0, low, np.arange(0))
    for _ in range(_PLACES):
        corner = low + rng.random(len(low)) * (extents - size)
        inside = np.flatnonzero(np.all((points >= corner) & (points <= corner + size), axis=1))
        energy = float(np.sum(values[inside] ** 2))
        best = max(best, (energy, corner, inside), key=lambda b: b[0])
    _, corner, inside = best
    ends = corner + size
    closed = tuple(bool(p and s == e) for p, s, e in zip(domain.periodic, size, extents, strict=False))
    window = Domain(
        tuple(corner[:-1].tolist()), tuple(ends[:-1].tolist()), float(corner[-1]), float(ends[-1]), closed
    )
    return window, inside[_rows(len(inside), most, rng)]
