"""Field -> pairs (u, q_hat(u)): a spline in u that solves u_t = D_xx q(u) weakly (Section F).

Symbolic regression fits values, so a rival needs values of q first. q_hat is a sum of centered cubic
B-splines whose coefficients solve one weak system in least squares, with penalties on their second
differences and on their sum, to which D_xx is blind.

What a rival found -> the function it settles on: texts, their Pareto front, and a choice from it.

The two rules are PySR's: a step along the front scores the fall of the logarithm of the error per node.
"best" takes the highest score among the functions whose error is at most one and a half times the least,
"score" the highest of all.

Operon (`pyoperon`) on the pairs of a target: its last population -> a front of functions of u.

Exponents in Operon may be any expression. The paper's PySR search allows a constant there, so what is read
off the population is every individual whose exponents are constants; the front is theirs.

PySR on the pairs of a target, with the paper's settings (Section F, Table S13).

PySR starts Julia when it is imported, so it is imported inside the one function that calls it, and
`missing` says beforehand why it cannot be.
"""

import os
import shutil
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline

from fts.equations.algebra import add, constant, scale
from fts.equations.expressions import STATE, Expression, Factor
from fts.equations.grammar import TermError, read
from fts.equations.terms import IDENTITY, conserve
from fts.fields.frozen import Field
from fts.symbolic import trees
from fts.symbolic.families import Form, canonical
from fts.symbolic.occupation import StateSystem, state_systems
from fts.symbolic.settings import OperonParams, PySRParams, TargetParams
from fts.symbolic.trees import Tree

_DEGREE = 3
_MIDDLE = np.zeros(2)  # the phase of the one system


@dataclass(frozen=True)
class Target:
    """States and the estimated function on them, known up to a constant; and the system they came from."""

    u: Float[np.ndarray, " n"]
    q: Float[np.ndarray, " n"]
    system: StateSystem


def spline_target(field: Field, params: TargetParams) -> Target:
    """q_hat(u) at equally spaced states between the outermost knots."""
    (system,) = state_systems(field, [(params.weak, _MIDDLE)], params.grid_states)
    low, high = _range(field, params)
    basis = spline_basis(low, high, params.basis)
    u = np.linspace(low, high, params.pairs)
    values = basis(u)
    q = (values - values.mean(axis=0)) @ _coefficients(system, basis(system.states), params)
    return Target(u, q, system)


def spline_basis(low: float, high: float, count: int) -> BSpline:
    """Clamped cubic B-splines on [low, high]; beyond, the end polynomials go on."""
    inner = np.linspace(low, high, count - _DEGREE + 1)
    knots = np.concatenate([[low] * _DEGREE, inner, [high] * _DEGREE])
    return BSpline(knots, np.eye(count), _DEGREE)


def _coefficients(system: StateSystem, basis: np.ndarray, params: TargetParams) -> np.ndarray:
    """Penalized least squares; the system is scaled to unit norm, so the penalties have no dimension."""
    A = system.on_states[2] @ basis
    size = np.linalg.norm(A)
    second = np.diff(np.eye(params.basis), 2, axis=0)
    rows = [
        A / size,
        np.sqrt(params.curvature_penalty) * second,
        np.full((1, params.basis), np.sqrt(params.offset_penalty)),
    ]
    right = np.concatenate([system.b / size, np.zeros(len(second) + 1)])
    return np.linalg.lstsq(np.concatenate(rows), right, rcond=None)[0]


def _range(field: Field, params: TargetParams) -> tuple[float, float]:
    """The states between which the field spends all but the trimmed share of its time, on an even grid."""
    counts = [m * n for m, n in zip(params.weak.patches, params.weak.nodes, strict=True)]
    ends = zip((*field.domain.low, field.domain.t0), field.domain.extents, counts, strict=True)
    axes = [low + extent * (np.arange(n) + 0.5) / n for low, extent, n in ends]
    low, high = np.quantile(field.on_grid(*axes), [params.trim, 1 - params.trim])
    return float(low), float(high)


FrontRule = Literal["best", "score"]
# PySR's own factor in its rule "best".
_NEAR_BEST = 1.5


@dataclass(frozen=True)
class Found:
    """A function with its size in the rival's own count and its mean squared error on the pairs."""

    q: Expression
    size: int
    error: float


def read_function(text: str) -> Expression | None:
    """The function of a rival's text; None where an exponent varies with u or the text has no value."""
    try:
        return conserve(read(text)).get(IDENTITY)
    except (TermError, OverflowError, ZeroDivisionError):
        return None


def fitted(q: Expression, size: int, target: Target) -> Found | None:
    """The function with the scale and offset that fit the pairs best; None for a constant, or no value."""
    try:
        values = q(target.u)
    except ValueError:
        return None
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return None
    columns = np.stack([values, np.ones_like(values)], axis=1)
    (factor, offset), *_ = np.linalg.lstsq(columns, target.q, rcond=None)
    error = float(np.mean((columns @ [factor, offset] - target.q) ** 2))
    return Found(add(scale(q, float(factor)), constant(float(offset))), size, error)


def pareto(found: Iterable[Found]) -> tuple[Found, ...]:
    """Those that no smaller or equally small one beats, smallest first."""
    front: list[Found] = []
    for one in sorted(found, key=lambda one: (one.size, one.error)):
        if not front or one.error < front[-1].error:
            front.append(one)
    return tuple(front)


def choose_from(front: tuple[Found, ...], rule: FrontRule) -> Found:
    """What PySR's rule takes of the front."""
    if not front:
        raise ValueError("nothing was found: give the search more generations or a larger population")
    tiny = np.finfo(float).tiny
    errors = np.log([max(one.error, tiny) for one in front])
    sizes = np.array([one.size for one in front], dtype=float)
    scores = np.concatenate([[0.0], -np.diff(errors) / np.diff(sizes)])
    limit = np.inf if rule == "score" else np.log(_NEAR_BEST) + errors.min()
    return front[int(np.argmax(np.where(errors <= limit, scores, -np.inf)))]


def form_of(q: Expression) -> Form | None:
    """The form that scores ours; None for a constant, and for what is no quotient of sums of powers."""
    tree = _tree_of(q)
    return canonical(tree) if tree is not None else None


def _tree_of(q: Expression) -> Tree | None:
    total: Tree | None = None
    for factors, coefficient in q.monomials:
        product: Tree | None = trees.constant(coefficient)
        for factor, exponent in factors:
            product = _times_power(product, factor, exponent)
        if product is None:
            return None
        total = product if total is None else Tree("+", parts=(total, product))
    return total


def _times_power(left: Tree | None, factor: Factor, exponent: float) -> Tree | None:
    """left * factor^exponent; a bracket may stand under a fraction, but under no other power."""
    if left is None:
        return None
    if factor == STATE:
        return Tree("*", parts=(left, trees.state_power(exponent)))
    inner = _tree_of(factor.argument) if factor.name == "" and exponent == -1.0 else None
    return Tree("/", parts=(left, inner)) if inner is not None else None


def operon_front(target: Target, params: OperonParams, seed: int) -> tuple[Found, ...]:
    """The front of an Operon search for functions that fit the pairs."""
    regressor = _regressor(params, seed)
    with warnings.catch_warnings():
        # An individual without the variable is one of the population; it is dropped as a constant below.
        warnings.filterwarnings("ignore", message="Model contains no variables")
        regressor.fit(target.u[:, None], target.q)
        texts = {
            regressor.get_model_string(one.Genotype, params.digits, ["u"]): one.Genotype.Length
            for one in regressor.individuals_
        }
    return front_of(texts, target)


def front_of(texts: dict[str, int], target: Target) -> tuple[Found, ...]:
    """The front of the functions among the texts, each with its size."""
    functions = [(read_function(text), size) for text, size in texts.items()]
    found = [fitted(q, size, target) for q, size in functions if q is not None]
    return pareto(one for one in found if one is not None)


def _regressor(params: OperonParams, seed: int) -> Any:
    try:
        from pyoperon.sklearn import SymbolicRegressor
    except ImportError:
        raise ValueError("Operon is not installed: pip install 'fts[symbolic]'") from None
    return SymbolicRegressor(
        allowed_symbols=",".join(params.symbols),
        objectives=["r2", "length"],
        population_size=params.population,
        generations=params.generations,
        max_evaluations=params.population * params.generations * (2 + params.constant_steps),
        max_length=params.tree_length,
        max_depth=params.tree_depth,
        optimizer_iterations=params.constant_steps,
        epsilon=params.convergence,
        n_threads=1,
        random_state=seed,
    )


# Where PySR's own installer puts Julia, below the environment.
_INSTALLED = Path("julia_env") / "pyjuliapkg" / "install" / "bin" / "julia"


def missing() -> str:
    """Why PySR cannot run here; empty when it can."""
    if find_spec("pysr") is None:
        return "PySR is not installed: pip install 'fts[symbolic]'"
    named = os.environ.get("PYTHON_JULIAPKG_EXE")
    if shutil.which(named or "julia") or (Path(sys.prefix) / _INSTALLED).is_file():
        return ""
    return "PySR needs Julia, and there is none on the path: install it from julialang.org"


def settings(params: PySRParams, seed: int) -> dict[str, Any]:
    """The keyword arguments of PySRRegressor; serial, so that a seed fixes the run."""
    return {
        "model_selection": params.model_selection,
        "niterations": params.niterations,
        "populations": params.populations,
        "population_size": params.population_size,
        "binary_operators": list(params.operators),
        "constraints": {"^": (-1, params.exponent_complexity)},  # any base
        "maxsize": params.maxsize,
        "maxdepth": params.maxdepth,
        "parsimony": params.parsimony,
        "random_state": seed,
        "deterministic": True,
        "parallelism": "serial",
        "progress": False,
        "verbosity": 0,
        "temp_equation_file": True,
        "delete_tempfiles": True,
    }


def pysr_function(
    target: Target, params: PySRParams, seed: int, regressor: Any | None = None
) -> Expression | None:
    """The function PySR settles on; None when it is no function of the package's grammar.

    `regressor` stands in for PySRRegressor(**settings(params, seed)).
    """
    if regressor is None:
        reason = missing()
        if reason:
            raise ValueError(reason)
        from pysr import PySRRegressor

        regressor = PySRRegressor(**settings(params, seed))
    regressor.fit(target.u[:, None], target.q, variable_names=["u"])
    return read_function(str(regressor.sympy()).replace("**", "^"))
