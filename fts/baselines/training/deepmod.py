"""DeepMoD's training: what one iteration does, when terms are dropped, when it ends.

The loss is mean (u_hat - y)^2 + mean (u_t - Theta xi)^2 with xi the least-squares solution on the same rows
and terms. At that minimum the loss does not change with xi to first order, so xi enters as a constant: the
gradient in the network is the same as through the solve (envelope theorem), and the solve may be in float64.

Terms are dropped by a lasso, argmin ||y - X w||^2 / (2 n) + alpha ||w||_1, whose solution is piecewise linear
in alpha. For the few columns of a library the pieces are followed one by one (homotopy): a small linear solve
each, where descent to a tolerance creeps along collinear columns and stops before the optimum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fts.adapter.samples import device
from fts.baselines.deepmod import DeepMoDParams
from fts.baselines.mlp_field import MLPField
from fts.baselines.training import loop, taylor
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection import sparse
from fts.selection.selection import Selection

# Training rows are padded to a multiple of this: runs of nearly as many rows share a compiled graph.
_ROWS = 200
# (iteration, losses by name, coefficients on the library, terms in play, the field), all of one network.
Watcher = Callable[[int, Mapping[str, float], np.ndarray, np.ndarray, MLPField], None]


def deepmod(
    observations: Observations,
    library: Library,
    params: DeepMoDParams,
    rng: np.random.Generator,
    *,
    callback: Watcher | None = None,
    checkpoint: Path | None = None,
) -> Selection:
    """The terminal terms and their coefficients, trained until these settle or the budget is spent.

    An empty equation where all terms were dropped. The callback sees every check and changes nothing.
    """
    kept = loop.checkpoint_of(checkpoint, observations, library, params, rng)
    made_for = {"callback": callback, "calls": params.max_iterations}
    training, _ = loop.train(
        lambda rng: DeepMoDTraining(observations, library, params, rng, **made_for), rng, kept
    )
    notes, seconds = training.notes(), {"fit": kept.seconds}
    return Selection(library, training.xi, "DeepMoD", field=training.freeze(), seconds=seconds, notes=notes)


@dataclass
class Schedule:
    """What the checks remember: until the held-out error stalls its best, then the settling coefficients."""

    best: float | None = None  # lowest held-out data error, while all terms are in play
    since: int = 0  # iteration of the best; after the switch, of the switch
    sparse: bool = False  # whether terms have been dropped once; from then on they are at every period
    size: float | None = None  # sum of the scaled coefficients when it last moved
    steady: int = 0  # iteration of that
    masks: int = 0  # how often the terms in play were decided
    converged: bool = False


class DeepMoDTraining(loop.Training):
    """Samples and compiled network, which stay; and the state, which every iteration changes.

    The callback sees every check and cannot change what comes out: losses are "data" and "residual" of the
    training rows, "held_out" their sum on the others, all before the step, "validation" the data error after
    it.
    """

    save_every = 1000
    stored = ("theta", "steps")

    def __init__(
        self,
        observations: Observations,
        library: Library,
        params: DeepMoDParams,
        rng: np.random.Generator,
        callback: Watcher | None = None,
        *,
        calls: int = 0,  # how often the network will be evaluated: compiling it must pay
    ) -> None:
        self.params, self.library, self.callback = params, library, callback
        self.plan = taylor.plan_columns(library, observations.domain.dimension)
        rows = rng.permutation(len(observations))[: params.samples]
        self.n = len(rows) - int(params.held_out * len(rows))
        if self.n < params.folds or self.n == len(rows):
            raise ValueError(
                f"{len(rows)} samples leave {self.n} to train on and {len(rows) - self.n} to hold out: "
                f"give at least {params.folds} and one"
            )
        padded = rows[np.minimum(np.arange(-(-self.n // _ROWS) * _ROWS), self.n - 1)]
        self.points, self.y = _on_device(observations, padded)
        self.weight = torch.zeros(len(padded), dtype=torch.float64, device=device())
        self.weight[: self.n] = 1.0 / self.n
        self.held_points, self.held_y = _on_device(observations, rows[self.n :])
        shape = params.width, params.depth, "tanh", params.inputs
        self.network = taylor.perceptron(observations.domain, *shape)
        generator = torch.Generator().manual_seed(int(rng.integers(1 << 31)))
        start = taylor.uniform_fan_in(self.network.sizes, torch.float32, generator)
        self.theta = start.vector.to(device()).requires_grad_(True)
        rate, betas = params.learning_rate, params.betas
        self.optimizer = torch.optim.Adam([self.theta], rate, betas, amsgrad=True, fused=True)
        self.jet, self.is_compiled = self._compiled_jet(calls)
        self.schedule = Schedule()
        self.mask = np.ones(len(library), dtype=bool)
        self.best: loop.Arrays = {}

    @property
    def finished(self) -> bool:
        """The coefficients have settled, or the budget is spent."""
        return self.schedule.converged or self.steps >= self.params.max_iterations

    def step(self) -> None:
        """One iteration; at some of them the held-out error is checked."""
        iteration, field = self.steps, None
        due = iteration % self.params.check_every == 0
        loss = self.solve()
        losses, xi, mask = self.losses, self.xi, self.mask
        if due and self.callback is not None:
            losses, field = losses | {"held_out": self.held_out()}, self.freeze()
        self.descend(loss)
        if due:
            error = self.check()
            if self.callback is not None and field is not None:
                self.callback(iteration, losses | {"validation": error}, xi.copy(), mask.copy(), field)
        self.steps += 1

    def finish(self) -> None:
        """The last step moved the network, and the last check perhaps the terms: one more solve."""
        self.solve()
        self.held_out_loss = self.held_out()

    def solve(self) -> Tensor:
        """The loss at the present network; leaves the coefficients and both of its parts behind."""
        jet = self.jet(self.theta, self.points)
        columns, u_t = taylor.evaluate(self.plan, jet).double(), jet[taylor.TIME].double()
        self.xi, self.scaled = self._coefficients(columns, u_t)
        residual = u_t - columns @ torch.from_numpy(self.xi).to(u_t.device)
        data = (self.weight * (jet[0] - self.y).double().square()).sum()
        misfit = (self.weight * residual.square()).sum()
        self.losses = {"data": data.item(), "residual": misfit.item()}
        return data + misfit

    def descend(self, loss: Tensor) -> None:
        """One step of the optimizer."""
        self.theta.grad = None
        loss.backward()
        self.optimizer.step()

    def check(self) -> float:
        """The held-out data error, which decides when terms are first dropped; later, whether to stop."""
        u = self.network.values(self.theta.detach(), self.held_points)
        error = float((u - self.held_y).double().square().mean())
        schedule, params = self.schedule, self.params
        if schedule.sparse:
            if (self.steps - schedule.since) % params.periodicity == 0:
                self._decide(self.system)
            self._check_convergence(float(np.abs(self.scaled).sum()))
        elif schedule.best is None or schedule.best - error >= params.min_decrease:
            schedule.best, schedule.since = error, self.steps
            self.best = loop.snapshot(self.optimizer, theta=self.theta)
        elif self.steps - schedule.since >= params.patience:
            loop.restore(self.optimizer, self.best, theta=self.theta)
            # Decided on the network that was reloaded, not on the one it replaces.
            self.solve()
            self._decide(self.system)
            schedule.sparse, schedule.since = True, self.steps
        return error

    def held_out(self) -> float:
        """Data error plus residual on the rows held out, under the coefficients of the training rows."""
        with torch.no_grad():
            jet = self.network.jet(self.theta, self.held_points)
            columns = taylor.evaluate(self.plan, jet).double()
            residual = jet[taylor.TIME].double() - columns @ torch.from_numpy(self.xi).to(columns.device)
            data = (jet[0] - self.held_y).double().square().mean()
            return float(data + residual.square().mean())

    def notes(self) -> dict[str, Any]:
        """How the training went."""
        schedule, losses = self.schedule, {f"final_{name}": value for name, value in self.losses.items()}
        return {
            "iterations": self.steps,
            "converged": schedule.converged,
            "stopped_by": "convergence" if schedule.converged else "budget",
            "sparse_since": schedule.since if schedule.sparse else None,
            "masks": schedule.masks,
            "samples": self.n + len(self.held_y),
            **losses,
            "held_out": self.held_out_loss,
            "compiled": self.is_compiled,
        }

    def freeze(self) -> MLPField:
        """The network as a field."""
        return self.network.freeze(self.theta)

    def state(self) -> tuple[dict[str, Any], loop.Arrays]:
        """The best network and optimizer, the terms in play and the schedule, too."""
        header, arrays = super().state()
        arrays |= {f"best_{name}": array for name, array in self.best.items()}
        return header | {"schedule": vars(self.schedule)}, arrays | {"mask": self.mask.astype(np.uint8)}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        super().restore(header, arrays)
        self.schedule, self.mask = Schedule(**header["schedule"]), arrays["mask"].astype(bool)
        self.best = {name[5:]: array for name, array in arrays.items() if name.startswith("best_")}

    def _coefficients(self, columns: Tensor, u_t: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """xi on the terms in play, and the same in units of the columns and of ||u_t||."""
        A, b = (part.detach()[: self.n].cpu().numpy() for part in (columns, u_t))
        self.system = sparse.normalize(A, b)
        x = sparse.solve(self.system, self.mask, 0.0)
        return self.system.physical(x), x / (float(np.linalg.norm(b)) or 1.0)

    def _decide(self, system: sparse.NormalSystem) -> None:
        """The terms whose lasso coefficient reaches the threshold; dropped ones may return."""
        params = self.params
        size = float(np.linalg.norm(system.b)) or 1.0
        w = lasso_cv(system.A, system.b / size, params.folds, params.alphas, params.alpha_ratio)
        self.mask = np.abs(w) >= params.threshold
        self.schedule.masks += 1

    def _check_convergence(self, size: float) -> None:
        schedule, params = self.schedule, self.params
        if schedule.size is None or abs(size - schedule.size) >= params.settled_change:
            schedule.size, schedule.steady = size, self.steps
        elif self.steps - schedule.steady >= params.settled_patience:
            schedule.converged = True

    def _compiled_jet(self, calls: int) -> tuple[Callable[[Tensor, Tensor], Tensor], bool]:
        """(theta, points) -> the slices, compiled where that pays and works."""
        jet = self.network.jet
        fast = loop.compiled(jet, calls)
        if fast is jet:
            return jet, False
        try:
            torch.autograd.grad(fast(self.theta, self.points).sum(), self.theta)
        except RuntimeError:  # whatever the compiler lacks here, the same function runs without it
            return jet, False
        return fast, True


def _on_device(observations: Observations, rows: np.ndarray) -> tuple[Tensor, Tensor]:
    points, y = taylor.sample_tensors(observations, rows)
    return points.to(device()), y.to(device())


# By hand: scikit-learn's lars_path is as fast and leaves the optimum by up to 1e-6 on nearly dependent
# columns.

# A column that the active ones explain up to this fraction of its square does not join them.
_DEPENDENT = 1e-12
# Two kinks nearer than this, relative to alpha, are one.
_SAME = 1e-12
# Pieces per column; a path has about two.
_MOST = 50


def lasso_cv(
    X: Float[np.ndarray, "n J"], y: Float[np.ndarray, " n"], folds: int, alphas: int, ratio: float
) -> Float[np.ndarray, " J"]:
    """The lasso on all rows at the alpha of lowest mean squared error over unshuffled folds, no intercept.

    The grid runs from the smallest alpha that selects nothing down to `ratio` of it.
    """
    n = len(y)
    if n < folds or folds < 2:
        raise ValueError(f"{n} rows in {folds} folds: give at least two folds and a row in each")
    gram, moment = X.T @ X, X.T @ y
    largest = float(np.abs(moment).max()) / n
    if largest == 0.0:
        return np.zeros(X.shape[1])
    grid = np.geomspace(largest, ratio * largest, alphas)
    errors = np.zeros((folds, alphas))
    for fold, rows in enumerate(np.array_split(np.arange(n), folds)):
        out, target = X[rows], y[rows]
        m = n - len(rows)
        W = lasso_path((gram - out.T @ out) / m, (moment - out.T @ target) / m, grid)
        errors[fold] = ((target[:, None] - out @ W.T) ** 2).mean(axis=0)
    best = grid[int(np.argmin(errors.mean(axis=0)))]
    return lasso_path(gram / n, moment / n, np.array([best]))[0]


def lasso_path(
    G: Float[np.ndarray, "J J"], q: Float[np.ndarray, " J"], alphas: Float[np.ndarray, " A"]
) -> Float[np.ndarray, "A J"]:
    """argmin w^T G w / 2 - q^T w + alpha |w|_1 at every one of the descending alphas."""
    W = np.zeros((len(alphas), len(q)))
    alpha = float(np.abs(q).max())
    signs = np.zeros(len(q))
    done = int(np.searchsorted(-alphas, -alpha, side="right"))  # above the first kink nothing is selected
    changed = int(np.argmax(np.abs(q)))
    signs[changed] = np.sign(q[changed])
    for _ in range(_MOST * len(q)):
        active = np.flatnonzero(signs)
        # w = start - alpha * rate on the active columns, q - G w = rest + alpha * slope on the others.
        start, rate = np.linalg.solve(G[np.ix_(active, active)], np.stack([q[active], signs[active]], 1)).T
        following, event = _next_kink(G, q, signs, (start, rate), alpha, changed)
        upto = int(np.searchsorted(-alphas, -following, side="right")) if event is not None else len(alphas)
        W[done:upto, active] = start - alphas[done:upto, None] * rate
        done = max(done, upto)
        if event is None or done == len(alphas):
            return W
        alpha = following
        changed, signs[event[0]] = event
    raise ValueError(f"a lasso path over {len(q)} columns has no end: drop dependent columns")


def _next_kink(
    G: np.ndarray, q: np.ndarray, signs: np.ndarray, line: tuple[np.ndarray, ...], alpha: float, changed: int
) -> tuple[float, tuple[int, float] | None]:
    """The largest smaller alpha at which a column leaves (sign 0) or joins (its sign), and which one."""
    start, rate = line
    active = np.flatnonzero(signs)
    kinks: list[tuple[float, tuple[int, float]]] = []
    for j, a, b in zip(active, start, rate, strict=True):
        # The column that joined last is zero at the present alpha already.
        if j != changed and b != 0.0 and a / b > 0.0:
            kinks.append((a / b, (int(j), 0.0)))
    rest, slope = q - G[:, active] @ start, G[:, active] @ rate
    for j in np.flatnonzero(signs == 0):
        column = G[active, j]
        explained = column @ np.linalg.solve(G[np.ix_(active, active)], column) if len(active) else 0.0
        if G[j, j] - explained <= _DEPENDENT * G[j, j]:
            continue
        for sign in (1.0, -1.0):
            if j == changed and sign * (rest[j] + alpha * slope[j]) > 0:
                continue  # it left here a moment ago
            if sign - slope[j] != 0.0:
                kinks.append((rest[j] / (sign - slope[j]), (int(j), sign)))
    kinks = [kink for kink in kinks if 0.0 < kink[0] <= alpha * (1.0 + _SAME)]
    return max(kinks, default=(0.0, None), key=lambda kink: kink[0])
