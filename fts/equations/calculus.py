"""Calculus in the state: dq/du and, where elementary, the antiderivative that makes a product conservative.

F(u) u_x = D_x Q(u) holds with Q' = F; the weak form exists exactly when such a Q is known.
"""

from fts.equations.algebra import add, call, constant, expression_of, multiply, power, scale, state
from fts.equations.expressions import STATE, Expression, Factor, Factors
from fts.equations.grammar import TermError


def derivative(expression: Expression) -> Expression:
    """dq/du."""
    parts = []
    for factors, coefficient in expression.monomials:
        for i, (factor, exponent) in enumerate(factors):
            rest = Expression(((factors[:i] + factors[i + 1 :], coefficient * exponent),))
            lowered = power(expression_of(factor), exponent - 1.0) if exponent != 1.0 else constant(1.0)
            parts.append(multiply(multiply(rest, lowered), _inner_derivative(factor)))
    return add(*parts)


def antiderivative(expression: Expression) -> Expression | None:
    """A Q with dQ/du = q, or None where none is known: powers and f(a u + b) with elementary f."""
    parts = [_integrate(factors, coefficient) for factors, coefficient in expression.monomials]
    known = [part for part in parts if part is not None]
    return add(*known) if len(known) == len(parts) else None


def _integrate(factors: Factors, coefficient: float) -> Expression | None:
    if not factors:
        return scale(state(), coefficient)
    factor, exponent = factors[0]
    if len(factors) > 1:
        return None
    slope = 1.0 if factor == STATE else derivative(factor.argument).constant
    if slope is None:
        return None
    if factor == STATE or factor.name == "":
        base = expression_of(factor)
        if exponent == -1.0:
            return scale(call("log", base), coefficient / slope)
        return scale(power(base, exponent + 1.0), coefficient / (slope * (exponent + 1.0)))
    if factor.name == "exp":
        return scale(power(expression_of(factor), exponent), coefficient / (slope * exponent))
    known = {"sin": ("cos", -1.0), "cos": ("sin", 1.0), "sinh": ("cosh", 1.0), "cosh": ("sinh", 1.0)}
    if exponent != 1.0 or factor.name not in known:
        return None
    name, sign = known[factor.name]
    return scale(call(name, factor.argument), sign * coefficient / slope)


def _inner_derivative(factor: Factor) -> Expression:
    """Derivative of the factor itself, without its exponent."""
    if factor == STATE:
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
        raise TermError(f"{factor.name}({argument}) is not differentiable in u")
    return multiply(outer[factor.name](), derivative(argument))
