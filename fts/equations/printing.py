"""Numbers, factors, products and sums -> text that reads back, and LaTeX.

What is printed arrives as strings and numbers, so that expressions, terms and equations all end here.
"""

import math
from collections.abc import Sequence


def number_text(value: float) -> str:
    """Shortest text that reads back as the same float, without a trailing .0."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def number_latex(value: float) -> str:
    """A number in LaTeX, with a power of ten where Python would print an exponent."""
    mantissa, _, exponent = number_text(value).partition("e")
    return mantissa if not exponent else rf"{mantissa} \times 10^{{{int(exponent)}}}"


def factor_text(name: str, argument: str) -> str:
    """`u`, `sin(...)`, or a bracket where the name is empty."""
    return "u" if name == "u" else f"{name}({argument})"


def factor_latex(name: str, argument: str, exponent: float) -> str:
    """A factor with its exponent in LaTeX; a function wears the exponent on its name."""
    raised = "" if exponent == 1.0 else f"^{{{number_text(exponent)}}}"
    if name == "u":
        return "u" + raised
    if name == "abs":
        return rf"\left|{argument}\right|{raised}"
    inner = rf"\left({argument}\right)"
    return inner + raised if name == "" else rf"\{name}{raised}{inner}"


def product_text(size: float, factors: Sequence[tuple[str, float]]) -> str:
    """`2*u^3*sin(u)` from a coefficient without its sign and factors with their exponents."""
    parts = [number_text(size)] if size != 1.0 or not factors else []
    parts += [base if exponent == 1.0 else f"{base}^{number_text(exponent)}" for base, exponent in factors]
    return "*".join(parts)


def product_latex(size: float, factors: Sequence[str]) -> str:
    """`product_text` in LaTeX, from factors that carry their exponents."""
    return r"\,".join([*([number_latex(size)] if size != 1.0 or not factors else []), *factors])


def spoken(size: float, body: str, digits: int | None, space: str) -> str:
    """Coefficient and term; exactly one is silent, and a rounded one shows that it was rounded."""
    if size == 1.0:
        return body
    number = number_text(size) if digits is None else f"{size:.{digits}g}"
    if digits is not None and number == "1":
        number = f"{size:.{max(digits - 1, 0)}f}"
    if space != " " and "e" in number:
        number = number_latex(float(number))
    return number if body == "1" else f"{number}{space}{body}"


def join(parts: Sequence[tuple[float, str]]) -> str:
    """A sum of texts, each under the sign of its number; 0 when there are none."""
    text = ""
    for signed, body in parts:
        minus = math.copysign(1.0, signed) < 0
        text += (" - " if minus else " + ") + body if text else ("-" if minus else "") + body
    return text or "0"
