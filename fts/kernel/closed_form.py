"""Observations -> FrozenField in closed form: the posterior mean as a series of low rank.

The mean is frozen as Fourier and Chebyshev series to a stated tolerance; the variance stays a field of its
own.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from fts.fields.frozen import FrozenField, provenance_of
from fts.fields.series import Basis, SeriesCoefficients, SeriesFeatures, transform
from fts.io import streams
from fts.io.sources import observed_chunks
from fts.io.streams import SampleStream
from fts.kernel import separable
from fts.kernel.posterior import Posterior
from fts.kernel.separable import BAR_DELAY, condition_grid
from fts.kernel.streamed import StreamedPosterior, condition_stream
from fts.kernel.travelling_search import choose_travelling
from fts.observations import Observations

# Error of freezing in deviations of the data: 1e-6, or a thousandth of the noise where that is more, or what
# it takes to store no more numbers than the largest, and from the coarsest on no more than there are samples;
# the bases are trimmed to a tenth of it.
_TOLERANCE, _NOISE_SHARE, _LARGEST, _COARSEST, _TRIM = 1e-6, 1e-3, 24_000, 1e-2, 0.1
# Matrices have some hundred rows: on a busy machine threads would wait for each other most of the time.
one_thread = threadpool_limits.wrap(limits=1, user_api="blas")
_SEED = 0  # of what is left out: the same samples give the same field
_SHORTEST = 32  # functions per axis to begin with


def fit(observations: Observations, *, progress: bool = True) -> FrozenField:
    """The posterior mean given the observations, frozen."""
    return freeze(condition(observations, progress=progress), observations)


@one_thread
def condition(observations: Observations, client: Any = None, *, progress: bool = True) -> Posterior:
    """The process given the observations: on a sensor x frame grid, on one with holes, or anywhere.

    Many samples that lie anywhere are summed up by the workers of a Dask `client`, where there is one.
    """
    if observations.grid is not None:
        return condition_grid(observations, progress=progress)
    separable.refuse_constant(observations.y)
    rng = np.random.default_rng(_SEED)
    with tqdm(desc="fit", unit="step", disable=not progress, delay=BAR_DELAY) as bar:
        partial = separable.condition_partial_grid(observations, rng, bar.update)
        if partial is not None or len(observations) <= streams.RESERVOIR:
            return partial or separable.condition_scattered(observations, rng, bar.update)
    stream = SampleStream(observed_chunks(observations), observations.domain, observations.source)
    posterior = condition_stream(stream, client, progress=progress)
    assert isinstance(posterior, Posterior)  # there are more than the reservoir holds
    return posterior


@one_thread
def condition_samples(
    stream: SampleStream, client: Any = None, *, progress: bool = True
) -> tuple[Posterior, Observations]:
    """The process given the samples of a stream, and the samples it keeps."""
    posterior = condition_stream(stream, client, progress=progress)
    if isinstance(posterior, Observations):
        return condition(posterior, client, progress=progress), posterior
    return posterior, posterior.reservoir


@one_thread
def condition_travelling(observations: Observations, *, progress: bool = True) -> Posterior:
    """The process given the observations, travelling where that predicts left-out samples clearly better."""
    resting = condition(observations, progress=progress)
    with tqdm(desc="speeds", unit="step", disable=not progress, delay=BAR_DELAY) as bar:
        return choose_travelling(observations, resting, bar.update)


@one_thread
def freeze(posterior: Posterior, observations: Observations) -> FrozenField:
    """The posterior mean as a field of low rank: truncated series per axis, truncated singular values."""
    began = time.perf_counter()
    tolerance = max(_TOLERANCE, _NOISE_SHARE * posterior.noise / posterior.scale)
    bases, series = _expand(posterior, tolerance)
    halves = _truncate(bases, series, tolerance)
    count = posterior.count if isinstance(posterior, StreamedPosterior) else len(observations)
    most = max(_LARGEST, count)
    while sum(half.size for half in halves[1:]) > (_LARGEST if tolerance < _COARSEST else most):
        tolerance *= 1.5
        halves = _truncate(bases, series, tolerance)
    (*space, temporal), features, coefficients = halves[0], posterior.scale * halves[1], halves[2]
    features[0, 0] += posterior.mean
    seconds = posterior.seconds + time.perf_counter() - began
    # the same keys in the same order as in the fields that ship
    parameters = {
        "kernels": [{"family": k.family, "lengths": list(k.lengths)} for k in posterior.choice.kernels],
        **posterior.parameters,
        "nugget": posterior.choice.nugget,
        "tolerance": tolerance,
        "left_out": list(posterior.choice.errors),
        "noise_estimate": posterior.noise,
    }
    return FrozenField(
        space=SeriesFeatures(tuple(space), features.astype(np.float32)),
        time=SeriesCoefficients(temporal, coefficients.astype(np.float32)),
        domain=posterior.domain,
        made=provenance_of(observations, posterior.recipe, parameters, seconds=seconds, device="cpu"),
    )


def _expand(posterior: Posterior, tolerance: float) -> tuple[list[Basis], np.ndarray]:
    """Bases long enough for the posterior mean, and its coefficients."""
    domain = posterior.domain
    bases = [Basis(*limit, _SHORTEST + limit[2]) for limit in domain.axes]
    lengths = [length for chosen in posterior.choice.kernels for length in chosen.lengths]
    # Sixteen functions per length scale resolve the kernel itself: what is left beyond them is rounding.
    most = [16 * extent / length for extent, length in zip(domain.extents, lengths, strict=True)]
    while True:
        series = _series(posterior, bases)
        # A series is long enough when its last quarter can be dropped.
        kept = [_kept(_power(series, i), _TRIM * tolerance) for i in range(len(bases))]
        short = [i for i, b in enumerate(bases) if b.size < most[i] and kept[i] > 3 * b.size // 4]
        if not short:
            return bases, series
        for i in short:
            bases[i] = replace(bases[i], size=2 * bases[i].size - bases[i].periodic)


def _truncate(
    bases: list[Basis], series: np.ndarray, tolerance: float
) -> tuple[list[Basis], Float[np.ndarray, "K R1"], Float[np.ndarray, "N R"]]:
    """Bases, features and temporal coefficients that keep the series to the tolerance."""
    bases = list(bases)
    for axis, basis in enumerate(bases):
        size = _kept(_power(series, axis), _TRIM * tolerance)
        # A cosine keeps its sine.
        bases[axis] = replace(basis, size=size + (basis.periodic and size % 2 == 0))
        series = np.take(series, range(bases[axis].size), axis)
    table = series.reshape(-1, bases[-1].size)
    # The part that is constant in time is the background.
    background, table = table[:, :1], table.copy()
    table[:, 0] = 0
    left, singular, right = np.linalg.svd(table, full_matrices=False)
    rank = _kept(singular**2, tolerance)
    features = np.concatenate([background, left[:, :rank] * singular[:rank]], axis=1)
    return bases, features, right[:rank].T


def _series(posterior: Posterior, bases: Sequence[Basis]) -> np.ndarray:
    return transform(posterior.standardized(*(basis.nodes for basis in bases)), bases)


def _power(series: np.ndarray, axis: int) -> np.ndarray:
    others = tuple(i for i in range(series.ndim) if i != axis)
    return np.sum(series**2, axis=others)


def _kept(power: np.ndarray, tolerance: float) -> int:
    """How many leading entries leave behind at most the tolerance, squared, of all power."""
    tail = np.cumsum(power[::-1])[::-1]
    return max(1, int(np.sum(tail > tolerance**2 * tail[0])))
