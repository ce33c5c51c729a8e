"""Functions q(u) of the state as canonical values: what they are, print and evaluate to (Section 3).

An `Expression` is a sum of monomials c * f_1^e_1 * ... * f_k^e_k. A factor f is a symbol, a named function
of an expression, or a bracketed sum that a power cannot expand, as in (1 + u)^0.5. Symbols are the state u,
other components and inputs, their derivatives (`v_x`), coordinates, and unknown functions of one (`c(z)`,
differentiated `c'(z)`). Equal functions built in
different order are equal, hashable values. Real powers and logarithms are meant for positive fields:
u^0.5 * u^0.5 is u, and evaluating u^0.5 on negative values is an error rather than a NaN.

Texts of numbers and signed sums, for terms and equations too, are at the end.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

UFUNCS: dict[str, Callable] = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
}


@dataclass(frozen=True)
class Factor:
    """A symbol, a named function of `argument`, or a bracket (name "") around it."""

    name: str
    argument: "Expression"  # empty for a symbol

    @cached_property
    def key(self) -> tuple[str, str]:
        """Place in the order of the factors of one monomial."""
        return self.name, str(self.argument)

    @property
    def is_symbol(self) -> bool:
        """True for what has a value of its own at every point: a component, its derivative, a coordinate."""
        return not self.argument.monomials

    def __str__(self) -> str:
        return self.name if self.is_symbol else f"{self.name}({self.argument})"

    def latex(self, exponent: float) -> str:
        """The factor with its exponent in LaTeX; a function wears the exponent on its name."""
        raised = "" if exponent == 1.0 else f"^{{{number_text(exponent)}}}"
        if self.is_symbol:
            return symbol_latex(self.name) + raised
        if self.name == "abs":
            return rf"\left|{self.argument.latex}\right|{raised}"
        inner = rf"\left({self.argument.latex}\right)"
        return inner + raised if self.name == "" else rf"\{self.name}{raised}{inner}"


Factors = tuple[tuple[Factor, float], ...]


@dataclass(frozen=True)
class Expression:
    """Sum over `monomials` of coefficient * product of factor^exponent, in canonical order."""

    monomials: tuple[tuple[Factors, float], ...]

    def __hash__(self) -> int:
        # Once per value: functions of functions would hash everything inside again and again.
        return self._hashed

    @cached_property
    def _hashed(self) -> int:
        return hash(self.monomials)

    @cached_property
    def size(self) -> int:
        """Monomials and factors of everything inside."""
        return sum(
            1 + sum(1 + factor.argument.size for factor, _ in factors) for factors, _ in self.monomials
        )

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of all symbols inside."""
        factors = [factor for factors, _ in self.monomials for factor, _ in factors]
        inside = (frozenset([f.name]) if f.is_symbol else f.argument.symbols for f in factors)
        return frozenset().union(*inside)

    @cached_property
    def constant(self) -> float | None:
        """The value when no symbol occurs, else None."""
        if not self.monomials:
            return 0.0
        if len(self.monomials) == 1 and not self.monomials[0][0]:
            return self.monomials[0][1]
        return None

    @cached_property
    def degree(self) -> float | None:
        """n when the expression is exactly u^n (n = 0 for 1), else None."""
        if len(self.monomials) != 1 or self.monomials[0][1] != 1.0:
            return None
        factors = self.monomials[0][0]
        if not factors:
            return 0.0
        return factors[0][1] if len(factors) == 1 and factors[0][0] == STATE else None

    @cached_property
    def power_of(self) -> tuple[str, float] | None:
        """(s, n) when the expression is exactly s^n for one symbol s, else None."""
        if len(self.monomials) != 1 or self.monomials[0][1] != 1.0 or len(self.monomials[0][0]) != 1:
            return None
        ((factor, exponent),) = self.monomials[0][0]
        return (factor.name, exponent) if factor.is_symbol else None

    def __call__(self, u):
        """q(u) entrywise, or q of a mapping from symbols to values that broadcast against each other.

        A value outside the domain of a real power, logarithm or quotient is an error.
        """
        values = u if isinstance(u, Mapping) else {"u": u}
        values = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        with np.errstate(all="ignore"):
            result = _evaluate(self, values)
        if not np.isfinite(result).all():
            sizes = (f"max |{name}| is {np.abs(values[name]).max():.3g}" for name in sorted(self.symbols))
            raise ValueError(f"{self} is not finite on this field: {', '.join(sizes)}; drop or rescale it")
        return result

    @cached_property
    def key(self) -> tuple:
        """Total order: polynomials by degree, then everything else by its text."""
        return tuple((monomial_key(factors), coefficient) for factors, coefficient in self.monomials)

    @cached_property
    def _text(self) -> str:
        def body(factors: Factors, size: float) -> str:
            parts = [number_text(size)] if size != 1.0 or not factors else []
            parts += [str(f) if e == 1.0 else f"{f}^{number_text(e)}" for f, e in factors]
            return "*".join(parts)

        return signed_sum([(c, body(factors, abs(c))) for factors, c in self.monomials])

    def __str__(self) -> str:
        return self._text

    @property
    def latex(self) -> str:
        """The expression in LaTeX."""

        def body(factors: Factors, size: float) -> str:
            parts = [number_latex(size)] if size != 1.0 or not factors else []
            return r"\,".join(parts + [factor.latex(e) for factor, e in factors])

        return signed_sum([(c, body(factors, abs(c))) for factors, c in self.monomials])


STATE = Factor("u", Expression(()))


def monomial_key(factors: Factors) -> tuple:
    """Place of a monomial in a sum: few functions first, then low powers of u."""
    others = tuple((factor.key, exponent) for factor, exponent in factors if factor != STATE)
    return len(others), sum(exponent for factor, exponent in factors if factor == STATE), others


def unknown_axis(name: str) -> str:
    """The coordinate that an unknown function takes, z of c(z); empty for other symbols."""
    return name[-2] if name.endswith(")") else ""


def symbol_latex(name: str) -> str:
    """A symbol in LaTeX: v_xx with its letters as an index, c(z) as it is."""
    if unknown_axis(name):
        head, _, rest = name.partition("(")
        return f"{symbol_latex(head)}({rest}"
    head, _, letters = name.partition("_")
    head = head if len(head) == 1 else rf"\mathrm{{{head}}}"
    return rf"{head}_{{{letters}}}" if letters else head


def _evaluate(expression: Expression, values: Mapping[str, np.ndarray]) -> np.ndarray:
    total, like = None, next(iter(values.values()))
    for factors, coefficient in expression.monomials:
        value = None
        for factor, exponent in factors:
            part = _power_values(_factor_values(factor, values), exponent, factor)
            value = part if value is None else value * part
        value = np.ones_like(like) if value is None else value
        value = value if coefficient == 1.0 else coefficient * value
        total = value if total is None else total + value
    return np.zeros_like(like) if total is None else total


def _factor_values(factor: Factor, values: Mapping[str, np.ndarray]) -> np.ndarray:
    if factor.is_symbol:
        return values[factor.name]
    inner = _evaluate(factor.argument, values)
    if factor.name == "log" and inner.min(initial=np.inf) <= 0:
        raise ValueError(f"log({factor.argument}) needs positive values; the smallest is {inner.min():.3g}")
    return inner if factor.name == "" else UFUNCS[factor.name](inner)


def _power_values(values: np.ndarray, exponent: float, factor: Factor) -> np.ndarray:
    if exponent == 1.0:
        return values
    if not exponent.is_integer() and values.min(initial=np.inf) < 0:
        smallest = values.min()
        raise ValueError(
            f"{factor}^{exponent:g} needs a positive field; the smallest {factor} is {smallest:.3g}"
        )
    if exponent < 0 and (values == 0).any():
        raise ValueError(f"{factor}^{exponent:g} divides by zero: {factor} vanishes on this field")
    if not exponent.is_integer():
        return values**exponent
    result = _natural_power(values, int(abs(exponent)))
    return result if exponent > 0 else 1.0 / result


def _natural_power(values: np.ndarray, n: int) -> np.ndarray:
    """values^n for n >= 1 by squaring: several times faster than np.power, which goes through exp and log."""
    if n == 1:
        return values
    half = _natural_power(values, n // 2)
    return half * half * values if n % 2 else half * half


def number_text(value: float) -> str:
    """Shortest text that reads back as the same float, without a trailing .0."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def number_latex(value: float) -> str:
    """A number in LaTeX, with a power of ten where Python would print an exponent."""
    mantissa, _, exponent = number_text(value).partition("e")
    return mantissa if not exponent else rf"{mantissa} \times 10^{{{int(exponent)}}}"


def with_coefficient(size: float, body: str, digits: int | None, space: str) -> str:
    """Coefficient and term; exactly one is silent, and a rounded one shows that it was rounded."""
    if size == 1.0:
        return body
    number = number_text(size) if digits is None else f"{size:.{digits}g}"
    if digits is not None and number == "1":
        number = f"{size:.{max(digits - 1, 0)}f}"
    if space != " " and "e" in number:
        number = number_latex(float(number))
    return number if body == "1" else f"{number}{space}{body}"


def signed_sum(parts: Sequence[tuple[float, str]]) -> str:
    """A sum of texts, each under the sign of its number; 0 when there are none."""
    text = ""
    for signed, body in parts:
        minus = math.copysign(1.0, signed) < 0
        text += (" - " if minus else " + ") + body if text else ("-" if minus else "") + body
    return text or "0"
