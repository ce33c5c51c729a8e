"""A child of the fuzzer: reads mutated files one after the other, and says what no refusal explains."""

import contextlib
import gzip
import random
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import malformed
import numpy as np

from fts.domain import Domain
from fts.io.readers import read_samples
from fts.observations import Observations


def seeds() -> dict[str, bytes]:
    """A sound file of each format."""
    axes = {"x": np.unique(malformed.X), "t": np.unique(malformed.T)}
    grid = {"u": (("x", "t"), malformed.U.reshape(6, 5))}
    return {
        "a.csv": malformed.table(malformed.good_rows()),
        "a.npz": malformed.npz(**malformed.GOOD),
        "a.mat": malformed.mat(**malformed.GOOD),
        "a.nc": malformed.netcdf(("x", "t"), ("x", "t")),
        "b.nc": malformed.netcdf4(**grid, **axes),
        "a.parquet": malformed.parquet(**malformed.GOOD),
        "a.csv.gz": gzip.compress(malformed.table(malformed.good_rows()), mtime=0),
        "a.fts": saved(),
    }


def saved() -> bytes:
    """Observations as they are saved."""
    domain = Domain((0.0,), (1.0,), 0.0, 1.0, (False,))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.fts"
        Observations(malformed.X[:, None], malformed.T, malformed.U, domain).save(path)
        return path.read_bytes()


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to four bytes changed, a part cut out, or a part given twice."""
    changed = bytearray(data)
    kind = rng.randrange(8)
    begin = rng.randrange(len(data))
    end = min(len(data), begin + rng.randrange(1, 64))
    if kind == 0:
        return bytes(changed[:begin] + changed[end:])
    if kind == 1:
        return bytes(changed[:end] + changed[begin:])
    for _ in range(rng.randrange(1, 5)):
        changed[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(changed)


def main(folder: Path, name: str, first: int, count: int) -> None:
    """Mutations first, first + 1, ... of the file called `name`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    data, path = seeds()[name], folder / name
    warnings.simplefilter("ignore")
    for number in range(first, first + count):
        path.write_bytes(mutate(data, random.Random(f"{name} {number}")))
        begin, waited = _seconds(), time.monotonic()
        with contextlib.suppress(ValueError):
            read_samples(path)
        assert _seconds() - begin < 10, number
        assert time.monotonic() - waited < 60, number  # others may keep the processor, nothing may hang
    peak = resource.getrusage(resource.RUSAGE_CHILDREN if name == "a.mat" else resource.RUSAGE_SELF).ru_maxrss
    assert peak < 1 << 20, peak
    sys.stdout.write(f"{count} read\n")


def _seconds() -> float:
    """Seconds of one core that this process and its children have taken."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
