"""What all explorers share: frozen fields to choose from, controls as traits, values to return to.

Every control is a trait: moving a slider sets it, and setting it moves the slider.
"""

import re
from collections.abc import Sequence
from typing import Any

import anywidget
import traitlets
from IPython.display import HTML, display
from matplotlib.figure import Figure

from fts.explorers import stills
from fts.explorers.models import Payload, shared_code

# The model's own module is only a door: the text behind it is in the model `code`, once for all explorers.
_DOOR = """
const doors = (globalThis[Symbol.for("fts modules")] ??= new Map());
async function render(context) {
  const id = context.model.get("code");
  if (!doors.has(id)) {
    const code = await context.model.widget_manager.get_model(id);
    doors.set(id, import(URL.createObjectURL(new Blob([code.get("text")], { type: "text/javascript" }))));
  }
  return (await doors.get(id)).default.render(context);
}
export default { render };
"""


def number(default: float, low: float, high: float, step: float, label: str, **tags: Any) -> traitlets.Float:
    """A control for a number in [low, high]; `base` makes its slider logarithmic."""
    tags = {"low": low, "high": high, "step": step, "label": label, **tags}
    return traitlets.Float(default, min=low, max=high).tag(sync=True, **tags)


def count(default: int, low: int, high: int, label: str, **tags: Any) -> traitlets.Int:
    """A control for an integer in [low, high]; `button` draws the next one instead of a slider."""
    tags = {"low": low, "high": high, "step": 1, "integer": True, "label": label, **tags}
    return traitlets.Int(default, min=low, max=high).tag(sync=True, **tags)


class Explorer(anywidget.AnyWidget):
    """What all explorers share: fields to choose from, controls as traits, values to return to."""

    _esm = _DOOR
    order: tuple[str, ...] = ()  # the controls, as they stand on the page
    caption = ""

    view = traitlets.Unicode().tag(sync=True)
    code = traitlets.Unicode().tag(sync=True)
    sources = traitlets.List(traitlets.Unicode()).tag(sync=True)
    choice = traitlets.Int(0).tag(sync=True)
    controls = traitlets.List().tag(sync=True)
    papers = traitlets.List().tag(sync=True)  # the paper's values, one dict per field
    limits = traitlets.List().tag(
        sync=True
    )  # what a field narrows of the controls' ranges, one dict per field
    references = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)

    def __init__(self, sources: Sequence[Payload], heading: str = "", key: str = "", **values: Any) -> None:
        if not sources:
            raise ValueError("no field to explore: give at least one")
        self.offered = tuple(sources)
        traits = {name: self.class_traits()[name] for name in self.order}
        controls = [
            {"name": name, **{tag: value for tag, value in trait.metadata.items() if tag != "sync"}}
            for name, trait in traits.items()
        ]
        super().__init__(
            code=shared_code().model_id,
            sources=[source.model_id for source in sources],
            controls=controls,
            key=key
            or re.sub(r"[^a-z0-9]+", "-", f"{self.view} {sources[0].info['label']}".lower()).strip("-"),
            heading=heading or self.title(sources),
        )
        common = {name: getattr(self, name) for name in self.order}
        self.papers = [common | self.defaults(source) for source in sources]
        self.limits = [self.ranges(source) for source in sources]
        self.choice = values.pop("choice", 0)
        for name, value in {**self.paper, **self.start(), **values}.items():
            setattr(self, name, value)

    def title(self, sources: Sequence[Payload]) -> str:
        """The heading above the controls."""
        return self.caption if len(sources) > 1 else f"{self.caption}: {sources[0].info['label']}"

    def defaults(self, source: Any) -> dict[str, Any]:
        """The paper's values that depend on the field."""
        return {}

    def ranges(self, source: Any) -> dict[str, tuple[int, int]]:
        """Ranges of controls that the field narrows."""
        return {}

    def start(self) -> dict[str, Any]:
        """Values to begin with where the paper's show nothing."""
        return {}

    @property
    def paper(self) -> dict[str, Any]:
        """The paper's values for the chosen field, to which the button returns."""
        return self.papers[self.choice]

    @property
    def source(self) -> Any:
        """What is chosen: in most explorers a field with its settings."""
        return self.offered[self.choice]

    @traitlets.observe("choice")
    def _follow_choice(self, change: Any) -> None:
        """What the paper sets differently for the new field follows it; the rest stays."""
        if self.papers:
            old, new = self.papers[change["old"]], self.papers[change["new"]]
            for name, value in new.items():
                if value != old[name]:
                    setattr(self, name, value)
            for name, (low, high) in self.limits[change["new"]].items():
                setattr(self, name, min(max(getattr(self, name), low), high))

    @traitlets.validate("choice")
    def _known_choice(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < len(self.offered):
            raise traitlets.TraitError(
                f"choice {proposal['value']}: there are {len(self.offered)} fields, from 0"
            )
        return proposal["value"]

    def still(self) -> Figure:
        """The explorer as a figure at its present values, for print and for pages without JavaScript."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        # Two outputs: the figure first, which the explorer hides once it stands.
        display(HTML(stills.as_html(self.still(), self.key, self.heading)))
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        display({"application/vnd.jupyter.widget-view+json": view, "text/plain": self.heading}, raw=True)
