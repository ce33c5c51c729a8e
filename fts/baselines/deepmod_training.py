"""A system (X, y) -> the lasso with its penalty chosen by cross-validation, exact to rounding.

argmin ||y - X w||^2 / (2 n) + alpha ||w||_1 is piecewise linear in alpha. For the few columns of a library
the pieces are followed one by one (homotopy): a small linear solve each, where descent to a tolerance creeps
along collinear columns and stops before the optimum.

DeepMoD's training: what one iteration does, when terms are dropped, when it ends.

The loss is mean (u_hat - y)^2 + mean (u_t - Theta xi)^2 with xi the least-squares solution on the same rows
and terms. At that minimum the loss does not change with xi to first order, so xi enters as a constant: the
gradient in the network is the same as through the solve (envelope theorem), and the solve may be in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fts.adapter.samples import device
from fts.baselines import taylor
from fts.baselines.settings import DeepMoDParams
from fts.baselines.taylor import MLPField
from fts.baselines.training import Checkpoint, compiled
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection import sparse

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
    G: np.ndarray,
    q: np.ndarray,
    signs: np.ndarray,
    line: tuple[np.ndarray, np.ndarray],
    alpha: float,
    changed: int,
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
        left = (
            G[j, j] - column @ np.linalg.solve(G[np.ix_(active, active)], column) if len(active) else G[j, j]
        )
        if left <= _DEPENDENT * G[j, j]:
            continue
        for sign in (1.0, -1.0):
            if j == changed and sign * (rest[j] + alpha * slope[j]) > 0:
                continue  # it left here a moment ago
            if sign - slope[j] != 0.0:
                kinks.append((rest[j] / (sign - slope[j]), (int(j), sign)))
    kinks = [kink for kink in kinks if 0.0 < kink[0] <= alpha * (1.0 + _SAME)]
    return max(kinks, default=(0.0, None), key=lambda kink: kink[0])


# Training rows are padded to a multiple of this: runs of nearly as many rows share a compiled graph.
_ROWS = 200
_ADAM = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
State = dict[str, Tensor]


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


class DeepMoDTraining:
    """Samples and compiled network, which stay; and the state, which every iteration changes."""

    def __init__(
        self,
        observations: Observations,
        library: Library,
        params: DeepMoDParams,
        rng: np.random.Generator,
        calls: int,  # how often the network will be evaluated: compiling it must pay
    ) -> None:
        self.params, self.library, self.domain = params, library, observations.domain
        self.plan = taylor.plan_columns(library, self.domain.dimension)
        rows = rng.permutation(len(observations))[: params.samples]
        self.n = len(rows) - int(params.held_out * len(rows))
        if self.n < params.folds or self.n == len(rows):
            raise ValueError(
                f"{len(rows)} samples leave {self.n} to train on and {len(rows) - self.n} to hold out: "
                f"give at least {params.folds} and one"
            )
        padded = rows[np.minimum(np.arange(-(-self.n // _ROWS) * _ROWS), self.n - 1)]
        self.points, self.y = _tensors(observations, padded)
        self.weight = torch.zeros(len(padded), dtype=torch.float64, device=device())
        self.weight[: self.n] = 1.0 / self.n
        self.held_points, self.held_y = _tensors(observations, rows[self.n :])
        self.sizes = (self.domain.dimension + 1, *[params.width] * params.depth, 1)
        low, high = (self.domain.t0, *self.domain.low), (self.domain.t1, *self.domain.high)
        self.bounds = (low, high) if params.inputs == "unit" else None
        self.seed = int(rng.integers(1 << 31))
        generator = torch.Generator().manual_seed(self.seed)
        start = taylor.uniform_fan_in(self.sizes, torch.float32, generator)
        self.theta = start.vector.to(device()).requires_grad_(True)
        self.optimizer = torch.optim.Adam(
            [self.theta], lr=params.learning_rate, betas=params.betas, amsgrad=True, fused=True
        )
        self.jet, self.is_compiled = self._network(calls)
        self.iteration, self.schedule = 0, Schedule()
        self.mask = np.ones(len(library), dtype=bool)
        self.best: State = {}

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
        weights = taylor.unpack(self.theta.detach(), self.sizes)
        u = taylor.values(weights.weights, weights.biases, self.held_points, "tanh", self.bounds)
        error = float((u - self.held_y).double().square().mean())
        now, kept = self.schedule, self.params
        if now.sparse:
            if (self.iteration - now.since) % kept.periodicity == 0:
                self._decide(self.system)
            self._settle(float(np.abs(self.scaled).sum()))
        elif now.best is None or now.best - error >= kept.min_decrease:
            now.best, now.since = error, self.iteration
            self.best = self._state()
        elif self.iteration - now.since >= kept.patience:
            self._restore(self.best)
            # Decided on the network that was reloaded, not on the one it replaces.
            self.solve()
            self._decide(self.system)
            now.sparse, now.since = True, self.iteration
        return error

    def held_out(self) -> float:
        """Data error plus residual on the rows held out, under the coefficients of the training rows."""
        with torch.no_grad():
            weights = taylor.unpack(self.theta, self.sizes)
            jet = taylor.propagate(weights.weights, weights.biases, self.held_points, "tanh", self.bounds)
            columns = taylor.evaluate(self.plan, jet).double()
            residual = jet[taylor.TIME].double() - columns @ torch.from_numpy(self.xi).to(columns.device)
            data = (jet[0] - self.held_y).double().square().mean()
            return float(data + residual.square().mean())

    def freeze(self) -> MLPField:
        """The network as a field."""
        return taylor.unpack(self.theta, self.sizes).freeze("tanh", self.bounds, self.domain)

    def save(self, checkpoint: Checkpoint, rng: np.random.Generator) -> None:
        """Keep everything the next iteration depends on."""
        arrays = {"mask": self.mask.astype(np.uint8)}
        for head, state in (("now", self._state()), ("best", self.best)):
            arrays |= {f"{head}_{name}": tensor.cpu().numpy() for name, tensor in state.items()}
        header = {"iteration": self.iteration, "schedule": vars(self.schedule)}
        checkpoint.save(header, arrays, rng)

    def load(self, checkpoint: Checkpoint, rng: np.random.Generator) -> None:
        """Continue where a stored run stood, if there is one."""
        stored = checkpoint.load(rng)
        if stored is None:
            return
        header, arrays = stored
        self.iteration, self.schedule = header["iteration"], Schedule(**header["schedule"])
        self.mask = arrays["mask"].astype(bool)
        now, self.best = (
            {
                name.removeprefix(head): torch.from_numpy(array.copy()).to(device())
                for name, array in arrays.items()
                if name.startswith(head)
            }
            for head in ("now_", "best_")
        )
        self._restore(now)

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

    def _settle(self, size: float) -> None:
        now, params = self.schedule, self.params
        if now.size is None or abs(size - now.size) >= params.settled_change:
            now.size, now.steady = size, self.iteration
        elif self.iteration - now.steady >= params.settled_patience:
            now.converged = True

    def _state(self) -> State:
        memory = self.optimizer.state[self.theta]
        return {"theta": self.theta.detach().clone()} | {
            name: memory[name].clone() for name in _ADAM if name in memory
        }

    def _restore(self, state: State) -> None:
        with torch.no_grad():
            self.theta.copy_(state["theta"])
        self.optimizer.state[self.theta] = {name: state[name].clone() for name in _ADAM if name in state}

    def _network(self, calls: int) -> tuple[Callable[[Tensor, Tensor], Tensor], bool]:
        """(theta, points) -> the slices, compiled where that pays and works."""
        sizes, bounds = self.sizes, self.bounds

        def jet(theta: Tensor, points: Tensor) -> Tensor:
            weights = taylor.unpack(theta, sizes)
            return taylor.propagate(weights.weights, weights.biases, points, "tanh", bounds)

        fast = compiled(jet, calls)
        if fast is jet:
            return jet, False
        try:
            torch.autograd.grad(fast(self.theta, self.points).sum(), self.theta)
        except RuntimeError:  # whatever the compiler lacks here, the same function runs without it
            return jet, False
        return fast, True


def _tensors(observations: Observations, rows: np.ndarray) -> tuple[Tensor, Tensor]:
    points = np.column_stack([observations.t, observations.x])[rows]
    inputs, values = (
        torch.from_numpy(part.astype(np.float32)).to(device()) for part in (points, observations.y[rows])
    )
    return inputs, values
