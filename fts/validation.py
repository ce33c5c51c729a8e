"""A call or an installation that lacks something -> a sentence that helps; nothing is computed here."""

import difflib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

_HOUR = 3600.0
_LONGEST_TEXT = 200

Function = TypeVar("Function", bound=Callable[..., Any])


class NotInstalled(ValueError):
    """A package that is needed is not installed; the message says how to get it."""


@contextmanager
def require_extra(name: str, what: str) -> Iterator[None]:
    """Ask for the extra `name`, or the package of that name, where `what` needs one that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "fts":
            raise
        wanted = name if name == missing else f"'fts[{name}]'"
        raise NotInstalled(f"{what} needs {missing}, which is not here: pip install {wanted}") from None


def explain_signature_errors(function: Function) -> Function:
    """The function, whose unknown, missing or surplus arguments are answered with those it has."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        try:
            signature.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"fts.{function.__name__}: {_explain(str(error), signature, keywords)}") from None
        return function(*args, **keywords)

    return called  # pyright: ignore[reportReturnType]


def require_type(kind: type | tuple[type, ...], value: Any, name: str, remedy: str) -> None:
    """A ValueError with the value's type and the remedy unless it is of the kind."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise ValueError(f"{name} is {shown(value)}: {remedy}")


def require_whole(value: Any, name: str, remedy: str) -> None:
    """A ValueError unless the value is a whole number, zero or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"{name} is {shown(value)}: {remedy}")


def finite_float(value: Any, name: str, remedy: str) -> float:
    """The number as a float; a ValueError where it is none, or not finite."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if np.isfinite(number):
            return number
    raise ValueError(f"{name} is {shown(value)}: {remedy}")


def real_array(name: str, values: Any) -> np.ndarray:
    """The values as float64; a ValueError where they are no real numbers, or entries are masked."""
    if isinstance(values, np.ma.MaskedArray):
        masked = int(np.ma.count_masked(values))
        if masked:
            raise ValueError(f"{masked} entries of {name} are masked: drop them everywhere, as {name}[~mask]")
        values = values.data
    try:
        array = np.asarray(values)
    except Exception as error:  # whatever conversion a foreign type brings
        raise ValueError(
            f"{name} is a {type(values).__name__} that is no array ({type(error).__name__}): "
            "give numbers, as many in every row"
        ) from None
    if array.dtype.kind not in "fiu":
        kind = "no numbers" if array.dtype == object else f"of type {array.dtype}"
        raise ValueError(f"{name} is {shown(values)}, {kind}: give an array of real numbers")
    return np.asarray(array, dtype=np.float64)


def require_finite_floats(what: str, *arrays: np.ndarray) -> None:
    """An error unless all arrays are finite floating-point numbers."""
    for array in arrays:
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{what} with values not finite, or of type {array.dtype}: fit it again")


def shortened(text: str) -> str:
    """The text, its middle left out where it would fill more than a few lines of a terminal."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[:140]} ... {text[-55:]}"


class LongRun(UserWarning):
    """What was asked for will take an hour or more."""


def warn_if_long(seconds: float, what: str, remedy: str) -> None:
    """A warning before what would take an hour or more, with an estimate and a remedy."""
    if seconds >= _HOUR:
        about = f"about {seconds / _HOUR:.0f} h of one core"
        warnings.warn(f"{what} will take {about}: {remedy}", LongRun, stacklevel=2)


def _explain(reason: str, signature: inspect.Signature, keywords: dict[str, Any]) -> str:
    known = list(signature.parameters)
    unknown = [name for name in keywords if name not in known]
    near = difflib.get_close_matches(unknown[0], known, n=1, cutoff=0.5) if unknown else []
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{reason}: {hint}It takes {', '.join(known)}"


def shown(value: Any) -> str:
    """A short plain value as it is written, of others the type."""
    text = repr(value)
    plain = isinstance(value, (str, int, float, bool, type(None))) and len(text) <= 60
    return text if plain else f"a {type(value).__name__}"
