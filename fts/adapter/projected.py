"""Observations -> FrozenField by variable projection: C is solved exactly at every update, not descended on.

Given Phi the best C is a ridge problem, and at its optimum the derivative of the loss by C vanishes: AdamW
moves the network alone, as if C were constant. Model, freeze and file are those of the paper's recipe.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from fts.adapter.networks import Structured, fit_structured
from fts.adapter.samples import Samples, settings
from fts.adapter.training import Objective
from fts.fields.frozen import FrozenField
from fts.observations import Observations
from fts.params.paper import PROJECTED
from fts.params.types import AdapterParams, ProjectedParams, changed

# Conjugate gradients for scattered samples: the grid's own solution preconditions, so a few steps suffice.
_CG_STEPS = 40
_CG_DROP = 1e-8  # of the right side's preconditioned square


def fit(
    observations: Observations,
    params: ProjectedParams | None = None,
    *,
    seed: int | None = None,
    progress: bool = True,
) -> FrozenField:
    """The structured field with C solved at every update, frozen; takes scattered samples too."""
    chosen = params or PROJECTED

    def objective(model: Structured, samples: Samples) -> tuple[Objective, Sequence[Tensor], float]:
        return Projection(model, samples, chosen), model.network.parameters, 1.0

    model = model_params(observations, chosen)
    return fit_structured(
        observations, model, objective, recipe="projected", settings=chosen, seed=seed, progress=progress
    )


def model_params(observations: Observations, params: ProjectedParams) -> AdapterParams:
    """The paper's network for these data, trained as `params` say."""
    same = ("rank", "width", "knots", "learning_rate", "weight_decay")
    values: dict[str, Any] = {name: getattr(params, name) for name in same} | {"epochs": params.updates}
    whole = {"positive": False, "background_epochs": 0, "patience": 0, "keep": "best"}
    return changed(settings(observations), **values, **whole)


class Projection:
    """The observation loss with C(Phi) eliminated."""

    def __init__(self, model: Structured, samples: Samples, params: ProjectedParams) -> None:
        self.model, self.samples = model, samples
        self.inputs = model.network.encoding(samples.positions)
        basis = model.basis.double()  # (M, F), centered over the frames
        counts = (samples.starts[1:] - samples.starts[:-1]).double()
        B = (basis * (counts / counts.sum())) @ basis.T
        interval = model.interval[1] - model.interval[0]
        # Time in units of the record: |c''|^2 dt carries length^-3.
        K = model.curvature.double() * interval**3
        self.pencil = _Pencil(B, K, params)
        values = samples.values
        self.equations = _Scattered(samples, basis) if values is None else _Grid(values, basis)

    def __call__(self, update: int) -> Tensor:
        """Add the gradient of the projected loss to the network's; the loss."""
        outputs = self.model.network(self.inputs)
        gradient, error = self._solve(outputs.detach())
        outputs.backward(gradient.to(outputs.dtype))
        return error

    def observation_error(self) -> Tensor:
        """The MSE over all observations at the present network and its best C, which stays in the model."""
        with torch.no_grad():
            return self._solve(self.model.network(self.inputs))[1]

    def _solve(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Put the best C into the model; the loss gradient by the outputs, and the loss."""
        C, gradient, error = self.equations.solve(outputs, self.pencil)
        with torch.no_grad():
            self.model.C.copy_(C)
        return gradient, error


class _Pencil:
    """B and K diagonalized together, so that (G C B + mu C K + rho C B = r) is R x M scalar divisions."""

    def __init__(self, B: Tensor, K: Tensor, params: ProjectedParams) -> None:
        size = len(B)
        # Splines sum to one: equal coefficients add nothing to c(t), and both matrices vanish on them.
        aside = scipy.linalg.null_space(np.ones((1, size)))
        b, k = (aside.T @ matrix.cpu().numpy() @ aside for matrix in (B, K))
        # Frames fewer than splines leave B singular, K is not there: B + K is definite where either is.
        weight = np.trace(b) / np.trace(k)
        shares, vectors = scipy.linalg.eigh(b, b + weight * k)
        where = B.device
        # Z^T B Z = share, Z^T K Z = (1 - share) / weight
        self.Z = torch.as_tensor(aside @ vectors, device=where)
        shares = np.clip(shares, 0.0, 1.0)
        self.share = torch.as_tensor(shares, device=where)
        # The floor keeps a direction that neither data nor curvature sees at zero instead of at 0 / 0.
        penalty = params.coefficient_ridge * shares + params.smoothness * (1 - shares) / weight
        self.penalty = torch.as_tensor(np.maximum(penalty, 1e-14), device=where)
        inverse = torch.linalg.pinv(self.Z)
        self.matrix = (inverse.T * self.penalty) @ inverse  # mu K + rho B, what C is penalized by

    def solve(self, G: Tensor, right: Tensor) -> Tensor:
        """C with G C B + mu C K + rho C B = right."""
        if not torch.isfinite(G).all():
            return torch.full_like(right, torch.nan)  # diverged: the loop reads the error and says so
        values, U = torch.linalg.eigh(G)
        rotated = U.T @ (right @ self.Z)
        divided = rotated / (values.clamp_min(0.0)[:, None] * self.share + self.penalty)
        return U @ divided @ self.Z.T


class _Grid:
    """Sensor x frame data: splines are centered, so the mean over frames is b's and the rest is C's."""

    def __init__(self, values: Tensor, basis: Tensor) -> None:
        values = values.double()  # (F, S)
        self.mean = values.mean(0)
        centered = values - self.mean
        self.projected = centered.T @ basis.T / len(values)  # (S, M)
        self.single = self.projected.float()
        self.B = basis @ basis.T / len(values)
        self.energy = centered.square().mean()

    def solve(self, outputs: Tensor, pencil: _Pencil) -> tuple[Tensor, Tensor, Tensor]:
        """(C, loss gradient by the outputs, loss); the sum over frames is done once and for all."""
        n, single = len(outputs), outputs
        # The solve divides by small eigenvalues and needs float64; the gradient is rounded to float32 anyway.
        outputs = outputs.double()
        b, phi = outputs[:, 0], outputs[:, 1:]
        right = phi.T @ self.projected / n
        gram = phi.T @ phi / n
        C = pencil.solve(gram, right)
        quadratic = C @ self.B @ C.T
        off = b - self.mean
        pull = self.single @ C.T.to(single.dtype)
        slope = torch.addmm(pull, single[:, 1:], quadratic.to(single.dtype), beta=-1.0)
        gradient = torch.cat([off[:, None].to(single.dtype), slope], dim=1) * (2 / n)
        error = off.square().mean() + self.energy + (gram * quadratic).sum() - 2 * (C * right).sum()
        return C, gradient, error.clamp_min(0.0)


class _Scattered:
    """Samples without a grid: preconditioned conjugate gradients, started from the last C."""

    def __init__(self, samples: Samples, basis: Tensor) -> None:
        self.samples, self.y = samples, samples.y.double()
        self.basis = basis.T.contiguous()  # (F, M)
        self.C: Tensor | None = None

    def solve(self, outputs: Tensor, pencil: _Pencil) -> tuple[Tensor, Tensor, Tensor]:
        """(C, loss gradient by the outputs, loss)."""
        s, n, outputs = self.samples, len(self.y), outputs.double()
        b, phi = outputs[s.row, 0], outputs[s.row, 1:]
        gram = phi.T @ phi / n

        def predict(C: Tensor) -> Tensor:
            return (phi * (self.basis @ C.T)[s.column]).sum(1)

        def adjoint(r: Tensor) -> Tensor:
            sums = torch.zeros(len(self.basis), phi.shape[1], dtype=phi.dtype, device=phi.device)
            return sums.index_add_(0, s.column, phi * r[:, None]).T @ self.basis / n

        target = self.y - b
        right = adjoint(target)
        goal = _CG_DROP * (right * pencil.solve(gram, right)).sum()
        C = torch.zeros(phi.shape[1], self.basis.shape[1], dtype=phi.dtype, device=phi.device)
        # The last C helps while the features change slowly; after a leap it is worse than nothing.
        if self.C is not None and (target - predict(self.C)).square().sum() < target.square().sum():
            C = self.C
        residual = adjoint(target - predict(C)) - C @ pencil.matrix
        step = direction = pencil.solve(gram, residual)
        inner = (residual * step).sum()
        for _ in range(_CG_STEPS):
            if inner <= goal:
                break
            image = adjoint(predict(direction)) + direction @ pencil.matrix
            length = inner / (direction * image).sum()
            C, residual = C + length * direction, residual - length * image
            step = pencil.solve(gram, residual)
            previous, inner = inner, (residual * step).sum()
            direction = step + inner / previous * direction
        self.C = C
        off = predict(C) - target
        time_part = torch.cat([off.new_ones(len(self.basis), 1), self.basis @ C.T], dim=1)
        pulled = time_part[s.column] * off[:, None] * (2 / n)
        gradient = torch.zeros_like(outputs).index_add_(0, s.row, pulled)
        return C, gradient, off.square().mean()
