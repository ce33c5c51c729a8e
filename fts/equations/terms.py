"""Words of a PDE: a `Term` scale * D_alpha q(u), a `Library` of them (Section 3).

    parse_term("u*u_x")                     # 1/2 D_x(u^2): the conservative form, which has a weak form
    parse_term("u*u_xx")                    # TermError: ... did you mean D_xx(u^2)?
    Library.parse(["1", "u", "u*u_x"]).names

All are immutable, hashable values; `parse_term(str(term)) == term`.
"""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import total_ordering

from fts.equations.algebra import scale, state
from fts.equations.conservative import conserve, describe, letters_of
from fts.equations.expressions import Expression
from fts.equations.grammar import HIGHEST, LETTERS, TermError, read
from fts.equations.printing import join, number_text, spoken


@total_ordering
@dataclass(frozen=True)
class Term:
    """scale * D_alpha q(u), with alpha = (order in x, in y, in z).

    Canonical: a single monomial q has coefficient one, a sum carries its own coefficients and scale one.
    """

    alpha: tuple[int, ...]
    scale: float
    q: Expression

    def __post_init__(self) -> None:
        alpha = (*(int(order) for order in self.alpha), 0, 0, 0)
        if any(alpha[3:]) or min(alpha) < 0 or sum(alpha) > HIGHEST:
            raise TermError(f"multi-index {self.alpha}: at most three orders >= 0 with sum <= {HIGHEST}")
        q = self.q if sum(alpha) == 0 else _without_constant(self.q)
        q = scale(q, float(self.scale))
        if not q.monomials:
            raise TermError(f"{describe(alpha, self.q)} is zero: drop it")
        factor = q.monomials[0][1] if len(q.monomials) == 1 else 1.0
        object.__setattr__(self, "alpha", alpha[:3])
        object.__setattr__(self, "scale", factor)
        object.__setattr__(self, "q", q if factor == 1.0 else Expression(((q.monomials[0][0], 1.0),)))

    @property
    def order(self) -> int:
        """|alpha|."""
        return sum(self.alpha)

    @property
    def dimension(self) -> int:
        """Smallest number of spatial axes in which the term makes sense."""
        return max((axis + 1 for axis, order in enumerate(self.alpha) if order), default=0)

    @property
    def key(self) -> tuple:
        """Place in the total order: low derivatives first, then low powers."""
        return self.order, tuple(-order for order in self.alpha), self.q.key, self.scale

    def __lt__(self, other: "Term") -> bool:
        return self.key < other.key

    def __str__(self) -> str:
        factor, body = split(self)
        if body == "1":
            return number_text(factor)
        if factor == 1.0:
            return str(self.q) if not self.order else body
        return f"-{body}" if factor == -1.0 else f"{number_text(factor)}*{body}"

    @property
    def latex(self) -> str:
        """The term in LaTeX."""
        factor, body = split_latex(self)
        return join([(factor, spoken(abs(factor), body, None, r"\,"))])

    def physical(self) -> dict["Term", float]:
        """The term in the shared physical basis: D_x(u^2) -> {u*u_x: 2}, and a sum one entry per monomial.

        The basis has u^k u_x for first derivatives of powers and D_alpha of a monomial otherwise.
        """
        parts: dict[Term, float] = {}
        for factors, coefficient in scale(self.q, self.scale).monomials:
            monomial = Expression(((factors, 1.0),))
            n = monomial.degree
            unit = 1.0 / n if self.order == 1 and n is not None else 1.0
            parts[Term(self.alpha, unit, monomial)] = coefficient / unit
        return parts


@dataclass(frozen=True)
class Library:
    """Candidate terms in a fixed order; multiples of one term are refused: their columns are dependent."""

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        if not self.terms:
            raise TermError("an empty library: give at least one term")
        seen: dict[tuple, Term] = {}
        for term in self.terms:
            shape = (term.alpha, _normalized(term.q))
            if shape in seen:
                raise TermError(f"{term} and {seen[shape]} are multiples of each other: keep one")
            seen[shape] = term

    @staticmethod
    def parse(texts: Iterable[str]) -> "Library":
        """The library of the given texts, e.g. ["1", "u", "u*u_x", "u_xx"]."""
        if isinstance(texts, str):
            raise TermError(f"a library is a list of terms; got the single text {texts!r}")
        texts = list(texts)
        wrong = [text for text in texts if not isinstance(text, str)]
        if wrong:
            raise TermError(
                f"a library of texts holds a {type(wrong[0]).__name__}: write its terms like 'u_xx'"
            )
        return Library(tuple(parse_term(text) for text in texts))

    @property
    def names(self) -> tuple[str, ...]:
        """Text of every term."""
        return tuple(str(term) for term in self.terms)

    @property
    def order(self) -> int:
        """Highest derivative order: the power of the test function must exceed it."""
        return max(term.order for term in self.terms)

    def check_dimension(self, dimension: int) -> None:
        """Refuse terms that differentiate along an axis the field does not have."""
        for term in self.terms:
            if term.dimension > dimension:
                axes = ", ".join(LETTERS[:dimension])
                raise TermError(
                    f"{term} needs {term.dimension} spatial axes; the field has {dimension} ({axes})"
                )

    def index(self, name: str) -> int:
        """Position of the term written `name`; a misspelt name is answered with the nearest one."""
        term = parse_term(name)
        if term in self.terms:
            return self.terms.index(term)
        near = difflib.get_close_matches(str(term), self.names, n=1, cutoff=0.0)
        raise TermError(f"{name!r} is not in the library {list(self.names)}; the nearest is {near[0]!r}")

    def __len__(self) -> int:
        return len(self.terms)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def __getitem__(self, index: int) -> Term:
        return self.terms[index]

    def __str__(self) -> str:
        return ", ".join(self.names)


def parse_term(text: str) -> Term:
    """The term written as `text`, in conservative form; TermError says why a text is none.

    u*u_x -> 1/2 D_x(u^2);  D_xx(u^1.73);  u_xxxx;  sin(u)*u_x -> -D_x(cos(u))
    """
    parts = conserve(read(text))
    if not parts:
        raise TermError(f"{text!r} is zero: drop it")
    if len(parts) > 1:
        pieces = ", ".join(repr(describe(alpha, q)) for alpha, q in parts.items())
        raise TermError(
            f"{text!r} has several derivatives and is not one term: give {pieces} as separate terms"
        )
    ((alpha, q),) = parts.items()
    return Term(alpha, 1.0, q)


def _without_constant(q: Expression) -> Expression:
    """Derivatives annihilate constants, so q is only known up to one."""
    return Expression(tuple(monomial for monomial in q.monomials if monomial[0]))


def _normalized(q: Expression) -> Expression:
    return Expression(tuple((factors, c / q.monomials[0][1]) for factors, c in q.monomials))


def split(term: Term) -> tuple[float, str]:
    """The term as factor * text; 1/2 D_x(u^2) is 1 * "u*u_x"."""
    factor, n = _product_form(term)
    if n is not None:
        power = "" if n == 2.0 else f"^{number_text(n - 1.0)}"
        return factor, f"u{power}*u_{letters_of(term.alpha)}"
    body = describe(term.alpha, term.q)
    return factor, f"({body})" if len(term.q.monomials) > 1 and not term.order else body


def split_latex(term: Term) -> tuple[float, str]:
    """`split` in LaTeX."""
    factor, n = _product_form(term)
    letters = letters_of(term.alpha)
    if n is not None:
        power = "" if n == 2.0 else f"^{{{number_text(n - 1.0)}}}"
        return factor, rf"u{power}\,u_{{{letters}}}"
    if not letters:
        body = term.q.latex
        return factor, rf"\left({body}\right)" if len(term.q.monomials) > 1 else body
    return (
        factor,
        rf"u_{{{letters}}}" if term.q == state() else rf"\partial_{{{letters}}}\left({term.q.latex}\right)",
    )


def _product_form(term: Term) -> tuple[float, float | None]:
    """(factor, n) when scale D_x(u^n) is to be written factor * u^(n-1) u_x, else (scale, None).

    Written so unless D_x(u^n) stands alone, and only when the floats read back exactly.
    """
    n = term.q.degree
    if term.order != 1 or n is None or n == 1.0 or term.scale == 1.0:
        return term.scale, None
    factor = term.scale * n
    exact = factor / n == term.scale and (n - 1.0) + 1.0 == n
    return (factor, n) if exact else (term.scale, None)
