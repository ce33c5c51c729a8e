"""A user's samples -> an equation with standard errors and a verdict: fit, freeze, select, compare, say.

No truth enters. What is printed as uncertainty is what decides the verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from fts import validation
from fts.discovery.evidence import LEAST_SAMPLES, VERDICT, Evidence, VerdictParams, Weighed, find, gather
from fts.discovery.trajectory_test import ask_for, foretell, widened
from fts.discovery.verdict import Verdict, doubted, reconsider, refused, state
from fts.domain import Domain
from fts.equations.equation import Equation
from fts.fields.frozen import Field, FrozenField
from fts.fitting import Recipe, fit_with_variance, possible_fields
from fts.io.readers import is_dataset, read_samples
from fts.kernel.closed_form import one_thread
from fts.kernel.separable import BAR_DELAY
from fts.observations import InsufficientData, Observations
from fts.params.paper import DEFAULT_LIBRARIES
from fts.selection import refits
from fts.selection.selection import Selection
from fts.svws import rule
from fts.svws.select import Prepared, prepare, resolve_library
from fts.trajectory.comparison import ThawedEquation, thaw_equation

# Phases and draws are the same for the same samples: a verdict is repeatable.
_SEED = 20_270


@dataclass(frozen=True)
class Discovery:
    """What was found in samples, how sure it is, and what else it could be.

    Where the samples carry no field, `field` and `selection` are None and the verdict says why.
    """

    observations: Observations | None
    field: FrozenField | None
    selection: Selection | None
    verdict: Verdict

    @property
    def identified(self) -> bool:
        """True when nothing speaks against the equation."""
        return self.verdict.status == "identified"

    @property
    def doubts(self) -> tuple[str, ...]:
        """Every reason not to trust the equation, with its number and remedy."""
        return self.verdict.reasons

    @property
    def equation(self) -> Equation:
        """The selected equation, whether or not it is to be trusted; empty where nothing was selected."""
        return Equation((), []) if self.selection is None else self.selection.equation

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard error by term: regions of space-time left out, and the field's own uncertainty."""
        return {} if self.selection is None else self.selection.deviations

    def thaw(self) -> ThawedEquation:
        """The equation integrated and fitted to the samples: as exact as they allow, and held against noise.

        Terms of the general library that the samples ask for are named. One periodic axis.
        """
        if self.selection is None or self.field is None or self.observations is None:
            raise ValueError(f"nothing was selected: {' '.join(self.verdict.reasons)}")
        library = widened(self.selection.library, self.observations.domain.dimension)
        return thaw_equation(self.observations, self.field, self.equation, library)

    def as_dict(self) -> dict[str, Any]:
        """JSON form: equation, coefficients with standard errors, verdict."""
        values = {} if self.selection is None else self.selection.coefficients
        errors = self.standard_errors
        terms = {name: {"value": value, "standard_error": errors[name]} for name, value in values.items()}
        return {"equation": str(self.equation), "terms": terms, "verdict": self.verdict.as_dict()}

    def __str__(self) -> str:
        lines = [f"{self.verdict.status}: {self.equation}" if self.selection else self.verdict.status]
        if self.selection and self.selection.method == "two fields":
            lines.append("  selected by two fields of disjoint halves of the samples")
        lines += [f"  {name}: {text}" for name, text in self._values().items()]
        lines += [f"- {reason}" for reason in self.verdict.reasons]
        of = self.verdict.of
        lines += [f"rival: {one.equation}  (leaves {one.risk:.2g} of {of})" for one in self.verdict.rivals]
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        lines = [f"**{self.verdict.status.capitalize()}.** ${self.equation.latex}$", ""]
        lines += [f"- `{name}`: {text}" for name, text in self._values().items()]
        lines += [f"- {reason}" for reason in self.verdict.reasons]
        lines += [f"- rival: ${one.equation.latex}$, leaves {one.risk:.2g}" for one in self.verdict.rivals]
        return "\n".join(lines)

    def _values(self) -> dict[str, str]:
        values = {} if self.selection is None else self.selection.coefficients
        return {name: f"{value:.4g} ± {self.standard_errors[name]:.2g}" for name, value in values.items()}


@validation.explain_signature_errors
def discover(
    samples: Any,
    library: str | Sequence[str] | None = None,
    *,
    recipe: Recipe = "auto",
    domain: Domain | None = None,
    progress: bool = True,
    params: VerdictParams = VERDICT,
) -> Discovery:
    """Everything from samples to verdict: a file or Dataset as read_samples takes it, or Observations.

    `library` is a list of terms or a name; by default a general one for the number of spatial axes. `domain`
    says where the field lives and which axes are periodic, by default the samples' bounding box.
    """
    if not is_dataset(samples):
        kinds = (str, Path, Observations)
        validation.require_type(kinds, samples, "samples", "give a file's name, or what fts.observe returns")
    observations = None
    try:
        observations = samples if isinstance(samples, Observations) else read_samples(samples, domain)
        dimension = observations.domain.dimension
        # Before the fit: a misspelt term should not be waited for.
        terms = resolve_library(library if library is not None else DEFAULT_LIBRARIES[dimension])
        terms.check_dimension(dimension)
        field, variance = fit_with_variance(observations, recipe, progress=progress)
        ready = prepare(field, terms)
    except InsufficientData as error:
        return refusal(error, observations)
    found = _judged(observations, field, variance, ready, params, progress=progress)
    return Discovery(observations, field, *found)


@one_thread
def _judged(
    observations: Observations,
    field: FrozenField,
    variance: Field | None,
    ready: Prepared,
    params: VerdictParams,
    *,
    progress: bool,
) -> tuple[Selection, Verdict]:
    """What the weak systems find, what two fields or the integrated equations make of it, and the doubts."""
    selection, verdict, starts = examine(field, ready, variance, params)
    selection, verdict = reconsider(observations, field, variance, ready, (selection, verdict))
    starts = (selection.xi, *starts)
    with tqdm(desc="integrate", unit="equation", disable=not progress, delay=BAR_DELAY) as bar:
        told = foretell(observations, field, starts, (selection, verdict), params, bar.update)
    if told is None:
        told = selection, doubted(verdict, _wanted(field, ready, variance, verdict, params))
    selection, verdict = told
    doubts = [*_too_few(observations), *_travels(selection)] if verdict.status == "identified" else []
    return selection, doubted(verdict, doubts)


def refusal(reason: InsufficientData, observations: Observations | None = None) -> Discovery:
    """The answer to samples that carry no field: a verdict with the reason."""
    return Discovery(observations, None, None, refused(str(reason)))


def examine(
    field: FrozenField, ready: Prepared, variance: Field | None, params: VerdictParams = VERDICT
) -> tuple[Selection, Verdict, tuple[np.ndarray, ...]]:
    """The equation the evidence speaks for with one uncertainty, the verdict, and candidates to integrate."""
    variances = None if variance is None else refits.row_variances(variance, ready.weak, ready.systems)
    proposed = rule.select_from(ready.systems, ready.params, variances)
    rng = np.random.default_rng(_SEED)
    possible = possible_fields(field, variance, params.draws, rng)
    evidence = gather(ready, field, variance, possible, rng)
    places = tuple(ready.library.index(name) for name in proposed.support)
    finding = find(evidence, places, params)
    chosen = finding.chosen
    selection = (
        proposed if chosen.support == places else _refitted(ready, evidence, chosen, variances, proposed)
    )
    selection = replace(_with_field_error(selection, evidence, chosen), field=field)
    leaders = [one for one in finding.leaders if len(one.support) <= params.leaders]
    starts = tuple(_physical(evidence, one) for one in (chosen, *leaders))
    return selection, state(finding, evidence, ready.library, params), starts


def _wanted(
    field: FrozenField, ready: Prepared, variance: Field | None, verdict: Verdict, params: VerdictParams
) -> list[str]:
    """Terms of the general library that an identified equation would do better with, where it lacks some."""
    library = widened(ready.library, field.domain.dimension)
    if verdict.status != "identified" or len(library) == len(ready.library):
        return []
    better, *_ = examine(field, prepare(field, library), variance, params)
    foreign = [name for name in better.support if name not in ready.library.names]
    return [ask_for(foreign)] if foreign else []


def _too_few(observations: Observations) -> list[str]:
    """The reason not to call an equation identified where verdicts were never put to the test."""
    if len(observations) >= LEAST_SAMPLES:
        return []
    checked = f"verdicts were checked with {LEAST_SAMPLES} and more"
    return [
        f"{len(observations)} samples: {checked}, and fewer can fit a wrong equation by chance; add samples"
    ]


def _travels(selection: Selection) -> list[str]:
    """The reason not to call a mere translation identified: waves of many equations travel unchanged."""
    if not set(selection.support) <= {"u_x", "u_y", "u_z"}:
        return []
    return ["the field only travels, as steady waves of many equations do; measure another initial state"]


def _refitted(
    ready: Prepared, evidence: Evidence, chosen: Weighed, variances: np.ndarray | None, proposed: Selection
) -> Selection:
    """The chosen support with coefficients refitted as SVWS refits its own, and the trace of that."""
    generation, fit, validation = rule.roles(ready.systems, ready.params)
    bare = Selection(ready.library, _physical(evidence, chosen), "evidence", proposed.trace)
    return refits.with_refits(bare, (*generation, fit), validation, ready.params, variances)


def _physical(evidence: Evidence, one: Weighed) -> np.ndarray:
    """A support's coefficients on the library, as the evidence has them."""
    xi = np.zeros(len(evidence.names))
    xi[list(one.support)] = one.share / evidence.norms[list(one.support)]
    return xi


def _with_field_error(selection: Selection, evidence: Evidence, chosen: Weighed) -> Selection:
    """Standard errors of the preferred refit with what the field's own uncertainty adds."""
    shift = np.zeros(len(selection.library))
    shift[list(chosen.support)] = chosen.shift / evidence.norms[list(chosen.support)]
    found = {
        name: replace(one, deviation=np.hypot(one.deviation, shift)) for name, one in selection.refits.items()
    }
    return replace(selection, refits=found)
