"""A user's samples -> an equation to trust, or an honest "not identifiable": fit, freeze, select, doubt.

The verdict uses no truth. Every doubt is a sentence with the number behind it and what would remove it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fts.domain import Domain
from fts.equations.equation import Equation
from fts.fields.frozen import FrozenField
from fts.observations import Observations
from fts.params import DOUBT, LIBRARIES, DoubtParams
from fts.readers.samples import read_samples
from fts.recipes import Recipe, fit_with_variance
from fts.svws.select import select
from fts.svws.selection import Selection
from fts.svws.settings import resolve_library

# What is tried when a user names no library: the paper's, by the number of spatial axes.
_DEFAULT_LIBRARY = {
    1: LIBRARIES["ks"],
    2: LIBRARIES["ad"],
    3: ("1", "u", "u^2", "u_x", "u_y", "u_z", "u_xx", "u_yy", "u_zz"),
}


@dataclass(frozen=True)
class Discovery:
    """What was found in a file of samples, and every reason to doubt it."""

    observations: Observations
    field: FrozenField
    selection: Selection
    doubts: tuple[str, ...]

    @property
    def identified(self) -> bool:
        """True when nothing speaks against the equation."""
        return not self.doubts

    @property
    def equation(self) -> Equation:
        """The selected equation, whether or not it is to be trusted."""
        return self.selection.equation

    def __str__(self) -> str:
        if self.identified:
            return f"{self.equation}\n{_spreads(self.selection)}"
        return "\n".join(
            ["not identifiable from these samples", f"best candidate: {self.equation}", *self.doubts]
        )

    def _repr_markdown_(self) -> str:
        if self.identified:
            return f"${self.equation.latex}$"
        doubts = "".join(f"\n- {doubt}" for doubt in self.doubts)
        return f"**Not identifiable from these samples.** Best candidate: ${self.equation.latex}$\n{doubts}"


def discover(
    samples: str | Path | Observations,
    library: str | Sequence[str] | None = None,
    *,
    recipe: Recipe = "auto",
    domain: Domain | None = None,
    progress: bool = True,
) -> Discovery:
    """Everything from samples to verdict: `samples` is a file (see read_samples) or Observations.

    `library` is a list of terms or a name; by default the paper's for the number of spatial axes.
    `domain` says where the field lives and which axes are periodic, by default the samples' bounding box.
    """
    observations = samples if isinstance(samples, Observations) else read_samples(samples, domain)
    dimension = observations.domain.dimension
    # Before the fit: a misspelt term should not be waited for.
    terms = resolve_library(library if library is not None else _DEFAULT_LIBRARY[dimension])
    terms.check_dimension(dimension)
    field, variance = fit_with_variance(observations, recipe, progress=progress)
    selection = select(field, terms, variance=variance)
    return Discovery(observations, field, selection, doubts(observations, field, selection, DOUBT))


def doubts(
    observations: Observations, field: FrozenField, selection: Selection, params: DoubtParams
) -> tuple[str, ...]:
    """Reasons not to trust a selection, each with its number and remedy; empty when there is none."""
    found = []
    misfit = _misfit(observations, field)
    if misfit > params.misfit:
        found.append(
            f"the field leaves {misfit:.0%} of the samples' variance: add samples or try another recipe"
        )
    if not selection.support:
        return (
            *found,
            "no term was selected: add the governing terms to the library, or more samples",
        )
    trace = selection.trace
    if trace is not None and trace.fallback:
        found.append(
            f"no support recurred in {trace.tau:.0%} of the proposals, the patches disagree: add samples"
        )
    risk = float(selection.risks.mean())
    if risk > params.risk:
        found.append(
            f"the equation leaves {risk:.0%} of u_t unexplained on held-out patches: add samples or terms"
        )
    for name, (low, high) in selection.intervals.items():
        if low <= 0 <= high:
            found.append(
                f"the coefficient of {name} changes sign ({low:.3g} to {high:.3g} over systems): add samples"
            )
    return tuple(found)


def _misfit(observations: Observations, field: FrozenField) -> float:
    residual = field(np.column_stack([observations.x, observations.t])) - observations.y
    return float(np.mean(residual**2) / np.var(observations.y))


def _spreads(selection: Selection) -> str:
    lines = [f"  {name}: {low:.4g} to {high:.4g}" for name, (low, high) in selection.intervals.items()]
    return "\n".join(["coefficients over single systems:", *lines])
