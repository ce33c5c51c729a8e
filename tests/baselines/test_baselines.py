"""Methods behind one signature; strong forms from analytic derivatives; PySINDy's optimizers and library."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fts.baselines import pysindy as pysindy_peer
from fts.baselines import regressions
from fts.baselines.crossed import CrossedParams
from fts.baselines.pysindy import PySINDyParams
from fts.baselines.registry import register
from fts.baselines.regressions import STRONG_STLSQ, STRONG_STRIDGE, PDEFindParams, WSINDyParams
from fts.baselines.spectral import SPECTRAL
from fts.baselines.stridge import STRidgeParams, StrongRegressionParams, WeakRegressionParams
from fts.domain import Domain
from fts.equations.terms import Library
from fts.fields.frozen import CallableField, FrozenField, Provenance
from fts.fields.network import NetworkFeatures, SplineCoefficients
from fts.methods import METHODS, method
from fts.observations import Observations
from fts.params.paper import PAPER
from fts.params.types import FieldParams, FreezeThenSelectParams, WeakParams
from fts.selection.instrumental import TWO_FIELDS
from fts.selection.selection import Selection
from fts.svws import rule

LIBRARY = Library.parse(["1", "u", "u^2", "u*u_x", "u_x", "u_xx"])
PARAMS = PAPER["ks"].svws
WEAK = WeakParams(half_widths=(1.0, 0.4), patches=(10, 8), nodes=(30, 20), power=8)
DOMAIN = Domain((0.0,), (2 * np.pi,), 0.0, 3.0, (True,))
# u_t = -2 u_x for each of the three waves.
WAVES = CallableField(
    lambda x, t: np.sin(x - 2 * t) + 0.5 * np.cos(2 * (x - 2 * t)) + 0.2 * np.sin(3 * (x - 2 * t)), DOMAIN
)


@pytest.fixture(scope="module")
def frozen() -> FrozenField:
    """A small network field with random weights; its derivatives are what is tested."""
    rng = np.random.default_rng(0)
    sizes = [8, 10, 4]
    weights = tuple(rng.standard_normal((a, b)) / np.sqrt(a) for a, b in pairwise(sizes))
    biases = tuple(rng.standard_normal(b) for b in sizes[1:])
    space = NetworkFeatures(rng.standard_normal((4, 1)), 1.0, weights, biases)
    time = SplineCoefficients(rng.standard_normal((3, 8)), np.zeros(8), (0.0, 3.0))
    return FrozenField(space, time, DOMAIN, Provenance())


def test_the_strong_system_is_made_of_derivatives(frozen):
    points = regressions.interior(frozen, 50, np.random.default_rng(1))
    A, b = regressions.strong_system(frozen, LIBRARY, points)
    h = 1e-4
    dx, dt = np.array([h, 0]), np.array([0, h])
    u = frozen(points)
    u_x = (frozen(points + dx) - frozen(points - dx)) / (2 * h)
    u_xx = (frozen(points + dx) - 2 * u + frozen(points - dx)) / h**2
    expected = np.column_stack([np.ones(50), u, u**2, u * u_x, u_x, u_xx])
    np.testing.assert_allclose(A, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, (frozen(points + dt) - frozen(points - dt)) / (2 * h), rtol=1e-4, atol=1e-6)
    assert points[:, 0].min() > 0.1
    assert points[:, 1].max() < 2.95


def observed(noise: float = 0.0) -> Observations:
    """The waves at 40 sensors and 60 frames."""
    x, t = np.arange(40) * 2 * np.pi / 40, np.linspace(0.0, 3.0, 60)
    y = WAVES.on_grid(x, t) + noise * np.random.default_rng(7).standard_normal((40, 60))
    return Observations(np.repeat(x, 60)[:, None], np.tile(t, 40), y.ravel(), DOMAIN)


KERNEL = FieldParams("kernel")
STRONG = StrongRegressionParams((48, 40), 0.05, STRidgeParams(2.0, 1e-5, 20, 1e-8))
WEAKLY = WeakRegressionParams(WEAK, 0.05, STRidgeParams(0.2, 1e-5, 20, 1e-8))
SETTINGS = {
    "freeze, then select": FreezeThenSelectParams(KERNEL, WEAK, replace(PARAMS, lam0=0.05), "preferred"),
    "freeze, then compare": FreezeThenSelectParams(KERNEL, WEAK, replace(PARAMS, lam0=0.05), "ridge"),
    "two fields": TWO_FIELDS,
    "strong STLSQ": replace(STRONG_STLSQ, field=KERNEL, points=400),
    "strong STRidge": replace(STRONG_STRIDGE, field=KERNEL, points=400),
    "PySINDy weak": PySINDyParams(KERNEL, WEAK, grid=(96, 64), threshold=0.1, ridge=1e-4),
    "PDE-FIND": PDEFindParams(SPECTRAL, STRONG),
    "WSINDy": WSINDyParams(SPECTRAL, WEAKLY),
    "crossed": CrossedParams(SPECTRAL, None, "weak STRidge", WEAKLY),
}
# Minutes rather than seconds: test_contract has them with tiny networks, and each has tests of its own.
TRAINED = {"DeepMoD", "DL-PDE", "PINN-SR", "Weak-PDE-LEARN"}


def solve(name: str, library: Library = LIBRARY, observations: Observations | None = None) -> Selection:
    if name == "PySINDy weak":
        pytest.importorskip("pysindy", reason="PySINDy is not installed (extra `peers`)")
    samples = observed() if observations is None else observations
    return method(name)(samples, library, SETTINGS[name], np.random.default_rng(2))


@pytest.mark.parametrize("name", SETTINGS)
def test_every_method_finds_the_equation_of_the_waves_and_is_deterministic(name):
    selection = solve(name)
    assert selection.support == ("u_x",)
    # A ridge of 1e-3 attenuates the spectral reconstruction.
    spectral = name in ("PDE-FIND", "WSINDy", "crossed")
    assert selection.coefficients["u_x"] == pytest.approx(-2, abs=0.02 if spectral else 2e-3)
    assert selection.field is not None
    np.testing.assert_array_equal(selection.xi, solve(name).xi)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_order_of_the_library_does_not_matter(name):
    turned = Library(tuple(reversed(LIBRARY.terms)))
    assert solve(name, turned, observed(0.02)).coefficients == pytest.approx(
        solve(name, LIBRARY, observed(0.02)).coefficients, rel=1e-6
    )


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("freeze, then select", replace(SETTINGS["freeze, then select"], svws=replace(PARAMS, lam0=100.0))),
        ("strong STLSQ", replace(SETTINGS["strong STLSQ"], threshold=2.0)),
    ],
)
def test_nothing_above_the_threshold_is_an_empty_equation(name, params):
    selection = method(name)(observed(), LIBRARY, params, np.random.default_rng(2))
    assert selection.support == ()
    assert str(selection.equation) == "u_t = 0"


def test_no_method_goes_untested():
    assert set(METHODS) - set(SETTINGS) <= TRAINED


TOY = '''
"""The mean of u_t, whatever the library."""
from dataclasses import dataclass
import numpy as np
from fts.baselines.registry import register
from fts.selection.selection import Selection

@dataclass(frozen=True)
class ToyParams:
    factor: float

TOY = {"kdv": ToyParams(2.0)}

@register("toy", ToyParams, TOY)
def toy(observations, library, params, rng):
    return Selection(library, np.full(len(library), params.factor * observations.y.mean()), "toy")
'''
USE = """
import sys
from test_baselines import LIBRARY, SETTINGS, observed
import numpy as np
from fts.lab.studies import plans
from fts.methods import METHODS, configurations, method
assert "toy" in METHODS and "torch" not in sys.modules
found = method("toy")(observed(), LIBRARY, configurations("toy")["kdv"], np.random.default_rng(0))
assert found.method == "toy" and len(found.support) == len(LIBRARY)
assert {(task.problem, task.protocol) for task in plans.baselines((1,)) if task.method == "toy"} == {
    ("kdv", "S20"), ("kdv", "T20")
}
try:
    method("toy")(observed(), LIBRARY, SETTINGS["two fields"], np.random.default_rng(0))
except ValueError as error:
    assert "'toy' takes ToyParams, not TwoFieldsParams" in str(error)
else:
    raise AssertionError("settings of another method were taken")
"""


def test_a_method_is_added_by_one_file(tmp_path, root):
    copy = shutil.copytree(root / "fts", tmp_path / "fts", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "baselines" / "toy.py").write_text(TOY)
    path = os.pathsep.join([str(tmp_path), str(root / "tests" / "baselines")])
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env=os.environ | {"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not (root / "fts" / "baselines" / "toy.py").exists()


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="'WSINDy' is registered already"):
        register("WSINDy", WSINDyParams)(solve)


def test_an_unknown_method_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="known are freeze, then select"):
        method("magic")


def test_strong_selectors_see_only_what_the_field_says(frozen):
    # A random network obeys no equation; doubling it doubles u_t and every linear column, not u^2 and u u_x.
    linear = Library.parse(["u", "u_x", "u_xx"])
    twice = replace(frozen, time=replace(frozen.time, C=2 * frozen.time.C), space=_background_doubled(frozen))
    first, two = (
        regressions.select_stlsq(field, linear, SETTINGS["strong STLSQ"], np.random.default_rng(2))
        for field in (frozen, twice)
    )
    assert first.support
    assert two.coefficients == pytest.approx(first.coefficients)


def _background_doubled(field: FrozenField) -> NetworkFeatures:
    """The background's column of the last layer doubled; C takes care of the others."""
    space = field.space
    factor = np.array([2.0, *np.ones(space.rank)])
    last = space.weights[-1] * factor, space.biases[-1] * factor
    return replace(space, weights=(*space.weights[:-1], last[0]), biases=(*space.biases[:-1], last[1]))


def test_pysindys_optimizers_select_on_our_systems():
    pysindy = pytest.importorskip("pysindy", reason="PySINDy is not installed (extra `peers`)")
    system = rule.build(WAVES, LIBRARY, WEAK, PARAMS)[0]
    for optimizer in (pysindy.STLSQ(threshold=0.2), pysindy.SSR(criteria="model_residual", kappa=1e-3)):
        selection = pysindy_peer.select_with(system.A, system.b, LIBRARY, optimizer)
        assert selection.coefficients["u_x"] == pytest.approx(-2, abs=1e-2)
        assert selection.method == type(optimizer).__name__


def test_pysindys_weak_library_on_a_field_agrees_with_ours():
    pysindy = pytest.importorskip("pysindy", reason="PySINDy is not installed (extra `peers`)")
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    A, b = pysindy_peer.pysindy_weak_system(WAVES, LIBRARY, WEAK, (128, 96), seed=3)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    again, _ = pysindy_peer.pysindy_weak_system(WAVES, LIBRARY, WEAK, (128, 96), seed=3)
    np.testing.assert_array_equal(A, again)
    selection = pysindy_peer.select_with(A, b, LIBRARY, pysindy.STLSQ(threshold=0.2))
    assert selection.support == ("u_x",)
    assert selection.coefficients["u_x"] == pytest.approx(-2, abs=1e-3)
    with pytest.raises(ValueError, match="no column for"):
        pysindy_peer.pysindy_weak_system(WAVES, Library.parse(["u", "D_xx(u^2)"]), WEAK, (64, 48), seed=3)
