"""The structured model and its training: b(x) + Phi(x)^T C (beta(t) - mean), and L_obs + penalties (A.3).

A Swish network on a Fourier encoding gives background and features. It is evaluated at distinct positions and
at the Gram points; between its outputs and the loss lie a few small matrix products.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, silu, softplus

from fts.adapter import samples as setup
from fts.adapter.samples import Origin, Samples
from fts.adapter.training import Objective, train
from fts.domain import Domain
from fts.fields.frozen import FrozenField, Provenance, provenance_of
from fts.fields.network import NetworkFeatures, SplineCoefficients, spline_basis
from fts.fields.series import SeriesFeatures, as_series
from fts.observations import Observations
from fts.params.types import AdapterParams, ProjectedParams, named

# Products with 75 columns take longer than with 80, which fill the processor's vectors: with layers left as
# they are, an update of the coordinate networks on 2D AD, the slowest of all, takes 11 to 16 % longer.
_LANES = 8
# Where an update sees only some positions, the error over all of them is taken this often.
_CHECK_EVERY = 25
# A field's file stays below 100 KB: a 1D network with more parameters is stored by what it computes.
_LARGEST_NETWORK = 23_000
_TRUNCATION = 1e-12

# (update, mean squared error over all observations, the field as it then stands)
Watcher = Callable[[int, float, Callable[[], FrozenField]], None]


@dataclass(frozen=True)
class Encoding:
    """gamma(x) = [sin(B s x), cos(B s x)], or s x itself when B has no rows."""

    rows: Tensor  # (rows, d)
    scale: float

    @cached_property
    def _scaled(self) -> Tensor:
        return (self.scale * self.rows).T.contiguous()

    @property
    def outputs(self) -> int:
        """Inputs the network receives."""
        rows, dimension = self.rows.shape
        return 2 * rows if rows else dimension

    def __call__(self, x: Tensor) -> Tensor:
        """The encoded positions, (n, outputs)."""
        if not len(self.rows):
            return self.scale * x
        phase = x @ self._scaled
        return torch.cat([torch.sin(phase), torch.cos(phase)], dim=1)


class Network:
    """Swish layers on an encoding; PyTorch's default initial weights, uniform in +-1/sqrt(inputs).

    Hidden layers are filled up to whole vectors with units whose weights are zero: swish(0) = 0, so neither
    their values nor their gradients ever leave zero, and `layers` shows the network without them.
    """

    def __init__(
        self, encoding: Encoding, width: int, depth: int, outputs: int, generator: torch.Generator
    ) -> None:
        self.encoding = encoding
        self.sizes = [encoding.outputs, *[width] * depth, outputs]
        filled = [encoding.outputs, *[-(-width // _LANES) * _LANES] * depth, outputs]
        # A tensor each: in one flat vector for all, updates of KS and KdV take 4 to 8 % less time.
        shapes = [shape for m, n in pairwise(filled) for shape in ((n, m), (n,))]
        where = encoding.rows.device
        self.parameters = [torch.zeros(shape, device=where, requires_grad=True) for shape in shapes]
        for weight, bias in self.layers:
            for part in (weight, bias):
                draw = torch.rand(part.shape, generator=generator)
                part.copy_((2 * draw - 1) * weight.shape[1] ** -0.5)

    @property
    def layers(self) -> list[tuple[Tensor, Tensor]]:
        """(weight, bias) of every layer, without the units that fill it up; they share memory."""
        parts = zip(self.parameters[0::2], self.parameters[1::2], pairwise(self.sizes), strict=True)
        return [(weight.detach()[:n, :m], bias.detach()[:n]) for weight, bias, (m, n) in parts]

    @property
    def size(self) -> int:
        """Trainable parameters."""
        return sum(part.numel() for layer in self.layers for part in layer)

    def __call__(self, encoded: Tensor) -> Tensor:
        """The outputs at encoded positions."""
        *hidden, last = zip(self.parameters[0::2], self.parameters[1::2], strict=True)
        z = encoded
        for weight, bias in hidden:
            z = silu(linear(z, weight, bias))
        return linear(z, *last)


class Structured:
    """The factorized model: a network for b and Phi, a matrix C for the spline coefficients."""

    def __init__(
        self,
        samples: Samples,
        domain: Domain,
        params: AdapterParams,
        rng: torch.Generator,
        periods: Sequence[float | None] = (),
    ) -> None:
        where, shape = samples.positions.device, params.model
        rows = random_frequencies(shape.fourier_rows, domain.dimension, rng, where)
        rows = periodic_frequencies(rows, shape.coordinate_scale, periods)
        encoding = Encoding(rows, shape.coordinate_scale)
        self.network = Network(encoding, shape.width, shape.depth, shape.rank + 1, rng)
        self.C = torch.zeros(shape.rank, shape.splines, device=where, requires_grad=True)
        self.interval = (domain.t0, domain.t1)
        self.domain, self.params, self.rng = domain, params, rng
        basis = spline_basis(samples.frames, shape.splines, self.interval)
        self.mean = basis.mean(axis=0)
        self.basis = _float32(basis - self.mean, where).T.contiguous()  # (M, F)
        self.low = _float32(np.array(domain.low), where)
        self.extent = _float32(np.array(domain.extents[:-1]), where)
        self.identity = torch.eye(shape.rank, device=where)
        self.curvature = _float32(curvature_gram(params, self.interval), where)

    @property
    def parameters(self) -> list[Tensor]:
        """What is trained."""
        return [*self.network.parameters, self.C]

    @property
    def size(self) -> int:
        """Trainable parameters."""
        return self.network.size + self.C.numel()

    def gram_points(self) -> Tensor:
        """Fresh uniform points of the spatial domain."""
        draw = torch.rand(self.params.penalties.gram_points, self.domain.dimension, generator=self.rng)
        return torch.addcmul(self.low, self.extent, draw.to(self.low.device))

    def freeze(self, made: Provenance, unit: float, domain: Domain, origin: Origin) -> FrozenField:
        """A copy of the model as NumPy arrays, multiplied by `unit` and back on the samples' own `domain`."""
        network = frozen_features(self.network)
        units, values = (np.full(self.params.model.rank + 1, value, np.float32) for value in (1.0, 0.0))
        units[0] = unit  # of the outputs only the background has one,
        values = values.astype(float) if origin.value else values
        values[0] = origin.value  # and only it has a mean
        weights = (*network.weights[:-1], network.weights[-1] * units)
        biases = (*network.biases[:-1], network.biases[-1] * units + values)
        network = replace(network, weights=weights, biases=biases).shifted(origin.corner)
        space: NetworkFeatures | SeriesFeatures = network
        if self.network.size > _LARGEST_NETWORK and space.dimension == 1:
            space = as_series(network, domain, _TRUNCATION)
        splines = SplineCoefficients(to_numpy(self.C * unit), self.mean, self.interval)
        return FrozenField(space, splines, domain, made, positive=self.params.model.positive)


class Reconstruction:
    """L_obs + lam_phi R_phi + lam_t R_t, with the paper's frame sampling, ramps and caps."""

    def __init__(self, model: Structured, samples: Samples, params: AdapterParams) -> None:
        self.model, self.samples, self.params = model, samples, params
        self.encoded = model.network.encoding(samples.positions)

    # Plain automatic differentiation: gradients written out by hand take 4 to 13 % less time per update.
    def __call__(self, update: int) -> Tensor | None:
        """Add one update's gradient; the error over all observations before it, where it is at hand."""
        samples, training, weight = self.samples, self.params.training, self._ramp(update)
        # C stays at zero until the background has been fitted.
        C = self.model.C if update >= training.background_epochs else self.model.C.detach()
        frames = samples.draw_frames(training.frames_per_update, self.model.rng)
        if samples.values is not None:
            outputs, features = self._outputs(self.encoded, weight)
            # All frames at once: given the outputs the error over all observations is this one product.
            residual = self._grid_residual(outputs, C, samples.values)
            loss, error = residual[frames].square().mean(), residual.detach().square().mean()
        else:
            chosen = samples.of_frames(frames)
            used, row = torch.unique(samples.row[chosen], return_inverse=True)
            outputs, features = self._outputs(self.encoded[used], weight)
            loss = self._residual(outputs[row], C, chosen).square().mean()
            error = self.observation_error() if update % _CHECK_EVERY == 0 else None
        if weight > 0:
            loss = loss + self._penalties(features, C, weight, loss.detach())
        loss.backward()
        return error

    def observation_error(self) -> Tensor:
        """The MSE over all observations at the present iterate."""
        samples, C = self.samples, self.model.C
        with torch.no_grad():
            outputs = self.model.network(self.encoded)
            if samples.values is not None:
                return self._grid_residual(outputs, C, samples.values).square().mean()
            return self._residual(outputs[samples.row], C, slice(None)).square().mean()

    def _outputs(self, encoded: Tensor, weight: float) -> tuple[Tensor, Tensor]:
        """b and Phi at encoded positions, and Phi at fresh Gram points where there are penalties."""
        network, n = self.model.network, len(encoded)
        if weight > 0:  # one pass: a second one takes 7 to 11 % longer on KS-S20 and KdV-S20
            encoded = torch.cat([encoded, network.encoding(self.model.gram_points())])
        outputs = network(encoded)
        return outputs[:n], outputs[n:, 1:]

    def _grid_residual(self, outputs: Tensor, C: Tensor, values: Tensor) -> Tensor:
        """u_hat - y of every frame at every position, (F, S)."""
        return self._output(self._time_part(C) @ outputs.T) - values

    def _residual(self, outputs: Tensor, C: Tensor, chosen: Tensor | slice) -> Tensor:
        """u_hat - y of the chosen samples, with the outputs at each one's position."""
        time_part = self._time_part(C)[self.samples.column[chosen]]
        return self._output((outputs * time_part).sum(1)) - self.samples.y[chosen]

    def _penalties(self, features: Tensor, C: Tensor, weight: float, loss: Tensor) -> Tensor:
        """lam_phi |Phi^T Phi / N - I|^2 and lam_t tr(C K C^T) on their ramp, each capped."""
        penalties = self.params.penalties
        deviation = features.T @ features / len(features) - self.model.identity
        spatial = weight * penalties.lam_phi * deviation.square().sum()
        temporal = weight * penalties.lam_t * torch.sum((C @ self.model.curvature) * C)
        return capped(spatial, penalties.cap_phi * loss) + capped(temporal, penalties.cap_t * loss)

    def _time_part(self, C: Tensor) -> Tensor:
        """(frames, R + 1): the constant one beside C (beta - mean)."""
        basis = self.model.basis
        return torch.cat([basis.new_ones(basis.shape[1], 1), basis.T @ C.T], dim=1)

    def _ramp(self, update: int) -> float:
        penalties = self.params.penalties
        if penalties.lam_phi == penalties.lam_t == 0:
            return 0.0
        return min(1.0, max(0.0, (update - penalties.ramp_start) / penalties.ramp_length))

    def _output(self, value: Tensor) -> Tensor:
        return softplus(value) if self.params.model.positive else value


def fit_structured(
    observations: Observations,
    params: AdapterParams,
    objective_of: Callable[["Structured", Samples], tuple[Objective, Sequence[Tensor], float]],
    *,
    recipe: str,
    seed: int | None,
    progress: bool,
    settings: ProjectedParams | None = None,
    watch: Watcher | None = None,
) -> FrozenField:
    """The structured field, trained on an objective (with what it trains and its variance) and frozen.

    The field names `settings` as its own where `params` only follow from them.
    """
    setup.require_determined(observations, params.model)
    began, positive = time.perf_counter(), params.model.positive
    # Softplus does not commute with a change of units: positive fields are trained in their own.
    unit = 1.0 if positive else setup.value_unit(observations)
    near, origin = setup.centered(observations, positive=positive)
    with setup.one_thread():
        samples = setup.prepare(replace(near, y=near.y / unit), setup.device())
        rng, periods = setup.generator(observations, seed), setup.periods(observations)
        model = Structured(samples, near.domain, params, rng, periods)
        objective, parameters, variance = objective_of(model, samples)

        def frozen(made: Provenance) -> FrozenField:
            return model.freeze(made, unit, observations.domain, origin)

        def report(update: int, error: float) -> None:
            if watch is not None:
                watch(update, error * unit**2, lambda: frozen(Provenance()))

        history = train(objective, parameters, params.training, variance, progress, report)
        objective.observation_error()  # the iterate to freeze is back in place; a C solved for is now its own
        spent = {"seconds": time.perf_counter() - began, "device": str(setup.device())}
        values = named(settings or params)
        return frozen(provenance_of(observations, recipe, values, seed=seed, history=history, **spent))


def random_frequencies(rows: int, dimension: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """B, drawn once from a standard Gaussian."""
    return torch.randn(rows, dimension, generator=generator).to(device)


def periodic_frequencies(rows: Tensor, scale: float, periods: Sequence[float | None]) -> Tensor:
    """B with whole waves along every axis that has a period: the encoding closes as the axis does."""
    rows = rows.clone()
    for axis, period in enumerate(periods):
        if period is not None:
            unit = 2 * torch.pi / (scale * period)
            rows[:, axis] = unit * torch.round(rows[:, axis] / unit)
    return rows


def curvature_gram(params: AdapterParams, interval: tuple[float, float]) -> np.ndarray:
    """K with sum_r integral |c_r''|^2 dt = tr(C K C^T), on a uniform time grid."""
    count = params.penalties.curvature_points
    second = spline_basis(np.linspace(*interval, count), params.model.splines, interval, 2)
    return second.T @ second * (interval[1] - interval[0]) / count


def capped(penalty: Tensor, limit: Tensor) -> Tensor:
    """min(penalty, limit), by a factor held constant: at its cap a penalty keeps pulling, only weaker."""
    return penalty * (limit / penalty.detach().clamp_min(1e-30)).clamp(max=1.0)


def frozen_features(network: Network) -> NetworkFeatures:
    """The network as NumPy arrays."""
    encoding, layers = network.encoding, network.layers
    weights, biases = (
        tuple(map(to_numpy, part)) for part in zip(*((w.T, b) for w, b in layers), strict=True)
    )
    return NetworkFeatures(to_numpy(encoding.rows), encoding.scale, weights, biases)


def to_numpy(tensor: Tensor) -> np.ndarray:
    """The tensor's values as a read-only array."""
    array = np.array(tensor.detach().cpu().numpy(), order="C")
    array.setflags(write=False)  # frozen means frozen
    return array


def _float32(array: np.ndarray, where: torch.device) -> Tensor:
    return torch.as_tensor(np.ascontiguousarray(array), dtype=torch.float32, device=where)
