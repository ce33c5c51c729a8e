"""Studies: what is planned and skipped, what failures and killed workers leave, what verify notices."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fts import fitting
from fts.fields.frozen import field_path, load_field
from fts.lab.studies import __main__ as cli
from fts.lab.studies import plans, published, records, runs, verify, workers
from fts.lab.studies.records import RunRecord
from fts.lab.studies.runs import Task
from fts.params.paper import TEST_SEEDS
from fts.problems.problems import problem

TASK = runs.paper_task("main", "ks", "S20", 1301)


def finished(task: Task, e_xi: float = 0.01, exact: bool = True) -> RunRecord:
    """A record as a run of the task would leave it, with terms that score what it says."""
    shift = e_xi * np.sqrt(3)
    terms = {"u*u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0 + shift}
    if not exact:
        del terms["u_xx"]
    score = runs.score_terms(terms, task.problem) | {"e_u": 0.05}
    return replace(runs.record(task, error=""), terms=terms, score=score)


class Later:
    """A run that takes place when its outcome is asked for, as one on a busy worker does."""

    def __init__(self, run, task: Task) -> None:
        self.run, self.task, self.error = run, task, None

    def exception(self) -> Exception | None:
        try:
            self.record = self.run(self.task)
        except Exception as error:
            self.error = error
        return self.error

    def result(self) -> RunRecord:
        return self.record

    def release(self) -> None:
        pass


class Here:
    """A client with one worker, this process."""

    def submit(self, run, task, **_) -> Later:
        return Later(run, task)


@pytest.fixture
def here(monkeypatch) -> Here:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    monkeypatch.setattr(distributed, "as_completed", list)
    return Here()


def test_plans_are_the_papers_rows():
    main = list(plans.main(TEST_SEEDS))
    assert len(main) == 120
    ours = {(task.problem, task.protocol) for task in main if task.row == "paper"}
    assert ours == {cell[1:] for cell in published.main().cells}
    rows = {task.row for task in plans.ablations(TEST_SEEDS)}
    cells = published.adapters().cells | published.capacity().cells | published.objective().cells
    assert rows == {row for row, *_ in cells} - {"structured"} | {"coordinate, slow time"}
    for name, study in runs.STUDIES.items():
        keys = [task.key for task in study.tasks()]
        assert len(set(keys)) == len(keys), f"{name} plans one run twice"


def _with_tau(params, tau: float):
    return replace(params, svws=replace(params.svws, tau=tau))


def test_a_study_records_at_once_and_resumes(tmp_path, here):
    path, seen = tmp_path / "main.jsonl", []

    def run(task: Task) -> RunRecord:
        recorded = [record.seed for record in records.read(path)] if path.is_file() else []
        assert recorded == seen, "every finished run is on disk before the next one is asked for"
        seen.append(task.seed)
        return finished(task)

    tasks = [replace(TASK, seed=seed) for seed in (1, 2, 3)]
    workers.run_study(tasks[:2], path, here, run=run)
    workers.run_study(tasks, path, here, run=run)
    assert seen == [1, 2, 3]
    assert [record.seed for record in records.read(path)] == [1, 2, 3]
    changed = [replace(task, params=_with_tau(task.params, 0.6)) for task in tasks]
    workers.run_study(changed, path, here, run=run)
    assert seen == [1, 2, 3, 1, 2, 3], "other parameters are other runs"


def test_a_failing_run_is_recorded_and_repeated_only_on_request(tmp_path, here):
    path = tmp_path / "main.jsonl"
    broken = [replace(TASK, protocol="S20000", seed=seed) for seed in (1, 2)]
    made = workers.run_study(broken, path, here)
    assert len(made) == 2
    assert all("unknown protocol 'S20000'" in entry.error for entry in made)
    assert not workers.run_study(broken, path, here)
    assert len(workers.run_study(broken, path, here, again=True)) == 2
    assert records.summarize(records.read_study("main", tmp_path))["paper", "ks", "S20000", 0.0].exact == 0

    def lost(task: Task) -> RunRecord:
        raise MemoryError("the worker is gone")

    (record,) = workers.run_study([replace(TASK, seed=9)], path, here, run=lost)
    assert record.error == "MemoryError: the worker is gone"


def test_summaries_are_counts_and_medians():
    tasks = [replace(TASK, seed=seed) for seed in range(5)]
    made = [finished(task, e_xi=0.01 * (i + 1), exact=i != 4) for i, task in enumerate(tasks)]
    cell = records.summarize(made)["paper", "ks", "S20", 0.0]
    assert (cell.runs, cell.exact) == (5, 4)
    assert cell.e_xi == pytest.approx(0.03)
    assert records.summary([{}, {}]).e_xi == np.inf
    assert json.dumps(records.summary([{}, {}]).as_dict(), allow_nan=False)
    assert list(verify.compare({"e_xi": None}, {"e_xi": 0.1})) != []
    assert list(verify.compare({"e_xi": None}, {"e_xi": None})) == []


def _folder(tmp_path: Path, e_xi: float = 0.01) -> Path:
    """Records of the paper's row for all regimes, with terms that are the truth but for a shift."""
    for cell in published.main().cells:
        for seed in TEST_SEEDS:
            task = runs.paper_task("main", cell[1], cell[2], seed)
            terms = {str(term): value for term, value in problem(task.problem).equation.physical().items()}
            first = next(iter(terms))
            terms[first] *= 1 + e_xi
            score = runs.score_terms(terms, task.problem) | {"e_u": 0.01}
            records.append(
                tmp_path / "main.jsonl", replace(runs.record(task, error=""), terms=terms, score=score)
            )
    verify.write(tmp_path)
    return tmp_path


def test_all_runs_every_study_the_fields_before_what_selects_on_them(monkeypatch):
    names: list[str] = []
    monkeypatch.setattr(cli, "_run", lambda study, options: names.append(study.name) or int(len(names) == 3))
    assert cli.main(["all"]) == 1
    assert names[0] == "fields"
    assert sorted(names) == sorted(runs.STUDIES)


def test_verify_is_silent_when_all_follows(tmp_path, capsys):
    folder = _folder(tmp_path)
    assert list(verify.check(folder)) == []
    assert cli.main(["verify", "--folder", str(folder)]) == 0
    assert "30 runs checked, 0 differences" in capsys.readouterr().out


def test_verify_notices_a_changed_cell_a_changed_score_and_a_lost_recovery(tmp_path):
    folder = _folder(tmp_path)
    text = (folder / "tables.json").read_text()
    published = json.loads(text)
    cell = published["main"]["paper | ks-S20"]
    cell["e_xi"] += 1e-4
    (folder / "tables.json").write_text(json.dumps(published))
    assert any("main/paper | ks-S20/e_xi" in line for line in verify.check(folder))
    (folder / "tables.json").write_text(text)
    task = replace(TASK, seed=77)
    good = finished(task)
    assert list(verify.check_record(good)) == []
    forged = replace(good, score=good.score | {"e_xi": 0.001})
    assert any("e_xi is recorded as 0.001" in line for line in verify.check_record(forged))
    lost = finished(replace(TASK, seed=TEST_SEEDS[0]), exact=False)
    kept = [record for record in records.read(folder / "main.jsonl") if record.key != lost.key]
    (folder / "main.jsonl").unlink()
    records.append(folder / "main.jsonl", *kept, lost)
    lines = list(verify.check(folder))
    assert any("ks-S20 recovers 4 of 5, not 5" in line for line in lines)
    assert cli.main(["verify", "--folder", str(folder)]) != 0


def test_fresh_runs_are_held_against_the_committed_ones():
    committed = [finished(replace(TASK, seed=seed)) for seed in TEST_SEEDS]
    assert list(verify.compare_runs(committed, committed)) == []
    worse = [replace(record, score=record.score | {"e_u": 4 * record.score["e_u"]}) for record in committed]
    assert any("median e_u" in line for line in verify.compare_runs(worse, committed))
    lost = [*committed[:-1], finished(replace(TASK, seed=TEST_SEEDS[-1]), exact=False)]
    assert any("4 of 5 exact, committed 5 of 5" in line for line in verify.compare_runs(lost, committed))
    assert any("no fresh runs" in line for line in verify.compare_runs([], committed))
    other = [replace(record, row="another") for record in committed]
    assert any("no committed runs" in line for line in verify.compare_runs(other, committed))


def test_records_of_no_study_are_noticed(tmp_path):
    folder = _folder(tmp_path)
    records.append(folder / "forgotten.jsonl", finished(replace(TASK, study="forgotten")))
    assert any("forgotten.jsonl belongs to no study" in line for line in verify.check(folder))


@pytest.mark.parametrize(
    "task", [runs.weighted_task("main", "kdv", "T20", 1301), TASK], ids=["kernel", "paper"]
)
def test_a_task_runs_to_the_record_that_is_committed(task):
    """On the shipped field: the same terms, and coefficients, risks and errors to six digits."""
    (committed,) = [record for record in records.read_study("main") if record.key == task.key]
    repeated = runs.run(task)
    assert repeated.error == ""
    assert list(verify.check_record(repeated)) == []
    assert repeated.terms == pytest.approx(committed.terms, rel=1e-6)
    assert repeated.score["e_u"] == pytest.approx(committed.score["e_u"], rel=1e-6)
    assert repeated.extra["recurrence"] == committed.extra["recurrence"]
    assert repeated.extra["refits"].keys() == committed.extra["refits"].keys()


def test_compared_selectors_are_scored_as_they_are_recorded():
    task = replace(runs.paper_task("thresholds", "ad", "T20", 1301), method="freeze, then compare")
    (committed,) = [record for record in records.read_study("thresholds") if record.key == task.key]
    selectors = runs.run(task).extra["selectors"]
    assert selectors.keys() == committed.extra["selectors"].keys()
    for name, score in committed.extra["selectors"].items():
        assert selectors[name]["exact"] == score["exact"]
        assert selectors[name]["terms"] == pytest.approx(score["terms"], rel=1e-6)


def test_every_shipped_field_has_a_task_that_makes_it(root):
    planned = {
        field_path(task.problem, task.protocol, task.seed, task.noise, task.params.field.recipe)
        for task in plans.fields(TEST_SEEDS)
    }
    assert planned == set((root / "book" / "fields").glob("*.fts"))


def test_the_command_for_fields_makes_what_is_missing_or_old(tmp_path, monkeypatch):
    monkeypatch.setenv("FTS_FIELDS", str(tmp_path))
    made = []
    monkeypatch.setattr(fitting, "make", lambda observations, params: made.append(params) or FIELD)
    command = ["fields", "--seeds", "1301", "--problem", "kdv"]
    assert cli.main(command) == 0
    assert {params.recipe for params in made} == {"paper", "kernel", "travelling"}
    # two protocols by two recipes, and the layouts of fewer sensors by two kernels, one of them among those
    assert len(list(tmp_path.glob("kdv-*.fts"))) == len(made) == 4 + 2 * len(plans.SWEEP) - 1


FIELD = load_field("kdv", "S20", seed=1301)


def test_the_list_names_every_study(capsys):
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in runs.STUDIES)


@pytest.mark.slow
def test_the_run_of_a_killed_worker_is_retried(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    mark = tmp_path / "killed"
    tasks = [replace(TASK, seed=seed) for seed in (1, 2, 3)]
    # Made here: a worker process cannot import this module.
    outcomes = {task.seed: finished(task) for task in tasks[:2]} | {
        3: runs.record(tasks[2], error="ValueError: this run fails")
    }

    def run(task: Task) -> RunRecord:
        if task.seed == 2 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return outcomes[task.seed]

    path = tmp_path / "main.jsonl"
    with workers.workers(None, 2) as client:
        workers.run_study(tasks, path, client, run=run)
    assert mark.exists()
    result = {record.seed: record.error for record in records.read(path)}
    assert result == {1: "", 2: "", 3: "ValueError: this run fails"}


def page_faults() -> int:
    """Minor faults of a worker while it takes and frees the same megabyte over and over."""
    import resource

    for _ in range(20):
        np.ones(1 << 17)  # what stays comes first
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        np.ones(1 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.slow
def test_workers_keep_the_memory_they_free():
    pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    with workers.workers(None, 1) as client:
        faults = client.submit(page_faults).result()
    # A megabyte is 256 pages: returned to the system each time, it would fault 51,200 times.
    assert faults < 5_000


# A study of its own process: runs that write down who works on them, and take as long as they are told.
_STUDY = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from fts.lab.studies import runs, workers

folder, seconds, studies = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])


def run(task):
    (folder / f"{os.getpid()}.{task.seed}.started").touch()
    time.sleep(seconds)
    return runs.record(task, error="this run only waits")


if __name__ == "__main__":
    # Pickled by value: a worker process cannot import a script.
    run.__module__ = "__main__"
    tasks = [replace(runs.paper_task("main", "ks", "S20", 1301), seed=seed) for seed in range(6)]
    with workers.workers(None, 1) as client:
        (folder / f"{os.getpid()}.ready").touch()
        while len(list(folder.glob("*.ready"))) < studies:
            time.sleep(0.05)
        workers.run_study(tasks, folder / "main.jsonl", client, run=run)
"""


def _start_study(folder: Path, seconds: float, studies: int = 1) -> subprocess.Popen[bytes]:
    """A study of six runs; it begins once as many as `studies` are ready."""
    script = folder / "study.py"
    script.write_text(_STUDY)
    words = [sys.executable, str(script), str(folder), str(seconds), str(studies)]
    return subprocess.Popen(words, stderr=subprocess.PIPE)


def _until(condition, seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.1)
    return condition()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_workers_of_a_killed_study_end(tmp_path, how):
    psutil = pytest.importorskip("psutil", reason="Dask is not installed (extra `studies`)")
    study, family = _start_study(tmp_path, 300.0), []
    try:
        assert _until(lambda: any(tmp_path.glob("*.started"))), "the worker did not begin"
        family = psutil.Process(study.pid).children(recursive=True)
        busy = {int(path.name.split(".")[0]) for path in tmp_path.glob("*.started")}
        assert busy <= {process.pid for process in family}
        study.send_signal(how)
        _, alive = psutil.wait_procs(family, timeout=60)
        assert alive == [], "a study that is gone still has workers"
    finally:
        for process in (*family, study):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        study.communicate()


@pytest.mark.slow
def test_two_identical_studies_at_once_record_each_run_once(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    pair = [_start_study(tmp_path, 0.05, studies=2) for _ in range(2)]
    reported = [study.communicate(timeout=300)[1].decode() for study in pair]
    assert [study.returncode for study in pair] == [0, 0], reported
    assert len(list(tmp_path.glob("*.started"))) == 12, "the two did not meet: each was to run all six"
    assert sorted(record.seed for record in records.read(tmp_path / "main.jsonl")) == list(range(6))


@pytest.mark.slow
def test_a_study_listens_on_the_loopback_address_only():
    psutil = pytest.importorskip("psutil", reason="Dask is not installed (extra `studies`)")
    with workers.workers(None, 1) as client:
        here = psutil.Process()
        addresses = {
            connection.laddr.ip
            for process in (here, *here.children(recursive=True))
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        assert client.dashboard_link.startswith("http://127.0.0.1:")
    assert addresses == {"127.0.0.1"}


def test_every_committed_score_follows_from_its_terms(root):
    names = [path.stem for path in (root / "book" / "records").glob("*.jsonl") if path.stem in runs.STUDIES]
    assert "main" in names
    for name in names:
        for record in records.read_study(name):
            assert list(verify.check_record(record)) == []


def test_the_papers_row_is_recorded_completely_and_exactly():
    summary = records.summarize(records.read_study("main"))
    for row in ("paper", "projected", "kernel", "kernel, weighted"):
        for _, name, protocol in published.main().cells:
            cell = summary[row, name, protocol, 0.0]
            assert (cell.runs, cell.exact) == (5, 5), f"{row} {name}-{protocol}"


def test_runs_are_drawn_from_every_study_and_expensive_ones_are_counted():
    folder = records.records_folder()
    recorded = {name for name in runs.STUDIES if (folder / f"{name}.jsonl").is_file()}
    count = len(recorded)
    drawn, expensive = verify.draw(folder, count, 7, 60.0)
    assert {study.name for study, *_ in drawn} == recorded
    assert len(drawn) == count
    assert all(task.key == record.key for _, task, record in drawn)
    assert all(record.seconds <= 60 for *_, record in drawn)
    assert expensive["baselines"][1] == 180
    again, _ = verify.draw(folder, count, 7, 60.0)
    assert [task.key for _, task, _ in again] == [task.key for _, task, _ in drawn]


def test_a_run_made_again_is_held_against_its_record():
    record = finished(TASK)
    assert list(verify.compare_record(record, record)) == []
    lost = finished(TASK, exact=False)
    assert next(iter(verify.compare_record(lost, record))) == "exact False, recorded True"
    failed = runs.record(TASK, error="ValueError: no")
    assert list(verify.compare_record(failed, record)) == ["ValueError: no"]
    kernel = replace(record, method="two fields", parameters={})
    assert any("terms" in line for line in verify.compare_record(replace(kernel, terms=lost.terms), kernel))
    moved = replace(kernel, score=kernel.score | {"e_u": kernel.score["e_u"] * (1 + 1e-5)})
    assert any("e_u" in line for line in verify.compare_record(moved, kernel))
    # A trained field takes another path on another machine: its error may move a little.
    trained = replace(moved, parameters={"recipe": "paper"}, method=record.method)
    assert list(verify.compare_record(trained, replace(kernel, parameters={"recipe": "paper"}))) == []


def test_a_drawn_run_is_made_from_scratch(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FTS_FIELDS", "kept")
    (record,) = [
        r
        for r in records.read_study("baselines")
        if (r.row, r.problem, r.protocol, r.seed) == ("WSINDy", "kdv", "S20", TEST_SEEDS[0])
    ]
    records.append(tmp_path / "baselines.jsonl", record)
    assert cli.main(["reproduce", "--folder", str(tmp_path), "--runs", "5"]) == 0
    assert "1 runs made again, 0 differ" in capsys.readouterr().out
    assert os.environ["FTS_FIELDS"] == "kept"
