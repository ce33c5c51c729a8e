"""The training of PINN-SR: samples and residual points -> network and coefficients, jointly and in turns.

    L = log( mean (u_hat - y)^2 + alpha mean (Theta lambda - u_t)^2 + gamma ||lambda||_1 )

Network and coefficients are trained jointly by Adam and L-BFGS-B; then, in cycles, the coefficients are
projected by STRidge and the network alone is trained by Adam. Unlike PDE-FIND's, this STRidge starts from the
coefficients training has arrived at, so terms that are gone stay gone; a tolerance is scored by the mean
squared residual on held-out rows plus eta per term.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.optimize import minimize
from torch import Tensor

from fts.baselines.mlp_field import MLPField
from fts.baselines.pinn_sr import PINNSRParams
from fts.baselines.training import loop, taylor
from fts.domain import Domain
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection

Row = Float[np.ndarray, " m"]
Coefficients = Float[np.ndarray, " J"]
# A pretraining has so many blocks; between two of them L-BFGS runs on, then forgets its memory.
_BLOCKS = 10
# The search retreats by shorter and shorter steps, each the golden section of the one before.
_GOLDEN = 1.618


def pinn_sr(
    observations: Observations,
    library: Library,
    params: PINNSRParams,
    rng: np.random.Generator,
    *,
    checkpoint: Path | None = None,
) -> Selection:
    """The last STRidge projection of the alternating optimization."""
    kept = loop.checkpoint_of(checkpoint, observations, library, params, rng)
    training, notes = loop.train(lambda rng: JointTraining(observations, library, params, rng), rng, kept)
    notes |= {"iterations": dict(training.done), "stopped_by": training.stopped_by}
    notes |= {"held_out_error": training.held_out_error(), "rows": len(training.residual_points)}
    xi, seconds = training.projected.xi, {"fit": kept.seconds}
    return Selection(library, xi, "PINN-SR", field=training.freeze(), seconds=seconds, notes=notes)


@dataclass(frozen=True)
class Search:
    """What one search hands to the next: coefficients, where the tolerance stands, the price of a term."""

    xi: Coefficients
    tolerance: float
    eta: float | None  # held-out error of the coefficients the first search was given


def search(
    A: Float[np.ndarray, "m J"], b: Row, before: Search, test: Bool[np.ndarray, " m"], params: PINNSRParams
) -> Search:
    """The coefficients with the lowest score among the tolerances tried and those given."""
    norms = np.linalg.norm(A, axis=0)
    unit = A / np.where(norms > 0, norms, 1.0)
    given = before.xi * norms

    def error(w: np.ndarray) -> float:
        return float(np.mean((b[test] - unit[test] @ w) ** 2))

    eta = error(given) if before.eta is None else before.eta
    best, lowest = given, error(given) + eta * np.count_nonzero(given)
    tolerance, step = before.tolerance, params.tolerance_step
    for _ in range(params.rounds):
        w = threshold(unit[~test], b[~test], given, tolerance, params.ridge, params.thresholdings)
        score = error(w) + eta * np.count_nonzero(w)
        if score <= lowest:
            best, lowest = w, score
            tolerance += step
        else:
            tolerance = max(0.0, tolerance - 2 * step)
            step /= _GOLDEN
            tolerance += step
    return Search(np.divide(best, norms, out=np.zeros_like(best), where=norms > 0), tolerance, eta)


def threshold(
    A: Float[np.ndarray, "m J"], b: Row, given: Coefficients, tolerance: float, ridge: float, rounds: int
) -> Coefficients:
    """Drop |w_j| < tolerance and refit by ridge, from w given, until nothing drops; then least squares.

    What would empty the equation in a later round is not dropped; in the first it is, and nothing is left.
    """
    w = given.copy()
    kept = np.abs(w) >= tolerance
    relevant = w.size
    for done in range(rounds):
        staying = np.abs(w) >= tolerance
        if staying.sum() == relevant or (done and not staying.any()):
            break
        kept, relevant = staying, int(staying.sum())
        w = np.zeros_like(w)
        gram = A[:, kept].T @ A[:, kept] + ridge * np.eye(relevant)
        w[kept] = np.linalg.lstsq(gram, A[:, kept].T @ b, rcond=None)[0]
    w = np.zeros_like(w)
    w[kept] = np.linalg.lstsq(A[:, kept], b, rcond=None)[0]
    return w


class JointTraining(loop.Training):
    """Samples, residual points and compiled loss, which stay; network and coefficients, which change.

    A step is a block of Adam's or of L-BFGS-B's iterations, or a cycle.
    """

    stored = ("theta", "lam", "done", "stopped_by")
    theta: Tensor  # all weights, then all biases, in one vector
    lam: Tensor  # lambda, the coefficients

    def __init__(
        self, observations: Observations, library: Library, params: PINNSRParams, rng: np.random.Generator
    ) -> None:
        self.params, self.library, domain = params, library, observations.domain
        self.plan = taylor.plan_columns(library, domain.dimension)  # refused before the training, not after
        self.network = taylor.perceptron(domain, params.width, params.depth, "tanh", "unit")
        chosen = rng.permutation(len(observations))[: params.samples]
        held, used = np.split(chosen, [round(params.held_out * len(chosen))])
        self.samples = taylor.sample_tensors(observations, used)
        self.held = taylor.sample_tensors(observations, held)
        spread = latin_hypercube(domain, params.collocation, rng).astype(np.float32)
        joining = self.samples[0][: params.residual_samples]
        self.residual_points = torch.cat([torch.from_numpy(spread), joining])
        generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        layers = taylor.xavier_truncated(self.network.sizes, torch.float32, generator)
        self.theta = layers.vector.requires_grad_(True)
        self.lam = torch.zeros(len(library), requires_grad=True)
        rows = len(self.residual_points)
        self.test = rng.permutation(rows) < params.test_rows * rows
        calls = params.adam_steps + params.lbfgs_iterations + params.cycles * params.cycle_steps
        self.loss = loop.compiled(self.joint_loss, calls)
        self.optimizer = torch.optim.Adam([self.theta, self.lam], lr=params.adam_rate, fused=True)
        self.projected = Search(np.zeros(len(library)), params.tolerance_step, None)
        self.done = {"adam": 0, "lbfgs": 0, "cycles": 0}
        self.stopped_by = "budget"  # what ended L-BFGS-B

    @property
    def steps(self) -> int:
        """Iterations and cycles so far."""
        return sum(self.done.values())

    @property
    def finished(self) -> bool:
        """All cycles are done."""
        return self._phase == "cycles" and self.done["cycles"] >= self.params.cycles

    def step(self) -> None:
        """A tenth of a pretraining, or one cycle."""
        params, done = self.params, self.done
        match self._phase:
            case "adam":
                steps = min(-(-params.adam_steps // _BLOCKS), params.adam_steps - done["adam"])
                self.adam(steps, params.residual_weight)
                done["adam"] += steps
            case "lbfgs":
                block = -(-params.lbfgs_iterations // _BLOCKS)
                left = params.lbfgs_iterations - done["lbfgs"]
                taken, message = self.lbfgs(min(block, left), params.residual_weight)
                # Single precision ends a line search now and then; a block without memory often goes on.
                self.stopped_by = "budget" if taken > block // 100 else message
                done["lbfgs"] += taken
            case "cycles":
                self._project()
                self.adam(params.cycle_steps, params.cycle_residual_weight)
                done["cycles"] += 1

    def finish(self) -> None:
        """The projection after the last cycle."""
        self._project()

    def adam(self, steps: int, alpha: float) -> float:
        """That many steps on whatever the optimizer holds; the last loss."""
        weight, loss = torch.tensor(alpha), torch.tensor(np.nan)
        for _ in range(steps):
            loss = self._gradient(weight)
            self.optimizer.step()
        return _finite(loss)

    def lbfgs(self, iterations: int, alpha: float) -> tuple[int, str]:
        """At most that many iterations of L-BFGS-B on network and coefficients; how many, why it ended."""
        params, weight = self.params, torch.tensor(alpha)

        def evaluate(z: np.ndarray) -> tuple[float, np.ndarray]:
            self._put(z)
            loss = self._gradient(weight)
            assert self.theta.grad is not None
            assert self.lam.grad is not None
            return _finite(loss), torch.cat([self.theta.grad, self.lam.grad]).double().numpy()

        start = torch.cat([self.theta.detach(), self.lam.detach()]).double().numpy()
        limits = {"maxiter": iterations, "maxfun": 10 * iterations, "maxls": params.lbfgs_line_search}
        options = limits | {"maxcor": params.lbfgs_memory, "ftol": params.lbfgs_tolerance, "gtol": 0.0}
        result = minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
        self._put(result.x)
        return int(result.nit), str(result.message)

    def joint_loss(self, theta: Tensor, lam: Tensor, alpha: Tensor) -> Tensor:
        """L, as above."""
        inputs, y = self.samples
        data = (self.network.values(theta, inputs) - y).square().mean()
        jet = self.network.jet(theta, self.residual_points)
        residual = taylor.evaluate(self.plan, jet) @ lam - jet[taylor.TIME]
        return torch.log(data + alpha * residual.square().mean() + self.params.sparsity * lam.abs().sum())

    def system(self) -> tuple[Float[np.ndarray, "m J"], Row]:
        """Library and u_t at the residual points, in double precision."""
        with torch.no_grad():
            jet = self.network.jet(self.theta.double(), self.residual_points.double())
            A = taylor.evaluate(self.plan, jet)
        return A.numpy(), jet[taylor.TIME].numpy()

    def held_out_error(self) -> float:
        """Mean squared error at the samples that are only watched."""
        with torch.no_grad():
            values = self.network.values(self.theta, self.held[0])
        return float((values - self.held[1]).square().mean()) if len(values) else 0.0

    def freeze(self) -> MLPField:
        """The network as a field."""
        return self.network.freeze(self.theta)

    def state(self) -> tuple[dict[str, Any], loop.Arrays]:
        """The search, too; points and split are drawn again."""
        header, arrays = super().state()
        search = {"tolerance": self.projected.tolerance, "eta": self.projected.eta}
        return header | search, arrays | {"projected": self.projected.xi}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.projected = Search(arrays["projected"], header["tolerance"], header["eta"])
        if header["done"]["cycles"]:
            self.optimizer = self._network_adam()
        super().restore(header, arrays)

    @property
    def _phase(self) -> str:
        if self.done["adam"] < self.params.adam_steps:
            return "adam"
        running = self.done["lbfgs"] < self.params.lbfgs_iterations and self.stopped_by == "budget"
        return "lbfgs" if running else "cycles"

    def _project(self) -> None:
        """The next search projects the coefficients; the first one begins with those of the pretraining."""
        if not self.done["cycles"]:
            self.optimizer = self._network_adam()
            given = self.lam.detach().double().numpy()
            self.projected = Search(given, self.params.tolerance_step, None)
        A, b = self.system()
        self.projected = search(A, b, self.projected, self.test, self.params)
        with torch.no_grad():
            self.lam.copy_(torch.from_numpy(self.projected.xi))

    def _network_adam(self) -> torch.optim.Adam:
        params = self.params
        return torch.optim.Adam([self.theta], lr=params.cycle_rate, betas=params.cycle_betas, fused=True)

    def _gradient(self, alpha: Tensor) -> Tensor:
        """The loss, its gradient left in network and coefficients."""
        self.theta.grad = self.lam.grad = None
        loss = self.loss(self.theta, self.lam, alpha)
        loss.backward()
        return loss

    def _put(self, z: np.ndarray) -> None:
        size = self.theta.numel()
        with torch.no_grad():
            self.theta.copy_(torch.from_numpy(z[:size]))
            self.lam.copy_(torch.from_numpy(z[size:]))


def latin_hypercube(domain: Domain, count: int, rng: np.random.Generator) -> Float[np.ndarray, "n d1"]:
    """Points (t, x[, y]) of the box with one in each of `count` slices along every axis.

    By hand: scipy.stats.qmc draws other points from the same generator, and recorded runs have these.
    """
    ends = zip((domain.t0, *domain.low), (domain.t1, *domain.high), strict=True)
    slices = ((rng.permutation(count) + rng.random(count), low, high) for low, high in ends)
    return np.column_stack([low + (high - low) * drawn / count for drawn, low, high in slices])


def _finite(loss: Tensor) -> float:
    value = loss.item()
    if not np.isfinite(value):
        raise loop.Diverged(f"the loss was {value}")
    return value
