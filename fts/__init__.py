"""Freeze, then select: the equation behind sparse measurements.

Trajectory -> Observations -> FrozenField -> WeakSystem -> Selection -> Equation, one module each.
A public name is imported when it is first used, so `import fts` loads neither torch nor the rest of SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fts.data import Observations as Observations
    from fts.data import Trajectory as Trajectory
    from fts.data import observe as observe
    from fts.data import simulate as simulate
    from fts.discovery import Discovery as Discovery
    from fts.discovery import discover as discover
    from fts.domain import Domain as Domain
    from fts.explorers import explore as explore
    from fts.frozen import CallableField as CallableField
    from fts.frozen import FrozenField as FrozenField
    from fts.frozen import TabulatedField as TabulatedField
    from fts.problems import Problem as Problem
    from fts.problems import problem as problem
    from fts.readers import read_samples as read_samples
    from fts.readers import read_trajectory as read_trajectory
    from fts.recipes import fit as fit
    from fts.recipes import fit_with_variance as fit_with_variance
    from fts.selection import Selection as Selection
    from fts.shipped import load_field as load_field
    from fts.svws import select as select
    from fts.terms import Equation as Equation
    from fts.terms import Library as Library
    from fts.terms import Term as Term

_HOME = {
    "data": ("Observations", "Trajectory", "observe", "simulate"),
    "discovery": ("Discovery", "discover"),
    "domain": ("Domain",),
    "explorers": ("explore",),
    "frozen": ("CallableField", "FrozenField", "TabulatedField"),
    "problems": ("Problem", "problem"),
    "readers": ("read_samples", "read_trajectory"),
    "recipes": ("fit", "fit_with_variance"),
    "selection": ("Selection",),
    "shipped": ("load_field",),
    "svws": ("select",),
    "terms": ("Equation", "Library", "Term"),
}

__all__ = sorted(name for names in _HOME.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"fts.{module}"), name)
    raise AttributeError(f"module 'fts' has no attribute {name!r}: public are {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
