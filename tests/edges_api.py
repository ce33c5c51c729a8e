"""Nothing a caller passes misleads or ends in an error of NumPy: odd arguments at the public doors.

Run by test_edges_api.py in a process of its own, without the tests' checks of types, as by a user.
"""

import dataclasses
import re
import warnings

import numpy as np
import pytest

import fts
from fts.lab.studies import records
from fts.observations import has_more_rows_than
from fts.selection.selection import Selection


@pytest.fixture
def rng() -> np.random.Generator:
    """The same draws in every run."""
    return np.random.default_rng(20270)


BOX = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,))
X, T = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8), indexing="ij"))
U = np.sin(X + T)
AXES = (np.linspace(0, 1, 8), np.linspace(0, 1, 8))


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


def test_five_hundred_odd_calls_are_answered_by_a_sentence(rng):
    doors = {
        fts.Observations: (X[:, None], T, U, BOX),
        fts.Domain: ((0.0,), (1.0,), 0.0, 1.0, (False,)),
        fts.TabulatedField: (AXES, U.reshape(8, 8), BOX),
        fts.CallableField: (np.sin, BOX),
        fts.fit: (None,),
        fts.discover: (None,),
        fts.read_samples: (None,),
        fts.explore: (None,),
        fts.simulate: (None,),
    }
    for _ in range(500):
        door = list(doors)[rng.integers(len(doors))]
        values = list(doors[door])
        values[rng.integers(len(values))] = ODD[rng.integers(len(ODD))]
        if door is fts.simulate and isinstance(values[0], str):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                door(*values)
        except (ValueError, TypeError) as error:
            text = str(error)
            raw = ("broadcast", "inhomogeneous", "could not convert", "ufunc", "ambiguous", "unhashable")
            assert text
            assert ":" in text or ";" in text, (door, values, text)
            assert not any(word in text.splitlines()[0] for word in raw), (door, values, text)


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
