"""The training of Weak-PDE-LEARN: samples -> rational network and coefficients, epoch by epoch.

    L = w_D mean (u_hat - y)^2 + w_W mean (b - A xi)^2 + w_p sum_j omega_j xi_j^2 + w_2 ||theta||^2

with A, b of the present test functions and omega_j = 1 / max(floor, |xi_j|^(2 - p)), held constant in every
step, so that its minimum is that of the p-norm. Test functions are drawn anew every few epochs; those with
residuals far above the mean are kept for one epoch more.

Every hidden layer of the network has an activation of its own, R(z) = (a0 + a1 z + a2 z^2 + a3 z^3) / (b0 +
b1 z + b2 z^2). A test function is a product of bumps exp(k - k / (1 - s^2)), s = (x - c)/r, one per axis. All
share one quadrature grid over the whole box: the field is evaluated there once, and every integral <D^alpha
q(u), psi> = (-1)^|alpha| <q(u), D^alpha psi> is a contraction axis by axis.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import comb, factorial, prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fts.baselines.mlp_field import PointField
from fts.baselines.training import loop
from fts.baselines.training.taylor import powers, sample_tensors
from fts.baselines.weak_pde_learn import WeakFormParams, WeakPDELearnParams
from fts.domain import Domain, grid_points
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection

# The rational function of this type nearest to max(z, 0) on [-1, 1].
_NUMERATOR = (0.0218, 0.5, 1.5957, 1.1915)
_DENOMINATOR = (1.0, 0.0, 2.383)
# How often in a training its state is kept on disk.
_SAVES = 20
Batch = tuple[Tensor, Tensor]  # points and values


@dataclass(frozen=True)
class RationalNetwork:
    """The shape of a network: coordinates in, hidden layers of one width, one value out."""

    inputs: int
    width: int
    depth: int

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the parts of the vector: numerators, denominators, then weights and bias of every layer."""
        sizes = [self.inputs, *[self.width] * self.depth, 1]
        layers = [shape for n_in, n_out in pairwise(sizes) for shape in ((n_in, n_out), (n_out,))]
        return [(self.depth, len(_NUMERATOR)), (self.depth, len(_DENOMINATOR)), *layers]

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, " p"]:
        """Initial parameters: Xavier-uniform weights, zero biases, activations near max(z, 0)."""
        parts = [np.tile(start, (self.depth, 1)) for start in (_NUMERATOR, _DENOMINATOR)]
        for shape in self.shapes[2:]:
            bound = np.sqrt(6.0 / sum(shape)) if len(shape) == 2 else 0.0
            parts.append(rng.uniform(-1.0, 1.0, shape) * bound)
        return np.concatenate([part.ravel() for part in parts])

    def values(self, theta: Tensor, points: Tensor) -> Tensor:
        """u_hat at the points (t, x, [y]), (n,)."""
        pieces = theta.split([prod(shape) for shape in self.shapes])
        a, b, *layers = (piece.view(shape) for piece, shape in zip(pieces, self.shapes, strict=True))
        z = points
        for layer, (weight, bias) in enumerate(zip(layers[0::2], layers[1::2], strict=True)):
            z = torch.addmm(bias, z, weight)
            if layer < self.depth:
                p, q = a[layer], b[layer]
                z = (((p[3] * z + p[2]) * z + p[1]) * z + p[0]) / ((q[2] * z + q[1]) * z + q[0])
        return z[:, 0]


@dataclass(frozen=True)
class RationalField(PointField):
    """A trained network on its box, frozen: a field as weak systems and plots read it."""

    network: RationalNetwork
    theta: Float[np.ndarray, " p"]
    domain: Domain

    def values(self, inputs: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """The network in double precision."""
        theta = torch.from_numpy(np.array(self.theta, dtype=np.float64))
        with torch.no_grad():
            return self.network.values(theta, torch.from_numpy(inputs)).numpy()


# (epoch, losses by name, coefficients on the library, terms still in play, the field)
Watcher = Callable[[int, Mapping[str, float], np.ndarray, np.ndarray, RationalField], None]


def weak_pde_learn(
    observations: Observations,
    library: Library,
    params: WeakPDELearnParams,
    rng: np.random.Generator,
    *,
    callback: Watcher | None = None,
    checkpoint: Path | None = None,
) -> Selection:
    """The coefficients above the threshold at the end of the sparsification; no refit.

    The callback sees every epoch and cannot change what comes out. Of its losses "held_out", the weak loss
    under test functions of the epoch's own, is there at every `watch_every`-th epoch and the last. The
    denominators of the activations are not guarded, as in the authors' code: a training that diverges is
    started once more.
    """
    kept = loop.checkpoint_of(checkpoint, observations, library, params, rng)
    training, notes = loop.train(
        lambda rng: WeakTraining(observations, library, params, rng, callback), rng, kept
    )
    xi = training.physical()
    xi = np.where(training.alive & (np.abs(xi) > params.threshold), xi, 0.0)
    notes |= {"iterations": training.steps, "stopped_by": "budget"}
    notes |= {f"final_{name}": value for name, value in training.losses.items()}
    refit = zip(library.names, training.refit, strict=True)
    notes["least_squares"] = {name: float(value) for name, value in refit if value}
    seconds = {"fit": kept.seconds}
    return Selection(library, xi, "Weak-PDE-LEARN", field=training.freeze(), seconds=seconds, notes=notes)


@dataclass(frozen=True)
class Bumps:
    """Test functions by center and radius along (x, [y,] t)."""

    centers: Float[np.ndarray, "m d1"]
    radii: Float[np.ndarray, "m d1"]

    def __len__(self) -> int:
        return len(self.centers)

    def __getitem__(self, rows: np.ndarray) -> "Bumps":
        return Bumps(self.centers[rows], self.radii[rows])

    def __add__(self, other: "Bumps") -> "Bumps":
        pairs = ((self.centers, other.centers), (self.radii, other.radii))
        return Bumps(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class Column:
    """One term without its scale: the sign and orders of the test function's derivative, q as u^n: c."""

    alpha: tuple[int, ...]
    sign: float
    powers: tuple[tuple[int, float], ...]


def draw_bumps(domain: Domain, count: int, form: WeakFormParams, rng: np.random.Generator) -> Bumps:
    """Test functions with supports uniform in the box, the margin and more away from its faces."""
    sides = np.array(domain.extents)
    low = np.array((*domain.low, domain.t0))
    reach = np.full_like(sides, sides.min()) if form.radius == "shortest" else sides
    radii = rng.uniform(*form.fractions, (count, 1)) * reach
    free = sides - 2 * (radii + form.margin)
    return Bumps(low + radii + form.margin + free * rng.random((count, sides.size)), radii)


def bump_derivatives(s: Float[np.ndarray, "..."], steepness: float, order: int) -> Float[np.ndarray, "k ..."]:
    """g, g', ... of g(s) = exp(k - k / (1 - s^2)), zero where |s| >= 1.

    With g = exp(h), g^(n+1) = sum_j C(n, j) h^(j+1) g^(n-j), and h is a sum of two simple fractions.
    """
    inside = np.abs(s) < 1
    s = np.where(inside, s, 0.0)
    slopes = [
        -0.5 * steepness * factorial(n) * ((1 - s) ** -(n + 1.0) + (-1.0) ** n * (1 + s) ** -(n + 1.0))
        for n in range(order + 1)
    ]
    g = [np.where(inside, np.exp(steepness + slopes[0]), 0.0)]
    for n in range(order):
        g.append(sum(comb(n, j) * slopes[j + 1] * g[n - j] for j in range(n + 1)) + np.zeros_like(s))
    return np.stack(g)


def quadrature_axes(domain: Domain, nodes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Equispaced nodes over the box, ends included, along (x, [y,] t)."""
    ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), nodes, strict=True)
    return tuple(np.linspace(low, high, n) for low, high, n in ends)


def factors(
    bumps: Bumps, axes: tuple[np.ndarray, ...], orders: tuple[int, ...], steepness: float
) -> list[Tensor]:
    """Per axis the test functions' derivatives times the node spacing, (order + 1, nodes, m).

    Bumps vanish with all derivatives at the ends of their supports: equal weights are the trapezoidal rule.
    """
    parts = []
    for axis, nodes, order in zip(range(len(axes)), axes, orders, strict=True):
        center, radius = bumps.centers[:, axis], bumps.radii[:, axis]
        g = bump_derivatives((nodes[:, None] - center) / radius, steepness, order)
        scale = radius ** -np.arange(order + 1.0)[:, None, None]
        parts.append(torch.from_numpy((g * scale * (nodes[1] - nodes[0])).astype(np.float32)))
    return parts


def highest_orders(library: Library, dimension: int) -> tuple[int, ...]:
    """Highest derivative of the test functions along (x, [y,] t)."""
    return (*(max(term.alpha[axis] for term in library) for axis in range(dimension)), 1)


def plan(library: Library, dimension: int) -> tuple[Column, ...]:
    """How every column is integrated; refuses functions of u that are no polynomials."""
    library.check_dimension(dimension)
    return tuple(Column(term.alpha[:dimension], (-1.0) ** term.order, powers(term)) for term in library)


def weak_system(u: Tensor, parts: list[Tensor], columns: tuple[Column, ...]) -> tuple[Tensor, Tensor]:
    """A (m, J), the terms without their scales, and b (m,), the time derivative, from u on the nodes."""
    b = -_contract(u @ parts[-1][1], parts, (0,) * (u.dim() - 1))
    needed = sorted({n for column in columns for n, _ in column.powers})
    over_time = {n: _power(u, n) @ parts[-1][0] for n in needed}
    values = []
    for column in columns:
        inner = [c * over_time[n] for n, c in column.powers]
        values.append(column.sign * _contract(sum(inner[1:], inner[0]), parts, column.alpha))
    return torch.stack(values, dim=1), b


def _power(u: Tensor, n: int) -> Tensor:
    return torch.ones_like(u) if n == 0 else u if n == 1 else u * _power(u, n - 1)


def _contract(inner: Tensor, parts: list[Tensor], alpha: tuple[int, ...]) -> Tensor:
    """Sum over the nodes of the spatial axes, last first, against the derivatives of order alpha."""
    for axis in reversed(range(len(alpha))):
        inner = (inner * parts[axis][alpha[axis]]).sum(dim=-2)
    return inner


class WeakTraining(loop.Training):
    """Samples, quadrature and compiled loss, which stay; and the state, which every epoch changes."""

    stored = ("theta", "xi", "steps", "losses")
    parts: list[Tensor]  # factors of the present test functions, padded to one shape

    def __init__(
        self,
        observations: Observations,
        library: Library,
        params: WeakPDELearnParams,
        rng: np.random.Generator,
        callback: Watcher | None = None,
    ) -> None:
        self.params, self.rng, self.callback, self.domain = params, rng, callback, observations.domain
        self.epochs = params.burn_in + params.sparsification
        self.save_every = max(1, self.epochs // _SAVES)
        self.scales = np.array([term.scale for term in library])
        self.columns = plan(library, self.domain.dimension)
        self.orders = highest_orders(library, self.domain.dimension)
        self.points, self.y = sample_tensors(observations)
        self.axes = quadrature_axes(self.domain, params.weak.quadrature)
        self.nodes = _tensor(np.roll(grid_points(self.axes), 1, axis=1))  # the network takes time first
        self.network = RationalNetwork(self.domain.dimension + 1, params.width, params.depth)
        self.loss = loop.compiled(self.joint_loss, self.epochs)
        self.theta = _tensor(self.network.draw(rng)).requires_grad_(True)
        # Coefficients of the columns without their scales.
        self.xi = torch.zeros(len(library)).requires_grad_(True)
        self.optimizer = torch.optim.Adam([self.theta, self.xi], lr=params.learning_rate, fused=True)
        self.alive = np.ones(len(library), dtype=bool)  # terms still in play
        # The draw of test functions, then those carried over.
        self.present = Bumps(*(np.empty((0, len(self.axes))) for _ in range(2)))
        self.losses: dict[str, float] = {}

    @property
    def finished(self) -> bool:
        """Both phases are done."""
        return self.steps >= self.epochs

    def step(self) -> None:
        """One epoch."""
        params = self.params
        if self.steps % params.weak.refresh == 0:
            carried = self.present[np.arange(len(self.present)) >= params.weak.functions]
            self.present = self._draw(params.weak.functions, self.rng) + carried
            self._fill()
        if self.steps == params.burn_in:
            self.alive = np.abs(self.physical()) >= params.threshold
        penalty = params.penalty_weight if self.steps >= params.burn_in else 0.0
        alive = torch.from_numpy(self.alive.astype(np.float32))
        # Tensors rather than numbers, which the compiler would take for constants.
        scalars = torch.tensor([penalty, 1.0 / len(self.present)])
        batch = self._batch()
        total, data, misfit, residual = self.loss(self.theta, self.xi, alive, scalars, batch, self.parts)
        self.losses = {"loss": total.item(), "data": data.item(), "weak": misfit.item()}
        if not np.isfinite(self.losses["loss"]):
            raise loop.Diverged(f"the loss was {self.losses['loss']} in epoch {self.steps}")
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        self._carry(residual.detach().abs().numpy()[: len(self.present)])
        self.steps += 1
        if self.callback is not None:
            due = self.finished or self.steps % params.watch_every == 0
            losses = self.losses | ({"held_out": self.held_out()} if due else {})
            self.callback(self.steps, losses, self.physical(), self.alive.copy(), self.freeze())

    def finish(self) -> None:
        """Least squares on the support, under test functions of its own: for comparison."""
        self.refit = self.physical()
        support = np.abs(self.refit) > self.params.threshold
        A, b = self._system(self._draw(self.params.weak.functions, np.random.default_rng(self.steps)))
        self.refit[~support] = 0.0
        self.refit[support] = np.linalg.lstsq(A[:, support], b, rcond=None)[0]

    def physical(self) -> Float[np.ndarray, " J"]:
        """Coefficients of the library's terms, zero where a term has left."""
        xi = self.xi.detach().numpy().astype(np.float64)
        return np.where(self.alive, xi, 0.0) / self.scales

    def held_out(self) -> float:
        """The weak loss under test functions of the epoch's own; training's generator is not touched."""
        bumps = self._draw(self.params.weak.held_out_functions, np.random.default_rng(self.steps))
        A, b = self._system(bumps)
        return float(np.mean((b - A @ self.physical()) ** 2))

    def freeze(self) -> RationalField:
        """The network as a field."""
        return RationalField(self.network, self.theta.detach().numpy().astype(np.float64), self.domain)

    def state(self) -> tuple[dict[str, Any], loop.Arrays]:
        """The terms in play and the test functions, too."""
        header, arrays = super().state()
        return header, arrays | vars(self.present) | {"alive": self.alive.astype(np.uint8)}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        super().restore(header, arrays)
        self.alive, self.present = arrays["alive"].astype(bool), Bumps(arrays["centers"], arrays["radii"])
        self._fill()

    def joint_loss(
        self, theta: Tensor, xi: Tensor, alive: Tensor, scalars: Tensor, batch: Batch, parts: list[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The loss, its data and weak parts, and the residual of every test function."""
        params, (points, y) = self.params, batch
        u = self.network.values(theta, torch.cat([points, self.nodes]))
        data = (u[: len(y)] - y).square().mean()
        A, b = weak_system(u[len(y) :].view(params.weak.quadrature), parts, self.columns)
        residual = b - A @ (alive * xi)
        misfit = scalars[1] * residual.square().sum()
        omega = alive / xi.detach().abs().pow(2.0 - params.penalty_power).clamp(min=params.penalty_floor)
        total = params.data_weight * data + params.weak_weight * misfit
        total = total + scalars[0] * (omega * xi.square()).sum() + params.size_weight * theta.square().sum()
        return total, data, misfit, residual

    def _batch(self) -> Batch:
        if len(self.y) <= self.params.batch:
            return self.points, self.y
        rows = torch.from_numpy(self.rng.choice(len(self.y), self.params.batch, replace=False, shuffle=False))
        return self.points[rows], self.y[rows]

    def _draw(self, count: int, rng: np.random.Generator) -> Bumps:
        return draw_bumps(self.domain, count, self.params.weak, rng)

    def _fill(self) -> None:
        """Factors of the present test functions, with zeros behind them.

        Of m numbers at most m / (1 + k^2) lie k deviations above their mean (Cantelli), so that no more than
        functions / k^2 are ever carried over: padded to that, all epochs have one shape.
        """
        form = self.params.weak
        spare = int(form.functions / form.deviations**2)
        self.parts = []
        for part in factors(self.present, self.axes, self.orders, form.steepness):
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
        parts = factors(bumps, self.axes, self.orders, self.params.weak.steepness)
        with torch.no_grad():
            u = self.network.values(self.theta, self.nodes).view(*(axis.size for axis in self.axes))
            A, b = weak_system(u, parts, self.columns)
        return A.numpy().astype(np.float64) * self.scales, b.numpy().astype(np.float64)


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32).copy())
