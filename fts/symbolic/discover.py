"""Observations -> field -> chosen function -> thawed or weighted function: one run from samples to q(u)."""

import time
from dataclasses import dataclass

import numpy as np

from fts.equations.equation import Equation
from fts.equations.terms import Term
from fts.fields.frozen import FrozenField
from fts.observations import Observations
from fts.params.symbolic import SymbolicRunParams
from fts.recipes import obtain_frozen, possible_fields, posterior_variance
from fts.symbolic.families import POWER_LAW, Form
from fts.symbolic.select import SymbolicSelection, select_function
from fts.symbolic.thaw import Thawed, thaw
from fts.symbolic.weigh import weigh


@dataclass(frozen=True)
class FunctionFound:
    """What a run reports, and what it came from."""

    form: Form
    selection: SymbolicSelection
    thawed: Thawed | None
    field: FrozenField
    seconds: dict[str, float]  # of the core, per stage; the field not included

    @property
    def power_law(self) -> tuple[float, float] | None:
        """(kappa, m) where the function is kappa u^m, else None."""
        return power_law(self.form)

    @property
    def equation(self) -> Equation:
        """u_t = d_xx q(u)."""
        return Equation((Term((2,), 1.0, self.form.expression),), [1.0])


def discover_function(
    observations: Observations, params: SymbolicRunParams, rng: np.random.Generator
) -> FunctionFound:
    """The function q of u_t = d_xx q(u) behind the observations, chosen on their frozen field."""
    field = obtain_frozen(observations, params.field)
    selection = select_function(field, params.symbolic, rng)
    began, thawed, form = time.process_time(), None, selection.chosen.form
    if params.thaw is not None:
        thawed = thaw(form, field, observations, params.thaw)
        form = thawed.form
    elif params.weigh is not None:
        draws = possible_fields(field, posterior_variance(observations), params.weigh.draws, rng)
        form = weigh(form, field, draws, params.symbolic, params.weigh, rng)
    stage = "weigh" if params.weigh is not None else "thaw"
    seconds = selection.seconds | {stage: round(time.process_time() - began, 4)}
    return FunctionFound(form, selection, thawed, field, seconds)


def power_law(form: Form) -> tuple[float, float] | None:
    """(kappa, m) of kappa u^m, else None."""
    if form.family != POWER_LAW:
        return None
    ((exponent, coefficient),) = form.numerator
    return coefficient, exponent
