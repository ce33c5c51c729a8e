"""Nothing a caller passes misleads or ends in an error of NumPy: odd arguments at the public doors.

Run by test_edges_api.py in a process of its own, without the tests' checks of types, as by a user.
"""

import dataclasses
import re
import warnings

import numpy as np
import pytest

import fts
from fts.discovery import model
from fts.discovery.evidence import VERDICT
from fts.fields.varying import Curve, SplineBasis
from fts.lab.studies import records
from fts.observations import has_more_rows_than
from fts.selection.selection import Selection
from fts.trajectory.comparison import thaw_equation


@pytest.fixture
def rng() -> np.random.Generator:
    """The same draws in every run."""
    return np.random.default_rng(20270)


BOX = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,))
X, T = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8), indexing="ij"))
U = np.sin(X + T)
AXES = (np.linspace(0, 1, 8), np.linspace(0, 1, 8))
SAMPLES = fts.Observations(X[:, None], T, U, BOX)
FIELD = fts.CallableField(lambda x, t: np.sin(x + t), BOX)
TABLE = fts.TabulatedField(AXES, U.reshape(8, 8), BOX)
FROZEN = fts.load_field("ks", "S20", seed=1301)
TRAJECTORY = fts.simulate("ad")
LIBRARY = fts.Library.parse(["u", "u_x"])
RING = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
CURVE = Curve(SplineBasis("x", 0.0, 1.0, False, 8), np.ones(8), np.eye(8))
EQUATION = fts.Equation.parse("u_t = -u_x")


def test_masked_entries_are_refused_not_read():
    u = np.ma.masked_greater(U, 0.5)
    with pytest.raises(ValueError, match=r"entries of y are masked.*y\[~mask\]"):
        fts.Observations(X[:, None], T, u, BOX)
    with pytest.raises(ValueError, match="entries of u are masked"):
        fts.TabulatedField(AXES, np.ma.masked_greater(U.reshape(8, 8), 0.5), BOX)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.longdouble, np.int64])
def test_other_real_types_become_float64(kind):
    y = np.arange(64).astype(kind)
    samples = fts.Observations(X[:, None].astype(np.float32), T.astype(np.float32), y, BOX)
    assert samples.x.dtype == samples.t.dtype == samples.y.dtype == np.float64
    assert len(samples) == 64


@pytest.mark.parametrize(
    "y", [U + 1j, U > 0, U.astype(str), U.astype(object), ["a"] * 64, [[1.0], [1.0, 2.0]]]
)
def test_what_is_no_real_number_is_refused(y):
    with pytest.raises(ValueError, match=r"y is .*: give"):
        fts.Observations(X[:, None], T, y, BOX)


def test_samples_are_the_callers_no_more():
    y = U.copy()
    samples = fts.Observations(X[:, None], T, y, BOX)
    y[:] = 0
    np.testing.assert_array_equal(samples.y, U)
    with pytest.raises(ValueError, match="read-only"):
        samples.y[0] = 1


def test_lists_and_columns_of_frames_are_taken():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": X, "t": T, "u": U})
    by_list = fts.Observations(X[:, None].tolist(), T.tolist(), U.tolist(), BOX)
    by_frame = fts.Observations(frame[["x"]], frame["t"], frame["u"], BOX)
    for samples in (by_list, by_frame):
        np.testing.assert_array_equal(samples.y, U)
    with pytest.raises(ValueError, match=r"t \(64, 1\)"):
        fts.Observations(X[:, None], T[:, None], U, BOX)


def test_domains_of_scalars_are_refused_and_numbers_become_plain():
    with pytest.raises(ValueError, match="low is 0: give a tuple"):
        fts.Domain(0, 1, 0, 1, False)
    domain = fts.Domain([np.float32(0)], np.array([1]), 0, np.int64(1), [np.True_])
    assert domain == fts.Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
    assert hash(domain)
    assert all(type(end) is float for end in (*domain.low, *domain.high, domain.t1))


@pytest.mark.parametrize("field", [None, 3, [None], [], "ks"])
def test_explore_asks_for_a_field(field):
    with pytest.raises(ValueError, match=r"field|FrozenField"):
        fts.explore(field)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, t: np.zeros(3), "shape"),
        (lambda x, t: x + t + 1j, "complex128"),
        (lambda x, t: np.where(t > 0.5, np.nan, x), "it is nan at"),
        (lambda x, t: None, "no numbers"),
        (lambda x: x, "the function fails"),
        (lambda x, t: {}["x"], "the function fails"),
    ],
)
def test_bad_returns_of_a_function_are_named(function, reason):
    with pytest.raises(ValueError, match=reason):
        fts.CallableField(function, BOX).on_grid(np.linspace(0, 1, 5), np.linspace(0, 1, 7))


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ((AXES[0][::-1], AXES[1]), "does not ascend"),
        ((np.where(AXES[0] > 0.5, np.nan, AXES[0]), AXES[1]), "nan"),
        ((AXES[0],), "give one of each"),
        ((AXES[0][:7], AXES[1]), "make them agree"),
    ],
)
def test_axes_of_a_table_are_checked(axes, reason):
    with pytest.raises(ValueError, match=reason):
        fts.TabulatedField(axes, U.reshape(8, 8), BOX)


def test_a_line_that_is_no_record_is_named(tmp_path):
    path = tmp_path / "runs.jsonl"
    for line in ("[1, 2]", "3", '{"study":"a","unknown":1}'):
        path.write_bytes(records._sealed([line]))
        with pytest.raises(ValueError, match=rf"line 2 of {re.escape(str(path))} is no record"):
            records.read(path)


def test_tables_are_taken_as_files_are_and_arrays_refused_with_the_way():
    pandas = pytest.importorskip("pandas")
    table = {"position": X, "t": T, "u": U}
    by_dict = fts.read_samples(table, columns={"x": "position"})
    by_frame = fts.read_samples(pandas.DataFrame({"u": U, "t": T, "x": X}))
    np.testing.assert_array_equal(by_dict.x, by_frame.x)
    np.testing.assert_array_equal(by_dict.y, by_frame.y)
    with pytest.raises(ValueError, match=r"fts\.Observations\(x\[:, None\], t, u, fts\.Domain"):
        fts.discover(np.column_stack([X, T, U]))
    answer = fts.discover({"x": X[::9], "t": T[::9], "u": U[::9]}, progress=False)
    assert repr(answer).startswith("<Discovery: ")
    assert len(repr(answer)) < 300


def test_representations_are_short():
    samples = fts.Observations(X[:, None], T, U, BOX)
    assert repr(samples) == "<Observations: 64 samples in [0, 1] x [0, 1], source 'user'>"
    field = fts.load_field("ks", "S20", seed=1301)
    box = "[0, 100.531] x [0, 100]"
    assert repr(field) == f"<FrozenField: rank {field.rank} on {box}, paper, ks, S20, seed 1301>"
    assert repr(fts.simulate("ad")).startswith("<Trajectory: ad, ")
    library = fts.Library.parse([f"D_x(u^{n / 10})" for n in range(11, 91)])
    selection = Selection(library, np.linspace(1.0, 2.0, len(library)), "none")
    long = dataclasses.replace(samples, source="\x1b" * 5000)
    made = dataclasses.replace(field, made=dataclasses.replace(field.made, recipe="r" * 5000))
    named = dataclasses.replace(fts.simulate("ad"), source="s" * 5000)
    for value in (field, fts.simulate("ad"), selection, long, made, named):
        assert len(repr(value)) < 300
        assert repr(value).isprintable()


def test_distinct_rows_are_counted_exactly_where_a_part_leaves_it_open(rng):
    few = rng.integers(50, size=(20_000, 1)).astype(float)
    assert has_more_rows_than(49.0, few)
    assert not has_more_rows_than(50.0, few)
    many = rng.random((20_000, 2))
    assert has_more_rows_than(19_999.0, many)
    assert not has_more_rows_than(20_000.0, many)


ODD = [
    None,
    3,
    -1,
    2.5,
    np.nan,
    1e300,
    True,
    "",
    "ks",
    b"u",
    [],
    {},
    (),
    object(),
    np.zeros(3),
    np.zeros((0, 1)),
]
ODD += [
    np.full(64, np.nan),
    U + 1j,
    X,
    X[:, None],
    np.ma.masked_greater(U, 0.5),
    [1, "a"],
    [[1], [1, 2]],
    BOX,
    10**400,
]


# Names that lead elsewhere or nowhere, and values of other types and sizes.
ODD += ["../ks", "a/b", "*", "**/x", "\0", "/dev/null", "é" * 300, -5, 10**18, np.inf, lambda *_: None, fts]
ODD += [SAMPLES, FIELD, TRAJECTORY, LIBRARY, EQUATION, {"x": 1}, ["u", "u"], ("u",), np.array(["u"])]
ODD += [np.float64(1.5), np.array(3), range(3), {1, 2}, 1j]

# What a user can call: by name the function, and arguments that are right or soon refused.
_SHOWN = {"field": FROZEN, "library": "ks", "truth": None, "samples": None, "reference": None}
_TABLE = {"domain": None, "columns": None, "decimal": ".", "missing": ()}
_SHIPPED = {"problem": "ks", "protocol": "S20", "seed": 1301, "noise": 0.0, "recipe": "paper"}
_HALVES = {name: getattr(FROZEN, name) for name in ("space", "time", "domain", "made")}
_REFERENCE = {name: getattr(TRAJECTORY, name) for name in ("axes", "t", "u", "domain", "problem", "source")}
_SYSTEM = {"x": X, "t": T, "height": U, "speed": 1 - U}
_MORE = {"inputs": (), "target": None, "recipe": "auto", "domain": None, "params": VERDICT}
_SETTINGS = {"params": None, "weak": None, "seed": 0}
DOORS = {
    "Observations": (fts.Observations, {"x": X[:, None], "t": T, "y": U, "domain": BOX}),
    "Domain": (fts.Domain, {"low": (0.0,), "high": (1.0,), "t0": 0.0, "t1": 1.0, "periodic": (False,)}),
    "TabulatedField": (fts.TabulatedField, {"axes": AXES, "u": U.reshape(8, 8), "domain": BOX}),
    "CallableField": (fts.CallableField, {"function": np.sin, "domain": BOX}),
    "FrozenField": (fts.FrozenField, _HALVES),
    "FrozenField.load": (fts.FrozenField.load, {"path": "none.fts"}),
    "frozen": (FROZEN, {"points": np.zeros((3, 2))}),
    "frozen.derivative": (FROZEN.derivative, {"points": np.zeros((3, 2)), "alpha": (1,), "order": 0}),
    "frozen.on_grid": (
        lambda x, t, **how: FROZEN.on_grid(x, t, **how),
        {"x": X[:3], "t": X[:2], "alpha": (1,), "order": 0},
    ),
    "callable.on_grid": (lambda x, t: FIELD.on_grid(x, t), {"x": X[:3], "t": T[:3]}),
    "tabulated.on_grid": (lambda x, t: TABLE.on_grid(x, t), {"x": X[:3], "t": T[:3]}),
    "Term": (fts.Term, {name: getattr(LIBRARY[1], name) for name in ("alpha", "scale", "q")}),
    "Library": (fts.Library, {"terms": LIBRARY.terms}),
    "Library.parse": (fts.Library.parse, {"texts": ["u"]}),
    "Library.index": (LIBRARY.index, {"name": "u"}),
    "Equation": (fts.Equation, {"terms": LIBRARY.terms, "coefficients": [1.0, 2.0]}),
    "Equation.parse": (fts.Equation.parse, {"text": "u_t = u"}),
    "Equation.on": (EQUATION.on, {"library": LIBRARY}),
    "Trajectory": (fts.Trajectory, _REFERENCE),
    "select": (fts.select, {"field": FIELD, "library": ["zz"]}),
    # The library needs a second axis: no odd setting leads to a selection.
    "select, odd settings": (fts.select, {"field": FIELD, "library": ["u_y"], **_SETTINGS}),
    "select, odd variance": (fts.select, {"field": FIELD, "library": ["u"], "variance": 0}),
    "observe": (fts.observe, {"trajectory": TRAJECTORY, "protocol": "S20", "seed": 1, "noise": 0.0}),
    "simulate": (fts.simulate, {"name": "none", "cache": True}),
    "simulate, odd cache": (fts.simulate, {"name": "ad", "cache": 0}),
    "load_field": (fts.load_field, _SHIPPED),
    "explore": (fts.explore, {**_SHOWN, "view": "adapter", "rank": 3}),
    "explore a selection": (fts.explore, {**_SHOWN, "view": "selection", "lam0_factor": 1.0}),
    "thaw": (thaw_equation, {"fit": None, "equation": EQUATION, "library": LIBRARY}),
    "problem": (fts.problem, {"name": "ad"}),
    "read_trajectory": (fts.read_trajectory, {"path": "none.mat", "name": "ad"}),
    "fit": (fts.fit, {"observations": None, "recipe": "kernel"}),
    "fit_with_variance": (fts.fit_with_variance, {"observations": None}),
    "discover": (fts.discover, {"samples": None, "library": None, "recipe": "auto", "domain": None}),
    "discover a system": (
        fts.discover,
        # The library needs a second axis: no odd argument leads to a fit.
        {"samples": _SYSTEM, "library": ["u_y"], "columns": {"u": "height", "v": "speed"}, **_MORE},
    ),
    "discover experiments": (
        lambda first, second, **how: fts.discover([first, second], ["u_y"], **how),
        {"first": SAMPLES, "second": "none.csv", **_MORE},
    ),
    "discover components": (
        lambda u, v, **how: fts.discover({"u": u, "v": v}, ["u_y"], **how),
        {"u": SAMPLES, "v": SAMPLES, **_MORE},
    ),
    "stream_samples": (
        fts.stream_samples,
        {"source": SAMPLES, "domain": None, "columns": None, "kept": None},
    ),
    "fit of a stream": (
        lambda table, **how: fts.fit(fts.stream_samples([table]), progress=False, **how),
        {"table": {"x": X[:3], "t": T[:3], "u": U[:3]}, "client": None},
    ),
    "fit of a function": (
        lambda tables: fts.fit(fts.stream_samples(lambda: tables), progress=False),
        {"tables": []},
    ),
    "simulate a model": (
        lambda start, times: model.simulate([EQUATION], RING, start, times, {}, [{}]),
        {"start": {"u": np.sin(2 * np.pi * np.arange(8) / 8)}, "times": [0.0, 0.1]},
    ),
    "Curve": (CURVE, {"points": 0.5, "order": 0}),
    "Discovery.load": (fts.Discovery.load, {"path": "none.fts"}),
    "read_samples": (fts.read_samples, {"path": "none.csv", **_TABLE}),
    "read_samples of a table": (fts.read_samples, {"path": {"x": X, "t": T, "u": U}, **_TABLE}),
}
_RAW = ("broadcast", "inhomogeneous", "could not convert", "ufunc", "ambiguous", "unhashable")
_RAW += (
    "has no attribute",
    "not iterable",
    "not subscriptable",
    "unsupported operand",
    "object is not",
    "must be real",
)


@pytest.mark.parametrize("door", DOORS)
def test_five_hundred_odd_calls_are_answered_by_a_sentence(door, tmp_path, monkeypatch):
    """Every argument in turn is every odd value; what is not taken is refused in one line with a remedy."""
    monkeypatch.chdir(tmp_path)
    call, usual = DOORS[door]
    wrong = []
    for name in usual:
        for value in ODD:
            if door == "simulate" and isinstance(value, str) and value == "ks":
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    call(**usual | {name: value})
            except (ValueError, TypeError, FileNotFoundError) as error:
                if not _is_a_sentence(error):
                    wrong.append((name, value, repr(error)[:300]))
    assert wrong == []
    assert list(tmp_path.iterdir()) == []


def _is_a_sentence(error: Exception) -> bool:
    """Whether a refusal is ours: one line, not long, with a remedy after a sign."""
    text = str(error)
    ours = not isinstance(error, TypeError) or text.startswith("fts.")
    plain = "\n" not in text and len(text) < 1000 and not any(word in text for word in _RAW)
    return ours and plain and (":" in text or ";" in text)


def _ring(values, frames, sensors=12, dimension=1) -> fts.Observations:
    """Samples of u(x, t) on [0, 1] at both ends and between, the axis called periodic."""
    x, t = np.linspace(0, 1, sensors), np.linspace(0, 1, frames)
    others = [np.linspace(0, 0.8, 5)] * (dimension - 1)
    *points, t = (axis.ravel() for axis in np.meshgrid(x, *others, t, indexing="ij"))
    low, high = (0.0,) * dimension, (1.0,) * dimension
    domain = fts.Domain(low, high, 0.0, 1.0, (True,) * dimension)
    return fts.Observations(np.column_stack(points), t, values(points[0], t), domain)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("frames", [4, 5, 12, 60])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_ends_of_a_ring_that_disagree_are_refused(frames, noise, dimension, rng):
    for values in (
        lambda x, t: np.sin(6 * x) + 3 * x + noise * rng.standard_normal(x.size),
        lambda x, t: 3 * x * np.exp(-t) + noise * rng.standard_normal(x.size),
        lambda x, t: np.where(x == 1, 3.0, 0.0) * np.cos(3 * t) + noise * rng.standard_normal(x.size),
    ):
        with pytest.raises(ValueError, match=r"x = 0 and x = 1, .* give the axis as not periodic, or leave"):
            _ring(values, frames, dimension=dimension)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("frames", [4, 12, 60])
@pytest.mark.parametrize("sensors", [4, 8, 40])
@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0, 10.0])
def test_noisy_ends_of_a_ring_that_agree_are_taken(sensors, frames, noise, dimension, rng):
    for _ in range(20):
        bias = rng.uniform(-0.1, 0.1)
        samples = _ring(
            lambda x, t, b=bias: (
                np.sin(2 * np.pi * (x - t)) + b * (x == 1) + noise * rng.standard_normal(x.size)
            ),
            frames,
            sensors,
            dimension,
        )
        assert len(samples) == sensors * frames * 5 ** (dimension - 1)


def test_one_end_of_a_ring_or_an_open_axis_may_hold_anything():
    x, t = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 8), indexing="ij"))
    ramp, ring = 3 * x, fts.Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
    keep = x < 1
    assert len(fts.Observations(x[keep, None], t[keep], ramp[keep], ring)) == 88
    assert len(fts.Observations(x[:, None], t, ramp, BOX)) == 96
