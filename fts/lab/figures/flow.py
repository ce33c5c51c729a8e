"""Diagrams of the rules: what goes into every step, in one style."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from fts.plotting import INK, PALETTE, canvas

Box = tuple[float, float, str, str]  # column, row from above, text, color
_DATA, _STEP, _HELD = PALETTE[0], PALETTE[1], PALETTE[2]

# Systems of three roles, and the six steps of the rule.
SVWS: tuple[Mapping[str, Box], Sequence[str]] = (
    {
        "field": (0, 1, "frozen\nfield", _DATA),
        "generation": (1, 0, "generation\nsystems", _DATA),
        "fit": (1, 1, "fit\nsystem", _DATA),
        "validation": (1, 2, "validation\nsystems", _DATA),
        "1": (2, 0, "1 propose\nsupports", _STEP),
        "2": (3, 0, "2 count\nterms", _STEP),
        "3": (4, 0, "3 filter by\nrecurrence", _STEP),
        "4": (4, 1, "4 fit\ncoefficients", _STEP),
        "5": (4, 2, "5 validate\nby risks", _STEP),
        "6": (4, 3, "6 choose", _STEP),
        "equation": (3, 3, "equation", _HELD),
    },
    (
        *("field>generation", "field>fit", "field>validation", "generation>1", "1>2", "2>3", "3>4"),
        *("fit>4", "4>5", "validation>5", "5>6", "6>equation"),
    ),
)
# Two fields of disjoint halves, and the eight steps of the rule on their cross moments.
TWO_FIELDS: tuple[Mapping[str, Box], Sequence[str]] = (
    {
        "samples": (0, 0.5, "samples", _DATA),
        "half 1": (1, 0, "one half", _DATA),
        "half 2": (1, 1, "other half", _DATA),
        "field 1": (2, 0, "field 1:\n$A_1$, $b_1$", _DATA),
        "field 2": (2, 1, "field 2:\n$A_2$, $b_2$", _DATA),
        "1": (3, 0.5, "1 cross\nmoments,\n2 weighted", _STEP),
        "3": (4, 0.5, "3 propose\nsupports", _STEP),
        "4": (4, 2, "4 validate\nelsewhere", _STEP),
        "5": (3, 2, "5 choose", _STEP),
        "6": (2, 2, "6 prune", _STEP),
        "7": (1, 2, "7 compare\nwith one\nfield", _STEP),
        "8": (0, 2, "equation,\n8 doubts", _HELD),
    },
    (
        *("samples>half 1", "samples>half 2", "half 1>field 1", "half 2>field 2", "field 1>1", "field 2>1"),
        *("1>3", "3>4", "4>5", "5>6", "6>7", "7>8"),
    ),
)


def flow(diagram: tuple[Mapping[str, Box], Sequence[str]]) -> Figure:
    """Boxes on a grid with arrows "from>to": blue is data, orange a step, green the answer."""
    boxes, arrows = diagram
    rows = 1 + max(row for _, row, _, _ in boxes.values())
    figure, ax = canvas(0.15 * rows)
    ax.set(xlim=(-0.5, 4.5), ylim=(rows - 0.5, -0.5))
    ax.axis("off")
    drawn = {}
    for name, (column, row, text, color) in boxes.items():
        look = {"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": color, "linewidth": 1.4}
        drawn[name] = ax.text(column, row, text, ha="center", va="center", fontsize=9, color=INK, bbox=look)
    for start, end in (arrow.split(">") for arrow in arrows):
        ends = {"patchA": drawn[start].get_bbox_patch(), "patchB": drawn[end].get_bbox_patch()}
        look = {"arrowstyle": "->", "color": INK, "shrinkA": 2, "shrinkB": 2} | ends
        ax.annotate("", boxes[end][:2], boxes[start][:2], arrowprops=look)
    return figure
