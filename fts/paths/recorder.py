"""A training watched: callback -> SupportPath, as arrays and as a file, and where to stop it (Supplement E).

Supports are kept whenever they change, losses and coefficients at every check, the field at a few of them on
a coarse grid. The training is the same with the recorder and without; no truth enters. Stopping rules look at
the path from where the method begins to drop terms: before it, all of them are in play.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.random import Generator

from fts import containers
from fts.baselines.deepmod import DeepMoDParams
from fts.baselines.weak_pde_learn import WeakPDELearnParams
from fts.domain import Domain
from fts.equations.terms import Library
from fts.fields.frozen import Field, FrozenField
from fts.observations import Observations
from fts.params.types import AdapterParams, FreezeThenSelectParams
from fts.selection.selection import Selection
from fts.svws import rule

_KIND = "path"
_LEVELS = 255.0


@dataclass(frozen=True)
class PathParams:
    """What a recorded training keeps of its fields, to be looked at later."""

    fields: int  # at most so many, evenly over the training
    selections: int  # about how often the equation is read off a field that trains without one
    grid: tuple[int, int]  # points each is kept at in one dimension, (x, t)
    plane: tuple[int, int, int]  # the same in two, (x, y, t)


About = Mapping[str, Any]
# Enough to see a field move by, and a few hundred kilobytes for the longest training.
PATHS = PathParams(fields=48, selections=100, grid=(64, 40), plane=(24, 24, 4))


@dataclass(frozen=True)
class SupportPath:
    """One training: `about` says which; the support is `supports[k]` from step `since[k]` on."""

    about: Mapping[str, Any]
    terms: tuple[str, ...]
    steps: Int[np.ndarray, " n"]
    losses: Mapping[str, Float[np.ndarray, " n"]]
    xi: Float[np.ndarray, "n J"]
    since: Int[np.ndarray, " k"]
    supports: Bool[np.ndarray, "k J"]
    field_steps: Int[np.ndarray, " m"]
    fields: Float[np.ndarray, "m ..."]  # on even grids over the box, (x, [y,] t)

    def __post_init__(self) -> None:
        if not len(self.steps) or self.since[0] > self.steps[0] or self.since[-1] > self.steps[-1]:
            ends = [f"from step {each[:1]} to {each[-1:]}" for each in (self.since, self.steps)]
            remedy = "record both from the first step to the last"
            raise ValueError(f"supports {ends[0]} do not belong to checks {ends[1]}: {remedy}")

    @property
    def end(self) -> int:
        """The last step."""
        return int(self.steps[-1])

    def support_at(self, step: int) -> Bool[np.ndarray, " J"]:
        """The terms in force at a step."""
        index = int(np.searchsorted(self.since, step, side="right")) - 1
        return self.supports[max(index, 0)]

    def names_at(self, step: int) -> tuple[str, ...]:
        """The same as words."""
        return tuple(name for name, used in zip(self.terms, self.support_at(step), strict=True) if used)

    def save(self, path: Path) -> None:
        """Write the path to a file, atomically; fields with 8 bits between each one's extremes."""
        flat = self.fields.reshape(len(self.fields), -1)
        low, high = flat.min(axis=1), flat.max(axis=1)
        scale = np.where(high > low, high - low, 1.0) / _LEVELS
        levels = np.rint((flat - low[:, None]) / scale[:, None]).astype(np.uint8)
        steps = {name: getattr(self, name).astype(np.int32) for name in ("steps", "since", "field_steps")}
        arrays = steps | {
            "losses": np.stack(list(self.losses.values()), axis=1).astype(np.float32),
            "xi": self.xi.astype(np.float32),
            "supports": self.supports.astype(np.uint8),
            "ranges": np.stack([low, low + scale * _LEVELS], axis=1).astype(np.float32),
            "fields": levels.reshape(self.fields.shape),
        }
        header = {"about": dict(self.about), "terms": list(self.terms), "losses": list(self.losses)}
        containers.save_arrays(path, _KIND, header, arrays)


def load_path(path: Path) -> SupportPath:
    """The path in a file, every byte verified; FileError if it is damaged."""
    command = "python -m fts.lab.studies paths"
    remedy = f"restore it from version control, or record it again: {command}"
    header, arrays = containers.load_arrays(path, _KIND, remedy)
    levels = arrays["fields"].astype(float)
    low, high = (side.reshape(-1, *[1] * (levels.ndim - 1)) for side in arrays["ranges"].astype(float).T)
    losses = dict(zip(header["losses"], arrays["losses"].T, strict=True))
    arrays |= {"supports": arrays["supports"].astype(bool), "fields": low + (high - low) * levels / _LEVELS}
    values = {name: arrays[name] for name in ("steps", "xi", "since", "supports", "field_steps", "fields")}
    return SupportPath(header["about"], tuple(header["terms"]), losses=losses, **values)


class Recorder:
    """What has been seen of a training so far; called at every check, asked for the path at its end."""

    def __init__(self, library: Library, domain: Domain, threshold: float, params: PathParams) -> None:
        self.library, self.threshold, self.params = library, threshold, params
        counts = params.grid if domain.dimension == 1 else params.plane
        low, high = (*domain.low, domain.t0), (*domain.high, domain.t1)
        self.axes = tuple(np.linspace(*ends) for ends in zip(low, high, counts, strict=True))
        self.forget()

    def forget(self) -> None:
        """Nothing has been seen."""
        self.checks: list[tuple[int, dict[str, float], np.ndarray]] = []
        self.supports: list[tuple[int, np.ndarray]] = []
        self.fields: list[tuple[int, np.ndarray]] = []
        self.calls, self.stride, self.latest = 0, 1, -1

    def __call__(
        self, step: int, losses: Mapping[str, float], xi: np.ndarray, mask: np.ndarray, field: Field
    ) -> None:
        """One check of the training."""
        if step <= self.latest:  # the training began anew
            self.forget()
        self.latest = step
        self._see_support(step, mask & (np.abs(xi) > self.threshold))
        if "held_out" not in losses:
            return
        self.checks.append((step, dict(losses), np.array(xi, dtype=float)))
        if self.calls % self.stride == 0:
            self.fields.append((step, field.on_grid(*self.axes)))
            if len(self.fields) >= 2 * self.params.fields:  # twice as many as wanted: twice as rarely
                del self.fields[1::2]
                self.stride *= 2
        self.calls += 1

    def path(self, about: About, end: int, losses: Mapping[str, float], selection: Selection) -> SupportPath:
        """The whole training, closed by the state in which it ended after `end` steps."""
        if self.latest < end:
            self.checks.append((end, dict(losses), selection.xi))
            self._see_support(end, selection.xi != 0)
        if selection.field is not None and self.fields[-1][0] < end:
            self.fields.append((end, selection.field.on_grid(*self.axes)))
        kept = np.linspace(0, len(self.fields) - 1, min(len(self.fields), self.params.fields))
        steps, seen, xi = zip(*self.checks, strict=True)
        curves = {name: np.array([values.get(name, np.nan) for values in seen]) for name in seen[0]}
        since, supports = map(np.array, zip(*self.supports, strict=True))
        fields = map(np.array, zip(*(self.fields[i] for i in np.rint(kept).astype(int)), strict=True))
        checks = (np.array(steps), curves, np.array(xi))
        return SupportPath(about, self.library.names, *checks, since, supports, *fields)

    def _see_support(self, step: int, support: np.ndarray) -> None:
        if not self.supports or (self.supports[-1][1] != support).any():
            self.supports.append((step, support.copy()))


# As a method, but with its path beside the selection.
Watched = tuple[Selection, SupportPath]
Recorded = Callable[[Observations, Library, Any, Generator, About], Watched]


def record_deepmod(
    observations: Observations, library: Library, params: DeepMoDParams, rng: Generator, about: About
) -> Watched:
    """DeepMoD's selection and its path: the terms in play at every check."""
    from fts.baselines.training.deepmod import deepmod

    recorder = Recorder(library, observations.domain, 0.0, PATHS)
    selection = deepmod(observations, library, params, rng, callback=recorder)
    notes = selection.notes
    losses = {"data": notes["final_data"], "residual": notes["final_residual"], "held_out": notes["held_out"]}
    about = {**about, "sparse_from": notes["sparse_since"], "stopped_by": notes["stopped_by"]}
    return selection, recorder.path(about, notes["iterations"], losses, selection)


def record_weak_pde_learn(
    observations: Observations, library: Library, params: WeakPDELearnParams, rng: Generator, about: About
) -> Watched:
    """Weak-PDE-LEARN's selection and its path: the coefficients beyond the threshold in every epoch."""
    from fts.baselines.training.weak_pde_learn import weak_pde_learn

    recorder = Recorder(library, observations.domain, params.threshold, PATHS)
    selection = weak_pde_learn(observations, library, params, rng, callback=recorder)
    about = {**about, "sparse_from": params.burn_in, "stopped_by": selection.notes["stopped_by"]}
    return selection, recorder.path(about, selection.notes["iterations"], {}, selection)


def record_freeze_then_select(
    observations: Observations, library: Library, params: FreezeThenSelectParams, rng: Generator, about: About
) -> Watched:
    """Our selection, and what SVWS would have said of the field at every stage of its training."""
    from fts.adapter import paper

    settings, recipe = params.field.settings, params.field.recipe
    if recipe != "paper" or not isinstance(settings, AdapterParams):
        raise ValueError(f"recipe {recipe!r} has no stages: record the paper's own, with settings")
    recorder = Recorder(library, observations.domain, 0.0, PATHS)
    every = max(1, settings.training.epochs // PATHS.selections)

    def watch(update: int, error: float, freeze: Callable[[], FrozenField]) -> None:
        if update % every == 0:
            field = freeze()
            systems = rule.build(field, library, params.weak, params.svws)
            generation, fit, validation = rule.roles(systems, params.svws)
            selection = rule.choose(rule.generate(generation, params.svws), fit, validation, params.svws)
            losses = {"data": error, "held_out": float(selection.risks.mean())}
            recorder(update, losses, selection.xi, selection.xi != 0, field)

    field = paper.fit(observations, settings, progress=False, watch=watch)
    systems = rule.build(field, library, params.weak, params.svws)
    selection = replace(rule.select_from(systems, params.svws).with_refit("ridge"), field=field)
    history = field.made.history
    assert history is not None
    misfit = field(np.column_stack([observations.x, observations.t])) - observations.y
    losses = {"data": float(np.mean(misfit**2)), "held_out": float(selection.risks.mean())}
    stopped = "budget" if history.updates == settings.training.epochs else "patience"
    # Until the background is fitted the field does not move, and there is no equation to read off it.
    begin = settings.training.background_epochs + 1
    about = {**about, "sparse_from": begin, "kept": history.kept, "stopped_by": stopped}
    return selection, recorder.path(about, history.updates, losses, selection)


RECORDED: dict[str, Recorded] = {
    "DeepMoD": record_deepmod,
    "Weak-PDE-LEARN": record_weak_pde_learn,
    "freeze, then select": record_freeze_then_select,
}


Rule = Callable[[SupportPath], int]


def objective(path: SupportPath) -> Float[np.ndarray, " n"]:
    """What the training minimizes, at every check."""
    losses = path.losses
    return losses["loss"] if "loss" in losses else losses["data"] + losses.get("residual", 0.0)


def lowest_loss(path: SupportPath) -> int:
    """The check at which the training's own objective was lowest."""
    return _lowest(path, objective(path))


def lowest_held_out(path: SupportPath) -> int:
    """The check at which the objective on what is held out was lowest."""
    return _lowest(path, path.losses["held_out"])


def longest_lived(path: SupportPath) -> int:
    """The last step of the support that stood longest without a change; of the earlier one in a tie."""
    starts = np.maximum(path.since, _begin(path))
    ends = np.append(path.since[1:], path.end + 1)
    return int(ends[np.argmax(ends - starts)]) - 1


def last(path: SupportPath) -> int:
    """The end of the training."""
    return path.end


RULES: dict[str, Rule] = {
    "lowest training loss": lowest_loss,
    "lowest held-out loss": lowest_held_out,
    "longest-lived support": longest_lived,
    "last": last,
}


def _begin(path: SupportPath) -> int:
    """The first step at which terms may have left; the last one where none ever did."""
    begin = path.about.get("sparse_from", 0)
    return path.end if begin is None else min(int(begin), path.end)


def _lowest(path: SupportPath, values: np.ndarray) -> int:
    late = path.steps >= _begin(path)
    return int(path.steps[late][np.nanargmin(values[late])])
