"""SymPy's form of an equation: printed back it is the same equation, and it says the same of a function."""

import numpy as np
import pytest
import sympy
from sympy.printing.str import StrPrinter

from fts.equations.equation import Equation
from fts.equations.sympy_form import to_sympy

EQUATIONS = (
    ("u_t = -6*u*u_x - u_xxx", ("u",)),
    ("u_t = -u*u_x + 0.3*D_xx(u^1.5) + sin(2*u) - abs(u)", ("u",)),
    ("u_t = 0.6*u_xx - 1.5*D_x(u*v_x) + u^2*v", ("u", "v")),
    ("u_tt = 1.44*u_xx - 0.6*u_t + 0.2*x*u_x^2 + sin(3*t)", ("u",)),
    ("w_t = -a*w_x - b*w_y + 0.06*w_xx + 0.06*w_yy", ("w", "a", "b")),
    ("u_t = -u_x + u_xxt - 0.5*c(x)*u_x", ("u",)),
)


class _AsTerms(StrPrinter):
    """The package's own way to write terms."""

    def _print_Derivative(self, expression: sympy.Derivative) -> str:
        letters = "".join(str(symbol) * count for symbol, count in expression.variable_count)
        inner = expression.expr
        body = self._print(inner)
        return f"{body}_{letters}" if body.isalnum() else f"D_{letters}({body})"

    def _print_Function(self, expression: sympy.Function) -> str:
        name = expression.func.__name__
        if len(expression.args) > 1 or name in ("Abs",):
            return name if name != "Abs" else f"abs({self._print(expression.args[0])})"
        return f"{name}({self._print(expression.args[0])})"

    def _print_Abs(self, expression: sympy.Abs) -> str:
        return f"abs({self._print(expression.args[0])})"

    def _print_Float(self, expression: sympy.Float) -> str:
        return repr(float(expression))


@pytest.mark.parametrize(("text", "states"), EQUATIONS)
def test_printed_back_it_is_the_same_equation(text: str, states: tuple[str, ...]) -> None:
    equation = Equation.parse(text, states)
    form = to_sympy(equation, 2 if "_y" in text else 1)
    printer = _AsTerms()
    left, right = (printer.doprint(side).replace("**", "^") for side in (form.lhs, form.rhs))
    again = Equation.parse(f"{left} = {right}", states)
    assert again.target == equation.target
    assert again.physical() == pytest.approx(equation.physical(), rel=1e-12)


def test_it_says_of_a_solution_that_it_is_one() -> None:
    x, t = sympy.symbols("x t", real=True)
    form = to_sympy(Equation.parse("u_t = -6*u*u_x - u_xxx"), 1)
    u = sympy.Function("u")
    soliton = 2 / sympy.cosh(x - 4 * t) ** 2
    rest = (form.lhs - form.rhs).subs(u(x, t), soliton).doit()
    values = sympy.lambdify((x, t), rest)(np.linspace(-3, 3, 7), 0.3)
    assert np.abs(values).max() < 1e-12
