"""A file of a user's samples -> Observations."""

import csv
from pathlib import Path

import numpy as np
from jaxtyping import Float

from fts.domain import Domain
from fts.observations import Observations

COORDINATES = ("x", "y", "z")
# A text file of samples larger than this is not read into memory at once without asking.
_LARGEST_TEXT = 1 << 29


def read_samples(path: str | Path, domain: Domain | None = None) -> Observations:
    """A user's samples: an observation record, or a table with columns x, [y, [z,]] t, u in `.csv` or `.npz`.

    Without a `domain` the samples' bounding box is taken and no axis is periodic: a period is not in samples.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"no file at {path}: give a .csv or .npz with columns x, [y,] t, u, or a saved record"
        )
    if path.suffix == ".fts":
        return Observations.load(path)
    if path.suffix not in (".csv", ".npz"):
        raise ValueError(
            f"{path.name} has an unknown ending: save the samples as .csv or .npz (x, [y,] t, u)"
        )
    columns = _csv_columns(path) if path.suffix == ".csv" else _npz_columns(path)
    spatial = [axis for axis in COORDINATES if axis in columns]
    missing = {"x", "t", "u"} - set(columns)
    if missing:
        raise ValueError(
            f"{path.name} has columns {sorted(columns)}: {', '.join(sorted(missing))} missing, rename them"
        )
    x = np.column_stack([columns[axis] for axis in spatial])
    t, y = columns["t"], columns["u"]
    if domain is None:
        domain = bounding_box(x, t)
    return Observations(x, t, y, domain, source=path.name)


def _csv_columns(path: Path) -> dict[str, np.ndarray]:
    if path.stat().st_size > _LARGEST_TEXT:
        raise ValueError(f"{path.name} is larger than {_LARGEST_TEXT >> 20} MB: store it as .npz")
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = csv.reader(stream)
        names = [name.strip().lower() for name in next(rows, [])]
        table: list[list[float]] = []
        for number, row in enumerate(rows, start=2):
            if not row:
                continue
            if len(row) != len(names):
                raise ValueError(
                    f"line {number} of {path.name} has {len(row)} values for {len(names)} columns: mend it"
                )
            try:
                table.append([float(value) for value in row])
            except ValueError:
                raise ValueError(
                    f"line {number} of {path.name} holds {row}: every value must be a number"
                ) from None
    if not table:
        raise ValueError(f"{path.name} holds no samples below its heading: write columns x, [y,] t, u")
    return dict(zip(names, np.array(table).T.copy(), strict=True))


def _npz_columns(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: np.asarray(stored[name], dtype=float) for name in stored.files}
    wanted = {name: values for name, values in columns.items() if name in (*COORDINATES, "t", "u")}
    sizes = {name: values.shape for name, values in wanted.items()}
    if any(len(shape) != 1 for shape in sizes.values()) or len(set(sizes.values())) > 1:
        raise ValueError(
            f"{path.name} holds {sizes}: give one flat array of equal length per column x, [y,] t, u"
        )
    return wanted


def bounding_box(x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"]) -> Domain:
    """The smallest domain that holds the samples, no axis periodic."""
    return Domain(
        tuple(float(v) for v in x.min(axis=0)),
        tuple(float(v) for v in x.max(axis=0)),
        float(t.min()),
        float(t.max()),
        (False,) * x.shape[1],
    )
