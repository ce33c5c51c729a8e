"""When an equation found in a user's samples is called identified; not in the paper."""

from dataclasses import dataclass

from fts.params.forecast import FORECAST, ForecastParams


@dataclass(frozen=True)
class VerdictParams:
    """Thresholds of the tests on the weak systems, and of those on integrated equations."""

    draws: int  # fields drawn from the posterior
    most_terms: int  # of the supports compared
    significance: float  # least |coefficient| / standard error of a term
    leeway: float  # a support that leaves this multiple of the expected risk is still plausible
    leeway_larger: float  # the same for a support with one term more than the chosen one
    least_scale: float  # the expected risk is corrected downwards to at most this fraction
    worse: float  # standard errors over regions by which a support must be worse than the best
    alike: float  # cosine of two columns beyond which one term cannot be told from the other
    surprise: float  # risk over expected risk beyond which something is missing
    small: float  # where the fraction of u_t left unexplained is at most this,
    too_sure: float  # `surprise` may be so many times larger: a posterior can be too sure
    risk: float  # unexplained fraction of u_t beyond which nothing is identified
    open: float  # share of u_t that a term left out may have at most, two standard errors included
    suggestive: float  # standard errors from zero beyond which an estimate points to a term,
    suggested: float  # and the share it may then have at most
    leaders: int  # supports, of one to so many terms, that are integrated beside the chosen one
    rival_gap: float  # squared noise units by which another integrated equation must be worse
    hidden: float  # part of the change of state that a term left out may have, two standard errors included
    pointing: float  # standard errors from zero beyond which a term left out points to itself
    misfit: float  # of an integrated equation, in units of the noise, beyond which something is missing,
    remainder: float  # or beyond the noise in units of the field: under loud noise the other says nothing
    again: float  # part of the record that was integrated from which on, if it decides nothing, all is
    forecast: ForecastParams


# Chosen on drawn problems of the development range (fts.studies.honesty), never on those of the benchmark.
VERDICT = VerdictParams(
    draws=8,
    most_terms=6,
    significance=5.0,
    leeway=2.0,
    leeway_larger=1.05,
    least_scale=0.1,
    worse=1.5,
    alike=0.99,
    surprise=6.0,
    small=0.01,
    too_sure=10.0,
    risk=0.2,
    open=0.4,
    suggestive=1.25,
    suggested=0.12,
    leaders=3,
    rival_gap=10.0,
    hidden=0.2,
    pointing=3.5,
    misfit=2.5,
    remainder=0.2,
    again=0.25,
    forecast=FORECAST,
)
# Fewer samples than any drawn problem has: how far such a verdict is to be believed was never measured.
LEAST_SAMPLES = 400
