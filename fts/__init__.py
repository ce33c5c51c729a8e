"""Freeze, then select: the equation behind sparse measurements.

The package reads from top to bottom; whatever stands in a line imports only lines above it.

    validation     what a call or an installation lacks, said in a sentence
    containers     bytes on disk, whole and verified or refused
    params/        what a number means, and what the paper used
    domain         the space-time box a field lives on
    observations   sparse samples (x, t, y)
    io/            a user's file -> observations, or a stream of them in chunks
    equations/     terms, libraries, equations; an equation integrated in time
    fields/        what a frozen field is, evaluates and saves
    kernel/        observations -> Gaussian-process posterior -> frozen field, in closed form
    adapter/       observations -> frozen field by training (torch)
    fitting        observations -> frozen field by any recipe
    weak/          frozen field -> weak systems
    selection/     sparse regression, moments, support search, jackknife: what every selector shares
    svws/          weak systems -> selection -> equation, the paper's rule
    trajectory/    an equation integrated and fitted to the samples
    plotting       the style of figures and tables
    discovery/     samples -> an equation with standard errors, and a verdict on it
    symbolic/      frozen field -> a function q(u) that no library lists
    baselines/     other methods: the same observations -> the same selection
    methods        every method by its name, behind one signature
    paths/         support along a training: what stopping at each step would have reported
    ----------------------------------------------------- here begins the truth
    problems/      reference problems, their solutions, how they are observed, and scores
    explorers/     widgets that compute in the page
    cli            the command `fts`
    lab/           what the book needs and a user does not: studies, records, figures

A public name is imported when it is first used, so `import fts` loads neither torch nor the rest of SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fts.discovery.discover import Discovery as Discovery
    from fts.discovery.systems import SystemDiscovery as SystemDiscovery
    from fts.discovery.systems import discover as discover
    from fts.domain import Domain as Domain
    from fts.equations.equation import Equation as Equation
    from fts.equations.terms import Library as Library
    from fts.equations.terms import Term as Term
    from fts.explorers.widgets import explore as explore
    from fts.fields.frozen import CallableField as CallableField
    from fts.fields.frozen import FrozenField as FrozenField
    from fts.fields.frozen import TabulatedField as TabulatedField
    from fts.fields.frozen import load_field as load_field
    from fts.fitting import fit as fit
    from fts.fitting import fit_with_variance as fit_with_variance
    from fts.io.readers import read_samples as read_samples
    from fts.io.sources import stream_samples as stream_samples
    from fts.io.streams import SampleStream as SampleStream
    from fts.observations import Observations as Observations
    from fts.problems.problems import Problem as Problem
    from fts.problems.problems import problem as problem
    from fts.problems.trajectories import Trajectory as Trajectory
    from fts.problems.trajectories import observe as observe
    from fts.problems.trajectories import read_trajectory as read_trajectory
    from fts.problems.trajectories import simulate as simulate
    from fts.selection.selection import Selection as Selection
    from fts.svws.select import select as select

_HOME = {
    "observations": ("Observations",),
    "io.readers": ("read_samples",),
    "io.sources": ("stream_samples",),
    "io.streams": ("SampleStream",),
    "domain": ("Domain",),
    "equations.terms": ("Library", "Term"),
    "equations.equation": ("Equation",),
    "fields.frozen": ("CallableField", "TabulatedField", "FrozenField", "load_field"),
    "fitting": ("fit", "fit_with_variance"),
    "selection.selection": ("Selection",),
    "svws.select": ("select",),
    "discovery.discover": ("Discovery",),
    "discovery.systems": ("SystemDiscovery", "discover"),
    "problems.problems": ("Problem", "problem"),
    "problems.trajectories": ("Trajectory", "observe", "read_trajectory", "simulate"),
    "explorers.widgets": ("explore",),
}

__all__ = sorted(name for names in _HOME.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"fts.{module}"), name)
    raise AttributeError(f"module 'fts' has no attribute {name!r}: public are {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
