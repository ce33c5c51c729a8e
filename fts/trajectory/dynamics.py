"""Equations of several components -> states through time, and their derivatives by start and coefficients.

The same as `integration` does for one scalar on a ring, for systems on one to three periodic axes: components
that are of first or second order in time, known inputs, coefficients that vary, and mixed derivatives such as
u_xxt. A component of second order is two rows of the state, u and u_t. Linear terms with constant
coefficients are carried exactly, as a matrix for every wave,

    v_t = L v + N(v, t),    phi_0(h L), ..., phi_3(h L) by scaling and doubling,

where the contour integrals of scalars would have to surround the spectrum of every matrix.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float, Int

from fts.equations.algebra import derivative
from fts.equations.expressions import Expression, unknown_axis
from fts.equations.grammar import COORDINATES, LETTERS
from fts.equations.terms import Term
from fts.trajectory.integration import Unbounded

# Terms of the series of phi_3 at half a unit: the rest is rounding.
_SERIES = 13
_MOST_GROWTH = 1e3
Values = Float[np.ndarray, "..."]
Modes = Complex[np.ndarray, "..."]
# Name, derivative in space and scale of a symbol or a linear term.
Alpha = tuple[int, ...]


class NoFlow(ValueError):
    """An equation that is not of the kind that is integrated here, with the reason."""


@dataclass(frozen=True)
class PeriodicBox:
    """Periodic axes: equidistant points along each, and a third as many waves."""

    low: tuple[float, ...]
    lengths: tuple[float, ...]
    points: tuple[int, ...]

    @property
    def axes(self) -> tuple[Float[np.ndarray, " n"], ...]:
        """The points of every axis."""
        spans = zip(self.low, self.lengths, self.points, strict=True)
        return tuple(low + length * np.arange(n) / n for low, length, n in spans)

    @cached_property
    def counts(self) -> tuple[Int[np.ndarray, "..."], ...]:
        """Numbers of the waves along each axis, shaped to broadcast; none is negative along the last."""
        highest, last = [n // 3 for n in self.points], len(self.points) - 1
        columns = []
        for axis, most in enumerate(highest):
            count = np.arange(most + 1) if axis == last else np.r_[0 : most + 1, -most:0]
            columns.append(count.reshape([-1 if other == axis else 1 for other in range(last + 1)]))
        return tuple(columns)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of the Fourier coefficients that are kept: products do not fold back onto them."""
        return np.broadcast_shapes(*(count.shape for count in self.counts))

    def symbol(self, alpha: Alpha) -> Modes:
        """(i k)^alpha."""
        symbol = np.ones(self.shape, dtype=complex)
        for order, count, length in zip(alpha, self.counts, self.lengths, strict=False):
            symbol = symbol * (2j * np.pi / length * count) ** order
        return symbol

    def to_values(self, v: Modes) -> Values:
        """The fields with these coefficients."""
        for axis, n in enumerate(self.points[:-1]):
            place, most = v.ndim - len(self.points) + axis, n // 3
            whole = np.zeros((*v.shape[:place], n, *v.shape[place + 1 :]), dtype=complex)
            ends = (slice(None),) * place
            whole[(*ends, slice(0, most + 1))] = v[(*ends, slice(0, most + 1))]
            whole[(*ends, slice(n - most, n))] = v[(*ends, slice(most + 1, None))]
            v = np.fft.ifft(whole, axis=place)
        return np.fft.irfft(v, n=self.points[-1])

    def to_modes(self, u: Values) -> Modes:
        """The coefficients that are kept of fields on the grid."""
        v = np.fft.rfft(u)[..., : self.points[-1] // 3 + 1]
        for axis, n in enumerate(self.points[:-1]):
            place, most = v.ndim - len(self.points) + axis, n // 3
            v = np.fft.fft(v, axis=place)
            v = np.take(v, np.r_[0 : most + 1, n - most : n], axis=place)
        return v

    def rows(self, x: Float[np.ndarray, "n d"]) -> Complex[np.ndarray, "n modes"]:
        """What the flat coefficients are multiplied by to give, as a real part, the field at x."""
        waves = np.ones((len(x), *(1,) * len(self.points)), dtype=complex)
        for axis, count in enumerate(self.counts):
            turns = (x[:, axis] - self.low[axis]) / self.lengths[axis]
            waves = waves * np.exp(2j * np.pi * np.multiply.outer(turns, count))
        waves = waves * np.where(self.counts[-1] > 0, 2, 1)
        return waves.reshape(len(x), -1) / math.prod(self.points)

    def waves(self, numbers: Sequence[tuple[int, ...]]) -> Modes:
        """cos and sin of every wave of amplitude one, the wave of number zero being one; as coefficients."""
        result = []
        for number in numbers:
            cosine, sine = np.zeros((2, *self.shape), dtype=complex)
            for sign in (1, -1):
                if number[-1] * sign < 0 or (sign < 0 and not any(number)):
                    continue
                index = tuple(sign * n % size for n, size in zip(number, self.shape, strict=True))
                cosine[index] += 0.5 * math.prod(self.points)
                sine[index] -= sign * 0.5j * math.prod(self.points)
            result += [cosine, sine] if any(number) else [2 * cosine]
        return np.array(result)


@dataclass(frozen=True)
class SystemTerms:
    """The terms of all equations of a system: entry j belongs to the equation of targets[equations[j]]."""

    targets: tuple[Term, ...]  # left-hand sides u_t or u_tt
    equations: tuple[int, ...]
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        for equation, term in zip(self.equations, self.terms, strict=True):
            own = self.components[equation]
            for symbol in term.q.symbols:
                name, alpha, order = split(symbol)
                if name in self.components and order + (term.time if is_plain(term) else 0) > 0:
                    mixed = is_plain(term) and name == own and any((*alpha, *term.alpha))
                    known = order + term.time < self.order(name)
                    if not (known or (mixed and term.time == self.order(own))):
                        raise NoFlow(f"{term} holds a rate that no equation gives: drop it")
            if term.time and not is_plain(term):
                raise NoFlow(f"{term} is the rate of a product: drop it")

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """Text of every entry, after the left-hand side where there are several."""
        if len(self.targets) == 1:
            return tuple(map(str, self.terms))
        pairs = zip(self.equations, self.terms, strict=True)
        return tuple(f"{self.targets[equation]}: {term}" for equation, term in pairs)

    @property
    def components(self) -> tuple[str, ...]:
        """The component every equation is of."""
        return tuple(next(iter(target.states)) for target in self.targets)

    @property
    def rows(self) -> tuple[str, ...]:
        """What the state consists of: every component, followed by its rate where that is a state too."""
        pairs = zip(self.components, self.targets, strict=True)
        return tuple(row for name, target in pairs for row in (name, f"{name}_t")[: target.time])

    @property
    def inputs(self) -> frozenset[str]:
        """Fields and functions that are known: neither components nor coordinates."""
        names = {split(symbol)[0] for term in self.terms for symbol in term.q.symbols}
        return frozenset(names - set(self.components) - set(COORDINATES))

    def order(self, component: str) -> int:
        """The order in time of a component's equation."""
        return self.targets[self.components.index(component)].time

    def only(self, entries: Sequence[int]) -> "SystemTerms":
        """Some of the entries."""
        equations, terms = (self.equations[j] for j in entries), (self.terms[j] for j in entries)
        return SystemTerms(self.targets, tuple(equations), tuple(terms))


def split(symbol: str) -> tuple[str, Alpha, int]:
    """Name, derivative in space and in time of a symbol: v_xt is v, (1, 0, 0), 1."""
    if unknown_axis(symbol) or symbol in COORDINATES:
        return symbol, (0, 0, 0), 0
    name, _, letters = symbol.partition("_")
    return name, tuple(letters.count(letter) for letter in LETTERS), letters.count("t")


def is_plain(term: Term) -> bool:
    """True for a derivative of a component or an input by itself."""
    name, power = term.q.power_of or ("", 0.0)
    return power == 1.0 and name not in COORDINATES and not unknown_axis(name)


@dataclass(frozen=True)
class Known:
    """Coordinates, inputs and varying coefficients on a grid, at equal times half a step apart."""

    still: Mapping[str, Values]  # what does not change
    moving: Mapping[str, Float[np.ndarray, "times ..."]] = field(default_factory=dict)
    t0: float = 0.0
    half_step: float = 1.0

    def at(self, half_steps: int) -> dict[str, np.ndarray]:
        """The values after so many half steps."""
        time = np.full(1, self.t0 + half_steps * self.half_step)
        moving = {name: values[half_steps] for name, values in self.moving.items()}
        return {"t": time, **self.still, **moving}


@dataclass(frozen=True)
class Phi:
    """phi_0 to phi_3 of one matrix per wave, phi_0 being the exponential; [c, c, *modes]."""

    phi: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

    @staticmethod
    def of(matrix: Complex[np.ndarray, "c c *modes"]) -> tuple["Phi", "Phi"]:
        """The functions of the matrix, and of its half."""
        z = np.moveaxis(matrix, (0, 1), (-2, -1))
        size = float(np.abs(z).sum(axis=-1).max(initial=0.0))
        doublings = max(math.ceil(math.log2(max(size, 1.0))) + 1, 1)
        z = z / 2**doublings
        unit = np.broadcast_to(np.eye(z.shape[-1]), z.shape)
        three = unit / math.factorial(_SERIES + 3)
        for k in range(_SERIES - 1, -1, -1):
            three = z @ three + unit / math.factorial(k + 3)
        two = z @ three + unit / 2
        one = z @ two + unit
        half = phi = (z @ one + unit, one, two, three)
        for _ in range(doublings):
            half, phi = phi, _doubled(phi)
        front = [[np.ascontiguousarray(np.moveaxis(f, (-2, -1), (0, 1))) for f in g] for g in (phi, half)]
        whole, part = (Phi((f[0], f[1], f[2], f[3])) for f in front)
        return whole, part


def _doubled(phi: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """phi_k(2 z) = 2^-k (phi_0(z) phi_k(z) + sum_j phi_j(z) / (k - j)!), j from 1 to k."""
    return tuple(
        (phi[0] @ phi[k] + sum(phi[j] / math.factorial(k - j) for j in range(1, k + 1))) / 2**k
        for k in range(4)
    )


def _times(matrix: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The matrix of every wave times v [rows, c, *modes]."""
    result = np.zeros(np.broadcast_shapes(v.shape, matrix.shape[1:]), dtype=complex)
    for i, j in zip(*np.nonzero(np.abs(matrix).reshape(*matrix.shape[:2], -1).any(axis=-1)), strict=True):
        result[:, i] += matrix[i, j] * v[:, j]
    return result


@dataclass(frozen=True)
class SystemFlow:
    """v_t = L v + N(v, t) for the entries with their coefficients; those with xi_j = 0 have tangents too."""

    system: SystemTerms
    xi: Float[np.ndarray, " J"]
    box: PeriodicBox

    def states(
        self, start: Complex[np.ndarray, "rows c *modes"], known: Known, steps: int
    ) -> Iterator[Complex[np.ndarray, "rows c *modes"]]:
        """The rows at the start and after every step; the last J are tangents along the coefficients.

        A single row is the state alone.
        """
        v, step = start, 2 * known.half_step
        whole, half = Phi.of(step * self.matrix)
        (full, one, two, three), (middle, first) = whole.phi, half.phi[:2]
        q, f1 = step / 2 * first, step * (one - 3 * two + 4 * three)
        f2, f3 = 2 * step * (two - 2 * three), step * (4 * three - two)
        most = _MOST_GROWTH * np.abs(self.box.to_values(v[0])).max()
        yield v
        for k in range(steps):
            now, between, after = (known.at(2 * k + i) for i in range(3))
            n_v, moved = self._rate(v, now, most), _times(middle, v)
            a = moved + _times(q, n_v)
            n_a = self._rate(a, between, most)
            n_b = self._rate(moved + _times(q, n_a), between, most)
            c = _times(middle, a) + _times(q, 2 * n_b - n_v)
            v = _times(full, v) + _times(f1, n_v) + _times(f2, n_a + n_b)
            v += _times(f3, self._rate(c, after, most))
            yield v

    @cached_property
    def matrix(self) -> Complex[np.ndarray, "c c *modes"]:
        """L for every wave: the linear terms, and u' = u_t where u_t is part of the state."""
        rows = self.system.rows
        matrix = np.zeros((len(rows), len(rows), *self.box.shape), dtype=complex)
        for j, (row, column, alpha) in self._linear.items():
            matrix[row, column] += self.xi[j] * self.system.terms[j].scale * self.box.symbol(alpha)
        for k in range(len(rows)):
            matrix[k] /= self._mass[k]
        for k, name in enumerate(rows):
            if name.endswith("_t"):
                matrix[k - 1, k] = 1.0
        return matrix

    def growth(self) -> float:
        """The largest rate at which the linear terms make a wave grow."""
        matrices = np.moveaxis(self.matrix, (0, 1), (-2, -1))
        return float(np.linalg.eigvals(matrices).real.max()) if np.isfinite(matrices).all() else math.inf

    def fastest(self, sizes: Mapping[str, Values], numbers: Float[np.ndarray, " d"]) -> float:
        """The largest rate at which products move a wave, up to the wave numbers given.

        `sizes` has values of every symbol, one for each point that is looked at.
        """
        total = 0.0
        for (_, alpha), entries in self._products.items():
            for symbol in {symbol for j in entries for symbol in self._slopes[j]}:
                _, inner, _ = split(symbol)
                slope = sum(
                    self._weight(j) * self._slopes[j][symbol](sizes)
                    for j in entries
                    if symbol in self._slopes[j]
                )
                orders = [a + b for a, b in zip(alpha, inner, strict=True)][: len(numbers)]
                total += float(np.abs(slope).max()) * math.prod(numbers**orders)
        return total

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """All symbols in terms that are no linear ones."""
        return tuple(sorted({s for j in self._others for s in self.system.terms[j].q.symbols}))

    def _row(self, name: str, order: int) -> int:
        return self.system.rows.index(f"{name}_t" if order else name)

    @cached_property
    def _linear(self) -> dict[int, tuple[int, int, Alpha]]:
        """Entries in L: the row they move, the row they are a derivative of, and the derivative."""
        linear = {}
        for j, (equation, term) in enumerate(zip(self.system.equations, self.system.terms, strict=True)):
            if not is_plain(term) or j in self._mixed:
                continue
            ((symbol, _),) = (term.q.power_of or ("", 1.0),)
            name, inner, order = split(symbol)
            if name in self.system.components:
                alpha = tuple(a + b for a, b in zip(term.alpha, inner, strict=True))
                linear[j] = (self._target(equation), self._row(name, order + term.time), alpha)
        return linear

    @cached_property
    def _mixed(self) -> dict[int, Alpha]:
        """Entries with the rate that is solved for, as u_xxt, and their derivative in space."""
        pairs = enumerate(zip(self.system.equations, self.system.terms, strict=True))
        return {
            j: term.alpha for j, (k, term) in pairs if term.time and term.time == self.system.targets[k].time
        }

    @cached_property
    def _mass(self) -> list[np.ndarray]:
        """What multiplies the rate of every row."""
        mass = [np.ones(self.box.shape, dtype=complex) for _ in self.system.rows]
        for j, alpha in self._mixed.items():
            weight = self._weight(j) * self.box.symbol(alpha)
            mass[self._target(self.system.equations[j])] -= weight
        return mass

    def _target(self, equation: int) -> int:
        """The row that an equation moves."""
        name = self.system.components[equation]
        return self._row(name, self.system.order(name) - 1)

    def _weight(self, j: int) -> float:
        return float(self.xi[j] * self.system.terms[j].scale)

    @cached_property
    def _others(self) -> list[int]:
        return [j for j in range(len(self.system)) if j not in self._linear and j not in self._mixed]

    @cached_property
    def _slopes(self) -> dict[int, dict[str, Expression]]:
        """Derivatives of what is no linear term by the symbols of components in it."""
        slopes = {}
        for j in self._others:
            q = self.system.terms[j].q
            names = (name for name in sorted(q.symbols) if split(name)[0] in self.system.components)
            slopes[j] = {name: derivative(q, name) for name in names}
        return slopes

    @cached_property
    def _products(self) -> dict[tuple[int, Alpha], list[int]]:
        """Terms in play that are no linear ones, by the row they move and the derivative in front."""
        products: dict[tuple[int, Alpha], list[int]] = {}
        for j in self._others:
            if self.xi[j] != 0:
                key = self._target(self.system.equations[j]), self.system.terms[j].alpha
                products.setdefault(key, []).append(j)
        return products

    @cached_property
    def _factors(self) -> Callable[[Alpha], np.ndarray]:
        cache: dict[Alpha, np.ndarray] = {}

        def factor(alpha: Alpha) -> np.ndarray:
            if alpha not in cache:
                cache[alpha] = self.box.symbol(alpha)
            return cache[alpha]

        return factor

    def _field(self, v: np.ndarray, symbol: str) -> np.ndarray:
        """Values of a component's derivative in all rows."""
        name, alpha, order = split(symbol)
        part = v[:, self._row(name, order)]
        return self.box.to_values(part * self._factors(alpha) if any(alpha) else part)

    def _rate(self, v: np.ndarray, known: Mapping[str, np.ndarray], most: float) -> np.ndarray:
        """N of the state, and of the tangents its derivative."""
        total = np.zeros_like(v)
        entries = self._others if len(v) > 1 else [j for group in self._products.values() for j in group]
        names = {name for j in entries for name in self.system.terms[j].q.symbols}
        states = {name: self._field(v[:1], name)[0] for name in names if self._is_state(name)}
        if not all(np.abs(values).max() <= most for name, values in states.items() if "_" not in name):
            raise Unbounded(f"the state grew beyond {most:.3g}: the equation cannot be integrated from there")
        values = {**known, **states}
        functions = {self.system.terms[j].q for j in entries}
        powers = {q: np.broadcast_to(q(values), self.box.points) for q in functions}
        tangents: dict[str, np.ndarray] = {}
        for (row, alpha), members in self._products.items():
            inside = np.empty((len(v), *self.box.points))
            inside[0] = sum(self._weight(j) * powers[self.system.terms[j].q] for j in members)
            if len(v) > 1:
                inside[1:] = 0.0
                for name in sorted({name for j in members for name in self._slopes[j]}):
                    if name not in tangents:
                        tangents[name] = self._field(v[1:], name)
                    holders = (j for j in members if name in self._slopes[j])
                    slope = sum(self._weight(j) * self._slopes[j][name](values) for j in holders)
                    inside[1:] += slope * tangents[name]
            modes = self.box.to_modes(inside)
            total[:, row] += modes * self._factors(alpha) if any(alpha) else modes
        for row in range(total.shape[1]):
            total[:, row] /= self._mass[row]
        if len(v) > 1:
            self._add_sources(total, v[0], powers)
        return total

    def _is_state(self, name: str) -> bool:
        return split(name)[0] in self.system.components

    def _add_sources(
        self, total: np.ndarray, state: np.ndarray, powers: Mapping[Expression, np.ndarray]
    ) -> None:
        """What a unit of every coefficient adds to the rate, in the row of its tangent."""
        first = len(total) - len(self.system)
        spectra = (
            dict(zip(powers, self.box.to_modes(np.array(list(powers.values()))), strict=True))
            if powers
            else {}
        )
        rate = None
        for j, (equation, term) in enumerate(zip(self.system.equations, self.system.terms, strict=True)):
            row = self._target(equation)
            if j in self._linear:
                _, column, alpha = self._linear[j]
                source = self._factors(alpha) * state[column]
            elif j in self._mixed:
                rate = _times(self.matrix, state[None])[0] + total[0] if rate is None else rate
                source = self._factors(self._mixed[j]) * rate[row]
            else:
                source = self._factors(term.alpha) * spectra[term.q]
            total[first + j, row] += term.scale * source / self._mass[row]
