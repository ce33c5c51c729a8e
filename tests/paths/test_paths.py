"""Recorded trainings: recording changes no bit, files come back whole, summaries and rules on known paths."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_contract import Here

from fts import containers
from fts.baselines.deepmod import DEEPMOD
from fts.baselines.training.deepmod import deepmod
from fts.baselines.training.weak_pde_learn import weak_pde_learn
from fts.baselines.weak_pde_learn import WEAK_PDE_LEARN
from fts.domain import Domain
from fts.equations.terms import Library
from fts.lab.figures import baselines
from fts.lab.figures import paths as figures
from fts.lab.studies import paths, plans, published, records, runs, verify, workers
from fts.observations import Observations
from fts.params.paper import TEST_SEEDS
from fts.params.types import changed
from fts.paths import recorder
from fts.paths.recorder import (
    PATHS,
    RECORDED,
    Recorder,
    SupportPath,
    load_path,
    record_deepmod,
    record_weak_pde_learn,
)
from fts.problems.problems import problem
from fts.problems.trajectories import observe, simulate
from fts.selection.selection import Selection

STUDY = runs.STUDIES["paths"]
DOMAIN = Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))
LIBRARY = Library.parse(["1", "u", "u_x", "u*u_x", "u_xx"])
# Terms are dropped within the first hundred steps.
QUICK = replace(
    DEEPMOD["kdv"], width=8, depth=2, samples=200, max_iterations=400, patience=25, min_decrease=0.1
)
KDV = problem("kdv").library
TRUE, ALL = np.isin(KDV.names, ["u*u_x", "u_xxx"]), np.ones(len(KDV), dtype=bool)


@cache
def heat() -> Observations:
    """Two decaying waves: u_t = u_xx."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 2 * np.pi, 240), rng.uniform(0, 1, 240)
    y = np.exp(-t) * np.sin(x) + 0.7 * np.exp(-4 * t) * np.cos(2 * x)
    return Observations(x[:, None], t, y, DOMAIN)


def weak_params() -> Any:
    form = replace(WEAK_PDE_LEARN["kdv"].weak, quadrature=(24, 20), functions=30, refresh=5)
    return replace(
        WEAK_PDE_LEARN["kdv"], width=8, depth=2, batch=100, weak=form, burn_in=30, sparsification=25
    )


def same(first: Selection, other: Selection) -> None:
    """To the last bit: equation, field and what was noted."""
    np.testing.assert_array_equal(first.xi, other.xi)
    points = np.random.default_rng(1).uniform(0, 1, (50, 2))
    np.testing.assert_array_equal(first.field(points), other.field(points))
    assert first.notes == other.notes


@pytest.mark.parametrize(
    ("record", "plain", "params"),
    [(record_deepmod, deepmod, QUICK), (record_weak_pde_learn, weak_pde_learn, weak_params())],
    ids=["DeepMoD", "Weak-PDE-LEARN"],
)
def test_recording_changes_no_bit(record: Any, plain: Any, params: Any) -> None:
    selection, path = record(heat(), LIBRARY, params, np.random.default_rng(4), {})
    same(selection, plain(heat(), LIBRARY, params, np.random.default_rng(4)))
    assert path.names_at(path.end) == selection.support
    np.testing.assert_array_equal(path.xi[-1][selection.xi != 0], selection.xi[selection.xi != 0])
    assert path.end == selection.notes["iterations"]
    assert len(path.since) > 1, "terms left"
    assert path.field_steps[-1] == path.end
    np.testing.assert_allclose(path.fields[-1], selection.field.on_grid(*_axes(DOMAIN)))


def test_reading_the_adapters_field_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "PATHS", replace(PATHS, selections=3))
    task = next(task for task in paths.paths((42,)) if task.row == "freeze, then select")
    field = replace(task.params.field, settings=changed(task.params.field.settings, epochs=420))
    params = replace(task.params, field=field)
    observations = observe(simulate("kdv"), "S20", seed=42)
    result, path = RECORDED[task.method](observations, KDV, params, np.random.default_rng(0), {})
    from fts.adapter import paper

    alone = paper.fit(observations, field.settings, progress=False)
    for a, b in zip(result.field.space.weights, alone.space.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(result.field.on_grid(*_axes(alone.domain)), path.fields[-1])
    assert path.steps.tolist() == [0, 140, 280, 420]
    # The first 400 updates fit a background: what stands still obeys u_t = 0.
    assert path.names_at(300) == ()
    kernel = replace(params, field=replace(field, recipe="kernel"))
    with pytest.raises(ValueError, match="'kernel' has no stages"):
        RECORDED[task.method](observations, KDV, kernel, np.random.default_rng(0), {})


def _axes(domain: Domain) -> list[np.ndarray]:
    ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), PATHS.grid, strict=True)
    return [np.linspace(low, high, count) for low, high, count in ends]


class Flat:
    """A field that is its step everywhere."""

    domain = DOMAIN

    def __init__(self, step: int) -> None:
        self.step = step

    def on_grid(self, *axes: np.ndarray) -> np.ndarray:
        return np.full([axis.size for axis in axes], float(self.step))


def recording(steps: int, checks: int = 1) -> tuple[Recorder, Selection]:
    watcher = Recorder(LIBRARY, DOMAIN, 0.5, PATHS)
    for step in range(steps):
        xi = np.array([1.0, 0.0, 0.0, 0.0, 1.0 if step < 7 else 0.2])
        losses = {"data": 1.0} | ({"held_out": float(steps - step)} if step % checks == 0 else {})
        watcher(step, losses, xi, np.ones(5, dtype=bool), Flat(step))
    return watcher, Selection(LIBRARY, np.array([2.0, 0, 0, 0, 0]), "none", field=Flat(steps))


@pytest.mark.parametrize("steps", [5, 48, 95, 96, 97, 1000])
def test_fields_are_few_and_even_however_long_the_training(steps: int) -> None:
    watcher, selection = recording(steps)
    path = watcher.path({}, steps, {"data": 0.5, "held_out": 0.1}, selection)
    assert len(path.field_steps) == min(steps + 1, PATHS.fields)
    assert (path.field_steps[0], path.field_steps[-1]) == (0, steps)
    np.testing.assert_array_equal(path.fields[:, 0, 0], path.field_steps)
    gaps = np.diff(path.field_steps)
    assert gaps.max() <= 2 * max(1, np.median(gaps)) + 1


def test_supports_are_kept_at_every_step_and_losses_at_the_checks() -> None:
    watcher, selection = recording(20, checks=5)
    path = watcher.path({}, 20, {"data": 0.5}, selection)
    assert path.steps.tolist() == [0, 5, 10, 15, 20]
    assert path.since.tolist() == [0, 7]
    assert path.names_at(6) == ("1", "u_xx")
    assert path.names_at(7) == path.names_at(20) == ("1",)
    assert np.isnan(path.losses["held_out"][-1])
    # A training that begins anew, as one that diverged does, is another one.
    watcher(0, {"data": 1.0, "held_out": 1.0}, np.zeros(5), np.ones(5, dtype=bool), Flat(0))
    again = watcher.path({}, 1, {"data": 1.0, "held_out": 1.0}, selection)
    assert again.steps.tolist() == [0, 1]


def kdv_path(
    supports: list[np.ndarray],
    since: list[int],
    held_out: list[float],
    loss: list[float] | None = None,
    sparse_from: int | None = 0,
) -> SupportPath:
    steps = np.arange(len(held_out)) * 10
    return SupportPath(
        about={"problem": "kdv", "sparse_from": sparse_from},
        terms=KDV.names,
        steps=steps,
        losses={"data": np.array(loss or held_out), "held_out": np.array(held_out)},
        xi=np.zeros((len(steps), len(KDV))),
        since=np.array(since),
        supports=np.array(supports),
        field_steps=steps[:1],
        fields=np.zeros((1, 2, 2)),
    )


def test_the_three_behaviors_and_their_intervals() -> None:
    none = ~ALL
    falling = [5.0, 4.0, 3.0, 2.0, 1.0]
    persists = paths.summarize_path(kdv_path([ALL, TRUE], [0, 20], falling))
    assert persists.behavior == "persists"
    assert persists.intervals == ((20, 40),)
    assert persists.first == 20
    assert persists.held_out
    transient = paths.summarize_path(kdv_path([ALL, TRUE, none, TRUE, ALL], [0, 10, 14, 31, 39], falling))
    assert transient.behavior == "transient"
    assert transient.intervals == ((10, 14), (31, 39))
    assert not transient.held_out
    never = paths.summarize_path(kdv_path([ALL, none], [0, 20], falling))
    assert never.behavior == "never"
    assert never.first is None
    steps, f1 = paths.support_f1(kdv_path([ALL, TRUE, none], [0, 10, 20], falling))
    assert steps.tolist() == [0, 10, 20]
    np.testing.assert_allclose(f1, [2 * 2 / (len(KDV) + 2), 1.0, 0.0])
    total = paths.counts([persists, transient, never])
    assert (total["runs"], total["ever"], total["held_out"], total["terminal"]) == (3, 2, 1, 1)


def test_each_rule_stops_where_it_says() -> None:
    path = kdv_path(
        [ALL, TRUE, ~ALL], [0, 12, 25], held_out=[3.0, 2.0, 1.0, 4.0, 5.0], loss=[0.1, 4.0, 3.0, 2.0, 2.5]
    )
    steps = {name: rule(path) for name, rule in recorder.RULES.items()}
    assert steps == {
        "lowest training loss": 0,
        "lowest held-out loss": 20,
        "longest-lived support": 40,
        "last": 40,
    }
    # Before terms are dropped there is nothing to report: the lowest loss is then a later one.
    assert recorder.lowest_loss(replace(path, about={"sparse_from": 5})) == 30
    assert recorder.longest_lived(replace(path, about={"sparse_from": 35})) == 40
    assert recorder.longest_lived(kdv_path([ALL, TRUE, ~ALL], [0, 3, 33], [1.0] * 5)) == 32
    # Where none is ever dropped, only the end is left.
    never = replace(path, about={"sparse_from": None})
    assert {rule(never) for rule in recorder.RULES.values()} == {40}
    joint = replace(path, losses=path.losses | {"residual": np.arange(5.0)})
    np.testing.assert_array_equal(recorder.objective(joint), [0.1, 5.0, 5.0, 5.0, 6.5])


def test_a_path_comes_back_whole_or_not_at_all(tmp_path: Path) -> None:
    watcher, selection = recording(300, checks=3)
    path = watcher.path({"seed": 1}, 300, {"data": 0.5, "held_out": 0.1}, selection)
    wavy = np.sin(np.arange(path.fields.size)).reshape(path.fields.shape)
    path, file = replace(path, fields=wavy), tmp_path / "path.fts"
    path.save(file)
    back = load_path(file)
    assert (back.about, back.terms) == (path.about, path.terms)
    for name in ("steps", "since", "supports", "field_steps"):
        np.testing.assert_array_equal(getattr(back, name), getattr(path, name))
    np.testing.assert_array_equal(back.xi, path.xi.astype(np.float32))
    np.testing.assert_allclose(back.fields, wavy, atol=2.0 / 255 / 2 + 1e-6)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(containers.FileError, match="damaged"):
        load_path(file)
    with pytest.raises(ValueError, match="do not belong to checks"):
        replace(path, since=path.since + 1000)


def test_a_recorded_run_is_the_run_of_the_table_and_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    monkeypatch.setattr(distributed, "as_completed", list)
    task = next(paths.paths((42,)))
    task = replace(task, params=replace(task.params, max_iterations=30, width=8, depth=2, samples=200))
    (made,) = workers.run_all(STUDY, [task], tmp_path, Here())
    plain = runs.run(task)
    assert made.error == ""
    assert made.key == task.key == plain.key
    assert (made.terms, made.score) == (plain.terms, plain.score)
    assert records.read(tmp_path / "baselines.jsonl") == [made]
    assert workers.run_all(STUDY, [task], tmp_path, Here()) == []
    # Without its path the run is not complete, though its record is there.
    paths.path_file(task, tmp_path).unlink()
    assert len(workers.run_all(STUDY, [task], tmp_path, Here())) == 1
    (only,) = records.read_study("baselines", tmp_path)
    assert replace(only, seconds=0.0, extra={}) == replace(made, seconds=0.0, extra={})
    broken = replace(task, protocol="S20000")
    (failed,) = workers.run_all(STUDY, [broken], tmp_path, Here())
    assert "unknown protocol" in failed.error
    assert not paths.path_file(broken, tmp_path).is_file()
    assert workers.run_all(STUDY, [broken], tmp_path, Here()) == []


def test_the_plan_is_table_s9_and_ours_on_the_same_samples() -> None:
    tasks = list(paths.paths(TEST_SEEDS))
    joint = {(task.row, task.problem, task.protocol) for task in tasks if task.row != "freeze, then select"}
    assert joint == set(published.paths())
    of_the_table = {task.key for task in plans.baselines(TEST_SEEDS)}
    assert {task.key for task in tasks if task.study == "baselines"} <= of_the_table
    ours = {(task.problem, task.protocol) for task in tasks} - {cell[1:] for cell in joint}
    assert ours == set()
    assert len({paths.path_file(task) for task in tasks}) == len(tasks) == 35


def test_verify_holds_a_path_against_its_record(tmp_path: Path) -> None:
    task = next(paths.paths(TEST_SEEDS))
    path = kdv_path([ALL, TRUE], [0, 20], [2.0, 1.0, 0.5])
    path = replace(path, about=path.about | {"key": task.key})
    path.save(paths.path_file(task, tmp_path))
    assert any("has no record in baselines.jsonl" in line for line in paths.check_paths(tmp_path))
    record = replace(runs.record(task), terms={"u*u_x": -6.0, "u_xxx": -1.0})
    records.append(tmp_path / "baselines.jsonl", record)
    assert list(paths.check_paths(tmp_path)) == []
    cell = verify.compute(tmp_path)["paths, supports"]["DeepMoD | kdv-S20"]
    assert (cell["runs"], cell["ever"], cell["terminal"]) == (1, 1, 1)
    assert cell["by seed"]["1301"]["intervals"] == [[20, 20]]
    (tmp_path / "baselines.jsonl").unlink()  # a finished run is not recorded over
    records.append(tmp_path / "baselines.jsonl", replace(record, terms={"u": 1.0}))
    assert any("its record has ('u',)" in line for line in paths.check_paths(tmp_path))
    replace(path, about=path.about | {"key": "another"}).save(paths.path_file(task, tmp_path))
    assert any("other settings" in line for line in paths.check_paths(tmp_path))
    (tmp_path / "paths" / "stray.fts").write_text("")
    assert any("belongs to no run" in line for line in paths.check_paths(tmp_path))


def _kdv_runs(*supports: np.ndarray) -> dict[int, SupportPath]:
    """One training per support it ends with, all of them exact in between."""
    about = {"row": "DeepMoD", "protocol": "S20"}
    runs = {}
    for seed, support in zip(TEST_SEEDS, supports, strict=False):
        path = kdv_path([ALL, TRUE, support], [0, 10, 30], [4.0, 3.0, 2.0, 1.0, 0.5])
        runs[seed] = replace(path, about={**path.about, **about, "seed": seed})
    return runs


def test_figures_mark_first_visits_ends_and_terms() -> None:
    from matplotlib import pyplot as plt

    setting = ("DeepMoD", "kdv", "S20")
    runs = _kdv_runs(TRUE, ~ALL)
    figure = figures.behaviors({setting: runs[TEST_SEEDS[0]]})
    upper, lower = figure.axes
    markers = {line.get_marker(): line for line in upper.lines}
    assert markers["*"].get_xdata() == [10 / 40]
    assert markers["o"].get_color() == figures._EXACT
    (mesh,) = lower.collections
    drawn = mesh.get_array()
    # True terms stand on top, and only they are left after the first change.
    assert drawn.shape == (len(KDV), 3)
    assert (drawn[:2].filled(-1) == 1).all()
    assert drawn[2:, 1:].mask.all()
    assert [text.get_text() for text in lower.get_yticklabels()][:2] == ["$u\\,u_{x}$", "$u_{xxx}$"]
    grid = figures.all_seeds({setting: runs, ("Weak-PDE-LEARN", "ad", "S20"): {}})
    assert len(grid.axes) == 4
    assert sum("not run yet" in text.get_text() for ax in grid.axes for text in ax.texts) == 2
    ends = [line.get_color() for ax in grid.axes[::2] for line in ax.lines if line.get_marker() == "o"]
    assert ends == [figures._EXACT, figures._WRONG]
    plt.close("all")


def test_only_counts_that_cannot_become_the_papers_are_called_different() -> None:
    setting = ("DeepMoD", "kdv", "S20")
    assert published.paths()[setting]["terminal"] == 5
    assert figures.differences({setting: _kdv_runs(TRUE, TRUE)}) == []
    # All visit the exact support and one loses it: its end and its held-out minimum are not the paper's.
    different = figures.differences({setting: _kdv_runs(TRUE, ~ALL)})
    assert [line.split(": ")[0] for line in different] == [
        "DeepMoD, KdV-S20, held-out minimum",
        "DeepMoD, KdV-S20, at the end",
    ]
    rows = figures.table_s9({setting: _kdv_runs(TRUE, ~ALL)}).rows
    assert rows == (("DeepMoD", "KdV-S20", "2 of 2 (5)", "1 of 2 (5)", "1 of 2 (5)"),)
    assert figures.missing({setting: _kdv_runs(TRUE)}) == {"DeepMoD, KdV-S20": list(TEST_SEEDS[1:])}
    (row,) = figures.stopping_table({setting: _kdv_runs(TRUE, ~ALL)}).rows
    assert row[1:] == ("1 of 2", "1 of 2", "2 of 2", "1 of 2")
    stories = [figures.describe_training(path) for path in _kdv_runs(TRUE, ~ALL).values()]
    assert stories[0].endswith("step 40: u*u_x, u_xxx")
    assert "then lost: first exact at step 10, in one interval" in stories[1]
    assert len(figures.visits({setting: _kdv_runs(TRUE, ~ALL)}).rows) == 2
    assert figures.last_change(_kdv_runs(~ALL)[TEST_SEEDS[0]]) == 0.75


def test_settings_without_a_training_are_named_and_late_sparsity_is_magnified() -> None:
    from matplotlib import pyplot as plt

    empty, setting = ("Weak-PDE-LEARN", "ad", "S20"), ("DeepMoD", "kdv", "S20")
    runs = _kdv_runs(TRUE, ~ALL)
    both = {setting: runs, empty: {}}
    assert figures.table_s9(both).rows[1][2:] == ("not run (5)", "not run (–)", "not run (0)")
    assert set(figures.stopping_table(both).rows[1][1:]) == {"not run"}
    late = {seed: replace(path, about={**path.about, "sparse_from": 20}) for seed, path in runs.items()}
    figure = figures.all_seeds({setting: late})
    plain, magnified = figure.axes[:2]
    assert plain.get_xlim() == (0, 1.01)
    assert magnified.get_xlim() == pytest.approx((0.5, 0.56))
    # The first visit is before the magnified part, and the end after it.
    assert {line.get_marker() for line in plain.lines} > {"*", "o"}
    assert not {line.get_marker() for line in magnified.lines} & {"*", "o"}
    assert figures.best(runs[TEST_SEEDS[1]]) == 1.0
    plt.close("all")


def test_the_ends_of_trainings_stand_beside_the_truth_with_their_recorded_errors() -> None:
    from matplotlib import pyplot as plt

    path = _kdv_runs(TRUE)[TEST_SEEDS[0]]
    path = replace(path, about={**path.about, "key": "known"}, fields=np.ones((1, 8, 6)))
    task = next(paths.paths(TEST_SEEDS))
    record = replace(runs.record(task), score={"e_u": 0.123})
    truth, ended = baselines.trained_fields([path], {"known": record}).axes
    assert paths.true_field(path).shape == (8, 6)
    titles = [ax.get_title() or ax.get_title(loc="left") for ax in (truth, ended)]  # as the style has it
    assert titles == ["the truth", "DeepMoD\n$E_u$ = 0.12"]
    assert truth.images[0].get_clim() == ended.images[0].get_clim()
    np.testing.assert_array_equal(ended.images[0].get_array(), np.ones((6, 8)))
    plt.close("all")


def test_costs_count_runs_and_name_what_is_missing() -> None:
    task = next(paths.paths(TEST_SEEDS))
    notes = [{"iterations": n, "stopped_by": why} for n, why in ((100, "convergence"), (300, "budget"))]
    made = [
        replace(runs.record(task), extra={"fit_seconds": 10.0 * (i + 1), "notes": note}, score={"e_u": 1})
        for i, note in enumerate(notes)
    ]
    settings = {"DeepMoD": {"kdv": {"max_iterations": 1000}, "ks": {"max_iterations": 1000}}}
    first, second = baselines.costs(made, settings).rows
    assert first[2:] == ("2", "15\n10 to 20", "200\n100 to 300", "1,000", "1")
    assert second[2:] == ("not run", "–", "–", "1,000", "–")
    cycles = replace(
        made[0],
        row="PINN-SR",
        parameters={"cycle_steps": 10},
        extra={"notes": {"iterations": {"adam": 5, "lbfgs": 4, "cycles": 2}, "stopped_by": "budget"}},
    )
    stages = {"adam_steps": 9, "lbfgs_iterations": 9, "cycles": 2, "cycle_steps": 10}
    trained = {"PINN-SR": {"kdv": stages}, "DL-PDE": {"kdv": {"steps": 7}, "ks": {"steps": 7}}}
    pinn, missing = baselines.costs([cycles], trained).rows
    assert pinn[4:6] == ("29", "38")
    assert missing == ("DL-PDE", "all", "not run", "–", "–", "7", "–")
