"""Observations -> field by the paper's recipe, and by the variants its ablations compare (A.3, D.1, D.3).

The recipe descends on network and spline coefficients jointly. The representation ablation takes away the
Fourier encoding, the factorization, or both, at matched parameter counts; the objective ablation takes away
the penalties. Two controls of the coordinate network have more parameters or slower time. Budget, optimizer
and observations stay the same.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor

from fts.adapter import networks
from fts.adapter import samples as setup
from fts.adapter.networks import Network, Structured, Watcher
from fts.adapter.samples import Samples
from fts.adapter.training import Objective, train
from fts.fields.frozen import CoordinateField, FrozenField, provenance_of
from fts.observations import Observations
from fts.params.types import AdapterParams, ModelParams, changed, named

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


def fit(
    observations: Observations,
    params: AdapterParams | None = None,
    *,
    seed: int | None = None,
    progress: bool = True,
    recipe: str = "paper",
    watch: Watcher | None = None,
) -> FrozenField:
    """The adapter trained on the observations and frozen.

    `params` are the paper's for the problem and `seed` is the observations' own unless they are given;
    `recipe` is what the field says of itself. Whoever watches the training cannot change it.
    """
    settings = params or setup.settings(observations)

    def objective(model: Structured, samples: Samples) -> tuple[Objective, Sequence[Tensor], float]:
        return networks.Reconstruction(model, samples, settings), model.parameters, samples.variance

    return networks.fit_structured(
        observations, settings, objective, recipe=recipe, seed=seed, progress=progress, watch=watch
    )


def fit_variant(
    observations: Observations,
    variant: Variant,
    params: AdapterParams | None = None,
    *,
    seed: int | None = None,
    progress: bool = True,
) -> FrozenField | CoordinateField:
    """The field of one ablation variant; `params` are those of the full adapter it is compared with."""
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}: choose one of {', '.join(VARIANTS)}")
    params = params or setup.settings(observations)
    params = variant_params(variant, params, observations.domain.dimension)
    if variant.startswith("coordinate"):
        return _fit_coordinates(observations, params, variant, seed, progress)
    return fit(observations, params, seed=seed, progress=progress, recipe=variant)


def variant_params(variant: Variant, params: AdapterParams, dimension: int) -> AdapterParams:
    """The variant's settings, with the width that comes closest to the full adapter's parameter count."""
    if variant == "structured":
        return params
    if variant == "unpenalized":
        return changed(params, lam_phi=0.0, lam_t=0.0)
    if variant == "coordinate-wide":
        return changed(params, width=_WIDE)
    rows = 0 if variant.endswith("raw") else params.model.fourier_rows
    target = parameter_count("structured", params.model, dimension)
    model = replace(params.model, fourier_rows=rows)
    counts = {w: parameter_count(variant, replace(model, width=w), dimension) for w in range(8, 257)}
    width = min(counts, key=lambda width: abs(counts[width] - target))
    return replace(params, model=replace(model, width=width))


def parameter_count(variant: Variant, model: ModelParams, dimension: int) -> int:
    """Trainable parameters: the layers, and C where there is one."""
    coordinates = variant.startswith("coordinate")
    inputs = 2 * model.fourier_rows or dimension + coordinates
    outputs = 1 if coordinates else model.rank + 1
    sizes = [inputs, *[model.width] * model.depth, outputs]
    layers = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    return layers + (0 if coordinates else model.rank * model.splines)


def _fit_coordinates(
    observations: Observations, params: AdapterParams, variant: Variant, seed: int | None, progress: bool
) -> CoordinateField:
    began, unit, model = time.perf_counter(), setup.value_unit(observations), params.model
    domain, rng = observations.domain, setup.generator(observations, seed)
    with setup.one_thread():
        samples = setup.prepare(replace(observations, y=observations.y / unit), setup.device())
        rows = networks.random_frequencies(model.fourier_rows, domain.dimension + 1, rng, samples.y.device)
        if variant == "coordinate-slow":
            rows[:, -1] *= _SLOW
        encoding = networks.Encoding(rows, model.coordinate_scale)
        network = Network(encoding, model.width, model.depth, 1, rng)
        objective = _Pointwise(network, samples, params.training.frames_per_update, rng)
        history = train(objective, network.parameters, params.training, 1.0, progress)
        spent = {"seconds": time.perf_counter() - began, "device": str(setup.device())}
        made = provenance_of(observations, variant, named(params), seed=seed, history=history, **spent)
        for part in network.layers[-1]:
            part.mul_(unit)
        return CoordinateField(networks.frozen_features(network), domain, made)


class _Pointwise:
    """The observation loss of a network that must see every sample; the encoding is computed once."""

    def __init__(self, network: Network, samples: Samples, frames: int, rng: torch.Generator) -> None:
        self.network, self.samples, self.frames, self.rng = network, samples, frames, rng
        t = torch.as_tensor(samples.frames, dtype=torch.float32, device=samples.y.device)
        points = torch.cat([samples.positions[samples.row], t[samples.column, None]], dim=1)
        self.inputs = network.encoding(points)

    def __call__(self, update: int) -> Tensor | None:
        """Add the gradient of one update chunk by chunk; now and then the error over all observations."""
        error = self.observation_error() if update % _CHECK_EVERY == 0 else None
        chosen = self.samples.of_frames(self.samples.draw_frames(self.frames, self.rng))
        for some in chosen.split(_CHUNK):
            residual = self.network(self.inputs[some])[:, 0] - self.samples.y[some]
            (residual.square().sum() / len(chosen)).backward()
        return error

    def observation_error(self) -> Tensor:
        """The MSE over all observations at the present iterate."""
        with torch.no_grad():
            chunks = zip(self.inputs.split(_CHUNK), self.samples.y.split(_CHUNK), strict=True)
            squares = [(self.network(x)[:, 0] - y).square().sum() for x, y in chunks]
            return torch.stack(squares).sum() / len(self.samples.y)
