"""The installed packages that the locks name -> LICENSES.md: version, license, whether a wheel needs them.

`python .ci/licenses.py > LICENSES.md`; licenses are those that the packages state.
"""

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_ROOT = Path(__file__).resolve().parent.parent
# Where the metadata state none, or all that a file may be under: from the package's own license file.
_STATED = {"axe-playwright-python": "MIT", "docutils": "Public Domain AND BSD-2-Clause AND GPL-3.0-or-later"}


def text() -> str:
    """The file's text."""
    needed = required()
    rows = [
        f"| {name} | {version} | {license_of(name)} | {'yes' if name in needed else ''} |"
        for name, version in sorted(locked().items())
    ]
    title = "# Licenses of the locked packages\n\n"
    title += "Written by `.ci/licenses.py`; a test compares it with the locks."
    return "\n".join(
        [title, "", "| package | version | license | a wheel needs it |", "|---|---|---|---|", *rows, ""]
    )


def locked() -> dict[str, str]:
    """Version by name."""
    lines = "".join((_ROOT / name).read_text() for name in ("requirements.lock", "torch.lock"))
    return {canonicalize_name(name): version for name, version in re.findall(r"^(\S+)==(\S+)", lines, re.M)}


def required() -> set[str]:
    """What the package needs without any extra, and what that needs."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    todo, known = [*project["dependencies"]], set()
    while todo:
        requirement = Requirement(todo.pop())
        name = canonicalize_name(requirement.name)
        if (not requirement.marker or requirement.marker.evaluate({"extra": ""})) and name not in known:
            known.add(name)
            todo += metadata.requires(name) or []
    return known


def license_of(name: str) -> str:
    """What the package states, in one line."""
    if name in _STATED:
        return _STATED[name]
    about = metadata.metadata(name)
    classifiers = about.get_all("Classifier") or []
    kinds = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License :: OSI")]
    stated = about.get("License-Expression") or " AND ".join(kinds) or about.get("License") or ""
    return stated.strip().splitlines()[0]


if __name__ == "__main__":
    sys.stdout.write(text())
