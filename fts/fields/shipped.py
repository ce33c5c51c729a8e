"""The frozen fields that ship with the book, by what made them: problem, protocol, seed, noise, recipe."""

import os
from pathlib import Path

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


def load_field(
    problem: str, protocol: str = "S20", *, seed: int = 1301, noise: float = 0.0, recipe: str = "paper"
) -> FrozenField:
    """A frozen field that ships with the book; an error names those that do."""
    path = field_path(problem, protocol, seed, noise, recipe)
    if not path.is_file():
        known = sorted(other.stem for other in fields_folder().glob(f"{problem}-*.fts"))
        listing = ", ".join(known) if known else "none for this problem"
        raise ValueError(
            f"no frozen field {path.stem!r} in {fields_folder()} (there: {listing}): "
            f"fit one with fts.fit(observations, {recipe!r})"
        )
    return FrozenField.load(path)
