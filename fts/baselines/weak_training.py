"""Networks with trainable rational activations, as Weak-PDE-LEARN has them: one flat vector -> u_hat(t, x).

Every hidden layer has an activation of its own, R(z) = (a0 + a1 z + a2 z^2 + a3 z^3) / (b0 + b1 z + b2 z^2).
All parameters stand in one vector, which the optimizer, the penalty on its size and a checkpoint see whole.

Random smooth test functions and a field on one grid -> the weak system, differentiable in the field.

The weak form of Weak-PDE-LEARN. A test function is a product of bumps exp(k - k / (1 - s^2)), s = (x - c)/r,
one per axis. All share one quadrature grid over the whole box: the field is evaluated there once, and every
integral <D^alpha q(u), psi> = (-1)^|alpha| <q(u), D^alpha psi> is a contraction axis by axis.

The training of Weak-PDE-LEARN: samples -> network and coefficients, epoch by epoch.

    L = w_D mean (u_hat - y)^2 + w_W mean (b - A xi)^2 + w_p sum_j omega_j xi_j^2 + w_2 ||theta||^2

with A, b of the present test functions and omega_j = 1 / max(floor, |xi_j|^(2 - p)), held constant in every
step, so that its minimum is that of the p-norm. Test functions are drawn anew every few epochs; those with
residuals far above the mean are kept for one epoch more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import comb, factorial, prod
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fts.baselines.settings import WeakPDELearnParams
from fts.baselines.training import Checkpoint, Diverged, adam_arrays, compiled, restore_adam
from fts.domain import Domain, grid_points
from fts.equations.expressions import STATE
from fts.equations.terms import Library, Term
from fts.observations import Observations

# The rational function of this type nearest to max(z, 0) on [-1, 1].
_NUMERATOR = (0.0218, 0.5, 1.5957, 1.1915)
_DENOMINATOR = (1.0, 0.0, 2.383)
# Points evaluated at once.
_CHUNK = 1 << 13


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
        parts: list[np.ndarray] = [
            np.tile(_NUMERATOR, (self.depth, 1)),
            np.tile(_DENOMINATOR, (self.depth, 1)),
        ]
        for shape in self.shapes[2:]:
            bound = np.sqrt(6.0 / sum(shape)) if len(shape) == 2 else 0.0
            parts.append(rng.uniform(-1.0, 1.0, shape) * bound)
        return np.concatenate([part.ravel() for part in parts])

    def values(self, theta: Tensor, points: Tensor) -> Tensor:
        """u_hat at the points (t, x, [y]), (n,)."""
        pieces = theta.split([prod(shape) for shape in self.shapes])
        a, b, *layers = (piece.view(shape) for piece, shape in zip(pieces, self.shapes, strict=True))
        z = points
        for place, (weight, bias) in enumerate(zip(layers[0::2], layers[1::2], strict=True)):
            z = torch.addmm(bias, z, weight)
            if place < self.depth:
                p, q = a[place], b[place]
                z = (((p[3] * z + p[2]) * z + p[1]) * z + p[0]) / ((q[2] * z + q[1]) * z + q[0])
        return z[:, 0]


@dataclass(frozen=True)
class RationalField:
    """A trained network on its box, frozen: a field as weak systems and plots read it."""

    network: RationalNetwork
    theta: Float[np.ndarray, " p"]
    domain: Domain

    def __call__(self, points: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """u_hat at the points (x, [y,] t)."""
        theta = torch.from_numpy(np.array(self.theta, dtype=np.float64))
        ordered = torch.from_numpy(np.roll(points, 1, axis=1))  # time first, as the network was trained
        with torch.no_grad():
            chunks = [self.network.values(theta, chunk) for chunk in ordered.split(_CHUNK)]
        return torch.cat(chunks).numpy()

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """u_hat on the tensor grid of the axes (x, [y,] t)."""
        return self(grid_points(axes)).reshape(*(axis.size for axis in axes))


# One radius for all axes, in shortest sides of the box, or one per axis, in its own side.
Radius = Literal["shortest", "per axis"]


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


def draw_bumps(
    domain: Domain,
    count: int,
    radius: Radius,
    fractions: tuple[float, float],
    margin: float,
    rng: np.random.Generator,
) -> Bumps:
    """Test functions with supports uniform in the box, `margin` and more away from its faces."""
    sides = np.array(domain.extents)
    low = np.array((*domain.low, domain.t0))
    reach = np.full_like(sides, sides.min()) if radius == "shortest" else sides
    radii = rng.uniform(*fractions, (count, 1)) * reach
    free = sides - 2 * (radii + margin)
    return Bumps(low + radii + margin + free * rng.random((count, sides.size)), radii)


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
    found = []
    for axis, nodes, order in zip(range(len(axes)), axes, orders, strict=True):
        center, radius = bumps.centers[:, axis], bumps.radii[:, axis]
        g = bump_derivatives((nodes[:, None] - center) / radius, steepness, order)
        scale = radius ** -np.arange(order + 1.0)[:, None, None]
        found.append(torch.from_numpy((g * scale * (nodes[1] - nodes[0])).astype(np.float32)))
    return found


def highest_orders(library: Library, dimension: int) -> tuple[int, ...]:
    """Highest derivative of the test functions along (x, [y,] t)."""
    return (*(max(term.alpha[axis] for term in library) for axis in range(dimension)), 1)


def plan(library: Library, dimension: int) -> tuple[Column, ...]:
    """How every column is integrated; refuses functions of u that are no polynomials."""
    library.check_dimension(dimension)
    return tuple(Column(term.alpha[:dimension], (-1.0) ** term.order, _powers(term)) for term in library)


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


def _powers(term: Term) -> tuple[tuple[int, float], ...]:
    found = []
    for product, coefficient in term.q.monomials:
        if any(factor != STATE or e < 0 or not float(e).is_integer() for factor, e in product):
            raise ValueError(
                f"{term} is no polynomial in u: this method takes powers u^n, replace or drop it"
            )
        found.append((int(sum(e for _, e in product)), float(coefficient)))
    return tuple(found)


def _power(u: Tensor, n: int) -> Tensor:
    return torch.ones_like(u) if n == 0 else u if n == 1 else u * _power(u, n - 1)


def _contract(inner: Tensor, parts: list[Tensor], alpha: tuple[int, ...]) -> Tensor:
    """Sum over the nodes of the spatial axes, last first, against the derivatives of order alpha."""
    for axis in reversed(range(len(alpha))):
        inner = (inner * parts[axis][alpha[axis]]).sum(dim=-2)
    return inner


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
        self.columns = plan(library, self.domain.dimension)
        self.orders = highest_orders(library, self.domain.dimension)
        self.points = _tensor(np.column_stack([observations.t, observations.x]))
        self.y = _tensor(observations.y)
        self.axes = quadrature_axes(self.domain, params.weak.quadrature)
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
        return draw_bumps(self.domain, count, form.radius, form.fractions, form.margin, rng)

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


def _loss(
    network: RationalNetwork, columns: tuple[Column, ...], nodes: Tensor, params: WeakPDELearnParams
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
        A, b = weak_system(u[len(y) :].view(params.weak.quadrature), parts, columns)
        residual = b - A @ (alive * xi)
        misfit = scalars[1] * residual.square().sum()
        omega = alive / xi.detach().abs().pow(2.0 - params.penalty_power).clamp(min=params.penalty_floor)
        total = params.data_weight * data + params.weak_weight * misfit
        total = total + scalars[0] * (omega * xi.square()).sum() + params.size_weight * theta.square().sum()
        return total, data, misfit, residual

    return loss


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32).copy())
