"""The book's style and its tables, for light and for dark pages."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from cycler import cycler

# Okabe and Ito's colors without black and yellow, which vanish on a dark and on a light page.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# A gray with about the same contrast, 4.2 and 4.4 to 1, against the theme's white and its near black.
INK = "#7B7B7B"
# Perceptually uniform, readable without color.
FIELD_MAP = "viridis"
WIDTH = 6.4  # inches, the book's text column


@dataclass(frozen=True)
class Table:
    """Rows under a header: HTML in notebooks, text in `print`. $...$ is a formula, \\n breaks the line."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = [tuple(cell.replace("\n", "; ") for cell in line) for line in (self.header, *self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        return "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{_cell(text)}</th>" for text in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(text)}</td>" for text in row) + "</tr>" for row in self.rows
        )
        return f'<table class="table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of the rows' values as text."""
    body = tuple(tuple(str(value) for value in row) for row in rows)
    for row in body:
        if len(row) != len(header):
            raise ValueError(
                f"row {row} has {len(row)} cells under {len(header)} headings: give one per heading"
            )
    return Table(tuple(header), body)


def use_style() -> None:
    """Set matplotlib's defaults to the book's: no background, gray ink, the palette, one column wide."""
    mpl.rcParams.update(
        {
            "axes.edgecolor": INK,
            "axes.facecolor": "none",
            "axes.labelcolor": INK,
            "axes.labelsize": 13,
            "axes.linewidth": 0.8,
            "axes.prop_cycle": cycler(color=PALETTE),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 180,
            "figure.facecolor": "none",
            "figure.figsize": (WIDTH, 0.5 * WIDTH),
            "font.size": 11,
            "grid.color": INK,
            "grid.linewidth": 0.5,
            "image.cmap": FIELD_MAP,
            "legend.frameon": False,
            "legend.labelcolor": INK,
            "lines.linewidth": 1.6,
            "mathtext.fontset": "cm",
            "savefig.facecolor": "none",
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    )


def _cell(text: str) -> str:
    if text.startswith("$"):
        return f'<span class="math">\\({html.escape(text.strip("$"))}\\)</span>'
    return html.escape(text).replace("\n", "<br>")
