"""Systems on periodic axes: solutions against those of the problems' own solver, tangents by differences."""

import dataclasses

import numpy as np
import pytest
import scipy.linalg

from fts.equations.equation import Equation
from fts.equations.terms import Library, parse_term
from fts.problems.pseudospectral import Waves, solve_system
from fts.problems.systems import system_problem
from fts.trajectory.dynamics import Known, NoFlow, PeriodicBox, Phi, SystemFlow, SystemTerms
from fts.trajectory.integration import Unbounded

RING = PeriodicBox((0.0,), (2 * np.pi,), (32,))
SQUARE = PeriodicBox((0.0, 1.0), (2.0, 3.0), (18, 16))


def _system(texts: dict[str, str], inputs: tuple[str, ...] = ()) -> tuple[SystemTerms, np.ndarray]:
    equations = [Equation.parse(text, (*texts, *inputs)) for text in texts.values()]
    targets = tuple(parse_term(equation.target, tuple(texts)) for equation in equations)
    members = tuple(k for k, equation in enumerate(equations) for _ in equation.terms)
    system = SystemTerms(targets, members, tuple(term for e in equations for term in e.terms))
    return system, np.concatenate([equation.coefficients for equation in equations])


def _known(box: PeriodicBox, duration: float, steps: int) -> Known:
    grid = np.meshgrid(*box.axes, indexing="ij", sparse=True)
    return Known(dict(zip("xyz", grid, strict=False)), half_step=duration / steps / 2)


@pytest.mark.parametrize("name", ["fitzhugh_nagumo", "keller_segel", "sine_gordon", "bbm", "forced_burgers"])
def test_solutions_are_those_of_the_problems_own_solver(name: str) -> None:
    whole, frames = system_problem(name), 5
    domain = dataclasses.replace(whole.domain, t1=0.1 * whole.domain.t1)
    problem = dataclasses.replace(whole, domain=domain, shape=(96, frames))
    trajectory = solve_system(problem, np.random.default_rng(3))
    assert problem.start is not None
    drawn = problem.start(Waves(problem.axes, domain.extents[:-1], np.random.default_rng(3)))
    system, xi = _system(dict(problem.truth))
    box = PeriodicBox(domain.low, domain.extents[:-1], problem.shape[:-1])
    start = box.to_modes(np.array([drawn[row] for row in system.rows]))[None]
    known = _known(box, domain.extents[-1], 32)
    *_, end = SystemFlow(system, xi, box).states(start, known, 32)
    for row, values in zip(system.rows, box.to_values(end[0]), strict=True):
        if row in trajectory.values:
            expected = trajectory.values[row][..., -1]
            assert np.abs(values - expected).max() < 1e-6 * expected.std()


def test_functions_of_matrices_are_those_of_an_extended_exponential(rng: np.random.Generator) -> None:
    for size in (0.1, 3.0, 60.0):
        matrix = size * (rng.standard_normal((2, 2)) - 1.5 * np.eye(2))
        whole, half = Phi.of(matrix[:, :, None].astype(complex))
        for part, scale in ((whole, 1.0), (half, 0.5)):
            blocks = np.kron(np.eye(4, k=1), np.eye(2))
            blocks[:2, :2] = scale * matrix
            expected = scipy.linalg.expm(blocks)[:2]
            for k in range(4):
                assert np.allclose(
                    part.phi[k][:, :, 0], expected[:, 2 * k : 2 * k + 2], rtol=1e-9, atol=1e-12
                )


def test_waves_are_read_anywhere(rng: np.random.Generator) -> None:
    x = rng.uniform((0, 1), (2, 4), (9, 2))
    numbers = [(0, 0), (1, 0), (0, 2), (3, 1), (-2, 1)]
    modes = SQUARE.waves(numbers).reshape(9, -1)
    phases = 2 * np.pi * (x - SQUARE.low) / SQUARE.lengths @ np.array(numbers).T
    expected = [np.ones(9), *(f(phases[:, i]) for i in range(1, 5) for f in (np.cos, np.sin))]
    assert (SQUARE.rows(x) @ modes.T).real == pytest.approx(np.array(expected).T, abs=1e-12)
    values = SQUARE.to_values(SQUARE.waves(numbers))
    assert np.allclose(SQUARE.to_modes(values), SQUARE.waves(numbers), atol=1e-9)


@pytest.mark.parametrize(
    ("box", "texts"),
    [
        (RING, {"u": "u_t = 0.3*u_xx - u*u_x - 0.4*v*u_x + sin(x)*cos(t)", "v": "v_t = u^2 - v + 0.2*v_xx"}),
        (RING, {"u": "u_tt = u_xx - 0.5*sin(u) - 0.3*u_t + 0.1*u_xxt"}),
        (RING, {"u": "u_t = -u_x - u*u_x + 0.3*u_xxt"}),
        (SQUARE, {"u": "u_t = -0.5*u_x + 0.1*u_xx + 0.2*u_yy - u*u_y"}),
    ],
)
def test_tangents_are_those_of_differences(
    box: PeriodicBox, texts: dict[str, str], rng: np.random.Generator
) -> None:
    system, xi = _system(texts)
    numbers = [(0,) * len(box.points), (*(0,) * (len(box.points) - 1), 1), (1,) * len(box.points)]
    unit = box.waves(numbers)
    count, rows = len(unit), len(system.rows)
    amplitudes = 0.5 * rng.standard_normal((rows, count))
    known = _known(box, 0.5, 24)

    def end(a: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        start = np.tensordot(a, unit, 1)[None]
        *_, last = SystemFlow(system, coefficients, box).states(start, known, 24)
        return last[0]

    start = np.zeros((1 + rows * count + len(system), rows, *box.shape), dtype=complex)
    start[0] = np.tensordot(amplitudes, unit, 1)
    for row in range(rows):
        start[1 + row * count : 1 + (row + 1) * count, row] = unit
    *_, last = SystemFlow(system, xi, box).states(start, known, 24)
    h = 1e-5
    scale = np.abs(last).max()
    for i in range(rows * count):
        moved = h * np.eye(rows * count)[i].reshape(rows, count)
        difference = (end(amplitudes + moved, xi) - end(amplitudes - moved, xi)) / (2 * h)
        assert np.abs(last[1 + i] - difference).max() < 1e-7 * scale
    for j in range(len(system)):
        moved = h * np.eye(len(system))[j]
        difference = (end(amplitudes, xi + moved) - end(amplitudes, xi - moved)) / (2 * h)
        # Along linear terms the step itself differs in its fourth order.
        assert np.abs(last[1 + rows * count + j] - difference).max() < 1e-4 * scale


def test_what_is_not_integrated_is_refused() -> None:
    targets = (parse_term("u_t"),)
    for text in ("u_tt", "D_t(u^2)", "u*u_t"):
        with pytest.raises(NoFlow, match="drop it"):
            SystemTerms(targets, (0,), Library.parse([text]).terms)
    assert SystemTerms((parse_term("u_tt"),), (0, 0), Library.parse(["u_t", "u_xt"]).terms).rows == (
        "u",
        "u_t",
    )


def test_growth_without_bound_is_said() -> None:
    system, xi = _system({"u": "u_t = 50*u^3"})
    start = RING.waves([(0,), (1,)])[1:2][None] * 5
    with pytest.raises(Unbounded, match="cannot be integrated"), np.errstate(all="ignore"):
        list(SystemFlow(system, xi, RING).states(start, _known(RING, 1.0, 64), 64))
    assert SystemFlow(system, xi, RING).growth() == 0.0
    assert dataclasses.replace(SystemFlow(*_system({"u": "u_t = -u_xx"}), RING)).growth() == 100.0
