"""Runs the studies of the book: `python -m fts.lab.studies NAME`; `list` shows the names."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm.auto import tqdm

from fts import fitting
from fts.fields.frozen import field_path
from fts.lab.studies import calibration, choose, honesty, paths, plans, records, settle, verify
from fts.lab.studies.runs import Task
from fts.lab.studies.workers import one_thread, run_study, workers
from fts.params.paper import DEVELOPMENT_SEEDS, TEST_SEEDS

# Studies whose seeds draw more than sensors and noise, with records of their own shape.
_OWN_SEEDS = {"honesty": honesty, "calibration": calibration}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    one_thread()
    if options.study == "list":
        for name, plan in plans.STUDIES.items():
            print(f"{name:12} {plan.__doc__}")
        return 0
    if options.study == "verify":
        return verify.main(options.folder)
    if options.study == "reproduce":
        return verify.reproduce(options.folder)
    if options.study == "choose":
        methods = options.method.split(";") if options.method else ()
        problems = options.problem.split(",") if options.problem else ()
        choose.write(options.folder, methods=methods, problems=problems)
        return 0
    if options.study == "settle":
        settle.write(options.folder)
        return 0
    if options.study == "tables":
        verify.write(options.folder)
        return 0
    if options.study in _OWN_SEEDS:
        tasks = list(_OWN_SEEDS[options.study].tasks(_own(options.study, options.seeds)))
    else:
        tasks = list(plans.STUDIES[options.study](_seeds(options.seeds)))
    tasks = [task for task in tasks if _wanted(task, options)]
    if options.study == "fields":
        return _fields(tasks, options.retrain)
    path = options.folder / f"{options.study}.jsonl"
    with workers(options.scheduler, options.workers) as client:
        if options.study in _OWN_SEEDS:
            made = run_study(tasks, path, client, again=options.again, run=_OWN_SEEDS[options.study].run)
        elif options.study == "paths":
            made = paths.record_study(tasks, options.folder, client, again=options.again)
        else:
            made = run_study(tasks, path, client, again=options.again)
    verify.write(options.folder)
    failed = [one for one in made if one.error]
    for one in failed:
        print(f"failed: {one.problem}-{one.protocol} {one.row} seed {one.seed}: {one.error}", file=sys.stderr)
    return 1 if failed else 0


def _fields(tasks: Sequence[Task], retrain: bool) -> int:
    """Makes and saves the fields that ship with the book; current ones stay unless `retrain`."""
    for task in tqdm(tasks, desc="fields", unit="field", disable=None):
        observations, params = task.observations(), task.params.field
        if retrain or fitting.shipped_field(observations, params) is None:
            field = fitting.make(observations, params)
            field.save(field_path(task.problem, task.protocol, task.seed, task.noise, params.recipe))
    return 0


def _seeds(text: str) -> tuple[int, ...]:
    named = {"test": TEST_SEEDS, "development": DEVELOPMENT_SEEDS}
    if text in named:
        return named[text]
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise SystemExit(f"--seeds {text!r}: write test, development, or numbers like 1301,1709") from None


def _own(study: str, text: str) -> Sequence[int]:
    """Seeds of drawn problems or layouts: the study's, those that decide settings, or numbers."""
    ranges = {
        "honesty": {"test": honesty.BENCHMARK, "development": honesty.DEVELOPMENT[:500]},
        "calibration": {"test": calibration.LAYOUTS, "development": calibration.DEVELOPMENT},
    }[study]
    return ranges[text] if text in ranges else _seeds(text)


def _wanted(task: Task, options: argparse.Namespace) -> bool:
    return (not options.problem or task.problem in options.problem.split(",")) and (
        not options.method or task.row in options.method.split(";")
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fts.lab.studies", description=__doc__)
    parser.add_argument(
        "study",
        choices=[*plans.STUDIES, *_OWN_SEEDS, "list", "choose", "settle", "tables", "verify", "reproduce"],
    )
    parser.add_argument("--scheduler", help="address of a Dask scheduler; local processes otherwise")
    parser.add_argument("--workers", type=int, help="local processes; all cores otherwise")
    parser.add_argument("--seeds", default="test", help="test, development, or numbers like 1301,1709")
    parser.add_argument("--problem", help="only these problems, like ks,ad")
    parser.add_argument("--method", help="only these rows, separated by semicolons")
    parser.add_argument("--again", action="store_true", help="repeat runs recorded as failed")
    parser.add_argument("--retrain", action="store_true", help="with `fields`: refit fields that are there")
    parser.add_argument("--folder", type=Path, default=records.records_folder(), help="where records go")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
