"""Algebra and calculus of functions of the state, in canonical form (Section 3).

Equal functions built in different order come out as equal values: natural powers expand, like monomials are
collected, and what no rule opens stays in a bracket. Sizes are bounded: any text ends in a value or an error.
Antiderivatives make products conservative, F(u) u_x = D_x Q(u) with Q' = F: the weak form exists exactly when
such a Q is known.
"""

import math

import numpy as np

from fts.equations.expressions import STATE, UFUNCS, Expression, Factor, Factors, monomial_key
from fts.equations.grammar import COORDINATES, TermError

MOST_MONOMIALS = 64
LARGEST_EXPONENT = 64.0
MOST_PARTS = 1000  # of an expression with everything inside it; bounds the work on any text


def constant(value: float) -> Expression:
    """The function that is `value` everywhere."""
    return _collect([((), float(value))])


def state(exponent: float = 1.0) -> Expression:
    """u^exponent."""
    return power(symbol("u"), exponent)


def symbol(name: str) -> Expression:
    """A component, an input, a derivative of one, or a coordinate."""
    return Expression(((((Factor(name, Expression(())), 1.0),), 1.0),))


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


def derivative(expression: Expression, name: str = "u") -> Expression:
    """dq/du, or by another symbol."""
    parts = []
    for factors, coefficient in expression.monomials:
        for i, (factor, exponent) in enumerate(factors):
            rest = Expression(((factors[:i] + factors[i + 1 :], coefficient * exponent),))
            if name in expression_of(factor).symbols:
                reduced = power(expression_of(factor), exponent - 1.0) if exponent != 1.0 else constant(1.0)
                parts.append(multiply(multiply(rest, reduced), _inner_derivative(factor, name)))
    return add(*parts)


def antiderivative(expression: Expression, name: str = "u") -> Expression | None:
    """A Q with dQ/du = q, or None where none is known: powers and f(a u + b) with elementary f.

    Other symbols than `name` count as constants.
    """
    parts = [_integrate(factors, coefficient, name) for factors, coefficient in expression.monomials]
    known = [part for part in parts if part is not None]
    return add(*known) if len(known) == len(parts) else None


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
    return tuple(sorted(kept, key=lambda item: (_rank(item[0]), item[0].key)))


def _rank(factor: Factor) -> int:
    """Coordinates first, then u, other components, derivatives, and last functions: x*u*v*u_x*sin(u)."""
    if not factor.is_symbol:
        return 4
    return 0 if factor.name in COORDINATES else 1 if factor == STATE else 3 if "_" in factor.name else 2


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


def _integrate(factors: Factors, coefficient: float, name: str) -> Expression | None:
    dependent = [(factor, e) for factor, e in factors if name in expression_of(factor).symbols]
    fixed = Expression(((tuple(pair for pair in factors if pair not in dependent), 1.0),))
    if not dependent:
        return scale(multiply(fixed, symbol(name)), coefficient)
    if len(dependent) > 1:
        return None
    primitive = _integrate_factor(*dependent[0], coefficient, name)
    return None if primitive is None else multiply(fixed, primitive)


def _integrate_factor(factor: Factor, exponent: float, coefficient: float, name: str) -> Expression | None:
    slope = 1.0 if factor.is_symbol else derivative(factor.argument, name).constant
    if slope is None:
        return None
    if factor.is_symbol or factor.name == "":
        base = expression_of(factor)
        if exponent == -1.0:
            return scale(call("log", base), coefficient / slope)
        return scale(power(base, exponent + 1.0), coefficient / (slope * (exponent + 1.0)))
    if factor.name == "exp":
        return scale(power(expression_of(factor), exponent), coefficient / (slope * exponent))
    known = {"sin": ("cos", -1.0), "cos": ("sin", 1.0), "sinh": ("cosh", 1.0), "cosh": ("sinh", 1.0)}
    if exponent != 1.0 or factor.name not in known:
        return None
    function, sign = known[factor.name]
    return scale(call(function, factor.argument), sign * coefficient / slope)


def _inner_derivative(factor: Factor, name: str) -> Expression:
    """Derivative of the factor itself, without its exponent."""
    if factor.is_symbol:
        return constant(1.0)
    argument = factor.argument
    outer = {
        "": lambda: constant(1.0),
        "sin": lambda: call("cos", argument),
        "cos": lambda: scale(call("sin", argument), -1.0),
        "tan": lambda: add(constant(1.0), power(call("tan", argument), 2.0)),
        "sinh": lambda: call("cosh", argument),
        "cosh": lambda: call("sinh", argument),
        "tanh": lambda: add(constant(1.0), scale(power(call("tanh", argument), 2.0), -1.0)),
        "exp": lambda: call("exp", argument),
        "log": lambda: power(argument, -1.0),
    }
    if factor.name not in outer:
        raise TermError(f"{factor.name}({argument}) is not differentiable in {name}")
    return multiply(outer[factor.name](), derivative(argument, name))
