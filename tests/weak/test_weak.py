"""Weak systems: integration by parts against an independent integrator, convergence, exact solutions."""

import inspect
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import factorial

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from scipy.integrate import cubature, quad
from scipy.special import beta

from fts.domain import Domain
from fts.equations.algebra import scale
from fts.equations.equation import Equation, strong
from fts.equations.terms import Library, Term, expand, parse_term
from fts.fields.frozen import CallableField, TabulatedField
from fts.fields.system import FieldSystem, values_on_grid
from fts.fields.varying import SplineBasis
from fts.params.paper import PAPER
from fts.params.types import Rule, WeakParams
from fts.weak import assembly, test_functions
from fts.weak.assembly import bump_norm, entry_bounds

LIBRARY = Library.parse(["1", "u", "u^2", "u^3", "u*u_x", "u_xx", "u_xxx", "u_xxxx"])
LINE = Domain((0.0,), (2.0,), 0.0, 1.0, (False,))
FINE = WeakParams(half_widths=(0.7, 0.3), patches=(3, 2), nodes=(72, 64), power=8)
ONE = WeakParams(half_widths=(0.6, 0.4), patches=(1, 1), nodes=(40, 40), power=8)
AXES = sympy.symbols("x y z t", real=True)
X, Y, Z, T = AXES


def box(d: int) -> Domain:
    return Domain((0.0,) * d, (2.0,) * d, 0.0, 1.0, (False,) * d)


def field_of(expression: sympy.Expr, d: int) -> CallableField:
    """An analytic field on the box of d axes."""
    variables = (*AXES[:d], T)
    function = sympy.lambdify(variables, expression, "numpy")
    return CallableField(lambda *grid: function(*grid) + 0.0 * sum(grid), box(d))


@cache
def partial_of(expression: sympy.Expr, d: int, alpha: tuple[int, int, int]) -> Callable[..., np.ndarray]:
    derivative = sympy.diff(expression, X, alpha[0], Y, alpha[1], Z, alpha[2])
    return sympy.lambdify((*AXES[:d], T), derivative, "numpy")


def entry_by_cubature(term: Term, expression: sympy.Expr, d: int, params: WeakParams) -> float:
    """int Theta(u) psi over the one central patch, from the strong form: no derivative touches psi."""
    low = np.array([*(1.0 - h for h in params.half_widths[:-1]), 0.5 - params.half_widths[-1]])
    high = np.array([*(1.0 + h for h in params.half_widths[:-1]), 0.5 + params.half_widths[-1]])

    def integrand(points: np.ndarray) -> np.ndarray:
        columns = tuple(points.T)
        theta = strong(term, lambda alpha: partial_of(expression, d, alpha)(*columns) + 0.0 * columns[0])
        s = (points - (low + high) / 2) * 2 / (high - low)
        return theta * np.prod((1 - s**2) ** params.power, axis=1)

    result = cubature(integrand, low, high, rule="gk21", rtol=1e-8 if d < 3 else 1e-6, atol=1e-10)
    assert result.status == "converged"
    return float(result.estimate)


FIELDS = {
    1: sympy.sin(2 * X + T) + X * sympy.cos(T) / 2 + 2,
    2: sympy.sin(2 * X + T) * sympy.cos(Y) + Y * sympy.exp(-T) / 2 + 2,
    3: sympy.sin(X + T) * sympy.cos(Y) + Z * sympy.sin(Y + Z) / 2 + 2,
}
TERMS = {
    1: [*LIBRARY.names, "u_x", "u^2*u_x", "D_xx(u^2)", "D_xx(u^1.73)", "sin(u)*u_x", "exp(u)", "D_x(u^.5)"],
    2: ["1", "u", "u^2", "u_x", "u_y", "u_xx", "u_yy", "u_xy", "u*u_y", "D_xxy(u^1.5)", "D_yy(cos(u))"],
    3: ["u", "u_z", "u_xx", "u_zz", "u*u_z", "u_xyz", "D_yz(u^2)", "D_zz(u^1.73)"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("d", "nodes", "rule", "tolerance"),
    [
        (1, 96, "midpoint", 1e-7),
        (2, 48, "midpoint", 1e-6),
        (3, 24, "midpoint", 1e-5),
        (1, 20, "gauss", 1e-10),
        (2, 20, "gauss", 1e-10),
        (3, 16, "gauss", 1e-10),
    ],
)
def test_entries_agree_with_an_independent_integrator(
    d: int, nodes: int, rule: Rule, tolerance: float
) -> None:
    """Every term, every dimension: weak column = integral of the strong term times psi."""
    params = WeakParams((0.6,) * d + (0.4,), (1,) * (d + 1), (nodes,) * (d + 1), 8, rule)
    library = Library.parse(TERMS[d])
    system = assembly.assemble(field_of(FIELDS[d], d), library, params, np.full(d + 1, 0.5))
    for j, term in enumerate(library):
        exact = entry_by_cubature(term, FIELDS[d], d, params)
        scale = bump_norm(params, (*term.alpha[:d], 0))  # cancellation: psi' carries signs
        assert abs(system.A[0, j] - exact) < tolerance * scale, str(term)
    derivative = sympy.diff(FIELDS[d], T)
    exact = entry_by_cubature(parse_term("u"), derivative, d, params)
    assert abs(system.b[0] - exact) < tolerance * bump_norm(params, (0,) * d + (1,))


@pytest.mark.parametrize("p", [2, 4, 8])
def test_derivatives_and_ends_of_the_test_function(p: int) -> None:
    s = np.linspace(-1, 1, 41)[1:-1]
    polynomial = Polynomial([1, 0, -1]) ** p
    for order in range(p + 1):
        exact = polynomial.deriv(order)(s) if order else polynomial(s)
        np.testing.assert_allclose(test_functions.bump(s, p, order), exact, atol=1e-12 * np.abs(exact).max())
    ends = np.array([-1.0, 1.0, -1.5, 3.0])
    assert all((test_functions.bump(ends, p, order) == 0).all() for order in range(p))
    # The last derivative of (1 - s)^p (1 + s)^p that vanishes does so like p! 2^p gap, and what follows is
    # smaller by p (p + 1)/4 gap.
    gap = 2.0**-30
    near_ends = test_functions.bump(np.array([gap - 1, 1 - gap]), p, p - 1)
    slope = factorial(p) * 2.0**p
    np.testing.assert_allclose(near_ends, [slope * gap, -slope * gap], rtol=p**2 * gap)


def test_the_constant_column_is_the_integral_of_the_test_function() -> None:
    system = assembly.assemble(field_of(FIELDS[1], 1), LIBRARY, ONE, np.array([0.5, 0.5]))
    exact = 0.6 * 0.4 * beta(0.5, 9) ** 2
    np.testing.assert_allclose(system.A[:, 0], exact, rtol=1e-9)


@pytest.mark.parametrize(("p", "order", "expected"), [(3, 2, 2), (4, 1, 4), (4, 2, 4), (4, 0, 6), (5, 2, 4)])
def test_quadrature_converges_at_the_euler_maclaurin_order(p: int, order: int, expected: int) -> None:
    """psi^(k) vanishes to order m = p - k at the ends: the error falls like n^-(m+1), n^-(m+2) for even m."""
    by_parts, _ = quad(lambda s: np.exp(s) * (1 - s**2) ** p, -1, 1, epsabs=1e-14, epsrel=1e-13)
    exact = (-1) ** order * by_parts * 0.6 ** (1 - order)

    def error(n: int) -> float:
        return abs(test_functions.weights(0.6, n, p, order) @ np.exp(test_functions.quadrature(n)[0]) - exact)

    coarse, fine = 16, 32
    assert np.log2(error(coarse) / error(fine)) == pytest.approx(expected, abs=0.25)


@pytest.mark.parametrize("p", [2, 4, 8])
def test_gauss_nodes_integrate_polynomials_exactly(p: int) -> None:
    """n nodes take degree 2 n - 1: the test function's 2 p and as much of the field as is left."""
    nodes = p + 3
    field = Polynomial([0.3, -1.0, 0.5, 2.0, -0.7, 1.1])
    integral = (field * Polynomial([1, 0, -1]) ** p).integ()
    exact = 0.6 * (integral(1) - integral(-1))
    s = test_functions.quadrature(nodes, "gauss")[0]
    assert test_functions.weights(0.6, nodes, p, 0, "gauss") @ field(s) == pytest.approx(exact, rel=1e-13)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown quadrature rule 'simpson': choose 'midpoint'"):
        inspect.unwrap(test_functions.quadrature)(8, "simpson")  # past the type checker of the tests


def test_nodes_refine_every_column_of_a_system() -> None:
    field = field_of(FIELDS[1], 1)
    reference = assembly.assemble(field, LIBRARY, replace(ONE, nodes=(160, 160)), np.array([0.5, 0.5]))
    scales = [bump_norm(ONE, (*term.alpha[:1], 0)) for term in LIBRARY]
    errors = []
    for n in (20, 40, 80):
        system = assembly.assemble(field, LIBRARY, replace(ONE, nodes=(n, n)), np.array([0.5, 0.5]))
        errors.append((np.abs(system.A - reference.A)[0] / scales).max())
    assert errors[0] / errors[1] > 2**4
    assert errors[1] / errors[2] > 2**4
    assert errors[2] < 1e-7


def residual(system: assembly.WeakSystem, xi: np.ndarray, params: WeakParams, largest: float) -> float:
    """Largest |A xi - b| in units of what the integrals are made of: sum_j |xi_j| ||D psi|| ||u||."""
    d = len(params.nodes) - 1
    norms = np.array([bump_norm(params, (*term.alpha[:d], 0)) for term in system.library])
    volume = np.prod([2 * h for h in params.half_widths])
    return float(np.abs(system.A @ xi - system.b).max() / (np.abs(xi) @ norms * largest * np.sqrt(volume)))


coefficient = st.floats(-2, 2).filter(lambda value: abs(value) > 0.05)


@settings(max_examples=25, deadline=None)
@given(st.tuples(*[coefficient] * 5), st.integers(0, 2**31))
def test_linear_equations_hold_on_their_exact_solutions(xi: tuple[float, ...], seed: int) -> None:
    """u = sum_k c_k exp(i k x + sigma(k) t), sigma = sum_j xi_j (i k)^j solves u_t = sum_j xi_j d^j u."""
    rng = np.random.default_rng(seed)
    k = rng.uniform(0.3, 1.5, 3)
    sigma = sum(value * (1j * k) ** order for order, value in enumerate(xi))
    amplitude = rng.normal(size=3) + 1j * rng.normal(size=3)

    def u(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return sum((a * np.exp(1j * q * x + s * t)).real for a, q, s in zip(amplitude, k, sigma, strict=True))

    library = Library.parse(["u", "u_x", "u_xx", "u_xxx", "u_xxxx"])
    system = assembly.assemble(CallableField(u, LINE), library, FINE, rng.random(2))
    largest = np.abs(CallableField(u, LINE).on_grid(np.linspace(0, 2, 50), np.linspace(0, 1, 50))).max()
    assert residual(system, np.array(xi), FINE, largest) < 1e-7


@settings(max_examples=25, deadline=None)
@given(coefficient, st.floats(0.3, 2), st.floats(0.3, 2))
def test_kdv_solitons_of_any_coefficients_have_no_residual(a: float, b: float, c: float) -> None:
    """u = (3c/a) sech^2(sqrt(c/b)/2 (x - ct)) solves u_t = -a u u_x - b u_xxx."""

    def u(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return 3 * c / a / np.cosh(np.sqrt(c / b) / 2 * (x - 1 - c * t)) ** 2

    system = assembly.assemble(CallableField(u, LINE), LIBRARY, FINE, np.array([0.2, 0.7]))
    truth = Equation.parse(f"u_t = {-a!r} u*u_x - {b!r} u_xxx").on(LIBRARY)
    assert residual(system, truth, FINE, 3 * c / abs(a) * max(1, 3 * c / abs(a))) < 1e-7


@settings(max_examples=8, deadline=None)
@given(st.tuples(*[coefficient] * 4), st.integers(0, 2**31))
def test_plane_waves_in_three_dimensions_have_no_residual(xi: tuple[float, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = rng.uniform(-1, 1, 3)
    sigma = 1j * xi[0] * k[0] - xi[1] * k[1] ** 2 - xi[2] * k[2] ** 2 - xi[3] * k[0] * k[2]
    field = CallableField(
        lambda x, y, z, t: np.exp(1j * (k[0] * x + k[1] * y + k[2] * z) + sigma * t).real, box(3)
    )
    params = WeakParams((0.7, 0.7, 0.7, 0.3), (2, 1, 1, 2), (20, 20, 20, 16), power=6)
    system = assembly.assemble(field, Library.parse(["u_x", "u_yy", "u_zz", "u_xz"]), params, rng.random(4))
    largest = float(np.exp(np.abs(sigma.real)))
    assert residual(system, np.array(xi), params, largest) < 1e-5


def random_field(rng: np.random.Generator, roughness: float = 3.0) -> CallableField:
    k, w = rng.normal(size=(2, 5)) * roughness
    phase, amplitude = rng.uniform(0, 6.28, 5), rng.normal(size=5)

    def u(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return sum(a * np.sin(i * x + j * t + p) for a, i, j, p in zip(amplitude, k, w, phase, strict=True))

    return CallableField(u, LINE)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**31), st.floats(1e-6, 10.0), st.integers(4, 30), st.sampled_from(["midpoint", "gauss"])
)
def test_discrete_cauchy_schwarz_bounds_hold_entry_by_entry(
    seed: int, size: float, nodes: int, rule: Rule
) -> None:
    """The quadrature-weighted bounds hold for the assembled numbers, however coarse the quadrature."""
    rng = np.random.default_rng(seed)
    u, e = random_field(rng), random_field(rng, 8.0)
    v = CallableField(lambda x, t: u.function(x, t) + size * e.function(x, t), LINE)
    library = Library.parse([*LIBRARY.names, "sin(u)", "D_xx(exp(0.2*u))"])
    params = WeakParams((0.4, 0.2), (3, 2), (nodes, nodes), 6, rule)
    phase = rng.random(2)
    a, b = (assembly.assemble(field, library, params, phase) for field in (u, v))
    bounds = entry_bounds(u, v, library, params, phase)
    slack = 1 + 1e-9
    assert (np.abs(a.b - b.b) <= slack * bounds.b).all()
    assert (np.abs(a.A - b.A) <= slack * bounds.A + 1e-14).all()
    assert (bounds.A[:, 0] == 0).all()  # the constant column does not depend on the field


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31))
def test_exact_cauchy_schwarz_bounds_hold(seed: int) -> None:
    """B.1 for the integrals themselves: converged quadrature, its norms from polynomial integration."""
    rng = np.random.default_rng(seed)
    u, v = random_field(rng), random_field(rng)
    params = WeakParams((0.6, 0.4), (1, 1), (120, 120), power=8)
    phase = np.array([0.5, 0.5])
    a, b = (assembly.assemble(field, LIBRARY, params, phase) for field in (u, v))
    x, t = (c + h * test_functions.quadrature(400)[0] for c, h in ((1.0, 0.6), (0.5, 0.4)))
    on_u, on_v = u.on_grid(x, t), v.on_grid(x, t)
    distance = np.sqrt(((on_u - on_v) ** 2).mean() * 4 * 0.6 * 0.4)
    largest = max(np.abs(on_u).max(), np.abs(on_v).max())
    lipschitz = [0, 1, 2 * largest, 3 * largest**2, largest, 1, 1, 1]
    for j, term in enumerate(LIBRARY):
        bound = lipschitz[j] * distance * exact_norm(term.order, 0)
        assert abs(a.A[0, j] - b.A[0, j]) <= bound * (1 + 1e-9), str(term)
    assert abs(a.b[0] - b.b[0]) <= distance * exact_norm(0, 1) * (1 + 1e-9)


def exact_norm(order_x: int, order_t: int) -> float:
    """||d_x^a d_t^b psi|| on the patch with half-widths 0.6 and 0.4, p = 8, by polynomial antiderivatives."""
    total = 1.0
    for h, order in ((0.6, order_x), (0.4, order_t)):
        bump = (Polynomial([1, 0, -1]) ** 8).deriv(order) if order else Polynomial([1, 0, -1]) ** 8
        primitive = (bump**2).integ()
        total *= (primitive(1.0) - primitive(-1.0)) * h ** (1 - 2 * order)
    return float(np.sqrt(total))


def test_the_bounds_are_tight_enough_to_be_useful() -> None:
    """For the worst perturbation, e proportional to D psi, Cauchy-Schwarz is an equality."""
    s = test_functions.quadrature(ONE.nodes[0])[0]
    bump = test_functions.bump(s, 8, 2)
    x = 1.0 + 0.6 * s
    u = CallableField(lambda x, t: np.sin(x) + 0.0 * t, LINE)
    psi = test_functions.bump(test_functions.quadrature(ONE.nodes[1])[0], 8, 0)
    axes = (x, 0.5 + 0.4 * test_functions.quadrature(ONE.nodes[1])[0])

    class Perturbed:
        domain = LINE

        def on_grid(self, *grid: np.ndarray) -> np.ndarray:
            np.testing.assert_allclose(grid[0], axes[0])
            return u.on_grid(*grid) + 1e-3 * np.outer(bump, psi)

    library = Library.parse(["u_xx"])
    phase = np.array([0.5, 0.5])
    change = (
        assembly.assemble(Perturbed(), library, ONE, phase).A - assembly.assemble(u, library, ONE, phase).A
    )
    np.testing.assert_allclose(np.abs(change), entry_bounds(u, Perturbed(), library, ONE, phase).A, rtol=1e-9)


def test_the_phase_shifts_the_grid() -> None:
    """A system at phase f is the system at phase zero of the field moved back by f spacings."""
    params = WeakParams((0.3, 0.2), (5, 4), (20, 16), power=6)
    phase = np.array([0.4, 0.9])
    spacing = (np.array(LINE.extents) - 2 * np.array(params.half_widths)) / params.patches
    field = random_field(np.random.default_rng(0))
    dx, dt = phase * spacing
    moved = CallableField(lambda x, t: field.function(x + dx, t + dt), LINE)
    ours = assembly.assemble(field, LIBRARY, params, phase)
    shifted = assembly.assemble(moved, LIBRARY, params, np.zeros(2))
    np.testing.assert_allclose(ours.A, shifted.A, rtol=1e-9, atol=1e-9 * np.abs(ours.A).max())
    np.testing.assert_allclose(ours.centers - [dx, dt], shifted.centers, atol=1e-12)
    assert (ours.centers - params.half_widths >= 0).all()
    assert (ours.centers + params.half_widths <= LINE.extents).all()


def test_phases_come_from_the_generator() -> None:
    first = test_functions.phases(np.random.default_rng(7), 5, 2)
    assert first.shape == (5, 3)
    np.testing.assert_array_equal(first, test_functions.phases(np.random.default_rng(7), 5, 2))


def test_blocks_of_patches_give_the_same_system(monkeypatch: pytest.MonkeyPatch) -> None:
    params = WeakParams((0.5, 0.4, 0.3), (5, 3, 4), (9, 8, 7), power=4)
    library = Library.parse(["1", "u", "u*u_x", "u_yy", "u_xy"])
    field = field_of(FIELDS[2], 2)
    whole = assembly.assemble(field, library, params, np.array([0.1, 0.5, 0.9]))
    monkeypatch.setattr(assembly, "BLOCK_NODES", 600)
    monkeypatch.setattr(assembly, "CACHE_NODES", 100)
    pieces = assembly.assemble(field, library, params, np.array([0.1, 0.5, 0.9]))
    np.testing.assert_allclose(pieces.A, whole.A, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(pieces.b, whole.b, rtol=1e-12, atol=1e-15)


def test_memory_is_bounded_in_three_dimensions() -> None:
    """27 million nodes, 215 MB of values if held at once; blocks keep the peak below 100 MB."""
    params = WeakParams((0.3, 0.3, 0.3, 0.2), (8, 8, 8, 8), (9, 9, 9, 9), power=4)
    field = CallableField(lambda x, y, z, t: x * y + z * t, box(3))
    tracemalloc.start()
    system = assembly.assemble(field, Library.parse(["u", "u^2", "u_zz"]), params, np.full(4, 0.5))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(system) == 8**4
    assert peak < 100e6


def test_tables_and_functions_give_the_same_system() -> None:
    field = field_of(FIELDS[1], 1)
    axes = (np.linspace(0, 2, 81), np.linspace(0, 1, 41))
    table = TabulatedField(axes, field.on_grid(*axes), LINE)
    params = WeakParams((0.5, 0.3), (4, 3), (30, 30), power=6)
    ours, theirs = (assembly.assemble(each, LIBRARY, params, np.zeros(2)) for each in (field, table))
    np.testing.assert_allclose(theirs.A, ours.A, atol=1e-6 * np.abs(ours.A).max())


@pytest.mark.parametrize(
    ("change", "library", "phase", "reason"),
    [
        ({"power": 4}, LIBRARY, (0.5, 0.5), "must exceed the highest derivative order, 4"),
        ({"power": 1}, Library.parse(["u"]), (0.5, 0.5), "must exceed the highest derivative order, 1"),
        ({"half_widths": (1.0, 0.4)}, LIBRARY, (0.5, 0.5), "0 < 2 h < length"),
        (
            {"half_widths": (0.3, 0.3, 0.3), "patches": (1, 1, 1), "nodes": (9, 9, 9)},
            LIBRARY,
            (0.5, 0.5),
            "1 spatial axes and time",
        ),
        ({"half_widths": (0.3, 0.3, 0.3)}, LIBRARY, (0.5, 0.5), "for each spatial axis and for time"),
        ({"nodes": (1, 9)}, LIBRARY, (0.5, 0.5), "two nodes"),
        ({}, LIBRARY, (0.5, 1.0), r"fractions in \[0, 1\)"),
        ({}, LIBRARY, (0.5, 0.5, 0.5), "give 2 fractions"),
        ({}, Library.parse(["u_y"]), (0.5, 0.5), "u_y needs 2 spatial axes"),
        ({}, Library.parse(["u", "D_xx((u - 9)^0.5)"]), (0.5, 0.5), "needs a positive field"),
    ],
)
def test_refusals(change: dict, library: Library, phase: tuple[float, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        assembly.assemble(field_of(FIELDS[1], 1), library, replace(ONE, **change), np.array(phase))


def test_fields_that_are_not_finite_are_refused() -> None:
    field = CallableField(lambda x, t: np.where(x < 1, x + t, np.nan), LINE)
    with pytest.raises(ValueError, match="not finite"):
        assembly.assemble(field, Library.parse(["u"]), ONE, np.array([0.5, 0.5]))


def test_fields_of_another_shape_or_precision() -> None:
    class Field:
        domain = LINE

        def __init__(self, values: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
            self.values = values

        def on_grid(self, *axes: np.ndarray) -> np.ndarray:
            return self.values(*axes)

    single = Field(lambda x, t: np.add.outer(np.sin(x), t).astype(np.float32))
    assert assembly.assemble(single, LIBRARY, ONE, np.array([0.5, 0.5])).A.dtype == np.float64
    with pytest.raises(ValueError, match="the field has shape"):
        assembly.assemble(Field(lambda x, t: np.add.outer(t, x)[:-1]), LIBRARY, ONE, np.array([0.5, 0.5]))


def test_the_papers_geometry_fits_the_papers_domains() -> None:
    params = PAPER["ks"].weak
    domain = Domain((0.0,), (32 * np.pi,), 0.0, 100.0, (True,))
    field = CallableField(lambda x, t: np.sin(x / 16) * np.cos(t / 50), domain)
    system = assembly.assemble(field, LIBRARY, params, np.array([0.3, 0.8]))
    assert system.A.shape == (300, 8)


class Product:
    """sin(1.3 x - t) + 2 or cos(x) exp(-t/2), with the derivatives a frozen field gives."""

    domain = Domain((0.0,), (6.0,), 0.0, 2.0, (False,))

    def __init__(self, first: bool) -> None:
        self.first = first

    def on_grid(
        self, x: np.ndarray, t: np.ndarray, alpha: tuple[int, ...] = (0,), order: int = 0
    ) -> np.ndarray:
        k = alpha[0]
        if self.first:
            phase = 1.3 * x[:, None] - t + (k - order) * np.pi / 2
            return 1.3**k * np.sin(phase) + 2.0 * (k + order == 0)
        return np.cos(x + k * np.pi / 2)[:, None] * (-0.5) ** order * np.exp(-t / 2)


def test_integration_by_parts_agrees_with_the_strong_form() -> None:
    """Every general term against the quadrature of the term itself, on smooth fields."""
    texts = ["u_x^2", "u*u_xx", "u_xxt", "u_tt", "x*u_x", "sin(3*t)", "D_x(x*u_x)", "u*u_t", "x^2*u_xx"]
    texts += [
        "u^2*u_xx",
        "v*u_x",
        "D_x(u*v_x)",
        "u*v_xx",
        "u_x*v_x",
        "u*v",
        "x*t*u_x",
        "x*D_xx(u^2)",
        "v*v_x",
    ]
    fields = FieldSystem({"u": Product(True), "v": Product(False)})
    library = Library.parse(texts, ("u", "v"))
    geometry = WeakParams((0.8, 0.4), (3, 2), (64, 64), 12, "gauss")
    target = parse_term("v_t", ("u", "v"))
    system = assembly.assemble(fields, library, geometry, np.array([0.3, 0.2]), target)
    nodes = test_functions.patch_nodes(
        test_functions.patch_centers(fields.domain, geometry, system.phase), geometry
    )
    bumps = [test_functions.weights(h, 64, 12, 0, "gauss") for h in geometry.half_widths]
    for term, column in ((target, system.b), *zip(library, system.A.T, strict=True)):
        q = expand(term.orders, scale(term.q, term.scale))
        values = np.broadcast_to(q(values_on_grid(fields, q.symbols, nodes)), (3 * 64, 2 * 64))
        strong = np.einsum("aibj,i,j->ab", values.reshape(3, 64, 2, 64), *bumps).ravel()
        np.testing.assert_allclose(column, strong, rtol=0, atol=1e-12 * np.abs(strong).max())


def test_splines_of_a_varying_coefficient_take_the_derivatives_with_the_test_function() -> None:
    """Rows of terms in c(x) and c(t) against the quadrature of the terms themselves, knots inside."""
    texts = [
        "c(x)*u_xx",
        "D_x(c(x)*u_x)",
        "c(x)*u*u_x",
        "c(x)*u_xxxx",
        "c(t)*u_x",
        "c(x)*u_t",
        "c(x)",
        "u^2*c(t)",
    ]
    library = Library.parse(texts)
    known = {
        "c(x)": SplineBasis("x", 0.0, 6.0, False, 9).single(3),
        "c(t)": SplineBasis("t", 0.0, 3.0, True, 7).single(2),
    }
    fields = FieldSystem({"u": Product(True)}, known)
    geometry = WeakParams((0.8, 0.4), (3, 2), (201, 64), 12, "gauss")
    system = assembly.assemble(fields, library, geometry, np.array([0.3, 0.2]))
    centers = test_functions.patch_centers(fields.domain, geometry, system.phase)
    finer = replace(geometry, nodes=(400, 400))
    nodes = test_functions.patch_nodes(centers, finer)
    bumps = [test_functions.weights(h, 400, 12, 0, "gauss") for h in geometry.half_widths]
    for term, column in zip(library, system.A.T, strict=True):
        q = expand(term.orders, scale(term.q, term.scale))
        values = np.broadcast_to(q(values_on_grid(fields, q.symbols, nodes)), (3 * 400, 2 * 400))
        strong = np.einsum("aibj,i,j->ab", values.reshape(3, 400, 2, 400), *bumps).ravel()
        np.testing.assert_allclose(
            column, strong, rtol=0, atol=1e-4 * np.abs(strong).max(), err_msg=str(term)
        )
    with pytest.raises(ValueError, match="is an unknown function: take"):
        assembly.assemble(fields.fields["u"], library, geometry, np.array([0.3, 0.2]))
