"""Functions drawn from a prior: sums of random waves, whose spectrum is the kernel's."""

import numpy as np
from jaxtyping import Complex, Float

from fts.kernel.covariance import Kernel, SampleAxis

_WAVES = 1000


def wave_vectors(
    part: SampleAxis, chosen: Kernel, rng: np.random.Generator
) -> list[Float[np.ndarray, "k waves"]]:
    """Wave vectors per coordinate, from the kernel's spectrum; two components where the axis is a circle."""
    result = []
    for period, length in zip(part.periods, chosen.lengths, strict=True):
        wave = rng.standard_normal((1 if period is None else 2, _WAVES)) / length
        if chosen.family == "rational":  # a Gaussian whose precision is Gamma(2, 1/2)
            wave = wave * np.sqrt(rng.gamma(2.0, 0.5, _WAVES))
        result.append(wave)
    return result


def phases(part: SampleAxis, points: np.ndarray, waves: list[np.ndarray]) -> Complex[np.ndarray, "n waves"]:
    """exp(i w . x) at the points; a circle is embedded in the plane, as for its kernel."""
    phase = np.zeros((len(points), _WAVES))
    for x, period, wave in zip(points.T, part.periods, waves, strict=True):
        if period is None:
            place = x[:, None] - part.points[:, 0].mean()
        else:
            angle = 2 * np.pi * x / period
            place = period / (2 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle)])
        phase += place @ wave
    return np.exp(1j * phase)


def on_product(weights: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    """sum over waves of Re(weight * product of the factors' phases), shaped like the sample grid."""
    *space, last = factors
    rows = weights[None, :]
    for factor in space:
        rows = (rows[:, None, :] * factor[None, :, :]).reshape(-1, len(weights))
    values = np.real(rows) @ np.real(last).T - np.imag(rows) @ np.imag(last).T
    return values.reshape(*(len(factor) for factor in factors))


def weights(shape: tuple[int, ...], rng: np.random.Generator) -> Complex[np.ndarray, "..."]:
    """Weights of the waves for functions of unit variance: an array of this shape of them."""
    size = (*shape, _WAVES)
    return (rng.standard_normal(size) + 1j * rng.standard_normal(size)) / np.sqrt(_WAVES)
