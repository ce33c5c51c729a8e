"""Samples that need not fit in memory: seconds, memory, workers of Dask, and what more samples would take.

Prints one line per figure; `--record FILE` keeps the figures, which the book reads. Samples of a known
equation are written to Parquet files in a temporary folder, 2.4 GB for the largest, and every size is fitted
in a process of its own, so that its peak of memory is its own. Seconds of one process are CPU seconds, those
of workers are seconds on the clock; `make bench` sets one thread. The load of the machine stands beside both.
"""

import argparse
import contextlib
import io
import json
import math
import multiprocessing
import operator
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _timing import cpu, growth_line
from tqdm.auto import tqdm

import fts
from fts import cli, containers
from fts.fitting import fit_posterior
from fts.io import passes, streams
from fts.io.passes import reduce_chunks
from fts.io.streams import SampleStream, survey_chunk
from fts.kernel.streamed import StreamedPosterior, sum_chunk
from fts.lab.studies.workers import workers
from fts.params.paper import DEVELOPMENT_SEEDS

SEED = DEVELOPMENT_SEEDS[0]
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
# What was promised: seconds per sample of the streamed sizes within this factor, megabytes, seconds by size.
STREAMED, FACTOR, MEGABYTES, SECONDS = SIZES[3:], 1.5, 600, {10_000_000: 60.0, 100_000_000: 600.0}
# Samples of the comparison of one worker with two, turns each, and how many times as fast two should be.
SHARED, TURNS, FASTER = 10_000_000, 2, 1.7
PROJECTED = tuple((count, many) for count in (10**9, 10**10) for many in (16, 256))
COMMAND = 240.0  # seconds in which the command gave no answer to as many before
# A dense Gaussian process gets twice the samples until a fit takes this many seconds.
DENSE, LIMIT = 500, 10.0
NOT_MEASURED = (
    "more than two workers",
    "a network between them",
    "storage that many workers read at once",
    "workers that are slower than others, or lost",
)
BYTES = 24  # of a sample in a file
TRIVIAL = 2000  # tasks whose handling is timed
NOISE, WAVES = 0.1, (1, 2, 3, 4)
EQUATION, LIBRARY = {"u_x": -1.0, "u_xx": 0.2}, ["u", "u^2", "u_x", "u*u_x", "u_xx", "u_xxx", "u_xxxx"]
BOX = fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))


def main() -> None:
    """All figures, or those of the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="fits, dense, workers, command; or all")
    parser.add_argument("--record", type=Path, metavar="FILE", help="a file whose figures are replaced")
    parser.add_argument("--largest", type=float, default=SIZES[-1], help="samples of the largest file")
    options = parser.parse_args()
    parts: dict[str, Callable[[Path], dict[str, Any]]] = {
        "fits": lambda folder: {"fits": _growth(folder, options.largest)},
        "dense": lambda _: {"dense": _dense()},
        "workers": _on_workers,
        "command": lambda folder: {"command": _by_command(folder)},
    }
    for part in options.parts or parts:
        with tempfile.TemporaryDirectory() as folder:
            figures = parts[part](Path(folder))
        if options.record:
            kept = json.loads(options.record.read_text()) if options.record.is_file() else {}
            text = json.dumps(kept | {"cores": os.cpu_count()} | figures, indent=1, sort_keys=True) + "\n"
            containers.write_atomic(options.record, text.encode())


def _wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """A solution of u_t = -u_x + 0.2 u_xx."""
    decay, speed = EQUATION["u_xx"], -EQUATION["u_x"]
    return sum(
        (np.exp(-decay * k * k * t) * np.sin(k * (x - speed * t) + k * k) for k in WAVES), np.zeros(())
    )


def _write(path: Path, count: int) -> None:
    """So many scattered samples in row groups of a block."""
    import pyarrow as pa
    from pyarrow import parquet

    rng, schema = np.random.default_rng(SEED), pa.schema([(name, pa.float64()) for name in "xtu"])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, count, streams.BLOCK):
            size = min(streams.BLOCK, count - start)
            x, t = 2 * np.pi * rng.random(size), rng.random(size)
            u = _wave(x, t) + NOISE * rng.standard_normal(size)
            file.write_table(pa.table({"x": x, "t": t, "u": u}, schema))


def _growth(folder: Path, largest: float) -> list[dict[str, Any]]:
    """Fits of files of every size."""
    fits = []
    for count in SIZES:
        path = folder / f"{count}.parquet"
        if count > largest or shutil.disk_usage(folder).free < 2 * BYTES * count:
            print(f"{f'large: {count:,} samples':<52} not run: more than asked for, or than the disk takes")
            continue
        _apart(_write, path, count)
        fit = _apart(_fit, path, count)
        fits.append(fit)
        _promise(f"large: {count:,} samples from Parquet", fit["seconds"], SECONDS.get(count), "s")
        if count in STREAMED:
            _promise("  its peak of memory", fit["megabytes"], MEGABYTES, "MB")
        errors = f"E_u {fit['field_error']:.1e}  E_xi {fit['coefficient_error']:.1e}  {fit['equation']}"
        print(f"{'  errors of field and coefficients':<52} {errors}")
        path.unlink()
    _per_sample([fit for fit in fits if fit["samples"] in STREAMED])
    return fits


def _fit(path: Path, count: int) -> dict[str, Any]:
    """Seconds and memory of a fit of all samples in the file, and errors of the field and its equation."""
    load, clock, began = os.getloadavg()[0], time.perf_counter(), time.process_time()
    fitted = fit_posterior(fts.stream_samples(path, BOX), progress=False)
    seconds, elapsed, megabytes = time.process_time() - began, time.perf_counter() - clock, _peak()
    assert fitted.count == count
    x, t = np.linspace(0, 2 * np.pi, 64, endpoint=False), np.linspace(0, 1, 33)
    truth = _wave(x[:, None], t)
    selection = fts.select(fitted.field, LIBRARY)
    values = selection.coefficients
    off = [values.get(term, 0.0) - EQUATION.get(term, 0.0) for term in {*values, *EQUATION}]
    return {
        "samples": count,
        "seconds": round(seconds, 3),
        "elapsed": round(elapsed, 3),
        "megabytes": round(megabytes),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "field_error": float(np.linalg.norm(fitted.field.on_grid(x, t) - truth) / np.linalg.norm(truth)),
        "coefficient_error": float(np.linalg.norm(off) / np.linalg.norm(list(EQUATION.values()))),
        "equation": str(selection.equation),
        "exact": set(values) == set(EQUATION),
    }


def _per_sample(fits: list[dict[str, Any]]) -> None:
    if len(fits) < 2:
        return
    each = [fit["seconds"] / fit["samples"] for fit in fits]
    _promise("large: seconds per sample, most over least", max(each) / min(each), FACTOR, "")
    more = [(b["seconds"] - a["seconds"]) / (b["samples"] - a["samples"]) for a, b in pairwise(fits)]
    _promise("large: of a further sample, most over least", max(more) / min(more), FACTOR, "")
    growth_line("large: growth in seconds", [f["samples"] for f in fits], [f["seconds"] for f in fits])


def _dense() -> list[dict[str, Any]]:
    """Seconds and memory of scikit-learn's regressor, whose cost is the cube of the samples."""
    fits, count = [], DENSE
    try:
        import sklearn as sklearn
    except ImportError:
        print(f"{'large: scikit-learn':<52} not installed")
        return fits
    while not fits or fits[-1]["seconds"] < LIMIT:
        fits.append(_apart(_fit_dense, count))
        seconds, megabytes = fits[-1]["seconds"], fits[-1]["megabytes"]
        print(f"{f'large: scikit-learn, {count:,} samples':<52} {seconds:10.1f} s  {megabytes} MB")
        count *= 2
    return fits


def _fit_dense(count: int) -> dict[str, Any]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    rng = np.random.default_rng(SEED)
    points = np.column_stack([2 * np.pi * rng.random(count), rng.random(count)])
    u = _wave(*points.T) + NOISE * rng.standard_normal(count)
    covariance = RBF((1.0, 1.0), (1e-2, 1e2)) + WhiteKernel(1e-2, (1e-8, 1.0))
    load, began = os.getloadavg()[0], time.process_time()
    GaussianProcessRegressor(covariance).fit(points, (u - u.mean()) / u.std())
    seconds = round(time.process_time() - began, 3)
    return {"samples": count, "seconds": seconds, "megabytes": round(_peak()), "load": [round(load, 1)]}


def _by_command(folder: Path) -> list[dict[str, Any]]:
    """What `fts discover` takes for as many samples in a file of each kind that people have."""
    answers = []
    for ending in ("parquet", "npz", "csv"):
        path = folder / f"{SHARED}.{ending}"
        _apart(_write_as, path, SHARED)
        answers.append(_apart(_discover, path))
        seconds, megabytes = answers[-1]["seconds"], answers[-1]["megabytes"]
        _promise(f"large: fts discover, {SHARED:,} samples, .{ending}", seconds, COMMAND, "s")
        print(f"{'  ' + answers[-1]['equation']:<52} {megabytes} MB", flush=True)
        path.unlink()
    return answers


def _write_as(path: Path, count: int) -> None:
    """The same samples in a file of another kind."""
    from pyarrow import csv, parquet

    source = path.with_suffix(".parquet")
    _write(source, count)
    if path.suffix == ".csv":
        csv.write_csv(parquet.read_table(source), path)
    if path.suffix == ".npz":
        table = parquet.read_table(source)
        np.savez(path, **{name: table[name].to_numpy() for name in table.column_names})
    if path != source:
        source.unlink()


def _discover(path: Path) -> dict[str, Any]:
    """Seconds, memory and the answer of the command."""
    load, clock, began, out = os.getloadavg()[0], time.perf_counter(), time.process_time(), io.StringIO()
    with contextlib.redirect_stdout(out):
        cli.main(["discover", str(path), "--axis", f"x=0:{2 * np.pi}:periodic", "--quiet", "--json"])
    answer = json.loads(out.getvalue())
    return {
        "samples": SHARED,
        "kind": path.suffix[1:],
        "seconds": round(time.process_time() - began, 2),
        "elapsed": round(time.perf_counter() - clock, 2),
        "megabytes": round(_peak()),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "equation": answer["equation"],
        "status": answer["verdict"]["status"],
    }


def _on_workers(folder: Path) -> dict[str, Any]:
    path = folder / f"{SHARED}.parquet"
    _apart(_write, path, SHARED)
    shared, parts = _two_workers(path), _parts(path)
    projected = _projected(parts, shared["handling"])
    return {"workers": shared, "parts": parts, "projected": projected, "not measured": NOT_MEASURED}


def _two_workers(path: Path) -> dict[str, Any]:
    """One worker against two, in turns: both passes, and the whole fit; then one of two is killed.

    Beside seconds on the clock stand CPU seconds of the busiest worker, which other processes lengthen less.
    """
    stream = fts.stream_samples(path, BOX)
    alone = _streamed(stream)
    load, passed, fitted, apart = os.getloadavg()[0], {1: [], 2: []}, {1: [], 2: []}, 0.0
    busiest: dict[int, list[float]] = {1: [], 2: []}
    with workers(None, 1) as single, workers(None, 2) as pair:
        for _ in range(TURNS):
            for client, many in ((single, 1), (pair, 2)):
                before = client.run(time.process_time)
                passed[many].append(_seconds(partial(_both_passes, stream, alone, client)))
                after = client.run(time.process_time)
                busiest[many].append(max(after[worker] - before[worker] for worker in after))
        for client, many in ((single, 1), (pair, 2)):
            began = time.perf_counter()
            field = _streamed(stream, client)
            fitted[many].append(time.perf_counter() - began)
            apart = max(apart, _difference(field, alone))
        megabytes = max(pair.run(_peak).values())
        addresses = [*pair.scheduler_info()["workers"], pair.scheduler.address]
        killed = _kill_one(pair, stream, alone, min(passed[2]) / 2)
        handling = _seconds(lambda: pair.gather(pair.map(_nothing, range(TRIVIAL), pure=False))) / TRIVIAL
    measured = {"passes": passed, "busiest": busiest, "fit": fitted}
    ratios = {name: min(times[1]) / min(times[2]) for name, times in measured.items()}
    _promise(f"large: {SHARED:,} samples, two workers over one", ratios["passes"], FASTER, "times")
    _promise("  CPU of the busiest worker", ratios["busiest"], FASTER, "times")
    _promise("  the whole fit, whose search is one process's", ratios["fit"], FASTER, "times")
    print(f"{'  fields apart, with a worker killed':<52} {apart:10.1e}     {killed['apart']:.1e}")
    loopback = all("://127.0.0.1:" in address for address in addresses)
    print(f"{'  all addresses on the loopback':<52} {loopback!s:>10}", flush=True)
    rounded = {
        name: {str(many): [round(s, 2) for s in times] for many, times in both.items()}
        for name, both in measured.items()
    }
    return rounded | {
        "samples": SHARED,
        "ratio": {name: round(ratio, 2) for name, ratio in ratios.items()},
        "apart": apart,
        "killed": killed,
        "megabytes": round(megabytes),
        "loopback": loopback,
        "handling": handling,
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
    }


def _streamed(stream: SampleStream, client: Any = None) -> StreamedPosterior:
    posterior = fit_posterior(stream, client=client, progress=False).posterior
    assert isinstance(posterior, StreamedPosterior)
    return posterior


def _both_passes(stream: SampleStream, fitted: StreamedPosterior, client: Any) -> None:
    for measure in (partial(survey_chunk, BOX), partial(sum_chunk, fitted.plan)):
        with tqdm(disable=True) as bar:
            reduce_chunks(stream.chunks, measure, None, client, bar)


def _kill_one(client: Any, stream: SampleStream, alone: StreamedPosterior, after: float) -> dict[str, Any]:
    """What a fit gives one of whose workers is killed so many seconds after it began."""
    victim, times = min(client.run(os.getpid).values()), []

    def kill() -> None:
        os.kill(victim, signal.SIGKILL)
        times.append(time.perf_counter())

    timer, began = threading.Timer(after, kill), time.perf_counter()
    timer.start()
    field = _streamed(stream, client)
    ended = time.perf_counter()
    timer.cancel()
    return {
        "after": round(times[0] - began, 2) if times else None,
        "seconds": round(ended - began, 2),
        "count": field.count,
        "apart": _difference(field, alone),
    }


def _difference(field: StreamedPosterior, other: StreamedPosterior) -> float:
    axes = np.linspace(0, 2 * np.pi, 64), np.linspace(0, 1, 33)
    return float(np.abs(field.on_grid(*axes) - other.on_grid(*axes)).max() / other.scale)


def _nothing(number: int) -> int:
    return number


def _parts(path: Path) -> dict[str, Any]:
    """CPU seconds of the parts of a fit: a chunk measured, two parts added up, and all but the passes."""
    stream, load = fts.stream_samples(path, BOX), os.getloadavg()[0]
    fitted, chunk = _streamed(stream), next(iter(stream.chunks))
    measures: dict[str, Callable] = {
        "survey": partial(survey_chunk, BOX),
        "sums": partial(sum_chunk, fitted.plan),
    }
    parts: dict[str, Any] = {"chunk": streams.BLOCK, "map": {}, "reduce": {}, "bytes": {}}
    for name, measure in measures.items():
        part = measure(chunk)
        parts["map"][name] = cpu(partial(measure, chunk))
        parts["reduce"][name] = cpu(partial(operator.add, part, part))
        parts["bytes"][name] = sum(array.nbytes for array in vars(part).values() if array is not None)
        each = f"{1e3 * parts['reduce'][name]:.1f} ms to add two of {parts['bytes'][name] / 1e6:.2f} MB"
        print(
            f"{f'large: {name} of a chunk of {streams.BLOCK:,}':<52} {parts['map'][name]:10.3f} s     {each}"
        )
    passing = cpu(partial(_both_passes, stream, fitted, None), times=1)
    parts["rest"] = max(0.0, cpu(partial(_streamed, stream), times=1) - passing)
    print(f"{'large: search and solve, whatever the samples':<52} {parts['rest']:10.3f} s")
    return parts | {"load": [round(load, 1), round(os.getloadavg()[0], 1)]}


def _projected(parts: dict[str, Any], handling: float) -> list[dict[str, Any]]:
    """Seconds that more samples would take on more workers, if every part took what was measured here.

    Chunks are measured and added up by the workers at once, their tasks handled by one scheduler meanwhile,
    and the sums of batches added up by one process, which also searches and solves.
    """
    rows = []
    for count, many in PROJECTED:
        chunks = math.ceil(count / parts["chunk"])
        tasks, batches = chunks * passes.FAN / (passes.FAN - 1), math.ceil(chunks / passes.PER_THREAD / many)
        seconds, moved = parts["rest"], 0.0
        for name, each in parts["map"].items():
            add = parts["reduce"][name]
            seconds += max(math.ceil(chunks / many) * (each + add), tasks * handling) + batches * add
            moved += tasks * parts["bytes"][name]
        rows.append({"samples": count, "workers": many, "seconds": round(seconds, 1), "moved": round(moved)})
        name = f"large: {count:,} samples, {many} workers, projected"
        print(f"{name:<52} {seconds:10.1f} s     at most {moved / 1e9:.1f} GB between workers")
    print(f"{'  not measured':<52} {'; '.join(NOT_MEASURED)}")
    return rows


def _promise(name: str, value: float, promised: float | None, unit: str) -> None:
    beside = "" if promised is None else f"promised {promised:g}"
    print(f"{name:<52} {value:10.2f} {unit:<5} {beside}", flush=True)


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _peak() -> float:
    """Most megabytes this process has held."""
    held = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(held[1]) / 1024 if held else math.nan


def _apart(function: Callable, *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


if __name__ == "__main__":
    main()
