"""Terms: what the grammar reads, what it refuses and why, and that printing and reading are inverse."""

import math
import random
import string
import subprocess
import sys

import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fts.equations import algebra, expressions, grammar
from fts.equations.equation import Equation, strong
from fts.equations.grammar import TermError
from fts.equations.terms import Library, Term, letters_of, parse_term

LIBRARY_1D = ["1", "u", "u^2", "u^3", "u*u_x", "u_xx", "u_xxx", "u_xxxx"]
LIBRARY_2D = ["1", "u", "u^2", "u_x", "u_y", "u_xx", "u_yy"]


@pytest.mark.parametrize("texts", [LIBRARY_1D, LIBRARY_2D])
def test_the_papers_libraries_read_and_print(texts: list[str]) -> None:
    library = Library.parse(texts)
    assert list(library.names) == texts
    assert len(library) == len(texts)


@pytest.mark.parametrize(
    ("text", "alpha", "scale", "q"),
    [
        ("u*u_x", (1, 0, 0), 1 / 2, "u^2"),
        ("u u_x", (1, 0, 0), 1 / 2, "u^2"),
        ("u_x*u", (1, 0, 0), 1 / 2, "u^2"),
        ("u^2*u_x", (1, 0, 0), 1 / 3, "u^3"),
        ("u*u*u_x", (1, 0, 0), 1 / 3, "u^3"),
        ("u^7*u_x", (1, 0, 0), 1 / 8, "u^8"),
        ("u*u_y", (0, 1, 0), 1 / 2, "u^2"),
        ("u*u_z", (0, 0, 1), 1 / 2, "u^2"),
        ("2u*u_x", (1, 0, 0), 1.0, "u^2"),
        ("u**2", (0, 0, 0), 1.0, "u^2"),
        ("sin(u)*u_x", (1, 0, 0), -1.0, "cos(u)"),
        ("cos(2*u)*u_x", (1, 0, 0), 0.5, "sin(2*u)"),
        ("exp(u)*u_x", (1, 0, 0), 1.0, "exp(u)"),
        ("u_x/u", (1, 0, 0), 1.0, "log(u)"),
        ("u_x/(1+u)", (1, 0, 0), 1.0, "log(1 + u)"),
        ("sqrt(u)*u_x", (1, 0, 0), 1 / 1.5, "u^1.5"),
        ("u*D_x(u^2)", (1, 0, 0), 2 / 3, "u^3"),
        ("D_x(u*u_x)", (2, 0, 0), 1 / 2, "u^2"),
        ("D_x(D_y(u))", (1, 1, 0), 1.0, "u"),
        ("u_yx", (1, 1, 0), 1.0, "u"),
        ("D_xx(u^1.73)", (2, 0, 0), 1.0, "u^1.73"),
        ("D_xx(3 + u)", (2, 0, 0), 1.0, "u"),
        ("u_x + u*u_x", (1, 0, 0), 1.0, "u + 0.5*u^2"),
        ("(u + 1)^2 - 2*u - 1", (0, 0, 0), 1.0, "u^2"),
        ("sqrt(u)*sqrt(u)", (0, 0, 0), 1.0, "u"),
        ("(u^2)^0.5", (0, 0, 0), 1.0, "(u^2)^0.5"),
        ("-u^2", (0, 0, 0), -1.0, "u^2"),
        ("u^-1", (0, 0, 0), 1.0, "u^-1"),
        ("u/(1 + u)", (0, 0, 0), 1.0, "u*(1 + u)^-1"),
        ("2.5e-3", (0, 0, 0), 2.5e-3, "1"),
    ],
)
def test_conservative_form(text: str, alpha: tuple[int, int, int], scale: float, q: str) -> None:
    term = parse_term(text)
    assert (term.alpha, term.scale, str(term.q)) == (alpha, scale, q)
    assert parse_term(str(term)) == term


@pytest.mark.parametrize(
    ("text", "printed", "parts", "derivatives"),
    [
        ("u_x*u_x", "u_x^2", {"": "u_x^2"}, 1),
        ("u_x*u_xx", "0.5*D_x(u_x^2)", {"x": "0.5*u_x^2"}, 1),
        ("u*u_xx", "u*u_xx", {"xx": "0.5*u^2", "": "-u_x^2"}, 1),
        ("u^2*u_xxx", "u^2*u_xxx", {"": "u^2*u_xxx"}, 3),
        ("x*u_x", "x*u_x", {"x": "x*u", "": "-u"}, 0),
        ("u_x*x*u", "x*u*u_x", {"x": "0.5*x*u^2", "": "-0.5*u^2"}, 0),
        ("D_x((1 + x^2)*u_x)", "D_x(u_x + x^2*u_x)", {"xx": "u + x^2*u", "x": "-2*x*u"}, 0),
        ("sin(3*t)", "sin(3*t)", {"": "sin(3*t)"}, 0),
        ("u_xxt", "u_xxt", {"xxt": "u"}, 0),
        ("u_t*u", "u*u_t", {"t": "0.5*u^2"}, 0),
        ("sin(u)/u*u_x", "u^-1*u_x*sin(u)", {"": "u^-1*u_x*sin(u)"}, 1),
        ("v*u_x", "v*u_x", {"": "v*u_x"}, 1),
        ("v*u_x + u*v_x", "D_x(u*v)", {"x": "u*v"}, 0),
        ("D_x(u*v_x)", "D_x(u*v_x)", {"x": "u*v_x"}, 1),
        ("v*v_x", "v*v_x", {"x": "0.5*v^2"}, 0),
        ("c(z) u_zz", "c(z)*u_zz", {"zz": "u*c(z)", "z": "-2*u*c'(z)", "": "u*c''(z)"}, 0),
        ("D_z(c(z)*u_z)", "D_z(c(z)*u_z)", {"zz": "u*c(z)", "z": "-u*c'(z)"}, 0),
        ("u_x*c( x )", "c(x)*u_x", {"x": "u*c(x)", "": "-u*c'(x)"}, 0),
        ("c(x)*u*u_x", "u*c(x)*u_x", {"x": "0.5*u^2*c(x)", "": "-0.5*u^2*c'(x)"}, 0),
        ("kappa(t)*u_xx", "D_xx(u*kappa(t))", {"xx": "u*kappa(t)"}, 0),
        ("c(x)*v*u_x", "c(x)*v*u_x", {"": "c(x)*v*u_x"}, 1),
        ("2*f(x)", "2*f(x)", {"": "2*f(x)"}, 0),
    ],
)
def test_general_terms_keep_as_few_derivatives_as_they_can(
    text: str, printed: str, parts: dict[str, str], derivatives: int
) -> None:
    term = parse_term(text, ("u", "v"))
    assert str(term) == printed
    assert parse_term(printed, ("u", "v")) == term
    assert {letters_of(alpha): str(q) for alpha, q in term.weak_parts} == parts
    assert term.strong_derivatives == derivatives


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sin(u_x)", "functions take u, not its derivatives"),
        ("u^u", "an exponent is a number"),
        ("u^u_x", "an exponent is a number"),
        ("u_w", "use x, y, z or t"),
        ("v", "unknown name 'v'"),
        ("u_x + u_y", "as separate terms"),
        ("c(x)*d(x)*u", "two unknown functions"),
        ("c(x)^2*u", "as a plain factor"),
        ("u_x + c(x)*u_x", "as a plain factor"),
        ("sin(c(x))", "as a plain factor"),
        ("D_x(c(x))*u", "the derivative of an unknown function"),
        ("D_x(c(x))", "of x itself"),
        ("c(u)*u_x", "unknown name 'c'"),
        ("c_x(x)*u", "unknown name 'c_x'"),
        ("u(x)*u_x", r"u is no unknown function of x: write u\*x, or give the function another name"),
        ("u_x (t)", r"u_x is no unknown function of t: write u_x\*t"),
        ("t(x)*u", r"t is no unknown function of x: write t\*x"),
        ("u - u", "is zero"),
        ("D_x(1)", "is zero"),
        ("0*u_x", "is zero"),
        ("1/0", "not a finite real number"),
        ("(-1)^0.5", "not a finite real number"),
        ("exp(1e9)", "not a finite number"),
        ("1e999", "too large"),
        ("(1 + u)^65", "the largest is 64"),
        ("(1 + u + sin(u) + cos(u) + exp(u))^60", "monomials"),
        ("abs(u)*D_x(abs(u))", "not differentiable"),
        ("u +", "the text ends"),
        ("(u", "stays open"),
        ("u)", "expected an operator or the end"),
        ("2 3", "expected an operator or the end"),
        ("sin u", "stands without a parenthesis"),
        ("u @ u", "not in the grammar"),
        ("u" + "*u" * 300, "characters"),
        ("(" * 30 + "u" + ")" * 30, "nested deeper"),
        ("u_" + "x" * 13, "order 13"),
        ("D_xxxxxxx(u_xxxxxxx)", "order 14"),
        ("", "the text ends"),
    ],
)
def test_refusals_say_why(text: str, reason: str) -> None:
    with pytest.raises(TermError, match=reason):
        parse_term(text)


STATES = ["u", "u", "u", "u^2", "u^1.73", "u^-1", "u_x", "u_xx", "u_y", "u_t", "D_x(u^2)", "v"]
OPENINGS = ["(", "(", "D_xx(", "sin(", "exp(", "log(", "sqrt("]
OPERANDS = [*STATES, *OPENINGS, "2", "0.5", "-1", "1e300", "0"]
OPERATORS = ["+", "-", "*", "*", "/", "^", "**", "=", ")", ")"]


def _random_text(rng: random.Random) -> str:
    """Operands and operators in turn, mostly; sometimes out of turn, or any printable character."""
    text, operand = "", True
    for _ in range(rng.randint(1, 9)):
        piece = rng.choice(OPERANDS if operand != (rng.random() < 0.05) else OPERATORS)
        text += piece if rng.random() < 0.98 else rng.choice(string.printable + "²∂é")
        operand = piece.endswith("(") or (piece in OPERATORS and piece != ")")
    missing = max(0, text.count("(") - text.count(")"))
    return text + ("u" if operand else "") + ")" * missing if rng.random() < 0.8 else text


def read_random_texts(count: int) -> int:
    """How many of `count` random texts are terms; each prints back, and TermError is the only exception."""
    rng = random.Random(4)
    read = 0
    for _ in range(count):
        text = _random_text(rng)
        try:
            term = parse_term(text)
        except TermError:
            continue
        read += 1
        assert parse_term(str(term)) == term, text
    return read


def test_any_text_is_a_term_or_the_one_error() -> None:
    """100,000 random texts, in a process of its own: the type checks of this one would make it a minute."""
    child = subprocess.run([sys.executable, __file__, "100000"], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) > 15_000  # a generator that only makes nonsense would test nothing


def test_executable_text_is_refused() -> None:
    for text in (
        "__import__('os').getcwd()",
        "u.__class__",
        "lambda u: u",
        "u; u",
        "u[0]",
        "print(u)",
        "f'{u}'",
    ):
        with pytest.raises(TermError):
            parse_term(text)


TREES = st.recursive(
    st.floats(-3, 3).filter(lambda c: abs(c) > 1e-3)
    | st.sampled_from(["u", "u^2", "u^0.5", "u^1.73", "u^-1"]),
    lambda inner: st.tuples(st.sampled_from(["+", "*", "sin", "cos", "tanh"]), inner, inner),
    max_leaves=6,
)


def build(tree: float | str | tuple) -> expressions.Expression:
    """The expression of a drawn tree; built in the test, because the type checks draw random numbers."""
    if isinstance(tree, float):
        return algebra.constant(tree)
    if isinstance(tree, str):
        return algebra.state(float(tree[2:] or 1))
    name, left, right = tree
    if name in ("+", "*"):
        return {"+": algebra.add, "*": algebra.multiply}[name](build(left), build(right))
    return algebra.call(name, build(left))


@settings(max_examples=100, deadline=None)
@given(TREES, st.tuples(*[st.integers(0, 4)] * 3), st.floats(-5, 5).filter(lambda s: abs(s) > 1e-6))
def test_printing_and_reading_are_inverse(
    tree: float | str | tuple, alpha: tuple[int, int, int], factor: float
) -> None:
    q = build(tree)
    assume([monomial for monomial in q.monomials if monomial[0] or not sum(alpha)])
    term = Term(alpha, factor, q)
    assert len(str(term)) > grammar.LONGEST or parse_term(str(term)) == term


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_the_derivative_in_u_is_the_derivative(tree: float | str | tuple) -> None:
    q = build(tree)
    u, h = np.linspace(0.6, 1.4, 5), 1e-5
    slope = (q(u + h) - q(u - h)) / (2 * h)
    third = np.abs(slope).max() + np.abs(q(u)).max() + 1.0
    exact = algebra.derivative(q)(u)
    np.testing.assert_allclose(exact, slope, atol=2e-3 * third, rtol=1e-4)


ELEMENTARY = "u; u^3; u^-1; u^1.73; sin(2*u + 1); cos(u); exp(-3*u); exp(u)^2; sinh(u); cosh(u)"
BRACKETED = "(1 + 2*u)^0.5; 1/(3 + u); 1 + u + 2*u^4"


@pytest.mark.parametrize("text", f"{ELEMENTARY}; {BRACKETED}".split("; "))
def test_the_antiderivative_differentiates_back(text: str) -> None:
    q = parse_term(text).q
    primitive = algebra.antiderivative(q)
    assert primitive is not None
    u = np.linspace(0.3, 2.0, 9)
    np.testing.assert_allclose(algebra.derivative(primitive)(u), q(u), rtol=1e-13)


EVALUATED = "1 + u - 2*u^3; u^1.73; sqrt(u); u/(1 + u); exp(-u)*sin(3*u); log(1 + u^2); tan(u)^2; (u^2)^0.5"


@pytest.mark.parametrize("text", f"{EVALUATED}; abs(u - 1); tanh(u) - sinh(u)*cosh(u)".split("; "))
def test_values_agree_with_sympy(text: str) -> None:
    u = np.linspace(0.1, 1.4, 14)
    symbol = sympy.Symbol("u", positive=True)
    theirs = sympy.lambdify(symbol, sympy.sympify(text.replace("^", "**"), locals={"u": symbol}), "numpy")(u)
    np.testing.assert_allclose(parse_term(text).q(u) * parse_term(text).scale, theirs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u^0.5", "needs a positive field; the smallest u is -1"),
        ("(1 + 2*u)^1.5", "needs a positive field"),
        ("log(u)", "needs positive values"),
        ("u^-2", "divides by zero"),
        ("1/u", "divides by zero"),
        ("exp(1000*u)", "not finite"),
    ],
)
def test_values_outside_the_domain_are_errors(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_term(text).q(np.array([-1.0, 0.0, 1.0]))


def test_the_strong_form_is_faa_di_bruno() -> None:
    x, y = sympy.symbols("x y")
    field = sympy.sin(x) * sympy.exp(y / 2) + 2
    point = {x: 0.4, y: -0.3}

    def partial(alpha: tuple[int, int, int]) -> np.ndarray:
        return np.array([float(sympy.diff(field, x, alpha[0], y, alpha[1]).subs(point))])

    for text in ("u*u_x", "D_xx(u^1.73)", "D_xxy(u^2)", "u_xxxx", "u^2*u_y", "D_xxxx(sin(u))", "1", "u^3"):
        term = parse_term(text)
        q = sympy.sympify(str(term.q).replace("^", "**"), locals={"u": field})
        exact = term.scale * sympy.diff(q, x, term.alpha[0], y, term.alpha[1]).subs(point)
        np.testing.assert_allclose(strong(term, partial)[0], float(exact), rtol=1e-10, err_msg=text)


def test_terms_are_ordered_hashable_values() -> None:
    library = Library.parse(LIBRARY_1D)
    assert sorted(library, reverse=True)[::-1] == list(library)
    assert len({parse_term("u*u_x"), parse_term("u_x*u"), parse_term("0.5*D_x(u^2)")}) == 1
    assert parse_term("u_x") < parse_term("u_y") < parse_term("u_xx")
    assert Term((2,), 1.0, algebra.state()) == parse_term("u_xx")


def test_libraries_refuse_dependent_terms_and_missing_axes() -> None:
    with pytest.raises(TermError, match="multiples of each other"):
        Library.parse(["u", "u*u_x", "D_x(u^2)"])
    with pytest.raises(TermError, match="u_y needs 2 spatial axes; the field has 1"):
        Library.parse(["u", "u_y"]).check_dimension(1)
    with pytest.raises(TermError, match="the nearest is 'u_xx'"):
        Library.parse(LIBRARY_1D).index("u_xy")
    with pytest.raises(TermError, match="single text"):
        Library.parse("u")
    with pytest.raises(TermError, match="empty"):
        Library.parse([])
    assert Library.parse(LIBRARY_1D).index("u_x*u") == 4


def test_equations_print_read_and_compare() -> None:
    library = Library.parse(LIBRARY_1D)
    ks = Equation(library.terms, np.array([0, 0, 0, 0, -0.99, -1.01, 0, -1]))
    assert str(ks) == "u_t = -0.99 u*u_x - 1.01 u_xx - u_xxxx"
    assert ks.latex == r"u_t = -0.99\,u\,u_{x} - 1.01\,u_{xx} - u_{xxxx}"
    assert Equation.parse(str(ks)) == ks
    assert {str(term) for term in ks.support()} == {"u*u_x", "u_xx", "u_xxxx"}
    np.testing.assert_allclose(Equation.parse(str(ks)).on(library), ks.coefficients)
    assert str(Equation(library.terms[:2], [0.9999, -2.0])) == "u_t = 1.00 - 2 u"
    assert str(Equation(library.terms[:1], [0.0])) == "u_t = 0"
    assert str(Equation.parse("u_t = 0.1 D_xx(u^1.73)")) == "u_t = 0.1 D_xx(u^1.73)"
    with pytest.raises(TermError, match="an equation reads"):
        Equation.parse("u_xx")
    with pytest.raises(ValueError, match="as many finite coefficients"):
        Equation(library.terms[:1], [math.nan])
    with pytest.raises(TermError, match="u_y of the equation is not in the library"):
        Equation.parse("u_t = u_y").on(library)


def test_conventions_map_onto_one_physical_basis() -> None:
    """D_x(u^2) = 2 u*u_x: the same equation in two libraries has one support and one set of coefficients."""
    ours = Equation.parse("u_t = -6 u*u_x - u_xxx")
    theirs = Equation(Library.parse(["D_x(u^2)", "u_xxx"]).terms, [-3.0, -1.0])
    assert ours == theirs
    assert hash(ours) == hash(theirs)
    assert ours.support() == theirs.support()
    np.testing.assert_allclose(ours.on(Library.parse(["D_x(u^2)", "u_xxx"])), [-3.0, -1.0])
    summed = Equation(Library.parse(["D_xx(u + 0.5*u^2)"]).terms, [2.0])
    assert summed == Equation.parse("u_t = 2 u_xx + D_xx(u^2)")


@settings(max_examples=20, deadline=None)
# The smallest numbers of all lose digits when they are halved, as the coefficient of u u_x is.
@given(st.lists(st.floats(-1e3, 1e3).map(lambda c: c if abs(c) > 1e-300 else 0.0), min_size=8, max_size=8))
def test_exact_text_of_an_equation_reads_back(coefficients: list[float]) -> None:
    equation = Equation(Library.parse(LIBRARY_1D).terms, coefficients)
    assert Equation.parse(equation.text(digits=None)) == equation


def test_latex_compiles_to_the_same_symbols() -> None:
    latex = {
        text: parse_term(text).latex for text in ("u*u_x", "u_xx", "D_xx(u^1.73)", "sin(u)", "2*u^3", "3")
    }
    assert latex == {
        "u*u_x": r"u\,u_{x}",
        "u_xx": r"u_{xx}",
        "D_xx(u^1.73)": r"\partial_{xx}\left(u^{1.73}\right)",
        "sin(u)": r"\sin\left(u\right)",
        "2*u^3": r"2\,u^{3}",
        "3": "3",
    }


if __name__ == "__main__":
    print(read_random_texts(int(sys.argv[1])))


ADVERSARIAL = [
    "(sin((1+u)^60)+1)^60",
    "((1+u)^60+sin((1+u)^60))^9",
    "((((u+1)^0.5+1)^0.5+1)^0.5+1)^63",
    "(" * 9 + "u+sin(u)" + ")^2+cos(u))^2" * 5 + ")" * 4,
    "*".join(["(sin(u)+1)^1.5"] * 26),
    "+".join(["(1+u)^63"] * 44),
    "((u+1)^0.5+(u+2)^0.5)^60*((u+1)^0.5+(u+3)^0.5)^60",
    "exp(" * 15 + "(1+u+sin(u))^9" + ")^3" * 15,
]


TIMED = """
import sys, time
from fts.equations.terms import parse_term

for text in sys.argv[1:]:
    began = time.process_time()
    try:
        str(parse_term(text))
    except ValueError:
        pass
    assert time.process_time() - began < 4, text
"""


def test_no_text_takes_long() -> None:
    """Terms or not, it is known soon; not in this process, where the types of every call are checked."""
    subprocess.run([sys.executable, "-c", TIMED, *ADVERSARIAL], check=True)


def test_unknown_functions_are_no_components_and_known_up_to_their_name() -> None:
    library = Library.parse(["c(y)*u_yy", "D_y(c(y)*u_y)", "u_yy", "c(x)*u_yy", "c(t)"])
    assert library.states == {"u"}
    assert [term.unknown for term in library] == ["c(y)", "c(y)", "", "c(x)", "c(t)"]
    assert [term.dimension for term in library] == [2, 2, 2, 2, 0]
    assert len({term.without_unknown for term in library}) == 2
    assert parse_term("kappa(y)*u_yy").latex == r"\mathrm{kappa}(y)\,u_{yy}"
    with pytest.raises(TermError, match="multiples of each other"):
        Library.parse(["c(x)*u_x", "2*d(x)*u_x"])
    with pytest.raises(TermError, match=r"c is no unknown function of x: write c\*x"):
        Library.parse(["c(x)*u_x"], ("u", "c"))
    equation = Equation.parse("u_t = c(x)*u_xx - u*u_x")
    assert str(equation) == "u_t = c(x)*u_xx - u*u_x"
