"""A long training on disk: state -> container -> state, only for the run that wrote it.

A training that is resumed from its checkpoint ends in the same bits as one that was never interrupted; the
random generator's state is therefore part of it.

A function of tensors -> the same function compiled, where that pays and a compiler exists.
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

from fts import containers
from fts.equations.terms import Library
from fts.observations import Observations
from fts.params.types import named

_KIND = "training"


class Diverged(ArithmeticError):
    """The loss of a training is no longer a number."""


@dataclass
class Checkpoint:
    """Where one run keeps its state; without a path nothing is kept and nothing found.

    It has the run's clock, too: what is spent before a training is interrupted counts.
    """

    path: Path | None
    run: str  # names the samples, library and settings the state belongs to
    before: float = 0.0  # seconds that the stored state took
    began: float = field(default_factory=time.process_time)

    @property
    def seconds(self) -> float:
        """Seconds of the core that the run has taken, those before an interruption included."""
        return self.before + time.process_time() - self.began

    def save(
        self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], rng: np.random.Generator
    ) -> None:
        """Replace the stored state by this one."""
        if self.path is not None:
            kept = {"run": self.run, "state": dict(header), "generator": rng.bit_generator.state}
            kept["seconds"] = self.seconds
            containers.save_arrays(self.path, _KIND, kept, arrays)

    def load(self, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """The stored state, if there is one; the generator is set to where it stood."""
        if self.path is None or not self.path.is_file():
            return None
        kept, arrays = containers.load_arrays(self.path, _KIND, "remove it to train from the start")
        if kept["run"] != self.run:
            raise ValueError(f"{self.path} belongs to another run: remove it, or give another path")
        rng.bit_generator.state = kept["generator"]
        self.before = kept["seconds"]
        return kept["state"], arrays

    def remove(self) -> None:
        """Forget the stored state."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def checkpoint_of(path: Path | None, observations: Observations, library: Library, params: Any) -> Checkpoint:
    """The checkpoint of a run on these observations, at `path`."""
    digest = hashlib.sha256()
    for array in (observations.x, observations.t, observations.y):
        digest.update(np.ascontiguousarray(array).tobytes())
    settings = [type(params).__name__, named(params)]
    return Checkpoint(path, containers.content_key([digest.hexdigest(), list(library.names), settings]))


def adam_arrays(optimizer: torch.optim.Adam) -> dict[str, np.ndarray]:
    """The optimizer's memory of every parameter it has stepped."""
    (group,) = optimizer.param_groups
    found = {}
    for place, parameter in enumerate(group["params"]):
        for name, value in optimizer.state[parameter].items():
            found[f"adam_{place}_{name}"] = value.detach().numpy().copy()
    return found


def restore_adam(optimizer: torch.optim.Adam, arrays: Mapping[str, np.ndarray]) -> None:
    """Put that memory back."""
    (group,) = optimizer.param_groups
    for place, parameter in enumerate(group["params"]):
        head = f"adam_{place}_"
        known = {name[len(head) :]: value for name, value in arrays.items() if name.startswith(head)}
        optimizer.state[parameter] = {name: torch.from_numpy(value.copy()) for name, value in known.items()}


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
