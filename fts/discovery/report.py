"""Discovery -> one page of HTML that needs nothing else: measured, fitted, found, and how sure it is."""

import base64
import html
import io
from collections.abc import Iterator
from importlib import resources

import numpy as np
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.discovery import panels
from fts.discovery.discover import Discovery
from fts.discovery.systems import SystemDiscovery
from fts.fields.frozen import Field
from fts.fitting import Fit
from fts.observations import Observations
from fts.plotting import PALETTE, WIDTH, recurrence, risks, use_style
from fts.selection.selection import Selection

_TITLES = ("term", "coefficient", "standard error")
# Nothing on the page runs or is loaded.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


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
            sections = "\n".join(_sections(result, fit, selection))
    verdict = result.verdict.status.capitalize()
    of = result.verdict.of
    rivals = [f"rival: {each.equation} (leaves {each.risk:.2g} of {of})" for each in result.verdict.rivals]
    doubts = "".join(f"<li>{html.escape(line)}</li>" for line in (*result.notes, *result.doubts, *rivals))
    samples = result.observations
    count = "too few" if samples is None else f"{result.fit.count if result.fit else len(samples):,}"
    return (
        f"<h1>{html.escape(heading)}</h1>\n"
        f"<p><strong>{verdict}</strong>, from {count} samples in {_source(result)}.</p>\n"
        f"<ul>{doubts}</ul>\n{sections}"
    )


def _sections(result: Discovery, fit: Fit, selection: Selection) -> Iterator[str]:
    observations, field = fit.observations, fit.field
    yield _coefficients(selection)
    yield _section("Samples", _samples(observations), "Where and when it was measured, and what.")
    recipe = field.made.recipe or "given"
    yield _section("Reconstruction", _map(field, "reconstructed $u$"), f"The field fitted, recipe {recipe}.")
    if fit.variance is not None:
        spread = _Deviation(fit.variance)
        caption = "One standard deviation of the reconstruction: where it is large, the samples say little."
        yield _section("Uncertainty", _map(spread, "standard deviation"), caption)
    yield _section("Residuals", *_residuals(result, fit))
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
    figure.colorbar(panels.draw_samples(ax, observations), ax=ax, label="measured $u$")
    return figure


def _map(field: Field, label: str) -> Figure:
    figure, ax = plt.subplots(figsize=(WIDTH, 0.55 * WIDTH))
    figure.colorbar(panels.draw_map(ax, field), ax=ax, label=label)
    return figure


def _residuals(result: Discovery, fit: Fit) -> tuple[Figure, str]:
    """What the integrated equation leaves, or the reconstruction where none was integrated, and a caption."""
    samples, residual, audit = fit.observations, fit.residuals, result.audit
    caption = "Samples minus reconstruction; no equation was integrated, and this says nothing of one."
    if audit is not None:
        made = audit.residuals
        residual = made.values
        samples = Observations(made.x[:, None], made.t, residual, samples.domain)
        caption = f"Samples minus the integrated equation. {made.sentence} A pattern is a missing term."
    share = float(np.mean(residual**2) / np.var(fit.observations.y))
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 0.5 * WIDTH))
    dots = panels.draw_residuals(left, samples, residual)
    figure.colorbar(dots, ax=left, location="bottom", label="residual")
    right.hist(residual, bins=50, color=PALETTE[0])
    right.set(xlabel="residual", ylabel="samples")
    return figure, f"{caption} {share:.2g} of the samples' variance is left."
