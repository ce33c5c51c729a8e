"""The structured model and its loss: b(x) + Phi(x)^T C (beta(t) - mean), and L_obs + penalties (A.3).

The network is evaluated at distinct positions and at the Gram points; everything between its outputs and the
loss is a few small matrix products, whose derivatives are written out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from fts.domain import Domain
from fts.features import NetworkFeatures, SplineCoefficients, spline_basis
from fts.frozen import FrozenField
from fts.networks import Encoding, Flat, Network, gaussian_rows
from fts.params import AdapterParams
from fts.radial import SeriesFeatures, as_series
from fts.samples import Samples

# Where an update sees only some positions, the error over all of them is taken this often.
_CHECK_EVERY = 25
# A field's file stays below 100 KB: a 1D network with more parameters is stored by what it computes.
_LARGEST_NETWORK = 23_000
_TRUNCATION = 1e-12


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
        self.low = _float32(np.array(domain.low), where)
        self.extent = _float32(np.array(domain.extents[:-1]), where)
        self.identity = torch.eye(params.rank, device=where)
        self.curvature = _float32(curvature_gram(params, self.interval), where)

    @property
    def size(self) -> int:
        """Trainable parameters."""
        return self.network.size + len(self.coefficients)

    def gram_points(self) -> Tensor:
        """Fresh uniform points of the spatial domain."""
        draw = torch.rand(self.params.gram_points, self.domain.dimension, generator=self.rng)
        return torch.addcmul(self.low, self.extent, draw.to(self.low.device))

    def freeze(self, made: dict[str, Any], unit: float) -> FrozenField:
        """The model as NumPy arrays, multiplied by `unit`."""
        network = self.network
        with torch.no_grad():
            self.C.mul_(unit)
            network.weights[-1][0].mul_(unit)  # the background's row
            network.biases[-1][0].mul_(unit)
        space: NetworkFeatures | SeriesFeatures = frozen_features(network)
        if network.size > _LARGEST_NETWORK and space.dimension == 1:
            space = as_series(space, self.domain.low[0], self.domain.high[0], _TRUNCATION)
        splines = SplineCoefficients(to_numpy(self.C), self.mean, self.interval)
        return FrozenField(space, splines, self.domain, made, positive=self.params.positive)


@dataclass(frozen=True)
class _Batch:
    frames: Tensor
    background: bool  # C does not move yet
    samples: tuple[Tensor, Tensor, Tensor] | None  # (y, row, place of its frame) where there is no grid
    used: Tensor | None  # the positions the network is needed at, when not all


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

    def __call__(self, update: int) -> Tensor | None:
        """Add one update's gradient to the flat vectors; the error over all observations before it.

        The derivatives by the network's outputs and by C are a few small products, written out; automatic
        differentiation, which costs more than they do, is left to the layers.
        """
        batch = self._draw(update)
        weight = self._ramp(update)
        points = len(self.samples.positions) if batch.used is None else len(batch.used)
        outputs = self.model.network(self._inputs(batch.used, weight))
        values = outputs.detach()
        gradient = torch.zeros_like(values)
        loss, error = self._observe(values[:points], batch, gradient[:points])
        if weight > 0:
            self._penalize(values[points:, 1:], weight, loss, gradient[points:, 1:])
        outputs.backward(gradient)
        if error is None and update % _CHECK_EVERY == 0:
            return self.observation_error()
        return error

    def observation_error(self) -> Tensor:
        """The MSE over all observations at the present iterate."""
        samples = self.samples
        with torch.no_grad():
            outputs = self.model.network(self.inputs[: len(samples.positions)])
            time_part = self._time_part()
            if samples.values is not None:
                return (self._output(time_part @ outputs.T) - samples.values).square_().mean()
            prediction = (outputs[samples.row] * time_part[samples.column]).sum(1)
            return (self._output(prediction) - samples.y).square_().mean()

    @torch.no_grad()
    def _observe(self, outputs: Tensor, batch: "_Batch", gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        """(L_obs of the batch, MSE over all observations or None); fills its gradient by outputs and C."""
        time_part = self._time_part()
        if batch.samples is not None:
            return self._observe_scattered(outputs, time_part, batch, gradient), None
        values = self.samples.values
        assert values is not None  # only a grid has batches without a list of samples
        # All frames at once: given the features the error over all observations is this one product.
        fields = time_part @ outputs.T
        residual = self._output(fields) - values
        error = torch.linalg.vector_norm(residual).square_() / residual.numel()
        some, time_part = residual[batch.frames], time_part[batch.frames]
        loss = torch.linalg.vector_norm(some).square_() / some.numel()
        slope = some.mul_(2 / some.numel())
        if self.params.positive:
            slope *= torch.sigmoid(fields[batch.frames])
        torch.mm(slope.T, time_part, out=gradient)
        self._add_time_gradient(slope @ outputs, batch)
        return loss, error

    def _observe_scattered(
        self, outputs: Tensor, time_part: Tensor, batch: "_Batch", gradient: Tensor
    ) -> Tensor:
        assert batch.samples is not None
        y, row, place = batch.samples
        features, time_part = outputs[row], time_part[batch.frames][place]
        fields = (features * time_part).sum(1)
        residual = self._output(fields) - y
        slope = residual * (2 / len(y))
        if self.params.positive:
            slope = slope * torch.sigmoid(fields)
        gradient.index_add_(0, row, time_part * slope[:, None])
        pulled = torch.zeros(len(batch.frames), outputs.shape[1], device=y.device)
        self._add_time_gradient(pulled.index_add_(0, place, features * slope[:, None]), batch)
        return residual.square().mean()

    def _add_time_gradient(self, pulled: Tensor, batch: "_Batch") -> None:
        """From the gradient by the time part (frames, R + 1) to that by C."""
        if not batch.background:
            self._C_gradient.addmm_(pulled[:, 1:].T, self.model.basis[:, batch.frames].T)

    @torch.no_grad()
    def _penalize(self, features: Tensor, weight: float, loss: Tensor, gradient: Tensor) -> None:
        """Add the gradients of lam_phi |Phi^T Phi / N - I|^2 and lam_t tr(C K C^T), capped."""
        params, C, n = self.params, self.model.C, len(features)
        deviation = features.T @ features / n - self.model.identity
        spatial = weight * params.lam_phi * torch.linalg.vector_norm(deviation).square_()
        factor = 4 * weight * params.lam_phi / n * cap_factor(spatial, params.cap_phi * loss)
        gradient.copy_(features @ (deviation * factor))
        bent = C @ self.model.curvature
        temporal = weight * params.lam_t * torch.sum(bent * C)
        factor = 2 * weight * params.lam_t * cap_factor(temporal, params.cap_t * loss)
        self._C_gradient.add_(bent * factor)

    @property
    def _C_gradient(self) -> Tensor:
        return self.model.coefficients.gradient.view_as(self.model.C)

    def _time_part(self) -> Tensor:
        """(frames, R + 1): the constant one beside C (beta - mean)."""
        basis = self.model.basis
        return torch.cat([basis.new_ones(basis.shape[1], 1), basis.T @ self.model.C.detach().T], dim=1)

    def _draw(self, update: int) -> "_Batch":
        """The frames of one update and, where there is no grid, their samples and positions."""
        background = update < self.params.background_epochs
        frames = self._draw_frames()
        if self.samples.values is not None:
            return _Batch(frames, background, None, None)
        y, row, place = self.samples.of_frames(frames)
        used = None
        if len(y) < len(self.samples.positions):
            used, row = torch.unique(row, return_inverse=True)
        return _Batch(frames, background, (y, row, place), used)

    def _inputs(self, used: Tensor | None, weight: float) -> Tensor:
        n = len(self.samples.positions)
        if weight == 0:
            return self.inputs[:n] if used is None else self.inputs[used]
        self.model.network.encoding(self.model.gram_points(), out=self.inputs[n:])
        return self.inputs if used is None else torch.cat([self.inputs[used], self.inputs[n:]])

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

    def _output(self, value: Tensor) -> Tensor:
        return softplus(value) if self.params.positive else value


def curvature_gram(params: AdapterParams, interval: tuple[float, float]) -> np.ndarray:
    """K with sum_r integral |c_r''|^2 dt = tr(C K C^T), on a uniform time grid."""
    t = np.linspace(*interval, params.curvature_points)
    second = spline_basis(t, params.splines, interval, 2)
    return second.T @ second * (interval[1] - interval[0]) / params.curvature_points


def cap_factor(penalty: Tensor, limit: Tensor) -> Tensor:
    """min(1, limit / penalty): a penalty at its cap is scaled, so it keeps pulling, only weaker."""
    return (limit / penalty.clamp_min(1e-30)).clamp(max=1.0)


def frozen_features(network: Network) -> NetworkFeatures:
    """The network as NumPy arrays."""
    return NetworkFeatures(
        frequencies=to_numpy(network.encoding.rows),
        scale=network.encoding.scale,
        weights=tuple(to_numpy(weight.T) for weight, _ in network.layers),
        biases=tuple(to_numpy(bias) for _, bias in network.layers),
    )


def to_numpy(tensor: Tensor) -> np.ndarray:
    """The tensor's values as a read-only array."""
    array = np.array(tensor.detach().cpu().numpy(), order="C")
    array.setflags(write=False)  # frozen means frozen
    return array


def _float32(array: np.ndarray, where: torch.device) -> Tensor:
    return torch.as_tensor(np.ascontiguousarray(array), dtype=torch.float32, device=where)
