"""What every number of the symbolic search means, and what the paper used (Section F, Tables S12 and S13).

The rivals of the symbolic search: what they regress on, and their settings (Section F, Table S13).
"""

from dataclasses import dataclass

from fts.params.types import FieldParams, WeakParams


@dataclass(frozen=True)
class ProtectionParams:
    """What keeps every tree finite on every field."""

    denominator_floor: float  # smallest |denominator|; its sign is kept
    largest_value: float  # every value lies within plus or minus this
    power_floor: float  # what u^p sees is at least this


@dataclass(frozen=True)
class TreeParams:
    """The trees that can be made: their leaves, operators and limits."""

    exponents: tuple[float, ...]  # of the leaves u^p at initialization
    leaf_weights: tuple[float, float, float]  # chances of u, a constant, u^p; the paper does not give them
    operator_weights: tuple[float, float, float, float]  # chances of +, -, *, /
    constant_spread: float  # deviation of a new constant; the paper does not give it
    step: float  # deviation of a mutated exponent or, relatively, constant; the paper does not give it
    max_depth: int
    max_nodes: int  # complexity cap: operators and leaves, u^p being one


@dataclass(frozen=True)
class EvolutionParams:
    """One search for expressions."""

    searches: int  # independent searches, whose representatives are merged
    population: int
    generations: int
    elite: int
    mutation: float
    crossover: float  # what is left of 1 is copied
    tournament: int  # the paper does not give it
    search_penalty: float  # per node, on the risk that evolution sees


@dataclass(frozen=True)
class PatchParams:
    """The weak systems of a run: a small one fits a candidate's scale, a large one judges it."""

    search_half_widths: tuple[float, float]  # of the searches and of the validation
    refit_half_widths: tuple[float, float]
    small: tuple[int, int]  # patches of systems that fit or generate
    large: tuple[int, int]  # patches of systems that validate
    quadrature: tuple[int, int]  # nodes per patch
    smoothness: int  # p of the test function
    states: int  # cells of the grid of state values that integrals are pushed onto

    @property
    def proposal(self) -> WeakParams:
        """A system that fits or generates during a search."""
        return self._weak(self.search_half_widths, self.small)

    @property
    def judging(self) -> WeakParams:
        """A system that validates, in a search or at the end."""
        return self._weak(self.search_half_widths, self.large)

    @property
    def refit(self) -> WeakParams:
        """The independent system on which continuous parameters are fitted."""
        return self._weak(self.refit_half_widths, self.small)

    def _weak(self, half_widths: tuple[float, float], patches: tuple[int, int]) -> WeakParams:
        return WeakParams(half_widths, patches, self.quadrature, self.smoothness)


@dataclass(frozen=True)
class ContinuousParams:
    """The continuous fit of the pool, and the choice from it."""

    candidates: int  # families refitted, those of the lowest proposal risk
    exponent_bounds: tuple[float, float]
    constant_bounds: tuple[float, float]
    scale_bounds: tuple[float, float]
    max_parameters: int
    max_divisions: int
    evaluations: int
    validations: int  # held-out systems
    penalty: float  # per node, on the mean held-out risk


@dataclass(frozen=True)
class SymbolicParams:
    """A whole symbolic selection on a frozen field."""

    protection: ProtectionParams
    trees: TreeParams
    evolution: EvolutionParams
    patches: PatchParams
    continuous: ContinuousParams


@dataclass(frozen=True)
class ThawParams:
    """The chosen function fitted to the samples through its own equation; not in the paper."""

    points: int  # of the periodic axis, odd
    waves: int  # of the initial state
    iterations: int
    tolerance: float  # largest change of an unknown that ends the iteration
    least_noise: float  # deviation of the samples below which they count as exact
    least_state: float  # what a power sees of the state at least


@dataclass(frozen=True)
class WeighParams:
    """The chosen function refitted with rows weighted by the field's posterior; not in the paper."""

    draws: int  # fields drawn from the posterior, from which the rows' covariance is estimated
    floor: float  # added to its diagonal, in units of the mean variance of a row


@dataclass(frozen=True)
class SymbolicRunParams:
    """A symbolic run on samples: the field, the selection on it, and what is done to its numbers after."""

    field: FieldParams
    symbolic: SymbolicParams
    thaw: ThawParams | None
    weigh: WeighParams | None = None


SYMBOLIC = SymbolicParams(
    ProtectionParams(denominator_floor=1e-4, largest_value=50.0, power_floor=1e-6),
    TreeParams(
        exponents=tuple(round(0.1 * n, 1) for n in range(5, 31)),  # 1.73 is not among them
        leaf_weights=(0.3, 0.2, 0.5),
        operator_weights=(0.28, 0.18, 0.38, 0.16),
        constant_spread=1.0,
        step=0.2,
        max_depth=6,
        max_nodes=7,
    ),
    EvolutionParams(
        searches=2,
        population=72,
        generations=16,
        elite=8,
        mutation=0.35,
        crossover=0.55,
        tournament=3,
        search_penalty=1e-5,
    ),
    PatchParams(
        search_half_widths=(0.105, 0.03),
        refit_half_widths=(0.14, 0.045),
        small=(16, 8),
        large=(16, 12),
        quadrature=(24, 16),
        smoothness=8,
        states=1024,
    ),
    ContinuousParams(
        candidates=32,
        exponent_bounds=(0.2, 4.0),
        constant_bounds=(-5.0, 5.0),
        scale_bounds=(-10.0, 10.0),
        max_parameters=6,
        max_divisions=1,
        evaluations=35,
        validations=3,
        penalty=1e-3,
    ),
)

THAW = ThawParams(points=41, waves=8, iterations=12, tolerance=1e-6, least_noise=1e-7, least_state=1e-6)
# Chosen on the development seeds: floors from 0.001 to 0.1 and wider patches differ by less than a deviation.
WEIGH = WeighParams(draws=300, floor=0.01)


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
