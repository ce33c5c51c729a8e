"""How the benchmarks measure and print: CPU seconds of the fastest of several calls, one line per figure."""

import time
from collections.abc import Callable, Sequence

import numpy as np


def cpu(function: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the fastest of several calls, after one that warms up; other processes do not count."""
    function()
    taken = []
    for _ in range(times):
        began = time.process_time()
        function()
        taken.append(time.process_time() - began)
    return min(taken)


def line(name: str, ours: float, peer: float | None, peer_name: str) -> None:
    """One figure in milliseconds: name, ours, peer, ratio."""
    if peer is None:
        print(f"{name:<52} {ours * 1e3:10.2f} ms  {peer_name} not installed")
    else:
        print(
            f"{name:<52} {ours * 1e3:10.2f} ms  {peer_name} {peer * 1e3:10.2f} ms  ratio {peer / ours:8.1f}"
        )


def growth_line(name: str, sizes: Sequence[float], seconds: Sequence[float]) -> None:
    """One figure of growth: the exponent of seconds ~ size^exponent beside the straight line's, 1."""
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    span = f"x{sizes[-1] / sizes[0]:.0f} -> x{seconds[-1] / seconds[0]:.1f}"
    print(f"{name:<52} {exponent:10.2f}     straight line       1.00     {span}")


def copy_bandwidth(megabytes: int = 64) -> float:
    """Bytes per CPU second moved by copying an array much larger than the caches: one read and one write."""
    source = np.ones(megabytes << 17)
    target = np.empty_like(source)
    return 2 * source.nbytes / cpu(lambda: np.copyto(target, source), times=7)
