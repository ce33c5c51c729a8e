"""The documents of the repository name what exists: citation, changelog, API reference, glossary."""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import reduce
from pathlib import Path
from statistics import median

import pytest
import yaml

import fts
from fts.lab.figures.results import processor_seconds
from fts.lab.studies.records import read_study

ROOT = Path(__file__).resolve().parent.parent
BOOK = [*(ROOT / "book").glob("*.md"), *(ROOT / "book").glob("*.ipynb")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_file_has_what_its_format_requires() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license", "type"} <= set(citation)
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["authors"] == PROJECT["authors"]


def test_the_changelog_has_the_present_version_below_what_is_unreleased() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert versions[1][0] == PROJECT["version"]
    assert all(date for _, date in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds


def test_the_reference_lists_every_public_name_and_modules_that_exist() -> None:
    text = (ROOT / "book" / "api.md").read_text()
    named = set(re.findall(r"auto(?:function|class):: fts\.(\w+)$", text, re.MULTILINE))
    assert named == set(fts.__all__)
    modules = re.findall(r"automodule:: (\S+)", text)
    assert modules
    for module in modules:
        assert importlib.import_module(module).__doc__, f"{module} has no docstring to show"


DOCUMENTS = ["README.md", "CONTRIBUTING.md", "Makefile", *(f"book/{page.name}" for page in sorted(BOOK))]


def _prose(path: Path) -> str:
    """The text of a document; of a notebook its prose, and the captions in its cells."""
    if path.suffix != ".ipynb":
        return path.read_text()
    return "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])


def _exists(name: str) -> bool:
    """Whether a dotted name is a module of the package, or what a module or a public class has."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        return reduce(lambda entry, part: getattr(entry, part, None), parts[count:], value) is not None
    return False


def _lacking(text: str) -> list[str]:
    """Modules, public names, paths and commands that a text names and the repository does not have."""
    dotted = set(re.findall(r"(?<![\w./])fts(?:\.[A-Za-z_]\w*)+(?![\w/])", text)) - {"fts.css"}
    commands = re.findall(r"-m (fts[\w.]*\w)", text)
    paths = re.findall(r"(?<![\w/])((?:fts|book|tests|assets|benchmarks)/[\w./-]*\w)(?![\w*{<])", text)
    return [
        *sorted(name for name in dotted if not _exists(name)),
        *(name for name in commands if importlib.util.find_spec(name) is None),
        *(path for path in paths if not (ROOT / path).exists()),
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_and_names_exist(document: str) -> None:
    assert _lacking(_prose(ROOT / document)) == []


@pytest.mark.parametrize("folder", ["fts", "tests", "benchmarks"])
def test_comments_and_docstrings_name_modules_that_exist(folder: str) -> None:
    """In sources only what stands between backticks is meant to exist."""
    for file in sorted((ROOT / folder).rglob("*.py")):
        for named in re.findall(r"(?<!`)`((?:fts[./]|python -m fts)[^`]*)`", file.read_text()):
            assert [name for name in _lacking(named) if "nowhere" not in name] == [], file


def test_what_does_not_exist_is_reported() -> None:
    text = "see `fts.nowhere`, fts/nowhere.py and `python -m fts.nowhere tune`; `fts.kernel.nowhere`"
    assert _lacking(text) == ["fts.kernel.nowhere", "fts.nowhere", "fts.nowhere", "fts/nowhere.py"]
    assert (
        _lacking("`fts.select`, `fts.kernel.search`, `fts/kernel`, `python -m fts.lab.studies verify`") == []
    )


PROBLEM = """
from fts.problems.problems import solve
u = solve(kawahara)
assert u.shape == kawahara.shape and np.isfinite(u).all() and np.ptp(u[:, -1]) > 0.1
assert np.allclose(u.mean(axis=0), u[:, 0].mean())
assert [str(term) for term in kawahara.equation.terms] == ["u*u_x", "u_xxx", "u_xxxxx"]
assert len(kawahara.library) == 43
"""
METHOD = """
import fts
from fts.methods import METHODS, configurations, method
assert METHODS["least squares"].params is LeastSquaresParams
observations = fts.observe(fts.simulate("ks"), "S20", seed=1301)
selection = method("least squares")(
    observations, fts.problem("ks").library, configurations("least squares")["ks"], np.random.default_rng(0)
)
assert set(selection.support) == {"u*u_x", "u_xx", "u_xxxx"}, selection.support
"""


@pytest.mark.parametrize(("title", "use"), [("A problem", PROBLEM), ("A method", METHOD)])
def test_what_contributing_says_runs(title: str, use: str) -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) < 40
    run = [sys.executable, "-c", code + use]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, env=dict(os.environ))
    assert done.returncode == 0, done.stderr


ROWS = {"fts, kernel field": "kernel", "fts, the paper's adapter": "paper"}


def test_the_table_of_the_readme_follows_from_the_records() -> None:
    runs = [run for study in ("main", "baselines") for run in read_study(study)]
    text = (ROOT / "README.md").read_text().split("|---|---|---|---|\n")[1].split("\n\n")[0]
    lines = [
        [cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in text.splitlines()
    ]
    assert len(lines) == 8
    for name, exact, error, seconds in lines:
        mine = [run for run in runs if run.row == ROWS.get(name, name)]
        assert len(mine) == 30, name
        assert int(exact) == sum(run.score["exact"] for run in mine)
        assert error == f"{median(run.score['e_xi'] for run in mine):.2g}"
        assert seconds == f"{median(map(processor_seconds, mine)):.3g}"


def test_the_picture_of_the_readme_is_small_and_says_what_it_shows() -> None:
    picture = ROOT / re.search(r"!\[[^]]{40,}\]\((\S+)\)", (ROOT / "README.md").read_text())[1]
    assert picture.stat().st_size < 100_000
    assert picture.with_suffix(".py").is_file()
