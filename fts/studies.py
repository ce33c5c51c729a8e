"""Runs the studies of the book: `python -m fts.studies NAME`; `list` shows the names.

A finished run is appended to book/records/NAME.jsonl at once, so a study goes on where it was stopped. Runs
are spread over Dask: local processes of one thread each, or the workers of a scheduler somewhere else.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from fts import plans, records, runs, tables, verify
from fts.params import DEVELOPMENT_SEEDS, TEST_SEEDS
from fts.records import RunRecord
from fts.runs import Task
from fts.shipped import field_path

# Dask has workers return freed memory to the system at once. Training frees and takes the same megabyte at
# every step and would spend half of its time on page faults; so would a profiler that stops it all the time.
_KEEP_MEMORY = str(1 << 30)
_DASK = {
    "distributed.nanny.pre-spawn-environ": {
        "MALLOC_TRIM_THRESHOLD_": _KEEP_MEMORY,
        "MALLOC_MMAP_THRESHOLD_": _KEEP_MEMORY,
        **dict.fromkeys(runs.THREAD_VARIABLES, "1"),
    },
    "distributed.worker.profile.enabled": False,
}
# Times Dask moves a run whose worker died to another one before it is recorded as failed.
_RETRIES = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    runs.one_thread()
    if options.study == "list":
        for name, plan in plans.STUDIES.items():
            print(f"{name:12} {plan.__doc__}")
        return 0
    if options.study == "verify":
        return verify.main(options.folder)
    if options.study == "reproduce":
        return verify.reproduce(options.folder)
    if options.study == "tables":
        verify.write(options.folder)
        return 0
    tasks = list(plans.STUDIES[options.study](_seeds(options.seeds)))
    tasks = [task for task in tasks if _wanted(task, options)]
    if options.study == "fields":
        return _fields(tasks, options.retrain)
    path = options.folder / f"{options.study}.jsonl"
    with workers(options.scheduler, options.workers) as client:
        made = run_study(tasks, path, client, again=options.again)
    verify.write(options.folder)
    failed = [one for one in made if one.error]
    for one in failed:
        print(
            f"failed: {one.problem}-{one.protocol} {one.method} seed {one.seed}: {one.error}", file=sys.stderr
        )
    return 1 if failed else 0


def run_study(
    tasks: Iterable[Task],
    path: Path,
    client: Any,
    *,
    again: bool = False,
    run: Callable[[Task], RunRecord] = runs.run,
) -> list[RunRecord]:
    """Runs the tasks `path` does not record yet, appending each as it finishes; `again` repeats failures."""
    known = {one.key: one for one in records.read(path)} if path.is_file() else {}
    todo = [task for task in tasks if task.key not in known or (again and known[task.key].error)]
    made = []
    with tqdm(total=len(todo), desc=path.stem, unit="run", disable=None) as bar:
        for record in _finished(client, run, todo):
            records.append(path, record)
            made.append(record)
            bar.set_postfix_str(f"{record.problem}-{record.protocol} {record.seed}: {_outcome(record)}")
            bar.update()
    return made


@contextmanager
def workers(scheduler: str | None, count: int | None) -> Iterator[Any]:
    """A Dask client: of `scheduler`, or of `count` local processes (all cores) with one thread each."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise ValueError("studies run on Dask: install the extra, pip install 'fts[studies]'") from None
    if scheduler:
        with Client(scheduler) as client:
            yield client
        return
    # Any free port: two studies side by side would quarrel over the usual one.
    local: dict[str, Any] = {
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": ":0",
        "silence_logs": logging.CRITICAL,
    }
    with (
        dask.config.set(_DASK | {"distributed.scheduler.allowed-failures": _RETRIES}),
        LocalCluster(n_workers=count or os.cpu_count() or 1, **local) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _finished(client: Any, run: Callable[[Task], RunRecord], tasks: Sequence[Task]) -> Iterator[RunRecord]:
    from distributed import as_completed

    # Dask hands the run of a dead worker to another; `pure=False` keeps runs of an earlier study apart.
    futures = {client.submit(run, task, pure=False): task for task in tasks}
    for future in as_completed(futures):
        error = future.exception()
        if error is None:
            yield future.result()
        else:
            yield runs.failure(futures[future], f"{type(error).__name__}: {error}")
        future.release()


def _fields(tasks: Sequence[Task], retrain: bool) -> int:
    """Fits and saves the fields that ship with the book; those already there stay unless `retrain`."""
    for task in tqdm(tasks, desc="fields", unit="field", disable=None):
        path = field_path(task.problem, task.protocol, task.seed, task.noise, task.recipe)
        if retrain or not path.is_file():
            observations = runs.observations_of(task)
            field = runs.fit(task, observations) if retrain else runs.obtain(task, observations)[0]
            field.save(path)
    return 0


def _outcome(record: RunRecord) -> str:
    if record.error:
        return "failed"
    word = "exact" if record.score["exact"] else "not exact"
    return f"{word}, E_xi {record.score['e_xi']:.2g}, E_u {record.score['e_u']:.2g}"


def _seeds(text: str) -> tuple[int, ...]:
    named = {"test": TEST_SEEDS, "development": DEVELOPMENT_SEEDS}
    if text in named:
        return named[text]
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise SystemExit(f"--seeds {text!r}: write test, development, or numbers like 1301,1709") from None


def _wanted(task: Task, options: argparse.Namespace) -> bool:
    return (not options.problem or task.problem in options.problem.split(",")) and (
        not options.method or task.method in options.method.split(";")
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fts.studies", description=__doc__)
    parser.add_argument("study", choices=[*plans.STUDIES, "list", "tables", "verify", "reproduce"])
    parser.add_argument("--scheduler", help="address of a Dask scheduler; local processes otherwise")
    parser.add_argument("--workers", type=int, help="local processes; all cores otherwise")
    parser.add_argument("--seeds", default="test", help="test, development, or numbers like 1301,1709")
    parser.add_argument("--problem", help="only these problems, like ks,ad")
    parser.add_argument("--method", help="only these rows, separated by semicolons")
    parser.add_argument("--again", action="store_true", help="repeat runs recorded as failed")
    parser.add_argument("--retrain", action="store_true", help="with `fields`: refit fields that are there")
    parser.add_argument("--folder", type=Path, default=tables.records_folder(), help="where records go")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
