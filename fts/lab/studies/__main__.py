"""Runs the studies of the book: `python -m fts.lab.studies NAME`, or `all`; `list` shows the names."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tqdm.auto import tqdm

from fts.lab.studies import records, tuning, verify
from fts.lab.studies.runs import STUDIES, Study, Task
from fts.lab.studies.workers import one_thread, run_all, workers


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    one_thread()
    if options.study in _COMMANDS:
        return _COMMANDS[options.study](options) or 0
    # Fields first, for studies select on them; each goes on after its last record.
    every = sorted(STUDIES, key=lambda name: STUDIES[name].recorded)
    names = every if options.study == "all" else [options.study]
    return max(_run(STUDIES[name], options) for name in names)


def _run(study: Study, options: argparse.Namespace) -> int:
    """Makes what the study has not recorded yet; returns the exit status."""
    tasks = [task for task in study.tasks(seeds(study, options.seeds)) if _wanted(task, options)]
    if not study.recorded:
        return _fields(tasks, options.retrain)
    try:
        with workers(options.scheduler, options.workers) as client:
            made = run_all(study, tasks, options.folder, client, again=options.again)
    except ConnectionError as error:
        print(error, file=sys.stderr)
        return 2
    verify.write(options.folder)
    failed = [record for record in made if record.error]
    for record in failed:
        print(f"failed: {record.label}: {record.error}", file=sys.stderr)
    return 1 if failed else 0


def seeds(study: Study, text: str) -> Sequence[int]:
    """Seeds by the name that the study has for them, or as numbers."""
    if text in study.seeds:
        return study.seeds[text]
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise SystemExit(f"--seeds {text!r}: write test, development, or numbers like 1301,1709") from None


def _list(options: argparse.Namespace) -> None:
    for name, study in STUDIES.items():
        print(f"{name:17} {study.plan.__doc__}")


def _reproduce(options: argparse.Namespace) -> int:
    if options.runs:
        return verify.rerun(options.folder, options.runs, options.draw, options.seconds)
    return verify.reproduce(options.folder)


def _tune_baselines(options: argparse.Namespace) -> None:
    methods = options.method.split(";") if options.method else ()
    problems = options.problem.split(",") if options.problem else ()
    tuning.write_baselines(options.folder, methods=methods, problems=problems)


# What the command does beside running studies.
_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int | None]] = {
    "list": _list,
    "tune-baselines": _tune_baselines,
    "tune-two-fields": lambda options: tuning.write_two_fields(options.folder),
    "tables": lambda options: verify.write(options.folder),
    "verify": lambda options: verify.main(options.folder),
    "reproduce": _reproduce,
}


def _fields(tasks: Sequence[Task], retrain: bool) -> int:
    """Makes and saves the fields that ship with the book; current ones stay unless `retrain`."""
    from fts import fitting
    from fts.fields.frozen import field_path

    for task in tqdm(tasks, desc="fields", unit="field", disable=None):
        observations, params = task.observations(), task.params.field
        if retrain or fitting.shipped_field(observations, params) is None:
            field = fitting.make(observations, params)
            field.save(field_path(task.problem, task.protocol, task.seed, task.noise, params.recipe))
    return 0


def _wanted(task: Task, options: argparse.Namespace) -> bool:
    wanted = ((options.problem, ",", task.problem), (options.method, ";", task.row))
    return all(not text or name in text.split(sign) for text, sign, name in wanted)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fts.lab.studies", description=__doc__)
    add = parser.add_argument
    add("study", choices=["all", *STUDIES, *_COMMANDS])
    add("--scheduler", help="address of a Dask scheduler; local processes otherwise")
    add("--workers", type=int, help="local processes; all cores otherwise")
    add("--seeds", default="test", help="test, development, or numbers like 1301,1709")
    add("--problem", help="only these problems, like ks,ad")
    add("--method", help="only these rows, separated by semicolons")
    add("--again", action="store_true", help="repeat runs recorded as failed")
    add("--retrain", action="store_true", help="with `fields`: refit fields that are there")
    add("--folder", type=Path, default=records.records_folder(), help="where records go")
    add("--runs", type=int, help="with `reproduce`: make so many recorded runs again")
    add("--draw", type=int, default=7, help="with `--runs`: seed of the draw")
    add("--seconds", type=float, default=120.0, help="with `--runs`: leave out what took longer")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
