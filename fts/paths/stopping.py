"""Where to stop, without the truth: SupportPath -> the step whose equation a rule would report.

Every rule looks at the training from the step on at which its method begins to drop terms; before it all of
them are in play, and there is nothing to report.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from fts.paths.recorder import SupportPath

Rule = Callable[[SupportPath], int]


def objective(path: SupportPath) -> Float[np.ndarray, " n"]:
    """What the training minimizes, at every check."""
    losses = path.losses
    if "loss" in losses:
        return losses["loss"]
    return losses["data"] + losses["residual"] if "residual" in losses else losses["data"]


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
