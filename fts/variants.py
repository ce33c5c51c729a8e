"""Observations -> frozen field by the variants of the adapter that the ablations compare (D.1, D.3).

The representation ablation takes away the Fourier encoding, the factorization, or both, at matched parameter
counts; the objective ablation takes away the penalties. Two controls of the coordinate network have more
parameters or slower time. Budget, optimizer and observations stay the same.
"""

import time
from dataclasses import replace
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor

from fts import adapter
from fts.coordinate import CoordinateField
from fts.data import Observations
from fts.device import device, threads
from fts.frozen import FrozenField
from fts.networks import Encoding, Network, gaussian_rows
from fts.params import AdapterParams
from fts.samples import Samples, prepare
from fts.structured import frozen_features
from fts.training import train

Variant = Literal[
    "structured",
    "structured-raw",  # without Fourier features
    "coordinate-fourier",
    "coordinate-raw",
    "coordinate-wide",  # the capacity control, width 128
    "coordinate-slow",  # with Fourier features that vary slowly in time
    "unpenalized",
]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

_WIDE = 128
# Time is slowed by this before it is encoded. The paper leaves its unit open; in that of space the features
# turn through whole periods in the widest gaps between the frames of T20.
_SLOW = 0.3
# Points per pass: large products run at speed, and the activations stay in a core's share of the cache.
_CHUNK = 2048
# The error over all observations costs as much as several updates here, and is taken this often.
_CHECK_EVERY = 50


def fit_variant(
    observations: Observations,
    variant: Variant,
    params: AdapterParams | None = None,
    *,
    seed: int | None = None,
    progress: bool = True,
    cores: int = 1,
) -> FrozenField | CoordinateField:
    """The field of one ablation variant; `params` are those of the full adapter it is compared with."""
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}: choose one of {', '.join(VARIANTS)}")
    params = params or adapter.settings(observations)
    params = variant_params(variant, params, observations.domain.dimension)
    if variant.startswith("coordinate"):
        return _fit_coordinates(observations, params, variant, seed, progress, cores)
    field = adapter.fit(observations, params, seed=seed, progress=progress, cores=cores)
    return replace(field, made={**field.made, "variant": variant})


def variant_params(variant: Variant, params: AdapterParams, dimension: int) -> AdapterParams:
    """The variant's settings, with the width that comes closest to the full adapter's parameter count."""
    if variant == "structured":
        return params
    if variant == "unpenalized":
        return replace(params, lam_phi=0.0, lam_t=0.0)
    if variant == "coordinate-wide":
        return replace(params, width=_WIDE)
    rows = 0 if variant.endswith("raw") else params.fourier_rows
    target = parameter_count("structured", params, dimension)
    changed = replace(params, fourier_rows=rows)
    counts = {w: parameter_count(variant, replace(changed, width=w), dimension) for w in range(8, 257)}
    return replace(changed, width=min(counts, key=lambda width: abs(counts[width] - target)))


def parameter_count(variant: Variant, params: AdapterParams, dimension: int) -> int:
    """Trainable parameters: the layers, and C where there is one."""
    coordinates = variant.startswith("coordinate")
    inputs = 2 * params.fourier_rows or dimension + coordinates
    outputs = 1 if coordinates else params.rank + 1
    sizes = [inputs, *[params.width] * params.depth, outputs]
    layers = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    return layers + (0 if coordinates else params.rank * params.splines)


def _fit_coordinates(
    observations: Observations,
    params: AdapterParams,
    variant: Variant,
    seed: int | None,
    progress: bool,
    cores: int,
) -> CoordinateField:
    began = time.perf_counter()
    unit = adapter.deviation(observations)
    domain, rng = observations.domain, adapter.generator(observations, seed)
    with threads(cores):
        samples = prepare(replace(observations, y=observations.y / unit), device())
        rows = gaussian_rows(params.fourier_rows, domain.dimension + 1, rng, samples.y.device)
        if variant == "coordinate-slow":
            rows[:, -1] *= _SLOW
        network = Network(Encoding(rows, params.coordinate_scale), params.width, params.depth, 1, rng)
        objective = _Pointwise(network, samples, params, rng)
        trace = train(objective, [network.flat], params, 1.0, progress)
        seconds = time.perf_counter() - began
        made = adapter.describe(observations, params, "paper", seed, trace, seconds) | {"variant": variant}
        with torch.no_grad():
            network.weights[-1].mul_(unit)
            network.biases[-1].mul_(unit)
        return CoordinateField(frozen_features(network), domain, made)


class _Pointwise:
    """The observation loss of a network that must see every sample; the encoding is computed once."""

    def __init__(
        self, network: Network, samples: Samples, params: AdapterParams, rng: torch.Generator
    ) -> None:
        self.network, self.samples, self.rng = network, samples, rng
        self.starts: list[int] = samples.starts.tolist()
        t = torch.as_tensor(samples.frames, dtype=torch.float32, device=samples.y.device)
        points = torch.cat([samples.positions[samples.row], t[samples.column, None]], dim=1)
        self.inputs = network.encoding(points)
        total = len(samples.frames)
        least = params.frames_per_update if samples.values is not None else samples.batch_frames
        self.frames = min(total, max(params.frames_per_update, least))

    def __call__(self, update: int) -> Tensor | None:
        """Add the gradient of one update chunk by chunk; now and then the error over all observations."""
        error = self.observation_error() if update % _CHECK_EVERY == 0 else None
        x, y = self._draw()
        for inputs, values in zip(x.split(_CHUNK), y.split(_CHUNK), strict=True):
            residual = self.network(inputs)[:, 0] - values
            (residual.square().sum() / len(y)).backward()
        return error

    def observation_error(self) -> Tensor:
        """The MSE over all observations at the present iterate."""
        with torch.no_grad():
            chunks = zip(self.inputs.split(_CHUNK), self.samples.y.split(_CHUNK), strict=True)
            squares = [(self.network(x)[:, 0] - y).square().sum() for x, y in chunks]
            return torch.stack(squares).sum() / len(self.samples.y)

    def _draw(self) -> tuple[Tensor, Tensor]:
        """Inputs and values of the frames of one update; a frame's samples lie side by side."""
        frames = torch.randperm(len(self.samples.frames), generator=self.rng)[: self.frames].tolist()
        runs = [slice(self.starts[f], self.starts[f + 1]) for f in frames]
        return torch.cat([self.inputs[run] for run in runs]), torch.cat([self.samples.y[run] for run in runs])
