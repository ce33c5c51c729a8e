"""A fitted trajectory -> score tests of a wide class of equations around the one that was fitted.

Every departure is a source s along the solution, to which the equation would respond by

    v_t = sum_j xi_j D_j (q_j'(u) v) + s,

further terms D q(u), coefficients that vary slowly in x or t, smooth forcing, a mixed derivative u_xxt = D_xx
N(u) and a second one u_tt = N'(u) N(u) of the right-hand side N, fractional powers of the Laplacian and the
memory that a component not measured would leave. With I the information about all of them at once, states
eliminated, and g the score, a departure with columns G beside the support S has the statistic

    chi^2 = r^T C^-1 r,   r = g_G - I_GS I_SS^-1 g_S,   C = I_GG - I_GS I_SS^-1 I_SG,

one linearization for all (Rao's score test, or the test of Lagrange multipliers).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float
from numpy.polynomial import legendre
from scipy.special import gammaln
from scipy.stats import chi2

from fts.equations.integration import is_linear, wavenumbers
from fts.equations.terms import Library
from fts.selection.support_search import Support
from fts.trajectory.fit import (
    Linearization,
    Record,
    TrajectoryFit,
    linearize,
    normal_equations,
    residual_variance,
    resolved_states,
    tangents_at_samples,
)
from fts.trajectory.integration import Flow, Unbounded

# Beside the general library: what equations of waves, films, fronts and phases are made of.
_FURTHER = (
    *("1", "u", "u^2", "u^3", "u^4", "u_x", "u*u_x", "u^2*u_x", "u^3*u_x", "u_xx", "D_xx(u^2)", "D_xx(u^3)"),
    *("u_xxx", "D_xxx(u^2)", "u_xxxx", "u_xxxxx", "u_xxxxxx"),
)
# Waves and Legendre polynomials that vary slowly: of coefficients in x and in t, and of a forcing.
_WAVES, _DEGREES, _FORCED_WAVES, _FORCED_DEGREES = 2, 2, 3, 3
# Rates at which a memory fades, over the record.
_FADING = (0.0, 3.0, 10.0)
# Neighbours in time share a sensor, those in space a frame; fewer pairs say nothing.
_DIRECTIONS, _LEAST_PAIRS = {"time": ("t", "x"), "space": ("x", "t")}, 100
# Directions that are combinations of others, in a correlation matrix.
_DEPENDENT = 1e-8


@dataclass(frozen=True)
class AuditParams:
    """When a departure is wanted. Chosen on equations of the development range."""

    level: float = 0.01  # chance that a right equation is asked for anything, over all tests
    share: float = 0.02  # of the change of state; a departure that does less is none
    floor: float = 1e-3  # deviations of the samples: the least noise, whatever the fit leaves
    alike: float = 3.0  # standard errors of the correlation of neighbouring residuals


AUDIT = AuditParams()


@dataclass(frozen=True)
class Departure:
    """A way in which an equation may differ from the one fitted, and its columns among the tangents."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class ScoreTest:
    """How a departure came out."""

    departure: Departure
    statistic: float
    freedom: int
    log_p: float  # natural logarithm of the chance of so large a statistic in a right equation
    share: float  # how far it would move the state, in units of what the equation moves it by
    least: float  # coefficient up to which it would not be seen; nan for several columns
    unseen_share: float  # how far that would move the state; nan for several columns


@dataclass(frozen=True)
class Correlation:
    """Of the residuals of neighbouring samples, and in standard errors of independent noise."""

    value: float
    z: float


@dataclass(frozen=True)
class Residuals:
    """What the integrated equation leaves of the samples, and whether neighbours are alike."""

    x: Float[np.ndarray, " n"]
    t: Float[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]
    correlations: dict[str, Correlation]  # by the direction in which neighbours were taken

    @property
    def sentence(self) -> str:
        """The correlations, for a reader."""
        texts = [
            f"{c.value:+.2f} in {name} ({c.z:+.1f} standard errors)" for name, c in self.correlations.items()
        ]
        return f"Neighbours correlate by {' and '.join(texts)}." if texts else "No samples are neighbours."


@dataclass(frozen=True)
class Audit:
    """Score tests of all departures, the information they were made of, and the residuals."""

    library: Library  # terms among the departures, those of the fit first
    support: Support
    tests: tuple[ScoreTest, ...]
    wanted: tuple[ScoreTest, ...]  # the most significant first, each given those before it
    information: Float[np.ndarray, "n n"]
    score: Float[np.ndarray, " n"]
    reach: Float[np.ndarray, "n n"]
    residuals: Residuals

    def around(self, fit: TrajectoryFit) -> TrajectoryFit:
        """The fit with the information about all terms of the library."""
        terms = slice(len(self.library))
        return replace(
            fit,
            xi=np.pad(fit.xi, (0, len(self.library) - len(fit.xi))),
            information=self.information[terms, terms],
            score=self.score[terms],
            reach=self.reach[terms, terms],
        )


def wide_library(library: Library) -> Library:
    """The library with the further terms it lacks, multiples apart."""
    further = Library.parse(_FURTHER)
    known = {part for term in library for part in term.physical()}
    return Library((*library, *(term for term in further if not known & set(term.physical()))))


def audit(record: Record, library: Library, fit: TrajectoryFit, params: AuditParams) -> Audit | None:
    """The score tests around `fit`; None where its solution grows without bound."""
    inside = list(fit.support)
    restricted = Library(tuple(library[j] for j in inside))
    at = linearize(record, restricted, fit.xi[inside], fit.states)
    if at is None:
        return None
    wide = wide_library(library)
    xi = np.pad(fit.xi, (0, len(wide) - len(library)))
    ends = record.windows[0].begin, max(float(window.t.max()) for window in record.windows)
    flows = [DepartingFlow(wide, xi, record.grid, w.begin, w.step, ends) for w in record.windows]
    windows = zip(record.windows, flows, resolved_states(record, at), strict=True)
    try:
        tangents = [tangents_at_samples(w, flow, state, record.waves) for w, flow, state in windows]
    except Unbounded:
        return None
    variance = max(residual_variance(record, at), (params.floor * record.scale) ** 2)
    normal = normal_equations(record, replace(at, tangents=tuple(tangents)), variance)
    along = [columns[:, len(record.spread) :] for columns in tangents]
    reach = np.asarray(sum(columns.T @ columns for columns in along))
    departures = flows[0].departures
    whole = float(xi[inside] @ reach[np.ix_(inside, inside)] @ xi[inside])
    made = Audit(
        wide, fit.support, (), (), normal.information, normal.score, reach, _residuals(record, at, variance)
    )
    threshold = np.log(params.level / len(departures))
    tests = tuple(_score_test(made, departure, inside, whole, threshold) for departure in departures)
    return replace(made, tests=tests, wanted=tuple(_wanted(made, tests, whole, threshold, params)))


def _residuals(record: Record, at: Linearization, variance: float) -> Residuals:
    """The residuals with the correlation of neighbours at the same sensor and in the same frame.

    Fitting alone makes residuals alike: with tangents T and the states' prior P, independent noise s leaves
    E r_i r_j = -s^2 T_i (T^T T + s^2 P)^-1 T_j^T, which is taken off.
    """
    size = len(record.spread)
    products: dict[str, tuple[float, int]] = dict.fromkeys(_DIRECTIONS, (0.0, 0))
    for window, residual, tangents in zip(record.windows, at.residuals, at.tangents, strict=True):
        precision = np.zeros(tangents.shape[1])
        precision[:size] = variance * record.spread**-2.0
        fitted = np.linalg.pinv(tangents.T @ tangents + np.diag(precision), hermitian=True)
        spread = tangents @ fitted
        for name, (along, same) in _DIRECTIONS.items():
            first, second = _neighbours(getattr(window, along), getattr(window, same))
            expected = np.einsum("ij,ij->i", spread[first], tangents[second])
            total, count = products[name]
            products[name] = (
                total + float(residual[first] @ residual[second] / variance + expected.sum()),
                count + len(first),
            )
    correlations = {
        name: Correlation(total / count, total / np.sqrt(count))
        for name, (total, count) in products.items()
        if count >= _LEAST_PAIRS
    }
    x, t = (np.concatenate([getattr(window, axis) for window in record.windows]) for axis in "xt")
    return Residuals(x, t, np.concatenate(at.residuals), correlations)


def _neighbours(along: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of samples next to each other along one coordinate, the other being the same."""
    order = np.lexsort((along, same))
    alike = np.flatnonzero(same[order][1:] == same[order][:-1])
    return order[alike], order[alike + 1]


def _wanted(
    made: Audit, tests: tuple[ScoreTest, ...], whole: float, threshold: float, params: AuditParams
) -> Iterator[ScoreTest]:
    """The departure of least chance, then that of least chance beside it, until none is significant."""
    inside = list(made.support)
    while tests:
        significant = [test for test in tests if test.log_p < threshold and test.share >= params.share]
        if not significant:
            return
        best = min(significant, key=lambda test: test.log_p)
        yield best
        inside += best.departure.columns
        others = [test.departure for test in tests if not set(test.departure.columns) <= set(inside)]
        tests = tuple(_score_test(made, departure, inside, whole, threshold) for departure in others)


def _score_test(
    made: Audit, departure: Departure, inside: list[int], whole: float, threshold: float
) -> ScoreTest:
    columns = [j for j in departure.columns if j not in inside]
    units = np.sqrt(np.maximum(np.diag(made.information), np.finfo(float).tiny))
    scaled, score = made.information / np.outer(units, units), made.score / units
    known, cross = scaled[np.ix_(inside, inside)], scaled[np.ix_(inside, columns)]
    solved = np.linalg.lstsq(known, np.column_stack([cross, score[inside]]), rcond=_DEPENDENT)[0]
    schur = scaled[np.ix_(columns, columns)] - cross.T @ solved[:, :-1]
    residual = score[columns] - cross.T @ solved[:, -1]
    values, vectors = np.linalg.eigh((schur + schur.T) / 2)
    kept = values > _DEPENDENT
    if not kept.any():
        return ScoreTest(departure, 0.0, 0, 0.0, 0.0, np.inf, np.inf)
    along = vectors[:, kept].T @ residual
    statistic, freedom = float(np.sum(along**2 / values[kept])), int(kept.sum())
    coefficients = (vectors[:, kept] @ (along / values[kept])) / units[columns]
    share = np.sqrt(coefficients @ made.reach[np.ix_(columns, columns)] @ coefficients / whole)
    log_p = _log_chance(statistic, freedom)
    if len(columns) > 1:
        return ScoreTest(departure, statistic, freedom, log_p, float(share), np.nan, np.nan)
    least = float(np.sqrt(chi2.isf(np.exp(threshold), 1) / values[0]) / units[columns[0]])
    unseen = least * float(np.sqrt(made.reach[columns[0], columns[0]] / whole))
    return ScoreTest(departure, statistic, freedom, log_p, float(share), least, unseen)


def _log_chance(statistic: float, freedom: int) -> float:
    """Natural logarithm of the chance of a larger chi^2, where it is too small for a float, too."""
    exact = float(chi2.logsf(statistic, freedom))
    if np.isfinite(exact):
        return exact
    half, shape = statistic / 2, freedom / 2
    return float((shape - 1) * np.log(half) - half - gammaln(shape))


@dataclass
class _Memory:
    """Integrals of the state's past, each fading at its own rate."""

    faded: np.ndarray
    last: np.ndarray | None = None
    steps: int = -1

    def advance(self, state: np.ndarray, step: float, rates: np.ndarray) -> None:
        """One step on, by the trapezoidal rule."""
        if self.last is not None:
            decay = np.exp(-rates * step)[:, None]
            self.faded = decay * self.faded + step / 2 * (decay * self.last + state)
        self.last, self.steps = state, self.steps + 1


@dataclass(frozen=True)
class DepartingFlow(Flow):
    """The flow with tangents along every departure, in a window that begins at some time of the record."""

    begin: float
    step: float
    ends: tuple[float, float]  # of the record
    memory: _Memory = field(default_factory=lambda: _Memory(np.zeros((len(_FADING), 1))), repr=False)

    @cached_property
    def departures(self) -> tuple[Departure, ...]:
        """Every departure with its columns; terms of the support are none."""
        J, names = len(self.library), self.library.names
        inside = [j for j in range(J) if self.xi[j] != 0]
        result = [Departure(names[j], (j,)) for j in range(J) if j not in inside]
        start = J
        for name, count in self._groups:
            result.append(Departure(name, tuple(range(start, start := start + count))))
        return tuple(result)

    @property
    def directions(self) -> int:
        """Number of tangents beside those along the state."""
        return len(self.library) + sum(count for _, count in self._groups)

    @cached_property
    def _modulated(self) -> list[int]:
        """Terms whose coefficients may vary in x: the selected ones and transport."""
        transport = [j for j, name in enumerate(self.library.names) if name == "u_x"]
        return sorted({*np.flatnonzero(self.xi).tolist(), *transport})

    @cached_property
    def _powers_of_laplacian(self) -> list[int]:
        linear = (j for j in np.flatnonzero(self.xi).tolist() if is_linear(self.library[j]))
        return [j for j in linear if self.library[j].order]

    @cached_property
    def _groups(self) -> list[tuple[str, int]]:
        """Names and numbers of columns of what is no term of the library, in the order of the rows."""
        names = self.library.names
        return [
            *((f"{names[j]} with a coefficient that varies in x", 2 * _WAVES) for j in self._modulated),
            *(
                (f"{names[j]} with a coefficient that varies in t", _DEGREES)
                for j in np.flatnonzero(self.xi).tolist()
            ),
            ("a forcing f(x)", 2 * _FORCED_WAVES),
            ("a forcing f(t)", _FORCED_DEGREES),
            ("a forcing f(x, t)", 2 * _WAVES * (1 + _FORCED_DEGREES)),
            *((f"a fractional power in place of {names[j]}", 1) for j in self._powers_of_laplacian),
            ("|D| u", 1),
            ("H u_xx", 1),
            ("a hidden component", len(_FADING)),
            ("u_xxt", 1),
            ("u_tt", 1),
        ]

    def states(
        self, start: Complex[np.ndarray, "rows modes"], step: float, steps: int
    ) -> Iterator[Complex[np.ndarray, "rows modes"]]:
        """The rows at the start and after every step; the last are tangents along the departures."""
        for v in super().states(start, step, steps):
            yield v
            self.memory.advance(v[0], step, self._rates)

    @cached_property
    def _rates(self) -> np.ndarray:
        return np.array(_FADING) / (self.ends[1] - self.ends[0])

    @cached_property
    def _waves(self) -> np.ndarray:
        """cos x, sin x, cos 2 x, ... at the points of the grid."""
        angles = 2 * np.pi * np.outer(np.arange(1, _FORCED_WAVES + 1), np.arange(self.grid.points))
        angles /= self.grid.points
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).reshape(-1, self.grid.points)

    @cached_property
    def _forced(self) -> np.ndarray:
        return np.fft.rfft(self._waves, axis=1)

    @cached_property
    def _multipliers(self) -> np.ndarray:
        """Of the fractional powers, of |D| and of H D_xx."""
        k = wavenumbers(self.grid.points, self.grid.length, odd=False)
        log = np.log(np.where(k > 0, k, 1.0))
        powers = [log * self._symbols[j] for j in self._powers_of_laplacian]
        return np.array([*powers, -k, 1j * k * k]) * self._kept

    def _sources(
        self, state: np.ndarray, powers: dict[int, np.ndarray], rate: np.ndarray, time: float
    ) -> np.ndarray:
        terms = super()._sources(state, powers, rate, time)
        return np.concatenate(
            [
                terms,
                self._varying(terms, time),
                self._forcing(state, time),
                self._multipliers * state,
                self._remembered(state, time),
                self._twice_differentiated(state, rate),
            ]
        )

    def _polynomials(self, time: float, degree: int) -> np.ndarray:
        """Legendre polynomials of time, from -1 to 1 over the record."""
        low, high = self.ends
        at = 2 * (self.begin + time * self.step - low) / (high - low) - 1
        return legendre.legvander(np.array([at]), degree)[0]

    def _varying(self, terms: np.ndarray, time: float) -> np.ndarray:
        values = np.fft.irfft(terms[self._modulated], n=self.grid.points, axis=1)
        along = np.fft.rfft(values[:, None] * self._waves[: 2 * _WAVES], axis=2)
        drifting = self._polynomials(time, _DEGREES)[1:, None] * terms[np.flatnonzero(self.xi)][:, None]
        return np.concatenate([each.reshape(-1, terms.shape[1]) for each in (along, drifting)])

    def _forcing(self, state: np.ndarray, time: float) -> np.ndarray:
        degrees = self._polynomials(time, _FORCED_DEGREES)
        uniform = np.zeros((_FORCED_DEGREES, state.size), dtype=complex)
        uniform[:, 0] = degrees[1:] * self.grid.points
        both = degrees[:, None, None] * self._forced[: 2 * _WAVES]
        return np.concatenate([self._forced, uniform, both.reshape(-1, state.size)])

    def _remembered(self, state: np.ndarray, time: float) -> np.ndarray:
        part = (time - self.memory.steps) * self.step
        faded = self.memory.faded
        return faded + part * (state - self._rates[:, None] * faded)

    def _twice_differentiated(self, state: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """D_xx N(u) and N'(u) N(u)."""
        u, along = np.fft.irfft(np.stack([state, rate]), n=self.grid.points, axis=1)
        accelerated = self.multiplier * rate
        for j in (j for members in self._products.values() for j in members):
            slope = self._weight(j) * self._slopes[j](u) * along
            accelerated = accelerated + self._symbols[j] / self.library[j].scale * np.fft.rfft(slope)
        k = wavenumbers(self.grid.points, self.grid.length, odd=False)
        return np.stack([-(k**2) * rate, accelerated])
