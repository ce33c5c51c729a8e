"""How a selected equation is integrated and fitted to the samples; not in the paper."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ForecastParams:
    """Windows, steps and passes of the fit."""

    windows: tuple[int, ...]  # stretches of the record, tried in turn until the equation follows the samples
    steps: int  # at least, over the whole record
    courant: float  # largest rate of a product times a step
    most_steps: int  # over the whole record
    budget: int  # steps times rows times points of one pass, at most
    passes: int  # Gauss-Newton steps
    settled: float  # gain in squared noise units below which they end
    most_waves: int  # of a state
    most_samples: int  # used, evenly drawn
    visible: float  # standard errors of an amplitude; smaller waves are left out
    least_noise: float  # in deviations of the samples; the integrator's own error
    seed: int  # of the samples drawn
    better: float  # misfit over that of fewer windows, for which more of them are worth it
    follows: float  # misfit over the field's noise up to which an equation follows the samples,
    negligible: float  # or in deviations of the samples, whatever the noise
    wanted: float  # standard errors from zero at which a term left out asks to be taken in


# Chosen on drawn problems of the development range (fts.studies.honesty).
FORECAST = ForecastParams(
    windows=(1, 2, 4, 8, 16),
    steps=96,
    courant=1.0,
    most_steps=600,
    budget=1_200_000,
    passes=6,
    settled=0.1,
    most_waves=48,
    most_samples=4000,
    visible=4.0,
    least_noise=1e-4,
    seed=20_270,
    better=0.9,
    follows=1.15,
    negligible=1e-3,
    wanted=5.0,
)
