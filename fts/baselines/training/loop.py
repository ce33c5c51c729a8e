"""One loop for all trainings: step until finished, kept on disk on the way, resumed where it was interrupted.

A training that is resumed from its checkpoint ends in the same bits as one that was never interrupted; the
state of the random generator is therefore part of it, now and where the training began.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from fts import containers
from fts.adapter.samples import one_thread
from fts.equations.terms import Library
from fts.observations import Observations
from fts.params.types import named

_KIND = "training"
Arrays = dict[str, np.ndarray]


class Diverged(ArithmeticError):
    """The loss of a training is no longer a number."""


class Training:
    """What the loop runs; the constructor of a subclass draws the samples and the first network."""

    optimizer: torch.optim.Adam
    steps: Any = 0
    save_every = 1  # steps between two writings to disk
    # What the next step depends on beside the optimizer and what the constructor draws: tensors, which are
    # written in place, and values of JSON.
    stored: tuple[str, ...]

    @property
    def finished(self) -> bool:
        """Whether it is stopped: by its budget, or by its own criterion."""
        raise NotImplementedError

    def step(self) -> None:
        """One step, with whatever is checked at it."""
        raise NotImplementedError

    def finish(self) -> None:
        """What is computed of the last state; again where a finished training is read back."""

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Everything the next step depends on and the constructor does not draw."""
        values = {name: getattr(self, name) for name in self.stored}
        header = {name: value for name, value in values.items() if not isinstance(value, Tensor)}
        return header, snapshot(self.optimizer, **self._tensors())

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Put that back."""
        restore(self.optimizer, arrays, **self._tensors())
        for name in self.stored:
            if name in header:
                setattr(self, name, header[name])

    def _tensors(self) -> dict[str, Tensor]:
        values = {name: getattr(self, name) for name in self.stored}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}


T = TypeVar("T", bound=Training)


@dataclass
class Checkpoint:
    """Where one run keeps its state; without a path nothing is kept and nothing found.

    It has the run's clock, too: what is spent before a training is interrupted counts.
    """

    path: Path | None = None
    run: str = ""  # names the samples, library, settings and generator the state belongs to
    before: float = 0.0  # seconds that the stored state took
    began: float = field(default_factory=time.process_time)

    @property
    def seconds(self) -> float:
        """Seconds of the core that the run has taken, those before an interruption included."""
        return self.before + time.process_time() - self.began

    def save(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the stored state by this one."""
        if self.path is not None:
            kept = {"run": self.run, "state": dict(header), "seconds": self.seconds}
            containers.save_arrays(self.path, _KIND, kept, arrays)

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """The stored state, if there is one."""
        if self.path is None or not self.path.is_file():
            return None
        kept, arrays = containers.load_arrays(self.path, _KIND, "remove it to train from the start")
        if kept["run"] != self.run:
            raise ValueError(f"{self.path} belongs to another run: remove it, or give another path")
        self.before = kept["seconds"]
        return kept["state"], arrays

    def remove(self) -> None:
        """Forget the stored state."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def checkpoint_of(
    path: Path | None, observations: Observations, library: Library, params: Any, rng: np.random.Generator
) -> Checkpoint:
    """The checkpoint at `path` of the run that these arguments make."""
    digest = hashlib.sha256()
    for array in (observations.x, observations.t, observations.y):
        digest.update(np.ascontiguousarray(array).tobytes())
    settings = [type(params).__name__, named(params), rng.bit_generator.state]
    return Checkpoint(path, containers.content_key([digest.hexdigest(), list(library.names), settings]))


def train(
    make: Callable[[np.random.Generator], T], rng: np.random.Generator, checkpoint: Checkpoint | None = None
) -> tuple[T, dict[str, Any]]:
    """The finished training, and a note where it diverged: it is then started once more, from other draws."""
    checkpoint = checkpoint or Checkpoint()
    with one_thread():
        try:
            return _run(make, rng, checkpoint), {}
        except Diverged as error:
            checkpoint.remove()
            return _run(make, rng, checkpoint), {"reseeded": str(error)}


def _run(make: Callable[[np.random.Generator], T], rng: np.random.Generator, checkpoint: Checkpoint) -> T:
    stored = checkpoint.load()
    if stored is not None:
        rng.bit_generator.state = stored[0]["drawn_from"]
    drawn_from = rng.bit_generator.state
    training = make(rng)
    if stored is not None:
        header, arrays = stored
        rng.bit_generator.state = header["generator"]
        training.restore(header, arrays)
    while not training.finished:
        training.step()
        if training.finished or training.steps % training.save_every == 0:
            header, arrays = training.state()
            generators = {"drawn_from": drawn_from, "generator": rng.bit_generator.state}
            checkpoint.save(header | generators, arrays)
    training.finish()
    return training


def snapshot(optimizer: torch.optim.Adam, **tensors: Tensor) -> Arrays:
    """Copies of the tensors, and of the optimizer's memory of every parameter it has stepped."""
    arrays = {name: _copied(tensor) for name, tensor in tensors.items()}
    (group,) = optimizer.param_groups
    for i, parameter in enumerate(group["params"]):
        arrays |= {f"adam_{i}_{name}": _copied(value) for name, value in optimizer.state[parameter].items()}
    return arrays


def restore(optimizer: torch.optim.Adam, arrays: Mapping[str, np.ndarray], **tensors: Tensor) -> None:
    """Put them back."""
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(torch.from_numpy(arrays[name].copy()))
    (group,) = optimizer.param_groups
    for i, parameter in enumerate(group["params"]):
        head = f"adam_{i}_"
        memory = {name.removeprefix(head): a.copy() for name, a in arrays.items() if name.startswith(head)}
        optimizer.state[parameter] = {n: torch.from_numpy(a).to(parameter.device) for n, a in memory.items()}


def _copied(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().copy()


P = ParamSpec("P")
R = TypeVar("R")

# Compiling takes about forty seconds, and saves some ten milliseconds at every call.
_WORTH = 4000


def compiled(function: Callable[P, R], calls: int) -> Callable[P, R]:
    """`function`, fused by torch.compile if it will be called often enough; else itself.

    A compiler that is there may still lack headers; this shows at the first call, which then runs without it.
    """
    if calls < _WORTH or not (shutil.which("g++") or shutil.which("clang++")):
        return function
    fast = torch.compile(function, dynamic=False)
    chosen: list[Callable[P, R]] = []

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if chosen:
            return chosen[0](*args, **kwargs)
        try:
            result = fast(*args, **kwargs)
        except RuntimeError:
            chosen.append(function)
            return function(*args, **kwargs)
        chosen.append(fast)
        return result

    return call
