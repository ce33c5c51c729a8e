"""Two hundred calls that make no sense; run by itself, without the tests' checks of types, as by a user.

Prints one line per call that is not answered by one sentence.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import fts
from fts.params.paper import PAPER, PROJECTED

BOX = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,))
X, T = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8), indexing="ij"))
SAMPLES = fts.Observations(X[:, None], T, np.sin(X + T), BOX)
FIELD = fts.CallableField(lambda x, t: np.sin(x + t), BOX)
ODD = [None, 3, 2.5, True, b"ks", {}, object(), np.zeros(3), ["ks"]]


def calls() -> Iterator[tuple[str, Callable[[], object]]]:
    """Every call with a name."""
    trajectory = fts.simulate("ad")
    for value in [*ODD, trajectory, [1, 2], "ks.csv"]:
        yield f"fit {type(value)}", lambda v=value: fts.fit(v)
        yield f"fit_with_variance {type(value)}", lambda v=value: fts.fit_with_variance(v)
    for value in [*ODD, trajectory]:
        yield f"discover {type(value)}", lambda v=value: fts.discover(v)
        yield f"read_samples {type(value)}", lambda v=value: fts.read_samples(v)
    for value in [*ODD, SAMPLES, trajectory, "ks"]:
        yield f"select {type(value)}", lambda v=value: fts.select(v, "ks")
    for value in [
        *ODD[:7],
        "kss",
        "KS",
        "",
        [],
        ["uxx"],
        ["u", "u"],
        ["u_xy"],
        ["u_x^u"],
        ["u_t"],
        [3],
        [None],
    ]:
        yield f"library {value!r}", lambda v=value: fts.select(FIELD, v)
        yield f"discover library {value!r}", lambda v=value: fts.discover(SAMPLES, v if v is not None else [])
    for value in [*ODD, "kuramoto", "ks ", ""]:
        yield f"simulate {value!r}", lambda v=value: fts.simulate(v)
    for value in [None, 1.5, "1301", True, -1, [1], np.float64(2)]:
        yield f"observe seed {value!r}", lambda v=value: fts.observe(trajectory, "S20", seed=v)
        yield f"load_field seed {value!r}", lambda v=value: fts.load_field("ks", seed=v)
    for value in [None, 20, "20", "S0", "S101", "X20", "S", "s20", "S-5", "S1e1", ""]:
        yield f"observe protocol {value!r}", lambda v=value: fts.observe(trajectory, v, seed=1)
    for value in [None, -0.1, np.nan, np.inf, "0.1", [0.1]]:
        yield f"observe noise {value!r}", lambda v=value: fts.observe(trajectory, "S20", seed=1, noise=v)
    for value in [*ODD, "ks", SAMPLES]:
        yield f"observe {type(value)}", lambda v=value: fts.observe(v, "S20", seed=1)
    for value in [None, "neural", "Kernel", 3, ""]:
        yield f"recipe {value!r}", lambda v=value: fts.fit(SAMPLES, v)
    yield from _keywords()
    yield from _settings()
    yield from _values()


def _keywords() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "fit recepie", lambda: fts.fit(SAMPLES, recepie="kernel")
    yield "fit quiet", lambda: fts.fit(SAMPLES, quiet=True)
    yield "fit nothing", lambda: fts.fit()
    yield "fit too much", lambda: fts.fit(SAMPLES, "kernel", False)
    yield "select libary", lambda: fts.select(FIELD, libary="ks")
    yield "select nothing", lambda: fts.select()
    yield "select lambda", lambda: fts.select(FIELD, "ks", lam=0.1)
    yield "observe sede", lambda: fts.observe(fts.simulate("ad"), "S20", sede=1)
    yield "observe no seed", lambda: fts.observe(fts.simulate("ad"), "S20")
    yield "observe nois", lambda: fts.observe(fts.simulate("ad"), "S20", seed=1, nois=0.1)
    yield "simulate nothing", lambda: fts.simulate()
    yield "simulate cached", lambda: fts.simulate("ad", cached=False)
    yield "discover libary", lambda: fts.discover(SAMPLES, libary=["u"])
    yield "load_field protocl", lambda: fts.load_field("ks", protocl="S20")
    yield "read_samples colums", lambda: fts.read_samples("a.csv", colums={"x": "a"})


def _settings() -> Iterator[tuple[str, Callable[[], object]]]:
    svws, weak = PAPER["ks"].svws, PAPER["ks"].weak
    for name in ("generation", "validation", "max_iterations"):
        for value in (-1, 0, 1.5, None, "3"):
            yield f"{name} {value!r}", lambda n=name, v=value: replace(svws, **{n: v})
    for name, value in [("lam0", 0.0), ("lam0", -1.0), ("lam0", np.nan), ("tau", 1.5), ("tau", -0.1)]:
        yield f"{name} {value}", lambda n=name, v=value: replace(svws, **{n: v})
    for name, value in [
        ("multipliers", ()),
        ("multipliers", (1.0, -1.0)),
        ("ridge", -1.0),
        ("phase_seed", -1),
    ]:
        yield f"{name} {value}", lambda n=name, v=value: replace(svws, **{n: v})
    for name, value in [("half_widths", (0.0, 1.0)), ("patches", (0, 5)), ("nodes", (5,)), ("power", 0)]:
        yield f"{name} {value}", lambda n=name, v=value: replace(weak, **{n: v})
    yield "rule", lambda: replace(weak, rule="simpson")
    for name, value in [("rank", 0), ("updates", -5), ("learning_rate", 0.0), ("smoothness", -1.0)]:
        yield f"projected {name}", lambda n=name, v=value: replace(PROJECTED, **{n: v})
    for name, value in [("rank", 0), ("depth", -1), ("width", 2.5)]:
        yield f"model {name}", lambda n=name, v=value: replace(PAPER["ks"].adapter.model, **{n: v})
    for name, value in [("epochs", 0), ("learning_rate", -1.0), ("clip", 0.0)]:
        yield f"training {name}", lambda n=name, v=value: replace(PAPER["ks"].adapter.training, **{n: v})


def _values() -> Iterator[tuple[str, Callable[[], object]]]:
    domains = [((1.0,), (0.0,)), ((0.0,), (np.inf,)), ((0.0,), (1e-300,)), ((0.0, 0.0), (1.0,)), ((), ())]
    for low, high in domains:
        yield f"domain {low} {high}", lambda a=low, b=high: fts.Domain(a, b, 0.0, 1.0, (False,) * len(a))
    yield "domain periodic", lambda: fts.Domain((0.0,), (1.0,), 0.0, 1.0, ("no",))
    yield "domain text", lambda: fts.Domain(("0",), (1.0,), 0.0, 1.0, (False,))
    for text in ["", "uu_", "u_xx +", "1/0", "u^u", "sin u", "u_q", "D_x(", "9" * 500, "((((" * 90]:
        yield f"term {text[:12]!r}", lambda v=text: fts.Library.parse([v])
        yield f"equation {text[:12]!r}", lambda v=text: fts.Equation.parse("u_t = " + v)
    yield "equation left", lambda: fts.Equation.parse("u_x = u")
    bad = {
        "short": (X[:5, None], T, T),
        "nan": (X[:, None], T, T * np.nan),
        "outside": (X[:, None] + 5, T, T),
    }
    for name, (x, t, y) in bad.items():
        yield f"observations {name}", lambda x=x, t=t, y=y: fts.Observations(x, t, y, BOX)
    with tempfile.TemporaryDirectory() as folder:
        for name in ["none.csv", "folder", "a.csv"]:
            yield f"read {name}", lambda v=name, f=folder: fts.read_samples(Path(f) / v)
    for problem in ["kss", "KS", "heat"]:
        yield f"load_field {problem}", lambda v=problem: fts.load_field(v)


def main() -> None:
    count = 0
    for name, call in calls():
        count += 1
        try:
            call()
            answer = "no error"
        except (ValueError, TypeError) as error:
            line = str(error)
            helps = isinstance(error, ValueError) or line.startswith("fts.")
            if helps and "\n" not in line and 20 < len(line) < 700 and (":" in line or ";" in line):
                continue
            answer = f"{type(error).__name__}: {line}"
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        print(f"{name}: {answer}")
    assert count >= 200, count


if __name__ == "__main__":
    main()
