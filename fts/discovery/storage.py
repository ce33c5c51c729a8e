"""A discovery as header and arrays, and back: what was found and what it was read off, nothing to compute it.

Kept are samples, frozen field, selection with its standard errors and curves, and the verdict; not the
posterior, the weak systems, the trace of the rule and the equations that were integrated.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from fts import containers
from fts.discovery.verdict import Rival, Verdict
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fields.frozen import FrozenField
from fts.fields.varying import Curve, SplineBasis
from fts.observations import Observations
from fts.selection.selection import Refit, Selection

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]
_VERDICT: dict[str, tuple[type, ...]] = {
    "status": (str,),
    "reasons": (list,),
    "rivals": (list,),
    "risk": (float, type(None)),
    "of": (str,),
    "wanted": (list,),
    "scope": (str,),
    "expected": (float, type(None)),
    "margin": (float, type(None)),
}
_SELECTION: dict[str, tuple[type, ...]] = {
    "library": (list,),
    "states": (list,),
    "method": (str,),
    "preferred": (str,),
    "target": (str,),
    "refits": (dict,),
    "curves": (dict,),
}


def pack_record(observations: Observations | None, field: FrozenField | None) -> Arrays:
    """The bytes of the files of the samples and of their field, as far as there are any."""
    files = {"observations": observations, "field": field}
    return {name: np.frombuffer(each.packed(), dtype=np.uint8) for name, each in files.items() if each}


def unpack_record(arrays: Mapping[str, np.ndarray]) -> tuple[Observations | None, FrozenField | None]:
    """The samples and the field, their own checksums verified."""
    files = {
        name: containers.unpack_arrays(arrays[name].tobytes(), name)
        for name in ("observations", "field")
        if name in arrays
    }
    observations = Observations.from_file(*files["observations"]) if "observations" in files else None
    return observations, FrozenField.from_file(*files["field"]) if "field" in files else None


def pack_selection(selection: Selection) -> tuple[Header, Arrays]:
    """Library, coefficients, refits and curves; the rule's trace is left out."""
    states = sorted(selection.library.states | {selection.target.partition("_")[0]})
    header: Header = {"library": list(selection.library.names), "states": states}
    header |= {name: getattr(selection, name) for name in ("method", "preferred", "target")}
    header["refits"] = {name: refit.risk for name, refit in selection.refits.items()}
    header["curves"] = {name: asdict(curve.basis) for name, curve in selection.curves.items()}
    arrays = {"xi": selection.xi}
    for name, refit in selection.refits.items():
        arrays |= {f"refits.{name}.xi": refit.xi, f"refits.{name}.deviation": refit.deviation}
    for name, curve in selection.curves.items():
        arrays |= {f"curves.{name}.weights": curve.weights, f"curves.{name}.covariance": curve.covariance}
    return header, arrays


def unpack_selection(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], field: FrozenField | None
) -> Selection:
    """The selection from this field."""
    containers.require_entries(header, _SELECTION)
    refits = {
        name: Refit(arrays[f"refits.{name}.xi"], arrays[f"refits.{name}.deviation"], float(risk))
        for name, risk in header["refits"].items()
    }
    curves = {
        name: Curve(
            SplineBasis(**basis), arrays[f"curves.{name}.weights"], arrays[f"curves.{name}.covariance"]
        )
        for name, basis in header["curves"].items()
    }
    library = Library.parse(header["library"], tuple(header["states"]))
    words = {name: header[name] for name in ("method", "preferred", "target")}
    return Selection(library, arrays["xi"], refits=refits, curves=curves, field=field, **words)


def pack_verdict(verdict: Verdict) -> Header:
    """The verdict in full; equations of rivals by their terms and coefficients."""
    rivals = [
        {
            "terms": [str(term) for term in rival.equation.terms],
            "states": sorted({state for term in rival.equation.terms for state in term.states}),
            "coefficients": [float(value) for value in rival.equation.coefficients],
            "target": rival.equation.target,
            "risk": float(rival.risk),
        }
        for rival in verdict.rivals
    ]
    return verdict.as_dict() | {"rivals": rivals}


def unpack_verdict(header: Mapping[str, Any]) -> Verdict:
    """The verdict again; a number that was not finite is nan, an infinite margin too."""
    containers.require_entries(header, _VERDICT)
    rivals = []
    for each in header["rivals"]:
        states = tuple(dict.fromkeys(("u", *each["states"])))
        terms = Library.parse(each["terms"], states).terms if each["terms"] else ()
        rivals.append(Rival(Equation(terms, each["coefficients"], each["target"]), each["risk"]))
    numbers = {
        name: float("nan") if header[name] is None else float(header[name])
        for name in ("risk", "expected", "margin")
    }
    return Verdict(
        header["status"],
        tuple(header["reasons"]),
        tuple(rivals),
        of=header["of"],
        wanted=tuple(header["wanted"]),
        scope=header["scope"],
        **numbers,
    )


def with_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """The arrays under names that begin with the prefix."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def below(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """The arrays whose names begin with the prefix, without it."""
    start = f"{prefix}."
    return {name.removeprefix(start): a for name, a in arrays.items() if name.startswith(start)}
