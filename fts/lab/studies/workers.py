"""Tasks -> records: spread over Dask, each appended as it finishes, so a study goes on where it was stopped.

Workers are local processes of one thread each, or those of a scheduler somewhere else.
"""

import logging
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from fts.lab.studies import records, runs
from fts.lab.studies.records import RunRecord, grouped
from fts.lab.studies.runs import Study, Task

Made = list[RunRecord]

# Parallelism is over runs: linear algebra stays on one thread.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Dask has workers return freed memory to the system at once. Training frees and takes the same megabyte at
# every step and would spend half of its time on page faults; so would a profiler that stops it all the time.
_KEEP_MEMORY = str(1 << 30)
_DASK = {
    "distributed.nanny.pre-spawn-environ": {
        "MALLOC_TRIM_THRESHOLD_": _KEEP_MEMORY,
        "MALLOC_MMAP_THRESHOLD_": _KEEP_MEMORY,
        **dict.fromkeys(_THREAD_VARIABLES, "1"),
    },
    "distributed.worker.profile.enabled": False,
    # Dask would serve state and logs over HTTP to whoever asks, whatever protects the rest (`dask_setup`).
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.scheduler.preload": [__name__],
    "distributed.worker.preload": [__name__],
    # Times Dask moves a run whose worker died to another one before it is recorded as failed.
    "distributed.scheduler.allowed-failures": 3,
}


def run_all(study: Study, tasks: Iterable[Task], folder: Path, client: Any, *, again: bool = False) -> Made:
    """Runs what the folder does not record yet; each record goes to the study its task belongs to."""
    made: Made = []
    for name, part in grouped((task.study, task) for task in tasks).items():
        run, complete = (partial(_in_folder, call, folder) for call in (study.run, study.complete))
        path = folder / f"{name}.jsonl"
        made += run_study(part, path, client, again=again, run=run, complete=complete)
    return made


def run_study(
    tasks: Iterable[Task],
    path: Path,
    client: Any,
    *,
    again: bool = False,
    run: Callable[[Task], RunRecord] | None = None,
    complete: Callable[[Task], bool] = lambda task: True,
) -> Made:
    """Runs the tasks `path` does not record yet, appending each as it finishes; `again` repeats failures.

    A recorded task that is not `complete`, because the run leaves more than its record, runs once more.
    Trainings keep their state beside `path` until they are recorded, so a killed study loses minutes.
    """
    run = run or partial(runs.run, folder=path.parent)
    failed = {record.key: bool(record.error) for record in records.read(path)} if path.is_file() else {}

    def wanted(task: Task) -> bool:
        return task.key not in failed or (again if failed[task.key] else not complete(task))

    todo, made = list(filter(wanted, tasks)), []
    with tqdm(total=len(todo), desc=path.stem, unit="run", disable=None) as bar:
        for record in _finished(client, run, todo):
            records.append(path, record)
            runs.training_file(path.parent, record).unlink(missing_ok=True)
            made.append(record)
            bar.set_postfix_str(f"{record.problem}-{record.protocol} {record.seed}: {_outcome(record)}")
            bar.update()
    if made:
        records.seal(path)
    return made


def _in_folder(call: Callable[[Task, Path], Any], folder: Path, task: Task) -> Any:
    return call(task, folder)


@contextmanager
def workers(scheduler: str | None, count: int | None) -> Iterator[Any]:
    """A Dask client: of `scheduler`, or of `count` local processes (all cores) with one thread each."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise ValueError("studies run on Dask: install the extra, pip install 'fts[studies]'") from None
    if scheduler:
        try:
            client = Client(scheduler)
        except OSError as error:
            raise ConnectionError(f"no Dask scheduler answers at {scheduler}: {error}") from None
        with client:
            yield client
        return
    # Any free port, closed by `dask_setup`; without an address 8787 is tried, as by any other study.
    local: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "protocol": "tls"}
    local |= {"security": _security(), "silence_logs": logging.CRITICAL}
    local |= {"n_workers": count or os.cpu_count() or 1, "threads_per_worker": 1, "processes": True}
    with dask.config.set(_DASK), LocalCluster(**local) as cluster, Client(cluster) as client:
        yield client


def dask_setup(server: Any) -> None:
    """Close the HTTP server of a scheduler or worker; Dask calls this by its name when one has started."""
    server.http_server.stop()


def _security() -> Any:
    """A certificate for one cluster, kept in memory: other users, who lack it, cannot submit code.

    `Security.temporary` would ask for another package; the command comes with the library that Python uses.
    """
    from distributed import Security

    curve = "ec -pkeyopt ec_paramgen_curve:prime256v1"
    words = f"openssl req -x509 -newkey {curve} -nodes -days 365 -subj /CN=fts -keyout - -out -".split()
    try:
        made = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"workers are protected by the command openssl ({error}): install it") from None
    key, begin, end = made.stdout.partition("-----BEGIN CERTIFICATE-----")
    certificate, options = begin + end, {}
    for role in ("client", "scheduler", "worker"):
        options |= {f"tls_{role}_key": key, f"tls_{role}_cert": certificate}
    return Security(require_encryption=True, tls_ca_file=certificate, **options)


def _finished(client: Any, run: Callable[[Task], RunRecord], tasks: Sequence[Task]) -> Iterator[RunRecord]:
    from distributed import as_completed
    from distributed.client import FutureCancelledError

    # Dask hands the run of a dead worker to another; `pure=False` keeps runs of an earlier study apart.
    futures = {client.submit(run, task, pure=False): task for task in tasks}
    for future in as_completed(futures):
        error = future.exception()
        if error is None:
            try:
                record = future.result()
            except FutureCancelledError:  # nobody here cancels
                remedy = "start the study again, it goes on after the last record"
                raise ConnectionError(f"the Dask scheduler is gone: {remedy}") from None
            yield record
        else:
            yield runs.record(futures[future], error=f"{type(error).__name__}: {error}")
        future.release()


def _outcome(record: RunRecord) -> str:
    if record.error:
        return "failed"
    field = f"E_u {record.score['e_u']:.2g}" if "e_u" in record.score else ""
    if "exact" not in record.score:  # a study of fields selects nothing
        return field
    word = "exact" if record.score["exact"] else "not exact"
    return f"{word}, E_xi {record.score['e_xi']:.2g}{f', {field}' if field else ''}"


def one_thread() -> None:
    """Keep linear algebra of this process, and of those it starts, on one thread."""
    for name in _THREAD_VARIABLES:
        os.environ[name] = "1"
