"""Samples -> kernels, length scales and nugget: those that predict what is left out best.

What a protocol leaves out is what the criterion leaves out: frames, sensors, grid lines, single samples.
"""

import functools
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import optimize
from scipy.interpolate import CubicSpline

from fts.domain import Domain
from fts.kernel.covariance import FAMILIES, Choice, Kernel, SampleAxis, Spectrum, decompose, multiply
from fts.kernel.cross_validation import (
    MOST_DENSE,
    Error,
    Groups,
    HoldOut,
    HoldOutOfGrid,
    LeaveGroupOut,
    leave_group_out_of_grid,
    tracks,
    ways_of_grouping,
)
from fts.kernel.fourier import PADDING
from fts.kernel.normal_equations import MaskedNormalEquations, PartialGrid, Solution, seconds_of_scattered
from fts.observations import Observations
from fts.validation import warn_if_long

Step = Callable[[], object]  # called once per evaluation, for progress bars
Kernels = tuple[Kernel, ...]
Found = tuple[Kernels, float]  # kernels and nugget

# Nelder-Mead: sides of the simplex, and differences of its values, at which the search ends; first steps of
# length scales and nugget; length scales within these fractions of the extents; nuggets.
_SIDE, _DIFFERENCE = 0.02, 0.005
_FIRST, _SHORTEST, _LONGEST, _NUGGET_LIMITS = (0.7, 0.05), 1e-3, 10.0, (1e-13, 10.0)

# Full grids. Nuggets of the coarse search, in units of the kernel's variance (below the least, rounding acts
# as one), its length scales per factor, its sweeps, and ratios of the pattern search that follows.
_NUGGETS = tuple(10.0**k for k in range(-14, 1, 2))
_LENGTHS, _SWEEPS, _STEPS = 8, 2, ((1.4, 10.0), (1.1, 3.0))
_KEPT, _FEWEST_KEPT = 1 << 27, 8  # numbers in decompositions kept: a gigabyte
# Grids whose decompositions and products take more operations than this are searched on so many slices.
_OPERATIONS, _SLICES = 12e9, 350
_SHARE = 6  # one of so many slices ranks the candidates of the coarse search
_LEAST_GAIN = 1e-3  # a smaller relative decrease of the error is not worth another step

# Grids with holes. Share of holes up to which what fills them hardly matters; evaluations of a search.
_FEW_HOLES, _EVALUATIONS = 0.02, 40
# Where the first field leaves less than this of its samples, in their deviation, holes are completed anew so
# many times, with nuggets whose solves converge; where it leaves more, noise is what limits the search.
_NOISE, _ROUNDS, _SOLVABLE = 0.03, 2, 1e-9
_CUBIC = 4  # samples of a sensor that a cubic spline takes

# Scattered samples. Coarse search: common fraction of the extents from the largest down by a ratio, these
# nuggets, so many samples; it ends when the error has risen this often; times the mean square of a larger
# nugget, a smaller one is not tried at shorter scales.
_LARGEST, _RATIO, _COARSE_NUGGETS, _COARSE_SAMPLES, _RISES, _HOPELESS = 0.5, 1.7, (1e-6, 1e-2), 4000, 2, 4.0
# A few of all samples resolve no wave shorter than their distances. Where they leave more than this share of
# the variance, as many neighbours are searched, whose kernels must leave less than this ratio of what the
# others leave there.
_UNRESOLVED, _BETTER = 0.5, 0.8
# Then on a window of so many length scales per axis, whose samples are as dense as all are, and on so many
# samples of it; the one of so many windows where most happens is taken.
_WINDOW, _SEARCHED, _WINDOWS = 12.0, 10_000, 16
# Where the coarse search's kernels err less than this, in deviations of the data, noise does not limit the
# search: so many samples of a smaller window, and so many evaluations, tell as much, unless all samples err
# by more than this times the mean square of that window, as along the tracks of probes.
_CLEAN, _ENOUGH, _AGREE = 0.03, 2000, 4.0
# Kernels chosen by what lies between tracks: this ratio of mean squares at single samples is no worse; what
# refuses the others, in variances of the data.
_NO_WORSE, _REFUSED = 1.05, 10.0


class Effort(NamedTuple):
    """Evaluations of a simplex search, and how near in mean square another family must come to get some."""

    first: int
    others: int
    near: float


_WHOLE, _QUICK = Effort(60, 30, 4.0), Effort(32, 16, 1.5)


def nelder_mead(
    kernels: Kernels, nugget: float, extents: tuple[float, ...], error: Error, most: int
) -> Found:
    """Length scales and nugget of least error near these: both change together along the valley."""
    ends = np.cumsum([len(kernel.lengths) for kernel in kernels])[:-1]
    low = np.log([*(_SHORTEST * np.array(extents)), _NUGGET_LIMITS[0]])
    high = np.log([*(_LONGEST * np.array(extents)), _NUGGET_LIMITS[1]])

    def unpacked(logarithms: np.ndarray) -> Found:
        *lengths, last = np.exp(np.clip(logarithms, low, high)).tolist()
        pairs = zip(kernels, np.split(np.array(lengths), ends), strict=True)
        return tuple(Kernel(kernel.family, tuple(each.tolist())) for kernel, each in pairs), last

    start = np.log([*(length for kernel in kernels for length in kernel.lengths), nugget])
    steps = np.log([*[_FIRST[0]] * (len(start) - 1), _FIRST[1]])
    options = {
        "initial_simplex": np.vstack([start, start + np.diag(steps)]),
        "maxfev": most,
        "xatol": _SIDE,
        "fatol": _DIFFERENCE,
    }
    minimum = optimize.minimize(
        lambda p: float(np.log(error(*unpacked(p)))), start, method="Nelder-Mead", options=options
    )
    return unpacked(minimum.x)


def search_grid(
    parts: tuple[SampleAxis, ...], values: Float[np.ndarray, "..."], step: Step, least: float = _NUGGETS[0]
) -> Choice:
    """Kernels, length scales and nugget with the least error on left-out slices and pairs, over all axes.

    A slice is a frame, a sensor or a grid line. `values` have mean zero and unit variance; no nugget is below
    `least`.
    """
    allowed = tuple(s for s in _NUGGETS if s >= least)
    axes = range(len(parts))
    size = prod(len(part.points) for part in parts)
    # eigenvectors of every axis that is no circle, and their products with all values
    turned = (len(part.points) for part in parts if not part.circulant)
    if sum(n**3 + n * size for n in turned) > _OPERATIONS:
        return _search_thinned(parts, values, step, least)
    error = _errors_of_grid(parts, values)
    candidates = [_candidates(part) for part in parts]
    kernels = tuple(each[1] for each in candidates)
    # The axis with the largest error decides about the nugget; the others follow it.
    order = sorted(axes, key=lambda axis: -min(sum(error(kernels, s, axis)) for s in allowed[::2]))
    nugget = allowed[0]
    for sweep, axis in product(range(_SWEEPS), order):
        nuggets = allowed if (sweep, axis) == (0, order[0]) else (nugget,)
        trials = [(*kernels[:axis], candidate, *kernels[axis + 1 :]) for candidate in candidates[axis]]
        # A share of the slices puts the best first; what errs more on it alone is not looked at further.
        pairs = product(enumerate(trials), nuggets)
        ranked = sorted((error(k, s, axis, share=_SHARE)[0], i, k, s) for (i, k), s in pairs)
        least_error = np.inf
        for part, _, trial, trial_nugget in ranked:
            value = np.inf if part > least_error else sum(error(trial, trial_nugget, axis, least_error))
            if value < least_error:
                least_error, kernels, nugget = value, trial, trial_nugget
        step()

    def total(kernels: Kernels, nugget: float, bound: float) -> float:
        """Over all axes; infinite where it exceeds the bound."""
        errors = 0.0
        for axis in axes:
            errors += sum(error(kernels, nugget, axis, bound - errors))
        return errors

    kernels, nugget = _pattern_search(kernels, nugget, total, least)
    step()
    return Choice(kernels, nugget, tuple(float(np.sqrt(error(kernels, nugget, axis)[0])) for axis in axes))


def _search_thinned(parts: tuple[SampleAxis, ...], values: np.ndarray, step: Step, least: float) -> Choice:
    """The better of two searches, on slices from all over and on a block, judged where samples are dense."""
    rows = [[pick(part) for part in parts] for pick in (_every_so_many, _innermost)]
    spread, block = (
        (tuple(part.subset(r) for part, r in zip(parts, each, strict=True)), values[np.ix_(*each)])
        for each in rows
    )
    choices = [search_grid(*thinned, step, least) for thinned in (spread, block)]
    error = _errors_of_grid(*block)

    def judged(choice: Choice) -> tuple[float, ...]:
        return tuple(error(choice.kernels, choice.nugget, axis)[0] for axis in range(len(parts)))

    best = min(choices, key=lambda choice: sum(judged(choice)))
    return Choice(best.kernels, best.nugget, tuple(float(np.sqrt(e)) for e in judged(best)))


def _every_so_many(part: SampleAxis) -> np.ndarray:
    return np.arange(len(part.points))[:: -(-len(part.points) // _SLICES)]


def _innermost(part: SampleAxis) -> np.ndarray:
    """The slices nearest to the middle, in their order."""
    scaled = (part.points - np.median(part.points, axis=0)) / np.array(part.extents)
    return np.sort(np.argsort(np.max(np.abs(scaled), axis=1), kind="stable")[:_SLICES])


def _errors_of_grid(parts: tuple[SampleAxis, ...], values: np.ndarray) -> Callable[..., tuple[float, float]]:
    """Errors as a function of kernels, nugget, axis and bound, with every decomposition made once."""
    axes = range(len(parts))
    for axis in axes:
        # Fourier modes do not depend on the kernel: the samples turn into them here, once.
        if parts[axis].circulant:
            values = multiply(values, parts[axis].modes.T, axis)

    # A second sweep meets the candidates of the first again; the limit bounds the memory of large grids.
    largest = max(len(part.points) for part in parts)

    @functools.lru_cache(maxsize=max(_FEWEST_KEPT, _KEPT // largest**2))
    def spectrum(axis: int, kernel: Kernel) -> Spectrum:
        return decompose(parts[axis], kernel)

    @functools.lru_cache(maxsize=len(parts))
    def rotated_but(axis: int, others: Kernels) -> np.ndarray:
        """The samples in the eigenbases of all axes but one."""
        tensor = values
        for i, kernel in zip((i for i in axes if i != axis), others, strict=True):
            if not parts[i].circulant:
                tensor = multiply(tensor, spectrum(i, kernel).vectors.T, i)
        return tensor

    latest: dict[Kernels, np.ndarray] = {}
    most = min(max(_KEPT // values.size, 1), 2 * _LENGTHS)

    def rotated(kernels: Kernels, axis: int) -> np.ndarray:
        """The samples in the eigenbases of all axes; a search along `axis` changes that kernel only."""
        if kernels not in latest:
            tensor = rotated_but(axis, (*kernels[:axis], *kernels[axis + 1 :]))
            if not parts[axis].circulant:
                tensor = multiply(tensor, spectrum(axis, kernels[axis]).vectors.T, axis)
            if len(latest) >= most:
                latest.pop(next(iter(latest)))
            latest[kernels] = tensor
        return latest[kernels]

    known: dict[tuple[Kernels, float, int, int], tuple[float, float]] = {}

    def error(
        kernels: Kernels, nugget: float, axis: int, bound: float = np.inf, share: int = 1
    ) -> tuple[float, float]:
        if bound <= 0:
            return np.inf, np.inf
        key = kernels, nugget, axis, share
        # Searches return to where they were; what stopped at a bound goes on where the bound is larger.
        if key not in known or (share == 1 and np.isinf(known[key][1]) and known[key][0] <= bound):
            spectra = [spectrum(i, kernel) for i, kernel in enumerate(kernels)]
            known[key] = leave_group_out_of_grid(
                spectra, rotated(kernels, axis), nugget, axis, parts[axis], bound, share
            )
        return known[key]

    return error


def _candidates(part: SampleAxis) -> list[Kernel]:
    # From the mean spacing, below which samples are uncorrelated, to the whole extent.
    n = len(part.points) ** (1 / len(part.extents))
    fractions = np.geomspace(1 / n, 1, _LENGTHS)
    return [
        Kernel(family, tuple(float(f * extent) for extent in part.extents))
        for family in FAMILIES
        for f in fractions
    ]


def _pattern_search(
    kernels: Kernels, nugget: float, error: Callable[[Kernels, float, float], float], least: float
) -> Found:
    """All length scales and the nugget changed by ratios, one after the other, as long as the error falls."""
    coordinates = [(axis, i) for axis, kernel in enumerate(kernels) for i in range(len(kernel.lengths))]
    best = error(kernels, nugget, np.inf)
    for ratio, factor in _STEPS:
        moves = [(factor, None), (1 / factor, None), *product((ratio, 1 / ratio), coordinates)]
        before = np.inf
        while best < before * (1 - _LEAST_GAIN):
            before = best
            for move in moves:
                trial = _moved(kernels, nugget, *move)
                limit = best * (1 - _LEAST_GAIN)
                while trial[1] >= least and (value := error(*trial, limit)) < limit:
                    (kernels, nugget), best = trial, value
                    trial, limit = _moved(kernels, nugget, *move), best * (1 - _LEAST_GAIN)
    return kernels, nugget


def _moved(kernels: Kernels, nugget: float, ratio: float, coordinate: tuple[int, int] | None) -> Found:
    if coordinate is None:
        return kernels, nugget * ratio
    axis, i = coordinate
    lengths = kernels[axis].lengths
    changed = Kernel(kernels[axis].family, (*lengths[:i], lengths[i] * ratio, *lengths[i + 1 :]))
    return (*kernels[:axis], changed, *kernels[axis + 1 :]), nugget


def search_partial_grid(
    samples: PartialGrid, rng: np.random.Generator, step: Step
) -> tuple[Choice, MaskedNormalEquations, Solution, Float[np.ndarray, "..."]]:
    """Kernels and nugget by what they predict of slices left out; the completed grid comes last.

    The search on the grid completed along time comes first. What fills the holes is a part of its verdict:
    without noise they are filled anew from the field it gave, under noise a simplex search follows by the
    error at real samples left out.
    """
    choice = search_grid(samples.parts, _fill_holes(samples, np.interp), step)
    few = samples.known.sum() <= MOST_DENSE
    refined = None if few else _refined(samples, choice, step)
    if refined is not None:
        choice = refined
    elif 1 - samples.known.mean() > _FEW_HOLES:
        indices = np.nonzero(samples.known)
        points = [part.subset(rows) for part, rows in zip(samples.parts, indices, strict=True)]
        error = (
            LeaveGroupOut(points, samples.values[samples.known], indices, step)
            if few
            else HoldOutOfGrid(samples, rng, step)
        )
        extents = tuple(extent for part in samples.parts for extent in part.extents)
        kernels, nugget = nelder_mead(choice.kernels, choice.nugget, extents, error, _EVALUATIONS)
        choice = Choice(kernels, nugget, tuple(float(np.sqrt(e)) for e in error.errors(kernels, nugget)))
    system = samples.system(choice.kernels, choice.nugget, samples.known)
    solution = system.solve(samples.values)
    mean = system.at_samples(solution.z)
    noise = np.std((samples.values - mean)[samples.known]) * rng.standard_normal(mean.shape)
    return choice, system, solution, np.where(samples.known, samples.values, mean + noise)


def _refined(samples: PartialGrid, choice: Choice, step: Step) -> Choice | None:
    """The search again on holes filled from the field before; None where noise limits that field.

    A line between neighbours errs as noise of a few per cent would. The field errs less, and along time what
    it leaves of the samples is smooth: added back, it takes the holes to where the samples are.
    """
    for _ in range(_ROUNDS):
        system = samples.system(choice.kernels, max(choice.nugget, _SOLVABLE), samples.known)
        mean = system.at_samples(system.solve(samples.values).z)
        left = PartialGrid(samples.parts, samples.known, np.where(samples.known, samples.values - mean, 0))
        if np.std(left.values[left.known]) > _NOISE:
            return None
        choice = search_grid(samples.parts, mean + _fill_holes(left, _cubic), step, _SOLVABLE)
    return choice


def _fill_holes(samples: PartialGrid, between: Callable[..., np.ndarray]) -> Float[np.ndarray, "..."]:
    """Holes filled by interpolation between the samples of the same sensor."""
    t = samples.parts[-1].points[:, 0]
    rows = samples.values.reshape(-1, len(t)).copy()
    for row, known in zip(rows, samples.known.reshape(rows.shape), strict=True):
        row[~known] = between(t[~known], t[known], row[known])
    return rows.reshape(samples.values.shape)


def _cubic(wanted: np.ndarray, t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A cubic spline, which beyond the first and last sample stays what it is there."""
    if len(t) < _CUBIC:
        return np.interp(wanted, t, values)
    return CubicSpline(t, values)(np.clip(wanted, t[0], t[-1]))


def search_scattered(
    observations: Observations,
    values: Float[np.ndarray, " n"],
    grouping: str,
    rng: np.random.Generator,
    step: Step,
) -> tuple[Choice, Callable[[], float]]:
    """Kernels and nugget with the least error on what was left out, and what draws the variance it implies.

    `values` are standardized.
    """
    search = _search_dense if len(observations) <= MOST_DENSE else _search_fourier
    error, best = search(observations, values, grouping, rng, step)
    errors = tuple(float(np.sqrt(e)) for e in error.errors(*best))
    return Choice(*best, errors), error.calibration(*best, rng)


def _search_dense(
    observations: Observations, values: np.ndarray, grouping: str, rng: np.random.Generator, step: Step
) -> tuple[LeaveGroupOut, Found]:
    domain = observations.domain
    *extents, duration = domain.extents
    periods = tuple(e * (1 if p else PADDING) for e, p in zip(extents, domain.periodic, strict=True))
    space = SampleAxis(observations.x, tuple(extents), periods)
    time = SampleAxis(observations.t[:, None], (duration,), (PADDING * duration,))
    error = LeaveGroupOut((space, time), values, ways_of_grouping(observations, grouping), step)
    coarse = _coarse_search(domain, len(values), error)
    best = _simplex(coarse, domain, error, _WHOLE)
    if ways := _ways_between_tracks(observations, grouping, error, best):
        error = LeaveGroupOut((space, time), values, ways, step)
        best = _search_between_tracks(coarse, best, domain, error)
    return error, best


def _search_fourier(
    observations: Observations, values: np.ndarray, grouping: str, rng: np.random.Generator, step: Step
) -> tuple[HoldOut, Found]:
    o, domain, everything = observations, observations.domain, np.arange(len(values))

    def within(rows: np.ndarray, box: Domain, grouping: str, ways: Sequence[Groups | None] = ()) -> HoldOut:
        part = o if len(rows) == len(o) else Observations(o.x[rows], o.t[rows], o.y[rows], box)
        groups = [None if way is None else way[rows] for way in ways] or ways_of_grouping(part, grouping)
        return HoldOut(part, values[rows], grouping, groups, rng, step)

    whole = within(everything, domain, grouping)
    few = _some(len(values), _COARSE_SAMPLES, rng)
    # a few samples of each sensor or frame are scattered samples
    error = whole if len(few) == len(values) else within(few, domain, "")
    coarse = _coarse_search(domain, len(few), error)
    if error is not whole and error(*coarse) > _UNRESOLVED:
        part, near = _window(o, values, _longest(domain), rng, _COARSE_SAMPLES)
        error = within(near, part, "")
        finer = _coarse_search(part, len(near), error)
        coarse = finer if error(*finer) < _BETTER * error(*coarse) else coarse
    window, rows = _window(o, values, coarse[0], rng, _SEARCHED)
    error = whole if window is domain else within(rows, window, grouping)
    if window is not domain and error(*coarse) < _CLEAN**2:
        smaller, few = _window(o, values, coarse[0], rng, _ENOUGH)
        quick = within(few, smaller, grouping)
        best = _simplex(coarse, domain, quick, _QUICK)
        _prepare(whole, quick, best)
        if whole(*best) < _AGREE * quick(*best):
            return whole, best
    best = _simplex(coarse, domain, error, _WHOLE)
    if ways := _ways_between_tracks(o, grouping, error, best):
        whole = within(everything, domain, grouping, ways)
        error = whole if window is domain else within(rows, window, grouping, ways)
        best = _search_between_tracks(coarse, best, domain, error)
    _prepare(whole, error, best)
    return whole, best


def _ways_between_tracks(
    observations: Observations, grouping: str, error: Error, choice: Found
) -> Sequence[Groups | None]:
    """What else to leave out where noise hides from single samples what the field does between tracks."""
    if grouping or error(*choice) < _CLEAN**2:
        return ()
    tile = tracks(observations)
    return () if tile is None else (tile, None)


def _search_between_tracks(
    coarse: Found, best: Found, domain: Domain, error: HoldOut | LeaveGroupOut
) -> Found:
    """What predicts all that is left out best, of kernels that miss hardly more of single samples.

    What lies between tracks may not be predictable at all; a smoother field would then give up the samples
    for it, and call what it misses of them noise.
    """
    most = _NO_WORSE * error.errors(*best)[-1]

    def limited(kernels: Kernels, nugget: float) -> float:
        errors = error.errors(kernels, nugget)
        return sum(errors) + (0.0 if errors[-1] <= most else _REFUSED)

    return min(best, _simplex(coarse, domain, limited, _WHOLE), key=lambda choice: limited(*choice))


def _prepare(whole: HoldOut, searched: HoldOut, best: Found) -> None:
    """Say how long all samples will take, and solve for them as accurately as the search did."""
    seconds = seconds_of_scattered(whole.layout, *best)
    warn_if_long(
        seconds, f"fitting {len(whole.values):,} samples", "thin them, or give those of a shorter record"
    )
    whole.least = min(whole.least, searched.least)


def _simplex(start: Found, domain: Domain, error: Error, effort: Effort) -> Found:
    """Downhill from there, then with the other families for each factor where these come near."""
    kernels, nugget = nelder_mead(*start, domain.extents, error, effort.first)
    for axis in range(len(kernels)):
        for family in [each for each in FAMILIES if each != kernels[axis].family]:
            changed = Kernel(family, kernels[axis].lengths)
            trial = (*kernels[:axis], changed, *kernels[axis + 1 :])
            if error(trial, nugget) < effort.near * error(kernels, nugget):
                candidate = nelder_mead(trial, nugget, domain.extents, error, effort.others)
                if error(*candidate) < error(kernels, nugget):
                    kernels, nugget = candidate
    return kernels, nugget


def _coarse_search(domain: Domain, count: int, error: Error) -> Found:
    *extents, duration = domain.extents
    least = count ** (-1 / (len(extents) + 1))
    minima = []
    for family in FAMILIES:
        fraction, rises, lowest, nuggets = _LARGEST, 0, np.inf, _COARSE_NUGGETS
        while fraction > least and rises < _RISES:
            space = Kernel(family, tuple(fraction * e for e in extents))
            kernels = (space, Kernel(family, (fraction * duration,)))
            tried = [(error(kernels, nugget), kernels, nugget) for nugget in nuggets]
            best = min(tried, key=lambda entry: entry[0])
            # where a nugget is too small it is so for shorter scales as well, and its solves take longest
            nuggets = tuple(s for value, _, s in tried if s >= best[2] or value < _HOPELESS * best[0])
            rises += best[0] > lowest
            lowest = min(lowest, best[0])
            minima.append(best)
            fraction /= _RATIO
    _, kernels, nugget = min(minima, key=lambda entry: entry[0])
    return kernels, nugget


def _longest(domain: Domain) -> Kernels:
    *extents, duration = domain.extents
    return Kernel("gaussian", tuple(extents)), Kernel("gaussian", (duration,))


def _some(count: int, most: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(count) if count <= 1.5 * most else np.sort(rng.choice(count, most, replace=False))


def _window(
    observations: Observations, values: np.ndarray, kernels: Kernels, rng: np.random.Generator, most: int
) -> tuple[Domain, np.ndarray]:
    """A box of a dozen length scales per axis, or of about `most` samples if that is smaller, where most
    happens, and rows of samples in it.
    """
    domain = observations.domain
    lengths = np.array([length for kernel in kernels for length in kernel.lengths])
    low, extents = np.array((*domain.low, domain.t0)), np.array(domain.extents)
    if len(observations) <= most:
        return domain, np.arange(len(observations))
    size = np.minimum(extents, _WINDOW * lengths)
    if most < _SEARCHED:  # a larger one is thinned instead
        share = most / (len(observations) * float(np.prod(size / extents)))
        size = size * min(1.0, share ** (1 / len(size)))
    points = np.column_stack([observations.x, observations.t])
    best = (-1.0, low, np.arange(0))
    for _ in range(_WINDOWS):
        corner = low + rng.random(len(low)) * (extents - size)
        inside = np.flatnonzero(np.all((points >= corner) & (points <= corner + size), axis=1))
        energy = float(np.sum(values[inside] ** 2))
        best = max(best, (energy, corner, inside), key=lambda b: b[0])
    _, corner, inside = best
    *low, t0 = corner.tolist()
    *high, t1 = (corner + size).tolist()
    closed = tuple(bool(p and s == e) for p, s, e in zip(domain.periodic, size, extents, strict=False))
    return Domain(tuple(low), tuple(high), t0, t1, closed), inside[_some(len(inside), most, rng)]
