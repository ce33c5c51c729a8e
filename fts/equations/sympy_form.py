"""Equation -> SymPy's: components as functions of x, [y, [z,]] t, and derivatives as SymPy writes them."""

from collections.abc import Mapping
from typing import Any

from fts.equations.equation import Equation
from fts.equations.expressions import Expression, unknown_axis
from fts.equations.grammar import COORDINATES
from fts.equations.terms import letters_of
from fts.validation import require_extra


def to_sympy(equation: Equation, dimension: int) -> Any:
    """sympy.Eq of left and right-hand side, not evaluated: derivatives of products stay in front of them.

    An unknown function c(z) is a function of that coordinate.
    """
    with require_extra("symbolic", "SymPy's form of an equation"):
        import sympy
    coordinates = {name: sympy.Symbol(name, real=True) for name in COORDINATES}
    where = (*(coordinates[letter] for letter in COORDINATES[:dimension]), coordinates["t"])
    total = sympy.S.Zero
    for term, coefficient in zip(equation.terms, equation.coefficients, strict=True):
        inside = _expression(term.q, coordinates, where, sympy)
        derived = _derivative(inside, letters_of(term.orders), coordinates, sympy)
        total += sympy.Float(float(coefficient) * term.scale) * derived
    return sympy.Eq(_symbol(equation.target, coordinates, where, sympy), total, evaluate=False)


def _expression(q: Expression, coordinates: Mapping[str, Any], where: tuple[Any, ...], sympy: Any) -> Any:
    total = sympy.S.Zero
    for factors, coefficient in q.monomials:
        product = sympy.Float(coefficient) if coefficient != 1.0 else sympy.S.One
        for factor, exponent in factors:
            if factor.is_symbol:
                base = _symbol(factor.name, coordinates, where, sympy)
            else:
                inner = _expression(factor.argument, coordinates, where, sympy)
                base = (
                    getattr(sympy, factor.name.capitalize() if factor.name == "abs" else factor.name)(inner)
                    if factor.name
                    else inner
                )
            product *= base ** (int(exponent) if exponent.is_integer() else sympy.Float(exponent))
        total += product
    return total


def _symbol(name: str, coordinates: Mapping[str, Any], where: tuple[Any, ...], sympy: Any) -> Any:
    if name in coordinates:
        return coordinates[name]
    if axis := unknown_axis(name):
        return sympy.Function(name.partition("(")[0])(coordinates[axis])
    head, _, letters = name.partition("_")
    return _derivative(sympy.Function(head)(*where), letters, coordinates, sympy)


def _derivative(inside: Any, letters: str, coordinates: Mapping[str, Any], sympy: Any) -> Any:
    return sympy.Derivative(inside, *(coordinates[letter] for letter in letters)) if letters else inside
