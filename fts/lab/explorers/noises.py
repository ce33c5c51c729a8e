"""Cross moments at several noise levels -> an explorer of what noise does to one field, and not to two.

A page carries two symmetric matrices of J + 1 rows per noise level, as float32; it searches supports and
solves for coefficients itself, as `fts.selection.support_search` does.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import traitlets
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.equations.equation import Equation
from fts.explorers.explorer import Explorer, Payload, count, field_key, number, term_values
from fts.plotting import INK, PALETTE, WIDTH, use_style
from fts.problems.problems import problem
from fts.selection.instrumental import TWO_FIELDS
from fts.selection.moments import CrossMoments, Moments
from fts.selection.support_search import Support, beam_search

_COLORS = {"two fields": PALETTE[0], "one field": PALETTE[1]}


class NoiseLevels(Payload):
    """The cross moments of one problem at every noise level offered."""

    def __init__(self, name: str, levels: Mapping[float, CrossMoments]) -> None:
        if len(levels) < 2:
            raise ValueError(f"{len(levels)} noise levels: give at least two, or there is nothing to move")
        entry, library = problem(name), next(iter(levels.values())).library
        self.library, self.truth = library, entry.equation.on(library)
        upper = np.triu_indices(len(library) + 1)
        rows = [
            [one.norms, *(each.products.sum(axis=0)[upper] for each in (one.cross, one.within))]
            for one in levels.values()
        ]
        data = np.concatenate([part for row in rows for part in row]).astype("<f4").tobytes()
        names = ("name", "factor", "body")
        info: dict[str, Any] = {
            "label": entry.title,
            "dimension": entry.domain.dimension,
            "key": field_key(data),
            "size": len(library) + 1,
            "levels": list(levels),
            "library": [{part: term_values(term)[part] for part in names} for term in library],
            "truth": self.truth.tolist(),
            "search": {name: getattr(TWO_FIELDS, name) for name in ("reliability", "width")}
            | {"most": TWO_FIELDS.most_terms},
        }
        super().__init__(data=data, info=info)

    def moments(self, level: int) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Norms, cross and own moments as the page has them; one field is its own instrument."""
        n = self.info["size"]
        half = n * (n + 1) // 2
        values = np.frombuffer(self.data, "<f4").astype(float).reshape(len(self.info["levels"]), -1)[level]
        cross, own = (_square(part, n) for part in (values[n : n + half], values[n + half :]))
        return {"two fields": (values[:n], cross, own), "one field": (values[:n], own, own)}


class NoiseExplorer(Explorer):
    """What one field and two say of the same samples, as noise grows."""

    caption = "One field, two fields"
    order = ("level", "tolerance")
    heights = (640, 680, 760)
    view = traitlets.Unicode("noise").tag(sync=True)
    level = count(0, 0, 20, "Noise")
    tolerance = number(TWO_FIELDS.tolerance, 1e-4, 1e-1, 0.125, "Tolerance of the risk", base=10)

    def ranges(self, source: NoiseLevels) -> dict[str, tuple[int, int]]:
        """As many levels as the page carries."""
        return {"level": (0, len(source.info["levels"]) - 1)}

    @property
    def chosen(self) -> dict[str, Equation]:
        """The smallest equation within the tolerance of the lowest risk, in NumPy, by fields."""
        library, found = self.source.library, {}
        for name, (norms, cross, _) in self.source.moments(self.level).items():
            supports = [(), *self._supports(name)]
            risks = [_fit(cross, support)[1] for support in supports]
            limit = min(risks) + self.tolerance * cross[0, 0]
            support = next(s for s, risk in zip(supports, risks, strict=True) if risk <= limit)
            xi = _fit(cross, support)[0] * norms[0] / norms[1:][list(support)]
            found[name] = Equation(tuple(library[j] for j in support), xi)
        return found

    def _supports(self, name: str) -> list[Support]:
        _, cross, own = self.source.moments(self.level)[name]
        search = self.source.info["search"]
        return beam_search(cross, own, search["most"], search["reliability"], search["width"])

    def still(self) -> Figure:
        """Unexplained share by the number of terms, and the two equations."""
        use_style()
        figure, ax = plt.subplots(figsize=(WIDTH, 0.5 * WIDTH))
        for name, (_, cross, _) in self.source.moments(self.level).items():
            supports = self._supports(name)
            risks = [_fit(cross, support)[1] for support in supports]
            ax.plot(range(1, len(risks) + 1), risks, "o-", color=_COLORS[name], label=name)
        ax.axhline(0.0, color=INK, linestyle=":")
        noise = self.source.info["levels"][self.level]
        ax.set(
            xlabel="terms",
            ylabel="unexplained share",
            title=f"{self.source.info['label']}, {noise:.0%} noise",
        )
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
