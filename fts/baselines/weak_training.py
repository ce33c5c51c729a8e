"""The training of Weak-PDE-LEARN: samples -> network and coefficients, epoch by epoch.

    L = w_D mean (u_hat - y)^2 + w_W mean (b - A xi)^2 + w_p sum_j omega_j xi_j^2 + w_2 ||theta||^2

with A, b of the present test functions and omega_j = 1 / max(floor, |xi_j|^(2 - p)), held constant in every
step, so that its minimum is that of the p-norm. Test functions are drawn anew every few epochs; those with
residuals far above the mean are kept for one epoch more.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fts.baselines import random_weak as weak
from fts.baselines.checkpoints import Checkpoint, Diverged, adam_arrays, restore_adam
from fts.baselines.compiling import compiled
from fts.baselines.random_weak import Bumps
from fts.baselines.rational import RationalField, RationalNetwork
from fts.domain import grid_points
from fts.equations.terms import Library
from fts.observations import Observations
from fts.params import WeakPDELearnParams


class WeakTraining:
    """Samples, quadrature and compiled loss, which stay; and the state, which every step changes."""

    theta: Tensor  # the network
    xi: Tensor  # coefficients of the columns without their scales
    alive: Bool[np.ndarray, " J"]  # terms still in play
    present: Bumps  # test functions: the draw, then those carried over
    parts: list[Tensor]  # their factors, padded to one shape
    losses: dict[str, float]
    epoch: int

    def __init__(
        self,
        observations: Observations,
        library: Library,
        params: WeakPDELearnParams,
        rng: np.random.Generator,
    ) -> None:
        self.params, self.rng, self.domain = params, rng, observations.domain
        self.scales = np.array([term.scale for term in library])
        self.columns = weak.plan(library, self.domain.dimension)
        self.orders = weak.highest_orders(library, self.domain.dimension)
        self.points = _tensor(np.column_stack([observations.t, observations.x]))
        self.y = _tensor(observations.y)
        self.axes = weak.quadrature_axes(self.domain, params.weak.quadrature)
        self.nodes = _tensor(np.roll(grid_points(self.axes), 1, axis=1))  # the network takes time first
        self.network = RationalNetwork(self.domain.dimension + 1, params.width, params.depth)
        loss = _loss(self.network, self.columns, self.nodes, params)
        self.loss = compiled(loss, params.burn_in + params.sparsification)

    def start(self, checkpoint: Checkpoint) -> None:
        """The state before the first epoch: a drawn network, zero coefficients; or the one on disk."""
        stored = checkpoint.load(self.rng)
        if stored is None:
            self._begin(self.network.draw(self.rng), np.zeros(len(self.columns)))
            return
        header, arrays = stored
        self._begin(arrays["theta"], arrays["xi"])
        restore_adam(self.optimizer, arrays)
        self.alive, self.present = arrays["alive"].astype(bool), Bumps(arrays["centers"], arrays["radii"])
        self.epoch, self.losses = header["epoch"], dict(header["losses"])
        self._fill()

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep everything the next epoch depends on."""
        arrays = {
            "theta": self.theta.detach().numpy(),
            "xi": self.xi.detach().numpy(),
            "alive": self.alive.astype(np.uint8),
            "centers": self.present.centers,
            "radii": self.present.radii,
        }
        header = {"epoch": self.epoch, "losses": self.losses}
        checkpoint.save(header, arrays | adam_arrays(self.optimizer), self.rng)

    def step(self) -> None:
        """One epoch."""
        params = self.params
        if self.epoch % params.weak.refresh == 0:
            carried = self.present[np.arange(len(self.present)) >= params.weak.functions]
            self.present = self._draw(params.weak.functions, self.rng) + carried
            self._fill()
        if self.epoch == params.burn_in:
            self.alive = np.abs(self.physical()) >= params.threshold
        penalty = params.penalty_weight if self.epoch >= params.burn_in else 0.0
        alive = torch.from_numpy(self.alive.astype(np.float32))
        # Tensors rather than numbers, which the compiler would take for constants.
        scalars = torch.tensor([penalty, 1.0 / len(self.present)])
        total, data, misfit, residual = self.loss(
            self.theta, self.xi, alive, scalars, *self._batch(), self.parts
        )
        self.losses = {"loss": total.item(), "data": data.item(), "weak": misfit.item()}
        if not np.isfinite(self.losses["loss"]):
            raise Diverged(f"the loss was {self.losses['loss']} in epoch {self.epoch}")
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        self._carry(residual.detach().abs().numpy()[: len(self.present)])
        self.epoch += 1

    def physical(self) -> Float[np.ndarray, " J"]:
        """Coefficients of the library's terms, zero where a term has left."""
        xi = self.xi.detach().numpy().astype(np.float64)
        return np.where(self.alive, xi, 0.0) / self.scales

    def held_out(self) -> float:
        """The weak loss under test functions of the epoch's own; training's generator is not touched."""
        A, b = self._system(
            self._draw(self.params.weak.held_out_functions, np.random.default_rng(self.epoch))
        )
        return float(np.mean((b - A @ self.physical()) ** 2))

    def refit(self) -> Float[np.ndarray, " J"]:
        """Least squares on the support, under test functions of its own."""
        xi = self.physical()
        chosen = np.abs(xi) > self.params.threshold
        A, b = self._system(self._draw(self.params.weak.functions, np.random.default_rng(self.epoch)))
        xi[~chosen] = 0.0
        xi[chosen] = np.linalg.lstsq(A[:, chosen], b, rcond=None)[0]
        return xi

    def freeze(self) -> RationalField:
        """The network as a field."""
        return RationalField(self.network, self.theta.detach().numpy().astype(np.float64), self.domain)

    def _begin(self, theta: np.ndarray, xi: np.ndarray) -> None:
        self.theta, self.xi = (_tensor(part).requires_grad_(True) for part in (theta, xi))
        self.optimizer = torch.optim.Adam([self.theta, self.xi], lr=self.params.learning_rate, fused=True)
        self.alive = np.ones(len(xi), dtype=bool)
        self.present = Bumps(*(np.empty((0, len(self.axes))) for _ in range(2)))
        self.epoch, self.losses = 0, {}

    def _batch(self) -> tuple[Tensor, Tensor]:
        if len(self.y) <= self.params.batch:
            return self.points, self.y
        rows = torch.from_numpy(self.rng.choice(len(self.y), self.params.batch, replace=False, shuffle=False))
        return self.points[rows], self.y[rows]

    def _draw(self, count: int, rng: np.random.Generator) -> Bumps:
        form = self.params.weak
        return weak.draw_bumps(self.domain, count, form.radius, form.fractions, form.margin, rng)

    def _fill(self) -> None:
        """Factors of the present test functions, with zeros behind them.

        Of m numbers at most m / (1 + k^2) lie k deviations above their mean (Cantelli), so that no more than
        functions / k^2 are ever carried over: padded to that, all epochs have one shape.
        """
        form = self.params.weak
        spare = int(form.functions / form.deviations**2)
        self.parts = []
        for part in weak.factors(self.present, self.axes, self.orders, form.steepness):
            padded = torch.zeros(*part.shape[:2], form.functions + spare)
            padded[..., : part.shape[2]] = part
            self.parts.append(padded)

    def _carry(self, residual: np.ndarray) -> None:
        """Append to the draw the test functions whose residual was far above the mean."""
        form = self.params.weak
        kept = np.flatnonzero(residual >= residual.mean() + form.deviations * residual.std())
        # All residuals equal, and so all at the bound: carry as many as there is room for.
        kept = kept[: self.parts[0].shape[2] - form.functions]
        self.present = self.present[np.arange(form.functions)] + self.present[kept]
        for part in self.parts:
            chosen = part[..., kept]
            part[..., form.functions :] = 0.0
            part[..., form.functions : form.functions + len(kept)] = chosen

    def _system(self, bumps: Bumps) -> tuple[np.ndarray, np.ndarray]:
        """A of the library's terms and b, at the present network."""
        parts = weak.factors(bumps, self.axes, self.orders, self.params.weak.steepness)
        with torch.no_grad():
            u = self.network.values(self.theta, self.nodes).view(*(axis.size for axis in self.axes))
            A, b = weak.weak_system(u, parts, self.columns)
        return A.numpy().astype(np.float64) * self.scales, b.numpy().astype(np.float64)


def _loss(
    network: RationalNetwork, columns: tuple[weak.Column, ...], nodes: Tensor, params: WeakPDELearnParams
) -> Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]]:
    """The loss, its data and weak parts, and the residual of every test function."""

    def loss(
        theta: Tensor,
        xi: Tensor,
        alive: Tensor,
        scalars: Tensor,
        points: Tensor,
        y: Tensor,
        parts: list[Tensor],
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        u = network.values(theta, torch.cat([points, nodes]))
        data = (u[: len(y)] - y).square().mean()
        A, b = weak.weak_system(u[len(y) :].view(params.weak.quadrature), parts, columns)
        residual = b - A @ (alive * xi)
        misfit = scalars[1] * residual.square().sum()
        omega = alive / xi.detach().abs().pow(2.0 - params.penalty_power).clamp(min=params.penalty_floor)
        total = params.data_weight * data + params.weak_weight * misfit
        total = total + scalars[0] * (omega * xi.square()).sum() + params.size_weight * theta.square().sum()
        return total, data, misfit, residual

    return loss


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32).copy())
