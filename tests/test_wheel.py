"""The wheel without checkout, laboratory, torch or matplotlib: the first example, and `fts discover`."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

# What the package needs is installed; what is an extra is hidden, as if it were not.
HIDDEN = """
import sys
class Hidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("torch", "matplotlib", "sympy", "distributed", "pysindy", "ipywidgets", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden)
import fts
"""

EVERYTHING = "import sys\nimport fts\n"


@pytest.fixture(scope="module")
def dist(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, str(root / ".ci" / "dist.py"), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def site(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed wheel and nothing else of ours."""
    folder = tmp_path_factory.mktemp("site")
    (built,) = dist.glob("fts-*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--target", str(folder), str(built)], check=True)
    return folder


@pytest.mark.slow
def test_the_same_sources_give_the_same_archives(dist: Path, root: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(root / ".ci" / "dist.py"), str(tmp_path)], check=True)
    built = {path.suffix: path.read_bytes() for path in dist.iterdir()}
    assert set(built) == {".whl", ".gz"}
    assert {path.suffix: path.read_bytes() for path in tmp_path.iterdir()} == built


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_a_fresh_environment_gets_the_command(pattern: str, dist: Path, tmp_path: Path) -> None:
    """Dependencies are those of the lock, seen through a path file: no index is asked."""
    (archive,) = dist.glob(pattern)
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "lock.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--force-reinstall"]
    subprocess.run([*pip, *options, str(archive)], check=True, cwd=tmp_path, env=clean)
    _write_heat(tmp_path / "heat.csv")
    command = [str(venv / "bin" / "fts"), "discover", "heat.csv", "--library", "u", "u_x", "u_xx", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=clean)
    assert done.returncode in (0, 1), done.stderr
    assert "u_xx" in done.stdout
    assert list(packages.glob("fts-*.dist-info"))


def _run(site: Path, code: str, *arguments: str, hidden: str = HIDDEN) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FTS_")} | {
        "PYTHONPATH": str(site)
    }
    command = [sys.executable, "-c", hidden + f"assert fts.__file__.startswith({str(site)!r})\n" + code]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=site, env=environment)


def test_nothing_a_user_runs_imports_the_laboratory(root: Path) -> None:
    def imports(path: Path) -> set[str]:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        members = [(node.module, node.names) for node in nodes if isinstance(node, ast.ImportFrom)]
        return modules | {f"{module}.{alias.name}" for module, names in members for alias in names}

    package = root / "fts"
    outside = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "lab"]
    importers = [path.name for path in outside if any(name.startswith("fts.lab") for name in imports(path))]
    assert len(outside) > 80
    assert importers == []


@pytest.mark.slow
def test_the_wheel_has_types_and_pages_and_no_laboratory(site: Path) -> None:
    package = site / "fts"
    assert (package / "py.typed").is_file()
    assert (package / "explorers" / "js" / "main.js").is_file()
    assert list(package.rglob("report.css"))
    assert not (package / "lab").exists()


@pytest.mark.slow
def test_explorers_and_reports_need_no_laboratory(site: Path, root: Path, tmp_path: Path) -> None:
    _write_heat(tmp_path / "heat.csv")
    code = f"""
import os
from fts import cli
os.environ["FTS_FIELDS"] = {str(root / "book" / "fields")!r}
field = fts.load_field("ks", "S20", seed=1301)
fts.explore(field, library="ks")
sys.exit(cli.main(sys.argv[1:]))
"""
    arguments = ("discover", str(tmp_path / "heat.csv"), "--library", "u", "u_x", "u_xx", "--quiet")
    report = _run(site, code, *arguments, "--report", str(tmp_path / "heat.html"), hidden=EVERYTHING)
    assert report.returncode in (0, 1), report.stderr
    assert "u_xx" in (tmp_path / "heat.html").read_text()


@pytest.mark.slow
def test_the_first_example_of_the_readme_runs_from_the_wheel(site: Path, root: Path) -> None:
    example = re.search(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)[1]
    lines = [line for line in example.splitlines() if not line.startswith("fts.explore")]
    done = _run(site, "\n".join(lines))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("u_t = -1")


@pytest.mark.slow
def test_the_command_runs_from_the_wheel_and_asks_for_what_is_missing(site: Path, tmp_path: Path) -> None:
    _write_heat(tmp_path / "heat.csv")
    command = "from fts import cli\nsys.exit(cli.main(sys.argv[1:]))"
    result = ("discover", str(tmp_path / "heat.csv"), "--library", "u", "u_x", "u_xx", "--quiet")
    done = _run(site, command, *result)
    assert done.returncode in (0, 1), done.stderr
    assert "u_xx" in done.stdout
    trained = _run(site, command, *result, "--recipe", "projected")
    assert (trained.returncode, trained.stderr.count("\n")) == (2, 1)
    assert "pip install 'fts[adapter]'" in trained.stderr
    report = _run(site, command, *result, "--report", str(tmp_path / "a.html"))
    assert (report.returncode, "pip install 'fts[plots]'" in report.stderr) == (2, True)
    loaded = _run(site, "fts.load_field('ks')")
    assert "set FTS_FIELDS" in loaded.stderr


def _write_heat(path: Path) -> None:
    x, t = (a.ravel() for a in np.meshgrid(np.linspace(0, 6, 30), np.linspace(0, 1, 30), indexing="ij"))
    u = np.exp(-0.3 * t) * np.sin(x) + 0.5 * np.exp(-1.2 * t) * np.cos(2 * x)
    np.savetxt(path, np.column_stack([x, t, u]), delimiter=",", header="x,t,u", comments="")
