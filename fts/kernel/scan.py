"""Scattered samples -> kernels, length scales and nugget: those that predict samples left out best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.asked import announce
from fts.domain import Domain
from fts.kernel.covariance import FAMILIES, Kernel, SampleAxis
from fts.kernel.dense import MOST, DenseLeftOut, on_closed_axes
from fts.kernel.duration import of_scattered
from fts.kernel.left_samples import LeftOut, groupings, tracks
from fts.kernel.search import Choice
from fts.kernel.simplex import Error, lowered
from fts.kernel.waves import PADDING
from fts.observations import Observations

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
    announce(seconds, f"fitting {count:,} samples", "thin them, or give those of a shorter record")
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
