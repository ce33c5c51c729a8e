"""The documents of the repository name what exists: citation, changelog, API reference, glossary."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import fts

ROOT = Path(__file__).resolve().parent.parent
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


@pytest.mark.parametrize("document", ["book/glossary.md", "CONTRIBUTING.md", "README.md"])
def test_paths_and_names_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    paths = re.findall(r"`((?:fts|book|tests|assets|benchmarks)/[^`*<{ ]*)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    names = set(re.findall(r"`fts\.(\w+)`", text))
    modules = {path.stem for path in (ROOT / "fts").iterdir()}
    assert names - set(fts.__all__) - modules == set()


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
