"""The explorers, widgets that compute in the reader's browser, and `fts.explore`, which opens them.

`explorer.selection` and its kin are what NumPy says for the values the reader sees.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import traitlets
from jaxtyping import Float
from matplotlib.figure import Figure

from fts import validation
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.explorers import stills
from fts.explorers.explorer import SEEDS, SHAPES, Explorer, Reference, Source, count, field_key, number
from fts.fields.frozen import FrozenField
from fts.observations import Observations
from fts.params.types import SVWSParams, WeakParams
from fts.problems.problems import problem
from fts.problems.trajectories import Trajectory
from fts.selection import refits, sparse
from fts.selection.selection import Refit, Selection
from fts.svws import rule
from fts.svws.select import prepare, problem_of, resolve_library
from fts.weak import assembly
from fts.weak.assembly import WeakSystem
from fts.weak.test_functions import patch_centers, phases

_FEW = 3  # modes an explorer begins with


class RuleExplorer(Explorer):
    """SVWS on one field, with some of its parameters as controls."""

    phase_seed = count(SEEDS[0], SEEDS[0], SEEDS[-1], "Patch grids", button="Draw others")
    ridge = number(1e-4, 1e-6, 1e-1, 0.5, "Ridge", base=10)

    def defaults(self, source: Source) -> dict[str, Any]:
        return {name: getattr(source.params, name) for name in self.order if hasattr(source.params, name)}

    @property
    def params(self) -> SVWSParams:
        """The rule's parameters for the present values."""
        changed = {name: getattr(self, name) for name in self.defaults(self.source)}
        return replace(self.source.params, **changed)

    @property
    def roles(self) -> tuple[tuple[WeakSystem, ...], WeakSystem, tuple[WeakSystem, ...]]:
        """Generation, fit and validation systems: the last two stay while more or fewer propose."""
        params, usual = self.params, self.source.params.generation
        systems = self.source.systems(replace(params, generation=max(params.generation, usual)))
        kept = slice(usual + 1, usual + 1 + params.validation)
        generation = (*systems[:usual], *systems[kept.stop :])[: params.generation]
        return generation, systems[usual], systems[kept]

    @property
    def selection(self) -> Selection:
        """Algorithm S1 in NumPy for the present values, with the paper's refit on the fit system."""
        generation, fit, validation = self.roles
        return rule.choose(rule.generate(generation, self.params), fit, validation, self.params)

    @property
    def pooled(self) -> Refit:
        """Its terms refitted on the rows of all systems, with standard errors."""
        generation, fit, validation = self.roles
        training = (*generation, fit)
        return refits.with_refits(self.selection, training, validation, self.params).refits["pooled"]


class SelectionExplorer(RuleExplorer):
    """SVWS on one field: base threshold, stability, generation systems, phase seed, ridge."""

    caption = "Stability-validated selection"
    order = ("lam0_factor", "tau", "generation", "phase_seed", "ridge")
    view = traitlets.Unicode("selection").tag(sync=True)
    lam0_factor = number(1.0, 1 / 16, 16.0, 0.125, "Base threshold λ₀", base=2)
    tau = number(0.5, 0.0, 1.0, 0.05, "Stability τ")
    generation = count(12, 1, 24, "Generation systems")

    @property
    def params(self) -> SVWSParams:
        """The rule's parameters for the present values."""
        return replace(super().params, lam0=self.source.params.lam0 * self.lam0_factor)

    @property
    def redrawn(self) -> Float[np.ndarray, "draws J"]:
        """The selected support's coefficients on the fit systems of all draws of patch grids."""
        source, usual, support = self.source, self.source.params.generation, self.selection.xi != 0
        d, rows = source.field.domain.dimension, []
        for seed in SEEDS:
            phase = phases(np.random.default_rng(seed), usual + 1, d)[usual]
            system = assembly.assemble(source.field, source.library, source.geometry, phase)
            rows.append(sparse.refit(system.A, system.b, support, self.ridge))
        return np.array(rows)

    def answer(self) -> dict[str, Any]:
        return _selection_answer(self.selection, self.pooled) | {"redrawn": self.redrawn.tolist()}

    def still(self) -> Figure:
        return stills.selection(self.selection, self.source.info["label"])


class PathExplorer(RuleExplorer):
    """STLSQ on one weak system along its threshold, beside SVWS on all systems."""

    caption = "Threshold path"
    order = ("lam0_factor", "system", "phase_seed", "ridge")
    view = traitlets.Unicode("path").tag(sync=True)
    lam0_factor = number(1.0, 1 / 32, 8.0, 0.125, "Threshold λ", base=2)
    system = count(1, 1, 20, "Weak system")

    @property
    def single(self) -> Selection:
        """STLSQ at the present threshold on the present system, in NumPy."""
        params = self.params
        return rule.single(self.source.systems(params)[self.system - 1], self.lam0_factor, params)

    def _along(self) -> tuple[np.ndarray, np.ndarray]:
        """Thresholds, and the coefficients on unit columns at each."""
        params = self.params
        system = self.source.systems(params)[self.system - 1]
        normal = sparse.normalize(system.A, system.b)
        thresholds = params.lam0 * np.geomspace(1 / 32, 8, 97)
        values = [sparse.stlsq(normal, lam, params.ridge, params.max_iterations) for lam in thresholds]
        return thresholds, np.array(values)

    def answer(self) -> dict[str, Any]:
        selection = _selection_answer(self.selection, self.pooled)
        return {"along": self._along()[1].tolist(), "xi": self.single.xi.tolist(), "selection": selection}

    def still(self) -> Figure:
        params = self.params
        looked_at = params.lam0 * params.multipliers[0], params.lam0 * params.multipliers[-1]
        return stills.path(self.source.library, *self._along(), self.selection, looked_at)


class PatchExplorer(Explorer):
    """One weak system under the reader's hand: phases, half-widths, power, and STLSQ on it."""

    caption = "Patches and phases"
    order = ("phase_x", "phase_y", "phase_t", "width_x", "width_t", "power", "lam0_factor")
    view = traitlets.Unicode("patches").tag(sync=True)
    phase_x = number(0.5, 0.0, 0.999, 0.01, "Phase in x")
    phase_y = number(0.5, 0.0, 0.999, 0.01, "Phase in y", dimension=2)
    phase_t = number(0.5, 0.0, 0.999, 0.01, "Phase in t")
    width_x = number(1.0, 0.25, 2.0, 0.125, "Half-width in space", base=2)
    width_t = number(1.0, 0.25, 2.0, 0.125, "Half-width in time", base=2)
    power = count(8, 1, 16, "Power p")
    lam0_factor = number(1.0, 1 / 16, 16.0, 0.125, "Threshold λ", base=2)

    def defaults(self, source: Source) -> dict[str, Any]:
        return {"power": source.geometry.power}

    def ranges(self, source: Source) -> dict[str, tuple[int, int]]:
        """The power exceeds the highest derivative of the library, or boundary terms survive."""
        return {"power": (source.info["highest"] + 1, self.class_traits()["power"].metadata["high"])}

    @traitlets.validate("power")
    def _smooth_enough(self, proposal: Any) -> int:
        low = self.limits[self.choice]["power"][0] if self.limits else proposal["value"]
        if proposal["value"] < low:
            raise traitlets.TraitError(f"power {proposal['value']}: this library needs at least {low}")
        return proposal["value"]

    @property
    def geometry(self) -> WeakParams:
        """The weak system's geometry for the present values."""
        base, d = self.source.geometry, self.source.field.domain.dimension
        factors = (self.width_x,) * d + (self.width_t,)
        widths = tuple(h * factor for h, factor in zip(base.half_widths, factors, strict=True))
        return replace(base, half_widths=widths, power=self.power)

    @property
    def phase(self) -> Float[np.ndarray, " d1"]:
        """The grid's shift, a fraction of the spacing per axis."""
        axes = (self.phase_x, self.phase_y, 0.5)[: self.source.field.domain.dimension]
        return np.array([*axes, self.phase_t])

    @property
    def system(self) -> assembly.WeakSystem:
        """The weak system, in NumPy."""
        return assembly.assemble(self.source.field, self.source.library, self.geometry, self.phase)

    @property
    def single(self) -> Selection:
        """STLSQ on it, in NumPy."""
        return rule.single(self.system, self.lam0_factor, self.source.params)

    def still(self) -> Figure:
        return stills.patches(self.source.field, self.system, self.geometry.half_widths, self.single)


class ProposalsExplorer(Explorer):
    """Every proposal of the generation systems: which support, on which patches, at which risk."""

    caption = "Proposals"
    order = ("system", "threshold")
    view = traitlets.Unicode("proposals").tag(sync=True)
    system = count(1, 1, 24, "Generation system")
    threshold = count(1, 1, 16, "Threshold")

    def ranges(self, source: Source) -> dict[str, tuple[int, int]]:
        params = source.params
        return {"system": (1, params.generation), "threshold": (1, len(params.multipliers))}

    def answer(self) -> dict[str, Any]:
        params, source = self.source.params, self.source
        systems = source.systems(params)
        generation, fit, validation = rule.roles(systems, params)
        candidates = rule.generate(generation, params)
        every, chosen = (
            _selection_answer(rule.choose(candidates, fit, validation, replace(params, tau=tau)))
            for tau in (0.0, params.tau)
        )
        centers = patch_centers(source.field.domain, source.geometry, systems[self.system - 1].phase)
        shown = {"every": every, "chosen": chosen, "centers": [axis.tolist() for axis in centers]}
        return {"xi": self.proposal.xi.tolist(), **shown}

    @property
    def proposal(self) -> Selection:
        """The chosen proposal, in NumPy."""
        params, system = self.source.params, self.source.systems(self.source.params)[self.system - 1]
        return rule.single(system, params.multipliers[self.threshold - 1], params)

    def still(self) -> Figure:
        params = self.source.params
        generation, _, _ = rule.roles(self.source.systems(params), params)
        return stills.proposals(rule.generate(generation, params))


class AdapterExplorer(Explorer):
    """Features and coefficients of one field, truncated to a rank, at a frame."""

    caption = "Features and coefficients"
    order = ("rank", "frame", "basis")
    view = traitlets.Unicode("adapter").tag(sync=True)
    rank = count(64, 0, 64, "Modes kept")
    frame = number(0.5, 0.0, 1.0, 0.01, "Frame", play=True, stride=0.02)
    basis = traitlets.Enum(["principal", "trained"], "principal")
    basis.tag(sync=True, label="Modes", options=["principal", "trained"])

    def defaults(self, source: Source) -> dict[str, Any]:
        return {"rank": source.field.rank}

    def ranges(self, source: Source) -> dict[str, tuple[int, int]]:
        return {"rank": (0, source.field.rank)}

    def start(self) -> dict[str, Any]:
        """A few modes: from all of them it can only get worse."""
        return {"rank": min(_FEW, self.paper["rank"])}

    def lay_beside(
        self, truths: Sequence[Trajectory | None], samples: Sequence[Observations | None]
    ) -> "AdapterExplorer":
        """The explorer with true trajectories and samples, one per field, beside its fields."""
        if not len(truths) == len(samples) == len(self.offered):
            counts = f"{len(truths)} references and {len(samples)} samples for {len(self.offered)} fields"
            raise ValueError(f"{counts}: give one each, or None")
        pairs = zip(truths, samples, strict=True)
        self.beside = [None if truth is None else Reference(truth, seen) for truth, seen in pairs]
        self.references = ["" if widget is None else widget.model_id for widget in self.beside]
        return self

    def truncated(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The field of the background and the kept modes on the grid of the axes (x, [y,] t), in NumPy."""
        field, (*space, t) = self.source.field, axes
        background, left, right = _modes(field, space, t, self.basis)
        keep = min(self.rank, len(right))
        u = background + left[:, :keep] @ right[:keep]
        u = np.logaddexp(0.0, u) if field.positive else u
        return u.reshape(*(axis.size for axis in axes))

    def still(self) -> Figure:
        field, domain = self.source.field, self.source.field.domain
        *counts, frames = SHAPES[domain.dimension]
        space = [np.linspace(*ends) for ends in zip(domain.low, domain.high, counts, strict=True)]
        _, left, right = _modes(field, space, np.linspace(domain.t0, domain.t1, frames), self.basis)
        return stills.adapter(field, left, right)


def _selection_answer(selection: Selection, pooled: Refit | None = None) -> dict[str, Any]:
    """A traced selection as the page's worker answers (js/svws.js)."""
    trace = selection.trace
    assert trace is not None
    candidates, winner = trace.candidates, trace.winner
    rows = [
        {
            "index": index,
            "support": list(candidates.supports[index]),
            "count": candidates.counts[index],
            "xi": trace.xi[row].tolist(),
            "risks": trace.risks[row].tolist(),
            "mu": float(trace.mu[row]),
            "se": float(trace.se[row]),
            "admissible": row in trace.admissible,
        }
        for row, index in enumerate(trace.eligible)
    ]
    refit = {} if pooled is None else {"pooled": {"xi": pooled.xi.tolist(), "se": pooled.deviation.tolist()}}
    return refit | {
        "supports": [list(support) for support in candidates.supports],
        "counts": list(candidates.counts),
        "pi": candidates.pi.tolist(),
        "proposals": int(candidates.proposals.size),
        "places": candidates.proposals.ravel().tolist(),
        "stable": list(trace.stable),
        "fallback": trace.fallback,
        "rows": rows,
        "bound": trace.bound,
        "winner": winner,
        "xi": selection.xi.tolist(),
        "support": rows[winner]["support"],
    }


def _modes(
    field: FrozenField, space: Sequence[np.ndarray], t: np.ndarray, basis: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Background [n, 1], features [n, R], coefficients [R, T]: the SVD of F G, or F and G by falling size."""
    F, G = field.space.on_axes(tuple(space), (0,) * len(space)), field.time.at(t, 0)
    background, F, G = F[:, :1], F[:, 1:], G[1:]
    if basis == "principal":
        q, r = np.linalg.qr(F)
        left, sizes, right = np.linalg.svd(r @ G, full_matrices=False)
        return background, q @ left * sizes, right
    order = np.argsort(-np.linalg.norm(F, axis=0) * np.linalg.norm(G, axis=1), kind="stable")
    return background, F[:, order], G[order]


_VIEWS: dict[str, type[Explorer]] = {
    "selection": SelectionExplorer,
    "patches": PatchExplorer,
    "path": PathExplorer,
    "proposals": ProposalsExplorer,
    "adapter": AdapterExplorer,
}

# Explorers of one notebook share the models of their fields; a model lives as long as the kernel anyway.
_sources: dict[tuple[str, Library, str | None], Source] = {}


def explore(
    field: FrozenField | Sequence[FrozenField],
    library: str | Sequence[str] | Library | None = None,
    view: str = "selection",
    *,
    truth: str | Equation | None = None,
    samples: Observations | Sequence[Observations | None] | None = None,
    reference: Trajectory | Sequence[Trajectory | None] | None = None,
    **values: Any,
) -> Explorer:
    """An explorer of one field, or of several to choose from, at the paper's values or at `values`.

    `view` is "selection", "patches", "path", "proposals" or "adapter". `library` and `truth`, an equation's
    text, may stay out for fields of the benchmarks. The adapter view lays a `reference`, the true trajectory,
    and the `samples` of each field beside it. Truths are only displayed: nothing computed sees them.
    """
    if not isinstance(view, str) or view not in _VIEWS:
        raise ValueError(f"unknown view {validation.shown(view)}: there are {', '.join(_VIEWS)}")
    fields: list[Any] = list(field) if isinstance(field, (list, tuple)) else [field]
    if not fields:
        raise ValueError("no field to explore: give one, as fts.fit returns, or several")
    for other in fields:
        if not isinstance(other, FrozenField):
            name = f"{type(other).__name__} cannot be sent to a browser"
            raise ValueError(f"{name}: explore a FrozenField, as fts.fit returns")
    remedy = "leave it out, or give an equation's text, as 'u_t = u_xx'"
    validation.require_type((str, Equation, type(None)), truth, "truth", remedy)
    known = (*_VIEWS[view].order, "choice", "heading", "key")
    for name in values.keys() - set(known):
        raise ValueError(f"the view {view!r} has no {name!r}: it has {', '.join(known)}")
    text = str(truth) if isinstance(truth, Equation) else truth
    sources = [_source(each, library, text) for each in fields]
    try:
        made = _VIEWS[view](sources, **values)
    except (traitlets.TraitError, OverflowError) as error:
        reason = validation.shortened(" ".join(str(error).split()))
        raise ValueError(f"a value that its control cannot take: {reason}") from None
    if reference is None and samples is None:
        return made
    if not isinstance(made, AdapterExplorer):
        raise ValueError(f"view {view!r} shows neither reference nor samples: leave them out")
    beside = _per_field(reference, len(fields)), _per_field(samples, len(fields))
    for kind, name, given in ((Trajectory, "reference", beside[0]), (Observations, "samples", beside[1])):
        for value in given:
            remedy = f"give an fts.{kind.__name__} per field, or None"
            validation.require_type((kind, type(None)), value, name, remedy)
    return made.lay_beside(*beside)


def _per_field(given: Any, count: int) -> list[Any]:
    if given is None:
        return [None] * count
    return list(given) if isinstance(given, list | tuple) else [given]


def _source(field: FrozenField, library: str | Sequence[str] | Library | None, truth: str | None) -> Source:
    name = problem_of(field)
    wanted = name if library is None else library
    if wanted is None:
        raise ValueError('this field names no benchmark: give its library, e.g. ["u", "u*u_x", "u_xx"]')
    terms = resolve_library(wanted)
    key = (field_key(field.packed()), terms, truth)
    if key not in _sources:
        ready = prepare(field, terms)
        true = Equation.parse(truth) if truth is not None else problem(name).equation if name else None
        _sources[key] = Source(field, terms, ready.weak, ready.params, true, ready.systems)
    return _sources[key]
