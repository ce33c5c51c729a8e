"""Functions q(u) of the state as canonical values: algebra, evaluation and printing (Section 3).

An `Expression` is a sum of monomials c * f_1^e_1 * ... * f_k^e_k. A factor f is the state u, a named function
of an expression, or a bracketed sum that a power cannot expand, as in (1 + u)^0.5. Equal functions built in
different order are equal, hashable values. Real powers and logarithms are meant for positive fields:
u^0.5 * u^0.5 is u, and evaluating u^0.5 on negative values is an error rather than a NaN.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fts.grammar import TermError

MOST_MONOMIALS = 64
LARGEST_EXPONENT = 64.0

_EVALUATE: dict[str, Callable] = {
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
    """The state (name "u"), a named function of `argument`, or a bracket (name "") around it."""

    name: str
    argument: "Expression"  # empty for the state itself

    @cached_property
    def key(self) -> tuple[str, str]:
        return self.name, str(self.argument)


Factors = tuple[tuple[Factor, float], ...]


@dataclass(frozen=True)
class Expression:
    """Sum over `monomials` of coefficient * product of factor^exponent, in canonical order."""

    monomials: tuple[tuple[Factors, float], ...]

    @cached_property
    def constant(self) -> float | None:
        """The value when u does not occur, else None."""
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

    def __call__(self, u):
        """q(u) entrywise; a value outside the domain of a real power, logarithm or quotient is an error."""
        u = np.asarray(u, dtype=np.float64)
        with np.errstate(all="ignore"):
            values = _evaluate(self, u)
        if not np.isfinite(values).all():
            raise ValueError(
                f"{self} is not finite on this field: max |u| is {np.abs(u).max():.3g}; drop or rescale it"
            )
        return values

    @cached_property
    def key(self) -> tuple:
        """Total order: polynomials by degree, then everything else by its text."""
        return tuple((_monomial_key(factors), coefficient) for factors, coefficient in self.monomials)

    @cached_property
    def _text(self) -> str:
        return _print_sum(self, _text_monomial)

    def __str__(self) -> str:
        return self._text

    @property
    def latex(self) -> str:
        return _print_sum(self, _latex_monomial)


STATE = Factor("u", Expression(()))


def constant(value: float) -> Expression:
    return _collect([((), float(value))])


def state(exponent: float = 1.0) -> Expression:
    """u^exponent."""
    return power(Expression(((((STATE, 1.0),), 1.0),)), exponent)


def add(*parts: Expression) -> Expression:
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
        value = float(_EVALUATE[function](argument.constant))
    if not math.isfinite(value):
        raise TermError(f"{function}({argument}) is not a finite number")
    return constant(value)


def scale(expression: Expression, factor: float) -> Expression:
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
    return Expression(tuple(sorted(kept, key=lambda monomial: _monomial_key(monomial[0]))))


def _monomial_key(factors: Factors) -> tuple:
    others = tuple((factor.key, exponent) for factor, exponent in factors if factor != STATE)
    return len(others), sum(exponent for factor, exponent in factors if factor == STATE), others


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
        raise TermError(f"{base:g}^{exponent:g} is not a finite real number")
    return float(value)


def _evaluate(expression: Expression, u: np.ndarray) -> np.ndarray:
    total = None
    for factors, coefficient in expression.monomials:
        value = None
        for factor, exponent in factors:
            part = _power_values(_factor_values(factor, u), exponent, factor)
            value = part if value is None else value * part
        value = np.ones_like(u) if value is None else value
        value = value if coefficient == 1.0 else coefficient * value
        total = value if total is None else total + value
    return np.zeros_like(u) if total is None else total


def _factor_values(factor: Factor, u: np.ndarray) -> np.ndarray:
    if factor == STATE:
        return u
    values = _evaluate(factor.argument, u)
    if factor.name == "log" and values.min(initial=np.inf) <= 0:
        raise ValueError(f"log({factor.argument}) needs positive values; the smallest is {values.min():.3g}")
    return values if factor.name == "" else _EVALUATE[factor.name](values)


def _power_values(values: np.ndarray, exponent: float, factor: Factor) -> np.ndarray:
    if exponent == 1.0:
        return values
    name = _textexpression_of(factor)
    if not exponent.is_integer() and values.min(initial=np.inf) < 0:
        smallest = values.min()
        raise ValueError(f"{name}^{exponent:g} needs a positive field; the smallest {name} is {smallest:.3g}")
    if exponent < 0 and (values == 0).any():
        raise ValueError(f"{name}^{exponent:g} divides by zero: {name} vanishes on this field")
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


def _print_sum(expression: Expression, monomial: Callable[[Factors, float], str]) -> str:
    text = ""
    for factors, coefficient in expression.monomials:
        sign = "-" if coefficient < 0 else "+"
        part = monomial(factors, abs(coefficient))
        text += f" {sign} {part}" if text else ("-" if coefficient < 0 else "") + part
    return text or "0"


def number_text(value: float) -> str:
    """Shortest text that reads back as the same float, without a trailing .0."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _text_monomial(factors: Factors, coefficient: float) -> str:
    parts = [number_text(coefficient)] if coefficient != 1.0 or not factors else []
    for factor, exponent in factors:
        parts.append(_textexpression_of(factor) + ("" if exponent == 1.0 else f"^{number_text(exponent)}"))
    return "*".join(parts)


def _textexpression_of(factor: Factor) -> str:
    return "u" if factor == STATE else f"{factor.name}({factor.argument})"


def _latex_monomial(factors: Factors, coefficient: float) -> str:
    parts = [number_latex(coefficient)] if coefficient != 1.0 or not factors else []
    for factor, exponent in factors:
        parts.append(_latexexpression_of(factor, exponent))
    return r"\,".join(parts)


def _latexexpression_of(factor: Factor, exponent: float) -> str:
    raised = "" if exponent == 1.0 else f"^{{{number_text(exponent)}}}"
    if factor == STATE:
        return "u" + raised
    inner = rf"\left({factor.argument.latex}\right)"
    if factor.name == "abs":
        return rf"\left|{factor.argument.latex}\right|{raised}"
    return inner + raised if factor.name == "" else rf"\{factor.name}{raised}{inner}"


def number_latex(value: float) -> str:
    """A number in LaTeX, with a power of ten where Python would print an exponent."""
    mantissa, _, exponent = number_text(value).partition("e")
    return mantissa if not exponent else rf"{mantissa} \times 10^{{{int(exponent)}}}"
