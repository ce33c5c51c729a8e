"""How a selected equation is integrated and fitted to the samples; not in the paper."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ForecastParams:
    """Windows, steps and passes of the fit, and when another support explains the samples as well."""

    windows: tuple[int, ...]  # stretches of the record, tried in turn until the equation follows the samples
    steps: int  # at least, over the whole record
    courant: float  # largest rate of a product times a step
    most_steps: int  # over the whole record
    budget: int  # steps times rows times points of one pass, at most
    passes: int  # Gauss-Newton steps
    settled: float  # gain in squared noise units below which they end
    most_waves: int  # of a state
    most_samples: int  # used, evenly drawn
    present: float  # standard errors of an amplitude; waves that are smaller throughout are left out
    visible: float  # standard errors of an amplitude; smaller waves say nothing of the coefficients
    least_noise: float  # in deviations of the samples; the integrator's own error
    seed: int  # of the samples drawn
    lost: float  # misfit beyond noise after one step, in deviations of the samples, if stretches are too long
    near: float  # misfit after one step, over that of the best, up to which a start is fitted
    better: float  # misfit over that of fewer windows, for which more of them are worth it
    follows: float  # misfit over the field's noise up to which an equation follows the samples,
    negligible: float  # or in deviations of the samples, whatever the noise
    wanted: float  # standard errors from zero at which a term left out asks to be taken in
    per_term: float  # squared noise units a term must gain to be kept
    least_share: float  # of the change of state; a term that does less is none
    rounds: int  # of proposing supports around the best
    proposals: int  # fitted per round
    promising: float  # squared noise units a support may cost more, to second order, and is fitted
    hopeless: float  # squared noise units by which a support is worse, to second order, and not fitted,
    unexplained: float  # unless it explains all but this fraction of what the best one does


# Chosen on drawn problems of the development range (fts.studies.honesty).
FORECAST = ForecastParams(
    windows=(1, 2, 4, 8, 16),
    steps=96,
    courant=1.0,
    most_steps=600,
    budget=600_000,
    passes=6,
    settled=0.1,
    most_waves=48,
    most_samples=8000,
    present=1.0,
    visible=4.0,
    least_noise=1e-4,
    seed=20_270,
    lost=0.4,
    near=3.0,
    better=0.9,
    follows=1.15,
    negligible=1e-3,
    wanted=5.0,
    per_term=16.0,
    least_share=0.02,
    rounds=4,
    proposals=3,
    promising=10.0,
    hopeless=400.0,
    unexplained=1e-3,
)
