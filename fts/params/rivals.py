"""The rivals of the symbolic search: what they regress on, and their settings (Section F, Table S13)."""

from dataclasses import dataclass

from fts.params.symbolic import SYMBOLIC, SymbolicParams
from fts.params.types import FieldParams, WeakParams


@dataclass(frozen=True)
class TargetParams:
    """q_hat(u) as a spline in u, from one weak system: the pairs that symbolic regression is given."""

    weak: WeakParams
    grid_states: int  # states that the integrals of the system are pushed onto
    basis: int  # centered cubic B-splines in u
    pairs: int  # states at which q_hat is handed on
    trim: float  # share of the nodes below the first knot, and above the last: the paper does not give it
    curvature_penalty: float  # on second differences of the coefficients, for a system of unit norm
    offset_penalty: float  # on their sum, which no derivative sees


@dataclass(frozen=True)
class PySRParams:
    """The paper's PySR search, under PySR's own names."""

    niterations: int
    populations: int
    population_size: int
    operators: tuple[str, ...]
    maxsize: int
    maxdepth: int
    exponent_complexity: int  # nodes in an exponent, at most
    parsimony: float
    model_selection: str


@dataclass(frozen=True)
class OperonParams:
    """An Operon search as large as the paper's PySR search, and the rule that takes one of its front."""

    symbols: tuple[str, ...]
    population: int
    generations: int
    tree_length: int
    tree_depth: int
    constant_steps: int  # Levenberg-Marquardt steps on the constants of every individual
    convergence: float  # Operon's own stop on the error
    digits: int  # decimals of the constants read off an individual


@dataclass(frozen=True)
class ComposedParams:
    """The search with a choice of operators and up to two terms; not in the paper."""

    symbolic: SymbolicParams
    orders: tuple[int, ...]  # derivatives in x that may stand before a function
    terms: int  # most terms
    stand_in: int  # splines in u that stand in for the other function while one is sought
    partners: int  # families kept per operator, each paired with each of the other's
    joint_evaluations: int  # of the residual, in the joint fit of all numbers of a right-hand side
    extents: tuple[float, float]  # of the domain that the half-widths of the patches belong to


@dataclass(frozen=True)
class RivalRunParams:
    """Operon on samples: the field its pairs are read off, or none for the samples of a whole grid."""

    field: FieldParams | None
    target: TargetParams
    operon: OperonParams


@dataclass(frozen=True)
class ComposedRunParams:
    """A search for operators and functions on samples."""

    field: FieldParams
    composed: ComposedParams


# The trim was chosen on the development seeds: of knots and states over the whole range, at quantiles, and
# over the middle 98 %, the last leaves the smallest error in the exponent, on noisy grids and kernel fields.
TARGET = TargetParams(
    weak=WeakParams(half_widths=(0.2, 0.03), patches=(32, 16), nodes=(24, 16), power=6),
    grid_states=1024,
    basis=7,
    pairs=512,
    trim=0.01,
    curvature_penalty=1e-6,
    offset_penalty=1e-6,
)
PYSR = PySRParams(
    niterations=100,
    populations=10,
    population_size=40,
    operators=("+", "*", "^"),
    maxsize=15,
    maxdepth=6,
    exponent_complexity=1,
    parsimony=1e-4,
    model_selection="best",
)
OPERON = OperonParams(
    symbols=("add", "mul", "pow", "constant", "variable"),
    population=400,
    generations=100,
    tree_length=15,
    tree_depth=6,
    constant_steps=5,
    convergence=1e-12,
    digits=12,
)
COMPOSED = ComposedParams(
    symbolic=SYMBOLIC,
    orders=(0, 1, 2),
    terms=2,
    stand_in=7,
    partners=5,
    joint_evaluations=200,
    extents=(1.0, 0.3),
)
