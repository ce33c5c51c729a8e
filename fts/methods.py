"""Every method by its name, all of one shape: (observations, library, params, rng) -> Selection."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fts.baselines import pysindy, strong_form
from fts.equations.terms import Library
from fts.observations import Observations
from fts.svws.select import freeze_then_compare, freeze_then_select
from fts.svws.selection import Selection

# The params are the method's own settings class.
Method = Callable[[Observations, Library, Any, np.random.Generator], Selection]

METHODS: dict[str, Method] = {
    "freeze, then select": freeze_then_select,
    "freeze, then compare": freeze_then_compare,
    "strong STLSQ": strong_form.strong_stlsq,
    "strong STRidge": strong_form.strong_stridge,
    "PySINDy weak": pysindy.pysindy_weak,
}


def method(name: str) -> Method:
    """The method called `name`."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}: known are {', '.join(METHODS)}")
    return METHODS[name]
