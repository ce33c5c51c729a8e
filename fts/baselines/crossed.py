"""Any field with any selector: which half of a method makes it win?

Fields are the spectral reconstruction, the paper's network and the kernel's; selectors are thresholded ridge
on derivatives (PDE-FIND's) or on a weak system (WSINDy's), one STLSQ of the paper's, and its whole rule.
"""

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fts.baselines.registry import register
from fts.baselines.spectral import SpectralParams, reconstruct
from fts.baselines.stridge import StrongRegressionParams, WeakRegressionParams, select_strong, select_weak
from fts.equations.terms import Library
from fts.fields.frozen import FrozenField
from fts.fitting import obtain_frozen
from fts.observations import Observations
from fts.params.types import FieldParams, SVWSParams, WeakParams
from fts.selection.selection import Selection
from fts.svws import rule
from fts.weak.assembly import assemble
from fts.weak.test_functions import phases


@dataclass(frozen=True)
class WeakRuleParams:
    """The rule of the paper, or one threshold of it, on weak systems."""

    weak: WeakParams
    svws: SVWSParams


@dataclass(frozen=True)
class CrossedParams:
    """Any field with any selector, to tell which half of a method wins; one of the two fields is given."""

    spectral: SpectralParams | None
    field: FieldParams | None
    selector: Literal["strong STRidge", "weak STRidge", "single weak STLSQ", "SVWS"]
    settings: StrongRegressionParams | WeakRegressionParams | WeakRuleParams  # of the selector


@register("crossed", CrossedParams)
def crossed(
    observations: Observations, library: Library, params: CrossedParams, rng: np.random.Generator
) -> Selection:
    """The equation one selector reads off one field; only the weak STRidge draws from `rng`."""
    if params.spectral is not None and params.field is None:
        field = reconstruct(observations, params.spectral)
    elif params.field is not None and params.spectral is None:
        field = obtain_frozen(observations, params.field)
    else:
        raise ValueError("give either `spectral` or `field`: a selector reads one field")
    began = time.process_time()
    selection = _select(field, library, params, rng)
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    return replace(selection, method=params.selector, field=field, seconds=seconds)


def _select(
    field: FrozenField, library: Library, params: CrossedParams, rng: np.random.Generator
) -> Selection:
    match params.selector, params.settings:
        case "strong STRidge", StrongRegressionParams() as settings:
            return select_strong(field, library, settings)
        case "weak STRidge", WeakRegressionParams() as settings:
            return select_weak(field, library, settings, rng)
        case "single weak STLSQ", WeakRuleParams() as settings:
            # The first of the systems that the rule would be given, at its base threshold.
            draws = np.random.default_rng(settings.svws.phase_seed)
            phase = phases(draws, 1, field.domain.dimension)[0]
            return rule.single(assemble(field, library, settings.weak, phase), 1.0, settings.svws)
        case "SVWS", WeakRuleParams() as settings:
            systems = rule.build(field, library, settings.weak, settings.svws)
            return rule.select_from(systems, settings.svws).with_refit("ridge")
    raise ValueError(
        f"selector {params.selector!r} does not take {type(params.settings).__name__}: give strong STRidge "
        "StrongRegressionParams, weak STRidge WeakRegressionParams, the others WeakRuleParams"
    )
