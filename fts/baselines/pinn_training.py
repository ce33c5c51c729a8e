"""The training inside PINN-SR: samples and residual points -> network and coefficients.

    L = log( mean (u_hat - y)^2 + alpha mean (Theta lambda - u_t)^2 + gamma ||lambda||_1 )

Network and coefficients are trained jointly by Adam and L-BFGS-B, or the network alone by Adam.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from fts.baselines import taylor
from fts.baselines.settings import PINNSRParams
from fts.baselines.surrogate import input_bounds
from fts.baselines.taylor import MLPField
from fts.baselines.training import Diverged, compiled
from fts.domain import Domain
from fts.equations.terms import Library
from fts.observations import Observations


class JointTraining:
    """Samples, residual points and compiled loss, which stay; network and coefficients, which change."""

    theta: Tensor  # all weights, then all biases, in one vector
    lam: Tensor  # lambda, the coefficients

    def __init__(
        self, observations: Observations, library: Library, params: PINNSRParams, rng: np.random.Generator
    ) -> None:
        self.params, self.domain, self.library = params, observations.domain, library
        dimension = observations.domain.dimension
        taylor.plan_columns(library, dimension)  # refused before the training, not after
        self.bounds = input_bounds(observations.domain, "unit")
        self.sizes = (1 + dimension, *(params.width,) * params.depth, 1)
        points = np.column_stack([observations.t, observations.x])
        chosen = rng.permutation(len(points))[: params.samples]
        held = chosen[: round(params.held_out * len(chosen))]
        used = chosen[len(held) :]
        self.samples = _tensor(points[used]), _tensor(observations.y[used])
        self.held = _tensor(points[held]), _tensor(observations.y[held])
        joining = points[used[: params.residual_samples]]
        spread = latin_hypercube(observations.domain, params.collocation, rng)
        self.residual_points = _tensor(np.concatenate([spread, joining]))
        generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        layers = taylor.xavier_truncated(self.sizes, torch.float32, generator)
        self.theta = layers.vector.requires_grad_(True)
        self.lam = torch.zeros(len(library), requires_grad=True)
        calls = params.adam_steps + params.lbfgs_iterations + params.cycles * params.cycle_steps
        self.loss = compiled(_loss(self), calls)

    def freeze(self) -> MLPField:
        """The network as a field."""
        return taylor.unpack(self.theta, self.sizes).freeze("tanh", self.bounds, self.domain)

    def adam(self, optimizer: torch.optim.Adam, steps: int, alpha: float) -> float:
        """That many steps on whatever the optimizer holds; the last loss."""
        weight, loss = torch.tensor(alpha), torch.tensor(np.nan)
        for _ in range(steps):
            self.theta.grad = self.lam.grad = None
            loss = self.loss(self.theta, self.lam, weight)
            loss.backward()
            optimizer.step()
        return self._finite(loss)

    def lbfgs(self, iterations: int, alpha: float) -> tuple[int, str]:
        """At most that many iterations of L-BFGS-B on network and coefficients; how many, why it ended."""
        params, weight, size = self.params, torch.tensor(alpha), self.theta.numel()

        def evaluate(z: np.ndarray) -> tuple[float, np.ndarray]:
            self._put(z, size)
            self.theta.grad = self.lam.grad = None
            loss = self.loss(self.theta, self.lam, weight)
            loss.backward()
            assert self.theta.grad is not None
            assert self.lam.grad is not None
            gradient = torch.cat([self.theta.grad, self.lam.grad]).double().numpy()
            return self._finite(loss), gradient

        start = torch.cat([self.theta.detach(), self.lam.detach()]).double().numpy()
        options = {
            "maxiter": iterations,
            "maxfun": 10 * iterations,
            "maxcor": params.lbfgs_memory,
            "maxls": params.lbfgs_line_search,
            "ftol": params.lbfgs_tolerance,
            "gtol": 0.0,
        }
        found = minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
        self._put(found.x, size)
        return int(found.nit), str(found.message)

    def system(self) -> tuple[Float[np.ndarray, "m J"], Float[np.ndarray, " m"]]:
        """Library and u_t at the residual points, in double precision."""
        with torch.no_grad():
            layers = taylor.unpack(self.theta.double(), self.sizes)
            points = self.residual_points.double()
            jet = taylor.propagate(layers.weights, layers.biases, points, "tanh", self.bounds)
            A = taylor.columns(self.library, jet, self.domain.dimension)
        return A.numpy(), jet[taylor.TIME].numpy()

    def held_out_error(self) -> float:
        """Mean squared error at the samples that are only watched."""
        with torch.no_grad():
            layers = taylor.unpack(self.theta, self.sizes)
            values = taylor.values(layers.weights, layers.biases, self.held[0], "tanh", self.bounds)
        return float((values - self.held[1]).square().mean()) if len(values) else 0.0

    def _put(self, z: np.ndarray, size: int) -> None:
        with torch.no_grad():
            self.theta.copy_(torch.from_numpy(z[:size]))
            self.lam.copy_(torch.from_numpy(z[size:]))

    def _finite(self, loss: Tensor) -> float:
        value = loss.item()
        if not np.isfinite(value):
            raise Diverged(f"the loss was {value}")
        return value


def latin_hypercube(domain: Domain, count: int, rng: np.random.Generator) -> Float[np.ndarray, "n d1"]:
    """Points (t, x[, y]) of the box with one in each of `count` slices along every axis."""
    ends = zip((domain.t0, *domain.low), (domain.t1, *domain.high), strict=True)
    return np.column_stack(
        [low + (high - low) * (rng.permutation(count) + rng.random(count)) / count for low, high in ends]
    )


def _loss(training: JointTraining) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    params, bounds, points = training.params, training.bounds, training.residual_points
    plan = taylor.plan_columns(training.library, training.domain.dimension)
    sizes, (inputs, y) = training.sizes, training.samples

    def loss(theta: Tensor, lam: Tensor, alpha: Tensor) -> Tensor:
        layers = taylor.unpack(theta, sizes)
        data = (taylor.values(layers.weights, layers.biases, inputs, "tanh", bounds) - y).square().mean()
        jet = taylor.propagate(layers.weights, layers.biases, points, "tanh", bounds)
        residual = taylor.evaluate(plan, jet) @ lam - jet[taylor.TIME]
        return torch.log(data + alpha * residual.square().mean() + params.sparsity * lam.abs().sum())

    return loss


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))
