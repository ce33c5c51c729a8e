"""Recorded pools of functions -> an explorer that chooses again as the complexity penalty changes.

A page carries the refitted functions of every family with their held-out risks: the choice is made in it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts import containers
from fts.explorers.explorer import Explorer, Payload, count, field_key, number
from fts.lab.studies.records import RunRecord
from fts.lab.studies.symbolic import PROBLEM
from fts.plotting import INK, PALETTE, WIDTH, use_style
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.symbolic.families import Form
from fts.symbolic.search import SYMBOLIC


class PoolRuns(Payload):
    """The pools of all runs at one noise level."""

    def __init__(self, runs: Sequence[RunRecord]) -> None:
        if not runs or any(run.error for run in runs):
            raise ValueError("give at least one finished run: python -m fts.lab.studies symbolic makes them")
        self.pools = [[_entry(recorded) for recorded in run.extra["pool"]] for run in runs]
        u, truth = simulate(PROBLEM).u, problem(PROBLEM).equation
        info: dict[str, Any] = {
            "label": f"{runs[0].noise:.0%} noise, {runs[0].row} field".replace("%", " %"),
            "dimension": 1,
            "seeds": [run.seed for run in runs],
            "pools": self.pools,
            "low": float(u.min()),
            "high": float(u.max()),
            "truth": {
                "numerator": [[truth.terms[0].q.degree, float(truth.coefficients[0])]],
                "denominator": [],
            },
        }
        data = containers.canonical_json(info).encode()
        super().__init__(data=b"", info=info | {"key": field_key(data)})


class PoolExplorer(Explorer):
    """The frozen pool, chosen from again under another penalty."""

    caption = "Choose from the frozen pool"
    order = ("penalty", "run")
    view = traitlets.Unicode("pool").tag(sync=True)
    penalty = number(SYMBOLIC.continuous.penalty, 1e-6, 1.0, 0.125, "Penalty per node", base=10)
    run = count(1, 1, 5, "Run")

    @property
    def chosen(self) -> dict[str, Any]:
        """The entry of the pool that the present penalty prefers, by NumPy."""
        return min(self._pool, key=self._score)

    @property
    def _pool(self) -> list[dict[str, Any]]:
        return self.source.pools[min(self.run, len(self.source.pools)) - 1]

    def _score(self, entry: dict[str, Any]) -> float:
        return entry["risk"] + self.penalty * entry["complexity"]

    def still(self) -> Figure:
        """Scores of the pool, and the chosen function beside the true one."""
        use_style()
        figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 0.45 * WIDTH))
        order = sorted(self._pool, key=self._score)
        names, risks = (
            [entry["family"].replace("*", " ") for entry in order],
            [entry["risk"] for entry in order],
        )
        left.barh(names, risks, color=[PALETTE[0], *[INK] * (len(order) - 1)])
        left.barh(
            names, [self.penalty * entry["complexity"] for entry in order], left=risks, color=PALETTE[1]
        )
        left.invert_yaxis()
        left.tick_params(axis="y", labelsize=7)
        left.set(xlabel="risk + penalty", title=self.source.info["label"])
        info = self.source.info
        u = np.linspace(info["low"], info["high"], 100)
        for entry, style in ((info["truth"], "--"), (self.chosen, "-")):
            values = _form(entry).values(u)
            right.plot(u, values - values.mean(), style, color=INK if style == "--" else PALETTE[0])
        right.set(xlabel="$u$", title="$q(u)$ up to a constant")
        return figure


def _entry(recorded: dict[str, Any]) -> dict[str, Any]:
    names = ("family", "complexity", "numerator", "denominator")
    return {name: recorded[name] for name in names} | {"risk": float(np.mean(recorded["risks"]))}


def _form(entry: dict[str, Any]) -> Form:
    return Form(*(tuple((e, c) for e, c in entry[part]) for part in ("numerator", "denominator")))
