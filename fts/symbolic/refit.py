"""The continuous fit: a form's coefficients and exponents on an independent weak system (Table S13)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from fts.symbolic.families import Form
from fts.symbolic.occupation import StateSystem
from fts.symbolic.settings import SymbolicParams


def refit(form: Form, system: StateSystem, params: SymbolicParams) -> Form | None:
    """The form with the numbers that fit `system` best within the bounds; None where it has a pole."""
    u = positive_states(system, params)
    size = np.linalg.norm(system.b)
    return fit_numbers(
        form,
        lambda one: (system.column(one.values(u)) - system.b) / size,
        lambda one: system.on_states[2] @ one.jacobian(u) / size,
        u,
        params,
    )


def fit_numbers(
    form: Form,
    residuals: Callable[[Form], Float[np.ndarray, " m"]],
    jacobian: Callable[[Form], Float[np.ndarray, "m n"]],
    u: Float[np.ndarray, " s"],
    params: SymbolicParams,
    **options: Any,
) -> Form | None:
    """Bounded least squares from the form's own numbers; `options` go to SciPy (a loss, its scale)."""
    low, high = bounds(form, params)
    start = np.clip(form.parameters, low, high)
    if has_pole(form.with_parameters(start), u):
        return None

    def at(values: np.ndarray) -> np.ndarray:
        one = form.with_parameters(values)
        # A step that puts a pole among the states is refused by the solver, which halves it.
        return np.full(residuals(form).shape, np.nan) if has_pole(one, u) else residuals(one)

    derivative: Any = lambda values: jacobian(form.with_parameters(values))  # noqa: E731
    found = least_squares(
        at,
        start,
        derivative,
        bounds=(low, high),
        x_scale="jac",
        max_nfev=params.continuous.evaluations,
        **options,
    )
    return form.with_parameters(found.x)


def positive_states(system: StateSystem, params: SymbolicParams) -> Float[np.ndarray, " s"]:
    """What a power sees of the states."""
    return np.maximum(system.states, params.protection.power_floor)


def has_pole(form: Form, u: Float[np.ndarray, " s"]) -> bool:
    """Whether the denominator comes near zero or changes its sign among the states."""
    below = form.below(u)
    return bool(below.min() < 1e-3 * max(1.0, float(np.abs(below).max())))


def bounds(form: Form, params: SymbolicParams) -> tuple[np.ndarray, np.ndarray]:
    """Per parameter: exponents, coefficients of the numerator (scales), those of the denominator."""
    settings = params.continuous
    above = sum(2 if exponent else 1 for exponent, _ in form.numerator)
    kinds = [
        settings.exponent_bounds
        if exponent
        else settings.scale_bounds
        if i < above
        else settings.constant_bounds
        for i, exponent in enumerate(form.is_exponent)
    ]
    low, high = np.array(kinds).T
    return low, high
