"""Samples and the field fitted to them -> samples without those an instrument spoilt, and what was left out.

A field does not follow a single sample that misses by far, and its neighbours show by how much: what a
sample misses the field by, less the median of what the nearest samples do, is held against the spread of
theirs. A field that is wrong somewhere is wrong for all neighbours alike, so nothing is left out for that.

A sensor is held against what all others predict of it. With K = K_x (x) K_t + s on the grid, V and lambda
the eigenvectors and eigenvalues per axis, the sensor i left out misses mode j of time by

    e_ij = [V_x (V_x^T Y V_t / (lambda_i lambda_j + s))]_ij / [V_x^2 (1 / (lambda_i lambda_j + s))]_ij,

in closed form for all of them. One goes where without it the others are predicted much better.

What is left of the samples is white where instruments are sound; offsets, gains, clocks and noise that lasts
make it alike at the same sensor from frame to frame.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial import KDTree

from fts.fitting import Fit, Recipe, fit_posterior
from fts.kernel.covariance import precision
from fts.kernel.separable import SeparablePosterior
from fts.observations import Observations, has_more_rows_than, unique_rows

_NEIGHBOURS = 16
# Robust deviations from the neighbours at which a sample is an outlier, and the least it must miss by, in
# deviations of all samples: smaller ones do no harm.
_FAR, _LEAST = 7.0, 0.05
# Rounds of leaving out and fitting anew; more than this share is no outlier any more but another law.
_ROUNDS, _MOST = 4, 0.05
# The median absolute value of a normal variable of deviation one. Among neighbours the fourth of five counts:
# where a field is poor several are far off, and outliers are rarer than that.
_MEDIAN = 0.6745
_SHARE, _QUANTILE = 0.8, 1.2816


# A sensor is suspect that errs by so many times the median in mean square, beside what is expected of it;
# suspects are left out where the others then err by less than this part of what they did, in mean square too,
# and are at most this part of all.
_SUSPECT, _BETTER, _SENSORS = 20.0, 0.5, 0.1
# Correlation of what is left at a sensor from a frame to the next, in itself and in standard errors, and the
# least of the samples' deviation that is left, for noise to count as lasting.
_LASTING, _CLEAR, _VISIBLE = 0.1, 6.0, 5e-3


@dataclass(frozen=True)
class Instruments:
    """What was left out of the samples before the field was fitted for good."""

    samples: int
    outliers: int = 0
    sensors: tuple[tuple[float, ...], ...] = ()  # where those stand that were left out

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a reader; none where all instruments are sound."""
        notes = []
        if self.sensors:
            places = ", ".join("(" + ", ".join(f"{c:.4g}" for c in x) + ")" for x in self.sensors)
            many = len(self.sensors) > 1
            whom = f"the sensors at {places} disagree" if many else f"the sensor at {places} disagrees"
            notes.append(f"{whom} with all others and {'were' if many else 'was'} left out")
        if self.outliers:
            share = self.outliers / self.samples
            counted = f"{self.outliers} of {self.samples:,} samples ({share:.1%})"
            notes.append(f"{counted} miss the field by far more than their neighbours do and were left out")
        return tuple(notes)


def fit_sound_samples(
    observations: Observations, recipe: Recipe, *, progress: bool = True
) -> tuple[Fit, Instruments]:
    """The fit of the samples without sensors that disagree and outliers; of all where there are none."""
    fit, sensors = _without_sensors(fit_posterior(observations, recipe, progress=progress), recipe, progress)
    kept = fit.observations
    whole = len(kept)
    for _ in range(_ROUNDS):
        wrong = outliers(fit)
        if not wrong.any() or whole - len(kept) + wrong.sum() > _MOST * whole:
            break
        kept = subset(kept, ~wrong)
        fit = fit_posterior(kept, recipe, progress=progress)
    return fit, Instruments(len(observations), whole - len(fit.observations), sensors)


def _without_sensors(fit: Fit, recipe: Recipe, progress: bool) -> tuple[Fit, tuple[tuple[float, ...], ...]]:
    """The fit without sensors that disagree, and where they stand.

    Two that disagree hide each other: what the rest gains is asked once all suspects are gone.
    """
    grid, errors = fit.observations.grid, left_out_errors(fit)
    if grid is None or errors is None:
        return fit, ()
    before, remaining, other = errors[0], np.arange(len(grid.sensors)), fit
    while errors is not None and len(remaining) > (1 - _SENSORS) * len(before):
        relative = errors[0] / errors[1]
        worst = int(np.argmax(relative))
        if relative[worst] < _SUSPECT * np.median(relative):
            break
        kept = subset(
            other.observations, (other.observations.x != grid.sensors[remaining[worst]]).any(axis=1)
        )
        remaining = np.delete(remaining, worst)
        other = fit_posterior(kept, recipe, progress=progress)
        errors = left_out_errors(other)
    if errors is None or errors[0].mean() >= _BETTER * before[remaining].mean():
        return fit, ()
    return other, tuple(map(tuple, np.delete(grid.sensors, remaining, axis=0).tolist()))


def left_out_errors(fit: Fit) -> tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"]] | None:
    """Of every sensor the mean square by which the others miss it, and the expected one; None off a grid."""
    posterior = fit.posterior
    if (
        not isinstance(posterior, SeparablePosterior)
        or posterior.holes is not None
        or len(posterior.parts) != 2
    ):
        return None
    vectors = posterior.spectra[0].vectors
    diagonal = vectors**2 @ precision(posterior.spectra, posterior.nugget)
    errors = vectors @ posterior.weights / diagonal
    scale = posterior.scale**2
    return scale * (errors**2).mean(axis=1), scale * (posterior.amplitude / diagonal).mean(axis=1)


def lasting_noise(fit: Fit) -> tuple[str, ...]:
    """The reason to doubt an equation where what is left at a sensor stays alike from frame to frame."""
    o = fit.observations
    if has_more_rows_than(len(o) / 2, o.x):
        return ()
    _, sensor = unique_rows(o.x)
    order = np.lexsort((o.t, sensor))
    missed, sensor = fit.residuals[order], sensor[order]
    first = np.flatnonzero(sensor[1:] == sensor[:-1])
    square = float(np.mean(missed**2))
    if not first.size or square < (_VISIBLE * float(o.y.std())) ** 2:
        return ()
    alike = float(np.mean(missed[first] * missed[first + 1])) / square
    if alike < max(_LASTING, _CLEAR / np.sqrt(first.size)):
        return ()
    alike_text = f"what the field leaves at a sensor correlates by {alike:+.2f} from frame to frame"
    causes = "sensors have offsets, gains, clocks or noise that lasts, or stand too far apart"
    return (f"{alike_text}: {causes}; calibrate them, or add some",)


def subset(observations: Observations, kept: Bool[np.ndarray, " n"]) -> Observations:
    """Some of the samples; no longer those of a protocol, whose fields are known by its name."""
    o = observations
    return replace(o, x=o.x[kept], t=o.t[kept], y=o.y[kept], problem=None, protocol=None)


def outliers(fit: Fit) -> Bool[np.ndarray, " n"]:
    """The samples that miss the field by far more than their neighbours do."""
    o, missed = fit.observations, fit.residuals
    least = max(_LEAST * float(o.y.std()), _FAR * _spread(missed))
    suspects = np.flatnonzero(np.abs(missed - np.median(missed)) > least / 2)
    wrong = np.zeros(len(o), dtype=bool)
    if not suspects.size or len(o) <= _NEIGHBOURS:
        return wrong
    points = _scaled(fit)
    near = np.asarray(KDTree(points).query(points[suspects], k=_NEIGHBOURS + 1)[1])[:, 1:]
    middle = np.median(missed[near], axis=1)
    alone = np.abs(missed[suspects] - middle)
    around = np.quantile(np.abs(missed[near] - middle[:, None]), _SHARE, axis=1) / _QUANTILE
    wrong[suspects] = (alone > least) & (alone > _FAR * np.maximum(around, _of_sensor(o, missed)[suspects]))
    return wrong


def _spread(values: Float[np.ndarray, " n"]) -> float:
    """A deviation that outliers do not move."""
    return float(np.median(np.abs(values - np.median(values)))) / _MEDIAN


def _of_sensor(observations: Observations, missed: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """For every sample the spread at its sensor: one that is noisy throughout has no outliers."""
    if has_more_rows_than(len(observations) / _NEIGHBOURS, observations.x):
        return np.zeros(len(observations))
    _, row = unique_rows(observations.x)
    order = np.argsort(row, kind="stable")
    parts = np.split(missed[order], np.cumsum(np.bincount(row))[:-1])
    return np.array([_spread(part) for part in parts])[row]


def _scaled(fit: Fit) -> Float[np.ndarray, "n d1"]:
    """Positions and times in length scales of the kernel, or in parts of the domain where it has none."""
    o = fit.observations
    points = np.column_stack([o.x, o.t])
    if fit.posterior is None:
        return points / np.array(o.domain.extents)
    lengths = [length for kernel in fit.posterior.choice.kernels for length in kernel.lengths]
    return points / np.array(lengths)
