"""The explorer that opens the chapter on weak forms: a bump slides over noisy values and fills a column."""

from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from fts import containers
from fts.explorers.explorer import Explorer, Payload, count, field_key
from fts.plotting import INK, PALETTE, panel_row, use_style
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.weak.test_functions import bump

_PROBLEM, _TIME, _NOISE, _SEED = "ks", 80.0, 0.01, 1301
_HALF_WIDTH, _POWER, _ROWS = 8.0, 8, 40
_SHOWN = 4  # every fourth point is drawn


class SlidingBump(Payload):
    """A noisy state, and the column of u_xx at points and against bumps, with and without the noise."""

    def __init__(self) -> None:
        trajectory = simulate(_PROBLEM)
        x, u = trajectory.axes[0], trajectory.u[:, int(np.searchsorted(trajectory.t, _TIME))]
        noisy = u + _NOISE * u.std() * np.random.default_rng(_SEED).standard_normal(u.size)
        length, _ = trajectory.domain.extents
        self.x, self.noisy, self.curvature = x, noisy, _second_derivative(noisy, length)
        low, high = trajectory.domain.low[0] + _HALF_WIDTH, trajectory.domain.high[0] - _HALF_WIDTH
        places = np.searchsorted(x, np.linspace(low, high, _ROWS))
        self.centers = x[places]
        s, step = (x - self.centers[:, None]) / _HALF_WIDTH, x[1] - x[0]
        inside = np.abs(s) < 1
        psi, psi_xx = (
            np.where(inside, bump(np.where(inside, s, 0.0), _POWER, order), 0.0) * _HALF_WIDTH**-order * step
            for order in (0, 2)
        )
        self.by_parts = psi @ self.curvature, psi_xx @ noisy
        self.columns = {"pointwise": self.curvature[places], "weak": psi_xx @ noisy}
        self.exact = {"pointwise": _second_derivative(u, length)[places], "weak": psi_xx @ u}
        drawn = {"x": x[::_SHOWN], "u": noisy[::_SHOWN], "u_xx": self.curvature[::_SHOWN]}
        columns = self.columns | {f"{name}_exact": column for name, column in self.exact.items()}
        arrays = {name: values.astype("<f4") for name, values in (drawn | columns).items()}
        data = containers.pack_arrays("bump", {}, arrays | {"centers": self.centers.astype("<f4")})
        info: dict[str, Any] = {
            "label": problem(_PROBLEM).title,
            "dimension": 1,
            "rows": _ROWS,
            "half_width": _HALF_WIDTH,
            "power": _POWER,
        }
        super().__init__(data=data, info=info | {"key": field_key(data)})

    @property
    def errors(self) -> dict[str, float]:
        """Relative error of the whole column by both ways."""
        size = np.linalg.norm
        return {
            name: float(size(self.columns[name] - exact) / size(exact)) for name, exact in self.exact.items()
        }


class BumpExplorer(Explorer):
    """The bump's position, and the entries of the column up to it."""

    caption = "Why not differentiate?"
    order = ("place",)
    view = traitlets.Unicode("bump").tag(sync=True)
    place = count(0, 0, _ROWS - 1, "Bump", play=True)

    def still(self) -> Figure:
        use_style()
        figure, panels = panel_row(2, 0.45, sharey=False)
        titles = {"pointwise": "$u_{xx}$ at the point", "weak": r"$\int\psi_{xx}\,u$"}
        record = self.source
        for ax, (name, title), color in zip(panels, titles.items(), PALETTE[1::-1], strict=False):
            ax.plot(record.centers, record.columns[name], "o", color=color, markersize=4)
            ax.plot(record.centers, record.exact[name], "--", color=INK)
            ax.set(xlabel="center of the bump", title=title)
        return figure


def _second_derivative(u: np.ndarray, length: float) -> np.ndarray:
    wave = 2 * np.pi * np.fft.rfftfreq(u.size, length / u.size)
    return np.fft.irfft(-(wave**2) * np.fft.rfft(u), u.size)
