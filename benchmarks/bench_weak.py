"""Weak systems on one core: against PySINDy, against a straight line, against the memory bus.

Prints one line per figure: name, ours, peer, ratio. All in this process; `make bench` sets one thread.
"""

import tracemalloc
from dataclasses import replace

import numpy as np
from _timing import copy_bandwidth, cpu, growth_line, line

from fts.domain import Domain
from fts.equations.terms import Library
from fts.fields.frozen import CallableField, Field, load_field
from fts.params.paper import PAPER
from fts.params.types import WeakParams
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.weak import assembly, test_functions

# What the book promises for the memory of one system.
PROMISED_BYTES = 200e6
SYSTEMS = 20


class Held:
    """A field whose values are at hand: what is left is the weak assembly itself."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.values = np.empty(0)

    def on_grid(self, *axes: np.ndarray) -> np.ndarray:
        shape = tuple(axis.size for axis in axes)
        if self.values.shape != shape:
            self.values = np.random.default_rng(0).standard_normal(shape)
        return self.values


def main() -> None:
    """All figures."""
    field, params, library = load_field("ks", "S20", seed=1301), PAPER["ks"].weak, problem("ks").library
    phase = np.array([0.3, 0.7])
    one = cpu(lambda: assembly.assemble(field, library, params, phase), times=20)
    line(
        "weak: KS system, 300 patches x 3,100 nodes, 8 terms", one, _pysindy(params), "PySINDy WeakPDELibrary"
    )
    rows = test_functions.phases(np.random.default_rng(0), SYSTEMS, 1)
    many = cpu(lambda: [assembly.assemble(field, library, params, row) for row in rows], times=3)
    line(f"weak: {SYSTEMS} KS systems", many, SYSTEMS * one, f"{SYSTEMS} x one")
    _bus(params, library, phase)
    _memory(field, library, params, phase)
    _growth()


def _bus(params: WeakParams, library: Library, phase: np.ndarray) -> None:
    """Assembly from values at hand beside the time the bus needs to read them once per distinct q."""
    field = Held(problem("ks").domain)
    ours = cpu(lambda: assembly.assemble(field, library, params, phase), times=20)
    readings = len({term.q for term in library if term.q.constant is None})
    limit = readings * field.values.nbytes / copy_bandwidth()
    line(f"weak: assembly alone, {readings} functions q(u)", ours, limit, "memory bus")


def _memory(field: Field, library: Library, params: WeakParams, phase: np.ndarray) -> None:
    large = WeakParams((0.3, 0.3, 0.3, 0.2), (8, 8, 8, 8), (10, 10, 10, 10), power=4)
    box = CallableField(
        lambda x, y, z, t: x * y + z * t, Domain((0.0,) * 3, (2.0,) * 3, 0.0, 1.0, (False,) * 3)
    )
    cases = {
        "weak: memory of a KS system": (field, library, params, phase),
        "weak: memory in 3D, 41 million nodes": (
            box,
            Library.parse(["u", "u^2", "u_zz"]),
            large,
            np.full(4, 0.5),
        ),
    }
    for name, case in cases.items():
        tracemalloc.start()
        assembly.assemble(*case)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        ratio = PROMISED_BYTES / peak
        print(
            f"{name:<52} {peak / 1e6:10.1f} MB  promised {PROMISED_BYTES / 1e6:10.1f} MB  ratio {ratio:8.1f}"
        )


def _growth() -> None:
    """Seconds against patches, nodes, terms and dimension; work per node should not grow."""
    names = ["u", "u^2", "u^3", "u^4", "u^5", "u^6", "u^7", "u^8"]
    line_1d = Held(Domain((0.0,), (10.0,), 0.0, 10.0, (False,)))
    base = WeakParams((1.0, 1.0), (10, 10), (40, 40), power=8)
    library = Library.parse(["u", "u*u_x", "u_xx", "u_xxxx"])

    def seconds(field: Field, params: WeakParams, terms: Library) -> float:
        return cpu(lambda: assembly.assemble(field, terms, params, np.full(len(params.nodes), 0.5)), times=7)

    counts = (10, 20, 40, 80)
    growth_line(
        "weak: growth with patches (100 to 6,400)",
        [n**2 for n in counts],
        [seconds(line_1d, replace(base, patches=(n, n)), library) for n in counts],
    )
    growth_line(
        "weak: growth with nodes per patch (400 to 25,600)",
        [n**2 for n in (20, 40, 80, 160)],
        [seconds(line_1d, replace(base, nodes=(n, n)), library) for n in (20, 40, 80, 160)],
    )
    growth_line(
        "weak: growth with functions q(u) (1 to 8)",
        [1, 2, 4, 8],
        [seconds(line_1d, replace(base, patches=(20, 20)), Library.parse(names[:n])) for n in (1, 2, 4, 8)],
    )
    growth_line(
        "weak: growth with derivatives of one q (1 to 8)",
        [1, 2, 4, 8],
        [
            seconds(
                line_1d, replace(base, power=10), Library.parse(["u_" + "x" * k for k in range(1, n + 1)])
            )
            for n in (1, 2, 4, 8)
        ],
    )
    _growth_with_dimension(seconds)


def _growth_with_dimension(seconds) -> None:
    """Nanoseconds per node in 1D, 2D and 3D; the peer is 1D, the straight line in the number of nodes."""
    per_node = {}
    for d, (per_axis, nodes) in {1: (16, 50), 2: (6, 16), 3: (4, 8)}.items():
        domain = Domain((0.0,) * d, (10.0,) * d, 0.0, 10.0, (False,) * d)
        params = WeakParams((1.0,) * (d + 1), (per_axis,) * (d + 1), (nodes,) * (d + 1), power=6)
        library = Library.parse(["u", "u^2", "u*u_x", "u_xx"])
        total = (per_axis * nodes) ** (d + 1)
        per_node[d] = seconds(Held(domain), params, library) / total
        ratio = per_node[1] / per_node[d]
        name = f"weak: one node of {total / 1e6:.1f} million in {d}D"
        print(f"{name:<52} {per_node[d] * 1e9:10.2f} ns  1D {per_node[1] * 1e9:10.2f} ns  ratio {ratio:8.1f}")


def _pysindy(params: WeakParams) -> float | None:
    """The same library and patches through PySINDy's weak form on the data grid of KS."""
    try:
        import pysindy
    except ImportError:
        return None
    trajectory = simulate("ks")
    (x,), t, u = trajectory.axes, trajectory.t, trajectory.u
    grid = np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1)

    def system() -> None:
        np.random.seed(0)  # noqa: NPY002 - the peer draws its patches from the global state
        pysindy.WeakPDELibrary(
            function_library=pysindy.PolynomialLibrary(degree=3, include_bias=False),
            derivative_order=4,
            spatiotemporal_grid=grid,
            K=params.patches[0] * params.patches[1],
            H_xt=list(params.half_widths),
            p=params.power,
        ).fit_transform(u[..., None])

    return cpu(system, times=2)


if __name__ == "__main__":
    main()
