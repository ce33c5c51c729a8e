"""Samples and the field fitted to them -> samples without those an instrument spoilt, and what was left out.

A field does not follow a single sample that misses by far, and its neighbours show by how much: what a
sample misses the field by, less the median of what the nearest samples do, is held against the spread of
these. A field that is wrong somewhere is wrong for all neighbours alike, so nothing is left out for that.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial import KDTree

from fts.fitting import Fit, Recipe, fit_posterior
from fts.observations import Observations, unique_rows

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


@dataclass(frozen=True)
class Instruments:
    """What was left out of the samples before the field was fitted for good."""

    outliers: int = 0
    samples: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a reader; none where all instruments are sound."""
        if not self.outliers:
            return ()
        share = self.outliers / self.samples
        counted = f"{self.outliers} of {self.samples:,} samples ({share:.1%})"
        return (f"{counted} miss the field by far more than their neighbours do and were left out",)


def fit_without_outliers(
    observations: Observations, recipe: Recipe, *, progress: bool = True
) -> tuple[Fit, Instruments]:
    """The fit of the samples without outliers; the very fit of all of them where there are none."""
    fit, kept = fit_posterior(observations, recipe, progress=progress), observations
    whole = len(observations)
    for _ in range(_ROUNDS):
        wrong = outliers(fit)
        if not wrong.any() or whole - len(kept) + wrong.sum() > _MOST * whole:
            break
        kept = subset(kept, ~wrong)
        fit = fit_posterior(kept, recipe, progress=progress)
    return fit, Instruments(whole - len(fit.observations), whole)


def subset(observations: Observations, kept: Bool[np.ndarray, " n"]) -> Observations:
    """Some of the samples; no longer those of a protocol, whose fields are known by its name."""
    o = observations
    return replace(o, x=o.x[kept], t=o.t[kept], y=o.y[kept], problem=None, protocol=None)


def outliers(fit: Fit) -> Bool[np.ndarray, " n"]:
    """The samples that miss the field by far more than their neighbours do."""
    o = fit.observations
    missed = o.y - fit.field(np.column_stack([o.x, o.t]))
    least = max(_LEAST * float(o.y.std()), _FAR * _spread(missed))
    suspects = np.flatnonzero(np.abs(missed - np.median(missed)) > least / 2)
    wrong = np.zeros(len(o), dtype=bool)
    if not suspects.size:
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
    sensors, row = unique_rows(observations.x)
    if len(sensors) * _NEIGHBOURS > len(observations):
        return np.zeros(len(observations))
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
