"""Candidates and Selection: what a selector proposes and what it returns, with the whole trace of the rule.

Every method returns a `Selection`; only SVWS fills in its trace. It prints as an equation and renders in a
notebook.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.fields.varying import Curve
from fts.validation import shortened


@dataclass(frozen=True)
class Candidates:
    """The pool C of distinct supports, in the order of their first proposal, and who proposed them."""

    library: Library
    supports: tuple[tuple[int, ...], ...]  # indices into the library, ascending
    proposals: Int[np.ndarray, "systems thresholds"]  # support proposed by each (system, threshold)
    thresholds: tuple[float, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """v(S), the generation counts."""
        return tuple(np.bincount(self.proposals.ravel(), minlength=len(self.supports)).tolist())

    @property
    def pi(self) -> Float[np.ndarray, " J"]:
        """pi_j, the fraction of proposals that contain term j."""
        total = np.zeros(len(self.library))
        for count, support in zip(self.counts, self.supports, strict=True):
            total[list(support)] += count
        return total / self.proposals.size

    def named(self, index: int) -> tuple[str, ...]:
        """The term texts of one support."""
        return tuple(self.library.names[j] for j in self.supports[index])


@dataclass(frozen=True)
class Trace:
    """Every intermediate of the rule; rows of `xi` and `risks` belong to the supports in `eligible`."""

    candidates: Candidates
    tau: float
    stable: tuple[int, ...]  # J_tau
    fallback: bool  # no support lay within the stable terms, so all are eligible
    eligible: tuple[int, ...]  # C_tau, as indices into candidates.supports
    xi: Float[np.ndarray, "eligible J"]
    risks: Float[np.ndarray, "eligible validation"]
    admissible: tuple[int, ...]  # rows, not supports
    winner: int  # row
    reason: str

    @property
    def mu(self) -> Float[np.ndarray, " eligible"]:
        """Mean validation risk."""
        return self.risks.mean(axis=1)

    @property
    def se(self) -> Float[np.ndarray, " eligible"]:
        """Standard error of the mean: sample deviation over sqrt(R_v), zero for a single system."""
        return standard_error(self.risks)

    @property
    def bound(self) -> float:
        """mu(S_min) + se(S_min), the line of the one-standard-error rule."""
        best = int(np.argmin(self.mu))
        return float(self.mu[best] + self.se[best])

    def table(self) -> list[dict[str, Any]]:
        """One row per eligible support: its terms, count, mean risk, standard error and fate."""
        return [
            {
                "support": self.candidates.named(index),
                "count": self.candidates.counts[index],
                "mu": float(self.mu[row]),
                "se": float(self.se[row]),
                "admissible": row in self.admissible,
                "chosen": row == self.winner,
            }
            for row, index in enumerate(self.eligible)
        ]


@dataclass(frozen=True)
class Refit:
    """Coefficients of the selected support from one way of fitting, their standard errors, held-out risk."""

    xi: Float[np.ndarray, " J"]
    deviation: Float[np.ndarray, " J"]
    risk: float


@dataclass(frozen=True, repr=False)
class Selection:
    """A discovered equation: coefficients on the library, and how they came about."""

    library: Library
    xi: Float[np.ndarray, " J"]  # physical coefficients, zero outside the support
    method: str
    trace: Trace | None = None
    # "ridge" (the paper's), "pooled", "robust", …
    refits: Mapping[str, Refit] = dataclasses.field(default_factory=dict)
    preferred: str = ""  # the refit that `xi` is
    field: Field | None = None  # what the equation was read off, where there is one
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)  # what the stages took
    notes: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what a method reports of its run
    # By other rules on the same systems.
    variants: Mapping[str, "Selection"] = dataclasses.field(default_factory=dict)
    target: str = "u_t"  # the left-hand side
    # Coefficients that are functions of a coordinate, by the text of the term; `xi` is one there.
    curves: Mapping[str, Curve] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.xi.shape != (len(self.library),) or not np.isfinite(self.xi).all():
            raise ValueError(f"{len(self.library)} terms need as many finite coefficients; got {self.xi}")

    @property
    def equation(self) -> Equation:
        """The selected terms with their coefficients."""
        chosen = np.flatnonzero(self.xi)
        return Equation(tuple(self.library[int(j)] for j in chosen), self.xi[chosen], self.target)

    @property
    def support(self) -> tuple[str, ...]:
        """Texts of the selected terms, in the library's order."""
        return tuple(self.coefficients)

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficient by selected term."""
        return {name: float(value) for name, value in zip(self.library.names, self.xi, strict=True) if value}

    @property
    def ridge_coefficients(self) -> dict[str, float]:
        """The paper's coefficients: the ridge refit on the fit system."""
        xi = self.refits["ridge"].xi if "ridge" in self.refits else self.xi
        return {name: float(xi[self.library.index(name)]) for name in self.support}

    @property
    def recurrence(self) -> dict[str, float]:
        """pi_j by term of the library."""
        pi = self._traced().candidates.pi
        return {name: float(value) for name, value in zip(self.library.names, pi, strict=True)}

    @property
    def risks(self) -> Float[np.ndarray, " validation"]:
        """Normalized risks of the selected support on the validation systems."""
        trace = self._traced()
        if ((trace.xi[trace.winner] != 0) != (self.xi != 0)).any():
            raise ValueError("the rule chose other terms than were selected: their risks are in the trace")
        return trace.risks[trace.winner]

    @property
    def deviations(self) -> dict[str, float]:
        """Standard error by selected term, from how it moves when a region of space-time is left out."""
        if self.preferred not in self.refits:
            raise ValueError(f"the selection by {self.method} has no refits to take standard errors from")
        deviation = self.refits[self.preferred].deviation
        return {name: float(deviation[self.library.index(name)]) for name in self.support}

    def curve(self, term: str) -> Curve:
        """The coefficient of a selected term such as c(z)*u_zz as a function with standard errors."""
        name = self.library.names[self.library.index(term)]
        if name not in self.curves:
            known = ", ".join(self.curves) or "no term with a varying coefficient"
            raise ValueError(f"{name} has no curve: selected was {known}, in {shortened(str(self.equation))}")
        return self.curves[name]

    def with_refit(self, name: str) -> "Selection":
        """The same support with the coefficients of the refit `name`."""
        if name not in self.refits:
            raise ValueError(f"no refit {name!r}: there are {', '.join(self.refits) or 'none'}")
        return replace(self, xi=self.refits[name].xi, preferred=name)

    def __str__(self) -> str:
        return str(self.equation)

    def __repr__(self) -> str:
        return f"<Selection by {self.method}: {shortened(str(self.equation))}>"

    def _repr_latex_(self) -> str:
        return f"${self.equation.latex}$"

    def _traced(self) -> Trace:
        if self.trace is None:
            raise ValueError(f"the selection by {self.method} has no trace: fts.select makes one that has")
        return self.trace


def standard_error(risks: Float[np.ndarray, "n validation"]) -> Float[np.ndarray, " n"]:
    """Sample standard deviation (ddof = 1) over the square root of the number of validation systems."""
    n = risks.shape[1]
    return risks.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(risks))
