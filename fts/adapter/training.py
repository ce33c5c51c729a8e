"""The loop that trains every network field: AdamW, cosine decay, clipping, checkpoint, stopping (A.3).

An objective adds the gradient of one update and returns, where it is cheap, the mean squared error of all
observations at the iterate before it. The loop keeps the best iterate and is independent of the model: any
objective over any tensors is trained by it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from tqdm.auto import tqdm

from fts.fields.frozen import History
from fts.params.types import TrainingParams

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


def train(
    objective: Objective,
    parameters: Sequence[Tensor],
    params: TrainingParams,
    variance: float,
    progress: bool,
    watch: Callable[[int, float], None] | None = None,
) -> History:
    """Minimize the objective over the parameters in place, and leave them at the iterate to freeze.

    A parameter that an update's loss does not depend on is left alone by it, weight decay included. Where
    the error is taken, `watch` is called with the update and the error of the current parameters.
    """
    rate, decay = params.learning_rate, params.weight_decay
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, params.epochs)
    keeper = _Keeper(parameters, params, variance)
    bar = tqdm(total=params.epochs, disable=not progress, delay=_BAR_DELAY, desc="fit", unit="update")
    with bar:
        for update in range(params.epochs):
            optimizer.zero_grad()
            error = objective(update)
            if error is not None and watch is not None:
                watch(update, float(error))
            if error is not None and keeper.see(update, float(error)):
                break
            torch.nn.utils.clip_grad_norm_(parameters, params.clip)
            optimizer.step()
            schedule.step()
            bar.update()
            if update % 50 == 0:
                bar.set_postfix(loss=f"{keeper.last:.2e}", refresh=False)
        else:
            update = params.epochs
            keeper.see(update, float(objective.observation_error()))
    return keeper.restore(update)


class _Keeper:
    """Remembers the best iterate after the background phase, and says when to stop."""

    def __init__(self, parameters: Sequence[Tensor], params: TrainingParams, variance: float) -> None:
        self.parameters, self.params = parameters, params
        self.margin = params.min_decrease * variance
        self.every = max(1, params.epochs // _CURVE_POINTS)
        self.best, self.best_update = math.inf, 0
        self.reference, self.reference_update = math.inf, params.background_epochs
        self.last = math.inf
        self.copies = [parameter.detach().clone() for parameter in parameters]
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
            self.losses.append((update, float(f"{error:.4g}")))
        if update < self.params.background_epochs:
            return False
        if error < self.best:
            self.best, self.best_update = error, update
            for copy, parameter in zip(self.copies, self.parameters, strict=True):
                copy.copy_(parameter.detach())
        if error < self.reference - self.margin:
            self.reference, self.reference_update = error, update
        return 0 < self.params.patience <= update - self.reference_update

    def restore(self, update: int) -> History:
        """Put the iterate to freeze back in place."""
        if self.params.keep == "terminal":
            return History(update, update, self.last, tuple(self.losses))
        with torch.no_grad():
            for copy, parameter in zip(self.copies, self.parameters, strict=True):
                parameter.copy_(copy)
        return History(update, self.best_update, self.best, tuple(self.losses))
