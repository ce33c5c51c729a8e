"""A user's samples -> an equation with standard errors and a verdict: fit, freeze, select, compare, judge.

No truth enters. What is printed as uncertainty is what decides the verdict.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from tqdm.auto import tqdm

from fts import containers, validation
from fts.discovery import model, storage
from fts.discovery.evidence import (
    VERDICT,
    DrawnSystems,
    Evidence,
    SupportFit,
    VerdictParams,
    choose_support,
    draw_systems,
    extend_systems,
    gather,
)
from fts.discovery.instruments import Instruments, fit_sound_samples, lasting_noise
from fts.discovery.trajectory_test import judge_by_trajectory, missing_terms_reason, widened
from fts.discovery.verdict import (
    MORE_SAMPLES,
    Verdict,
    not_identifiable,
    state_verdict,
    too_few,
    travels,
    with_reasons,
)
from fts.domain import Domain
from fts.equations.equation import Equation
from fts.equations.sympy_form import to_sympy
from fts.equations.terms import Library
from fts.fields.frozen import FrozenField
from fts.fields.varying import Curve
from fts.fitting import Fit, Recipe, fit_posterior
from fts.io.readers import is_dataset, is_table, read_samples
from fts.io.sources import is_large, stream_samples
from fts.kernel.closed_form import one_thread
from fts.kernel.separable import BAR_DELAY
from fts.observations import InsufficientData, Observations
from fts.params.paper import DEFAULT_LIBRARIES
from fts.selection import refits
from fts.selection.instrumental import TWO_FIELDS
from fts.selection.selection import Selection
from fts.svws import rule
from fts.svws.select import Prepared, extend, prepare, resolve_library
from fts.svws.split_sample import select_prepared
from fts.trajectory.audit import Audit
from fts.trajectory.comparison import Comparison, ThawedEquation, describe_fit, thaw_equation

# Phases and draws are the same for the same samples: a verdict is repeatable.
_SEED = 20_270
# Terms from which on fields of halves choose: more than the evidence searches completely. In large libraries
# a field's own noise is explained by terms that are not there, and the same field confirms them: on the
# development problems two fields recover more equations than one in every group of cells with a large library
# (the record of `python -m fts.lab.studies tune-two-fields`; chapter "cross").
_LARGE = 11
_KIND, _REMEDY = "discovery", "save it again with result.save(path)"
Values = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class Discovery:
    """What was found in samples, how sure it is, and what else it could be.

    Where the samples carry no field, `field` and `selection` are None and the verdict says why. What was made
    on the way is kept: the fit with its posterior, the weak systems, the evidence in them, the equations that
    were integrated, and the audit of the one selected.
    """

    observations: Observations | None
    field: FrozenField | None
    selection: Selection | None
    verdict: Verdict
    fit: Fit | None = dataclasses.field(default=None, repr=False)
    prepared: Prepared | None = dataclasses.field(default=None, repr=False)
    evidence: Evidence | None = dataclasses.field(default=None, repr=False)
    comparison: Comparison | None = dataclasses.field(default=None, repr=False)
    audit: Audit | None = dataclasses.field(default=None, repr=False)
    notes: tuple[str, ...] = ()  # what was done about samples and instruments that err

    @property
    def identified(self) -> bool:
        """True when no test rejects the equation."""
        return self.verdict.status == "identified"

    @property
    def doubts(self) -> tuple[str, ...]:
        """Every reason to doubt the equation, with its number and remedy."""
        return self.verdict.reasons

    @property
    def equation(self) -> Equation:
        """The selected equation, identified or not; empty where nothing was selected."""
        return Equation((), []) if self.selection is None else self.selection.equation

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard error by term: regions of space-time left out, and the field's own uncertainty."""
        return {} if self.selection is None else self.selection.deviations

    def coefficient(self, term: str) -> Curve:
        """The coefficient of a term such as c(z)*u_zz: a function of z with `points`, `values`, `errors`."""
        return self._chosen()[1].curve(term)

    def thaw(self) -> ThawedEquation:
        """The equation integrated and fitted to the samples: as exact as they allow, and held against noise.

        Significant terms of the general library that are missing are named. One periodic axis.
        """
        if self.selection is None or self.fit is None:
            raise ValueError(f"nothing was selected: {' '.join(self.verdict.reasons)}")
        library = widened(self.selection.library, self.fit.observations.domain.dimension)
        support = tuple(np.flatnonzero(self.equation.on(library)).tolist())
        for fit in self.comparison.fits if self.comparison else ():
            if fit.support == support and self.comparison:  # it has decided the verdict
                return describe_fit(self.comparison.record, fit, library)
        return thaw_equation(self.fit, self.equation, library)

    def simulate(
        self, initial_state: Values | Mapping[str, Values], times: Float[np.ndarray, " nt"]
    ) -> Values:
        """The equation integrated from a state: u at the times, shaped (x, [y, [z,]] t).

        The state has values on equally spaced points of axes that close on themselves, and is that of
        times[0]; where the equation gives u_tt, it is {"u": values, "u_t": values}.
        """
        field, selection = self._chosen()
        name = selection.target.partition("_")[0]
        start = initial_state if isinstance(initial_state, Mapping) else {name: initial_state}
        solution = model.simulate([selection.equation], field.domain, start, times, {}, [selection.curves])
        return solution[name]

    def predict(self, points: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """The frozen field at points (x, [y, [z,]] t) of the record; `simulate` goes beyond it."""
        return model.field_at(self._chosen()[0], points)

    @property
    def residuals(self) -> Float[np.ndarray, " n"]:
        """The samples less the frozen field."""
        return self._fitted().residuals

    def to_sympy(self) -> Any:
        """The equation as a sympy.Eq, of functions and derivatives."""
        return to_sympy(self.equation, self._chosen()[0].domain.dimension)

    def to_latex(self) -> str:
        """The equation in LaTeX, with three significant digits."""
        return self.equation.latex

    def plot(self) -> Any:
        """A figure of the field and of the samples' residuals."""
        with validation.require_extra("plots", "a plot"):
            from fts.discovery import panels
        fit, name = self._fitted(), self.equation.target.partition("_")[0]
        return panels.fields_and_residuals({name: (fit.observations, fit.field, fit.residuals)})

    def save(self, path: str | Path) -> None:
        """Write samples, field, equation, standard errors and verdict to one file, atomically.

        What was made on the way is left out: a loaded discovery has no weak systems and no evidence.
        """
        header, arrays = self.packed()
        containers.save_arrays(Path(path), _KIND, header, arrays)

    @staticmethod
    def load(path: str | Path) -> "Discovery":
        """The discovery saved at `path`, every byte verified."""
        validation.require_type((str, Path), path, "path", "give the name of a discovery's file")
        header, arrays = containers.load_arrays(Path(path), _KIND, _REMEDY)
        with containers.file_errors(Path(path), _REMEDY):
            return Discovery.unpacked(header, arrays)

    def packed(self) -> tuple[storage.Header, storage.Arrays]:
        """Header and arrays of its file."""
        header: storage.Header = {"verdict": storage.pack_verdict(self.verdict), "selection": None}
        arrays = storage.pack_record(self.observations, self.field)
        if self.selection is not None:
            header["selection"], more = storage.pack_selection(self.selection)
            arrays |= storage.with_prefix("selection", more)
        return header, arrays

    @staticmethod
    def unpacked(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "Discovery":
        """The discovery of such a header and arrays."""
        containers.require_entries(header, {"verdict": (dict,), "selection": (dict, type(None))})
        observations, field = storage.unpack_record(arrays)
        verdict, selection, fit = storage.unpack_verdict(header["verdict"]), None, None
        if observations is not None and field is not None:
            fit = Fit(observations, field)
        if header["selection"] is not None:
            parts = storage.below("selection", arrays)
            selection = storage.unpack_selection(header["selection"], parts, field)
        return Discovery(observations, field, selection, verdict, fit)

    def _fitted(self) -> Fit:
        """The fit; an error where there is none."""
        if self.fit is None:
            raise ValueError(f"nothing was fitted: {' '.join(self.verdict.reasons)}")
        return self.fit

    def _chosen(self) -> tuple[FrozenField, Selection]:
        """Field and selection; an error where there are none."""
        if self.selection is None or self.field is None:
            raise ValueError(f"nothing was selected: {' '.join(self.verdict.reasons)}")
        return self.field, self.selection

    def as_dict(self) -> dict[str, Any]:
        """JSON form: equation, coefficients with standard errors, verdict."""
        values = {} if self.selection is None else self.selection.coefficients
        errors = self.standard_errors
        terms: dict[str, Any] = {
            name: {"value": value, "standard_error": errors[name]} for name, value in values.items()
        }
        for name, curve in ({} if self.selection is None else self.selection.curves).items():
            terms[name] = {"curve": curve.as_dict()}
        answer = {"equation": str(self.equation), "terms": terms, "verdict": self.verdict.as_dict()}
        return answer | ({"notes": list(self.notes)} if self.notes else {})

    def __repr__(self) -> str:
        return f"<Discovery: {validation.shortened(str(self).splitlines()[0])}>"

    def __str__(self) -> str:
        lines = [f"{self.verdict.status}: {self.equation}" if self.selection else self.verdict.status]
        if self.selection and self.selection.method == "two fields":
            lines.append("  selected by two fields of disjoint halves of the samples")
        lines += [f"  {name}: {text}" for name, text in self._values().items()]
        lines += [f"- {line}" for line in (*self.notes, *self.verdict.reasons)]
        rivals, of = self.verdict.rivals, self.verdict.of
        lines += [f"rival: {each.equation}  (leaves {each.risk:.2g} of {of})" for each in rivals]
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        lines = [f"**{self.verdict.status.capitalize()}.** ${self.equation.latex}$", ""]
        lines += [f"- `{name}`: {text}" for name, text in self._values().items()]
        lines += [f"- {line}" for line in (*self.notes, *self.verdict.reasons)]
        lines += [f"- rival: ${each.equation.latex}$, leaves {each.risk:.2g}" for each in self.verdict.rivals]
        return "\n".join(lines)

    def _values(self) -> dict[str, str]:
        values = {} if self.selection is None else self.selection.coefficients
        texts = {name: f"{value:.4g} ± {self.standard_errors[name]:.2g}" for name, value in values.items()}
        curves = {} if self.selection is None else self.selection.curves
        return texts | {name: str(curve) for name, curve in curves.items()}


@validation.explain_signature_errors
def discover(
    samples: Any,
    library: str | Sequence[str] | None = None,
    *,
    recipe: Recipe = "auto",
    domain: Domain | None = None,
    client: Any = None,
    progress: bool = True,
    params: VerdictParams = VERDICT,
) -> Discovery:
    """Everything from samples to verdict: samples as read_samples takes them, Observations, or a stream.

    `library` is a list of terms or a name; by default a general one for the number of spatial axes. `domain`
    says where the field lives and which axes are periodic, by default the samples' bounding box.
    """
    _require_samples(samples)
    observations = None
    try:
        if is_large(samples):
            stream = stream_samples(samples)
            stream = stream if domain is None else replace(stream, domain=domain)
            if library is not None:
                resolve_library(library)
            fit = fit_posterior(stream, recipe, client=client, progress=progress)
            observations, instruments = fit.observations, Instruments(fit.count)
            terms = _terms(library, observations.domain.dimension)
        else:
            observations = as_observations(samples, domain)
            # Before the fit: a misspelt term should not be waited for.
            terms = _terms(library, observations.domain.dimension)
            fit, instruments = fit_sound_samples(observations, recipe, progress=progress)
        ready = prepare(fit.field, terms)
    except InsufficientData as error:
        return refusal(error, observations)
    return replace(_judge(fit, ready, params, progress=progress), notes=instruments.notes)


def _terms(library: str | Sequence[str] | None, dimension: int) -> Library:
    terms = resolve_library(library if library is not None else DEFAULT_LIBRARIES[dimension])
    terms.check_dimension(dimension)
    return terms


def refusal(reason: InsufficientData, observations: Observations | None = None) -> Discovery:
    """The answer to samples that carry no field: a verdict with the reason."""
    return Discovery(observations, None, None, not_identifiable(str(reason)))


def _require_samples(samples: Any) -> None:
    """An error that says how to build observations unless the samples are some, or a table of them."""
    if is_dataset(samples) or is_table(samples) or is_large(samples):
        return
    remedy = "give a file's name, a table with columns x, [y, [z,]] t, u, or what fts.observe returns"
    if isinstance(samples, (np.ndarray, list, tuple)):
        remedy = (
            "arrays carry no names, give {'x': x, 't': t, 'u': u}, or with a domain fts.Observations("
            "x[:, None], t, u, fts.Domain((x.min(),), (x.max(),), t.min(), t.max(), (False,)))"
        )
    validation.require_type((str, Path, Observations), samples, "samples", remedy)


def as_observations(samples: Any, domain: Domain | None) -> Observations:
    """The samples read; those that are observations have a domain already."""
    if not isinstance(samples, Observations):
        return read_samples(samples, domain)
    if domain is not None:
        raise ValueError(
            "domain= is for samples in a file, these observations have one: leave it out, or give "
            "dataclasses.replace(observations, domain=domain)"
        )
    return samples


@one_thread
def _judge(fit: Fit, ready: Prepared, params: VerdictParams, *, progress: bool) -> Discovery:
    """What the weak systems say, what halves of the samples or integration make of it, and the doubts."""
    ready = ready.with_variances(fit.variance)
    with tqdm(total=3, desc="select", unit="step", disable=not progress, delay=BAR_DELAY) as bar:
        drawn = draw_systems(fit, ready, params.draws, np.random.default_rng(_SEED))
        bar.update()
        judged = judge_by_evidence(fit, ready, drawn, params)
        bar.update()
        selection, verdict = _check_by_halves(fit, ready, judged)
        bar.update()
    starts = (selection.xi, *judged.starts)
    with tqdm(desc="integrate", unit="equation", disable=not progress, delay=BAR_DELAY) as bar:
        integrated = judge_by_trajectory(fit, starts, selection, verdict, params, bar.update)
    comparison = integrated and integrated.comparison
    if integrated is None:
        missing = _missing_terms(fit, ready, drawn, verdict, params)
        # An integrated equation has its own residuals for this.
        verdict = with_reasons(verdict, (*missing, *lasting_noise(fit)))
    else:
        selection, verdict = integrated.selection, integrated.verdict
    if verdict.status == "identified":
        verdict = with_reasons(verdict, (*too_few(fit.count), *travels(selection)))
    return Discovery(
        fit.observations,
        fit.field,
        selection,
        verdict,
        fit,
        ready,
        judged.evidence,
        comparison,
        integrated and integrated.audit,
    )


@dataclass(frozen=True)
class Judged:
    """What the evidence in weak systems says."""

    proposed: Selection  # by the paper's rule
    selection: Selection
    verdict: Verdict
    evidence: Evidence
    starts: tuple[np.ndarray, ...]  # candidates to integrate


def judge_by_evidence(fit: Fit, ready: Prepared, drawn: DrawnSystems, params: VerdictParams) -> Judged:
    """The best supported equation, with one uncertainty, and the verdict on it."""
    proposed = rule.select_from(ready.systems, ready.params, ready.variances)
    support = tuple(ready.library.index(name) for name in proposed.support)
    evidence = gather(ready, drawn)
    tests = choose_support(evidence, support, params)
    chosen = tests.chosen
    selection = proposed if chosen.support == support else _refit(ready, evidence, chosen, proposed)
    selection = replace(_with_field_error(selection, evidence, chosen), field=fit.field)
    leaders = [leader for leader in tests.leaders if len(leader.support) <= params.leaders]
    starts = tuple(evidence.coefficients(start) for start in (chosen, *leaders))
    verdict = state_verdict(tests, evidence, params)
    return Judged(proposed, selection, verdict, evidence, starts)


def _check_by_halves(fit: Fit, ready: Prepared, judged: Judged) -> tuple[Selection, Verdict]:
    """The split-sample check: where the library is large, fields of disjoint halves of the samples choose."""
    selection, verdict = judged.selection, judged.verdict
    if len(ready.library) < _LARGE or fit.posterior is None:
        return selection, verdict
    params = replace(TWO_FIELDS, weak=ready.weak, svws=ready.params, relative=False)
    check = select_prepared(fit, ready, judged.proposed, params)
    chosen, reasons = check.selection, list(check.reasons)
    if not check.by_halves:
        return selection, with_reasons(verdict, reasons)
    if chosen.support != selection.support:
        reasons.append(
            f"fields of disjoint halves of the samples say {chosen.equation}, the whole field "
            f"{selection.equation}: what differs may be noise; {MORE_SAMPLES}"
        )
    return chosen, with_reasons(verdict, reasons)


def _missing_terms(
    fit: Fit, ready: Prepared, drawn: DrawnSystems, verdict: Verdict, params: VerdictParams
) -> list[str]:
    """Terms of the general library that an identified equation would do better with, where it lacks some."""
    library = widened(ready.library, fit.observations.domain.dimension)
    if verdict.status != "identified" or len(library) == len(ready.library):
        return []
    wider = extend(ready, fit.field, fit.variance, library)
    better = judge_by_evidence(fit, wider, extend_systems(drawn, fit, wider), params).selection
    missing = [name for name in better.support if name not in ready.library.names]
    return [missing_terms_reason(missing)] if missing else []


def _refit(ready: Prepared, evidence: Evidence, chosen: SupportFit, proposed: Selection) -> Selection:
    """The chosen support with coefficients refitted as SVWS refits its own, and the trace of that."""
    generation, fit, validation = rule.roles(ready.systems, ready.params)
    bare = Selection(ready.library, evidence.coefficients(chosen), "evidence", proposed.trace)
    return refits.with_refits(bare, (*generation, fit), validation, ready.params, ready.variances)


def _with_field_error(selection: Selection, evidence: Evidence, chosen: SupportFit) -> Selection:
    """Standard errors of the preferred refit with what the field's own uncertainty adds."""
    shift = np.zeros(len(selection.library))
    shift[list(chosen.support)] = chosen.shift / evidence.norms[list(chosen.support)]
    fits = {k: replace(fit, deviation=np.hypot(fit.deviation, shift)) for k, fit in selection.refits.items()}
    return replace(selection, refits=fits)
