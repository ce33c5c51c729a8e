"""Observations -> FrozenField by the paper's recipe (Section "Structured field adapter", Supplement A.3).

u_hat = b(x) + Phi(x)^T C (beta(t) - mean): a Swish network on fixed Fourier features gives background and
features at the distinct positions, splines the coefficients; both are descended on jointly, then frozen.
"""

import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from fts.bandwidth import coordinate_scale
from fts.data import Observations
from fts.device import device, threads
from fts.domain import Domain
from fts.features import NetworkFeatures, SplineCoefficients, spline_basis
from fts.frozen import FrozenField
from fts.networks import Encoding, Flat, Network, gaussian_rows
from fts.params import PAPER, AdapterParams
from fts.radial import SeriesFeatures, as_series
from fts.samples import Samples, prepare
from fts.training import Trace, train

# Where an update sees only some positions, the error over all of them is taken this often.
_CHECK_EVERY = 25
# A field's file stays below 100 KB: a 1D network with more parameters is stored by what it computes.
_LARGEST_NETWORK = 23_000
_TRUNCATION = 1e-12


def fit(
    observations: Observations,
    params: AdapterParams | None = None,
    *,
    seed: int | None = None,
    progress: bool = True,
    cores: int = 1,
) -> FrozenField:
    """The adapter trained on the observations and frozen.

    `params` are the paper's for the problem and `seed` is the observations' own unless they are given.
    """
    params = params or settings(observations)
    refuse_misfit(observations, params)
    began = time.perf_counter()
    # Softplus does not commute with a change of units: positive fields are trained in their own.
    unit = 1.0 if params.positive else deviation(observations)
    with threads(cores):
        samples = prepare(replace(observations, y=observations.y / unit), device())
        model = Structured(samples, observations.domain, params, generator(observations, seed))
        trace = train(
            Reconstruction(model, samples, params),
            [model.network.flat, model.coefficients],
            params,
            samples.variance,
            progress,
            # C stays at zero until the background has been fitted.
            ready=lambda update, flat: flat == 0 or update >= params.background_epochs,
        )
        made = describe(observations, params, "paper", seed, trace, time.perf_counter() - began)
        return model.freeze(made, unit)


class Structured:
    """The factorized model: a network for b and Phi, a matrix C for the spline coefficients."""

    def __init__(self, samples: Samples, domain: Domain, params: AdapterParams, rng: torch.Generator) -> None:
        where = samples.positions.device
        rows = gaussian_rows(params.fourier_rows, domain.dimension, rng, where)
        encoding = Encoding(rows, params.coordinate_scale)
        self.network = Network(encoding, params.width, params.depth, params.rank + 1, rng)
        self.coefficients = Flat([(params.rank, params.splines)], where)
        self.C = self.coefficients.parts[0]
        self.interval = (domain.t0, domain.t1)
        self.domain, self.params, self.rng = domain, params, rng
        basis = spline_basis(samples.frames, params.splines, self.interval)
        self.mean = basis.mean(axis=0)
        self.basis = _float32(basis - self.mean, where).T.contiguous()  # (M, F)
        self.curvature = _float32(curvature_gram(params, self.interval), where)

    @property
    def size(self) -> int:
        """Trainable parameters."""
        return len(self.network.flat) + len(self.coefficients)

    def gram_points(self) -> Tensor:
        """Fresh uniform points of the spatial domain."""
        low, high = (_float32(np.array(end), self.C.device) for end in (self.domain.low, self.domain.high))
        draw = torch.rand(self.params.gram_points, self.domain.dimension, generator=self.rng)
        return low + (high - low) * draw.to(low.device)

    def freeze(self, made: dict[str, Any], unit: float) -> FrozenField:
        """The model as NumPy arrays, multiplied by `unit`."""
        network = self.network
        with torch.no_grad():
            self.C.mul_(unit)
            network.weights[-1][0].mul_(unit)  # the background's row
            network.biases[-1][0].mul_(unit)
        space: NetworkFeatures | SeriesFeatures = NetworkFeatures(
            frequencies=to_numpy(network.encoding.rows),
            scale=network.encoding.scale,
            weights=tuple(to_numpy(weight.T) for weight in network.weights),
            biases=tuple(to_numpy(bias) for bias in network.biases),
        )
        if len(network.flat) > _LARGEST_NETWORK and space.dimension == 1:
            space = as_series(space, self.domain.low[0], self.domain.high[0], _TRUNCATION)
        splines = SplineCoefficients(to_numpy(self.C), self.mean, self.interval)
        return FrozenField(space, splines, self.domain, made, positive=self.params.positive)


class Reconstruction:
    """L_obs + lam_phi R_phi + lam_t R_t, with the paper's frame sampling, ramps and caps."""

    def __init__(self, model: Structured, samples: Samples, params: AdapterParams) -> None:
        self.model, self.samples, self.params = model, samples, params
        n, encoding = len(samples.positions), model.network.encoding
        # First the encoded positions, computed once; then room for the Gram points of each update.
        self.inputs = torch.empty(n + params.gram_points, encoding.outputs, device=samples.y.device)
        encoding(samples.positions, out=self.inputs[:n])
        total = len(samples.frames)
        least = params.frames_per_update if samples.values is not None else samples.batch_frames
        self.frames = min(total, max(params.frames_per_update, least))

    def __call__(self, update: int) -> tuple[Tensor, Tensor | None]:
        """The loss of one update, and the error over all observations that its forward pass gives away."""
        samples, n = self.samples, len(self.samples.positions)
        weight = self._ramp(update)
        background = update < self.params.background_epochs
        frames = self._draw_frames()
        batch = None if samples.values is not None else samples.of_frames(frames)
        used = None
        if batch is not None and len(batch[0]) < n:
            used, row = torch.unique(batch[1], return_inverse=True)
            batch = (batch[0], row, batch[2])
        inputs = self.inputs[:n] if used is None else self.inputs[used]
        points = len(inputs)
        if weight > 0:
            inputs = self._with_gram_points(inputs, used)
        outputs = self.model.network(inputs)
        loss = self._observation_loss(outputs[:points], frames, batch, background)
        if weight > 0:
            loss = loss + self._penalties(outputs[points:, 1:], weight, loss.detach())
        if used is None:
            return loss, self._error(outputs[:n].detach())
        return loss, self.observation_error() if update % _CHECK_EVERY == 0 else None

    def observation_error(self) -> Tensor:
        """The MSE over all observations at the present iterate."""
        with torch.no_grad():
            return self._error(self.model.network(self.inputs[: len(self.samples.positions)]))

    def _error(self, outputs: Tensor) -> Tensor:
        # Given the features this is one small product: the network has been paid for by the update itself.
        samples = self.samples
        with torch.no_grad():
            time_part = self._time_part(None, False)
            if samples.values is not None:
                prediction = self._output(time_part.T @ outputs.T)
                return prediction.sub_(samples.values).square_().mean()
            prediction = self._output((outputs[samples.row] * time_part.T[samples.column]).sum(1))
            return (prediction - samples.y).square_().mean()

    def _observation_loss(
        self,
        outputs: Tensor,
        frames: Tensor,
        batch: tuple[Tensor, Tensor, Tensor] | None,
        background: bool,
    ) -> Tensor:
        time_part = self._time_part(frames, background)
        if batch is None:
            values = self.samples.values
            assert values is not None  # no batch is drawn only on a grid
            prediction, target = self._output(time_part.T @ outputs.T), values[frames]
        else:
            target, row, place = batch
            prediction = self._output((outputs[row] * time_part.T[place]).sum(1))
        return (prediction - target).square().mean()

    def _time_part(self, frames: Tensor | None, background: bool) -> Tensor:
        """(R + 1, frames): the constant one over C (beta - mean)."""
        basis = self.model.basis if frames is None else self.model.basis[:, frames]
        C = self.model.C.detach() if background else self.model.C
        return torch.cat([basis.new_ones(1, basis.shape[1]), C @ basis])

    def _penalties(self, features: Tensor, weight: float, observed: Tensor) -> Tensor:
        params, C = self.params, self.model.C
        gram = features.T @ features / len(features)
        identity = torch.eye(len(gram), device=gram.device)
        spatial = weight * params.lam_phi * (gram - identity).square().sum()
        temporal = weight * params.lam_t * torch.sum((C @ self.model.curvature) * C)
        return _capped(spatial, params.cap_phi * observed) + _capped(temporal, params.cap_t * observed)

    def _ramp(self, update: int) -> float:
        params = self.params
        if params.lam_phi == params.lam_t == 0:
            return 0.0
        return min(1.0, max(0.0, (update - params.ramp_start) / params.ramp_length))

    def _draw_frames(self) -> Tensor:
        total, where = len(self.samples.frames), self.samples.y.device
        if self.frames == total:
            return torch.arange(total, device=where)
        return torch.randperm(total, generator=self.model.rng)[: self.frames].to(where)

    def _with_gram_points(self, inputs: Tensor, used: Tensor | None) -> Tensor:
        gram = self.inputs[len(self.samples.positions) :]
        self.model.network.encoding(self.model.gram_points(), out=gram)
        return self.inputs if used is None else torch.cat([inputs, gram])

    def _output(self, value: Tensor) -> Tensor:
        return softplus(value) if self.params.positive else value


def settings(observations: Observations) -> AdapterParams:
    """The paper's settings for a benchmark; for other data those of KS, with a scale that suits the data."""
    if observations.problem in PAPER:
        return PAPER[observations.problem].adapter
    return replace(PAPER["ks"].adapter, coordinate_scale=coordinate_scale(observations))


def refuse_misfit(observations: Observations, params: AdapterParams) -> None:
    """Raise where the model cannot be determined by the observations at all."""
    frames, positions = len(np.unique(observations.t)), len(np.unique(observations.x, axis=0))
    if positions <= params.rank:
        raise ValueError(
            f"{positions} positions cannot carry {params.rank} spatial features: observe more positions or "
            "lower params.rank"
        )
    if len(observations) <= params.rank * 4:
        raise ValueError(
            f"{len(observations)} samples ({positions} positions, {frames} frames) are too few for "
            f"{params.rank} features: add samples or lower params.rank"
        )


def deviation(observations: Observations) -> float:
    """The standard deviation of the values: the unit networks are trained in."""
    value = float(observations.y.std())
    if value == 0:
        raise ValueError(f"all {len(observations)} values are {observations.y[0]}: there is no field to fit")
    return value


def generator(observations: Observations, seed: int | None) -> torch.Generator:
    """The run's source of randomness, on the CPU so that every device draws the same numbers."""
    chosen = seed if seed is not None else observations.seed
    return torch.Generator().manual_seed(0 if chosen is None else chosen)


def describe(
    observations: Observations,
    params: AdapterParams,
    recipe: str,
    seed: int | None,
    trace: Trace,
    seconds: float,
) -> dict[str, Any]:
    """What a field's file says about its making."""
    return {
        "recipe": recipe,
        "parameters": asdict(params),
        "problem": observations.problem,
        "protocol": observations.protocol,
        "seed": observations.seed if seed is None else seed,
        "noise": observations.noise,
        "seconds": round(seconds, 2),
        "device": str(device()),
        **trace.as_dict(),
    }


def curvature_gram(params: AdapterParams, interval: tuple[float, float]) -> np.ndarray:
    """K with sum_r integral |c_r''|^2 dt = tr(C K C^T), on a uniform time grid."""
    t = np.linspace(*interval, params.curvature_points)
    second = spline_basis(t, params.splines, interval, 2)
    return second.T @ second * (interval[1] - interval[0]) / params.curvature_points


def _capped(penalty: Tensor, limit: Tensor) -> Tensor:
    # Scaled by a constant instead of clamped: a penalty at its cap keeps pulling, only weaker.
    return penalty * (limit / penalty.detach().clamp_min(1e-30)).clamp(max=1.0)


def _float32(array: np.ndarray, where: torch.device) -> Tensor:
    return torch.as_tensor(np.ascontiguousarray(array), dtype=torch.float32, device=where)


def to_numpy(tensor: Tensor) -> np.ndarray:
    """The tensor's values as a read-only array."""
    array = np.array(tensor.detach().cpu().numpy(), order="C")
    array.setflags(write=False)  # frozen means frozen
    return array
