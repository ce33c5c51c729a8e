"""PySR on the pairs of a target, with the paper's settings (Section F, Table S13).

PySR starts Julia when it is imported, so it is imported inside the one function that calls it, and
`missing` says beforehand why it cannot be.
"""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fts.equations.expressions import Expression
from fts.params.rivals import PySRParams
from fts.symbolic.fronts import read_function
from fts.symbolic.targets import Target

# Where PySR's own installer puts Julia, below the environment.
_INSTALLED = Path("julia_env") / "pyjuliapkg" / "install" / "bin" / "julia"


def missing() -> str:
    """Why PySR cannot run here; empty when it can."""
    if find_spec("pysr") is None:
        return "PySR is not installed: pip install 'fts[symbolic]'"
    named = os.environ.get("PYTHON_JULIAPKG_EXE")
    if shutil.which(named or "julia") or (Path(sys.prefix) / _INSTALLED).is_file():
        return ""
    return "PySR needs Julia, and there is none on the path: install it from julialang.org"


def settings(params: PySRParams, seed: int) -> dict[str, Any]:
    """The keyword arguments of PySRRegressor; serial, so that a seed fixes the run."""
    return {
        "model_selection": params.model_selection,
        "niterations": params.niterations,
        "populations": params.populations,
        "population_size": params.population_size,
        "binary_operators": list(params.operators),
        "constraints": {"^": (-1, params.exponent_complexity)},  # any base
        "maxsize": params.maxsize,
        "maxdepth": params.maxdepth,
        "parsimony": params.parsimony,
        "random_state": seed,
        "deterministic": True,
        "parallelism": "serial",
        "progress": False,
        "verbosity": 0,
        "temp_equation_file": True,
        "delete_tempfiles": True,
    }


def pysr_function(
    target: Target, params: PySRParams, seed: int, regressor: Any | None = None
) -> Expression | None:
    """The function PySR settles on; None when it is no function of the package's grammar.

    `regressor` stands in for PySRRegressor(**settings(params, seed)).
    """
    if regressor is None:
        reason = missing()
        if reason:
            raise ValueError(reason)
        from pysr import PySRRegressor

        regressor = PySRRegressor(**settings(params, seed))
    regressor.fit(target.u[:, None], target.q, variable_names=["u"])
    return read_function(str(regressor.sympy()).replace("**", "^"))
