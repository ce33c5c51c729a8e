"""Selection and field against truth: exact support, F1, E_xi in the physical basis, E_u (Supplement A.2).

This and the plots are the only places where truth meets a selection.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fts.equations.algebra import add, scale
from fts.equations.equation import Equation
from fts.equations.expressions import Expression
from fts.equations.terms import Term
from fts.fields.frozen import Field
from fts.problems.trajectories import Trajectory
from fts.selection.selection import Selection
from fts.symbolic.families import form_of

# The paper's guard against a zero denominator.
_EPSILON = 1e-12


@dataclass(frozen=True)
class Score:
    """How far a selected equation is from the true one."""

    exact: bool
    f1: float
    e_xi: float
    missing: tuple[str, ...]  # true terms not selected
    extra: tuple[str, ...]  # selected terms that are not true

    def as_dict(self) -> dict[str, Any]:
        """JSON form, for records."""
        return asdict(self) | {"missing": list(self.missing), "extra": list(self.extra)}


def score(selected: Selection | Equation, truth: Equation) -> Score:
    """Exact recovery, F1 = 2 |S & S*| / (|S| + |S*|), and E_xi = ||xi - xi*|| / (||xi*|| + 1e-12).

    Both are written in the shared physical basis first, where D_x(u^2) = 2 u*u_x; absent terms are zero.
    """
    equation = selected.equation if isinstance(selected, Selection) else selected
    xi, xi_star = equation.physical(), truth.physical()
    common = xi.keys() & xi_star.keys()
    total = len(xi) + len(xi_star)
    f1 = 2 * len(common) / total if total else 1.0
    missing, extra = _names(xi_star.keys() - xi.keys()), _names(xi.keys() - xi_star.keys())
    return Score(not missing and not extra, f1, _relative(xi, xi_star), missing, extra)


def score_function(selected: Equation, truth: Equation, states: tuple[float, float]) -> dict[str, Any]:
    """How a function q of u_t = d_xx q(u) compares with the true power law on the range of states.

    Exact is the family, kappa u^m up to a constant, whatever its numbers; E_xi is the relative error of q.
    A function without a value on part of the range, as (u - 1)^0.5 has below 1, is an answer and no missing
    one: it recovers nothing, and its E_xi is 1, that of no function at all.
    """
    (q, law), (q_star, _) = _function(selected), _function(truth)
    u = np.linspace(*states, 1001)
    true_values = q_star(u) - q_star(u).mean()
    try:
        values = q(u) - q(u).mean()
    except ValueError:
        law, values = None, np.zeros_like(u)
    error = float(np.linalg.norm(values - true_values) / np.linalg.norm(true_values))
    kappa, m = law or (None, None)
    return {"exact": law is not None, "f1": float(law is not None), "e_xi": error, "kappa": kappa, "m": m}


def score_parts(selected: Equation, truth: Equation, states: tuple[float, float]) -> dict[str, Any]:
    """How the functions behind the operators of u_t = sum of d_x^k q_k(u) compare with the true ones.

    Exact: the same operators, each before a function of the true one's family, whatever its numbers. E_xi is
    the largest relative error of a true q_k on the range of states, up to a constant where k > 0.
    """
    parts, true_parts = _parts(selected), _parts(truth)
    families, true_families = (
        {k: form.family if (form := form_of(q)) is not None else None for k, q in functions.items()}
        for functions in (parts, true_parts)
    )
    common = sum(families.get(k) == family for k, family in true_families.items())
    u = np.linspace(*states, 1001)
    errors = [1.0 if k not in parts else _function_error(parts[k], q, u, k) for k, q in true_parts.items()]
    f1 = 2 * common / (len(families) + len(true_families))
    return {"exact": families == true_families, "f1": f1, "e_xi": max(errors)}


def field_error(field: Field, trajectory: Trajectory) -> float:
    """E_u = ||u_hat - u*|| / ||u*|| over the complete reference grid."""
    size = float(np.linalg.norm(trajectory.u))
    if size == 0:
        raise ValueError("the reference field is zero everywhere: a relative error has no meaning there")
    # Frames in blocks, so that a large grid never has more than a few copies in memory.
    squared = 0.0
    for block in np.array_split(np.arange(trajectory.t.size), max(1, trajectory.u.size >> 22)):
        difference = field.on_grid(*trajectory.axes, trajectory.t[block]) - trajectory.u[..., block]
        squared += float(np.vdot(difference, difference))
    return float(np.sqrt(squared)) / size


def _function(equation: Equation) -> tuple[Expression, tuple[float, float] | None]:
    """q of an equation d_xx q(u), and (kappa, m) where it is a power law."""
    (term,), (coefficient,) = equation.terms, equation.coefficients
    if term.alpha != (2, 0, 0):
        raise ValueError(f"{equation} is not u_t = D_xx(q(u)): score it by its terms")
    size = float(coefficient) * term.scale
    return scale(term.q, size), None if term.q.degree is None else (size, term.q.degree)


def _parts(equation: Equation) -> dict[int, Expression]:
    """q_k by the order k of the derivative before it."""
    parts: dict[int, Expression] = {}
    for term, coefficient in zip(equation.terms, equation.coefficients, strict=True):
        q = scale(term.q, float(coefficient) * term.scale)
        parts[term.order] = add(parts[term.order], q) if term.order in parts else q
    return parts


def _function_error(q: Expression, true_q: Expression, u: np.ndarray, order: int) -> float:
    values, true_values = (f(u) - (f(u).mean() if order else 0.0) for f in (q, true_q))
    return float(np.linalg.norm(values - true_values) / np.linalg.norm(true_values))


def _relative(xi: dict[Term, float], xi_star: dict[Term, float]) -> float:
    terms = xi.keys() | xi_star.keys()
    difference = [xi.get(term, 0.0) - xi_star.get(term, 0.0) for term in terms]
    return float(np.linalg.norm(difference) / (np.linalg.norm(list(xi_star.values())) + _EPSILON))


def _names(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(str(term) for term in sorted(terms))
