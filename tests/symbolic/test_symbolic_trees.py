"""Trees of q(u): protected, bounded, printed and read back; families that algebra cannot tell apart."""

import time

import numpy as np
import pytest
import sympy

from fts.equations.grammar import TermError
from fts.symbolic import trees
from fts.symbolic.families import POWER_LAW, canonical
from fts.symbolic.search import SYMBOLIC
from fts.symbolic.trees import Tree, U, constant, evaluate, read, replace_subtree, state_power, subtrees

PROTECTION = SYMBOLIC.protection
STATES = np.linspace(0.2, 1.5, 41)


def wild_tree(rng: np.random.Generator, depth: int) -> Tree:
    """Any tree at all, with numbers of any size; more than the search would make."""
    if depth == 1 or rng.random() < 0.3:
        kind = rng.integers(3)
        if kind == 0:
            return U
        value = float(np.ldexp(rng.standard_normal(), int(rng.integers(-12, 12))))
        return constant(value) if kind == 1 else state_power(float(np.clip(value, -8, 8)))
    op = str(rng.choice(trees.OPERATORS))
    return Tree(op, parts=(wild_tree(rng, depth - 1), wild_tree(rng, depth - 1)))


def test_division_by_zero_ends_at_the_floor_with_the_sign_of_the_denominator():
    u = np.array([-1e-9, -0.0, 0.0, 1e-9, 2.0])
    values = evaluate(read("0.001 / u"), u, PROTECTION)
    np.testing.assert_allclose(values, [-10, -10, 10, 10, 0.0005])


def test_powers_see_no_value_below_their_floor():
    u = np.array([-3.0, 0.0, 1e-7, 1e-6, 4.0])
    np.testing.assert_allclose(evaluate(state_power(0.5), u, PROTECTION), [1e-3, 1e-3, 1e-3, 1e-3, 2.0])
    assert evaluate(state_power(-2.0), u, PROTECTION)[0] == PROTECTION.largest_value


def test_every_intermediate_value_is_clipped():
    u = np.array([40.0, -40.0])
    # u * u leaves the range and is clipped before it is divided, so the quotient is 50 / 40.
    np.testing.assert_allclose(evaluate(read("(u * u) / u"), u, PROTECTION), [1.25, -1.25])


def test_any_tree_is_finite_on_any_field(rng):
    u = np.array([-1e300, -1.0, -1e-320, 0.0, 1e-320, 0.5, 1e300])
    for _ in range(500):
        values = evaluate(wild_tree(rng, 6), u, PROTECTION)
        assert np.abs(values).max() <= PROTECTION.largest_value


def test_evaluation_is_that_of_sympy_where_nothing_is_protected(rng):
    symbol = sympy.Symbol("u", positive=True)
    for _ in range(60):
        tree = wild_tree(rng, 3)
        inner = [evaluate(part, STATES, PROTECTION) for part in subtrees(tree)]
        divisors = [evaluate(part.parts[1], STATES, PROTECTION) for part in subtrees(tree) if part.op == "/"]
        if max(np.abs(v).max() for v in inner) > 49 or any(np.abs(v).min() < 1e-3 for v in divisors):
            continue
        expected = sympy.lambdify(symbol, _sympy(tree, symbol), "numpy")(STATES)
        np.testing.assert_allclose(inner[0], np.broadcast_to(expected, STATES.shape), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("count", [500, pytest.param(2_000, marks=pytest.mark.slow)])
def test_random_trees_through_print_and_read(rng, count):
    changed = 0
    for _ in range(count):
        tree = wild_tree(rng, 4)
        once = read(str(tree))
        assert read(str(once)) == once
        assert once.nodes == tree.nodes
        changed += once != tree  # a + (-2) reads as a - 2: the same values, to the last bit
        np.testing.assert_array_equal(
            evaluate(once, STATES[::10], PROTECTION), evaluate(tree, STATES[::10], PROTECTION)
        )
    assert 0 < changed < count / 5


def test_indices_count_as_subtrees_do(rng):
    tree = wild_tree(rng, 5)
    marked = constant(123.0)
    for index, part in enumerate(subtrees(tree)):
        new = replace_subtree(tree, index, marked)
        assert list(subtrees(new))[index] == marked
        assert new.nodes == tree.nodes - part.nodes + 1
    with pytest.raises(ValueError, match="no subtree"):
        replace_subtree(tree, tree.nodes, marked)


@pytest.mark.parametrize(
    "text", ["sin(u)", "u_x", "D_x(u)", "u^u", "(u + 1)^2", "u_t", "__import__", "u.real", ""]
)
def test_what_is_no_tree_is_refused(text):
    with pytest.raises(TermError):
        read(text)


EQUAL = [
    ("u * u", "u^2"),
    ("(2 * u^1.5) * (3 * u^0.2) + 7", "u^1.7"),
    ("(u + 1) / (u + 2)", "1 / (u + 2)"),
    ("(u * u - 1) / (u + 1)", "u"),
    ("(u^0.1 * u^0.2) + u^3", "u^0.3 + u^3"),
    ("u / (u * u + u)", "1 / (u + 1)"),
    ("u * (u + u^2)", "u^2 + u^3"),
    ("(u + u^2) - (u^2 - u)", "u"),
    ("1 / (u + 1 / u)", "u / (u^2 + 1)"),
    ("(u + 0.3) * (u - 0.3)", "u^2"),
    ("(u^2 + 0.3 * u) / (u + 0.3)", "u"),
    ("(1 / u) / (1 / u^2.5)", "u^1.5"),
]


@pytest.mark.parametrize(("text", "other"), EQUAL)
def test_trees_equal_up_to_scale_and_constant_share_one_form(text, other):
    first, second = canonical(read(text)), canonical(read(other))
    assert first is not None
    assert second is not None
    assert first.family == second.family
    ratio = first.numerator[0][1] / second.numerator[0][1]
    scaled = second.parameters.copy()
    exponents = [flag for e, _ in second.numerator for flag in ((False, True) if e else (False,))]
    scaled[: len(exponents)][~np.array(exponents)] *= ratio
    np.testing.assert_allclose(first.parameters, scaled, rtol=1e-9)


def test_families_differ_where_structure_does():
    texts = ["u^1.3", "u + u^2", "1 / (1 + u)", "u^2 / (1 + u)", "u + u^2 + u^3", "(u + u^3) / (1 + u^4)"]
    families = {canonical(read(text)).family for text in texts}
    assert len(families) == len(texts)
    assert canonical(read("0.1 * u^1.73 + 2")).family == POWER_LAW


@pytest.mark.parametrize("text", ["3", "u - u", "u / u", "(u + 1) / (2 * u + 2)", "5 / (u - u)", "u^0 + 1"])
def test_constants_have_no_form(text):
    assert canonical(read(text)) is None


def test_a_form_is_its_tree_up_to_a_constant(rng):
    compared = 0
    for _ in range(300):
        tree = wild_tree(rng, 3)
        parts = [evaluate(part, STATES, PROTECTION) for part in subtrees(tree)]
        divisors = [evaluate(part.parts[1], STATES, PROTECTION) for part in subtrees(tree) if part.op == "/"]
        protected = max(np.abs(v).max() for v in parts) > 49 or any(np.abs(v).min() < 0.01 for v in divisors)
        form = canonical(tree)
        if protected or form is None:
            continue
        difference = form.values(STATES) - parts[0]
        assert np.ptp(difference) <= 1e-6 * max(1.0, np.abs(form.values(STATES)).max()), str(tree)
        compared += 1
    assert compared > 80


def test_every_order_of_a_sum_or_product_is_one_family(rng):
    for _ in range(200):
        tree = wild_tree(rng, 3)
        flipped = _flipped(tree)
        first, other = canonical(tree), canonical(flipped)
        assert (first is None) == (other is None)
        assert first is None or first.family == other.family


def test_the_jacobian_is_the_derivative(rng):
    form = canonical(read("(u^1.3 + 0.4 * u^0.2) / (1 + 0.7 * u^2)"))
    base = form.parameters
    for k in range(base.size):
        step = np.zeros_like(base)
        step[k] = 1e-6
        change = form.with_parameters(base + step).values(STATES) - form.with_parameters(base - step).values(
            STATES
        )
        np.testing.assert_allclose(form.jacobian(STATES)[:, k], change / 2e-6, rtol=1e-5, atol=1e-8)


def test_a_form_prints_as_sympy_reads_it():
    form = canonical(read("(0.1 * u^1.73 + 2 * u) / (1 + 0.5 * u)"))
    symbol = sympy.Symbol("u", positive=True)
    expected = (0.1 * symbol**1.73 + 2 * symbol) / (1 + 0.5 * symbol)
    printed = _sympy(read(str(form)), symbol)
    assert sympy.simplify(sympy.diff(printed - expected, symbol)).subs(symbol, 0.7) == pytest.approx(
        0, abs=1e-12
    )
    np.testing.assert_allclose(form.expression(STATES), form.values(STATES), rtol=1e-12)


def test_hostile_trees_are_bounded_in_time():
    product = read("u + 1")
    for _ in range(4):  # (u + 1)^16 by squaring, far over every limit of the search
        product = Tree("*", parts=(product, product))
    assert canonical(Tree("*", parts=(product, product))) is None
    quotient = U
    for _ in range(15):
        quotient = Tree("/", parts=(constant(1.0), Tree("+", parts=(quotient, state_power(1.1)))))
    began = time.process_time()
    for tree in (product, quotient, Tree("/", parts=(state_power(3.0), read("u^0.001 - 1.0001")))):
        form = canonical(tree)
        assert form is None or np.isfinite(form.parameters).all()
        evaluate(tree, STATES, PROTECTION)
    assert time.process_time() - began < 3


def _flipped(tree: Tree) -> Tree:
    parts = tuple(_flipped(part) for part in tree.parts)
    return Tree(tree.op, tree.value, parts[::-1] if tree.op in "+*" else parts)


def _sympy(tree: Tree, symbol: sympy.Symbol) -> sympy.Expr:
    if tree.op == "u":
        return symbol
    if tree.op in ("c", "u^"):
        return sympy.Float(tree.value) if tree.op == "c" else symbol**tree.value
    left, right = (_sympy(part, symbol) for part in tree.parts)
    return (
        {"+": left + right, "-": left - right, "*": left * right}[tree.op] if tree.op != "/" else left / right
    )
