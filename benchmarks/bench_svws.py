"""Selection on one core: a frozen KS field to an equation, the 84 sparse solves, 100 terms x 100,000 rows.

Prints one line per figure: name, ours, peer, ratio. CPU seconds, the least of several runs in this process;
`make bench` sets one thread.
"""

import numpy as np
from _timing import cpu, line

from fts.fields.frozen import load_field
from fts.params.paper import PAPER
from fts.selection import sparse
from fts.svws import rule
from fts.svws.select import resolve_library, select

# What the book promises for 20 systems and the selection on a KS field.
PROMISED_SECONDS = 0.5
TERMS, ROWS = 100, 100_000


def main() -> None:
    """All figures."""
    field, used = load_field("ks", "S20", seed=1301), PAPER["ks"]
    whole = cpu(lambda: select(field, "ks"))
    line("svws: KS field to equation, 20 systems", whole, PROMISED_SECONDS, "promised")

    systems = rule.build(field, resolve_library("ks"), used.weak, used.svws)
    generation = systems[: used.svws.generation]
    ours = cpu(lambda: rule.generate(generation, used.svws))
    line(
        "svws: 84 sparse solves, 300 rows x 8 terms",
        ours,
        _pysindy_path(generation, used.svws),
        "PySINDy STLSQ",
    )

    rng = np.random.default_rng(0)
    A = rng.standard_normal((ROWS, TERMS))
    xi = np.where(np.arange(TERMS) % 20 == 0, 1.0, 0.0)
    b = A @ xi + 0.1 * rng.standard_normal(ROWS)
    thresholds = [multiplier * 0.2 * np.linalg.norm(b) for multiplier in used.svws.multipliers]

    def path() -> None:
        normal = sparse.normalize(A, b)
        for threshold in thresholds:
            sparse.stlsq(normal, threshold, 1e-4, 20)

    ours = cpu(path, times=2)
    line(
        f"sparse: 7 thresholds, {ROWS} rows x {TERMS} terms",
        ours,
        _pysindy_large(A, b, thresholds),
        "PySINDy STLSQ",
    )


def _pysindy_path(systems, params) -> float | None:
    pysindy = _pysindy()
    if pysindy is None:
        return None

    def solve() -> None:
        for system in systems:
            for multiplier in params.multipliers:
                _stlsq(pysindy, multiplier * params.lam0).fit(system.A, system.b[:, None])

    return cpu(solve, times=2)


def _pysindy_large(A: np.ndarray, b: np.ndarray, thresholds: list[float]) -> float | None:
    pysindy = _pysindy()
    if pysindy is None:
        return None

    def solve() -> None:
        for threshold in thresholds:
            _stlsq(pysindy, threshold).fit(A, b[:, None])

    return cpu(solve, times=1)


def _stlsq(pysindy, threshold: float):
    return pysindy.STLSQ(threshold=threshold, alpha=1e-4, max_iter=20, normalize_columns=True, unbias=False)


def _pysindy():
    try:
        import pysindy
    except ImportError:
        return None
    return pysindy


if __name__ == "__main__":
    main()
