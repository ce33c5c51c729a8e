"""Tests of the evidence -> Verdict: identified, ambiguous or not identifiable, in sentences with numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fts.discovery.evidence import LEAST_SAMPLES, Evidence, SupportFit, SupportTests, VerdictParams
from fts.equations.equation import Equation
from fts.selection.selection import Selection

MORE_SAMPLES = "add samples, or measure with less noise"
MORE_WAVES = "measure another initial state, with more wavenumbers or amplitudes, or with less noise"
Status = Literal["identified", "ambiguous", "not identifiable"]
# Rivals a reader is shown; there may be dozens.
SHOWN = 5
# An unknown function of a coordinate in front of a term.
_VARYING = re.compile(r"^\w\(\w\)\*")
# Standard errors of the band in which a flat curve has room for a constant.
_BAND = 2


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
    of: str = "u_t"  # the left-hand side, on the field's weak systems; "the samples" where integrated
    expected: float = float("nan")  # what the field's uncertainty, or the noise, lets expect
    margin: float = 0.0  # least ratio over all tests, at least one when identified
    wanted: tuple[str, ...] = ()  # what score tests of a wide class ask for, the most significant first
    scope: str = ""  # that class, and what in it would be too small to be seen; empty where none was tested

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        rivals = [{"equation": str(rival.equation), "risk": rival.risk} for rival in self.rivals]
        numbers = {name: _number(getattr(self, name)) for name in ("risk", "expected", "margin")}
        words = {"status": self.status, "reasons": list(self.reasons), "rivals": rivals}
        return words | numbers | {"of": self.of, "wanted": list(self.wanted), "scope": self.scope}


def not_identifiable(reason: str) -> Verdict:
    """The verdict on samples that carry no field to read an equation off."""
    return Verdict("not identifiable", (reason,))


def with_reasons(verdict: Verdict, reasons: Sequence[str]) -> Verdict:
    """The verdict with further reasons; nothing with a reason against it is identified."""
    if not reasons:
        return verdict
    status = "ambiguous" if verdict.status == "identified" else verdict.status
    return replace(verdict, status=status, reasons=(*verdict.reasons, *reasons), margin=0.0)


def too_few(count: int) -> list[str]:
    """The reason not to call an equation identified where verdicts were never put to the test."""
    if count >= LEAST_SAMPLES:
        return []
    checked = f"verdicts were checked with {LEAST_SAMPLES} and more"
    return [f"{count} samples: {checked}, and fewer can fit a wrong equation by chance; add samples"]


def travels(selection: Selection) -> list[str]:
    """The reason not to call a mere translation identified: waves of many equations travel unchanged."""
    steady = {f"{selection.target.removesuffix('_t')}_{axis}" for axis in "xyz"}
    if not {_VARYING.sub("", term) for term in selection.support} <= steady:
        return []
    for speed in selection.curves.values():
        # Some constant lies within the band everywhere, or the speed varies.
        if (speed.values - _BAND * speed.errors).max() > (speed.values + _BAND * speed.errors).min():
            return []
    return ["the field only travels, as steady waves of many equations do; measure another initial state"]


def state_verdict(
    tests: SupportTests, evidence: Evidence, params: VerdictParams, target: str = "u_t"
) -> Verdict:
    """The verdict on the equation of `target`, every failed test a sentence."""
    chosen, failed = tests.chosen, {name for name, value in tests.margins.items() if value < 1}
    reasons, status = [], "identified"
    if not chosen.support:
        reasons.append(
            "no term stands out: no equation of the library explains how the field changes; measure a record "
            "in which it moves, with less noise, or add terms"
        )
    elif "significance" in failed:
        reasons.append(_insignificant(evidence, chosen, params))
    if "expectation" in failed:
        reasons.append(
            f"every equation in the library leaves at least {tests.risk_ratio:.1f} times what the field's "
            "uncertainty lets expect: a term is missing, or the field is worse than it knows: add terms"
        )
    if "risk" in failed:
        reasons.append(
            f"{chosen.risk:.0%} of {target} is unexplained, more than {params.risk:.0%}: add samples or terms"
        )
    if reasons:
        status = "not identifiable"
    elif failed:
        status = "ambiguous"
    if "rivals" in failed:
        reasons += _exchanges(tests, evidence, params)
    if "completeness" in failed:
        reasons.append(_incomplete(tests, evidence, target))
    shown = (*tests.rivals, *tests.additions)[:SHOWN]
    rivals = tuple(_rival(rival, evidence, target) for rival in shown)
    expected, margin = chosen.expected, tests.margin
    return Verdict(
        status, tuple(reasons), rivals, risk=chosen.risk, of=target, expected=expected, margin=margin
    )


def _insignificant(evidence: Evidence, chosen: SupportFit, params: VerdictParams) -> str:
    values = zip(chosen.support, chosen.t_values, strict=True)
    weak = [f"{evidence.library.names[j]} ({t:.1f})" for j, t in values if t < params.significance]
    least = f"{params.significance:g} standard errors"
    return f"{', '.join(weak)}: coefficients of less than {least}; {MORE_SAMPLES}"


def _exchanges(tests: SupportTests, evidence: Evidence, params: VerdictParams) -> list[str]:
    """Terms that other plausible equations do without, and the terms that stand in for them."""
    chosen, names, sentences = set(tests.chosen.support), evidence.library.names, []
    for rival in tests.rivals:
        gone, new = sorted(chosen - set(rival.support)), sorted(set(rival.support) - chosen)
        pairs = [(i, j) for i in gone for j in new if abs(evidence.cosine(i, j)) > params.alike]
        if pairs:
            alike = " and ".join(names[j] for j in pairs[0])
            sentence = f"{alike} cannot be told apart: on this field they are proportional"
        else:
            without, instead = (" and ".join(names[j] for j in terms) for terms in (gone, new))
            sentence = f"without {without} another equation explains the samples as well"
            sentence += f", with {instead} instead" if new else ""
        if sentence not in sentences:
            sentences.append(sentence)
    return [f"{sentence}; {MORE_WAVES}" for sentence in sentences[:2]]


def _incomplete(tests: SupportTests, evidence: Evidence, target: str) -> str:
    chosen = set(tests.chosen.support)
    added = [j for larger in tests.additions for j in larger.support if j not in chosen]
    names = [evidence.library.names[j] for j in added]
    excluded = f"{', '.join(names)} cannot be excluded"
    return f"{excluded}: the samples do not bound their part in {target}; {MORE_SAMPLES}"


def _rival(fit: SupportFit, evidence: Evidence, target: str) -> Rival:
    terms = tuple(evidence.library[j] for j in fit.support)
    return Rival(Equation(terms, evidence.coefficients(fit)[list(fit.support)], target), fit.risk)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
