"""A user's file -> Observations: the format by its ending, scattered samples or a grid by the shapes."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from fts import validation
from fts.containers import FileError
from fts.domain import Domain
from fts.io import formats
from fts.io.binary import BINARY, read_binary, read_dataset, read_isolated
from fts.io.formats import COORDINATES, Arrays, Columns, FileWarning, assign
from fts.observations import Observations, require_finite, row_codes

TEXT = (".csv", ".tsv", ".txt", ".dat")
ISOLATED = (".mat",)  # their readers can crash
# What marks a missing value where a file cannot leave it blank; the last is that of NetCDF.
SENTINELS = (999.0, 9999.0, 99999.0, 32768.0, 1e20, 1e30, 9.969209968386869e36)
_FAR = 5.0  # extents of the other values
ENDINGS = (*TEXT, *BINARY, ".fts")


@validation.explain_signature_errors
def read_samples(
    path: Any,
    domain: Domain | None = None,
    *,
    columns: Columns = None,
    decimal: str = ".",
    missing: str | float | Sequence[str | float] = (),
) -> Observations:
    """A user's samples: columns x, [y, [z,]] t, u as a table or arrays, a grid of values, or a saved record.

    `path` names the file, or is an xarray Dataset, a DataFrame or a dict of arrays with the same variables;
    NaN in u of a Dataset or DataFrame was not measured.
    `columns` says which they are where they are called otherwise, {"t": "time"}, or names them in order;
    `decimal` is "," where numbers are written so; values written as one of `missing` were not measured.
    Without a `domain` the samples' bounding box is taken and no axis is periodic: a period is not in samples.
    """
    columns, missing = _checked(columns, missing)
    if is_dataset(path):
        source = "the Dataset"
        _refuse_in_order(columns, source)
        arrays = read_dataset(path, columns, source)
        arrays["u"] = _without(arrays["u"], missing)
    elif is_table(path):
        source = f"the {type(path).__name__}"
        _refuse_in_order(columns, source)
        arrays = table_columns(path, columns, source)
        arrays["u"] = _without(arrays["u"], missing)
    else:
        validation.require_type((str, Path), path, "path", "give the name of a file of samples")
        path = Path(path)
        if path.suffix.lower() == ".fts" and os.path.isfile(path):
            if domain is not None:
                raise ValueError(
                    f"{path.name} holds observations with a domain of their own: leave domain= out, and "
                    "give dataclasses.replace(observations, domain=domain)"
                )
            return Observations.load(path)
        arrays, source = _read_file(path, columns, decimal, missing), path.name
    named = is_dataset(path) or (isinstance(path, Path) and path.suffix.lower() == ".nc")
    x, t, u = _flat(arrays, source, ordered=named)
    for name, values in (("x", x), ("t", t), ("u", u)):
        require_finite(name, values)
    _refuse_sentinels(u, source)
    x, t, u = _without_copies(x, t, u, source)
    if domain is None:
        domain = bounding_box(x, t)
    return Observations(x, t, u, domain, source=source)


def read_components(
    source: Any,
    columns: Mapping[str, str],
    inputs: Sequence[str] = (),
    domain: Domain | None = None,
    *,
    decimal: str = ".",
    missing: Sequence[str] = (),
) -> dict[str, Observations]:
    """The observations of every component and measured input in one file or table.

    `columns` maps components, and coordinates that are called otherwise, to the names of their columns, by
    default u alone; `inputs` are called as their columns are unless `columns` says otherwise.
    """
    axes = {role: name for role, name in columns.items() if role in (*COORDINATES, "t")}
    names = {role: name for role, name in columns.items() if role not in axes} or {"u": "u"}
    names |= {name: name for name in inputs if name not in names}
    twice = [name for name in names.values() if list(names.values()).count(name) > 1]
    if twice:
        roles = ", ".join(role for role, name in names.items() if name == twice[0])
        raise FileError(f"column {twice[0]!r} is given to {roles}: name another for all but one")
    reading: dict[str, Any] = {"decimal": decimal, "missing": missing}
    read = {
        name: read_samples(source, domain, columns={**axes, "u": heading}, **reading)
        for name, heading in names.items()
    }
    if domain is not None:
        return read
    x, t = (np.concatenate([getattr(each, axis) for each in read.values()]) for axis in ("x", "t"))
    return {name: replace(each, domain=bounding_box(x, t)) for name, each in read.items()}


def _checked(columns: Any, missing: Any) -> tuple[Columns, list[str]]:
    """The names of columns, and the markers of missing values as texts; a single one may stand alone."""
    require_columns(columns)
    markers = missing if isinstance(missing, (list, tuple, set)) else [missing]
    for marker in markers:
        kinds = (str, int, float, np.number)
        validation.require_type(kinds, marker, "missing", "give texts, as ['NA', '-999']")
    return columns, [str(marker) for marker in markers]


def require_columns(columns: Any) -> None:
    """An error unless the columns are named by a mapping or in order, or not at all."""
    remedy = "give a dict, as {'t': 'time'}, or a list with all in order"
    validation.require_type((Mapping, list, tuple, type(None)), columns, "columns", remedy)
    names = (*columns, *columns.values()) if isinstance(columns, Mapping) else columns or ()
    for name in names:
        validation.require_type(str, name, "a name of columns", remedy)


def is_dataset(value: object) -> bool:
    """Whether it is an xarray Dataset, without importing xarray."""
    return type(value).__module__.partition(".")[0] == "xarray" and hasattr(value, "data_vars")


def is_table(value: object) -> bool:
    """Whether it is a mapping of columns or a DataFrame, without importing the libraries of those."""
    return isinstance(value, Mapping) or _is_frame(value)


def _is_frame(value: object) -> bool:
    frames = [kind for kind in type(value).__mro__ if kind.__name__ == "DataFrame"]
    return any(kind.__module__.partition(".")[0] in ("pandas", "polars") for kind in frames)


def table_columns(table: Any, columns: Columns, where: str) -> Arrays:
    """The columns of a DataFrame, or of a mapping of arrays, as masked u and plain coordinates."""
    names = {str(name): name for name in (table if isinstance(table, Mapping) else table.columns)}
    roles = assign(list(names), columns, where)
    others = [
        text for text, name in names.items() if text not in roles.values() and _has_numbers(table[name])
    ]
    formats.warn_ignored(others, columns, where)
    read: Arrays = {}
    for role, name in roles.items():
        values = table[names[name]]
        mask = np.ma.getmaskarray(values) if role == "u" and isinstance(values, np.ma.MaskedArray) else False
        read[role] = validation.real_array(name, values.data if np.any(mask) else values)
        if role == "u":
            mask = np.isnan(read["u"]) if _is_frame(table) else mask
            read["u"] = np.ma.array(read["u"], mask=mask)
    return read


def _has_numbers(values: Any) -> bool:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):  # rows of different lengths
        return False
    return array.dtype.kind in "iuf" and array.size > 1


def _read_file(path: Path, columns: Columns, decimal: str, missing: Sequence[str]) -> Arrays:
    if os.path.exists(path) and not path.is_file():
        raise FileError(f"{path} is no regular file: copy the samples to one ({', '.join(ENDINGS)})")
    if not os.path.isfile(path):  # also of a name that no file system takes
        name = validation.shortened(str(path))
        raise FileError(f"no file at {name}: give one with columns x, [y,] t, u ({', '.join(ENDINGS)})")
    packed = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if packed else path).suffix.lower()
    if packed and ending not in TEXT:
        raise FileError(f"{path.name} is packed: unpack it; only {', '.join(TEXT)} are read as .gz")
    if ending not in ENDINGS:
        raise FileError(f"{path.name} has an unknown ending: save the samples as one of {', '.join(ENDINGS)}")
    try:
        if ending in TEXT:
            return formats.read_delimited(path, columns, decimal, missing)
        _refuse_in_order(columns, path.name)
        read = read_isolated if ending in ISOLATED else read_binary
        arrays = read(ending, path, columns)
    except OSError as error:
        raise FileError(formats.unreadable(path, error)) from None
    return arrays | {"u": _without(arrays["u"], missing)}


def _refuse_in_order(columns: Columns, where: str) -> None:
    if columns is not None and not isinstance(columns, Mapping):
        raise FileError(f"{where} names its arrays: say which is which, --columns x=NAME t=NAME u=NAME")


def _without(u: np.ndarray, missing: Sequence[str]) -> np.ndarray:
    """The values, those marked as missing masked."""
    mask = np.ma.getmaskarray(u).copy()
    for text in missing:
        try:
            marker = float(text)
        except ValueError:
            raise FileError(f"missing {text!r}: in a file of arrays it is a number or nan") from None
        with np.errstate(over="ignore"):
            single = float(np.float32(marker))  # as a file of float32 holds it
        mask |= np.isnan(u) if np.isnan(marker) else (u == marker) | (u == single)
    return np.ma.array(np.ma.getdata(u), mask=mask)


def _refuse_sentinels(u: np.ndarray, where: str) -> None:
    """An error for a value that marks missing samples elsewhere, repeats, and lies far outside the rest."""
    marked = np.isin(np.abs(u), SENTINELS) | np.isin(np.abs(u), np.array(SENTINELS, np.float32).astype(float))
    if not marked.any() or marked.all():
        return
    low, high = u[~marked].min(), u[~marked].max()
    values, counts = np.unique(u[marked], return_counts=True)
    for value, count in zip(values, counts, strict=True):
        if count > 1 and max(low - value, value - high) > _FAR * max(high - low, abs(high), abs(low)):
            raise FileError(
                f"u of {where} is {value:.10g} {count} times, the rest {low:.4g} to {high:.4g}: where "
                f"it marks missing samples, blank it or say --missing {value:.10g}"
            )


def _without_copies(x: np.ndarray, t: np.ndarray, u: np.ndarray, where: str) -> tuple[np.ndarray, ...]:
    """Rows given twice, with the same value, once; a warning says how many."""
    codes = np.sort(row_codes((*x.T, t, u)))
    if not (codes[1:] == codes[:-1]).any():
        return x, t, u
    rows = np.column_stack([x, t, u])
    order = np.lexsort(rows.T)
    again = np.all(rows[order[1:]] == rows[order[:-1]], axis=1)
    if not again.any():
        return x, t, u
    keep = np.ones(len(u), bool)
    keep[order[1:][again]] = False  # lexsort is stable: the first stays
    text = f"{where} holds {again.sum()} rows twice, with the same values: they are taken once"
    warnings.warn(text, FileWarning, stacklevel=2)
    return x[keep], t[keep], u[keep]


def _flat(arrays: Arrays, where: str, ordered: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One row per sample that was taken: x [n, d], t [n], u [n]."""
    roles = [*(axis for axis in COORDINATES if axis in arrays), "t"]
    u = arrays["u"]
    shapes = {role: arrays[role].shape for role in (*roles, "u")}
    if len(set(shapes.values())) == 1 and u.ndim > 0:
        points = [arrays[role].ravel() for role in roles]
    else:
        axes = [np.squeeze(arrays[role]) for role in roles]
        sizes = tuple(axis.size for axis in axes)
        if any(axis.ndim != 1 for axis in axes):
            raise FileError(f"{where} holds {shapes}: give columns of equal length, or axes and a grid u")
        u = _grid(u, sizes, where, ordered)
        points = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
    taken = ~np.ma.getmaskarray(u).ravel()
    if not taken.any():
        raise FileError(f"{where} holds no samples: write columns x, [y,] t, u")
    x = np.column_stack([column[taken] for column in points[:-1]])
    return x, points[-1][taken], np.ma.getdata(u).ravel()[taken]


def _grid(u: np.ndarray, sizes: tuple[int, ...], where: str, ordered: bool) -> np.ndarray:
    """Values on the grid of axes with these sizes, time last; time first is understood where it must be.

    `ordered` by the names of its dimensions, which decide where the sizes do not.
    """
    if u.ndim == len(sizes) + 1 and u.shape[-1] == 1:
        u = u[..., 0]  # one component
    time_first = u.shape == (sizes[-1], *sizes[:-1])
    if u.shape == sizes and time_first and not ordered and max(sizes) > 1:
        raise FileError(
            f"u of {where} has shape {u.shape}, its axes as many: time may run first or last: store x, [y,] t"
            " as arrays of u's shape (numpy.meshgrid, indexing='ij'), or NetCDF with named dimensions"
        )
    if u.shape == sizes:
        return u
    if time_first:
        return np.moveaxis(u, 0, -1)
    raise FileError(f"u of {where} has shape {u.shape}, its axes x, [y,] t have {sizes}: make them agree")


def bounding_box(x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"]) -> Domain:
    """The smallest domain that holds the samples, no axis periodic."""
    for letter, values in zip((*COORDINATES[: x.shape[1]], "t"), (*x.T, t), strict=True):
        if values.min() == values.max():
            raise FileError(f"every sample has {letter} = {values[0]:g}: measure at others, or drop the axis")
    low, high = (tuple(ends.tolist()) for ends in (x.min(axis=0), x.max(axis=0)))
    return Domain(low, high, float(t.min()), float(t.max()), (False,) * x.shape[1])
