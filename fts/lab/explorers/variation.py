"""The explorer of genetic programming: two trees, their child by crossover and its mutant, step by step.

A page carries the scenes: where every node stands in each, so that it can move from one to the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import traitlets
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fts.explorers.explorer import Explorer, Payload, count, field_key
from fts.plotting import INK, PALETTE, WIDTH, use_style
from fts.symbolic.trees import Tree, TreeParams, crossover, mutate, read, replace_subtree, subtrees

_TITLES = (
    "two parents",
    "crossover: a subtree of each is chosen",
    "the child has the second in the place of the first",
    "mutation: a part of the child is chosen",
    "and changed",
)


@dataclass(frozen=True)
class _Shown:
    """A tree of a scene: the names of its nodes in preorder, which of them are marked, and its column."""

    tree: Tree
    keys: tuple[str, ...]
    marked: frozenset[str] = frozenset()
    column: int = 0


class Variation(Payload):
    """A crossover of more than a leaf and a mutation, drawn from `rng`; both keep the number of nodes."""

    def __init__(self, first: str, second: str, rng: np.random.Generator) -> None:
        params, parent, other = TreeParams(), read(first), read(second)
        child = next(
            new
            for new in iter(lambda: crossover(parent, other, params, rng), None)
            if new != parent and new.nodes == parent.nodes and _replaced(parent, new)[1] > 1
        )
        mutant = next(
            new for new in iter(lambda: mutate(child, params, rng), None) if new.nodes == child.nodes
        )
        self.trees = {"parent": parent, "other parent": other, "crossover": child, "mutation": mutant}
        self.scenes = _scenes(parent, other, child, mutant)
        scenes = [
            {"title": title, **_picture(scene)} for title, scene in zip(_TITLES, self.scenes, strict=True)
        ]
        info: dict[str, Any] = {"label": f"{first} and {second}", "dimension": 1, "scenes": scenes}
        data = repr(scenes).encode()
        super().__init__(data=data, info=info | {"key": field_key(data)})


class VariationExplorer(Explorer):
    """The scene that is shown."""

    caption = "Crossover and mutation"
    order = ("scene",)
    view = traitlets.Unicode("variation").tag(sync=True)
    scene = count(0, 0, len(_TITLES) - 1, "Step", play=True, pace=1600)

    def still(self) -> Figure:
        use_style()
        figure, panels = plt.subplots(2, 2, figsize=(WIDTH, 0.62 * WIDTH))
        shown = (*self.source.scenes[0], self.source.scenes[2][0], self.source.scenes[4][0])
        for ax, each, title in zip(panels.flat, shown, self.source.trees, strict=True):
            _draw(ax, each)
            ax.set_title(title)
        return figure


def _scenes(parent: Tree, other: Tree, child: Tree, mutant: Tree) -> list[tuple[_Shown, ...]]:
    place, size = _replaced(parent, child)
    gone = list(subtrees(parent))[place].nodes
    donor = next(i for i, part in enumerate(subtrees(other)) if part == list(subtrees(child))[place])
    of_parent = tuple(f"parent {i}" for i in range(parent.nodes))
    of_other = tuple(f"other {i}" for i in range(other.nodes))
    copied = tuple(f"copy {i}" for i in range(donor, donor + size))
    of_child = (*of_parent[:place], *copied, *of_parent[place + gone :])
    at, changed = _replaced(child, mutant)
    before = list(subtrees(child))[at].nodes
    new = tuple(f"new {i}" for i in range(changed))
    of_mutant = (*of_child[:at], *new, *of_child[at + before :])
    taken = frozenset(of_other[donor : donor + size])
    beside = _Shown(other, of_other, column=1)
    return [
        (_Shown(parent, of_parent), beside),
        (
            _Shown(parent, of_parent, frozenset(of_parent[place : place + gone])),
            _Shown(other, of_other, taken, 1),
        ),
        (_Shown(child, of_child, frozenset(copied)), beside),
        (_Shown(child, of_child, frozenset(of_child[at : at + before])), beside),
        (_Shown(mutant, of_mutant, frozenset(new)), beside),
    ]


def _replaced(before: Tree, after: Tree) -> tuple[int, int]:
    """Place and size of the smallest subtree of `after` that stands where `before` had another."""
    parts = list(subtrees(after))
    same = [
        i for i in range(before.nodes) if i < len(parts) and replace_subtree(before, i, parts[i]) == after
    ]
    return max(same), parts[max(same)].nodes


def _layout(tree: Tree) -> tuple[list[tuple[float, int]], list[tuple[int, int]]]:
    """Places of all nodes in preorder, leaves side by side, operators above their middle; and the edges."""
    places, edges, leaves = [(0.0, 0)] * tree.nodes, [], iter(range(tree.nodes))
    number = iter(range(tree.nodes))

    def put(node: Tree, depth: int) -> int:
        index = next(number)
        below = [put(part, depth + 1) for part in node.parts]
        edges.extend((index, end) for end in below)
        across = sum(places[end][0] for end in below) / len(below) if below else float(next(leaves))
        places[index] = across, depth
        return index

    put(tree, 0)
    return places, edges


def _picture(scene: tuple[_Shown, ...]) -> dict[str, Any]:
    nodes, edges = [], []
    for shown in scene:
        places, lines = _layout(shown.tree)
        middle = max(x for x, _ in places) / 2
        for key, text, (x, depth) in zip(shown.keys, _texts(shown.tree), places, strict=True):
            look = {"text": text, "x": x - middle, "depth": depth, "column": shown.column}
            nodes.append({"key": key, **look, "marked": key in shown.marked})
        edges += [[shown.keys[a], shown.keys[b]] for a, b in lines]
    return {"nodes": nodes, "edges": edges}


def _texts(tree: Tree) -> Iterator[str]:
    for node in subtrees(tree):
        leaf = {"u": "u", "c": f"{node.value:.2g}"}.get(node.op, f"u^{node.value:.2g}")
        yield leaf if not node.parts else {"*": "×", "-": "−"}.get(node.op, node.op)


def _draw(ax: Axes, shown: _Shown) -> None:
    places, edges = _layout(shown.tree)
    for a, b in edges:
        (x, top), (end, bottom) = places[a], places[b]
        ax.plot((x, end), (-top - 0.2, -bottom + 0.2), color=INK, linewidth=1)
    for key, text, (x, depth) in zip(shown.keys, _texts(shown.tree), places, strict=True):
        color = PALETTE[1] if key in shown.marked else PALETTE[0]
        look = {"boxstyle": "round,pad=0.3", "facecolor": "none", "edgecolor": color}
        written = f"$u^{{{text[2:]}}}$" if text.startswith("u^") else text
        ax.text(x, -depth, written, ha="center", va="center", fontsize=11, color=color, bbox=look)
    ax.set(xlim=(-0.8, max(x for x, _ in places) + 0.8), ylim=(-2.6, 0.5))
    ax.axis("off")
