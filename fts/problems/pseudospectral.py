"""A system of equations on axes that close on themselves -> its solution from a random smooth state.

The texts of the equations are their only statement: `solve_system` integrates what they say, by Fourier
differentiation without aliased products and an eighth-order Runge-Kutta rule at tight tolerance;
`evolve_system` carries linear terms exactly, which stiff ones need.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

from fts.domain import Domain
from fts.equations.integration import stepper
from fts.observations import require_finite

_RELATIVE, _ABSOLUTE = 1e-10, 1e-12
# Step times the largest rate, half of what is stable: at the limit decayed modes keep errors.
_STABLE = 3.0
_POWER_ITERATIONS, _NUDGE = 20, 1e-6
# A state that grew by this factor has exploded.
_LARGEST = 1e3
Values = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class SystemProblem:
    """One system: the equation of every component, its grid, its candidate terms and how it starts.

    `inputs` are fields that are measured but have no equation here: functions of the torus, the time and the
    state. `functions` are known functions of the coordinates and the time, as `fts.discover` takes them.
    """

    name: str
    title: str
    truth: Mapping[str, str]  # component -> the text of its equation, u_t = ... or u_tt = ...
    domain: Domain
    shape: tuple[int, ...]  # grid points per axis, then frames
    library: tuple[str, ...]
    start: Callable[["Waves"], Mapping[str, Values]] | None = None  # u, and u_t where the equation has u_tt
    inputs: Mapping[str, Callable[["Torus", float, Mapping[str, Values]], Values]] = field(
        default_factory=dict
    )
    functions: Mapping[str, Callable[..., Values]] = field(default_factory=dict)
    reflected: bool = False  # no flux through the ends: half of an even state on a circle twice as long
    exact: Callable[["SystemProblem", np.random.Generator], Mapping[str, Values]] | None = None

    @property
    def components(self) -> tuple[str, ...]:
        """The fields with an equation."""
        return tuple(self.truth)

    @property
    def targets(self) -> dict[str, str]:
        """The left-hand side of every equation: u_t or u_tt."""
        return {name: text.partition("=")[0].strip() for name, text in self.truth.items()}

    @property
    def target(self) -> str:
        """The left-hand side of the first equation."""
        return self.targets[self.components[0]]

    @property
    def order(self) -> int:
        """The order in time."""
        return self.target.count("t")

    @property
    def axes(self) -> tuple[np.ndarray, ...]:
        """Grid coordinates, one array per axis; an axis that closes on itself lacks its last point."""
        ends = zip(self.domain.low, self.domain.high, self.shape[:-1], self.domain.periodic, strict=True)
        return tuple(np.linspace(low, high, n, endpoint=not periodic) for low, high, n, periodic in ends)

    @property
    def frames(self) -> Float[np.ndarray, " nt"]:
        """The stored times."""
        return np.linspace(self.domain.t0, self.domain.t1, self.shape[-1])


@dataclass(frozen=True)
class SystemTrajectory:
    """Every component and input on one grid; truth, for sampling, scores and plots only."""

    domain: Domain
    axes: tuple[np.ndarray, ...]
    t: Float[np.ndarray, " nt"]
    values: Mapping[str, Values]  # each (nx, [ny, [nz,]] nt)
    inputs: Mapping[str, Values]
    problem: str

    def __post_init__(self) -> None:
        shape = (*(axis.size for axis in self.axes), self.t.size)
        for name, array in {**self.values, **self.inputs}.items():
            if array.shape != shape:
                raise ValueError(
                    f"{name} has shape {array.shape} but the axes say {shape}: order it (x, [y, [z,]] t)"
                )
            require_finite(name, array)


class Torus:
    """Fields on axes that close on themselves: Fourier derivatives of modes that no product folds back."""

    def __init__(self, lengths: Sequence[float], points: Sequence[int]) -> None:
        self.shape = tuple(points)
        last = len(self.shape) - 1
        self._waves, self._kept = [], np.ones(())
        self._symbols: dict[str, np.ndarray] = {}
        for axis, (length, n) in enumerate(zip(lengths, self.shape, strict=True)):
            modes = np.arange(n // 2 + 1) if axis == last else np.fft.fftfreq(n, 1 / n)
            column = [1] * len(self.shape)
            column[axis] = modes.size
            self._waves.append((2 * np.pi / length * modes).reshape(column))
            # The upper third stays empty: products of two fields do not fold back onto the others.
            self._kept = self._kept * (np.abs(modes) <= n // 3).reshape(column)

    def symbol(self, letters: str) -> np.ndarray:
        """(i k)^alpha of the derivative along these letters."""
        if letters not in self._symbols:
            factors = [1j * self._waves["xyz".index(letter)] for letter in letters]
            self._symbols[letters] = math.prod(factors, start=np.ones((1,) * len(self.shape)))
        return self._symbols[letters]

    def derivative(self, u: Values, letters: str) -> Values:
        """u differentiated along the letters."""
        return self.multiplied(u, self.symbol(letters))

    def multiplied(self, u: Values, symbol: np.ndarray) -> Values:
        """The modes of u, without the upper third, times a symbol."""
        return self.values(self.modes(u) * symbol)

    def modes(self, u: np.ndarray) -> np.ndarray:
        """The modes of u, without the upper third."""
        # One axis after the other: for few points rfftn takes ten times as long as rfft.
        modes = np.fft.rfft(u)
        for axis in range(u.ndim - 1):
            modes = np.fft.fft(modes, axis=axis)
        modes *= self._kept
        return modes

    def values(self, modes: np.ndarray) -> np.ndarray:
        """The field of these modes."""
        for axis in range(modes.ndim - 1):
            modes = np.fft.ifft(modes, axis=axis)
        return np.fft.irfft(modes, n=self.shape[-1])

    @cached_property
    def clock(self) -> np.ndarray:
        """The modes of the constant one."""
        return self.modes(np.ones(self.shape))

    def fractional(self, power: float) -> np.ndarray:
        """|k|^power: the symbol of a fractional power of the negative Laplacian."""
        return sum(wave**2 for wave in self._waves) ** (power / 2)

    @cached_property
    def hilbert(self) -> np.ndarray:
        """-i sign(k): the symbol of the Hilbert transform along x."""
        return -1j * np.sign(self._waves[0])


class Waves:
    """Random smooth states: `waves(3)` has deviation one and at most three waves along every axis."""

    def __init__(
        self, axes: tuple[np.ndarray, ...], lengths: Sequence[float], rng: np.random.Generator
    ) -> None:
        self.axes, self._rng = axes, rng
        self._phases = [2 * np.pi * axis / length for axis, length in zip(axes, lengths, strict=True)]

    def __call__(self, highest: int) -> Values:
        modes = np.arange(-highest, highest + 1)
        sizes = [1 / (1 + (2 * modes / (highest + 1)) ** 2)] * len(self.axes)
        shape = (modes.size,) * len(self.axes)
        total = self._rng.standard_normal(shape) + 1j * self._rng.standard_normal(shape)
        for phase, size in zip(self._phases, sizes, strict=True):
            total = np.tensordot(total, size[:, None] * np.exp(1j * np.outer(modes, phase)), (0, 0))
        u = total.real - total.real.mean()
        return u / u.std()


def solve_system(entry: SystemProblem, rng: np.random.Generator) -> SystemTrajectory:
    """The solution of any system from a random state."""
    if entry.exact is not None:
        values = entry.exact(entry, rng)
        return SystemTrajectory(entry.domain, entry.axes, entry.frames, values, {}, entry.name)
    if entry.start is None:
        raise ValueError(f"{entry.name!r} neither starts nor is known exactly: give start=f with f(waves)")
    factor = 2 if entry.reflected else 1
    lengths = [factor * length for length in entry.domain.extents[:-1]]
    counts = [2 * (n - 1) if entry.reflected else n for n in entry.shape[:-1]]
    torus = Torus(lengths, counts)
    low = entry.domain.low
    axes = tuple(a + length * np.arange(n) / n for a, length, n in zip(low, lengths, counts, strict=True))
    state = {name: torus.derivative(u, "") for name, u in entry.start(Waves(axes, lengths, rng)).items()}
    if entry.reflected:
        even = tuple(-np.arange(n) for n in counts)
        state = {name: (u + u[np.ix_(*even)]) / np.sqrt(2) for name, u in state.items()}
    system = _System(entry, torus, np.meshgrid(*axes, indexing="ij"))
    t = entry.frames
    start = np.stack([state[name] for name in system.names])
    flat = start.reshape(-1)
    solution = solve_ivp(
        system.rate,
        (t[0], t[-1]),
        flat,
        "DOP853",
        t,
        rtol=_RELATIVE,
        atol=_ABSOLUTE,
        max_step=_STABLE / system.spectral_radius(t[0], flat),
    )
    if not solution.success:
        raise ValueError(f"{entry.name!r} stops at t = {solution.t[-1]:.4g}: {solution.message}")
    fields = solution.y.reshape(*start.shape, t.size)
    stored = tuple(slice(0, n) for n in entry.shape[:-1])
    values = dict(zip(system.names, fields, strict=True))
    inputs = {
        name: np.stack(
            [give(torus, time, {c: u[..., i] for c, u in values.items()}) for i, time in enumerate(t)],
            axis=-1,
        )[stored]
        for name, give in entry.inputs.items()
    }
    values = {name: values[name][stored] for name in entry.components}
    return SystemTrajectory(entry.domain, entry.axes, t, values, inputs, entry.name)


def evolve_system(
    entry: SystemProblem, start: Mapping[str, Values], steps: int
) -> tuple[SystemTrajectory, dict[str, Values]]:
    """The solution from `start` by ETDRK4, `steps` between two frames, and the rates of its components.

    Linear terms of a component in its own equation are carried exactly, and so is the clock, the last row.
    """
    torus = Torus(entry.domain.extents[:-1], entry.shape[:-1])
    system = _System(entry, torus, np.meshgrid(*entry.axes, indexing="ij"))
    linear, rest = system.split()
    multiplier = np.stack([*(linear[name] / system.mass[name] for name in entry.components), torus.clock * 0])
    frames = entry.frames
    method = stepper(multiplier, (frames[1] - frames[0]) / steps)

    def rate(v: np.ndarray) -> np.ndarray:
        time = float(v[-1].flat[0].real / torus.clock.flat[0].real)
        state = {name: torus.values(modes) for name, modes in zip(entry.components, v, strict=False)}
        parts = [
            torus.modes(np.broadcast_to(total, torus.shape)) / system.mass[name]
            for name, terms in rest.items()
            for total in [sum((system.evaluate(term, time, state) for term in terms), np.zeros(()))]
        ]
        return np.stack([*parts, torus.clock])

    v = np.stack([*(torus.modes(start[name]) for name in entry.components), frames[0] * torus.clock])
    states, rates, most = [], [], _LARGEST * float(np.abs(v).max())
    for frame in range(frames.size):
        for _ in range(steps if frame else 0):
            v = method.advance(v, rate)
        if not np.abs(v).max() <= most:
            raise ValueError(
                f"{entry.name!r} explodes before t = {frames[frame]:.3g}: start from a smaller state"
            )
        states.append([torus.values(modes) for modes in v[:-1]])
        rates.append([torus.values(modes) for modes in (multiplier * v + rate(v))[:-1]])
    fields, changes = (np.moveaxis(np.array(each), 0, -1) for each in (states, rates))
    values = dict(zip(entry.components, fields, strict=True))
    trajectory = SystemTrajectory(entry.domain, entry.axes, frames, values, {}, entry.name)
    return trajectory, dict(zip(entry.components, changes, strict=True))


def evaluate_on(entry: SystemProblem, text: str, t: float, state: Mapping[str, Values]) -> Values:
    """A right-hand side's text on one state of a system."""
    torus = Torus(entry.domain.extents[:-1], entry.shape[:-1])
    system = _System(entry, torus, np.meshgrid(*entry.axes, indexing="ij"))
    tree = ast.parse(text.replace("^", "**"), mode="eval").body
    return np.broadcast_to(np.asarray(system.evaluate(tree, t, state), dtype=float), torus.shape)


_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS = {"sin": np.sin, "cos": np.cos, "exp": np.exp, "tanh": np.tanh}


@dataclass(frozen=True)
class _System:
    """What the texts say, on a torus."""

    entry: SystemProblem
    torus: Torus
    coordinates: Sequence[np.ndarray]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The fields that are integrated: the components, and their rates where the order in time is two."""
        rates = tuple(f"{name}_t" for name in self.entry.components) if self.entry.order == 2 else ()
        return (*self.entry.components, *rates)

    @cached_property
    def terms(self) -> dict[str, list[ast.expr]]:
        """The summands of every right-hand side that hold no rate to be solved for."""
        return {
            name: [term for term in terms if _mixed(term) is None] for name, terms in self._summands.items()
        }

    @cached_property
    def mass(self) -> dict[str, np.ndarray]:
        """What multiplies the rate's modes: 1 - c (i k)^2 where the right-hand side has c u_xxt."""
        mass = {}
        for name, terms in self._summands.items():
            parts = [c * self.torus.symbol(letters) for c, letters in filter(None, map(_mixed, terms))]
            mass[name] = self.torus.symbol("") - sum(parts)
        return mass

    @cached_property
    def _summands(self) -> dict[str, list[ast.expr]]:
        return {name: summands(text) for name, text in self.entry.truth.items()}

    def rate(self, t: float, flat: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The time derivative of everything that is integrated."""
        fields = flat.reshape(len(self.names), *self.torus.shape)
        state = dict(zip(self.names, fields, strict=True))
        rates = [
            self.torus.multiplied(
                np.broadcast_to(sum(self.evaluate(term, t, state) for term in terms), self.torus.shape),
                1 / self.mass[name],
            )
            for name, terms in self.terms.items()
        ]
        moved = fields[len(rates) :]  # u' = u_t where u_t is part of the state
        return np.concatenate([*(u.reshape(-1) for u in moved), *(u.reshape(-1) for u in rates)])

    def split(self) -> tuple[dict[str, np.ndarray], dict[str, list[ast.expr]]]:
        """Of every equation the symbol of the linear terms in its own component, and the other terms."""
        linear, rest = {}, {}
        for name, terms in self.terms.items():
            symbols = [(term, self._symbol(term, name)) for term in terms]
            known = [symbol for _, symbol in symbols if symbol is not None]
            linear[name] = sum(known, np.zeros(self.torus.clock.shape, dtype=complex))
            rest[name] = [term for term, symbol in symbols if symbol is None]
        return linear, rest

    def _symbol(self, term: ast.expr, component: str) -> np.ndarray | None:
        """What a term multiplies the component's modes by; None of one that does more."""
        match term:
            case ast.UnaryOp(ast.USub(), operand):
                inner = self._symbol(operand, component)
                return None if inner is None else -inner
            case ast.BinOp(
                ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant()) as factor, ast.Mult(), operand
            ):
                inner = self._symbol(operand, component)
                return None if inner is None else float(ast.literal_eval(factor)) * inner
            case ast.Name(name) if name.partition("_")[0] == component:
                return self.torus.symbol(name.partition("_")[2])
            case ast.Call(ast.Name("fractional"), [operand, ast.Constant() as power]):
                inner = self._symbol(operand, component)
                return (
                    None if inner is None else inner * self.torus.fractional(float(ast.literal_eval(power)))
                )
            case ast.Call(ast.Name("hilbert"), [operand]):
                inner = self._symbol(operand, component)
                return None if inner is None else inner * self.torus.hilbert
        return None

    def spectral_radius(self, t: float, flat: Float[np.ndarray, " n"]) -> float:
        """The largest rate of the linearized system, by power iteration on differences."""
        base, size = self.rate(t, flat), np.linalg.norm(flat)
        direction = np.random.default_rng(0).standard_normal(flat.size)
        growth = []
        for _ in range(_POWER_ITERATIONS):
            step = _NUDGE * size / np.linalg.norm(direction)
            change = (self.rate(t, flat + step * direction) - base) / step
            growth.append(np.linalg.norm(change) / np.linalg.norm(direction))
            direction = change
        # Single factors alternate where u' = u_t; their mean does not.
        return float(np.exp(np.mean(np.log(growth[_POWER_ITERATIONS // 2 :]))))

    def evaluate(self, node: ast.AST, t: float, state: Mapping[str, Values]) -> Any:
        """A part of a right-hand side on the grid."""
        match node:
            case ast.Constant(value):
                return value
            case ast.UnaryOp(ast.USub(), operand):
                return -self.evaluate(operand, t, state)
            case ast.BinOp(left, operation, right):
                parts = self.evaluate(left, t, state), self.evaluate(right, t, state)
                return _OPERATIONS[type(operation)](*parts)
            case ast.Call(ast.Name(name), arguments):
                parts = [self.evaluate(argument, t, state) for argument in arguments]
                if name.startswith("D_"):
                    return self.torus.derivative(parts[0], name[2:])
                if name == "fractional":
                    return self.torus.multiplied(parts[0], self.torus.fractional(parts[1]))
                if name == "hilbert":
                    return self.torus.multiplied(parts[0], self.torus.hilbert)
                return _FUNCTIONS[name](*parts)
            case ast.Name(name):
                return self._named(name, t, state)
        raise ValueError(
            f"{ast.unparse(node)}: an equation has numbers, names, functions, + - * / and powers"
        )

    def _named(self, name: str, t: float, state: Mapping[str, Values]) -> Any:
        if name in state:
            return state[name]
        if name == "t":
            return t
        if name in ("x", "y", "z"):
            return self.coordinates["xyz".index(name)]
        if name in self.entry.functions:
            return self.entry.functions[name](*self.coordinates, t)
        head, _, letters = name.partition("_")
        if head not in state and head not in self.entry.inputs:
            raise ValueError(
                f"{name!r} in an equation of {self.entry.name!r}: not a component, input or function"
            )
        u = state[head] if head in state else self.entry.inputs[head](self.torus, t, state)
        return self.torus.derivative(u, letters) if letters else u


def summands(text: str) -> list[ast.expr]:
    """The terms of a right-hand side, each with its sign and coefficient."""
    tree = ast.parse(text.partition("=")[2].strip().replace("^", "**"), mode="eval").body
    terms: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
        right = tree.right
        terms.append(right if isinstance(tree.op, ast.Add) else ast.UnaryOp(ast.USub(), right))
        tree = tree.left
    return [tree, *reversed(terms)]


def _mixed(term: ast.expr) -> tuple[float, str] | None:
    """(c, "xx") of a term c*u_xxt, which holds the rate that is solved for; None of any other."""
    match term:
        case ast.UnaryOp(ast.USub(), operand):
            inner = _mixed(operand)
            return None if inner is None else (-inner[0], inner[1])
        case ast.BinOp(factor, ast.Mult(), operand):
            inner = _mixed(operand)
            return None if inner is None else (ast.literal_eval(factor) * inner[0], inner[1])
        case ast.Name(name):
            letters = name.partition("_")[2]
            return (1.0, letters[:-1]) if len(letters) > 1 and letters.endswith("t") else None
    return None
