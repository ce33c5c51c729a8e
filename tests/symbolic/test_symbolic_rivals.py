"""The rivals' pairs, fronts and choices; Operon whole, PySR up to its call and after it."""

import ast
import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy

from fts.domain import Domain
from fts.fields.frozen import CallableField
from fts.symbolic import rivals
from fts.symbolic.families import form_of
from fts.symbolic.occupation import spline_basis
from fts.symbolic.rivals import (
    OPERON,
    PYSR,
    TARGET,
    FrontMember,
    Target,
    choose_from,
    front_of,
    operon_front,
    pareto,
    read_function,
    rescaled,
    spline_target,
)

DOMAIN = Domain((0.0,), (1.0,), 0.0, 0.3, (True,))


def heat(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Solves u_t = 0.1 u_xx: there q(u) = 0.1 u + C, whatever the splines."""
    k = 2 * np.pi
    slow, fast = np.exp(-0.1 * k**2 * t), np.exp(-0.4 * k**2 * t)
    return 0.8 + 0.3 * slow * np.sin(k * x) + 0.1 * fast * np.cos(2 * k * x)


def power_target() -> Target:
    """Pairs of 0.1 u^1.73 - 0.06 itself; the rules see u and q alone."""
    made = spline_target(CallableField(heat, DOMAIN), TARGET)
    u = np.linspace(0.35, 1.05, TARGET.pairs)
    return replace(made, u=u, q=0.1 * u**1.73 - 0.06)


def test_the_target_of_a_linear_equation_is_the_line_that_splines_reproduce():
    target = spline_target(CallableField(heat, DOMAIN), TARGET)
    slope, offset = np.polyfit(target.u, target.q, 1)
    assert slope == pytest.approx(0.1, abs=1e-5)
    np.testing.assert_allclose(target.q, slope * target.u + offset, atol=1e-6)
    assert target.u.size == TARGET.pairs == 512
    # Centered: the constant that no derivative sees is the one with mean zero, up to its small penalty.
    assert abs(target.q.mean()) < 1e-4


def test_the_target_does_not_see_a_constant_and_follows_a_change_of_units():
    def faster(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return 10 * heat(x, t)

    first, ten = (spline_target(CallableField(f, DOMAIN), TARGET) for f in (heat, faster))
    np.testing.assert_allclose(ten.u, 10 * first.u)
    np.testing.assert_allclose(ten.q, 10 * first.q, atol=1e-5)


def test_splines_sum_to_one_and_go_on_beyond_their_knots():
    basis = spline_basis(0.2, 1.4, TARGET.basis)
    np.testing.assert_allclose(basis(np.linspace(0.1, 1.5, 50)).sum(axis=1), 1.0, atol=1e-12)
    assert basis(np.array([0.5])).shape == (1, 7)


def test_rivals_texts_become_the_forms_that_score_ours():
    q = read_function("((-0.06205) + (9.09525 * ((0.07395 * u) ^ 1.73206)))")
    form = form_of(q)
    assert form.family == "c*u^p"
    kappa, m = form.parameters
    assert m == 1.73206
    assert kappa == pytest.approx(9.09525 * 0.07395**1.73206)
    assert form_of(read_function("0.0667*u^2 + 0.0387*u - 0.2")).family == "c*u^p + c*u^p"
    # Terms that cancel are no terms; a bracket that no power opens is no sum of powers.
    assert form_of(read_function("2*u + 0.1*u^1.5 + (-2)*u")).family == "c*u^p"
    assert form_of(read_function("(0.3 + 0.5*u)^2.4")) is None
    assert form_of(read_function("0.2")) is None


@pytest.mark.parametrize("text", ["(3.1*u)^(0.2*u)", "u^", "u ^ (1e9)", "", "__import__('os')"])
def test_what_is_no_function_of_u_is_none(text: str):
    assert read_function(text) is None


def test_the_fit_of_scale_and_offset_is_least_squares():
    target = power_target()
    exact = rescaled(read_function("u^1.73"), 1, target)
    assert exact.error < 1e-30
    assert form_of(exact.q).parameters == pytest.approx([0.1, 1.73])
    line = rescaled(read_function("u"), 1, target)
    slope, offset = np.polyfit(target.u, target.q, 1)
    assert form_of(line.q).parameters[0] == pytest.approx(slope)
    assert line.error == pytest.approx(np.mean((slope * target.u + offset - target.q) ** 2))
    assert rescaled(read_function("u^2*0 + 3"), 1, target) is None
    assert rescaled(read_function("(u - 0.7)^0.5"), 3, target) is None  # negative under the root


def test_fronts_and_pysr_rules_against_a_table_worked_out_by_hand():
    q = read_function("u")
    result = [
        FrontMember(q, size, error)
        for size, error in [(3, 1e-2), (1, 1.0), (5, 9e-3), (5, 8.9e-3), (7, 1e-2)]
    ]
    front = pareto(result)
    assert [(entry.size, entry.error) for entry in front] == [(1, 1.0), (3, 1e-2), (5, 8.9e-3)]
    # log(100)/2 for the second, log(1.12)/2 for the third: within 1.5 of the least error both stand.
    assert choose_from(front, "score") == choose_from(front, "best") == front[1]
    closer = (*front[:2], FrontMember(q, 5, 5e-3))
    assert choose_from(closer, "score") == front[1]
    assert choose_from(closer, "best") == closer[2]
    with pytest.raises(ValueError, match="more generations"):
        choose_from((), "best")


def test_the_rules_agree_with_pysr_own_code():
    source = importlib.util.find_spec("pysr")
    if source is None:
        pytest.skip("PySR is not installed")
    text = Path(source.origin).with_name("sr.py").read_text()
    body = ast.unparse(
        next(n for n in ast.parse(text).body if getattr(n, "name", "") == "idx_model_selection")
    )
    assert "1.5 * equations['loss'].min()" in body
    assert "filtered_equations['score'].idxmax()" in body
    assert "equations['score'].idxmax()" in body


def test_a_front_takes_only_functions_with_constant_exponents():
    target = power_target()
    texts = {"(2 * u) ^ (0.3 * u)": 3, "1.5 * u": 1, "(0.2 * u) ^ 1.73": 3, "0.7": 1}
    front = front_of(texts, target)
    assert [entry.size for entry in front] == [1, 3]
    assert form_of(choose_from(front, "score").q).parameters == pytest.approx([0.1, 1.73])


def test_operon_finds_the_power_law_and_repeats_itself():
    pytest.importorskip("pyoperon")
    target, small = power_target(), replace(OPERON, population=100, generations=30)
    first = operon_front(target, small, 42)
    kappa, m = form_of(choose_from(first, "score").q).parameters
    assert kappa == pytest.approx(0.1, rel=2e-2)
    assert m == pytest.approx(1.73, abs=2e-2)
    assert operon_front(target, small, 42) == first


def test_pysr_gets_the_papers_settings():
    given = rivals.settings(PYSR, seed=1301)
    paper = {
        "model_selection": "best",
        "niterations": 100,
        "populations": 10,
        "population_size": 40,
        "binary_operators": ["+", "*", "^"],
        "maxsize": 15,
        "maxdepth": 6,
        "constraints": {"^": (-1, 1)},
        "parsimony": 1e-4,
        "random_state": 1301,
    }
    assert paper.items() <= given.items()
    source = importlib.util.find_spec("pysr")
    if source is None:
        pytest.skip("PySR is not installed: its arguments cannot be compared")
    # Read, not imported: importing it starts Julia.
    tree = ast.parse(Path(source.origin).with_name("sr.py").read_text())
    regressor = next(n for n in tree.body if getattr(n, "name", "") == "PySRRegressor")
    init = next(n for n in regressor.body if getattr(n, "name", "") == "__init__")
    assert given.keys() <= {a.arg for a in (*init.args.args, *init.args.kwonlyargs)}


class FakeRegressor:
    """What the call needs of PySRRegressor: fit with names, then an answer in SymPy."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def fit(self, x: np.ndarray, y: np.ndarray, variable_names: list[str]) -> None:
        self.given = x, y, variable_names

    def sympy(self) -> sympy.Expr:
        return sympy.parse_expr(self.answer)


def test_what_pysr_answers_is_read_off():
    target = power_target()
    fake = FakeRegressor("u**1.731*0.0995 - 0.06")
    q = rivals.pysr_function(target, PYSR, 1301, regressor=fake)
    assert form_of(q).parameters == pytest.approx([0.0995, 1.731])
    x, y, names = fake.given
    assert x.shape == (512, 1)
    assert names == ["u"]
    np.testing.assert_array_equal(y, target.q)
    unsuccessful = rivals.pysr_function(target, PYSR, 1301, FakeRegressor("0.0667*u**2 + 0.0387*u + 0.1"))
    assert form_of(unsuccessful).family == "c*u^p + c*u^p"
    assert rivals.pysr_function(target, PYSR, 1301, FakeRegressor("u**u")) is None


def test_without_julia_pysr_says_so_and_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PYTHON_JULIAPKG_EXE", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "install" in rivals.missing()
    with pytest.raises(ValueError, match="PySR"):
        rivals.pysr_function(power_target(), PYSR, 1)
    if importlib.util.find_spec("pysr") is not None:
        julia = tmp_path / "julia"
        julia.write_text("#!/bin/sh\n")
        julia.chmod(0o755)
        assert rivals.missing() == ""


def test_importing_the_rivals_starts_neither_julia_nor_operon():
    code = (
        "import sys, fts.symbolic.rivals, fts.symbolic.rivals;"
        "assert not {'pysr', 'juliacall', 'pyoperon'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


@pytest.mark.slow
def test_pysr_itself_recovers_a_power_law():
    reason = rivals.missing()
    if reason:
        pytest.skip(reason)
    q = rivals.pysr_function(power_target(), PYSR, 1301)
    assert q is not None
    assert float(q(np.array([0.5]))[0] - q(np.array([0.4]))[0]) == pytest.approx(
        0.1 * (0.5**1.73 - 0.4**1.73), rel=1e-2
    )
