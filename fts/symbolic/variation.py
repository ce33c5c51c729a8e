"""Random trees, mutation and crossover, all within the limits of depth and complexity (Table S12, S13)."""

import numpy as np

from fts.params.symbolic import TreeParams
from fts.symbolic.trees import OPERATORS, Tree, U, constant, replaced, state_power, subtrees

_TRIES = 8  # before a variation that breaks the limits gives up and keeps its parent


def random_tree(params: TreeParams, rng: np.random.Generator, nodes: int | None = None) -> Tree:
    """A tree of at most `nodes` nodes; without them, sizes from one leaf to the cap are alike likely."""
    budget = int(rng.integers(1, params.max_nodes + 1)) if nodes is None else nodes
    return _grow(params, rng, budget, params.max_depth)


def mutate(tree: Tree, params: TreeParams, rng: np.random.Generator) -> Tree:
    """The tree with one change: a number moved, a subtree redrawn or lifted, an operator exchanged."""
    for _ in range(_TRIES):
        place = int(rng.integers(tree.nodes))
        new = replaced(tree, place, _changed(list(subtrees(tree))[place], params, rng))
        if new != tree and fits(new, params):
            return new
    return tree


def cross(tree: Tree, other: Tree, params: TreeParams, rng: np.random.Generator) -> Tree:
    """The tree with one of its subtrees replaced by one of the other's."""
    donors = list(subtrees(other))
    for _ in range(_TRIES):
        new = replaced(tree, int(rng.integers(tree.nodes)), donors[int(rng.integers(len(donors)))])
        if fits(new, params):
            return new
    return tree


def fits(tree: Tree, params: TreeParams) -> bool:
    """Whether the tree keeps the limits."""
    return tree.nodes <= params.max_nodes and tree.depth <= params.max_depth


def _grow(params: TreeParams, rng: np.random.Generator, budget: int, depth: int) -> Tree:
    if budget < 3 or depth < 2:
        return _leaf(params, rng)
    left = 1 + 2 * int(rng.integers((budget - 1) // 2))  # trees of binary operators have odd sizes
    op = str(rng.choice(OPERATORS, p=params.operator_weights))
    parts = (_grow(params, rng, left, depth - 1), _grow(params, rng, budget - 1 - left, depth - 1))
    return Tree(op, parts=parts)


def _leaf(params: TreeParams, rng: np.random.Generator) -> Tree:
    kind = rng.choice(3, p=params.leaf_weights)
    if kind == 0:
        return U
    if kind == 1:
        return constant(params.constant_spread * rng.standard_normal())
    return state_power(rng.choice(params.exponents))


def _changed(tree: Tree, params: TreeParams, rng: np.random.Generator) -> Tree:
    """Another tree to stand where this one stood."""
    if rng.random() < 0.5:
        if tree.op == "u^":
            return state_power(tree.value + params.step * rng.standard_normal())
        if tree.op == "c":
            return constant(tree.value * (1 + params.step * rng.standard_normal()))
        if tree.op in OPERATORS:
            if rng.random() < 0.5:
                return tree.parts[int(rng.integers(2))]
            return Tree(str(rng.choice(OPERATORS, p=params.operator_weights)), parts=tree.parts)
    return random_tree(params, rng)
