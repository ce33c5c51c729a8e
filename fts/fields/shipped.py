"""The frozen fields that ship with the book, by what made them: problem, protocol, seed, noise, recipe."""

import difflib
import os
from pathlib import Path

from fts import asked
from fts.fields.frozen import FrozenField

# Set to read and write frozen fields somewhere else than beside the book.
_FOLDER_VARIABLE = "FTS_FIELDS"


def fields_folder() -> Path:
    """Where shipped fields live: book/fields of this checkout, or the folder FTS_FIELDS names."""
    named = os.environ.get(_FOLDER_VARIABLE)
    return Path(named) if named else Path(__file__).resolve().parents[2] / "book" / "fields"


def field_path(problem: str, protocol: str, seed: int, noise: float = 0.0, recipe: str = "paper") -> Path:
    """The file of one field: ks-S20-1301-paper.fts, or ks-S20-1301-n10-paper.fts with 10 % noise."""
    percent = f"-n{round(100 * noise):02d}" if noise else ""
    return fields_folder() / f"{problem}-{protocol}-{seed}{percent}-{recipe}.fts"


@asked.helpful
def load_field(
    problem: str, protocol: str = "S20", *, seed: int = 1301, noise: float = 0.0, recipe: str = "paper"
) -> FrozenField:
    """A frozen field that ships with the book; an error names those that do."""
    for name, value in {"problem": problem, "protocol": protocol, "recipe": recipe}.items():
        asked.refuse_unless(str, value, name, "give a text, like load_field('ks', 'S20', recipe='paper')")
    asked.refuse_unless(int, seed, "seed", "give the whole number the samples were drawn with")
    asked.refuse_unless((int, float), noise, "noise", "give 0.1 for 10 %")
    path = field_path(problem, protocol, seed, noise, recipe)
    if not fields_folder().is_dir():
        raise ValueError(
            f"no frozen fields at {fields_folder()}: they ship with the book's repository, set "
            f"{_FOLDER_VARIABLE} to its book/fields, or fit one with fts.fit(observations, {recipe!r})"
        )
    if not path.is_file():
        known = sorted(other.stem for other in fields_folder().glob(f"{problem}-*.fts"))
        near = difflib.get_close_matches(path.stem, known, n=3, cutoff=0.0)
        listing = f"{len(known)}, such as {', '.join(near)}" if known else "none for this problem"
        raise ValueError(
            f"no frozen field {path.stem!r} in {fields_folder()} (there: {listing}): "
            f"fit one with fts.fit(observations, {recipe!r})"
        )
    return FrozenField.load(path)
