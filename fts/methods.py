"""Every method by its name, all of one shape: (observations, library, params, rng) -> Selection."""

import pkgutil
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fts import baselines
from fts.baselines.registry import BASELINES, Method, Registered
from fts.equations.terms import Library
from fts.observations import Observations
from fts.params.types import FreezeThenSelectParams
from fts.selection.instrumental import TwoFieldsParams
from fts.selection.selection import Selection
from fts.svws.select import freeze_then_compare, freeze_then_select
from fts.svws.split_sample import two_fields

# A module registers its methods when it is imported.
for _module in pkgutil.iter_modules(baselines.__path__):
    if not _module.ispkg:
        import_module(f"fts.baselines.{_module.name}")

METHODS: dict[str, Registered] = {
    "freeze, then select": Registered(FreezeThenSelectParams, {}, freeze_then_select),
    "freeze, then compare": Registered(FreezeThenSelectParams, {}, freeze_then_compare),
    "two fields": Registered(TwoFieldsParams, {}, two_fields),
    # Those that train come last.
    **dict(sorted(BASELINES.items(), key=lambda entry: entry[1].training != "")),
}


def method(name: str, checkpoint: Path | None = None) -> Method:
    """The method called `name`; one that trains keeps its state at `checkpoint`, and goes on from there."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}: known are {', '.join(METHODS)}")
    entry = METHODS[name]
    function: Any = entry.function
    if entry.training:
        # Imported when it is asked for: torch takes seconds, and the other methods need none of it.
        module = import_module(f"fts.baselines.training.{entry.training}")
        function = partial(getattr(module, entry.training), checkpoint=checkpoint)

    def run(observations: Observations, library: Library, params: Any, rng: np.random.Generator) -> Selection:
        if not isinstance(params, entry.params):
            raise ValueError(f"{name!r} takes {entry.params.__name__}, not {type(params).__name__}")
        if name in BASELINES:
            library.check_autonomous(f"method {name!r}")
        return function(observations, library, params, rng)

    return run


def configurations(name: str) -> Mapping[str, Any]:
    """The settings of a method by problem, one configuration each; empty where it has none."""
    return METHODS[name].settings
