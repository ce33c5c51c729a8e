"""Freeze, then select: the equation behind sparse measurements.

The package reads from top to bottom; whatever stands in a line imports only lines above it.

    asked          what a call or an installation lacks, said in a sentence
    files          bytes on disk, whole and verified or refused
    params/        what a number means, and what the paper used
    domain         the space-time box a field lives on
    observations   sparse samples (x, t, y)
    readers/       a user's file -> observations
    equations/     words of a PDE: text -> terms, libraries, equations
    fields/        what a frozen field is, evaluates and saves
    kernel/        observations -> frozen field in closed form
    adapter/       observations -> frozen field by training (torch)
    recipes        the one door to both
    weak/          frozen field -> weak systems
    svws/          weak systems -> selection -> equation
    cross/         two fields of disjoint halves -> selection that noise does not bias
    symbolic/      frozen field -> a function q(u) that no library lists
    baselines/     other methods: the same observations -> the same selection
    methods        every method by its name, behind one signature
    paths/         support along a training: what stopping at each step would have reported
    thaw/          a selected equation -> the same, integrated and fitted to the samples
    discovery/     samples -> an equation with standard errors, and a verdict on it
    ----------------------------------------------------- here begins the truth
    data/          problems, solvers, reference trajectories and how they are observed
    metrics        selection and field against the truth
    studies/       runs, records, the paper's values, verification
    layout         the package's own import graph
    plots/         figures and tables, one file per chapter
    explorers/     widgets that compute in the page
    cli            the command `fts`

A public name is imported when it is first used, so `import fts` loads neither torch nor the rest of SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fts.data.problems import Problem as Problem
    from fts.data.problems import problem as problem
    from fts.data.released import read_trajectory as read_trajectory
    from fts.data.trajectories import Trajectory as Trajectory
    from fts.data.trajectories import observe as observe
    from fts.data.trajectories import simulate as simulate
    from fts.discovery.discover import Discovery as Discovery
    from fts.discovery.discover import discover as discover
    from fts.domain import Domain as Domain
    from fts.equations.equation import Equation as Equation
    from fts.equations.terms import Library as Library
    from fts.equations.terms import Term as Term
    from fts.explorers.explore import explore as explore
    from fts.fields.frozen import FrozenField as FrozenField
    from fts.fields.given import CallableField as CallableField
    from fts.fields.given import TabulatedField as TabulatedField
    from fts.fields.shipped import load_field as load_field
    from fts.observations import Observations as Observations
    from fts.readers.samples import read_samples as read_samples
    from fts.recipes import fit as fit
    from fts.recipes import fit_with_variance as fit_with_variance
    from fts.svws.select import select as select
    from fts.svws.selection import Selection as Selection

_HOME = {
    "observations": ("Observations",),
    "readers.samples": ("read_samples",),
    "domain": ("Domain",),
    "equations.terms": ("Library", "Term"),
    "equations.equation": ("Equation",),
    "fields.frozen": ("FrozenField",),
    "fields.given": ("CallableField", "TabulatedField"),
    "fields.shipped": ("load_field",),
    "recipes": ("fit", "fit_with_variance"),
    "svws.selection": ("Selection",),
    "svws.select": ("select",),
    "discovery.discover": ("Discovery", "discover"),
    "data.problems": ("Problem", "problem"),
    "data.trajectories": ("Trajectory", "observe", "simulate"),
    "data.released": ("read_trajectory",),
    "explorers.explore": ("explore",),
}

__all__ = sorted(name for names in _HOME.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"fts.{module}"), name)
    raise AttributeError(f"module 'fts' has no attribute {name!r}: public are {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
