"""Other symbolic regression on the same field: Operon and PySR (Section F, Table S13).

Symbolic regression fits values, so it needs values of q first. `spline_target` solves u_t = D_xx q(u) weakly
for a sum of centered cubic B-splines in u, with penalties on the coefficients' second differences and their
sum, to which D_xx is blind. Operon's last population gives a Pareto front, and `choose_from` takes one of it
by either of PySR's rules: a step along the front scores the fall of the logarithm of the error per node;
"best" takes the highest score among the functions whose error is at most one and a half times the least,
"score" the highest of all.
"""

import os
import shutil
import sys
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from fts.equations.algebra import add, constant, scale
from fts.equations.expressions import Expression
from fts.equations.grammar import TermError, read
from fts.equations.terms import IDENTITY, conserve
from fts.fields.frozen import Field
from fts.params.types import FieldParams, WeakParams
from fts.symbolic.occupation import StateSystem, spline_basis, state_systems

_MIDDLE = np.zeros(2)  # the phase of the one system
_NEAR_BEST = 1.5  # PySR's own factor in its rule "best"
# Where PySR's own installer puts Julia, below the environment.
_INSTALLED = Path("julia_env") / "pyjuliapkg" / "install" / "bin" / "julia"

FrontRule = Literal["best", "score"]
_WEAK = WeakParams(half_widths=(0.2, 0.03), patches=(32, 16), nodes=(24, 16), power=6)


@dataclass(frozen=True)
class TargetParams:
    """q_hat(u) as a spline in u, from one weak system: the pairs that symbolic regression is given."""

    weak: WeakParams = _WEAK
    grid_states: int = 1024  # states that the integrals of the system are pushed onto
    basis: int = 7  # centered cubic B-splines in u
    pairs: int = 512  # states at which q_hat is handed on
    # Share of the nodes below the first knot, and above the last: the paper does not give it. Chosen on the
    # development seeds: of knots and states over the whole range, at quantiles, and over the middle 98 %, the
    # last leaves the smallest error in the exponent, on noisy grids and kernel fields.
    trim: float = 0.01
    curvature_penalty: float = 1e-6  # on second differences of the coefficients, for a system of unit norm
    offset_penalty: float = 1e-6  # on their sum, which no derivative sees


@dataclass(frozen=True)
class PySRParams:
    """The paper's PySR search, under PySR's own names."""

    niterations: int = 100
    populations: int = 10
    population_size: int = 40
    operators: tuple[str, ...] = ("+", "*", "^")
    maxsize: int = 15
    maxdepth: int = 6
    exponent_complexity: int = 1  # nodes in an exponent, at most
    parsimony: float = 1e-4
    model_selection: str = "best"


@dataclass(frozen=True)
class OperonParams:
    """An Operon search as large as the paper's PySR search, and the rule that takes one of its front."""

    symbols: tuple[str, ...] = ("add", "mul", "pow", "constant", "variable")
    population: int = 400
    generations: int = 100
    tree_length: int = 15
    tree_depth: int = 6
    constant_steps: int = 5  # Levenberg-Marquardt steps on the constants of every individual
    convergence: float = 1e-12  # Operon's own stop on the error
    digits: int = 12  # decimals of the constants read off an individual


@dataclass(frozen=True)
class RivalRunParams:
    """Operon on samples: the field its pairs are read off, or none for the samples of a whole grid."""

    field: FieldParams | None
    target: TargetParams
    operon: OperonParams


TARGET, PYSR, OPERON = TargetParams(), PySRParams(), OperonParams()


@dataclass(frozen=True)
class Target:
    """States and the estimated function on them, known up to a constant; and the system they came from."""

    u: Float[np.ndarray, " n"]
    q: Float[np.ndarray, " n"]
    system: StateSystem


@dataclass(frozen=True)
class FrontMember:
    """A function with its size as the method counts it and its mean squared error on the pairs."""

    q: Expression
    size: int
    error: float


def spline_target(field: Field, params: TargetParams) -> Target:
    """q_hat(u) at equally spaced states between the outermost knots."""
    (system,) = state_systems(field, [(params.weak, _MIDDLE)], params.grid_states)
    low, high = _range(field, params)
    basis = spline_basis(low, high, params.basis)
    u = np.linspace(low, high, params.pairs)
    values = basis(u)
    q = (values - values.mean(axis=0)) @ _coefficients(system, basis(system.states), params)
    return Target(u, q, system)


def read_function(text: str) -> Expression | None:
    """The function of a rival's text; None where an exponent varies with u or the text has no value."""
    try:
        return conserve(read(text)).get(IDENTITY)
    except (TermError, OverflowError, ZeroDivisionError):
        return None


def rescaled(q: Expression, size: int, target: Target) -> FrontMember | None:
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
    return FrontMember(add(scale(q, float(factor)), constant(float(offset))), size, error)


def pareto(functions: Iterable[FrontMember]) -> tuple[FrontMember, ...]:
    """Those that no smaller or equally small one beats, smallest first."""
    front: list[FrontMember] = []
    for function in sorted(functions, key=lambda function: (function.size, function.error)):
        if not front or function.error < front[-1].error:
            front.append(function)
    return tuple(front)


def choose_from(front: tuple[FrontMember, ...], rule: FrontRule) -> FrontMember:
    """What PySR's rule takes of the front."""
    if not front:
        raise ValueError("nothing was found: give the search more generations or a larger population")
    tiny = np.finfo(float).tiny
    errors = np.log([max(function.error, tiny) for function in front])
    sizes = np.array([function.size for function in front], dtype=float)
    scores = np.concatenate([[0.0], -np.diff(errors) / np.diff(sizes)])
    limit = np.inf if rule == "score" else np.log(_NEAR_BEST) + errors.min()
    return front[int(np.argmax(np.where(errors <= limit, scores, -np.inf)))]


def operon_front(target: Target, params: OperonParams, seed: int) -> tuple[FrontMember, ...]:
    """The front of an Operon search for functions that fit the pairs.

    Exponents in Operon may be any expression; the paper's PySR search allows constants alone, so individuals
    with other exponents are left out.
    """
    regressor = _regressor(params, seed)
    with warnings.catch_warnings():
        # An individual without the variable is one of the population; it is dropped as a constant below.
        warnings.filterwarnings("ignore", message="Model contains no variables")
        regressor.fit(target.u[:, None], target.q)
        trees = [individual.Genotype for individual in regressor.individuals_]
        texts = {regressor.get_model_string(tree, params.digits, ["u"]): tree.Length for tree in trees}
    return front_of(texts, target)


def front_of(texts: dict[str, int], target: Target) -> tuple[FrontMember, ...]:
    """The front of the functions among the texts, each with its size."""
    functions = [(read_function(text), size) for text, size in texts.items()]
    candidates = [rescaled(q, size, target) for q, size in functions if q is not None]
    return pareto(candidate for candidate in candidates if candidate is not None)


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
    values = asdict(params)
    operators, exponent = values.pop("operators"), values.pop("exponent_complexity")
    return values | {
        "binary_operators": list(operators),
        "constraints": {"^": (-1, exponent)},  # any base
        "random_state": seed,
        "deterministic": True,
        "parallelism": "serial",
        "progress": False,
        "verbosity": 0,
        "temp_equation_file": True,
        "delete_tempfiles": True,
    }


def pysr_function(target: Target, params: PySRParams, seed: int, regressor: Any = None) -> Expression | None:
    """The function PySR settles on; None when it is no function of the package's grammar.

    PySR starts Julia when it is imported, so it is imported here alone, and `missing` says why it cannot be.

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


def _coefficients(system: StateSystem, basis: np.ndarray, params: TargetParams) -> np.ndarray:
    """Penalized least squares; the system is scaled to unit norm, so the penalties have no dimension."""
    A = system.on_states[2] @ basis
    size = np.linalg.norm(A)
    second = np.diff(np.eye(params.basis), 2, axis=0)
    offset = np.full((1, params.basis), np.sqrt(params.offset_penalty))
    rows = np.concatenate([A / size, np.sqrt(params.curvature_penalty) * second, offset])
    right = np.concatenate([system.b / size, np.zeros(len(second) + 1)])
    return np.linalg.lstsq(rows, right, rcond=None)[0]


def _range(field: Field, params: TargetParams) -> tuple[float, float]:
    """The states between which the field spends all but the trimmed share of its time, on an even grid."""
    counts = [m * n for m, n in zip(params.weak.patches, params.weak.nodes, strict=True)]
    ends = zip((*field.domain.low, field.domain.t0), field.domain.extents, counts, strict=True)
    axes = [low + extent * (np.arange(n) + 0.5) / n for low, extent, n in ends]
    low, high = np.quantile(field.on_grid(*axes), [params.trim, 1 - params.trim])
    return float(low), float(high)


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
