"""Algebra of functions of the state: sums, products, real powers and named functions, in canonical form.

Equal functions built in different order come out as equal values: natural powers expand, like monomials are
collected, and what no rule opens stays in a bracket. Sizes are bounded: any text ends in a value or an error.
"""

import math

import numpy as np

from fts.equations.expressions import STATE, UFUNCS, Expression, Factor, Factors, monomial_key
from fts.equations.grammar import TermError

MOST_MONOMIALS = 64
LARGEST_EXPONENT = 64.0
MOST_PARTS = 1000  # of an expression with everything inside it; bounds the work on any text


def constant(value: float) -> Expression:
    """The function that is `value` everywhere."""
    return _collect([((), float(value))])


def state(exponent: float = 1.0) -> Expression:
    """u^exponent."""
    return power(Expression(((((STATE, 1.0),), 1.0),)), exponent)


def add(*parts: Expression) -> Expression:
    """Sum of the parts, like monomials collected."""
    return _collect([monomial for part in parts for monomial in part.monomials])


def multiply(left: Expression, right: Expression) -> Expression:
    """Product, expanded; brackets whose exponent became a natural number open."""
    if len(left.monomials) * len(right.monomials) > MOST_MONOMIALS**2:
        raise TermError(f"({left}) times ({right}) has too many monomials")
    closed, opened = [], []
    for factors, a in left.monomials:
        for more, b in right.monomials:
            product, brackets = _merge(factors, more)
            if brackets:
                opened.append(_open(a * b, product, brackets))
            else:
                closed.append((product, a * b))
    return add(_collect(closed), *opened)


def power(base: Expression, exponent: float) -> Expression:
    """base^exponent: natural powers expand, others bracket what they cannot distribute over."""
    if not math.isfinite(exponent) or abs(exponent) > LARGEST_EXPONENT:
        raise TermError(f"exponent {exponent:g} of ({base}): the largest is {LARGEST_EXPONENT:g}")
    if exponent == 1.0:
        return base
    if base.constant is not None:
        return constant(_constant_power(base.constant, exponent))
    integer = float(exponent).is_integer()
    if len(base.monomials) == 1 and (integer or _is_positive_monomial(base.monomials[0])):
        factors, coefficient = base.monomials[0]
        raised = tuple((factor, e * exponent) for factor, e in factors)
        return _open(_constant_power(coefficient, exponent), *_merge(raised, ()))
    if integer and exponent >= 0:
        result = constant(1.0)
        for _ in range(int(exponent)):
            result = multiply(result, base)
        return result
    lead = abs(base.monomials[0][1])
    # Divide, do not multiply by 1/lead: the leading coefficient must come out as 1 exactly to stay canonical.
    bracket = Factor("", _collect([(factors, c / lead) for factors, c in base.monomials]))
    return _collect([(((bracket, float(exponent)),), _constant_power(lead, exponent))])


def call(function: str, argument: Expression) -> Expression:
    """function(argument); sqrt is the power 1/2, and functions of constants are numbers."""
    if function == "sqrt":
        return power(argument, 0.5)
    if argument.constant is None:
        return Expression(((((Factor(function, argument), 1.0),), 1.0),))
    with np.errstate(all="ignore"):
        value = float(UFUNCS[function](argument.constant))
    if not math.isfinite(value):
        raise TermError(f"{function}({argument}) is not a finite number")
    return constant(value)


def scale(expression: Expression, factor: float) -> Expression:
    """factor * expression."""
    return _collect([(factors, factor * coefficient) for factors, coefficient in expression.monomials])


def expression_of(factor: Factor) -> Expression:
    """The factor with exponent one, as an expression."""
    return factor.argument if factor.name == "" else Expression(((((factor, 1.0),), 1.0),))


def _collect(monomials: list[tuple[Factors, float]]) -> Expression:
    """Like monomials added, zeros dropped, canonical order."""
    sums: dict[Factors, float] = {}
    for factors, coefficient in monomials:
        sums[factors] = sums.get(factors, 0.0) + coefficient
    kept = [(factors, c) for factors, c in sums.items() if c != 0.0]
    if len(kept) > MOST_MONOMIALS:
        raise TermError(f"an expression with {len(kept)} monomials: at most {MOST_MONOMIALS} are read")
    if not all(math.isfinite(c) for _, c in kept):
        raise TermError("a coefficient overflows float64: rescale the expression")
    collected = Expression(tuple(sorted(kept, key=lambda monomial: monomial_key(monomial[0]))))
    if collected.size > MOST_PARTS:
        raise TermError(f"an expression of {collected.size} parts: at most {MOST_PARTS} are read, shorten it")
    return collected


def _merge(left: Factors, right: Factors) -> tuple[Factors, list[tuple[Factor, float]]]:
    """Exponents of equal factors added; brackets with a natural exponent are returned apart, to be opened."""
    exponents = dict(left)
    for factor, exponent in right:
        exponents[factor] = exponents.get(factor, 0.0) + exponent
    for factor, exponent in exponents.items():
        if abs(exponent) > LARGEST_EXPONENT:
            raise TermError(f"exponent {exponent:g} of {factor.name}: the largest is {LARGEST_EXPONENT:g}")
    brackets = [(f, e) for f, e in exponents.items() if f.name == "" and e > 0 and float(e).is_integer()]
    for factor, _ in brackets:
        del exponents[factor]
    return _sorted(exponents), brackets


def _open(coefficient: float, factors: Factors, brackets: list[tuple[Factor, float]]) -> Expression:
    """coefficient * factors * brackets, multiplied out."""
    result = _collect([(factors, coefficient)])
    for factor, exponent in brackets:
        result = multiply(result, power(factor.argument, exponent))
    return result


def _sorted(exponents: dict[Factor, float]) -> Factors:
    kept = [(factor, float(exponent)) for factor, exponent in exponents.items() if exponent != 0.0]
    return tuple(sorted(kept, key=lambda item: (item[0] != STATE, item[0].key)))


def _is_positive_monomial(monomial: tuple[Factors, float]) -> bool:
    """Whether a real power distributes: a positive coefficient times a factor without even powers."""
    factors, coefficient = monomial
    even_trap = any(e.is_integer() and e != 1.0 for _, e in factors)  # (u^2)^0.5 is |u|, not u
    return coefficient > 0 and len(factors) == 1 and not even_trap


def _constant_power(base: float, exponent: float) -> float:
    try:
        value = base**exponent
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if isinstance(value, complex) or not math.isfinite(value):
        raise TermError(f"{base:g}^{exponent:g} is not a finite real number: rewrite the term")
    return float(value)
