"""The calibration of verdicts counts what they say, and its records follow from their terms."""

import numpy as np

from fts.discovery.evidence import LEAST_SAMPLES
from fts.lab.studies import calibration, records, runs
from fts.lab.studies.plans import verdicts
from fts.lab.studies.records import RunRecord
from fts.params.paper import DEFAULT_LIBRARIES, TEST_SEEDS
from fts.problems.development import draw


def _run(status: str, exact: bool, e_xi: float = 0.0, error: float = 0.1) -> RunRecord:
    (task,) = calibration.verdict_calibration([1])
    extra = {"status": status, "truth": {"u": 1.0}, "errors": {"u": error}}
    record = runs.record(task, terms={"u": 1.15}, score={"exact": exact, "e_xi": e_xi}, extra=extra)
    return record


def test_counts_by_hand():
    made = [
        _run("identified", True, 0.01),
        _run("identified", True, 0.2, error=0.01),
        _run("identified", False),
        _run("ambiguous", True, 0.04),
        _run("not identifiable", False),
    ]
    summary = calibration.summarize(made)
    assert (summary.runs, summary.identified, summary.wrong) == (5, 3, 1)
    assert (summary.close, summary.called) == (2, 1)
    assert (summary.coefficients, summary.covered) == (2, 1)
    low, high = summary.wrong_interval
    assert 0 < low < 1 / 3 < high < 1


def test_the_ranges_that_decide_and_that_judge_are_apart():
    assert not set(calibration.VERDICT_DEVELOPMENT) & set(calibration.VERDICT_BENCHMARK)
    assert len(calibration.VERDICT_BENCHMARK) >= 500


def test_a_run_records_what_was_said(tmp_path):
    grid = next(seed for seed in range(1000, 1100) if draw(seed, DEFAULT_LIBRARIES[1]).layout != "scattered")
    (task,) = calibration.verdict_calibration([grid])
    record = calibration.run_verdict(task)
    assert record.error == ""
    assert record.extra["status"] in ("identified", "ambiguous", "not identifiable")
    assert np.isfinite(record.extra["margin"])


def test_the_committed_records_follow_from_their_terms():
    assert list(calibration.check_verdicts(records.records_folder())) == []


def test_no_verdict_on_a_known_problem_is_confidently_wrong():
    """Shocks from eighty layouts, the paper's regimes, 43 terms under heavy noise: all runs are there."""
    made = records.read_study("verdicts")
    assert {record.key for record in made} == {task.key for task in verdicts(TEST_SEEDS)}
    reported = [record for record in made if record.extra["notes"]["status"] == "identified"]
    assert all(record.score["exact"] for record in reported)
    shocks = [record for record in made if record.problem == "burgers"]
    assert {record.noise for record in shocks} == {0.0, 0.05, 0.1, 0.2}
    regimes = [record for record in made if record.row == "defaults" and record.problem != "burgers"]
    assert len(regimes) == 60
    assert all(record in reported for record in regimes + shocks)


def test_every_problem_of_the_benchmark_has_as_many_samples_as_a_verdict_needs():
    made = records.read_study("honesty")
    assert {record.key for record in made} == {task.key for task in calibration.verdict_calibration()}
    assert min(record.extra["samples"] for record in made) >= LEAST_SAMPLES
