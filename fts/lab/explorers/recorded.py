"""Explorers of what was computed beforehand: noise in one field and in two, runs, and pools of functions.

The first page carries two symmetric matrices of J + 1 rows per noise level, and searches supports itself, as
`fts.selection.support_search` does; the second carries one such matrix per run of an experiment. The third
carries refitted functions with their held-out risks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from fts import containers
from fts.discovery.systems import SystemDiscovery
from fts.equations.equation import Equation
from fts.explorers.explorer import Explorer, Payload, count, field_key, number, term_values
from fts.lab.studies.records import RunRecord
from fts.lab.studies.symbolic import PROBLEM
from fts.plotting import INK, PALETTE, canvas, panel_row, use_style
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.selection.instrumental import TWO_FIELDS
from fts.selection.moments import CrossMoments, Moments
from fts.selection.support_search import Support, beam_search
from fts.symbolic.families import Form
from fts.symbolic.search import SYMBOLIC

_SHOWN = ("name", "factor", "body")  # of a term
_COLORS = {"two fields": PALETTE[0], "one field": PALETTE[1]}


class NoiseLevels(Payload):
    """The cross moments of one problem at every noise level offered."""

    def __init__(self, name: str, levels: Mapping[float, CrossMoments]) -> None:
        if len(levels) < 2:
            raise ValueError(f"{len(levels)} noise levels: give at least two, or there is nothing to move")
        entry, library = problem(name), next(iter(levels.values())).library
        self.library, self.truth = library, entry.equation.on(library)
        upper = np.triu_indices(len(library) + 1)
        parts = []
        for moments in levels.values():
            products = (each.products.sum(axis=0)[upper] for each in (moments.cross, moments.within))
            parts += [moments.norms, *products]
        data, search = np.concatenate(parts).astype("<f4").tobytes(), TWO_FIELDS
        info: dict[str, Any] = {
            "label": entry.title,
            "dimension": entry.domain.dimension,
            "key": field_key(data),
            "size": len(library) + 1,
            "levels": list(levels),
            "library": [{name: term_values(term)[name] for name in _SHOWN} for term in library],
            "truth": self.truth.tolist(),
            "search": {"reliability": search.reliability, "width": search.width, "most": search.most_terms},
        }
        super().__init__(data=data, info=info)

    def moments(self, level: int) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Norms, cross and own moments as the page has them; one field is its own instrument."""
        n = self.info["size"]
        half = n * (n + 1) // 2
        values = np.frombuffer(self.data, "<f4").astype(float).reshape(len(self.info["levels"]), -1)[level]
        cross, within = (_square(part, n) for part in (values[n : n + half], values[n + half :]))
        return {"two fields": (values[:n], cross, within), "one field": (values[:n], within, within)}


class NoiseExplorer(Explorer):
    """What one field and two say of the same samples, as noise grows."""

    caption = "One field, two fields"
    order = ("level", "tolerance")
    heights = (640, 680, 760)
    view = traitlets.Unicode("noise").tag(sync=True)
    level = count(0, 0, 20, "Noise")
    tolerance = number(TWO_FIELDS.tolerance, 1e-4, 1e-1, 0.125, "Tolerance of the risk", base=10)

    def ranges(self, source: NoiseLevels) -> dict[str, tuple[int, int]]:
        return {"level": (0, len(source.info["levels"]) - 1)}

    @property
    def chosen(self) -> dict[str, Equation]:
        """The smallest equation within the tolerance of the lowest risk, in NumPy, by fields."""
        library, equations = self.source.library, {}
        for name, (norms, cross, _) in self.source.moments(self.level).items():
            supports = [(), *self._supports(name)]
            risks = [_fit(cross, support)[1] for support in supports]
            limit = min(risks) + self.tolerance * cross[0, 0]
            support = next(s for s, risk in zip(supports, risks, strict=True) if risk <= limit)
            xi = _fit(cross, support)[0] * norms[0] / norms[1:][list(support)]
            equations[name] = Equation(tuple(library[j] for j in support), xi)
        return equations

    def _supports(self, name: str) -> list[Support]:
        _, cross, within = self.source.moments(self.level)[name]
        search = self.source.info["search"]
        return beam_search(cross, within, search["most"], search["reliability"], search["width"])

    def still(self) -> Figure:
        use_style()
        figure, ax = canvas(0.5)
        for name, (_, cross, _) in self.source.moments(self.level).items():
            supports = self._supports(name)
            risks = [_fit(cross, support)[1] for support in supports]
            ax.plot(range(1, len(risks) + 1), risks, "o-", color=_COLORS[name], label=name)
        ax.axhline(0.0, color=INK, linestyle=":")
        title = f"{self.source.info['label']}, {self.source.info['levels'][self.level]:.0%} noise"
        ax.set(xlabel="terms", ylabel="unexplained share", title=title)
        ax.legend()
        return figure


def _fit(cross: np.ndarray, support: Support) -> tuple[np.ndarray, float]:
    """Coefficients of a support by cross products, and their risk."""
    moments = Moments(cross[None]).on(support)
    x = moments.minimum_norm()
    return x[0], float(moments.risk(x)[0])


def _square(upper: np.ndarray, n: int) -> np.ndarray:
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n)] = upper
    return matrix + np.triu(matrix, 1).T


class Runs(Payload):
    """The moments of every run of one experiment, as a discovery has them."""

    def __init__(self, label: str, result: SystemDiscovery, truth: Equation) -> None:
        ((_, discovered),) = result.components.items()
        evidence, runs = discovered.evidence, len(result.experiments)
        if evidence is None or runs < 2 or len(evidence.regions.products) % runs:
            raise ValueError(
                f"{runs} runs: give a discovery from two or more, each with rows in every region"
            )
        products, upper = evidence.regions.products, np.triu_indices(len(evidence.library) + 1)
        self.library, self.truth = evidence.library, truth.on(evidence.library)
        self.products = products.reshape(runs, -1, *products.shape[1:]).sum(axis=1)
        data = np.stack([each[upper] for each in self.products]).astype("<f8").tobytes()
        self.search = {"reliability": 1e-9, "width": 6, "most": min(8, len(evidence.library))}
        info: dict[str, Any] = {
            "label": label,
            "dimension": 1,
            "key": field_key(data),
            "size": len(evidence.library) + 1,
            "runs": runs,
            "target": truth.target,
            "norms": evidence.norms.tolist(),
            "library": [{name: term_values(term)[name] for name in _SHOWN} for term in evidence.library],
            "truth": self.truth.tolist(),
            "search": self.search,
        }
        super().__init__(data=data, info=info)


class RunsExplorer(Explorer):
    """What several runs of an experiment say, and fewer of them."""

    caption = "Take runs away"
    order = (*(f"run_{k}" for k in range(1, 7)), "factor")
    view = traitlets.Unicode("experiments").tag(sync=True)
    factor = number(1.5, 1.05, 10.0, 0.05, "Times the least unexplained share", base=10)
    run_1, run_2, run_3, run_4, run_5, run_6 = (count(1, 0, 1, f"Run {k}") for k in range(1, 7))

    @property
    def kept(self) -> list[int]:
        """The runs that were not taken away."""
        return [k for k in range(self.source.info["runs"]) if getattr(self, f"run_{k + 1}")]

    @property
    def sizes(self) -> list[tuple[Support, np.ndarray, float, float]]:
        """By number of terms the best support, its weights, and what they leave in runs kept and others."""
        products, search = self.source.products, self.source.search
        inside = np.isin(np.arange(len(products)), self.kept)
        kept, removed = (Moments(products[each].sum(axis=0)[None]) for each in (inside, ~inside))
        matrix, rows = kept.products[0], []
        if not inside.any():
            return []
        for support in beam_search(matrix, matrix, search["most"], search["reliability"], search["width"]):
            x = kept.on(support).solve()
            shares = (
                float(each.on(support).risk(x)[0] / max(each.square[0], 1e-300)) for each in (kept, removed)
            )
            rows.append((support, x[0], *shares))
        return rows

    @property
    def chosen(self) -> Equation:
        """The smallest equation whose unexplained share is within the factor of the least, by NumPy."""
        rows, library, target = self.sizes, self.source.library, self.source.info["target"]
        if not rows:
            return Equation((), [], target)
        limit = self.factor * min(risk for *_, risk, _ in rows)
        support, x = next((support, x) for support, x, risk, _ in rows if risk <= limit)
        norms = np.array(self.source.info["norms"])[list(support)]
        return Equation(tuple(library[j] for j in support), x / norms, target)

    def still(self) -> Figure:
        use_style()
        figure, ax = canvas(0.5)
        rows = self.sizes
        terms, kept, away = (
            [f(row) for row in rows] for f in (lambda r: len(r[0]), lambda r: r[2], lambda r: r[3])
        )
        ax.plot(terms, kept, "o-", color=PALETTE[0], label="runs kept")
        if len(self.kept) < self.source.info["runs"]:
            ax.plot(terms, away, "o-", color=PALETTE[4], label="runs taken away")
        ax.set(yscale="log", xlabel="terms", ylabel="unexplained share", title=self.source.info["label"])
        ax.legend()
        return figure


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
        use_style()
        figure, (left, right) = panel_row(2, 0.45, sharey=False)
        order = sorted(self._pool, key=self._score)
        names, risks = [entry["family"].replace("*", " ") for entry in order], [e["risk"] for e in order]
        penalties = [self.penalty * entry["complexity"] for entry in order]
        left.barh(names, risks, color=[PALETTE[0], *[INK] * (len(order) - 1)])
        left.barh(names, penalties, left=risks, color=PALETTE[1])
        left.invert_yaxis()
        left.tick_params(axis="y", labelsize=8)
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
