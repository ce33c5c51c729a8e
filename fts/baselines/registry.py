"""Where a method says its name: settings class, settings by problem and function -> an entry of BASELINES.

    @register("PDE-FIND", PDEFindParams, PDE_FIND)
    def pde_find(observations, library, params, rng) -> Selection: ...

A file in this folder with such a declaration is all that a new method takes: `fts.methods` lists it, and the
study of the baselines runs it where it has settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection

# (observations, library, params, rng) -> Selection; the params are of the method's own settings class.
Method = Callable[[Observations, Library, Any, np.random.Generator], Selection]
M = TypeVar("M", bound=Method)


@dataclass(frozen=True)
class Registered:
    """A method: its function, or the module of `training/` whose function of the same name runs it."""

    params: type
    settings: Mapping[str, Any]  # one configuration per problem, shared across protocols and seeds
    function: Method | None = None
    training: str = ""  # takes minutes to hours; its function also takes the path `checkpoint`


BASELINES: dict[str, Registered] = {}


def register(name: str, params: type, settings: Mapping[str, Any] | None = None) -> Callable[[M], M]:
    """Lists the function below it under a name."""

    def listed(function: M) -> M:
        _add(name, Registered(params, settings or {}, function))
        return function

    return listed


def register_training(name: str, params: type, settings: Mapping[str, Any], module: str) -> None:
    """Lists a method that trains a network; its module imports torch, and is imported when it runs."""
    _add(name, Registered(params, settings, training=module))


def _add(name: str, entry: Registered) -> None:
    if name in BASELINES:
        raise ValueError(f"{name!r} is registered already: choose another name")
    BASELINES[name] = entry
