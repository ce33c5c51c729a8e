"""Syntax tree -> conservative form sum_alpha D_alpha q_alpha(u), or why there is none (Section 3, B.1).

Only derivatives of functions of the state move onto a test function. Products are rewritten by
F(u) u_x = D_x Q(u), Q' = F; what is left over, such as u_x^2 or u*u_xx, is refused with its reason and the
nearest term that works.
"""

from fts.equations.algebra import add, call, constant, multiply, power, scale, state
from fts.equations.calculus import antiderivative, derivative
from fts.equations.expressions import Expression
from fts.equations.grammar import (
    HIGHEST,
    LETTERS,
    Call,
    Derivative,
    Node,
    Number,
    Power,
    Product,
    State,
    Sum,
    TermError,
)

Alpha = tuple[int, int, int]
Conservative = dict[Alpha, Expression]  # alpha -> q_alpha; no entry is zero
IDENTITY: Alpha = (0, 0, 0)


def conserve(node: Node) -> Conservative:
    """The tree as a sum of D_alpha q_alpha(u), one entry per multi-index."""
    match node:
        case Number(value):
            return _only(IDENTITY, constant(value))
        case State(letters):
            return _only(multi_index(letters), state())
        case Derivative(letters, argument):
            return _differentiate(multi_index(letters), conserve(argument))
        case Sum(parts):
            return _sum([conserve(part) for part in parts])
        case Product(parts):
            product = conserve(parts[0])
            for part in parts[1:]:
                product = _product(product, conserve(part))
            return product
        case Power(base, exponent):
            return _power(conserve(base), conserve(exponent))
        case Call(function, argument):
            return _only(IDENTITY, call(function, _algebraic(conserve(argument), f"{function}(...)")))


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
    return f"u_{letters}" if q == state() else f"D_{letters}({q})"


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
        if alpha == IDENTITY and q.constant is not None:
            continue
        x, y, z = (a + b for a, b in zip(outer, alpha, strict=True))
        if x + y + z > HIGHEST:
            raise TermError(
                f"derivative of order {x + y + z} of {describe(alpha, q)}: the highest is {HIGHEST}"
            )
        parts.append({(x, y, z): q})
    return _sum(parts)


def _product(left: Conservative, right: Conservative) -> Conservative:
    if set(left) <= {IDENTITY}:
        factor, rest = left.get(IDENTITY, constant(0.0)), right
    elif set(right) <= {IDENTITY}:
        factor, rest = right.get(IDENTITY, constant(0.0)), left
    else:
        raise TermError(
            f"({_describe_all(left)}) times ({_describe_all(right)}) has no weak form: a product of "
            "derivatives is not a derivative of a function of u, so it cannot be moved onto the test function"
        )
    return _sum([_multiply_one(factor, alpha, q) for alpha, q in rest.items()])


def _multiply_one(factor: Expression, alpha: Alpha, q: Expression) -> Conservative:
    """factor(u) * D_alpha q(u) in conservative form."""
    if factor.constant is not None:
        return _only(alpha, scale(q, factor.constant))
    if alpha == IDENTITY:
        return _only(IDENTITY, multiply(factor, q))
    if sum(alpha) == 1:
        slope = multiply(factor, derivative(q))
        primitive = antiderivative(slope)
        if primitive is None:
            raise TermError(
                f"({factor}) times {describe(alpha, q)} has no weak form here: it is "
                f"D_{letters_of(alpha)}(Q) with Q' = {slope}, and no antiderivative of that is known"
            )
        return _only(alpha, primitive)
    raise TermError(
        f"({factor}) times {describe(alpha, q)} has no weak form: taking the derivatives off leaves "
        f"products of derivatives such as u_x^2; did you mean {describe(alpha, multiply(factor, q))}?"
    )


def _power(base: Conservative, exponent: Conservative) -> Conservative:
    q = exponent.get(IDENTITY, constant(0.0))
    if set(exponent) - {IDENTITY} or q.constant is None:
        raise TermError(f"exponent {_describe_all(exponent)}: an exponent is a number")
    if set(base) <= {IDENTITY}:
        return _only(IDENTITY, power(base.get(IDENTITY, constant(0.0)), q.constant))
    if q.constant == 1.0:
        return base
    raise TermError(
        f"({_describe_all(base)})^{q} has no weak form: a power of a derivative is not a derivative of a "
        "function of u, so it cannot be moved onto the test function"
    )


def _algebraic(argument: Conservative, where: str) -> Expression:
    if set(argument) <= {IDENTITY}:
        return argument.get(IDENTITY, constant(0.0))
    raise TermError(
        f"{where} of {_describe_all(argument)} has no weak form: functions take u, not its derivatives"
    )


def _describe_all(value: Conservative) -> str:
    return (
        " + ".join(describe(alpha, q) for alpha, q in sorted(value.items(), key=lambda item: item[0])) or "0"
    )
