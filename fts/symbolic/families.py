"""Tree -> canonical form q = P/Q, and the family of all forms that differ in numbers only (Section F).

Every tree is a quotient of sums of c u^p. `canonical` brings it to one form: like powers collected, Q divided
by its lowest term and not dividing P, and the additive constant, which no derivative sees, taken out. So
algebraically equal trees share one form: (u + 1)/(u + 2) is known to be -1/(u + 2) plus a constant. A
family is what is left when every coefficient and exponent may be any number. Protection is not algebra: a
form is what a tree means where no protected operation interferes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from fts.equations import algebra
from fts.equations.algebra import LARGEST_EXPONENT, MOST_MONOMIALS
from fts.equations.expressions import STATE, Expression, Factor
from fts.equations.grammar import TermError
from fts.symbolic.trees import OPERATORS, Tree

POWER_LAW = "c*u^p"
MOST_NODES = 63  # a full tree of the paper's depth; its form is found in milliseconds, that of any tree not
# Exponents closer than this are the same power: 0.1 + 0.2 is 0.3.
_DIGITS = 9
# Of the largest coefficient: what rounding leaves of terms that cancel.
_CANCELLED = 1e-11

Powers = tuple[tuple[float, float], ...]  # (exponent, coefficient), ascending


@dataclass(frozen=True)
class Form:
    """q(u) = sum a_i u^p_i / (1 + sum b_j u^r_j), exponents ascending; r_j > 0."""

    numerator: Powers
    denominator: Powers  # without the 1; empty when the form does not divide

    @cached_property
    def family(self) -> str:
        """The form with every number replaced: "c*u^p", "c*u^p + c*u^p", "(c) / (1 + c*u^p)"."""
        above = " + ".join("c*u^p" if exponent else "c" for exponent, _ in self.numerator)
        if not self.denominator:
            return above
        return f"({above}) / (1 + {' + '.join('c*u^p' for _ in self.denominator)})"

    @property
    def complexity(self) -> int:
        """Nodes of the smallest tree with a free scale before it: 1 for u^p, 4 more per further term."""
        # a_1 (u^p + a u^r + ...): a further term costs +, *, its coefficient and its power, a constant two.
        above = 1 + sum(4 if exponent else 2 for exponent, _ in self.numerator[1:])
        # One coefficient of the denominator goes into the scale: c + u^r has three nodes, a division one.
        return above + (1 + 3 + 4 * (len(self.denominator) - 1) if self.denominator else 0)

    @cached_property
    def parameters(self) -> Float[np.ndarray, " n"]:
        """Coefficients and exponents, numerator first; the exponent of a constant is no parameter."""
        pairs = [(c, e) if e else (c,) for e, c in (*self.numerator, *self.denominator)]
        return np.array([value for pair in pairs for value in pair])

    def with_parameters(self, values: Float[np.ndarray, " n"]) -> "Form":
        """The form of this structure with other numbers, in the order of `parameters`."""
        left = iter(values.tolist())
        terms = [(next(left), next(left) if e else 0.0) for e, _ in (*self.numerator, *self.denominator)]
        swapped = [(e, c) for c, e in terms]
        return Form(tuple(swapped[: len(self.numerator)]), tuple(swapped[len(self.numerator) :]))

    def values(self, u: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """q(u) for positive u."""
        return _sum(self.numerator, u) / self.below(u)

    def slope(self, u: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """q'(u)."""
        below = self.below(u)
        above, inner = (
            sum((e * c * u ** (e - 1.0) for e, c in part if e), np.zeros_like(u))
            for part in (self.numerator, self.denominator)
        )
        return (above - self.values(u) * inner) / below

    def below(self, u: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """The denominator, 1 where the form does not divide."""
        return 1.0 + _sum(self.denominator, u)

    def jacobian(self, u: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k n"]:
        """Derivatives of q(u) by the parameters."""
        below = self.below(u)
        log, q, columns = np.log(u), self.values(u), []
        for part, factor in ((self.numerator, 1.0 / below), (self.denominator, -q / below)):
            for exponent, coefficient in part:
                column = u**exponent * factor
                columns += [column, coefficient * log * column] if exponent else [column]
        return np.stack(columns, axis=1)

    @property
    def expression(self) -> Expression:
        """The form in the package's algebra, for equations and printing."""
        above, below = _expression(self.numerator), _expression(self.denominator)
        divisor = algebra.add(algebra.constant(1.0), below)
        return algebra.multiply(above, algebra.power(divisor, -1.0)) if self.denominator else above

    def __str__(self) -> str:
        above = str(_expression(self.numerator))
        return f"({above}) / (1 + {_expression(self.denominator)})" if self.denominator else above


def canonical(tree: Tree) -> Form | None:
    """The form of the tree up to an additive constant; None when it is constant, or no finite form."""
    if tree.nodes > MOST_NODES:
        return None
    try:
        above, below = _fraction(tree)
        if not below:
            return None
        above, below = _reduced(above, below)
        lead, shift = below[0][1], below[0][0]
        above = tuple((round(e - shift, _DIGITS), c / lead) for e, c in above)
        below = tuple((round(e - shift, _DIGITS), c / lead) for e, c in below)
        form = Form(_without_constant(above, below), below[1:])
    except (TermError, OverflowError, ZeroDivisionError):
        return None
    return form if form.numerator and np.isfinite(form.parameters).all() else None


def form_of(q: Expression) -> Form | None:
    """The form of an expression; None for a constant, and for what is no quotient of sums of powers."""
    tree = _tree_of(q)
    return canonical(tree) if tree is not None else None


def _fraction(tree: Tree) -> tuple[Powers, Powers]:
    """P and Q of the tree."""
    if tree.op not in OPERATORS:
        exponent, coefficient = {"c": (0.0, tree.value), "u": (1.0, 1.0)}.get(tree.op, (tree.value, 1.0))
        if not np.isfinite(coefficient) or not abs(exponent) <= LARGEST_EXPONENT:
            raise TermError(f"{tree}: exponents are at most {LARGEST_EXPONENT:g}, coefficients finite")
        return _collected([(exponent, coefficient)]), ((0.0, 1.0),)
    (a, b), (c, d) = (_fraction(part) for part in tree.parts)
    if tree.op == "*":
        return _times(a, c), _times(b, d)
    if tree.op == "/":
        return _times(a, d), _times(b, c)
    sign = 1.0 if tree.op == "+" else -1.0
    if b == d:
        return _plus(a, c, sign), b
    return _plus(_times(a, d), _times(c, b), sign), _times(b, d)


def _reduced(above: Powers, below: Powers) -> tuple[Powers, Powers]:
    """The same quotient after dividing out, where one of the two divides the other."""
    whole = _quotient(above, below)
    if whole is not None:
        return whole, ((0.0, 1.0),)
    inverse = _quotient(below, above)
    return (above, below) if inverse is None else (((0.0, 1.0),), inverse)


def _quotient(above: Powers, below: Powers) -> Powers | None:
    """P/Q when it is a finite sum of powers, by long division from the highest power; else None."""
    if not above:
        return above
    quotient: Powers = ()
    size = max(abs(c) for _, c in above)
    (top, lead), lowest = below[-1], above[0][0] - below[0][0]
    while above:
        exponent, coefficient = round(above[-1][0] - top, _DIGITS), above[-1][1] / lead
        # The lowest power of an exact quotient is known beforehand.
        if exponent < lowest - 1e-6 or len(quotient) > MOST_MONOMIALS // 2:
            return None
        quotient = ((exponent, coefficient), *quotient)
        rest = _plus(above[:-1], _times(((exponent, coefficient),), below[:-1]), -1.0)
        above = tuple((e, c) for e, c in rest if abs(c) > _CANCELLED * size)
    return quotient


def _without_constant(above: Powers, below: Powers) -> Powers:
    """P - C Q with C such that the highest power of Q is missing from P: q up to a constant."""
    top, lead = below[-1]
    c = dict(above).get(top, 0.0) / lead
    return tuple((e, v) for e, v in _plus(above, tuple((e, v * c) for e, v in below), -1.0) if e != top)


def _plus(left: Powers, right: Powers, sign: float) -> Powers:
    return _collected([*left, *((e, sign * c) for e, c in right)])


def _times(left: Powers, right: Powers) -> Powers:
    return _collected([(e + f, c * d) for e, c in left for f, d in right])


def _collected(pairs: list[tuple[float, float]]) -> Powers:
    """Like powers collected and rounding left over by cancellation dropped.

    A search does this a million times; with the package's algebra, which knows more than powers of u, it
    would spend most of its time here.
    """
    if len(pairs) > MOST_MONOMIALS**2:
        raise TermError(f"{len(pairs)} monomials are too many")
    sums: dict[float, float] = {}
    for e, c in pairs:
        exponent = round(e, _DIGITS) + 0.0
        sums[exponent] = sums.get(exponent, 0.0) + c
    least = _CANCELLED * max((abs(c) for _, c in pairs), default=0.0)
    return tuple(sorted((e, c) for e, c in sums.items() if abs(c) > least))


def _expression(powers: Powers) -> Expression:
    terms = ((algebra.state(e) if e else algebra.constant(1.0), c) for e, c in powers)
    return algebra.add(*(algebra.scale(term, c) for term, c in terms))


def _sum(powers: Powers, u: np.ndarray) -> np.ndarray:
    return sum((c * u**e for e, c in powers), np.zeros_like(u))


def _tree_of(q: Expression) -> Tree | None:
    """The expression as a tree, where the grammar of trees has it."""
    total: Tree | None = None
    for factors, coefficient in q.monomials:
        product: Tree | None = Tree("c", coefficient)
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
        return Tree("*", parts=(left, Tree("u^", exponent)))
    inner = _tree_of(factor.argument) if factor.name == "" and exponent == -1.0 else None
    return Tree("/", parts=(left, inner)) if inner is not None else None
