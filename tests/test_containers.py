"""Seventy-five crafted containers, each with a valid checksum: what was never written is never read."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fts
from fts import cli, containers
from fts.fields.frozen import CoordinateField, History, Provenance, load
from fts.fields.network import NetworkFeatures, SplineCoefficients
from fts.fields.series import Basis, SeriesCoefficients, SeriesFeatures

BOX = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,))
MADE = Provenance(recipe="paper", seed=1, history=History(3, 2, 0.5, ((0, 1.0), (3, 0.5))))
Change = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


def _network(outputs: int, dimension: int = 1) -> NetworkFeatures:
    rng = np.random.default_rng(5)
    sizes = [(8, 6), (6, outputs)]
    weights = tuple(rng.standard_normal(size).astype(np.float32) for size in sizes)
    biases = tuple(rng.standard_normal(size[1]).astype(np.float32) for size in sizes)
    return NetworkFeatures(rng.standard_normal((4, dimension)).astype(np.float32), 1.0, weights, biases)


def _observations() -> fts.Observations:
    x, t = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 1, 4), indexing="ij"))
    return fts.Observations(x[:, None], t, np.sin(x + t), BOX)


WHOLE = {
    "network": fts.FrozenField(
        _network(4), SplineCoefficients(np.ones((3, 6)), np.full(6, 0.1), (0.0, 1.0)), BOX, MADE
    ),
    "series": fts.FrozenField(
        SeriesFeatures((Basis(0.0, 1.0, False, 5),), np.ones((5, 4))),
        SeriesCoefficients(Basis(0.0, 1.0, False, 6), np.ones((6, 3))),
        BOX,
        MADE,
    ),
    "coordinate": CoordinateField(_network(1, 2), BOX, MADE),
    "observations": _observations(),
}


def _parts(name: str, folder: Path) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Kind, header and arrays of a whole file, to be altered."""
    path = folder / "whole.fts"
    WHOLE[name].save(path)
    kind = "observations" if name == "observations" else "field"
    header, arrays = containers.load_arrays(path, kind, "remedy")
    path.unlink()
    return kind, header, {key: array.copy() for key, array in arrays.items()}


def _read(name: str, path: Path) -> object:
    return fts.Observations.load(path) if name == "observations" else load(path)


def _header(*keys: str, value: Any) -> Change:
    """The header with one value replaced."""

    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = value

    return change


def _without(*keys: str) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for key in keys[:-1]:
            header = header[key]
        del header[keys[-1]]

    return change


def _array(key: str, make: Callable[[np.ndarray], np.ndarray]) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[key] = make(arrays[key]) if key in arrays else make(np.zeros(3))

    return change


def _dropped(key: str) -> Change:
    return lambda header, arrays: arrays.__delitem__(key) or None


def _nan(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flat[0] = np.nan
    return array


def _inf(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flat[-1] = np.inf
    return array


def _short(array: np.ndarray) -> np.ndarray:
    return array[:-1]


def _whole_numbers(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64)


# By what they alter: (container, change).
ALTERED: list[tuple[str, Change]] = [
    ("network", _header("space", value="networks")),
    ("network", _header("space", value="series")),
    ("network", _header("time", value="series")),
    ("network", _header("time", value=7)),
    ("network", _header("positive", value="yes")),
    ("network", _header("positive", value=1)),
    ("network", _header("more", value=1)),
    ("network", _without("domain")),
    ("network", _without("made")),
    ("network", _header("domain", value=[0, 1])),
    ("network", _header("domain", "low", value=["0"])),
    ("network", _header("domain", "low", value=[0.0, 0.0])),
    ("network", _header("domain", "high", value=[-1.0])),
    ("network", _header("domain", "t1", value=None)),
    ("network", _header("domain", "t1", value=1e300)),
    ("network", _header("domain", "t1", value=1e-300)),
    ("network", _header("domain", "periodic", value=["no"])),
    ("network", _header("domain", "periodic", value=[0])),
    ("network", _without("domain", "periodic")),
    ("network", _header("made", "recipe", value=None)),
    ("network", _header("made", "version", value="1")),
    ("network", _header("made", "version", value=True)),
    ("network", _header("made", "parameters", value=[])),
    ("network", _header("made", "seed", value=1.5)),
    ("network", _header("made", "noise", value="none")),
    ("network", _header("made", "more", value=1)),
    ("network", _header("made", "history", value=[1, 2])),
    ("network", _header("made", "history", "losses", value=[[1, 2, 3]])),
    ("network", _header("made", "history", "losses", value=[["a", "b"]])),
    ("network", _header("made", "history", "kept", value=None)),
    ("network", _dropped("space.weight0")),
    ("network", _dropped("space.weight1")),
    ("network", _dropped("space.bias1")),
    ("network", _dropped("space.scale")),
    ("network", _dropped("time.mean")),
    ("network", _array("space.junk", np.asarray)),
    ("network", _array("junk", np.asarray)),
    ("network", _array("space.weight0", _nan)),
    ("network", _array("space.weight1", _inf)),
    ("network", _array("space.bias0", _nan)),
    ("network", _array("space.bias0", _short)),
    ("network", _array("space.weight1", _short)),
    ("network", _array("space.weight1", np.ravel)),
    ("network", _array("space.weight1", _whole_numbers)),
    ("network", _array("space.frequencies", np.ravel)),
    ("network", _array("space.frequencies", _inf)),
    ("network", _array("space.scale", _nan)),
    ("network", _array("space.scale", lambda a: a[:0])),
    ("network", _array("time.C", _short)),
    ("network", _array("time.C", _nan)),
    ("network", _array("time.C", np.ravel)),
    ("network", _array("time.mean", _short)),
    ("network", _array("time.interval", lambda a: a[::-1].copy())),
    ("network", _array("time.interval", _inf)),
    ("network", _array("time.interval", _short)),
    ("series", _array("space.coefficients", _nan)),
    ("series", _array("space.coefficients", _short)),
    ("series", _array("space.coefficients", np.ravel)),
    ("series", _array("space.size", lambda a: a * 0)),
    ("series", _array("space.size", lambda a: np.full_like(a, 2**31 - 1))),
    ("series", _array("space.size", lambda a: a.astype(float))),
    ("series", _array("space.periodic", lambda a: a + 7)),
    ("series", _array("space.low", lambda a: a + 5)),
    ("series", _array("space.low", _nan)),
    ("series", _array("time.coefficients", lambda a: a[:, :-1])),
    ("series", _array("time.coefficients", _whole_numbers)),
    ("coordinate", _header("form", value="coordinates")),
    ("coordinate", _header("form", value=None)),
    ("coordinate", _array("weight1", _nan)),
    ("coordinate", _dropped("bias0")),
    ("observations", _header("noise", value="none")),
    ("observations", _header("seed", value=[1])),
    ("observations", _without("source")),
    ("observations", _array("y", _nan)),
    ("observations", _array("x", np.ravel)),
    ("observations", _array("t", _short)),
    ("observations", _array("t", _whole_numbers)),
    ("observations", _array("w", np.asarray)),
    ("observations", _header("domain", "high", value=[0.5])),
]


@pytest.mark.parametrize("name", WHOLE)
def test_whole_containers_are_read(name: str, tmp_path: Path) -> None:
    kind, header, arrays = _parts(name, tmp_path)
    containers.save_arrays(tmp_path / "again.fts", kind, header, arrays)
    assert type(_read(name, tmp_path / "again.fts")) is type(WHOLE[name])


def test_there_are_as_many_as_found_the_faults() -> None:
    assert len(ALTERED) + len(FORGED) >= 75


@pytest.mark.parametrize("number", range(len(ALTERED)))
def test_what_no_field_or_record_has_is_refused(number: int, tmp_path: Path, capsys) -> None:
    name, change = ALTERED[number]
    kind, header, arrays = _parts(name, tmp_path)
    change(header, arrays)
    path = tmp_path / "altered.fts"
    containers.save_arrays(path, kind, header, arrays)
    _refuses(name, path, capsys)


def _refuses(name: str, path: Path, capsys) -> None:
    """One line that names the file and the remedy, from Python and from the command."""
    with pytest.raises(containers.FileError) as refusal:
        _read(name, path)
    line = str(refusal.value)
    assert str(path) in line
    assert ": " in line
    assert "\n" not in line
    if name == "observations":
        assert cli.main(["discover", str(path), "--quiet"]) == 2
        assert capsys.readouterr().err.count("\n") == 1


Forge = Callable[[dict[str, Any]], str | None]


def _forged(*keys: str | int, value: Any) -> Forge:
    def forge(document: dict[str, Any]) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return forge


# What no writer of ours would put into the header line; a text replaces it whole.
FORGED: list[Forge] = [
    lambda document: "[1, 2]",
    lambda document: "null",
    lambda document: "{}",
    lambda document: "not json",
    lambda document: '{"arrays": NaN}',
    lambda document: '{"a":' * 5000 + "1" + "}" * 5000,
    lambda document: "[" * 100_000,
    lambda document: containers.canonical_json(document)[:-1] + ',"bytes":0}',
    lambda document: containers.canonical_json(document).replace(":", ": "),
    lambda document: json.dumps(document | {"more": 1}),
    _forged("header", value=[1]),
    _forged("header", value=None),
    _forged("arrays", value={}),
    _forged("arrays", value=[1, 2, 3]),
    _forged("bytes", value=7),
    _forged("bytes", value="many"),
    _forged("arrays", 0, value={"name": "x"}),
    _forged("arrays", 0, "name", value=3),
    _forged("arrays", 1, "name", value="x"),
    _forged("arrays", 0, "dtype", value="|O"),
    _forged("arrays", 0, "dtype", value="<c16"),
    _forged("arrays", 0, "dtype", value=">f8"),
    _forged("arrays", 0, "dtype", value="<M8[s]"),
    _forged("arrays", 0, "dtype", value=["<f8"]),
    _forged("arrays", 0, "shape", value=[-1]),
    _forged("arrays", 0, "shape", value=[2**62, 2**62]),
    _forged("arrays", 0, "shape", value=[True, 20]),
    _forged("arrays", 0, "shape", value=[20.0, 1]),
    _forged("arrays", 0, "shape", value="20"),
    _forged("arrays", 0, "shape", value=[1] * 40),
    _forged("arrays", 0, "offset", value=8),
    _forged("arrays", 0, "offset", value=-8),
    _forged("arrays", 1, "offset", value=0),
    _forged("arrays", 2, "offset", value=2**62),
]


@pytest.mark.parametrize("number", range(len(FORGED)))
def test_a_forged_header_is_refused(number: int, tmp_path: Path, capsys) -> None:
    path = tmp_path / "forged.fts"
    WHOLE["observations"].save(path)
    first, _, body = path.read_bytes().partition(b"\n")
    text, _, raw = body.partition(b"\n")
    document = json.loads(text)
    text = FORGED[number](document) or containers.canonical_json(document)
    body = text.encode() + b"\n" + raw
    digest = hashlib.sha256(body).hexdigest()
    path.write_bytes(b" ".join(first.split(b" ")[:2]) + b" " + digest.encode() + b"\n" + body)
    _refuses("observations", path, capsys)


def test_bytes_that_no_array_claims_are_refused() -> None:
    kind, data = "field", containers.pack_arrays("field", {}, {"a": np.zeros(3)})
    body = data.partition(b"\n")[2] + b"more"
    with pytest.raises(containers.FileError, match="describes 24 bytes"):
        containers.unpack_arrays(f"fts1 {kind} {hashlib.sha256(body).hexdigest()}\n".encode() + body, kind)
