"""A verdict on one field, heard again by two: what fields of disjoint halves of the samples say.

Libraries that the evidence searches completely need no other selector. In larger ones a field's own noise is
explained by terms that are not there, and the same field confirms them: on the development problems two
fields recover more equations than one in every group of cells with a large library (the record of
`python -m fts.studies settle`; chapter "cross"). So there the halves choose, and the evidence of the whole
field is asked whether it agrees.
"""

from dataclasses import replace

from fts.cross.select import select_halves
from fts.discovery.verdict import Verdict, doubted
from fts.fields.frozen import Field, FrozenField
from fts.kernel.draws import DrawnVariance
from fts.kernel.posterior import PosteriorVariance
from fts.observations import Observations
from fts.params import TWO_FIELDS
from fts.svws.selection import Selection
from fts.svws.settings import Prepared

# Terms from which on two fields choose: more than the evidence searches completely.
LARGE = 11


def reconsider(
    observations: Observations,
    field: FrozenField,
    variance: Field | None,
    ready: Prepared,
    found: tuple[Selection, Verdict],
) -> tuple[Selection, Verdict]:
    """Selection and verdict by two fields where the library is large and the samples can be halved."""
    selection, verdict = found
    if len(ready.library) < LARGE or not isinstance(variance, (PosteriorVariance, DrawnVariance)):
        return found
    params = replace(TWO_FIELDS, weak=ready.weak, svws=ready.params, relative=False)
    chosen = select_halves(observations, variance, field, ready.library, params)
    said = [str(chosen.notes[name]) for name in ("said", "doubt") if name in chosen.notes]
    if chosen.notes["fields"] == 1:
        return selection, doubted(verdict, said)
    if chosen.support != selection.support:
        said.append(
            f"fields of disjoint halves of the samples say {chosen.equation}, the whole field "
            f"{selection.equation}: what differs may be noise; "
            "add samples, or measure with less noise"
        )
    return chosen, doubted(verdict, said)
