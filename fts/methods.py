"""Every method by its name, all of one shape: (observations, library, params, rng) -> Selection."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fts.baselines import crossed, pysindy, regressions
from fts.baselines.settings import DeepMoDParams, DLPDEParams, PINNSRParams, WeakPDELearnParams
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection
from fts.svws.select import freeze_then_compare, freeze_then_select
from fts.svws.two_fields import two_fields

# The params are the method's own settings class.
Method = Callable[[Observations, Library, Any, np.random.Generator], Selection]


def _deepmod(
    observations: Observations,
    library: Library,
    params: DeepMoDParams,
    rng: np.random.Generator,
    checkpoint: Path | None = None,
) -> Selection:
    # Imported when it is asked for: torch takes seconds, and the other methods need none of it.
    from fts.baselines import deepmod

    return deepmod.deepmod(observations, library, params, rng, checkpoint=checkpoint)


def _dl_pde(
    observations: Observations,
    library: Library,
    params: DLPDEParams,
    rng: np.random.Generator,
    checkpoint: Path | None = None,
) -> Selection:
    from fts.baselines import dl_pde

    return dl_pde.dl_pde(observations, library, params, rng, checkpoint=checkpoint)


def _weak_pde_learn(
    observations: Observations,
    library: Library,
    params: WeakPDELearnParams,
    rng: np.random.Generator,
    checkpoint: Path | None = None,
) -> Selection:
    from fts.baselines import weak_pde_learn

    return weak_pde_learn.weak_pde_learn(observations, library, params, rng, checkpoint=checkpoint)


def _pinn_sr(
    observations: Observations,
    library: Library,
    params: PINNSRParams,
    rng: np.random.Generator,
    checkpoint: Path | None = None,
) -> Selection:
    from fts.baselines import pinn_sr

    return pinn_sr.pinn_sr(observations, library, params, rng, checkpoint=checkpoint)


# Methods that train for minutes to hours, and go on from a file where they were interrupted.
TRAINED: dict[str, Callable[..., Selection]] = {
    "DeepMoD": _deepmod,
    "DL-PDE": _dl_pde,
    "Weak-PDE-LEARN": _weak_pde_learn,
    "PINN-SR": _pinn_sr,
}
METHODS: dict[str, Method] = {
    "freeze, then select": freeze_then_select,
    "freeze, then compare": freeze_then_compare,
    "two fields": two_fields,
    "strong STLSQ": regressions.strong_stlsq,
    "strong STRidge": regressions.strong_stridge,
    "PySINDy weak": pysindy.pysindy_weak,
    "PDE-FIND": regressions.pde_find,
    "WSINDy": regressions.wsindy,
    "crossed": crossed.crossed,
    **TRAINED,
}


def method(name: str, checkpoint: Path | None = None) -> Method:
    """The method called `name`; one that trains keeps its state at `checkpoint`, and goes on from there."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}: known are {', '.join(METHODS)}")
    if checkpoint is not None and name in TRAINED:
        return partial(TRAINED[name], checkpoint=checkpoint)
    return METHODS[name]
