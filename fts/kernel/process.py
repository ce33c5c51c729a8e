"""What freezing, weighting and verdicts need of a posterior, however its samples lie."""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from fts.domain import Domain
from fts.kernel.search import Choice


@runtime_checkable
class Process(Protocol):
    """A Gaussian process given samples: its mean on grids, and draws of what the mean may miss."""

    @property
    def domain(self) -> Domain: ...
    @property
    def choice(self) -> Choice: ...
    @property
    def mean(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def noise(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`, on the tensor grid of the axes."""
        ...

    def error(self, nodes: list[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """Truth less posterior mean, as the process expects it, drawn on the tensor grid of the nodes."""
        ...
