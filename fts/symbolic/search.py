"""Genetic programming on weak systems: trees -> one representative per family (Section F).

Each search has three systems of its own: one fits a tree's scale in closed form, one gives the risk that
evolution sees, one gives the risk by which a family is represented. The evolution is written out here: DEAP's
trees are mutable lists that it compiles by running text as code, and what is left of it, tournaments and a
loop, is shorter than the adapters around it.
"""

from dataclasses import dataclass

import numpy as np

from fts.symbolic.families import Form, canonical
from fts.symbolic.occupation import StateSystem
from fts.symbolic.settings import EvolutionParams, SymbolicParams
from fts.symbolic.trees import Tree, cross, evaluate, mutate, random_tree


@dataclass(frozen=True)
class Judged:
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
class Evolved:
    """One finished search."""

    representatives: dict[str, Judged]  # by family, ascending in proposal risk
    history: tuple[Generation, ...]


@dataclass(frozen=True)
class SearchSystems:
    """The three systems of one search."""

    fit: StateSystem
    generation: StateSystem
    validation: StateSystem


def search(systems: SearchSystems, params: SymbolicParams, rng: np.random.Generator) -> Evolved:
    """Evolve trees; the best of every family seen, by its risk on the search's validation system."""
    evolution, grammar = params.evolution, params.trees
    known: dict[Tree, Judged] = {}

    def judged(trees: list[Tree]) -> list[Judged]:
        for tree in trees:
            if tree not in known:
                known[tree] = judge(tree, systems, params)
        return sorted((known[tree] for tree in trees), key=lambda one: _fitness(one, evolution))

    population = judged([random_tree(grammar, rng) for _ in range(evolution.population)])
    history = [_describe(population, known)]
    for _ in range(evolution.generations):
        population = judged(_offspring(population, params, rng))
        history.append(_describe(population, known))
    return Evolved(_representatives(known), tuple(history))


def judge(tree: Tree, systems: SearchSystems, params: SymbolicParams) -> Judged:
    """The tree with the scale that fits it and its two risks; a constant has infinite ones."""
    form = canonical(tree)
    if form is None:
        return Judged(tree, 0.0, None, np.inf, np.inf)
    q = evaluate(tree, systems.fit.states, params.protection)
    scale = systems.fit.scale(q)
    if scale == 0.0:  # protection has flattened it on these states
        return Judged(tree, 0.0, None, np.inf, np.inf)
    return Judged(tree, scale, form, systems.generation.risk(scale * q), systems.validation.risk(scale * q))


def _fitness(one: Judged, evolution: EvolutionParams) -> float:
    return one.risk + evolution.search_penalty * one.tree.nodes


def _offspring(population: list[Judged], params: SymbolicParams, rng: np.random.Generator) -> list[Tree]:
    """The elite and children beside it, all different while that costs few draws: copies explore nothing."""
    evolution = params.evolution
    trees = dict.fromkeys(one.tree for one in population[: evolution.elite])
    for _ in range(4 * evolution.population):
        if len(trees) < evolution.population:
            trees.setdefault(_child(population, params, rng))
    return list(trees)


def _child(population: list[Judged], params: SymbolicParams, rng: np.random.Generator) -> Tree:
    """A mutant, a cross of two, or a copy, of winners of tournaments; the population stands in order."""
    evolution = params.evolution

    def winner() -> Tree:
        return population[int(rng.integers(len(population), size=evolution.tournament).min())].tree

    draw = rng.random()
    if draw < evolution.mutation:
        return mutate(winner(), params.trees, rng)
    if draw < evolution.mutation + evolution.crossover:
        return cross(winner(), winner(), params.trees, rng)
    return winner()


def _representatives(known: dict[Tree, Judged]) -> dict[str, Judged]:
    best: dict[str, Judged] = {}
    for one in sorted(known.values(), key=lambda one: one.proposal_risk):
        if one.form is not None and np.isfinite(one.proposal_risk):
            best.setdefault(one.form.family, one)
    return best


def _describe(population: list[Judged], known: dict[Tree, Judged]) -> Generation:
    return Generation(
        best_risk=population[0].risk,
        risks=tuple(one.risk for one in population),
        nodes=tuple(one.tree.nodes for one in population),
        best=str(population[0].tree),
        families=len({one.form.family for one in known.values() if one.form is not None}),
    )
