"""The authors' release of DeepMoD, DeePyMoD 2.2.0, on the same rows from the same start; for comparison.

The release is an optional extra. Its training is called as it is: nested autograd, QR in single precision,
scikit-learn's lasso at every check, its own checkpoint files and logs.
"""

import contextlib
import io
import tempfile
import time
import warnings
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fts.adapter.samples import one_thread
from fts.baselines.deepmod import DeepMoDParams
from fts.baselines.training import taylor
from fts.baselines.training.deepmod import DeepMoDTraining
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection

_HINT = "pip install --no-deps deepymod==2.2.0, and 'setuptools<81' scikit-learn pysindy tensorboard natsort"


def deepymod_reference(
    observations: Observations, library: Library, params: DeepMoDParams, rng: np.random.Generator
) -> Selection:
    """The release's terminal mask, and its constraint's coefficients solved once more under it."""
    released = _released()
    ours = DeepMoDTraining(observations, library, params, rng)
    if ours.network.bounds is not None:
        raise ValueError("the release trains on raw coordinates: set inputs='raw'")
    began = time.perf_counter()
    with one_thread(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        model, steps = _train(released, ours, params)
        seconds = time.perf_counter() - began
        model(ours.points[: ours.n])
        (xi,) = model.constraint_coeffs(sparse=True, scaled=False)
        (mask,) = model.sparsity_masks
    values = xi.detach().numpy().astype(np.float64).reshape(-1)
    notes = {"iterations": steps, "converged": steps < params.max_iterations, "mask": mask.tolist()}
    ours.theta.data, spent = _vector(model.func_approx), {"fit": seconds}
    return Selection(library, values, "DeePyMoD 2.2.0", field=ours.freeze(), seconds=spent, notes=notes)


def _train(released: Any, ours: DeepMoDTraining, params: DeepMoDParams) -> tuple[Any, int]:
    """The trained model and the number of its iterations."""
    network = released.NN(ours.network.sizes[0], [params.width] * params.depth, 1)
    start = taylor.unpack(ours.theta.detach(), ours.network.sizes)
    linear = [layer for layer in network.network if isinstance(layer, torch.nn.Linear)]
    for layer, weight, bias in zip(linear, start.weights, start.biases, strict=True):
        layer.weight.data.copy_(weight.T)
        layer.bias.data.copy_(bias)
    sparsity, solver = released.Threshold(params.threshold), released.LeastSquares()
    model = released.DeepMoD(network, _columns(released, ours), sparsity, solver)
    optimizer = torch.optim.Adam(model.parameters(), params.learning_rate, params.betas, amsgrad=True)
    steps: list[None] = []
    optimizer.register_step_post_hook(lambda *_: steps.append(None))
    scheduler = released.TrainTestPeriodic(
        periodicity=params.periodicity, patience=params.patience, delta=params.min_decrease
    )
    with tempfile.TemporaryDirectory() as folder:
        released.train(
            model,
            _Rows(ours.points[: ours.n], ours.y[: ours.n]),
            _Rows(ours.held_points, ours.held_y),
            optimizer,
            scheduler,
            log_dir=f"{folder}/",
            max_iterations=params.max_iterations,
            write_iterations=params.check_every,
            patience=params.settled_patience,
            delta=params.settled_change,
        )
    return model, len(steps)


class _Rows:
    """All rows as the one batch of a loader."""

    device = "cpu"

    def __init__(self, points: Tensor, y: Tensor) -> None:
        self.batch = points, y[:, None]

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if index:
            raise IndexError(index)
        return self.batch


def _columns(released: Any, ours: DeepMoDTraining) -> Any:
    """The release's library class with our terms, its derivatives by nested autograd as in its own."""

    class Columns(released.Library):
        def library(self, input: tuple[Tensor, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            u, data = input
            if data.shape[1] == 2:
                u_t, du = released.library_deriv(data, u, 4)
                jet = torch.cat([u, u_t, du[:, 1:]], dim=1)
            else:
                first = _gradient(u, data)
                x, y = first[:, 1:2], first[:, 2:3]
                second = _gradient(x, data)[:, 1:2], _gradient(y, data)[:, 2:3]
                u_t = first[:, :1]
                jet = torch.cat([u, u_t, x, y, *second], dim=1)
            return [u_t], [taylor.evaluate(ours.plan, jet.T)]

    return Columns()


def _gradient(values: Tensor, data: Tensor) -> Tensor:
    return torch.autograd.grad(values, data, torch.ones_like(values), create_graph=True)[0]


def _vector(network: Any) -> Tensor:
    linear = [layer for layer in network.network if isinstance(layer, torch.nn.Linear)]
    weights = tuple(layer.weight.detach().T for layer in linear)
    return taylor.Weights(weights, tuple(layer.bias.detach() for layer in linear)).vector


def _released() -> SimpleNamespace:
    """The release's parts under one roof."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it asks for pkg_resources, which announces its own end
            model = import_module("deepymod.model.deepmod")
            parts = [
                (model, "DeepMoD", "Library"),
                (import_module("deepymod.model.constraint"), "LeastSquares"),
                (import_module("deepymod.model.func_approx"), "NN"),
                (import_module("deepymod.model.library"), "library_deriv"),
                (import_module("deepymod.model.sparse_estimators"), "Threshold"),
                (import_module("deepymod.training"), "train"),
                (import_module("deepymod.training.sparsity_scheduler"), "TrainTestPeriodic"),
            ]
    except ImportError as error:
        raise ValueError(f"DeePyMoD cannot be imported ({error}): {_HINT}") from None
    return SimpleNamespace(**{name: getattr(module, name) for module, *names in parts for name in names})
