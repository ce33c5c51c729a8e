"""Words of a PDE: a `Term` scale * D_alpha q(u), a `Library` of them (Section 3).

    parse_term("u*u_x")                     # 1/2 D_x(u^2): the conservative form
    parse_term("v*u_x", ("u", "v"))         # no conservative form: the derivative of the field itself
    Library.parse(["1", "u", "u*u_x"]).names

All are immutable, hashable values; `parse_term(str(term)) == term`. Derivatives of functions of the state
move onto a test function (B.1): `conserve` rewrites products by F(u) u_x = D_x Q(u), Q' = F, and sums by
v u_x + u v_x = D_x(u v). What is left over keeps derivatives in q, as in u_x^2. `Term.weak_parts` takes off
what integration by parts still can, as in x u_x = D_x(x u) - u and u u_xx = D_xx(u^2)/2 - u_x^2; a derivative
that remains is evaluated on the field and amplifies its error.
"""

import difflib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, total_ordering

from fts import validation
from fts.equations.algebra import (
    add,
    antiderivative,
    call,
    constant,
    derivative,
    multiply,
    power,
    scale,
    symbol,
)
from fts.equations.expressions import (
    Expression,
    Factors,
    number_text,
    signed_sum,
    symbol_latex,
    unknown_axis,
    with_coefficient,
)
from fts.equations.grammar import (
    COORDINATES,
    HIGHEST,
    LETTERS,
    Call,
    Coordinate,
    Derivative,
    Node,
    Number,
    Power,
    Product,
    State,
    Sum,
    TermError,
    Unknown,
    read,
)

Alpha = tuple[int, ...]  # orders in x, y, z and t
Conservative = dict[Alpha, Expression]  # alpha -> q_alpha; no entry is zero
IDENTITY: Alpha = (0, 0, 0, 0)


@total_ordering
@dataclass(frozen=True)
class Term:
    """scale * D_alpha q, with alpha = (order in x, in y, in z), differentiated in time `time` times as well.

    Canonical: a single monomial q has coefficient one, a sum carries its own coefficients and scale one.
    """

    alpha: tuple[int, ...]
    scale: float
    q: Expression
    time: int = 0

    def __post_init__(self) -> None:
        remedy = "write terms as fts.Library.parse(['u_x']) reads them"
        validation.require_type((tuple, list), self.alpha, "alpha", remedy)
        for order in self.alpha:
            validation.require_whole(order, "an order of alpha", remedy)
        validation.finite_float(self.scale, "scale", remedy)
        validation.require_type(Expression, self.q, "q", remedy)
        alpha = (*(int(order) for order in self.alpha), 0, 0, 0)
        if any(alpha[3:]) or min(*alpha, self.time) < 0 or sum(alpha) + self.time > HIGHEST:
            raise TermError(f"multi-index {self.alpha}: at most three orders >= 0 with sum <= {HIGHEST}")
        q = self.q if sum(alpha) + self.time == 0 else _without_constant(self.q)
        q = scale(q, float(self.scale))
        if not q.monomials:
            raise TermError(f"{describe((*alpha[:3], self.time), self.q)} is zero: drop it")
        factor = q.monomials[0][1] if len(q.monomials) == 1 else 1.0
        _check_unknown(alpha[:3], q)
        object.__setattr__(self, "alpha", alpha[:3])
        object.__setattr__(self, "scale", factor)
        object.__setattr__(self, "q", q if factor == 1.0 else Expression(((q.monomials[0][0], 1.0),)))

    @property
    def order(self) -> int:
        """Number of derivatives, in space and time."""
        return sum(self.alpha) + self.time

    @property
    def orders(self) -> Alpha:
        """Orders in x, y, z and t."""
        return (*self.alpha, self.time)

    @property
    def states(self) -> frozenset[str]:
        """Components and inputs that occur in the term."""
        names = self.q.symbols - set(COORDINATES) - {self.unknown}
        return frozenset(name.partition("_")[0] for name in names)

    @cached_property
    def unknown(self) -> str:
        """The unknown function the term is linear in, as c(z); empty where there is none."""
        return next(filter(unknown_axis, sorted(self.q.symbols)), "")

    @property
    def factor(self) -> Expression:
        """What multiplies the unknown function under the derivatives, or all of q."""
        return derivative(self.q, self.unknown) if self.unknown else self.q

    @property
    def without_unknown(self) -> Expression:
        """What the term is where the unknown function is one, chain rule applied: two terms with the same
        one cannot stand side by side."""
        return _normalized(expand(self.orders, self.factor))

    def with_unknown(self, name: str) -> "Term":
        """The same term in another function of the coordinate; B[3](z) is none that a text may name."""
        return Term(self.alpha, self.scale, multiply(self.factor, symbol(name)), self.time)

    @property
    def is_autonomous(self) -> bool:
        """True for D_alpha q(u) in space: what the paper's terms are, and what solvers for u_t integrate."""
        return self.time == 0 and self.q.symbols <= {"u"}

    @property
    def dimension(self) -> int:
        """Smallest number of spatial axes in which the term makes sense."""
        letters = letters_of(self.orders) + "".join(_letters(name) for name in self.q.symbols)
        return max((LETTERS.index(letter) + 1 for letter in letters if letter != "t"), default=0)

    @property
    def key(self) -> tuple:
        """Place in the total order: low derivatives first, then low powers."""
        return self.order, tuple(-order for order in self.orders), self.q.key, self.scale

    @cached_property
    def weak_parts(self) -> tuple[tuple[Alpha, Expression], ...]:
        """The term as a sum of D_alpha q: as many derivatives in alpha, and as few in q, as by parts."""
        if all(not _is_derivative(name) for name in self.q.symbols):
            return ((self.orders, scale(self.q, self.scale)),)
        return tuple(_by_parts({self.orders: scale(self.q, self.scale)}).items())

    @property
    def strong_derivatives(self) -> int:
        """Highest derivative of a field that the weak form still needs: what noise is amplified by."""
        names = (name for _, q in self.weak_parts for name in q.symbols if _is_derivative(name))
        return max((len(_letters(name)) for name in names), default=0)

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
        for factors, coefficient in scale(self.q, self.scale).monomials:
            monomial = Expression(((factors, 1.0),))
            _, n = monomial.power_of or ("", 0.0)
            unit = 1.0 / n if self.order == 1 and n else 1.0
            parts[Term(self.alpha, unit, monomial, self.time)] = coefficient / unit
        return parts


@dataclass(frozen=True)
class Library:
    """Candidate terms in a fixed order; multiples of one term are refused: their columns are dependent."""

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        remedy = "give a list of terms, or texts by fts.Library.parse(['u', 'u_x'])"
        validation.require_type((tuple, list), self.terms, "terms", remedy)
        for term in self.terms:
            validation.require_type(Term, term, "a term", remedy)
        object.__setattr__(self, "terms", tuple(self.terms))
        if not self.terms:
            raise TermError("an empty library: give at least one term")
        seen: dict[tuple, Term] = {}
        for term in self.terms:
            unknown = term.unknown if "[" in term.unknown else unknown_axis(term.unknown)
            shape = (term.orders, unknown, _normalized(term.factor))
            if shape in seen:
                raise TermError(f"{term} and {seen[shape]} are multiples of each other: keep one")
            seen[shape] = term

    @staticmethod
    def parse(texts: Iterable[str], states: Sequence[str] = ("u",)) -> "Library":
        """The library of texts such as ["1", "u", "u*u_x", "u_xx"] in these components and inputs."""
        if isinstance(texts, str):
            raise TermError(f"a library is a list of terms; got the single text {texts!r}")
        try:
            texts = list(texts)
        except TypeError:
            raise TermError(
                f"a library is a list of terms, this is a {type(texts).__name__}: write ['u', 'u_x']"
            ) from None
        wrong = [text for text in texts if not isinstance(text, str)]
        if wrong:
            raise TermError(
                f"a library of texts holds a {type(wrong[0]).__name__}: write its terms like 'u_xx'"
            )
        return Library(tuple(parse_term(text, states) for text in texts))

    @property
    def names(self) -> tuple[str, ...]:
        """Text of every term."""
        return tuple(str(term) for term in self.terms)

    @property
    def order(self) -> int:
        """Highest derivative order: the power of the test function must exceed it."""
        return max(sum(alpha) for term in self.terms for alpha, _ in term.weak_parts)

    @property
    def strong_derivatives(self) -> int:
        """Highest derivative of a field that the weak form still needs."""
        return max(term.strong_derivatives for term in self.terms)

    @property
    def states(self) -> frozenset[str]:
        """Components and inputs that occur in the terms."""
        return frozenset().union(*(term.states for term in self.terms))

    def check_autonomous(self, where: str) -> None:
        """Refuse terms with other symbols than u, with time, or with derivatives inside q."""
        general = [str(term) for term in self.terms if not term.is_autonomous]
        if general:
            raise TermError(
                f"{where} takes terms in u without x, t and products of derivatives, not "
                f"{', '.join(general)}: drop them, or take fts.discover"
            )

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
        term = parse_term(name, ("u", *sorted(self.states - {"u"})))
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


def parse_term(text: str, states: Sequence[str] = ("u",)) -> Term:
    """The term written as `text`, in conservative form; TermError says why a text is none.

    u*u_x -> 1/2 D_x(u^2);  D_xx(u^1.73);  u_xxxx;  sin(u)*u_x -> -D_x(cos(u));  x*u_x;  u_xxt
    """
    parts = conserve(read(text, states))
    if not parts:
        raise TermError(f"{text!r} is zero: drop it")
    if len(parts) > 1:
        pieces = ", ".join(repr(describe(alpha, q)) for alpha, q in parts.items())
        raise TermError(
            f"{text!r} has several derivatives and is not one term: give {pieces} as separate terms"
        )
    ((alpha, q),) = parts.items()
    return Term(alpha[:3], 1.0, q, alpha[3])


def conserve(node: Node) -> Conservative:
    """The tree as a sum of D_alpha q_alpha, one entry per multi-index."""
    parts = _conserve(node)
    rest = parts.get(IDENTITY, constant(0.0))
    if not any(map(_is_derivative, rest.symbols)):
        return parts
    # One form for one function: u_x + x u_x stays together, as (1 + x) u_x does.
    whole = _pointwise(parts)
    derived = Expression(tuple(m for m in whole.monomials if any(map(_is_derivative, _symbols(m)))))
    exact = _divergence(derived)
    if exact is None:
        return _only(IDENTITY, whole)
    plain = Expression(tuple(m for m in whole.monomials if m not in derived.monomials))
    return _sum([_only(IDENTITY, plain), exact])


def _conserve(node: Node) -> Conservative:
    match node:
        case Number(value):
            return _only(IDENTITY, constant(value))
        case State(letters, name):
            return _only(multi_index(letters), symbol(name))
        case Coordinate(name):
            return _only(IDENTITY, symbol(name))
        case Unknown(name, axis):
            return _only(IDENTITY, symbol(f"{name}({axis})"))
        case Derivative(letters, argument):
            return _differentiate(multi_index(letters), conserve(argument))
        case Sum(parts):
            return _sum([_conserve(part) for part in parts])
        case Product(parts):
            return _product([_conserve(part) for part in parts])
        case Power(base, exponent):
            return _power(_conserve(base), _conserve(exponent))
        case Call(function, argument):
            return _only(IDENTITY, call(function, _algebraic(_conserve(argument), f"{function}(...)")))


def multi_index(letters: str) -> Alpha:
    """Counts of x, y, z, t: "xxy" -> (2, 1, 0, 0)."""
    return tuple(letters.count(letter) for letter in COORDINATES)


def letters_of(alpha: tuple[int, ...]) -> str:
    """(2, 1, 0) -> "xxy"."""
    return "".join(letter * count for letter, count in zip(COORDINATES, alpha, strict=False))


def describe(alpha: tuple[int, ...], q: Expression) -> str:
    """Text of D_alpha q, with u_xx for D_xx(u)."""
    letters = letters_of(alpha)
    if not letters:
        return str(q)
    return f"{q}_{letters}" if _is_state(q) else f"D_{letters}({q})"


def differentiate_along(q: Expression, axis: str) -> Expression:
    """The total derivative along x, y, z or t, derivatives of states being symbols: D_x(u^2) = 2 u u_x."""
    parts = []
    for name in sorted(q.symbols):
        if name == axis:
            parts.append(derivative(q, name))
        elif name not in COORDINATES and unknown_axis(name) in ("", axis):
            parts.append(multiply(derivative(q, name), symbol(_raised(name, axis))))
    return add(*parts)


def expand(alpha: tuple[int, ...], q: Expression) -> Expression:
    """D_alpha q by the chain rule, as an expression in derivatives of states."""
    for axis in letters_of(alpha):
        q = differentiate_along(q, axis)
    return q


def _only(alpha: Alpha, q: Expression) -> Conservative:
    return {alpha: q} if q.monomials else {}


def _sum(parts: list[Conservative]) -> Conservative:
    total: Conservative = {}
    for part in parts:
        for alpha, q in part.items():
            total[alpha] = add(total[alpha], q) if alpha in total else q
    return {alpha: q for alpha, q in total.items() if q.monomials}


def _differentiate(outer: Alpha, inner: Conservative) -> Conservative:
    parts = []
    for alpha, q in inner.items():
        if alpha == IDENTITY and q.symbols <= set(COORDINATES):
            parts.append(_only(IDENTITY, expand(outer, q)))
            continue
        orders = _added(outer, alpha)
        if sum(orders) > HIGHEST:
            raise TermError(
                f"derivative of order {sum(orders)} of {describe(alpha, q)}: the highest is {HIGHEST}"
            )
        parts.append(_only(orders, _without_constant(q)))
    return _sum(parts)


def _product(parts: list[Conservative]) -> Conservative:
    """Factors without derivatives first: with a single one that has some the product may be conservative."""
    factor, differentiated = constant(1.0), []
    for part in parts:
        if set(part) <= {IDENTITY}:
            factor = multiply(factor, part.get(IDENTITY, constant(0.0)))
        else:
            differentiated.append(part)
    if not differentiated:
        return _only(IDENTITY, factor)
    if len(differentiated) == 1:
        return _sum([_multiply_one(factor, alpha, q) for alpha, q in differentiated[0].items()])
    for part in differentiated:
        factor = multiply(factor, _pointwise(part))
    return _only(IDENTITY, factor)


def _multiply_one(factor: Expression, alpha: Alpha, q: Expression) -> Conservative:
    """factor * D_alpha q, in conservative form where there is one."""
    if factor.constant is not None:
        return _only(alpha, scale(q, factor.constant))
    if alpha == IDENTITY:
        return _only(IDENTITY, multiply(factor, q))
    if sum(alpha) == 1 and factor.symbols | q.symbols <= {"u"}:
        primitive = antiderivative(multiply(factor, derivative(q)))
        if primitive is not None:
            return _only(alpha, primitive)
    return _only(IDENTITY, multiply(factor, expand(alpha, q)))


def _divergence(q: Expression) -> Conservative | None:
    """q as a derivative D_alpha Q, such as v u_x + u v_x = D_x(u v); None where it is none."""
    for axis in COORDINATES:
        rest, primitives = q, []
        raised = {_raised(name, axis): name for name in _possible_states(q)}
        for derived, name in raised.items():
            primitive = antiderivative(derivative(rest, derived), name) if derived in rest.symbols else None
            # The logarithm of a derivative, which u_xx / u_x would give, is no term.
            if primitive is not None and not (_is_derivative(name) and _has_functions(primitive)):
                primitives.append(primitive)
                rest = add(rest, scale(differentiate_along(primitive, axis), -1.0))
        if primitives and _is_negligible(rest, q):
            once = add(*primitives)
            again = _divergence(once) if any(map(_is_derivative, once.symbols)) else None
            return _differentiate(multi_index(axis), again or _only(IDENTITY, once))
    return None


def _by_parts(parts: Conservative) -> Conservative:
    """Derivatives taken off the states in q, as many as integration by parts removes without new ones."""
    done: Conservative = {}
    while parts:
        following: list[Conservative] = []
        for alpha, q in parts.items():
            exact = _divergence(q)
            if exact is not None:
                ((more, primitive),) = exact.items()
                following.append(_only(_added(alpha, more), primitive))
                continue
            for factors, coefficient in q.monomials:
                monomial = Expression(((factors, coefficient),))
                moved = _move_one(alpha, monomial, factors)
                if moved is None:
                    done = _sum([done, _only(alpha, monomial)])
                else:
                    following += moved
        parts = _sum(following)
    return done


def _move_one(alpha: Alpha, monomial: Expression, factors: Factors) -> list[Conservative] | None:
    """A monomial with a single derivative in other form, None where it stays.

    g(s) s_a = D_a G - d_a G with G the antiderivative of g; otherwise g s_ab = D_a(g s_b) - (D_a g) s_b, for
    functions g of coordinates, or where it leaves products of first derivatives.
    """
    derived = [name for name in monomial.symbols if _is_derivative(name)]
    if len(derived) != 1:
        return None
    (name,) = derived
    g = derivative(monomial, name)
    head, _, letters = name.partition("_")
    known = {name for name in g.symbols if name in COORDINATES or unknown_axis(name)}
    primitive = antiderivative(g, head) if g.symbols <= {head} | known and len(letters) == 1 else None
    if primitive is not None:
        explicit = _explicit(primitive, letters)
        return [_only(_added(alpha, multi_index(letters)), primitive), _only(alpha, scale(explicit, -1.0))]
    if name in g.symbols or not (g.symbols <= known or len(letters) == 2):
        return None
    axis, lower = letters[0], symbol("_".join(filter(None, (head, letters[1:]))))
    rest = scale(multiply(differentiate_along(g, axis), lower), -1.0)
    return [_only(_added(alpha, multi_index(axis)), multiply(g, lower)), _only(alpha, rest)]


def _explicit(q: Expression, axis: str) -> Expression:
    """The derivative along `axis` where the states stand still."""
    names = [name for name in sorted(q.symbols) if unknown_axis(name) == axis]
    varying = [multiply(derivative(q, name), symbol(_raised(name, axis))) for name in names]
    return add(derivative(q, axis), *varying)


def _power(base: Conservative, exponent: Conservative) -> Conservative:
    q = exponent.get(IDENTITY, constant(0.0))
    if set(exponent) - {IDENTITY} or q.constant is None:
        raise TermError(f"exponent {_describe_all(exponent)}: an exponent is a number")
    if q.constant == 1.0:
        return base
    return _only(IDENTITY, power(_pointwise(base), q.constant))


def _pointwise(value: Conservative) -> Expression:
    """A sum of D_alpha q as an expression in derivatives of states."""
    return add(*(expand(alpha, q) for alpha, q in value.items()))


def _algebraic(argument: Conservative, where: str) -> Expression:
    q = argument.get(IDENTITY, constant(0.0))
    if set(argument) <= {IDENTITY} and not any(map(_is_derivative, q.symbols)):
        return q
    raise TermError(f"{where} of {_describe_all(argument)}: functions take u, not its derivatives")


def _describe_all(value: Conservative) -> str:
    return (
        " + ".join(describe(alpha, q) for alpha, q in sorted(value.items(), key=lambda item: item[0])) or "0"
    )


def _added(first: Alpha, second: Alpha) -> Alpha:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _letters(name: str) -> str:
    """The axes a symbol depends on by its writing: those of a derivative, or the coordinate itself."""
    return name if name in COORDINATES else unknown_axis(name) or name.partition("_")[2]


def _is_derivative(name: str) -> bool:
    return "_" in name


def _is_state(q: Expression) -> bool:
    """True for a component or an input by itself."""
    (name, *others) = q.symbols or ("",)
    plain = not (name in COORDINATES or _is_derivative(name) or unknown_axis(name))
    return not others and plain and q == symbol(name)


def _raised(name: str, axis: str) -> str:
    """The symbol of a derivative along `axis`: u -> u_x, u_x -> u_xx, c(x) -> c'(x)."""
    if unknown_axis(name):
        return name.replace("(", "'(")
    head, _, letters = name.partition("_")
    raised = "".join(sorted(letters + axis, key=COORDINATES.index))
    if len(raised) > HIGHEST:
        raise TermError(f"derivative of order {len(raised)} of {head}: the highest is {HIGHEST}")
    return f"{head}_{raised}"


def _check_unknown(alpha: tuple[int, ...], q: Expression) -> None:
    """Refuse unknown functions that a term is not linear in, and that no weak form determines."""
    names = sorted(filter(unknown_axis, q.symbols))
    if not names:
        return
    (name, *others), whole = names, describe(alpha, q)
    if others or "'" in name:
        what = "two unknown functions" if others else f"{name}, the derivative of an unknown function"
        raise TermError(f"{whole} has {what}: write a term with one unknown function, as c(x)*u_x")
    factor = derivative(q, name)
    if name in factor.symbols or multiply(factor, symbol(name)) != q:
        raise TermError(
            f"{whole} is not {name} times something: write the unknown function as a plain factor"
        )
    if factor.constant is not None and any(alpha):
        raise TermError(f"{whole} is an unknown function of {name[-2]} itself: write {name}")


def _possible_states(q: Expression) -> list[str]:
    """Symbols that q may be a derivative of: components in it, and its derivatives with a letter less."""
    names = set()
    for name in itertools.filterfalse(unknown_axis, q.symbols - set(COORDINATES)):
        head, _, letters = name.partition("_")
        names |= {head, name}
        names |= {
            f"{head}_{shorter}" for i in range(len(letters)) if (shorter := letters[:i] + letters[i + 1 :])
        }
    return sorted(names, key=lambda name: (-len(_letters(name)), name))


def _symbols(monomial: tuple[Factors, float]) -> frozenset[str]:
    return Expression((monomial,)).symbols


def _has_functions(q: Expression) -> bool:
    return any(not factor.is_symbol for factors, _ in q.monomials for factor, _ in factors)


def _is_negligible(rest: Expression, q: Expression) -> bool:
    """True where every monomial of q is zero up to rounding."""
    sizes = dict(q.monomials)
    return all(abs(c) <= 1e-12 * abs(sizes.get(factors, 0.0)) for factors, c in rest.monomials)


def _without_constant(q: Expression) -> Expression:
    """Derivatives annihilate constants, so q is only known up to one."""
    return Expression(tuple(monomial for monomial in q.monomials if monomial[0]))


def _normalized(q: Expression) -> Expression:
    return Expression(tuple((factors, c / q.monomials[0][1]) for factors, c in q.monomials))


def factor_and_text(term: Term) -> tuple[float, str]:
    """The term as factor * text; 1/2 D_x(u^2) is 1 * "u*u_x"."""
    factor, n = _product_form(term)
    if n is not None:
        (state, _), power = term.q.power_of or ("", n), "" if n == 2.0 else f"^{number_text(n - 1.0)}"
        return factor, f"{state}{power}*{state}_{letters_of(term.orders)}"
    body = describe(term.orders, term.q)
    return factor, f"({body})" if len(term.q.monomials) > 1 and not term.order else body


def factor_and_latex(term: Term) -> tuple[float, str]:
    """The same in LaTeX."""
    (factor, n), letters, q = _product_form(term), letters_of(term.orders), term.q.latex
    if n is not None:
        (name, _), power = term.q.power_of or ("", n), "" if n == 2.0 else f"^{{{number_text(n - 1.0)}}}"
        return factor, rf"{symbol_latex(name)}{power}\,{symbol_latex(name)}_{{{letters}}}"
    if not letters:
        return factor, rf"\left({q}\right)" if len(term.q.monomials) > 1 else q
    body = symbol_latex(describe(term.orders, term.q)) if _is_state(term.q) else ""
    return factor, body or rf"\partial_{{{letters}}}\left({q}\right)"


def _product_form(term: Term) -> tuple[float, float | None]:
    """(factor, n) when scale D_x(s^n) is to be written factor * s^(n-1) s_x, else (scale, None).

    Written so unless D_x(u^n) stands alone, and only when the floats read back exactly.
    """
    name, n = term.q.power_of or ("", 1.0)
    if term.order != 1 or n == 1.0 or term.scale == 1.0 or _is_derivative(name):
        return term.scale, None
    factor = term.scale * n
    exact = factor / n == term.scale and (n - 1.0) + 1.0 == n
    return (factor, n) if exact else (term.scale, None)
