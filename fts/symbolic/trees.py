"""Expression trees of q(u): evaluated, printed, read back and varied (Section F, Tables S12 and S13).

Leaves are u, a constant and u^p; operators are +, -, *, and a division whose denominator is kept away from
zero. The text is what the package's grammar reads; nothing is executed. Random trees, mutation and crossover
stay within the limits of depth and complexity.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from fts.equations import grammar
from fts.equations.expressions import number_text
from fts.equations.grammar import TermError

_OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
OPERATORS = tuple(_OPERATIONS)
_TRIES = 8  # before a variation that breaks the limits gives up and keeps its parent


@dataclass(frozen=True)
class ProtectionParams:
    """What keeps every tree finite on every field."""

    denominator_floor: float = 1e-4  # smallest |denominator|; its sign is kept
    largest_value: float = 50.0  # every value lies within plus or minus this
    power_floor: float = 1e-6  # what u^p sees is at least this


@dataclass(frozen=True)
class TreeParams:
    """The trees that can be made: their leaves, operators and limits."""

    # Of the leaves u^p at initialization; 1.73 is not among them.
    exponents: tuple[float, ...] = tuple(round(0.1 * n, 1) for n in range(5, 31))
    # Chances of u, a constant, u^p; the paper does not give them.
    leaf_weights: tuple[float, float, float] = (0.3, 0.2, 0.5)
    operator_weights: tuple[float, float, float, float] = (0.28, 0.18, 0.38, 0.16)  # chances of +, -, *, /
    constant_spread: float = 1.0  # deviation of a new constant; the paper does not give it
    step: float = 0.2  # deviation of a mutated exponent or, relatively, constant; the paper does not give it
    max_depth: int = 6
    max_nodes: int = 7  # complexity cap: operators and leaves, u^p being one


@dataclass(frozen=True)
class Tree:
    """A leaf "u", "c" (the constant `value`) or "u^" (u to that power), or an operator on two parts."""

    op: str
    value: float = 0.0
    parts: tuple["Tree", ...] = ()

    @cached_property
    def nodes(self) -> int:
        """Complexity: operators and leaves, u^p being one."""
        return 1 + sum(part.nodes for part in self.parts)

    @cached_property
    def depth(self) -> int:
        """Nodes on the longest way from the root to a leaf."""
        return 1 + max((part.depth for part in self.parts), default=0)

    def __str__(self) -> str:
        if self.op in OPERATORS:
            left, right = (f"({part})" if part.parts else str(part) for part in self.parts)
            return f"{left} {self.op} {right}"
        if self.op == "u":
            return "u"
        number = number_text(abs(self.value))
        sign = "-" if np.signbit(self.value) else ""
        return f"u^({sign}{number})" if self.op == "u^" else f"({sign}{number})" if sign else number


U = Tree("u")


def constant(value: float) -> Tree:
    """The leaf that is `value` everywhere."""
    return Tree("c", float(value))


def state_power(exponent: float) -> Tree:
    """The leaf u^exponent."""
    return Tree("u^", float(exponent))


def evaluate(
    tree: Tree, u: Float[np.ndarray, "*shape"], protection: ProtectionParams
) -> Float[np.ndarray, "*shape"]:
    """q(u) entrywise, protected: finite on every finite field, whatever the tree."""
    # A product of two clipped values and a quotient by the floor are finite; only u^p can overflow, to inf,
    # which the clip takes down.
    with np.errstate(over="ignore", under="ignore"):
        return _values(tree, u, protection)


def subtrees(tree: Tree) -> Iterator[Tree]:
    """The tree and every part below it, parents first, left to right."""
    yield tree
    for part in tree.parts:
        yield from subtrees(part)


def replace_subtree(tree: Tree, index: int, new: Tree) -> Tree:
    """The tree with `new` at this index in the order of `subtrees`."""
    if index == 0:
        return new
    parts, first = list(tree.parts), 1
    for i, part in enumerate(parts):
        if index < first + part.nodes:
            parts[i] = replace_subtree(part, index - first, new)
            return Tree(tree.op, tree.value, tuple(parts))
        first += part.nodes
    raise ValueError(f"no subtree {index} in a tree of {tree.nodes} nodes: indices count from 0")


def read(text: str) -> Tree:
    """The tree of a text such as "u^1.7 + 0.3 / u"; functions and derivatives are refused."""
    return _tree(grammar.read(text), text)


def random_tree(params: TreeParams, rng: np.random.Generator, nodes: int | None = None) -> Tree:
    """A tree of at most `nodes` nodes; without them, sizes from one leaf to the cap are equally likely."""
    budget = int(rng.integers(1, params.max_nodes + 1)) if nodes is None else nodes
    return _grow(params, rng, budget, params.max_depth)


def mutate(tree: Tree, params: TreeParams, rng: np.random.Generator) -> Tree:
    """The tree with one change: a number moved, a subtree redrawn or lifted, an operator exchanged."""
    for _ in range(_TRIES):
        index = int(rng.integers(tree.nodes))
        new = replace_subtree(tree, index, _changed(list(subtrees(tree))[index], params, rng))
        if new != tree and within_limits(new, params):
            return new
    return tree


def crossover(tree: Tree, other: Tree, params: TreeParams, rng: np.random.Generator) -> Tree:
    """The tree with one of its subtrees replaced by one of the other's."""
    donors = list(subtrees(other))
    for _ in range(_TRIES):
        new = replace_subtree(tree, int(rng.integers(tree.nodes)), donors[int(rng.integers(len(donors)))])
        if within_limits(new, params):
            return new
    return tree


def within_limits(tree: Tree, params: TreeParams) -> bool:
    """Whether the tree keeps the limits of size and depth."""
    return tree.nodes <= params.max_nodes and tree.depth <= params.max_depth


def _values(tree: Tree, u: np.ndarray, protection: ProtectionParams) -> np.ndarray:
    if tree.op in OPERATORS:
        left, right = (_values(part, u, protection) for part in tree.parts)
        if tree.op == "/":
            floor = protection.denominator_floor
            right = np.where(np.abs(right) < floor, np.copysign(floor, right), right)
        values = _OPERATIONS[tree.op](left, right)
    elif tree.op == "u":
        values = u
    elif tree.op == "c":
        values = np.full(u.shape, tree.value)
    else:
        values = np.maximum(u, protection.power_floor) ** tree.value
    return np.minimum(np.maximum(values, -protection.largest_value), protection.largest_value)


def _tree(node: grammar.Node, text: str) -> Tree:
    """The grammar's sums and products of many parts as operators on two."""
    match node:
        case grammar.State(""):
            return U
        case grammar.Number(value):
            return constant(value)
        case grammar.Power(grammar.State(""), exponent):
            return state_power(_number(exponent, text))
        case grammar.Product((grammar.Number(-1.0), grammar.Number(value))):
            return constant(-value)
        case grammar.Sum(parts) | grammar.Product(parts):
            tree = _tree(parts[0], text)
            for part in parts[1:]:
                match node, part:
                    case grammar.Sum(), grammar.Product((grammar.Number(-1.0), other)):
                        op = "-"
                    case grammar.Product(), grammar.Power(other, grammar.Number(-1.0)):
                        op = "/"
                    case _, other:
                        op = "+" if isinstance(node, grammar.Sum) else "*"
                tree = Tree(op, parts=(tree, _tree(other, text)))
            return tree
    raise TermError(f"{text!r} is no tree of q(u): use u, numbers, u^p, +, -, * and /")


def _number(node: grammar.Node, text: str) -> float:
    leaf = _tree(node, text)
    if leaf.op != "c":
        raise TermError(f"{text!r}: an exponent of u is a number")
    return leaf.value


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
    """Another subtree in place of this one."""
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
