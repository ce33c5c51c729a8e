"""Finding -> Verdict: identified, ambiguous or not identifiable, in sentences with numbers and remedies.

A verdict on one field, heard again by two: what fields of disjoint halves of the samples say.

Libraries that the evidence searches completely need no other selector. In larger ones a field's own noise is
explained by terms that are not there, and the same field confirms them: on the development problems two
fields recover more equations than one in every group of cells with a large library (the record of
`python -m fts.lab.studies settle`; chapter "cross"). So there the halves choose, and the evidence of the
whole field is asked whether it agrees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fts.discovery.evidence import Evidence, Finding, VerdictParams, Weighed, cosine
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fields.frozen import Field, FrozenField
from fts.kernel.posterior import PosteriorVariance
from fts.observations import Observations
from fts.selection.instrumental import TWO_FIELDS
from fts.selection.selection import Selection
from fts.svws.select import Prepared
from fts.svws.two_fields import select_halves

Status = Literal["identified", "ambiguous", "not identifiable"]
# Rivals told to a reader; there may be dozens.
TOLD = 5


@dataclass(frozen=True)
class Rival:
    """Another equation the samples allow, and what it leaves unexplained."""

    equation: Equation
    risk: float


@dataclass(frozen=True)
class Verdict:
    """What may be said about an equation, why, and what else the samples allow."""

    status: Status
    reasons: tuple[str, ...]
    rivals: tuple[Rival, ...] = ()
    risk: float = float("nan")  # fraction the equation leaves unexplained, squared,
    of: Literal["u_t", "the samples"] = "u_t"  # on the field's weak systems, or integrated
    expected: float = float("nan")  # what the field's uncertainty, or the noise, lets expect
    margin: float = 0.0  # least ratio over all tests, at least one when identified

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        rivals = [{"equation": str(one.equation), "risk": one.risk} for one in self.rivals]
        numbers = {name: _number(getattr(self, name)) for name in ("risk", "expected", "margin")}
        said = {"status": self.status, "reasons": list(self.reasons), "rivals": rivals}
        return said | numbers | {"of": self.of}


def refused(reason: str) -> Verdict:
    """The verdict on samples that carry no field to read an equation off."""
    return Verdict("not identifiable", (reason,))


def doubted(verdict: Verdict, said: Sequence[str]) -> Verdict:
    """The verdict with further reasons; nothing with a reason against it is identified."""
    if not said:
        return verdict
    status = "ambiguous" if verdict.status == "identified" else verdict.status
    return replace(verdict, status=status, reasons=(*verdict.reasons, *said), margin=0.0)


def state(finding: Finding, evidence: Evidence, library: Library, params: VerdictParams) -> Verdict:
    """The verdict, every failed test a sentence."""
    chosen, failed = finding.chosen, {name for name, value in finding.margins.items() if value < 1}
    reasons, status = [], "identified"
    if not chosen.support:
        reasons.append(
            "no term stands out: no equation of the library explains how the field changes; measure a record "
            "in which it moves, with less noise, or add terms"
        )
    elif "significance" in failed:
        reasons += [_weak(evidence, chosen, params)]
    if failed & {"expectation", "risk"}:
        reasons += _unexplained(finding, failed, params)
    if reasons:
        status = "not identifiable"
    elif failed:
        status = "ambiguous"
    if "rivals" in failed:
        reasons += _exchanges(finding, evidence, params)
    if "completeness" in failed:
        reasons.append(_incomplete(finding, evidence))
    rivals = tuple(_rival(one, evidence, library) for one in (*finding.rivals, *finding.additions)[:TOLD])
    return Verdict(
        status, tuple(reasons), rivals, risk=chosen.risk, expected=chosen.expected, margin=finding.margin
    )


def _weak(evidence: Evidence, chosen: Weighed, params: VerdictParams) -> str:
    names = [evidence.names[j] for j in chosen.support]
    weak = [
        f"{name} ({value:.1f})"
        for name, value in zip(names, chosen.significant, strict=True)
        if value < params.significance
    ]
    return (
        f"{', '.join(weak)}: coefficients of less than {params.significance:g} standard errors; "
        "add samples, or measure with less noise"
    )


def _unexplained(finding: Finding, failed: set[str], params: VerdictParams) -> list[str]:
    found, chosen = [], finding.chosen
    if "expectation" in failed:
        found.append(
            f"every equation in the library leaves at least {finding.surprise:.1f} times what the field's "
            "uncertainty lets expect: a term is missing, or the field is worse than it knows: add terms"
        )
    if "risk" in failed:
        found.append(
            f"{chosen.risk:.0%} of u_t is unexplained, more than {params.risk:.0%}: add samples or terms"
        )
    return found


def _exchanges(finding: Finding, evidence: Evidence, params: VerdictParams) -> list[str]:
    """Terms that other plausible equations do without, and the terms that stand in for them."""
    chosen, told = set(finding.chosen.support), []
    for one in finding.rivals:
        gone, new = sorted(chosen - set(one.support)), sorted(set(one.support) - chosen)
        alike = [
            f"{evidence.names[i]} and {evidence.names[j]}"
            for i in gone
            for j in new
            if abs(cosine(evidence, i, j)) > params.alike
        ]
        sentence = (
            f"{alike[0]} cannot be told apart: on this field they are proportional"
            if alike
            else f"without {_listed(evidence, gone)} another equation explains the samples as well"
            + (f", with {_listed(evidence, new)} instead" if new else "")
        )
        if sentence not in told:
            told.append(sentence)
    remedy = "measure another initial state, with more wavenumbers or amplitudes, or with less noise"
    return [f"{sentence}; {remedy}" for sentence in told[:2]]


def _incomplete(finding: Finding, evidence: Evidence) -> str:
    chosen = set(finding.chosen.support)
    names = [evidence.names[j] for one in finding.additions for j in one.support if j not in chosen]
    return (
        f"{', '.join(names)} cannot be excluded: the samples do not bound their part in u_t; add samples, or "
        "measure with less noise"
    )


def _rival(one: Weighed, evidence: Evidence, library: Library) -> Rival:
    terms = tuple(library[j] for j in one.support)
    return Rival(Equation(terms, one.share / evidence.norms[list(one.support)]), one.risk)


def _listed(evidence: Evidence, terms: list[int]) -> str:
    return " and ".join(evidence.names[j] for j in terms)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# Terms from which on two fields choose: more than the evidence searches completely.
LARGE = 11


def reconsider(
    observations: Observations,
    field: FrozenField,
    variance: Field | None,
    ready: Prepared,
    found: tuple[Selection, Verdict],
) -> tuple[Selection, Verdict]:
    """Selection and verdict by two fields where the library is large and the samples can be halved."""
    selection, verdict = found
    if len(ready.library) < LARGE or not isinstance(variance, PosteriorVariance):
        return found
    params = replace(TWO_FIELDS, weak=ready.weak, svws=ready.params, relative=False)
    chosen = select_halves(observations, variance, field, ready.library, params)
    said = [str(chosen.notes[name]) for name in ("said", "doubt") if name in chosen.notes]
    if chosen.notes["fields"] == 1:
        return selection, doubted(verdict, said)
    if chosen.support != selection.support:
        said.append(
            f"fields of disjoint halves of the samples say {chosen.equation}, the whole field "
            f"{selection.equation}: what differs may be noise; "
            "add samples, or measure with less noise"
        )
    return chosen, doubted(verdict, said)
