"""Several components, inputs or experiments -> one equation per component, each with errors and a verdict.

Every component is fitted by itself and frozen. The weak systems of all equations share their columns; those
of all experiments are stacked, each experiment weighted by its own noise. Supports are compared by the ratio
of what they leave in held-out regions: differences have no power where u_t is large in a few regions only.

`discover` takes everything; a single scalar equation of first order in time it leaves to `discover_scalar`.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, permutations
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from tqdm.auto import tqdm

from fts import containers, validation
from fts.discovery import model, storage
from fts.discovery.discover import Discovery, as_observations, refusal
from fts.discovery.discover import discover as discover_scalar
from fts.discovery.evidence import (
    FLOOR,
    VERDICT,
    Evidence,
    SupportFit,
    SupportTests,
    VerdictParams,
    added_share,
    judge_new,
    leaders,
    least_risk_ratio,
    rival_distance,
    search,
)
from fts.discovery.varying import ExpandedLibrary, curves_of, expand, smoothed
from fts.discovery.verdict import state_verdict, too_few, travels, with_reasons
from fts.domain import Domain
from fts.equations.equation import Equation
from fts.equations.grammar import TermError, check_states
from fts.equations.sympy_form import to_sympy
from fts.equations.terms import Library, Term, parse_term
from fts.fields.frozen import CallableField, Field
from fts.fields.system import FieldSystem, require_shared
from fts.fields.varying import Curve
from fts.fitting import Fit, Recipe, fit_posterior
from fts.io.readers import is_dataset, is_table, read_components
from fts.io.sources import is_large, stream_samples
from fts.kernel.closed_form import one_thread
from fts.observations import InsufficientData, Observations
from fts.params.types import WeakParams
from fts.selection import refits
from fts.selection.moments import Moments, by_region, regions
from fts.selection.selection import Refit, Selection
from fts.selection.support_search import Support, extended, shortened
from fts.svws.select import resolve_library
from fts.weak.assembly import LastValues, WeakSystem, assemble_all, bump_integral
from fts.weak.geometry import automatic
from fts.weak.test_functions import phases

_SEED = 20_270
_KIND, _REMEDY = "system", "save it again with result.save(path)"
Values = Float[np.ndarray, "..."]
_UNITS = 1e3  # a ratio of amplitudes between experiments that only another unit explains


@dataclass(frozen=True)
class SystemParams:
    """What the selection of a system's equations adds to the verdict's thresholds."""

    systems: int  # weak systems whose rows are pooled
    ratio: float  # mean logarithm of the held-out risk over the best one's within which a support is as good
    least_share: float  # of u_t that a term must move,
    clear: float  # unless it stands out of its error by so many standard errors,
    visible: float  # and the least by which any term must
    apart: float  # mean logarithm of risks beyond which terms with parallel columns are told apart
    most_terms: int
    least_error: float  # of a row, relative to u_t, below which an experiment gains no further weight


# Chosen on two-component systems of the development seeds, clean and with 5 % noise.
SYSTEM = SystemParams(
    systems=8,
    ratio=0.5,
    least_share=0.02,
    clear=8.0,
    visible=3.0,
    apart=3.0,
    most_terms=8,
    least_error=1e-3,
)


@dataclass(frozen=True)
class Experiment:
    """One record of a system: a fit for every component and measured input, and inputs given as fields."""

    fits: Mapping[str, Fit]
    given: Mapping[str, Field] = dataclasses.field(default_factory=dict)

    @property
    def fields(self) -> FieldSystem:
        """All frozen fields, by name."""
        return FieldSystem({name: fit.field for name, fit in self.fits.items()} | dict(self.given))

    def drawn(self, count: int, rng: np.random.Generator) -> list[FieldSystem]:
        """Systems of fields that the samples allow, every component drawn by itself."""
        cached = {name: LastValues(fit.field) for name, fit in self.fits.items()}
        draws = {name: fit.draws(count, rng) for name, fit in self.fits.items()}
        if any(len(each) < count for each in draws.values()):
            return []
        return [
            FieldSystem(
                {name: replace(each[k], field=cached[name]) for name, each in draws.items()}
                | dict(self.given)
            )
            for k in range(count)
        ]


@dataclass(frozen=True)
class SystemDiscovery:
    """What was found of every component: an equation each, how sure it is, and what else it could be."""

    experiments: tuple[Experiment, ...]
    components: Mapping[str, Discovery]
    left_out: Mapping[str, tuple[float, ...]]  # unexplained in each experiment by the others' coefficients

    @property
    def equations(self) -> dict[str, Equation]:
        """The selected equation of every component, identified or not."""
        return {name: result.equation for name, result in self.components.items()}

    @property
    def equation(self) -> Equation:
        """The equation, where there is a single one."""
        if len(self.components) != 1:
            raise ValueError(
                f"{len(self.components)} equations: take result.equations['{next(iter(self.components))}']"
            )
        return next(iter(self.equations.values()))

    def coefficient(self, term: str) -> Curve:
        """The coefficient of a term such as c(z)*u_zz: a function of z with `points`, `values`, `errors`."""
        if len(self.components) != 1:
            name = next(iter(self.components))
            raise ValueError(f"several equations: take result.components['{name}'].coefficient({term!r})")
        return next(iter(self.components.values())).coefficient(term)

    @property
    def identified(self) -> bool:
        """True when no test rejects any of the equations."""
        return all(result.identified for result in self.components.values())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Every reason to doubt an equation, after the name of its component."""
        return tuple(f"{name}: {text}" for name, each in self.components.items() for text in each.doubts)

    @property
    def standard_errors(self) -> dict[str, dict[str, float]]:
        """Standard errors by component and term."""
        return {name: result.standard_errors for name, result in self.components.items()}

    def simulate(
        self, initial_state: Mapping[str, Values], times: Float[np.ndarray, " nt"]
    ) -> dict[str, Values]:
        """All equations integrated from a state: every component at the times, shaped (x, [y, [z,]] t).

        The state has values on equally spaced points for every component, and for u_t where an equation gives
        u_tt; it is that of times[0]. Inputs are those of the first experiment.
        """
        experiment, chosen = self._first(), [each.selection for each in self.components.values()]
        inputs = experiment.fields.fields
        curves = [selection.curves if selection else {} for selection in chosen]
        equations = list(self.equations.values())
        return model.simulate(equations, experiment.fields.domain, initial_state, times, inputs, curves)

    def predict(self, points: Float[np.ndarray, "n d1"]) -> dict[str, Float[np.ndarray, " n"]]:
        """The components' fields in the first experiment, at points (x, [y, [z,]] t) of its record."""
        fits = self._first().fits
        return {name: model.field_at(fits[name].field, points) for name in self.components}

    @property
    def residuals(self) -> dict[str, Float[np.ndarray, " n"]]:
        """The samples of every component less its field, one experiment after the other."""
        return {
            name: np.concatenate([each.fits[name].residuals for each in self.experiments])
            for name in self.components
            if self._first()
        }

    def to_sympy(self) -> dict[str, Any]:
        """Every equation as a sympy.Eq, of functions and derivatives."""
        dimension = self._first().fields.domain.dimension
        return {name: to_sympy(equation, dimension) for name, equation in self.equations.items()}

    def to_latex(self) -> str:
        """All equations in LaTeX, one below the other."""
        lines = [equation.latex.replace("=", "&=", 1) for equation in self.equations.values()]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def plot(self) -> Any:
        """A figure of the first experiment: every component's field, and its samples' residuals."""
        with validation.require_extra("plots", "a plot"):
            from fts.discovery import panels
        fits = {name: self._first().fits[name] for name in self.components}
        rows = {name: (fit.observations, fit.field, fit.residuals) for name, fit in fits.items()}
        return panels.fields_and_residuals(rows)

    def save(self, path: str | Path) -> None:
        """Write samples, fields, equations, standard errors and verdicts to one file, atomically.

        Inputs that were given as functions are left out, as is what was made on the way.
        """
        header: dict[str, Any] = {
            "components": {},
            "left_out": {n: list(v) for n, v in self.left_out.items()},
        }
        header["experiments"] = [list(each.fits) for each in self.experiments]
        arrays: dict[str, np.ndarray] = {}
        for name, result in self.components.items():
            header["components"][name], parts = result.packed()
            arrays |= storage.with_prefix(f"components.{name}", parts)
        for number, experiment in enumerate(self.experiments):
            for name, fit in experiment.fits.items():
                if number or name not in self.components:  # those of the first are the components' own
                    record = storage.pack_record(fit.observations, fit.field)
                    arrays |= storage.with_prefix(f"experiments.{number}.{name}", record)
        containers.save_arrays(Path(path), _KIND, header, arrays)

    @staticmethod
    def load(
        path: str | Path, inputs: Mapping[str, Callable[..., np.ndarray]] | None = None
    ) -> "SystemDiscovery":
        """The discovery saved at `path`, every byte verified; `inputs` gives functions again."""
        validation.require_type((str, Path), path, "path", "give the name of a discovery's file")
        header, arrays = containers.load_arrays(Path(path), _KIND, _REMEDY)
        with containers.file_errors(Path(path), _REMEDY):
            kinds = {"components": (dict,), "left_out": (dict,), "experiments": (list,)}
            containers.require_entries(header, kinds)
            parts = {name: storage.below(f"components.{name}", arrays) for name in header["components"]}
            components = {n: Discovery.unpacked(h, parts[n]) for n, h in header["components"].items()}
            experiments = []
            for number, names in enumerate(header["experiments"]):
                fits = {}
                for name in names:
                    record = storage.below(f"experiments.{number}.{name}", arrays) or parts[name]
                    observations, field = storage.unpack_record(record)
                    if observations is None or field is None:
                        raise containers.FileError(f"lacks the samples or the field of {name}")
                    fits[name] = Fit(observations, field)
                domain = next(iter(fits.values())).observations.domain
                given = {name: CallableField(f, domain) for name, f in (inputs or {}).items()}
                experiments.append(Experiment(fits, given))
            left_out = {name: tuple(map(float, each)) for name, each in header["left_out"].items()}
        return SystemDiscovery(tuple(experiments), components, left_out)

    def _first(self) -> Experiment:
        """The first experiment; an error where none could be fitted."""
        if not self.experiments:
            raise ValueError(f"nothing was selected: {' '.join(self.doubts)}")
        return self.experiments[0]

    def as_dict(self) -> dict[str, Any]:
        """JSON form: what every component's discovery says, and the experiments left out."""
        return {
            "components": {name: result.as_dict() for name, result in self.components.items()},
            "experiments_left_out": {name: list(each) for name, each in self.left_out.items()},
        }

    def __repr__(self) -> str:
        return f"<SystemDiscovery: {'; '.join(str(equation) for equation in self.equations.values())}>"

    def __str__(self) -> str:
        return "\n".join([*(str(result) for result in self.components.values()), *self.experiment_lines()])

    def _repr_markdown_(self) -> str:
        parts = [result._repr_markdown_() for result in self.components.values()]
        return "\n\n".join([*parts, *self.experiment_lines()])

    def experiment_lines(self) -> list[str]:
        """What the coefficients of the other experiments leave unexplained in each, by component."""
        if len(self.experiments) < 2:
            return []
        return [
            f"{name}: of {self.components[name].verdict.of} in experiments left out, unexplained at most "
            f"{max(each):.2g}, at the median {np.median(each):.2g}"
            for name, each in self.left_out.items()
        ]


Samples = Any  # a file, a table, Observations, or a mapping from components to Observations


@validation.explain_signature_errors
def discover(
    samples: Samples | Sequence[Samples],
    library: str | Sequence[str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    inputs: Sequence[str] | Mapping[str, Callable[..., np.ndarray]] = (),
    target: str | None = None,
    recipe: Recipe = "auto",
    domain: Domain | None = None,
    client: Any = None,
    progress: bool = True,
    params: VerdictParams = VERDICT,
) -> Discovery | SystemDiscovery:
    """Everything from samples to verdict: an equation for every component that was measured.

    `samples` is a file, a table or Observations; a mapping from the components' names to Observations; or a
    list of these, one for each experiment. `columns` says which column holds which component, {"u": "height",
    "v": "speed"}; `inputs` names those that get no equation of their own, or maps names to functions of
    x, [y,] t. `target` is the left-hand side, "u_t" unless said otherwise: "u_tt" for waves. `library` is a
    list of terms or a name, by default a general one; the c of c(x)*u_x is an unknown function, which
    `result.coefficient("c(x)*u_x")` gives. `domain` says where the field lives and which axes are periodic,
    by default the samples' bounding box.

    Large files and folders, lazy Datasets and Dask collections are read in chunks, as `fts.stream_samples`
    says, and give one equation in u; with a Dask `client` its workers read them.
    """
    _check_arguments(columns, inputs, target, params)
    if is_large(samples):
        if inputs or target not in (None, "u_t") or _is_general(library):
            raise ValueError(
                "samples read in chunks give one equation for u_t, without inputs or coefficients that vary: "
                "give fewer of them, as fts.Observations"
            )
        samples, columns = stream_samples(samples, columns=columns), None
    if not (_is_system(samples, columns, inputs, target) or _is_general(library)):
        options = {"recipe": recipe, "domain": domain, "client": client}
        return discover_scalar(samples, library, **options, progress=progress, params=params)
    given = dict(inputs) if isinstance(inputs, Mapping) else {}
    records = [_observations(each, columns, inputs, domain) for each in _experiments(samples)]
    _require_alike(records)
    names, box = tuple(records[0]), next(iter(records[0].values())).domain
    states = (*names, *given)
    check_states(states)
    targets = _targets(target, names, states, inputs)
    terms = _library(library, states, targets, box.dimension)
    terms.check_dimension(box.dimension)
    _require_others(terms, targets)
    expand(terms, [each for record in records for each in record.values()])
    experiments = []
    for record in tqdm(records, desc="experiments", disable=not progress or len(records) == 1):
        box = next(iter(record.values())).domain
        fields = {name: CallableField(function, box) for name, function in given.items()}
        try:
            experiments.append(fit_experiment(record, fields, recipe, progress=progress))
        except InsufficientData as reason:
            return SystemDiscovery((), {name: refusal(reason, record[name]) for name in targets}, {})
    return select_equations(experiments, targets, terms, params)


def default_library(
    components: Sequence[str], inputs: Sequence[str], dimension: int, order: int
) -> list[str]:
    """General terms in several components and inputs; with `order` two in time, of waves and beams."""
    squares = [_product(pair) for pair in combinations_with_replacement(components, 2)]
    cubes = [_product(three) for three in combinations_with_replacement(components, 3)]
    terms = ["1", *components, *squares, *(cubes if len(components) < 3 else ())]
    for axis in "xyz"[:dimension]:
        terms += [f"{name}_{axis}" for name in components]
        terms += [f"{name}*{name}_{axis}" for name in components]
        terms += [f"D_{axis}({a}*{b})" for a, b in combinations(components, 2)]
        terms += [f"{name}_{2 * axis}" for name in components]
        terms += [f"{name}*{state}_{axis}" for name in inputs for state in components]
        if dimension == 1:
            terms += [f"D_{axis}({a}*{b}_{axis})" for a, b in permutations(components, 2)]
        if order == 2:
            terms += [f"{name}_{2 * axis}t" for name in components]
            terms += [f"D_{2 * axis}({name}^2)" for name in components]
        if order == 2 or len(components) == 1:
            terms += [f"{name}_{4 * axis}" for name in components]
    terms += [*inputs, *(f"{name}*{state}" for name in inputs for state in components)]
    return terms + [f"{name}_t" for name in components if order == 2]


def _product(names: Sequence[str]) -> str:
    """u*u*v as u^2*v."""
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return "*".join(name if count == 1 else f"{name}^{count}" for name, count in counts.items())


def _check_arguments(columns: Any, inputs: Any, target: Any, params: Any) -> None:
    """Refuse what is of another kind, before anything is read."""
    remedy = "give a dict, as {'u': 'height', 'v': 'speed'}"
    validation.require_type((Mapping, type(None)), columns, "columns", remedy)
    remedy = "give names, as ['w'], or functions of x, [y,] t by name, as {'w': lambda x, t: np.sin(t)}"
    validation.require_type((Mapping, list, tuple), inputs, "inputs", remedy)
    for name in inputs:
        validation.require_type(str, name, "a name of inputs", remedy)
    validation.require_type((str, type(None)), target, "target", "give 'u_t', or 'u_tt' for waves")
    remedy = "give dataclasses.replace(fts.discovery.evidence.VERDICT, significance=3.0)"
    validation.require_type(VerdictParams, params, "params", remedy)


def _is_system(samples: Any, columns: Any, inputs: Any, target: str | None) -> bool:
    several = columns is not None or bool(inputs) or target not in (None, "u_t")
    return several or _is_record(samples) or _are_experiments(samples)


def _is_general(library: Any) -> bool:
    """Whether terms of a scalar equation need more than u and its derivatives in space."""
    if library is None or isinstance(library, str):
        return False
    return not all(term.is_autonomous for term in resolve_library(library))


def _is_record(samples: Any) -> bool:
    """Whether it maps components to their observations."""
    values = samples.values() if isinstance(samples, Mapping) else ()
    return any(isinstance(each, Observations) for each in values)


def _are_experiments(samples: Any) -> bool:
    def is_one(each: Any) -> bool:
        return isinstance(each, (str, Path, Observations)) or is_table(each) or is_dataset(each)

    return isinstance(samples, (list, tuple)) and bool(samples) and all(map(is_one, samples))


def _experiments(samples: Any) -> list[Any]:
    if not isinstance(samples, (list, tuple)):
        return [samples]
    if not samples:
        raise ValueError("samples is an empty list: give a file, a table or Observations for each experiment")
    return list(samples)


def _observations(
    samples: Any, columns: Mapping[str, str] | None, inputs: Any, domain: Domain | None
) -> dict[str, Observations]:
    """The observations of every component and measured input of one experiment."""
    measured = () if isinstance(inputs, Mapping) else inputs
    if not (isinstance(samples, Observations) or _is_record(samples)):
        return read_components(samples, columns or {}, measured, domain)
    if columns is not None:
        raise ValueError(
            "columns= is for samples in a file or a table: leave it out, or give "
            "{'u': observations, 'v': others}"
        )
    record = {"u": samples} if isinstance(samples, Observations) else dict(samples)
    for name, each in record.items():
        remedy = "give fts.Observations for every component"
        validation.require_type(Observations, each, f"component {name!r}", remedy)
    missing = [name for name in measured if name not in record]
    if missing:
        raise ValueError(
            f"inputs name {missing[0]!r}, the samples are of {', '.join(map(str, record))}: give its "
            "observations too, or a function of x, [y,] t"
        )
    return {name: as_observations(each, domain) for name, each in record.items()}


def _require_alike(records: Sequence[Mapping[str, Observations]]) -> None:
    """Refuse experiments of other components, axes or units."""
    first = records[0]
    for record in records:
        require_shared({name: each.domain for name, each in record.items()})
    for number, record in enumerate(records[1:], 2):
        if any(_same_samples(record, before) for before in records[: number - 1]):
            raise ValueError(f"experiment {number} repeats the samples of another: give each once")
        if set(record) != set(first):
            raise ValueError(
                f"experiment {number} holds {', '.join(record)}, the first {', '.join(first)}: give the same "
                "components for all"
            )
        dimensions = {each.domain.dimension for each in (*record.values(), *first.values())}
        if len(dimensions) > 1:
            raise ValueError(f"experiment {number} has other axes than the first: give the same for all")
    for name in first:
        sizes = [float(np.abs(record[name].y).max()) for record in records]
        if min(sizes) > 0 and max(sizes) > _UNITS * min(sizes):
            raise ValueError(
                f"{name} reaches {min(sizes):.3g} in one experiment, {max(sizes):.3g} in another: give all "
                "in the same units"
            )


def _same_samples(record: Mapping[str, Observations], other: Mapping[str, Observations]) -> bool:
    return record.keys() == other.keys() and all(
        np.array_equal(each.y, other[name].y)
        and np.array_equal(each.t, other[name].t)
        and np.array_equal(each.x, other[name].x)
        for name, each in record.items()
    )


def _targets(target: str | None, names: Sequence[str], states: Sequence[str], inputs: Any) -> dict[str, Term]:
    """The left-hand side of every component that gets an equation."""
    free = [name for name in names if name not in inputs]
    if not free:
        raise ValueError(f"all of {', '.join(names)} are inputs: leave out one, to get its equation")
    if target is None:
        return {name: parse_term(f"{name}_t", states) for name in free}
    name, _, letters = target.partition("_")
    if name not in free or letters not in ("t", "tt"):
        raise ValueError(
            f"target {validation.shortened(target)!r}: equations are of first or second order in time, give "
            f"{free[0]}_t or {free[0]}_tt"
        )
    return {name: parse_term(target, states)}


def _library(
    library: str | Sequence[str] | None, states: Sequence[str], targets: Mapping[str, Term], dimension: int
) -> Library:
    """The terms given, or general ones."""
    if isinstance(library, (list, tuple)):
        return Library.parse(library, states)
    if library is not None:
        return resolve_library(library)
    order = max(term.time for term in targets.values())
    inputs = [name for name in states if name not in targets]
    return Library.parse(default_library(tuple(targets), inputs, dimension, order), states)


def fit_experiment(
    observations: Mapping[str, Observations],
    given: Mapping[str, Field],
    recipe: Recipe,
    *,
    progress: bool,
) -> Experiment:
    """Every component and measured input fitted by itself."""
    fits = {name: fit_posterior(o, recipe, progress=progress) for name, o in observations.items()}
    return Experiment(fits, given)


@one_thread
def select_equations(
    experiments: Sequence[Experiment],
    targets: Mapping[str, Term],
    library: Library,
    params: VerdictParams = VERDICT,
    system: SystemParams = SYSTEM,
) -> SystemDiscovery:
    """The equation of every component of `targets`, read off the weak systems of all experiments."""
    rng = np.random.default_rng(_SEED)
    usable = {name: _without(library, target) for name, target in targets.items()}
    columns = expand(library, [fit.observations for each in experiments for fit in each.fits.values()])
    parts = [_assemble(each, tuple(targets.values()), columns, params, system, rng) for each in experiments]
    components, left_out = {}, {}
    for k, (name, target) in enumerate(targets.items()):
        evidence, by_experiment = _evidence(parts, k, columns, usable[name], system)
        tests = choose_by_ratio(evidence, params, system)
        verdict = state_verdict(tests, evidence, params, str(target))
        left_out[name] = _unexplained(by_experiment, evidence.columns(*tests.chosen.support))
        curves = curves_of(evidence, tests.chosen, columns)
        selection = _selection(evidence, tests.chosen, usable[name], target, curves)
        count = sum(each.fits[name].count for each in experiments)
        reasons = (*_disagreements(left_out[name], params), *too_few(count), *travels(selection))
        verdict = with_reasons(verdict, reasons)
        fit = experiments[0].fits[name]
        selection = replace(selection, field=fit.field)
        components[name] = Discovery(fit.observations, fit.field, selection, verdict, fit, evidence=evidence)
    return SystemDiscovery(tuple(experiments), components, left_out)


@dataclass(frozen=True)
class _Rows:
    """The rows of one experiment: systems by phase and equation, and pairs with those of drawn fields."""

    systems: tuple[tuple[WeakSystem, ...], ...]
    variances: Float[np.ndarray, "phases m"]  # relative ones, of the fields on the patches
    pairs: tuple[tuple[tuple[WeakSystem, ...], tuple[WeakSystem, ...]], ...]


def _assemble(
    experiment: Experiment,
    targets: tuple[Term, ...],
    columns: ExpandedLibrary,
    params: VerdictParams,
    system: SystemParams,
    rng: np.random.Generator,
) -> _Rows:
    fields, library = replace(experiment.fields, functions=columns.functions), columns.library
    every = Library(tuple(dict.fromkeys((*targets, *library))))
    weak, d = automatic(fields, every), fields.domain.dimension
    shifts = phases(rng, system.systems, d)
    systems = tuple(assemble_all(fields, library, weak, phase, targets) for phase in shifts)
    # A spline sees a part of the rows only: its draws need as many as its field.
    coarse = weak if columns.bases else replace(weak, patches=tuple(max(3, n // 2) for n in weak.patches))
    drawn = experiment.drawn(params.draws, rng)
    pairs = tuple(
        (
            assemble_all(fields, library, coarse, phase, targets),
            assemble_all(replace(each, functions=columns.functions), library, coarse, phase, targets),
        )
        for each, phase in zip(drawn, phases(rng, len(drawn), d), strict=True)
    )
    return _Rows(systems, _relative_variances(experiment, weak, [each[0] for each in systems]), pairs)


def _relative_variances(
    experiment: Experiment, weak: WeakParams, systems: Sequence[WeakSystem]
) -> Float[np.ndarray, "phases m"]:
    """The posterior variance under each test function, in units of the samples', summed over components."""
    total = np.zeros((len(systems), len(systems[0])))
    for fit in experiment.fits.values():
        if fit.variance is None or fit.posterior is None:
            return np.ones_like(total)
        size = fit.posterior.scale**2 * bump_integral(replace(weak, nodes=refits.coarser(weak)))
        total += refits.row_variances(fit.variance, weak, systems).reshape(total.shape) / size
    return total


def _evidence(
    parts: Sequence[_Rows], k: int, columns: ExpandedLibrary, usable: Library, params: SystemParams
) -> tuple[Evidence, Moments]:
    """The evidence on equation k from all experiments, and its moments by experiment."""
    kept, groups = columns.on(usable)
    rows, targets, blocks, numbers = [], [], [], []
    errors = _row_errors(parts, k, params)
    for number, (part, error) in enumerate(zip(parts, errors, strict=True)):
        systems = [each[k] for each in part.systems]
        A, b = refits.stack(systems)
        root = refits.root_weights(len(b), part.variances.ravel()) / error
        rows.append(A[:, kept] * root[:, None])
        targets.append(b * root)
        block = regions(np.concatenate([each.centers for each in systems]))
        blocks.append(block + (number << 16))
        numbers.append(np.full(len(b), number))
    A, b = np.concatenate(rows), np.concatenate(targets)
    size, norms = float(np.linalg.norm(b)) or 1.0, np.linalg.norm(A, axis=0)
    scale = np.where(norms > 0, size / np.where(norms > 0, norms, 1.0), 0.0)
    scaled = np.column_stack([b, A * scale]) / size
    draws = _drawn_moments(parts, k, kept, scale, errors)
    shares = np.where(norms > 0, norms, np.inf) / size
    evidence = Evidence(usable, shares, by_region(scaled, np.concatenate(blocks)), *draws, groups)
    return smoothed(evidence, columns), by_region(scaled, np.concatenate(numbers))


def _row_errors(parts: Sequence[_Rows], k: int, params: SystemParams) -> list[float]:
    """What u_t of each experiment errs by, per row: by its drawn fields, or in proportion to u_t itself."""
    sizes = [
        float(np.sqrt(np.mean(np.concatenate([each[k].b for each in part.systems]) ** 2))) for part in parts
    ]
    floor = params.least_error * float(np.median(sizes))
    if len(parts) == 1 or not all(part.pairs for part in parts):
        return [max(size, floor) for size in sizes]
    return [
        float(np.sqrt(np.mean([np.mean((d[k].b - f[k].b) ** 2) for f, d in part.pairs]) + floor**2))
        for part in parts
    ]


def _drawn_moments(
    parts: Sequence[_Rows], k: int, kept: list[int], scale: np.ndarray, errors: Sequence[float]
) -> tuple[Moments | None, Moments | None, Moments | None]:
    """Moments of the frozen fields' systems, of the drawn ones, and of the difference, draw by draw."""
    count = min(len(part.pairs) for part in parts)
    if not count:
        return None, None, None
    size = 1 + len(kept)
    products = np.zeros((3, count, size, size))
    for part, error in zip(parts, errors, strict=True):
        for d, pair in enumerate(part.pairs[:count]):
            field, drawn = (np.column_stack([each[k].b, each[k].A[:, kept] * scale]) / error for each in pair)
            for i, columns in enumerate((field, drawn, drawn - field)):
                products[i, d] += columns.T @ columns
    return Moments(products[0]), Moments(products[1]), Moments(products[2])


def choose_by_ratio(evidence: Evidence, params: VerdictParams, system: SystemParams) -> SupportTests:
    """The smallest support whose risk in held-out regions is as small, in ratio, as the best one's."""
    fits = _with_shorter(evidence, search(evidence, (), system.most_terms), system)

    def sound(fit: SupportFit) -> bool:
        """Every term stands out of its error, far out where it moves little of u_t."""
        least = np.where(np.abs(fit.share) < system.least_share, system.clear, system.visible)
        return bool((fit.t_values >= least).all())

    best = min((fit for fit in fits if sound(fit)), key=_typical_risk)
    excess = {fit.support: _typical_risk(fit) - _typical_risk(best) for fit in fits}
    near = [fit for fit in fits if sound(fit) and excess[fit.support] <= system.ratio]
    chosen = min(near, key=lambda fit: (fit.size, excess[fit.support]))
    size = chosen.size
    others = [
        fit
        for fit in fits
        if fit.support != chosen.support
        and fit.size <= size + 1
        and not set(chosen.support) <= set(fit.support)
        and sound(fit)
        and bool((fit.t_values >= params.significance).all())
    ]

    def rival_margin(fit: SupportFit) -> float:
        """At most one for a rival."""
        behind = (excess[fit.support] - excess[chosen.support]) / system.ratio
        if fit.size > size or behind * system.ratio > system.apart:
            return behind
        return min(behind, rival_distance(evidence, chosen, fit, params))

    ratio = least_risk_ratio(fits)
    margins = {
        "significance": float((chosen.t_values / params.significance).min(initial=np.inf)) if size else 0.0,
        "rivals": min((rival_margin(fit) for fit in others), default=np.inf),
        "risk": params.risk / max(chosen.risk, FLOOR),
    }
    if np.isfinite(ratio):
        factor, small = params.surprise / max(ratio, FLOOR), params.small / max(best.risk, FLOOR)
        margins["expectation"] = max(factor, min(small, params.too_sure * factor))
    larger = judge_new(evidence, [], extended(chosen.support, evidence.usable))
    bounds = {fit.support: added_share(fit, chosen, params) for fit in larger}
    margins["completeness"] = 1 / max(max(bounds.values(), default=0.0), FLOOR)
    rivals = tuple(sorted((f for f in others if rival_margin(f) <= 1), key=lambda f: excess[f.support]))
    additions = tuple(fit for fit in larger if bounds[fit.support] > 1)
    return SupportTests(chosen, rivals, additions, leaders(fits), ratio, margins)


def _with_shorter(evidence: Evidence, fits: list[SupportFit], system: SystemParams) -> list[SupportFit]:
    """The supports searched, and those that leave a term of a good one out, as far as these are good too."""
    while True:
        least = min(map(_typical_risk, fits))
        near = (fit for fit in fits if _typical_risk(fit) <= least + system.ratio)
        new = judge_new(evidence, fits, (s for fit in near for s in shortened(fit.support)))
        if not new:
            return fits
        fits = fits + new


def _typical_risk(fit: SupportFit) -> float:
    """Mean over regions of the logarithm of what is left unexplained where the region is held out."""
    return float(np.log(np.maximum(fit.held_out, FLOOR / fit.held_out.size)).mean())


def _selection(
    evidence: Evidence, chosen: SupportFit, library: Library, target: Term, curves: Mapping[str, Curve]
) -> Selection:
    """The chosen support with its coefficients and standard errors: a curve's at the median over its axis."""
    xi, deviation = evidence.coefficients(chosen), np.zeros(len(library))
    for j, se in zip(chosen.support, chosen.se, strict=True):
        curve = curves.get(library.names[j])
        deviation[j] = np.median(curve.errors) if curve else se / evidence.norms[evidence.columns(j)[0]]
    refit = {"pooled": Refit(xi, deviation, chosen.risk)}
    return Selection(library, xi, "support search", None, refit, "pooled", target=str(target), curves=curves)


def _unexplained(by_experiment: Moments, support: Support) -> tuple[float, ...]:
    """What the coefficients of all other experiments leave of u_t in each; empty for a single one."""
    count = len(by_experiment.square)
    if count < 2:
        return ()
    parts = by_experiment.on(np.array(support, dtype=int))
    left = np.maximum(parts.risk(parts.without_each.solve()), 0.0)
    return tuple((left / np.maximum(parts.square, np.finfo(float).tiny)).tolist())


def _disagreements(left_out: tuple[float, ...], params: VerdictParams) -> list[str]:
    """Experiments that the others do not predict."""
    odd = [k + 1 for k, risk in enumerate(left_out) if risk > params.risk]
    if not odd:
        return []
    names = ", ".join(map(str, odd))
    text = f"the equation of the other experiments leaves more than {params.risk:.0%} in experiment {names}"
    return [f"{text}: look whether it follows the same equation, in the same units"]


def _without(library: Library, target: Term) -> Library:
    """The library without the left-hand side, which would explain itself."""
    return Library(tuple(term for term in library if not _is_multiple(term, target)))


def _is_multiple(term: Term, target: Term) -> bool:
    """Whether a number, or a constant as the unknown function, makes the term the left-hand side."""
    return term.without_unknown == target.without_unknown


def _require_others(library: Library, targets: Mapping[str, Term]) -> None:
    """Refuse the left-hand side among the terms of a single equation; those of several share a library."""
    for target in targets.values() if len(targets) == 1 else ():
        for term in library:
            if _is_multiple(term, target):
                raise TermError(f"{term} is {target}, the left-hand side, times a factor: leave it out")
