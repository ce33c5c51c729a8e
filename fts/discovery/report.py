"""Discovery -> one page of HTML that needs nothing else: measured, fitted, found, and how sure it is."""

import base64
import html
import io
from collections.abc import Iterator
from importlib import resources

import numpy as np
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fts.discovery.discover import Discovery
from fts.discovery.systems import SystemDiscovery
from fts.domain import Domain
from fts.fields.frozen import Field
from fts.fitting import Fit
from fts.observations import Observations
from fts.plotting import PALETTE, WIDTH, recurrence, risks, use_style
from fts.selection.selection import Selection

_GRID = 160  # points per axis of the maps
_TITLES = ("term", "coefficient", "standard error")
# Nothing on the page runs or is loaded.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_MOST_DOTS = 20_000  # samples drawn; more would only hide each other


def page(result: Discovery | SystemDiscovery) -> str:
    """The page: samples, reconstruction with its uncertainty, residuals, recurrence, risks, equation.

    Where nothing could be fitted it holds the verdict and its reasons; of a system, every component in turn.
    """
    system = isinstance(result, SystemDiscovery)
    parts = list(result.components.values()) if system else [result]
    lines = result.experiment_lines() if system else []
    title = "; ".join(f"{_source(part)}: {part.verdict.status}" for part in parts)
    style = resources.files("fts.discovery").joinpath("report.css").read_text(encoding="utf-8")
    body = "\n".join([*map(_part, parts), *(f"<p>{html.escape(line)}.</p>" for line in lines)])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n"
        "</main>\n</body>\n</html>\n"
    )


def _source(result: Discovery) -> str:
    return "samples" if result.observations is None else html.escape(result.observations.source)


def _part(result: Discovery) -> str:
    """One equation and everything behind it."""
    fit, selection = result.fit, result.selection
    heading, sections = "No equation", ""
    if fit is not None and selection is not None:
        heading = str(result.equation)
        with plt.rc_context():
            use_style()
            sections = "\n".join(_sections(fit, selection))
    verdict = result.verdict.status.capitalize()
    of = result.verdict.of
    rivals = [f"rival: {each.equation} (leaves {each.risk:.2g} of {of})" for each in result.verdict.rivals]
    doubts = "".join(f"<li>{html.escape(line)}</li>" for line in (*result.doubts, *rivals))
    count = "too few" if result.observations is None else f"{len(result.observations):,}"
    return (
        f"<h1>{html.escape(heading)}</h1>\n"
        f"<p><strong>{verdict}</strong>, from {count} samples in {_source(result)}.</p>\n"
        f"<ul>{doubts}</ul>\n{sections}"
    )


def _sections(fit: Fit, selection: Selection) -> Iterator[str]:
    observations, field = fit.observations, fit.field
    yield _coefficients(selection)
    yield _section("Samples", _samples(observations), "Where and when it was measured, and what.")
    recipe = field.made.recipe or "given"
    yield _section("Reconstruction", _map(field, "reconstructed $u$"), f"The field fitted, recipe {recipe}.")
    if fit.variance is not None:
        spread = _Deviation(fit.variance)
        caption = "One standard deviation of the reconstruction: where it is large, the samples say little."
        yield _section("Uncertainty", _map(spread, "standard deviation"), caption)
    residual = field(np.column_stack([observations.x, observations.t])) - observations.y
    share = float(np.mean(residual**2) / np.var(observations.y))
    caption = f"Reconstruction minus samples: {share:.2g} of their variance is left. A pattern is a misfit."
    yield _section("Residuals", _residuals(observations, residual), caption)
    trace = selection.trace
    if trace is None:
        return
    caption = "How often each term was proposed, over patches and thresholds; above the line it is stable."
    yield _section("Recurrence", recurrence(trace.candidates, trace.tau), caption)
    caption = f"What every set of stable terms leaves unexplained on held-out patches. {trace.reason}."
    yield _section("Risks and rivals", risks(trace), caption)


def _coefficients(selection: Selection) -> str:
    errors = selection.deviations if selection.refits else {}
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(name)}</th><td>{value:.5g}</td>"
        f"<td>{f'{errors[name]:.2g}' if name in errors else ''}</td></tr>"
        for name, value in selection.coefficients.items()
    )
    head = "".join(f"<th scope='col'>{title}</th>" for title in _TITLES)
    tried = html.escape(", ".join(selection.library.names))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<section><h2>Coefficients</h2>{table}<p>Terms tried: {tried}.</p></section>"


def _section(title: str, figure: Figure, caption: str) -> str:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=140)
    plt.close(figure)
    data = base64.b64encode(stream.getvalue()).decode()
    text = html.escape(caption)
    image = f'<img src="data:image/png;base64,{data}" alt="{html.escape(title)}: {text}">'
    return f"<section><h2>{title}</h2><figure>{image}<figcaption>{text}</figcaption></figure></section>"


class _Deviation:
    """The square root of a variance, as a field."""

    def __init__(self, variance: Field) -> None:
        self.variance, self.domain = variance, variance.domain

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        return np.sqrt(np.maximum(self.variance.on_grid(*axes), 0.0))


def _samples(observations: Observations) -> Figure:
    figure, ax = plt.subplots(figsize=(WIDTH, 0.55 * WIDTH))
    every = -(-len(observations) // _MOST_DOTS)
    across, along = _plane(observations)
    dots = ax.scatter(across[::every], along[::every], c=observations.y[::every], s=4, linewidths=0)
    figure.colorbar(dots, ax=ax, label="measured $u$")
    _label(ax, observations.domain)
    return figure


def _plane(observations: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Two coordinates of every sample: x against t on a line, x against y elsewhere."""
    second = observations.t if observations.domain.dimension == 1 else observations.x[:, 1]
    return observations.x[:, 0], second


def _map(field: Field, label: str) -> Figure:
    domain = field.domain
    axes = [np.linspace(low, high, _GRID) for low, high, _ in domain.axes]
    for axis in range(2, len(axes)):  # a plane has two axes: the others stand in their middle
        axes[axis] = axes[axis][_GRID // 2 : _GRID // 2 + 1]
    values = field.on_grid(*axes).reshape(_GRID, _GRID)
    figure, ax = plt.subplots(figsize=(WIDTH, 0.55 * WIDTH))
    mesh = ax.pcolormesh(axes[0], axes[1], values.T, rasterized=True)
    figure.colorbar(mesh, ax=ax, label=label)
    _label(ax, domain)
    if domain.dimension > 1:
        ax.set_title(f"$t = {axes[-1][0]:.3g}$")
    return figure


def _label(ax: Axes, domain: Domain) -> None:
    ax.set(xlabel="$x$", ylabel="$t$" if domain.dimension == 1 else "$y$")


def _residuals(observations: Observations, residual: Float[np.ndarray, " n"]) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 0.5 * WIDTH))
    shown = slice(None, None, -(-len(observations) // _MOST_DOTS))
    across, along = _plane(observations)
    largest = float(np.quantile(np.abs(residual), 0.99)) or 1.0
    limits = {"cmap": "RdBu", "vmin": -largest, "vmax": largest, "s": 4, "linewidths": 0}
    dots = left.scatter(across[shown], along[shown], c=residual[shown], **limits)
    figure.colorbar(dots, ax=left, location="bottom", label="residual")
    _label(left, observations.domain)
    right.hist(residual, bins=50, color=PALETTE[0])
    right.set(xlabel="residual", ylabel="samples")
    return figure
