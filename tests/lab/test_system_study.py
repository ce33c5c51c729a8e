"""The study of systems: scores of several equations at once, its runs, and the tables made of them."""

from dataclasses import replace

import numpy as np
import pytest

from fts.baselines.pysindy import GRIDS, pysindy_weak_terms
from fts.lab.figures import systems as figures
from fts.lab.studies import records, runs, systems
from fts.lab.studies.runs import STUDIES, Task
from fts.problems.systems import DEVELOPMENT_SEEDS, TEST_SEEDS, system_names

SEED = DEVELOPMENT_SEEDS[0]
BURGERS = {
    "u_t: u_xx": 0.15,
    "u_t: u*u_x": -1.0,
    "u_t: D_x(u*v)": -0.6,
    "v_t: v_xx": 0.2,
    "v_t: v*v_x": -1.0,
    "v_t: D_x(u*v)": -0.4,
}


def a_task(name: str, row: str = runs.DISCOVER) -> Task:
    tasks = systems.systems((SEED,))
    return next(task for task in tasks if task.problem == name and task.row == row and task.noise == 0)


def test_all_equations_are_scored_and_products_are_multiplied_out() -> None:
    score = systems.score_equations(BURGERS, "coupled_burgers")
    assert (score["exact"], score["right"], score["equations"], score["f1"]) == (True, 2, 2, 1.0)
    assert score["e_xi"] == score["error"] == pytest.approx(0.0, abs=1e-15)
    split = {name: c for name, c in BURGERS.items() if name != "u_t: D_x(u*v)"}
    split |= {"u_t: u*v_x": -0.6, "u_t: v*u_x": -0.606}
    score = systems.score_equations(split, "coupled_burgers")
    assert score["exact"]
    assert score["error"] == pytest.approx(0.01)
    more = systems.score_equations(BURGERS | {"u_t: u^2*v_xx": 0.1}, "coupled_burgers")
    assert (more["exact"], more["right"]) == (False, 1)
    size = np.linalg.norm([0.15, 1, 0.6, 0.6, 0.2, 1, 0.4, 0.4])
    assert more["e_xi"] == pytest.approx(0.1 / size)


def test_a_coefficient_that_varies_is_right_by_its_term() -> None:
    for name, term in (("varying_advection", "c(x)*u_x"), ("varying_heat", "D_x(k(x)*u_x)")):
        score = systems.score_equations({f"u_t: {term}": 1.0}, name)
        assert (score["exact"], score["e_xi"], score["error"]) == (True, 0.0, 0.0)
        assert not systems.score_equations({"u_t: u_x": 1.0}, name)["exact"]


def test_every_problem_is_planned_at_every_noise() -> None:
    study = STUDIES["systems"]
    assert tuple(study.seeds["test"]) == TEST_SEEDS[:5]
    planned = study.tasks()
    assert len({task.key for task in planned}) == len(planned)
    for name in (*system_names(), *systems.SCALAR):
        made = {(t.noise, t.seed) for t in planned if t.problem == name and t.protocol == "S20"}
        assert len(made) == 15
    shown = [name for name in figures.MDBENCH.values() if name]
    assert set(shown) <= {task.problem for task in planned}


def test_a_run_leaves_its_terms_score_and_verdict_or_its_error(monkeypatch) -> None:
    record = systems.run(a_task("daily_heat_1d"))
    assert record.error == ""
    assert record.score["exact"]
    assert record.score["e_u"] < 0.01
    assert set(record.terms) == {"u_t: u_xx"}
    assert record.extra["status"] == {"u": "identified"}
    expected = systems.score_equations(record.terms, "daily_heat_1d")
    assert expected.items() <= record.score.items()
    monkeypatch.setattr(systems, "observe_system", lambda *_, **__: 1 / 0)
    failed = systems.run(a_task("daily_heat_1d"))
    assert "ZeroDivisionError" in failed.error
    assert failed.key == record.key


def test_tables_count_right_runs_of_those_made() -> None:
    record = replace(runs.record(a_task("coupled_burgers")), terms=BURGERS)
    record = replace(record, score=systems.score_equations(BURGERS, "coupled_burgers") | {"e_u": 0.0})
    wrong = replace(record, seed=SEED + 1, score=record.score | {"exact": False})
    failed = replace(record, seed=SEED + 2, score={}, error="ValueError: no")
    peer = replace(record, row=systems.PEER, protocol="S100")
    made = [record, wrong, failed, peer]
    assert figures.recovery_table(made, several=True).rows == (("Coupled Burgers", "1/3", "0"),)
    assert not figures.recovery_table(made, several=False).rows
    columns = {"ours": (runs.DISCOVER, "S20"), "theirs": (systems.PEER, "S100")}
    assert figures.comparison_table(made, columns).rows == (("Coupled Burgers", "0%", "1/3", "1/1"),)
    assert len(figures.benchmark_table(made).rows) == 14
    assert figures.failures(made) == [
        "discover, Coupled Burgers S20, 0% noise: 2 of 3 wrong, 0 of these called identified"
    ]
    wave = replace(runs.record(a_task("varying_heat")), score=record.score | {"error_of_curve": 0.25})
    assert figures.recovery_table([wave], several=False).rows[0][-1] == "0.25"


def test_the_peer_reads_two_components_of_several_grids() -> None:
    pytest.importorskip("pysindy", reason="PySINDy is not installed (extra `peers`)")
    x, t = np.linspace(0, 2 * np.pi, 64), np.linspace(0, 1, 41)
    grids = []
    for shift in (0.0, 1.0):
        # u_t = -v_x, v_t = -u_x
        wave, back = (np.sin(x[:, None] + sign * t + shift) for sign in (1, -1))
        wave, back = wave + 0.3 * wave**2, back + 0.5 * back**3
        grids.append(np.stack([wave + back, back - wave], axis=-1))
    params = replace(GRIDS["coupled_burgers"], degree=1, domains=60)
    terms = pysindy_weak_terms(grids, (x, t), ("u", "v"), params, SEED)
    assert {name: set(each) for name, each in terms.items()} == {"u": {"v_x"}, "v": {"u_x"}}
    assert terms["u"]["v_x"] == pytest.approx(-1, abs=0.02)


def test_the_committed_records_are_of_the_plan() -> None:
    keys = {task.key for task in STUDIES["systems"].tasks()}
    made = records.read_study("systems")
    assert made
    assert {record.key for record in made} <= keys
