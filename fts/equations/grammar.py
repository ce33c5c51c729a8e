"""Text of a candidate term -> syntax tree: the one reader of what people type.

    sum     = ["+"|"-"] product {("+"|"-") product}
    product = power {["*"|"/"] power}              a missing sign is a product: 2 u u_x
    power   = atom [("^"|"**") signed power]
    atom    = number | state | state_x.. | coordinate | D_x..( sum ) | function( sum ) | ( sum )
            | name(coordinate)                      an unknown function: c(z)*u_zz

States are the components of a system and measured inputs, by default u alone; coordinates are x, y, z and t.
The reader knows these words and nothing else: text is never executed. Length and nesting are bounded, so any
string ends in a tree or in a `TermError`. What a tree means is decided by `terms.conserve`.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

LETTERS = "xyz"
COORDINATES = (*LETTERS, "t")
FUNCTIONS = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "abs")
LONGEST = 400  # characters of one term or equation
DEEPEST = 20  # nested parentheses, exponents and signs
HIGHEST = 12  # order of one derivative

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)?)"
    r"|(?P<sign>\*\*|[-+*/^()=])"
)


class TermError(ValueError):
    """The one error of the grammar: the text is no term, or the term has no weak form."""


@dataclass(frozen=True)
class Number:
    """A number; its sign is a product with -1."""

    value: float


@dataclass(frozen=True)
class State:
    """A component, or its derivative when `letters` is not empty: State("xx") is u_xx."""

    letters: str
    name: str = "u"


@dataclass(frozen=True)
class Coordinate:
    """x, y, z or t as a factor."""

    name: str


@dataclass(frozen=True)
class Unknown:
    """An unknown function of one coordinate: c(z)."""

    name: str
    axis: str


@dataclass(frozen=True)
class Sum:
    """The parts added."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Product:
    """The parts multiplied; a quotient is a power -1."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Power:
    """base^exponent."""

    base: "Node"
    exponent: "Node"


@dataclass(frozen=True)
class Call:
    """function(argument), the function one of FUNCTIONS."""

    function: str
    argument: "Node"


@dataclass(frozen=True)
class Derivative:
    """D_xx(argument) where `letters` is "xx"."""

    letters: str
    argument: "Node"


Node = Number | State | Coordinate | Unknown | Sum | Product | Power | Call | Derivative


def read(text: str, states: Sequence[str] = ("u",)) -> Node:
    """Syntax tree of a term, e.g. `u*u_x` -> Product((State(""), State("x")))."""
    reader = _Reader(text, states)
    tree = reader.sum()
    reader.expect_end()
    return tree


def read_equation(text: str, states: Sequence[str] = ("u",)) -> tuple[State, Node]:
    """Both sides of `u_t = ...`, or of `u_tt = ...`, or of the equation of another component."""
    if not isinstance(text, str):
        raise TermError(f"an equation is a text, this is a {type(text).__name__}: write 'u_t = u_xx'")
    left, equals, right = text.partition("=")
    target = left.strip()
    if not equals or target not in {f"{name}_{order}" for name in states for order in ("t", "tt")}:
        raise TermError(f"{_quote(text)}: an equation reads '{states[0]}_t = ...'")
    name, _, letters = target.partition("_")
    return State(letters, name), read(right, states)


def check_states(states: Sequence[str]) -> None:
    """Refuse names of components and inputs that a term could not be written with."""
    for name in states:
        known = isinstance(name, str) and re.fullmatch("[A-Za-z][A-Za-z0-9]{0,15}", name)
        if not known or name in (*COORDINATES, *FUNCTIONS, "D"):
            raise TermError(
                f"{_quote(str(name))} cannot name a component: take a letter and up to fifteen letters or "
                f"digits, not {', '.join(COORDINATES)}, D or a function"
            )
    if len(set(states)) != len(states):
        raise TermError(f"components {', '.join(states)}: a name occurs twice, rename one")


class _Reader:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, states: Sequence[str]) -> None:
        if not isinstance(text, str):
            raise TermError(f"a term is a text, this is a {type(text).__name__}: write it like 'u*u_x'")
        if len(text) > LONGEST:
            raise TermError(f"{len(text)} characters in {_quote(text)}: write at most {LONGEST}")
        self.text, self.states = text, states
        self.tokens = _tokens(text)
        self.next = 0
        self.depth = 0

    def sum(self) -> Node:
        self._enter()
        parts = [self._signed(self.product)]
        while self._peek() in ("+", "-"):
            sign = self._take()
            part = self.product()
            parts.append(part if sign == "+" else _negative(part))
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Sum(tuple(parts))

    def product(self) -> Node:
        parts = [self.power()]
        while True:
            token = self._peek()
            if token in ("*", "/"):
                self._take()
                part = self.power()
                parts.append(part if token == "*" else Power(part, Number(-1.0)))
            elif token == "(" or token[:1].isalpha():
                parts.append(self.power())
            else:
                return parts[0] if len(parts) == 1 else Product(tuple(parts))

    def power(self) -> Node:
        base = self.atom()
        if self._peek() not in ("^", "**"):
            return base
        self._take()
        self._enter()
        exponent = self._signed(self.power)
        self.depth -= 1
        return Power(base, exponent)

    def atom(self) -> Node:
        token = self._take()
        if token == "(":
            return self._closed()
        if token[:1].isdigit() or token[:1] == ".":
            return Number(self._number(token))
        if token[:1].isalpha():
            return self._named(token)
        raise self._error(f"found {token!r}" if token else "the text ends", "a number, u, or a parenthesis")

    def expect_end(self) -> None:
        if self._peek():
            raise self._error(f"found {self._take()!r}", "an operator or the end")

    def _named(self, name: str) -> Node:
        head, _, letters = name.partition("_")
        following = [token for token, _ in self.tokens[self.next : self.next + 3]]
        called = following[::2] == ["(", ")"] and following[1] in COORDINATES
        if called and (head in self.states or name in COORDINATES):
            # As a product it would be read as something else than was meant.
            raise TermError(
                f"{_quote(self.text)}: {name} is no unknown function of {following[1]}: write "
                f"{name}*{following[1]}, or give the function another name"
            )
        if head in self.states:
            return State(self._letters(name, letters) if "_" in name else "", head)
        if name in COORDINATES:
            return Coordinate(name)
        if head == "D" and letters:
            self._open(name)
            return Derivative(self._letters(name, letters), self._closed())
        if name in FUNCTIONS:
            self._open(name)
            return Call(name, self._closed())
        if called and "_" not in name:
            self.next += 3
            return Unknown(name, following[1])
        first = self.states[0]
        known = ", ".join((*self.states, f"{first}_x", "D_x(...)", *COORDINATES, *FUNCTIONS, "c(x)"))
        raise TermError(f"{_quote(self.text)}: unknown name {_quote(name)}; the grammar has {known}")

    def _letters(self, name: str, letters: str) -> str:
        if not letters or not set(letters) <= set(COORDINATES):
            raise TermError(
                f"{_quote(self.text)}: {_quote(name)} differentiates along {_quote(letters)}; "
                "use x, y, z or t"
            )
        if len(letters) > HIGHEST:
            raise TermError(
                f"{_quote(self.text)}: derivative of order {len(letters)}; the highest is {HIGHEST}"
            )
        return "".join(sorted(letters, key=COORDINATES.index))

    def _open(self, name: str) -> None:
        if self._take() != "(":
            raise self._error(f"{name} stands without a parenthesis", f"{name}(...)")

    def _closed(self) -> Node:
        inner = self.sum()
        if self._take() != ")":
            raise self._error("a parenthesis stays open", "')'")
        return inner

    def _signed(self, operand) -> Node:
        negative = False
        while self._peek() in ("+", "-"):
            negative ^= self._take() == "-"
        return _negative(operand()) if negative else operand()

    def _number(self, token: str) -> float:
        value = float(token)
        if not math.isfinite(value):
            raise TermError(f"{_quote(self.text)}: {_quote(token)} is too large for a float64")
        return value

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise TermError(f"{_quote(self.text)}: nested deeper than {DEEPEST}; expand it")

    def _peek(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self.next += 1
        return token

    def _error(self, text: str, wanted: str) -> TermError:
        last = min(self.next, len(self.tokens)) - 1
        position = self.tokens[last][1] if last >= 0 else 0
        return TermError(f"{_quote(self.text)}: {text} at position {position}; expected {wanted}")


def _negative(node: Node) -> Node:
    return Product((Number(-1.0), node))


def _tokens(text: str) -> list[tuple[str, int]]:
    tokens, position = [], 0
    while position < len(text):
        if text[position] in " \t\n":
            position += 1
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            raise TermError(
                f"{_quote(text)}: character {text[position]!r} at position {position} is not in the grammar"
            )
        tokens.append((match.group(), position))
        position = match.end()
    return tokens


def _quote(text: str) -> str:
    """The text for a message, cut so that a message stays one line."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
