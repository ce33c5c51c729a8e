"""Operon (`pyoperon`) on the pairs of a target: its last population -> a front of functions of u.

Exponents in Operon may be any expression. The paper's PySR search allows a constant there, so what is read
off the population is every individual whose exponents are constants; the front is theirs.
"""

import warnings
from typing import Any

from fts.params.rivals import OperonParams
from fts.symbolic.fronts import Found, fitted, pareto, read_function
from fts.symbolic.targets import Target


def operon_front(target: Target, params: OperonParams, seed: int) -> tuple[Found, ...]:
    """The front of an Operon search for functions that fit the pairs."""
    regressor = _regressor(params, seed)
    with warnings.catch_warnings():
        # An individual without the variable is one of the population; it is dropped as a constant below.
        warnings.filterwarnings("ignore", message="Model contains no variables")
        regressor.fit(target.u[:, None], target.q)
        texts = {
            regressor.get_model_string(one.Genotype, params.digits, ["u"]): one.Genotype.Length
            for one in regressor.individuals_
        }
    return front_of(texts, target)


def front_of(texts: dict[str, int], target: Target) -> tuple[Found, ...]:
    """The front of the functions among the texts, each with its size."""
    functions = [(read_function(text), size) for text, size in texts.items()]
    found = [fitted(q, size, target) for q, size in functions if q is not None]
    return pareto(one for one in found if one is not None)


def _regressor(params: OperonParams, seed: int) -> Any:
    try:
        from pyoperon.sklearn import SymbolicRegressor
    except ImportError:
        raise ValueError("Operon is not installed: pip install 'fts[symbolic]'") from None
    return SymbolicRegressor(
        allowed_symbols=",".join(params.symbols),
        objectives=["r2", "length"],
        population_size=params.population,
        generations=params.generations,
        max_evaluations=params.population * params.generations * (2 + params.constant_steps),
        max_length=params.tree_length,
        max_depth=params.tree_depth,
        optimizer_iterations=params.constant_steps,
        epsilon=params.convergence,
        n_threads=1,
        random_state=seed,
    )
