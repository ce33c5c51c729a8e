"""The second benchmark plans what it says, and counts what is wrong by its own definitions."""

from collections import Counter
from dataclasses import replace

import pytest

from fts.lab.studies import beyond, records, runs
from fts.lab.studies.beyond import DEFECT, OUTSIDE
from fts.problems.outside import CLASSES, DEFECTS


def _made(row, status, *, exact=False, share=0.3, value=1.0, reasons=()):
    task = next(task for task in beyond.verdicts_beyond(range(3)) if task.row == row)
    extra = {"status": status, "share": share, "names": ["u^2*u_x"], "reasons": list(reasons)}
    extra |= {"truth": {"u": 1.0}, "errors": {"u": 0.1}, "complete": row == DEFECT}
    extra |= {"noise": 0.1, "dimension": 1, "periodic": True}
    return runs.record(task, terms={"u": value}, score={"exact": exact, "e_xi": 0.0}, extra=extra)


def test_every_class_and_every_defect_is_planned_in_turn():
    tasks = list(beyond.verdicts_beyond())
    rows = Counter(task.row for task in tasks)
    assert rows[OUTSIDE] >= 400
    assert rows[DEFECT] >= 200
    counts = Counter(task.problem for task in tasks)
    assert set(counts) == {kind.name for kind in CLASSES} | set(DEFECTS)
    first = Counter(task.problem for task in tasks[:75])
    assert set(first) == set(counts)
    assert not set(beyond.DEVELOPMENT) & set(beyond.BENCHMARK)


def test_what_counts_as_wrong():
    assert beyond.is_wrong(_made(OUTSIDE, "identified"))
    assert not beyond.is_wrong(_made(OUTSIDE, "ambiguous"))
    assert not beyond.is_wrong(_made(OUTSIDE, "identified", share=0.04))
    assert not beyond.is_wrong(_made(DEFECT, "identified", exact=True, value=1.3))
    assert beyond.is_wrong(_made(DEFECT, "identified", exact=True, value=1.5))
    assert beyond.is_wrong(_made(DEFECT, "identified", exact=False))


def test_rates_by_hand():
    made = [_made(OUTSIDE, "identified"), _made(OUTSIDE, "ambiguous", reasons=["asks for u^2*u_x (9)"])]
    made += [_made(OUTSIDE, "identified", share=0.01), _made(DEFECT, "identified", exact=True, value=1.25)]
    assert beyond.wrong(made[:3]) == beyond.Rate(1, 2)
    assert beyond.named(made) == beyond.Rate(1, 2)
    assert beyond.covered(made) == beyond.Rate(0, 1)
    assert beyond.called(made) == beyond.Rate(1, 1)
    assert str(beyond.Rate(1, 2)) == "1/2 = 50% (1% to 99%)"
    assert str(beyond.Rate(0, 0)) == "–"


@pytest.mark.slow
def test_a_run_records_what_was_drawn_and_said():
    for task in beyond.verdicts_beyond([11_001, 11_003]):
        record = beyond.run_beyond(replace(task, seed=task.seed))
        assert record.error == ""
        assert record.extra["status"] in ("identified", "ambiguous", "not identifiable")


def test_the_committed_records_follow_from_their_terms():
    assert list(beyond.check_beyond(records.records_folder())) == []
