"""Where a field came from: the samples, the recipe and its settings, what fitting cost and how it went."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fts import containers
from fts.observations import Observations
from fts.params.paper import RECIPE_VERSIONS

# What a header says, by name.
_KINDS: dict[str, tuple[type, ...]] = {
    "recipe": (str,),
    "version": (int,),
    "parameters": (dict,),
    "problem": (str, type(None)),
    "protocol": (str, type(None)),
    "seed": (int, type(None)),
    "noise": (float,),
    "seconds": (float,),
    "device": (str,),
    "history": (dict, type(None)),
}
_HISTORY: dict[str, tuple[type, ...]] = {
    "updates": (int,),
    "kept": (int,),
    "error": (float,),
    "losses": (list, tuple),
}


@dataclass(frozen=True)
class History:
    """How a training went."""

    updates: int  # updates made
    kept: int  # the iterate that is frozen
    error: float  # its MSE over all observations
    losses: tuple[tuple[int, float], ...]  # (update, MSE over all observations)


@dataclass(frozen=True)
class Provenance:
    """What made a field; empty for one that somebody composed by hand."""

    recipe: str = ""  # or the variant of the adapter
    version: int = 0  # of the recipe
    parameters: Mapping[str, Any] = field(default_factory=dict)  # settings by name, or what a search chose
    problem: str | None = None
    protocol: str | None = None
    seed: int | None = None
    noise: float = 0.0
    seconds: float = 0.0
    device: str = ""
    history: History | None = None  # of a trained field

    def as_dict(self) -> dict[str, Any]:
        """JSON form, for the field's header."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Provenance":
        """What a header says."""
        containers.expect(values, _KINDS)
        history = values["history"]
        if history is not None:
            containers.expect(history, _HISTORY)
            losses = tuple((int(update), float(error)) for update, error in history["losses"])
            history = History(**{**history, "losses": losses})
        return Provenance(**{**values, "history": history})


def describe(
    observations: Observations,
    recipe: str,
    parameters: Mapping[str, Any],
    *,
    seconds: float,
    device: str,
    seed: int | None = None,
    history: History | None = None,
) -> Provenance:
    """The provenance of a field that a recipe has just made of these observations."""
    return Provenance(
        recipe=recipe,
        version=recipe_version(recipe),
        parameters=parameters,
        problem=observations.problem,
        protocol=observations.protocol,
        seed=observations.seed if seed is None else seed,
        noise=observations.noise,
        seconds=round(seconds, 2),
        device=device,
        history=history,
    )


def recipe_version(recipe: str) -> int:
    """The present version of a recipe; variants of the adapter share the paper's."""
    return RECIPE_VERSIONS.get(recipe, RECIPE_VERSIONS["paper"])
