"""A user's file gives the equation behind it, or an honest refusal where there is none."""

import html
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import fts
from fts import cli
from fts.discovery import audit
from fts.discovery import discover as discovery
from fts.discovery.trajectory_test import judge_by_trajectory
from fts.equations.integration import evolve
from fts.params.paper import DEFAULT_LIBRARIES
from fts.problems import problems

TERMS = ["u", "u^2", "u*u_x", "u_x", "u_xx", "u_xxx"]
BOX = fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))


def _heat(x, t):
    # u_t = 0.3 u_xx + 0.5 u_x, three modes.
    modes = {1: 1.0, 2: 0.7, 3: -0.5}
    return sum(a * np.exp(-0.3 * k**2 * t) * np.sin(k * (x + 0.5 * t) + k) for k, a in modes.items())


def _samples(rng, value, sensors=40, frames=30):
    x = np.sort(rng.uniform(0, 2 * np.pi, sensors))
    t = np.linspace(0, 1, frames)
    x, t = (array.ravel() for array in np.meshgrid(x, t, indexing="ij"))
    return np.column_stack([x, t, value(x, t)])


def _write(path, rows):
    np.savetxt(path, rows, delimiter=",", header="x,t,u", comments="", fmt="%.17g")
    return path


def test_known_equation_comes_out_of_a_file(tmp_path, rng):
    path = _write(tmp_path / "heat.csv", _samples(rng, _heat))
    result = fts.discover(path, TERMS, domain=BOX, progress=False)
    assert result.identified, result.doubts
    assert result.selection.support == ("u_x", "u_xx")
    coefficients = result.selection.coefficients
    assert coefficients["u_x"] == pytest.approx(0.5, rel=0.01)
    assert coefficients["u_xx"] == pytest.approx(0.3, rel=0.01)
    assert "u_xx" in str(result)


def test_the_verdict_does_not_depend_on_the_units(tmp_path, rng):
    rows = _samples(rng, _heat)
    path = _write(tmp_path / "scaled.csv", rows * [1, 1, 1000.0])
    result = fts.discover(path, ["u", "u_x", "u_xx", "u_xxx"], domain=BOX, progress=False)
    assert result.selection.support == ("u_x", "u_xx")


def _measured(value, *, length=2 * np.pi, duration=1.0, sensors=40, frames=30, noise=0.0):
    rng = np.random.default_rng(0)
    x, t = np.sort(rng.uniform(0, length, sensors)), np.linspace(0, duration, frames)
    x, t = (array.ravel() for array in np.meshgrid(x, t, indexing="ij"))
    y = value(x, t)
    y = y + noise * y.std() * rng.standard_normal(y.size)
    return fts.Observations(x[:, None], t, y, fts.Domain((0.0,), (length,), 0.0, duration, (True,)))


@pytest.mark.parametrize(
    ("value", "options", "rival"),
    [
        (lambda x, t: np.exp(-0.3 * t) * np.sin(x), {}, "cannot be told apart"),
        (
            lambda x, t: np.exp(-0.3 * t) * np.sin(x) + 0.5 * np.exp(-1.2 * t) * np.cos(2 * x),
            {},
            "with u and u_xxxx instead",
        ),
        # Which of two exact multiples comes first is rounding.
        (lambda x, t: np.sin(x - t), {"duration": 3.0}, "u_x(xx)? and u_x(xx)? cannot be told apart"),
        (
            lambda x, t: 0.5 / np.cosh(0.5 * (x - t - 10)) ** 2,
            {"length": 40.0, "duration": 15.0, "sensors": 60, "frames": 60},
            r"with u\*u_x and u_xxx instead",
        ),
    ],
    ids=["one mode of heat", "two modes of heat", "a travelling wave", "a soliton"],
)
def test_fields_that_carry_too_little_are_ambiguous(value, options, rival):
    result = fts.discover(_measured(value, **options), progress=False)
    assert result.verdict.status == "ambiguous"
    assert any(re.search(rival, reason) for reason in result.doubts), result.doubts
    assert result.verdict.rivals
    assert all(entry.risk < 1e-6 for entry in result.verdict.rivals)
    assert "rival: " in str(result)
    assert "rival: " in result._repr_markdown_()


@pytest.mark.parametrize(
    "observations",
    [
        pytest.param(_measured(lambda x, t: np.sin(x) * np.cos(t), duration=4.0), marks=pytest.mark.slow),
        _measured(lambda x, t: np.sin(x) + 0.3 * np.cos(2 * x)),
        _measured(lambda x, t: np.sin(x) + 0.3 * np.cos(2 * x), noise=0.05),
        _measured(lambda x, t: 3.0 + 0 * x),
    ],
    ids=["a standing wave", "steady", "steady with noise", "constant"],
)
def test_samples_without_an_answer_get_a_verdict(observations):
    result = fts.discover(observations, progress=False)
    assert result.verdict.status == "not identifiable"
    assert result.doubts
    assert result.as_dict()["verdict"]["status"] == "not identifiable"
    assert "not identifiable" in str(result)


@pytest.mark.parametrize(
    ("shift", "unit", "origin", "length", "time"),
    [
        (1.0, 1.0, 0.0, 1.0, 1.0),
        (10.0, 1.0, 0.0, 1.0, 1.0),
        (300.0, 1.0, 0.0, 1.0, 1.0),
        (0.0, 1e3, 1e6, 1.0, 1.0),
        (0.0, 1e-3, 0.0, 1e3, 1e-3),
    ],
)
def test_offsets_and_units_change_nothing_but_the_coefficients(shift, unit, origin, length, time):
    base = _measured(_heat)
    box = fts.Domain((origin,), (origin + length * 2 * np.pi,), 0.0, time, (True,))
    samples = fts.Observations(origin + length * base.x, time * base.t, unit * (base.y + shift), box)
    result = fts.discover(samples, progress=False)
    assert result.identified, result.doubts
    assert result.selection.support == ("u_x", "u_xx")
    outcome = result.selection.coefficients
    assert outcome["u_x"] * time / length == pytest.approx(0.5, rel=1e-3)
    assert outcome["u_xx"] * time / length**2 == pytest.approx(0.3, rel=1e-3)


def test_a_hopelessly_small_file_gets_a_verdict(tmp_path, capsys):
    path = _write(tmp_path / "few.csv", np.random.default_rng(0).random((3, 3)))
    result = fts.discover(path, progress=False)
    assert result.verdict.status == "not identifiable"
    assert result.selection is None
    assert str(result.equation) == "u_t = 0"
    assert "add samples" in result.doubts[0]
    assert cli.main(["discover", str(path), "--quiet"]) == 1
    assert "not identifiable" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["u_xx", "u_x"])
def test_a_library_without_the_governing_term_is_found_out(gone):
    offered = [term for term in TERMS if term != gone]
    result = fts.discover(_measured(_heat), offered, progress=False)
    assert not result.identified


def test_standard_errors_belong_to_the_printed_coefficients():
    result = fts.discover(_measured(_heat, noise=0.05), TERMS, progress=False)
    assert result.identified, result.doubts
    reported = result.as_dict()["terms"]
    for name, true in {"u_x": 0.5, "u_xx": 0.3}.items():
        assert reported[name]["value"] == result.selection.coefficients[name]
        assert abs(reported[name]["value"] - true) < 3 * reported[name]["standard_error"]
        assert reported[name]["standard_error"] < 0.1 * true
        assert f"{name}: {reported[name]['value']:.4g} ± " in str(result)


@pytest.mark.slow
def test_pure_noise_is_not_identifiable(tmp_path, rng):
    path = _write(tmp_path / "noise.csv", _samples(rng, lambda x, t: rng.standard_normal(x.size)))
    result = fts.discover(path, TERMS, domain=BOX, progress=False)
    assert not result.identified
    assert str(result).startswith(result.verdict.status)
    assert result.verdict.status.capitalize() in result._repr_markdown_()


def test_the_command_says_what_it_found(tmp_path, rng, capsys):
    path = _write(tmp_path / "heat.csv", _samples(rng, _heat))
    axis = f"x=0:{2 * np.pi}:periodic"
    assert cli.main(["discover", str(path), "--axis", axis, "--library", *TERMS, "--quiet"]) == 0
    assert "u_t = 0.5" in capsys.readouterr().out
    assert cli.main(["problems"]) == 0
    assert "u_t = -6 u*u_x - u_xxx" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["discover", "nothing.csv"], "no file at"),
        (["discover", "FILE", "--axis", "y=0:1"], "write x=LOW:HIGH"),
        (["discover", "FILE", "--axis", "t=0:1:periodic"], "write x=LOW:HIGH"),
        (["discover", "FILE", "--axis", "x=low:high"], "write x=LOW:HIGH"),
        (["discover", "FILE", "--axis", "x=5:1"], "give low < high"),
        (["discover", "FILE", "--axis", "x=0:1"], "enlarge the domain"),
        (["discover", "FILE", "--library", "u_xy"], "spatial axes"),
        (["discover", "FILE", "--library", "u", "u"], "keep one"),
        (["discover", "FILE", "--library", "uxx"], "unknown name 'uxx'"),
        (["discover", "FILE", "--columns", "x=position"], "no column 'position'"),
        (["discover", "FILE", "--columns", "w=x"], "x missing"),
        (["discover", "FILE", "--columns", "x=x", "t"], "or all names in order"),
        (["discover", "FILE", "--columns", "x=x", "x=t"], "once"),
        (["discover", "FILE", "--columns", "x", "u"], "t missing"),
        (["discover", "FILE", "--decimal", ";"], "write '.' or ','"),
        (["discover", "FILE", "--decimal", ","], "needs ';' or tabs"),
        (["discover", "FILE", "--recipe", "magic"], "invalid choice"),
        (["discover", "FILE", "--output", "nowhere/answer.txt"], "cannot be written"),
        (["discover", "FILE", "--report", "."], "cannot be written"),
        (["discover", "."], "holds no Parquet or Arrow files"),
        (["discover"], "required"),
        (["discoverer", "FILE"], "invalid choice"),
        ([], "required"),
        (["discover", "FILE", "--library", "u^u_x", "--quiet"], "u_x"),
    ],
)
def test_bad_commands_are_answered_with_a_remedy(tmp_path, rng, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    # Whatever is wrong with a command is said before the fit, which may take minutes.
    monkeypatch.setattr(discovery, "fit_sound_samples", lambda *_, **__: pytest.fail("fitted"))
    path = _write(tmp_path / "heat.csv", _samples(rng, _heat, sensors=8, frames=8))
    assert cli.main([str(path) if word == "FILE" else word for word in arguments]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert list(tmp_path.iterdir()) == [path]


def test_the_answer_as_json_in_a_file(tmp_path, rng, capsys):
    path = _write(tmp_path / "heat.csv", _samples(rng, _heat, sensors=20, frames=20))
    out = tmp_path / "answer.json"
    code = cli.main(["discover", str(path), "--library", "ks", "--json", "--output", str(out), "--quiet"])
    answer = json.loads(out.read_text())
    assert code == (0 if answer["identified"] else 1)
    assert capsys.readouterr().out == ""
    assert answer["library"] == list(fts.problem("ks").library.names)
    assert answer["samples"] == 400
    assert set(answer["coefficients"]) <= set(answer["recurrence"])
    assert answer["equation"].startswith("u_t = ")
    assert bool(answer["doubts"]) != answer["identified"]


def test_a_fault_is_not_a_verdict(monkeypatch, capsys):
    monkeypatch.setattr(problems, "names", lambda: 1 / 0)
    assert cli.main(["problems"]) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_crash():
    """The pipe is closed before anything is written to it."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        command = [sys.executable, "-m", "fts.cli", "problems"]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "fts: the answer's reader went away: write it to a file with --output FILE\n"


def test_the_version_is_the_packages():
    done = subprocess.run([sys.executable, "-m", "fts.cli", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[0]) == (0, "fts")


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path, rng):
    path = _write(tmp_path / "heat & co.csv", _samples(rng, _heat, sensors=20, frames=20))
    out = tmp_path / "report.html"
    assert (
        cli.main(["discover", str(path), "--report", str(out), "--output", str(tmp_path / "a"), "--quiet"])
        < 2
    )
    page = out.read_text()
    titles = ["Coefficients", "Samples", "Reconstruction", "Uncertainty", "Residuals", "Recurrence", "Risks"]
    assert re.findall(r"<h2>(\w+)", page) == titles
    assert page.count("data:image/png;base64,") == len(titles) - 1
    # Nothing is loaded from elsewhere, and a name from outside is text.
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    assert "heat &amp; co.csv" in page
    equation = (tmp_path / "a").read_text()
    assert html.escape(equation.splitlines()[0].partition(": ")[2]) in page


def _evolved(equation, u0, length, duration, *, sensors=40, frames=41, shift=0.0, noise=0.0, seed=0):
    """Samples of an equation at random sensors of a ring."""
    rng = np.random.default_rng(seed)
    u = evolve(fts.Equation.parse(equation), u0, length, frames, duration, 40)
    indices = np.sort(rng.permutation(u0.size)[:sensors])
    grid, t = length * np.arange(u0.size) / u0.size, np.linspace(0, duration, frames)
    y = u[indices] + shift + noise * u.std() * rng.standard_normal((sensors, frames))
    x, t = (a.ravel() for a in np.meshgrid(grid[indices], t, indexing="ij"))
    domain = fts.Domain((0.0,), (length,), 0.0, duration, (True,))
    return fts.Observations(x[:, None], t, y.ravel(), domain)


_RING = 2 * np.pi * np.arange(128) / 128
_HILLS = np.sin(_RING) + 0.5 * np.cos(2 * _RING + 1) + 0.3 * np.sin(3 * _RING)
_BURGERS = "u_t = -1 u*u_x + 0.1 u_xx"
_KDV = "u_t = -1 u*u_x - 0.05 u_xxx"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equation", "gone", "message"),
    [(_BURGERS, "u_xx", "the samples ask for u_xx"), (_KDV, "u_xxx", "a term is missing")],
)
def test_an_equation_without_its_term_does_not_follow_the_samples(equation, gone, message):
    samples = _evolved(equation, _HILLS, 2 * np.pi, 1.0)
    whole = fts.discover(samples, progress=False)
    assert whole.identified, whole.doubts
    offered = [name for name in ("u", "u_x", "u*u_x", "u_xx", "u_xxx", "u_xxxx") if name != gone]
    lacking = fts.discover(samples, offered, progress=False)
    assert lacking.verdict.status == "not identifiable"
    assert message in lacking.doubts[0]


def test_a_nonlinear_equation_of_a_shifted_state_is_another_one():
    """(u - 10) obeys Burgers: u itself is carried along as well."""
    result = fts.discover(_evolved(_BURGERS, _HILLS, 2 * np.pi, 1.0, shift=10.0), progress=False)
    assert result.identified, result.doubts
    outcome = result.selection.coefficients
    assert set(outcome) == {"u_x", "u*u_x", "u_xx"}
    assert [outcome[name] for name in ("u_x", "u*u_x", "u_xx")] == pytest.approx([10.0, -1.0, 0.1], rel=0.01)


def test_a_few_scattered_samples_get_a_verdict(rng):
    x, t = rng.uniform(0, 2 * np.pi, 15), rng.uniform(0, 1, 15)
    y = _heat(x, t) + 0.2 * rng.standard_normal(15)
    result = fts.discover(fts.Observations(x[:, None], t, y, BOX), progress=False)
    assert result.verdict.status in ("ambiguous", "not identifiable")
    assert result.doubts


def test_fewer_samples_than_verdicts_were_checked_with_identify_nothing(rng):
    result = fts.discover(_measured(_heat, sensors=15, frames=20), progress=False)
    assert result.selection.support == ("u_x", "u_xx")
    assert result.verdict.status == "ambiguous"
    assert "300 samples: verdicts were checked with" in result.doubts[0]


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_shape_that_only_travels_is_not_called_identified(noise):
    """A steady wave of another equation, at its one speed, could not be told from translation."""

    def shape(s):
        return np.sin(s) + 0.4 * np.cos(2 * s + 1) + 0.3 * np.sin(3 * s + 0.5) + 0.2 * np.cos(4 * s)

    result = fts.discover(_measured(lambda x, t: shape(x - t), duration=3.0, noise=noise), progress=False)
    assert list(result.standard_errors) == ["u_x"]
    assert result.verdict.status == "ambiguous"
    assert any("only travels" in reason for reason in result.doubts), result.doubts


def test_an_axis_that_does_not_close_is_asked_for_the_general_terms_too():
    samples = _evolved(_BURGERS, _HILLS, 2 * np.pi, 1.0, sensors=60)
    open_box = fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (False,))
    samples = fts.Observations(samples.x, samples.t, samples.y, open_box)
    lacking = fts.discover(samples, [n for n in DEFAULT_LIBRARIES[1] if n != "u_xx"], progress=False)
    assert not lacking.identified


def test_energy_in_few_regions_does_not_make_a_small_equation_plausible():
    """Nearly all of u_t is in the first steps: differences over regions have no power."""
    u = evolve(fts.Equation.parse(_BURGERS), _HILLS[::2], 2 * np.pi, 64, 6.0, 60)
    x, t = (a.ravel() for a in np.meshgrid(_RING[::2], np.linspace(0, 6, 64), indexing="ij"))
    open_box = fts.Domain((0.0,), (_RING[-2],), 0.0, 6.0, (False,))
    result = fts.discover(fts.Observations(x[:, None], t, u.ravel(), open_box), progress=False)
    assert result.identified, result.doubts
    assert result.selection.support == ("u*u_x", "u_xx")


# An equation beyond the library that a smaller one within it imitates.
_GARDNER = "u_t = -1 u*u_x + 1 u^2*u_x - 0.05 u_xxx"


def test_a_term_beyond_the_library_is_named():
    samples = _evolved(_GARDNER, 0.5 * _HILLS + 0.3, 2 * np.pi, 1.0, noise=0.02)
    result = fts.discover(samples, progress=False)
    assert result.verdict.status != "identified"
    assert result.verdict.wanted[0] == "u^2*u_x"
    assert any("u^2*u_x" in reason for reason in result.doubts)


@pytest.mark.parametrize("equation", [_BURGERS, _KDV])
def test_a_right_equation_is_asked_for_nothing_and_says_what_it_would_not_see(equation):
    result = fts.discover(_evolved(equation, _HILLS, 2 * np.pi, 1.0, noise=0.05), progress=False)
    assert result.identified, result.doubts
    assert result.verdict.wanted == ()
    assert "would not be seen" in result.verdict.scope


def test_rounding_does_not_order_the_terms_that_would_not_be_seen(monkeypatch):
    """Derivatives of a single wave are one another's multiples, and all tie."""
    audits, scope = [], audit._scope
    monkeypatch.setattr(audit, "_scope", lambda made: audits.append(made) or scope(made))
    samples = _evolved(_BURGERS, _HILLS, 2 * np.pi, 1.0, noise=0.05)
    fts.discover(samples, ["u", "u*u_x", "u_xx"], progress=False)
    made = audits[0]
    scopes = set()
    for rounding in (1e-13, -1e-13):
        shares = 1 + rounding * np.arange(len(made.tests))
        tests = tuple(replace(test, unseen_share=s) for test, s in zip(made.tests, shares, strict=True))
        scopes.add(scope(replace(made, tests=tests)))
    assert len(scopes) == 1


def test_the_verdict_costs_little_on_kuramoto_sivashinsky(monkeypatch):
    """At most two seconds beside the fit and the selection."""
    spent = []

    def timed(*given):
        began = time.process_time()
        judged = judge_by_trajectory(*given)
        spent.append(time.process_time() - began)
        return judged

    monkeypatch.setattr(discovery, "judge_by_trajectory", timed)
    for noise in (0.0, 0.1):
        fts.discover(fts.observe(fts.simulate("ks"), "S20", seed=7, noise=noise), progress=False)
    assert max(spent) <= 2.0
