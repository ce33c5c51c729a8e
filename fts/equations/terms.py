"""Words of a PDE: a `Term` scale * D_alpha q(u), a `Library` of them (Section 3).

    parse_term("u*u_x")                     # 1/2 D_x(u^2): the conservative form, which has a weak form
    parse_term("u*u_xx")                    # TermError: ... did you mean D_xx(u^2)?
    Library.parse(["1", "u", "u*u_x"]).names

All are immutable, hashable values; `parse_term(str(term)) == term`. Only derivatives of functions of the
state move onto a test function (B.1): `conserve` rewrites products by F(u) u_x = D_x Q(u), Q' = F; what is
left over, such as u_x^2 or u*u_xx, is refused with its reason and the nearest term that works.
"""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import total_ordering

from fts.equations import algebra, grammar
from fts.equations.expressions import Expression, number_text, signed_sum, with_coefficient
from fts.equations.grammar import HIGHEST, LETTERS, TermError

Alpha = tuple[int, int, int]
Conservative = dict[Alpha, Expression]  # alpha -> q_alpha; no entry is zero
IDENTITY: Alpha = (0, 0, 0)


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
        q = algebra.scale(q, float(self.scale))
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
        factor, body = factor_and_text(self)
        if body == "1":
            return number_text(factor)
        if factor == 1.0:
            return str(self.q) if not self.order else body
        return f"-{body}" if factor == -1.0 else f"{number_text(factor)}*{body}"

    @property
    def latex(self) -> str:
        """The term in LaTeX."""
        factor, body = factor_and_latex(self)
        return signed_sum([(factor, with_coefficient(abs(factor), body, None, r"\,"))])

    def physical(self) -> dict["Term", float]:
        """The term in the shared physical basis: D_x(u^2) -> {u*u_x: 2}, and a sum one entry per monomial.

        The basis has u^k u_x for first derivatives of powers and D_alpha of a monomial otherwise.
        """
        parts: dict[Term, float] = {}
        for factors, coefficient in algebra.scale(self.q, self.scale).monomials:
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
            raise TermError(f"a library holds a {type(wrong[0]).__name__}: write its terms like 'u_xx'")
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
                raise TermError(f"{term} needs {term.dimension} spatial axes; the field has {dimension}")

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
    parts = conserve(grammar.read(text))
    if not parts:
        raise TermError(f"{text!r} is zero: drop it")
    if len(parts) > 1:
        pieces = ", ".join(repr(describe(alpha, q)) for alpha, q in parts.items())
        raise TermError(f"{text!r} is several derivatives, no single term: give {pieces} as separate terms")
    ((alpha, q),) = parts.items()
    return Term(alpha, 1.0, q)


def conserve(node: grammar.Node) -> Conservative:
    """The tree as a sum of D_alpha q_alpha(u), one entry per multi-index."""
    match node:
        case grammar.Number(value):
            return _only(IDENTITY, algebra.constant(value))
        case grammar.State(letters):
            return _only(multi_index(letters), algebra.state())
        case grammar.Derivative(letters, argument):
            return _differentiate(multi_index(letters), conserve(argument))
        case grammar.Sum(parts):
            return _sum([conserve(part) for part in parts])
        case grammar.Product(parts):
            product = conserve(parts[0])
            for part in parts[1:]:
                product = _product(product, conserve(part))
            return product
        case grammar.Power(base, exponent):
            return _power(conserve(base), conserve(exponent))
        case grammar.Call(function, argument):
            return _only(IDENTITY, algebra.call(function, _algebraic(conserve(argument), f"{function}(...)")))


def multi_index(letters: str) -> Alpha:
    """Counts of x, y, z: "xxy" -> (2, 1, 0)."""
    x, y, z = (letters.count(letter) for letter in LETTERS)
    return x, y, z


def letters_of(alpha: tuple[int, ...]) -> str:
    """(2, 1, 0) -> "xxy"."""
    return "".join(letter * count for letter, count in zip(LETTERS, alpha, strict=False))


def describe(alpha: tuple[int, ...], q: Expression) -> str:
    """Text of D_alpha q(u), with u_xx for D_xx(u)."""
    letters = letters_of(alpha)
    if not letters:
        return str(q)
    return f"u_{letters}" if q == algebra.state() else f"D_{letters}({q})"


def _only(alpha: Alpha, q: Expression) -> Conservative:
    return {alpha: q} if q.monomials else {}


def _sum(parts: list[Conservative]) -> Conservative:
    total: Conservative = {}
    for part in parts:
        for alpha, q in part.items():
            total[alpha] = algebra.add(total[alpha], q) if alpha in total else q
    return {alpha: q for alpha, q in total.items() if q.monomials}


def _differentiate(outer: Alpha, inner: Conservative) -> Conservative:
    parts = []
    for alpha, q in inner.items():
        if alpha == IDENTITY and q.constant is not None:
            continue
        x, y, z = (a + b for a, b in zip(outer, alpha, strict=True))
        if (order := x + y + z) > HIGHEST:
            raise TermError(f"derivative of order {order} of {describe(alpha, q)}: the highest is {HIGHEST}")
        parts.append({(x, y, z): q})
    return _sum(parts)


def _product(left: Conservative, right: Conservative) -> Conservative:
    if set(left) <= {IDENTITY}:
        factor, rest = left.get(IDENTITY, algebra.constant(0.0)), right
    elif set(right) <= {IDENTITY}:
        factor, rest = right.get(IDENTITY, algebra.constant(0.0)), left
    else:
        raise TermError(
            f"({_describe_all(left)}) times ({_describe_all(right)}) has no weak form: a product of "
            "derivatives is not a derivative of a function of u, so it cannot be moved onto the test function"
        )
    return _sum([_multiply_one(factor, alpha, q) for alpha, q in rest.items()])


def _multiply_one(factor: Expression, alpha: Alpha, q: Expression) -> Conservative:
    """factor(u) * D_alpha q(u) in conservative form."""
    if factor.constant is not None:
        return _only(alpha, algebra.scale(q, factor.constant))
    if alpha == IDENTITY:
        return _only(IDENTITY, algebra.multiply(factor, q))
    if sum(alpha) == 1:
        slope = algebra.multiply(factor, algebra.derivative(q))
        primitive = algebra.antiderivative(slope)
        if primitive is None:
            raise TermError(
                f"({factor}) times {describe(alpha, q)} has no weak form here: it is "
                f"D_{letters_of(alpha)}(Q) with Q' = {slope}, and no antiderivative of that is known"
            )
        return _only(alpha, primitive)
    raise TermError(
        f"({factor}) times {describe(alpha, q)} has no weak form: taking the derivatives off leaves "
        f"products of derivatives such as u_x^2; did you mean {describe(alpha, algebra.multiply(factor, q))}?"
    )


def _power(base: Conservative, exponent: Conservative) -> Conservative:
    q = exponent.get(IDENTITY, algebra.constant(0.0))
    if set(exponent) - {IDENTITY} or q.constant is None:
        raise TermError(f"exponent {_describe_all(exponent)}: an exponent is a number")
    if set(base) <= {IDENTITY}:
        return _only(IDENTITY, algebra.power(base.get(IDENTITY, algebra.constant(0.0)), q.constant))
    if q.constant == 1.0:
        return base
    raise TermError(
        f"({_describe_all(base)})^{q} has no weak form: a power of a derivative is not a derivative of a "
        "function of u, so it cannot be moved onto the test function"
    )


def _algebraic(argument: Conservative, where: str) -> Expression:
    if set(argument) <= {IDENTITY}:
        return argument.get(IDENTITY, algebra.constant(0.0))
    inside = _describe_all(argument)
    raise TermError(f"{where} of {inside} has no weak form: functions take u, not its derivatives")


def _describe_all(value: Conservative) -> str:
    return " + ".join(describe(alpha, value[alpha]) for alpha in sorted(value)) or "0"


def _without_constant(q: Expression) -> Expression:
    """Derivatives annihilate constants, so q is only known up to one."""
    return Expression(tuple(monomial for monomial in q.monomials if monomial[0]))


def _normalized(q: Expression) -> Expression:
    return Expression(tuple((factors, c / q.monomials[0][1]) for factors, c in q.monomials))


def factor_and_text(term: Term) -> tuple[float, str]:
    """The term as factor * text; 1/2 D_x(u^2) is 1 * "u*u_x"."""
    factor, n = _product_form(term)
    if n is not None:
        power = "" if n == 2.0 else f"^{number_text(n - 1.0)}"
        return factor, f"u{power}*u_{letters_of(term.alpha)}"
    body = describe(term.alpha, term.q)
    return factor, f"({body})" if len(term.q.monomials) > 1 and not term.order else body


def factor_and_latex(term: Term) -> tuple[float, str]:
    """The same in LaTeX."""
    (factor, n), letters, q = _product_form(term), letters_of(term.alpha), term.q.latex
    if n is not None:
        power = "" if n == 2.0 else f"^{{{number_text(n - 1.0)}}}"
        return factor, rf"u{power}\,u_{{{letters}}}"
    if not letters:
        return factor, rf"\left({q}\right)" if len(term.q.monomials) > 1 else q
    plain = term.q == algebra.state()
    return factor, rf"u_{{{letters}}}" if plain else rf"\partial_{{{letters}}}\left({q}\right)"


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
