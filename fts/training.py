"""The loop that trains every network field: AdamW, cosine decay, clipping, checkpoint, stopping (A.3).

An objective adds the gradient of one update and returns, where it is cheap, the mean squared error of all
observations at the iterate before it. The loop keeps the best iterate and knows nothing about the model.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from tqdm.auto import tqdm

from fts.networks import Flat
from fts.params import AdapterParams

# Losses a field remembers of its training, for the curve.
_CURVE_POINTS = 120
# A bar that would be gone within two seconds is not drawn.
_BAR_DELAY = 2.0


@runtime_checkable
class Objective(Protocol):
    """What the loop minimizes."""

    def __call__(self, update: int) -> Tensor | None:
        """Add the gradient of one update's loss; the MSE over all observations before it, if taken."""
        ...

    def observation_error(self) -> Tensor:
        """The MSE over all observations at the present iterate."""
        ...


@dataclass(frozen=True)
class Trace:
    """How a training went."""

    updates: int  # updates made
    kept: int  # the iterate that is frozen
    error: float  # its MSE over all observations
    losses: tuple[tuple[int, float], ...]  # (update, MSE over all observations)

    def as_dict(self) -> dict[str, object]:
        """JSON form, for the field's header."""
        losses = [[update, float(f"{error:.4g}")] for update, error in self.losses]
        return {"updates": self.updates, "kept": self.kept, "error": self.error, "losses": losses}


def train(
    objective: Objective,
    flats: Sequence[Flat],
    params: AdapterParams,
    variance: float,
    progress: bool,
    ready: Callable[[int, int], bool] = lambda update, flat: True,
) -> Trace:
    """Minimize the objective over the flat vectors in place, and leave them at the iterate to freeze.

    `ready(update, i)` says whether flats[i] moves at this update.
    """
    optimizer = torch.optim.AdamW(
        [flat.vector for flat in flats],
        lr=params.learning_rate,
        weight_decay=params.weight_decay,
        fused=True,
    )
    keeper = _Keeper(flats, params, variance)
    bar = tqdm(total=params.epochs, disable=not progress, delay=_BAR_DELAY, desc="fit", unit="update")
    with bar:
        for update in range(params.epochs):
            moving = [flat for i, flat in enumerate(flats) if ready(update, i)]
            for flat in moving:
                flat.vector.grad = flat.gradient.zero_()
            error = objective(update)
            if error is not None and keeper.see(update, float(error)):
                break
            _clip([flat.gradient for flat in moving], params.clip)
            decay = 0.5 * (1 + math.cos(math.pi * update / params.epochs))
            optimizer.param_groups[0]["lr"] = params.learning_rate * decay
            optimizer.step()
            bar.update()
            if update % 50 == 0:
                bar.set_postfix(loss=f"{keeper.last:.2e}", refresh=False)
        else:
            update = params.epochs
            keeper.see(update, float(objective.observation_error()))
    return keeper.restore(update)


class _Keeper:
    """Remembers the best iterate after the background phase, and says when to stop."""

    def __init__(self, flats: Sequence[Flat], params: AdapterParams, variance: float) -> None:
        self.flats, self.params = flats, params
        self.margin = params.min_decrease * variance
        self.every = max(1, params.epochs // _CURVE_POINTS)
        self.best, self.best_update = math.inf, 0
        self.reference, self.reference_update = math.inf, params.background_epochs
        self.last = math.inf
        self.copies = [flat.vector.detach().clone() for flat in flats]
        self.losses: list[tuple[int, float]] = []

    def see(self, update: int, error: float) -> bool:
        """Take note of the present iterate; True when patience has run out."""
        if not math.isfinite(error):
            raise ValueError(
                f"the observation error is {error} at update {update}: the training diverged, most likely "
                f"because learning_rate={self.params.learning_rate} is too large for values of this size; "
                "lower it, or scale the data to a variance near one"
            )
        self.last = error
        if not self.losses or update - self.losses[-1][0] >= self.every:
            self.losses.append((update, error))
        if update < self.params.background_epochs:
            return False
        if error < self.best:
            self.best, self.best_update = error, update
            for copy, flat in zip(self.copies, self.flats, strict=True):
                copy.copy_(flat.vector.detach())
        if error < self.reference - self.margin:
            self.reference, self.reference_update = error, update
        return 0 < self.params.patience <= update - self.reference_update

    def restore(self, update: int) -> Trace:
        """Put the iterate to freeze back in place."""
        if self.params.keep == "terminal":
            return Trace(update, update, self.last, tuple(self.losses))
        with torch.no_grad():
            for copy, flat in zip(self.copies, self.flats, strict=True):
                flat.vector.copy_(copy)
        return Trace(update, self.best_update, self.best, tuple(self.losses))


def _clip(gradients: Sequence[Tensor], limit: float) -> None:
    """Scale the gradients so that their joint norm is at most `limit`."""
    norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
    norm = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms))
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor)
