"""Equation: u_t = a sum of terms with coefficients, compared and scored in one physical basis (Section 3).

    Equation.parse("u_t = -u*u_x - u_xx - u_xxxx")

`strong` evaluates a term pointwise, as classical selectors do (Section 4): the weak form needs values of u
only, this every derivative the term names, which is where noise enters.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts import validation
from fts.equations.algebra import derivative
from fts.equations.expressions import signed_sum, symbol_latex, with_coefficient
from fts.equations.grammar import Node, Sum, TermError, read_equation
from fts.equations.terms import Library, Term, conserve, factor_and_latex, factor_and_text


@dataclass(frozen=True, eq=False)
class Equation:
    """u_t = sum_j coefficients[j] * terms[j]; equal when the nonzero parts agree in the physical basis.

    `target` is the left-hand side: u_t, or u_tt, or a derivative in time of another component.
    """

    terms: tuple[Term, ...]
    coefficients: Sequence[float] | np.ndarray
    target: str = "u_t"

    def __post_init__(self) -> None:
        remedy = "give terms with their coefficients, or a text by fts.Equation.parse('u_t = u_xx')"
        validation.require_type((tuple, list), self.terms, "terms", remedy)
        for term in self.terms:
            validation.require_type(Term, term, "a term", remedy)
        values = validation.real_array("coefficients", self.coefficients).reshape(-1).copy()
        if len(values) != len(self.terms) or not np.isfinite(values).all():
            raise ValueError(
                f"{len(self.terms)} terms need as many finite coefficients: check the {len(values)} given"
            )
        values.flags.writeable = False
        object.__setattr__(self, "terms", tuple(self.terms))
        object.__setattr__(self, "coefficients", values)

    @staticmethod
    def parse(text: str, states: Sequence[str] = ("u",)) -> "Equation":
        """`u_t = -6 u*u_x - u_xxx` as physical terms with their coefficients, in the terms' order."""
        target, right = read_equation(text, states)
        parts: dict[Term, float] = {}
        for part in _summands(right):
            for alpha, q in conserve(part).items():
                for term, value in Term(alpha[:3], 1.0, q, alpha[3]).physical().items():
                    parts[term] = parts.get(term, 0.0) + value
        terms = tuple(sorted(term for term, value in parts.items() if value != 0.0))
        return Equation(terms, [parts[term] for term in terms], f"{target.name}_{target.letters}")

    def physical(self) -> dict[Term, float]:
        """Nonzero coefficients by term of the shared physical basis, where D_x(u^2) = 2 u*u_x."""
        total: dict[Term, float] = {}
        for term, coefficient in zip(self.terms, self.coefficients, strict=True):
            for part, factor in term.physical().items():
                total[part] = total.get(part, 0.0) + float(coefficient) * factor
        return {term: total[term] for term in sorted(total) if total[term] != 0.0}

    def support(self) -> frozenset[Term]:
        """Physical terms with a nonzero coefficient."""
        return frozenset(self.physical())

    def on(self, library: Library) -> Float[np.ndarray, " J"]:
        """Coefficients [J] of this equation in the library's scaling; an error when a term is missing."""
        validation.require_type(Library, library, "library", "give an fts.Library")
        rest = self.physical()
        values = np.zeros(len(library))
        for j, term in enumerate(library):
            parts = term.physical()
            lead, factor = next(iter(parts.items()))
            values[j] = rest.get(lead, 0.0) / factor
            for part, weight in parts.items():
                rest[part] = rest.get(part, 0.0) - values[j] * weight
        missing = [
            str(term) for term, left in rest.items() if abs(left) > 1e-9 * np.abs(values).max(initial=1.0)
        ]
        if missing:
            raise TermError(
                f"{', '.join(missing)} of the equation is not in the library {list(library.names)}"
            )
        return values

    def text(self, digits: int | None = 3) -> str:
        """`u_t = -0.99 u*u_x - ...` with `digits` significant digits; None prints exact floats."""
        return f"{self.target} = " + signed_sum(
            [(c, with_coefficient(abs(c), body, digits, " ")) for c, body in self._products(factor_and_text)]
        )

    def __str__(self) -> str:
        return self.text()

    @property
    def latex(self) -> str:
        """The equation in LaTeX, with three significant digits."""
        products = self._products(factor_and_latex)
        return (
            (self.target if self.target == "u_t" else symbol_latex(self.target))
            + " = "
            + signed_sum([(c, with_coefficient(abs(c), body, 3, r"\,")) for c, body in products])
        )

    def _products(self, parts: Callable[[Term], tuple[float, str]]) -> list[tuple[float, str]]:
        """Nonzero coefficients, the terms' own factors multiplied in, with the text behind them."""
        shown = [(c, parts(t)) for c, t in zip(self.coefficients, self.terms, strict=True) if c != 0.0]
        return [(float(c) * factor, body) for c, (factor, body) in shown]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Equation):
            return False
        return self.target == other.target and self.physical() == other.physical()

    def __hash__(self) -> int:
        return hash((self.target, frozenset(self.physical().items())))


def _summands(node: Node) -> Iterator[Node]:
    """The terms of a sum one by one: what is written as two terms stays two."""
    yield from node.parts if isinstance(node, Sum) else (node,)


def strong(
    term: Term, partial: Callable[[tuple[int, int, int]], Float[np.ndarray, "*grid"]]
) -> Float[np.ndarray, "*grid"]:
    """The term pointwise, from partial(alpha) = D_alpha u: D_xx q = q'' u_x^2 + q' u_xx."""
    products: dict[tuple, int] = {(): 1}  # factors D_beta u beside the derivative of q of order len(factors)
    for axis, order in enumerate(term.alpha):
        for _ in range(order):
            products = _differentiate(products, axis)
    u = partial((0, 0, 0))
    outer = [term.q]
    for _ in range(term.order):
        outer.append(derivative(outer[-1]))
    total = np.zeros_like(u)
    for factors, count in products.items():
        if outer[len(factors)].monomials:
            value = term.scale * count * outer[len(factors)](u)
            for beta in factors:
                value = value * partial(beta)
            total = total + value
    return total


def spectral_partials(
    u: Float[np.ndarray, "nx nt"], length: float
) -> Callable[[tuple[int, int, int]], Float[np.ndarray, "nx nt"]]:
    """D_alpha u of a field tabulated on a periodic axis of the given length: multiply by (i k)^alpha."""
    k = 2j * np.pi * np.fft.rfftfreq(len(u), d=length / len(u))[:, None]
    spectrum = np.fft.rfft(u, axis=0)

    def partial(alpha: tuple[int, int, int]) -> np.ndarray:
        if any(alpha[1:]):
            raise ValueError(f"multi-index {alpha}: a table over x alone has no derivative along y or z")
        return np.fft.irfft(k ** alpha[0] * spectrum, n=len(u), axis=0)

    return partial


def _differentiate(products: dict[tuple, int], axis: int) -> dict[tuple, int]:
    """Product rule for q^(k)(u) * D_beta1 u * ... * D_betak u along one axis."""
    unit = tuple(int(other == axis) for other in range(3))
    result: dict[tuple, int] = {}
    for factors, count in products.items():
        grown = [tuple(sorted((*factors, unit)))]
        for i, beta in enumerate(factors):
            raised = tuple(a + b for a, b in zip(beta, unit, strict=True))
            grown.append(tuple(sorted((*factors[:i], raised, *factors[i + 1 :]))))
        for key in grown:
            result[key] = result.get(key, 0) + count
    return result
