"""What a rival found -> the function it settles on: texts, their Pareto front, and a choice from it.

The two rules are PySR's: a step along the front scores the fall of the logarithm of the error per node.
"best" takes the highest score among the functions whose error is at most one and a half times the least,
"score" the highest of all.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fts.equations.algebra import add, constant, scale
from fts.equations.conservative import IDENTITY, conserve
from fts.equations.expressions import STATE, Expression, Factor
from fts.equations.grammar import TermError, read
from fts.symbolic import trees
from fts.symbolic.families import Form, canonical
from fts.symbolic.targets import Target
from fts.symbolic.trees import Tree

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
