"""Genetic programming on weak systems: trees -> one representative per family (Section F, Table S13).

Each search has three systems of its own: one fits a tree's scale in closed form, one gives the risk that
evolution sees, one gives the risk by which a family is represented. The evolution is written out here: DEAP's
trees are mutable lists that it compiles by running text as code, and what is left of it, tournaments and a
loop, is shorter than the adapters around it.
"""

from dataclasses import dataclass

import numpy as np

from fts.symbolic.families import Form, canonical
from fts.symbolic.occupation import PatchParams, StateSystem
from fts.symbolic.trees import ProtectionParams, Tree, TreeParams, crossover, evaluate, mutate, random_tree


@dataclass(frozen=True)
class EvolutionParams:
    """One search for expressions."""

    searches: int = 2  # independent searches, whose representatives are merged
    population: int = 72
    generations: int = 16
    elite: int = 8
    mutation: float = 0.35
    crossover: float = 0.55  # what is left of 1 is copied
    tournament: int = 3  # the paper does not give it
    search_penalty: float = 1e-5  # per node, on the risk that evolution sees


@dataclass(frozen=True)
class ContinuousParams:
    """The continuous fit of the pool, and the choice from it."""

    candidates: int = 32  # families refitted, those of the lowest proposal risk
    exponent_bounds: tuple[float, float] = (0.2, 4.0)
    constant_bounds: tuple[float, float] = (-5.0, 5.0)
    scale_bounds: tuple[float, float] = (-10.0, 10.0)
    max_parameters: int = 6
    max_divisions: int = 1
    evaluations: int = 35
    validations: int = 3  # held-out systems
    penalty: float = 1e-3  # per node, on the mean held-out risk


@dataclass(frozen=True)
class SymbolicParams:
    """A whole symbolic selection on a frozen field."""

    protection: ProtectionParams
    trees: TreeParams
    evolution: EvolutionParams
    patches: PatchParams
    continuous: ContinuousParams


SYMBOLIC = SymbolicParams(
    ProtectionParams(), TreeParams(), EvolutionParams(), PatchParams(), ContinuousParams()
)


@dataclass(frozen=True)
class Candidate:
    """A tree with its scale and its risks in one search."""

    tree: Tree
    scale: float
    form: Form | None  # None for a constant, which no equation contains
    risk: float  # on the generation system
    proposal_risk: float  # on the search's own validation system


@dataclass(frozen=True)
class Generation:
    """What a search looked like after one generation."""

    best_risk: float
    risks: tuple[float, ...]  # of the population, ascending
    nodes: tuple[int, ...]  # of the trees in the same order
    best: str
    families: int  # seen so far


@dataclass(frozen=True)
class SearchResult:
    """One finished search."""

    representatives: dict[str, Candidate]  # by family, ascending in proposal risk
    history: tuple[Generation, ...]


@dataclass(frozen=True)
class SearchSystems:
    """The three systems of one search."""

    fit: StateSystem
    generation: StateSystem
    validation: StateSystem


def search(systems: SearchSystems, params: SymbolicParams, rng: np.random.Generator) -> SearchResult:
    """Evolve trees; the best of every family seen, by its risk on the search's validation system."""
    evolution, grammar = params.evolution, params.trees
    known: dict[Tree, Candidate] = {}

    def fitness(candidate: Candidate) -> float:
        return candidate.risk + evolution.search_penalty * candidate.tree.nodes

    def evaluated(trees: list[Tree]) -> list[Candidate]:
        for tree in trees:
            if tree not in known:
                known[tree] = evaluate_candidate(tree, systems, params)
        return sorted((known[tree] for tree in trees), key=fitness)

    population = evaluated([random_tree(grammar, rng) for _ in range(evolution.population)])
    history = [_describe(population, known)]
    for _ in range(evolution.generations):
        population = evaluated(_offspring(population, params, rng))
        history.append(_describe(population, known))
    return SearchResult(_representatives(known), tuple(history))


def evaluate_candidate(tree: Tree, systems: SearchSystems, params: SymbolicParams) -> Candidate:
    """The tree with the scale that fits it and its two risks; a constant has infinite ones."""
    form = canonical(tree)
    if form is None:
        return Candidate(tree, 0.0, None, np.inf, np.inf)
    q = evaluate(tree, systems.fit.states, params.protection)
    scale = systems.fit.scale(q)
    if scale == 0.0:  # protection has flattened it on these states
        return Candidate(tree, 0.0, None, np.inf, np.inf)
    risks = (system.risk(scale * q) for system in (systems.generation, systems.validation))
    return Candidate(tree, scale, form, *risks)


def _offspring(population: list[Candidate], params: SymbolicParams, rng: np.random.Generator) -> list[Tree]:
    """The elite and children beside it, all different while that costs few draws: copies explore nothing."""
    evolution = params.evolution
    trees = dict.fromkeys(candidate.tree for candidate in population[: evolution.elite])
    for _ in range(4 * evolution.population):
        if len(trees) < evolution.population:
            trees.setdefault(_child(population, params, rng))
    return list(trees)


def _child(population: list[Candidate], params: SymbolicParams, rng: np.random.Generator) -> Tree:
    """A mutant, a crossover or a copy of winners of tournaments; the population is sorted."""
    evolution = params.evolution

    def winner() -> Tree:
        return population[int(rng.integers(len(population), size=evolution.tournament).min())].tree

    draw = rng.random()
    if draw < evolution.mutation:
        return mutate(winner(), params.trees, rng)
    if draw < evolution.mutation + evolution.crossover:
        return crossover(winner(), winner(), params.trees, rng)
    return winner()


def _representatives(known: dict[Tree, Candidate]) -> dict[str, Candidate]:
    best: dict[str, Candidate] = {}
    for candidate in sorted(known.values(), key=lambda candidate: candidate.proposal_risk):
        if candidate.form is not None and np.isfinite(candidate.proposal_risk):
            best.setdefault(candidate.form.family, candidate)
    return best


def _describe(population: list[Candidate], known: dict[Tree, Candidate]) -> Generation:
    best, risks = population[0], tuple(candidate.risk for candidate in population)
    nodes = tuple(candidate.tree.nodes for candidate in population)
    families = {candidate.form.family for candidate in known.values() if candidate.form is not None}
    return Generation(best.risk, risks, nodes, str(best.tree), len(families))
