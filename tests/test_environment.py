"""pyproject.toml, requirements.lock, environment.yml and the installed environment say the same."""

import importlib.util
import json
import re
import subprocess
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
NINE = {"jupyter-book", "jupyterlab", "torch", "numpy", "scipy", "matplotlib", "ipywidgets", "sympy", "pysr"}
# What an index may add without changing a result: pip itself, this package, and torch's GPU libraries.
UNPINNED = re.compile(r"pip|fts|wheel|setuptools|triton|nvidia-.*|cuda-.*|pytorch-triton.*")


LOCKS = ("requirements.lock", "torch.lock", "torch-cuda.lock")


def _hashed(lock: str = "requirements.lock") -> dict[str, tuple[str, list[str]]]:
    """Version and hashes by name, as a lock file says them."""
    entries = (ROOT / lock).read_text().replace(" \\\n", "").splitlines()
    result = {}
    for entry in entries:
        pin, *hashes = entry.split()
        name, version = pin.split("==")
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", item) for item in hashes), entry
        result[canonicalize_name(name)] = version, hashes
    assert len(result) == len(entries), "a package is locked twice"
    return result


def _lock() -> dict[str, str]:
    """Version by name: everything, torch included, but the libraries of its CUDA build."""
    return {name: version for name, (version, _) in (_hashed() | _hashed("torch.lock")).items()}


def _declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["optional-dependencies"]
    extras = [line for lines in groups.values() for line in lines]
    result = [Requirement(line) for line in [*project["dependencies"], *extras]]
    return [requirement for requirement in result if requirement.name != "fts"]


def test_lock_names_no_host_and_no_local_build() -> None:
    for name in LOCKS:
        assert not re.search(r"://|@|\+|/", (ROOT / name).read_text())


def test_every_locked_package_carries_hashes() -> None:
    """pip then asks for hashes of all: one package without them would stop the installation."""
    for lock in LOCKS:
        assert [name for name, (_, hashes) in _hashed(lock).items() if not hashes] == []
    assert "torch" not in _hashed()
    asked = [Requirement(line) for line in metadata.requires("torch") or []]
    needed = {
        canonicalize_name(requirement.name)
        for requirement in asked
        if not requirement.marker or requirement.marker.evaluate({"extra": ""})
    }
    missing = {name for name in needed - _hashed().keys() if not UNPINNED.fullmatch(name)}
    assert missing == set(), "torch brings packages that are not locked"


def test_torch_comes_from_one_index_and_by_hash() -> None:
    """A second index may offer a package of the same name: none is asked for anything but torch itself."""
    install = subprocess.run(
        ["make", "-n", "-W", "torch.lock", ".venv/ready", "TORCH_INDEX=INDEX"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "extra-index-url" not in install
    (torch,) = (line for line in install.splitlines() if "-r torch.lock" in line)
    assert {"--index-url INDEX", "--no-deps", "--require-hashes"} <= set(
        re.findall(r"--\S+(?: INDEX)?", torch)
    )
    assert set(_hashed("torch.lock")) == {"torch"}
    assert all(UNPINNED.fullmatch(name) for name in _hashed("torch-cuda.lock").keys() - {"torch"})


@pytest.mark.slow
def test_pip_reads_the_lock_and_has_nothing_to_install() -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--dry-run", "--no-index"]
    locks = [part for lock in LOCKS[:2] for part in ("-r", str(ROOT / lock))]
    again = [*pip, "--require-hashes", "--no-deps", *locks]
    done = subprocess.run(again, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Would install" not in done.stdout


def test_lock_satisfies_every_declared_range() -> None:
    lock = _lock()
    wrong = [
        f"{requirement}: locked {lock.get(canonicalize_name(requirement.name))}"
        for requirement in _declared()
        if canonicalize_name(requirement.name) not in lock
        or not requirement.specifier.contains(lock[canonicalize_name(requirement.name)])
    ]
    assert wrong == []


def test_conda_environment_pins_the_same_nine() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    pins = dict(line.split("==") for line in pip if "==" in line)
    lock = _lock()
    assert set(pins) == NINE
    assert pins == {name: lock[name] for name in NINE}
    assert "-e .[dev]" in pip


def test_installed_is_what_the_lock_says() -> None:
    installed = {
        canonicalize_name(d.metadata["Name"]): Version(d.version).public for d in metadata.distributions()
    }
    lock = {name: Version(version).public for name, version in _lock().items()}
    wrong = {
        name: (installed.get(name), version)
        for name, version in lock.items()
        if installed.get(name) != version
    }
    assert wrong == {}, "installed against locked: run make book, which installs the lock"
    extra = {name for name in installed if name not in lock and not UNPINNED.fullmatch(name)}
    assert extra == set(), "installed but not locked: run make lock"


def test_torch_is_pinned_to_the_reproducible_version() -> None:
    assert _lock()["torch"] == "2.13.0"
    assert Version(_lock()["jupyter-book"]) < Version("2")


def test_importing_the_package_is_light() -> None:
    """Without torch, and within half a second of NumPy and SciPy alone; the least of three runs of each."""

    def seconds(statement: str) -> float:
        def once() -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True, cwd=ROOT)
            return time.perf_counter() - start

        return min(once() for _ in range(3))

    check = "import sys, fts; assert not {'torch', 'matplotlib', 'sympy'} & set(sys.modules)"
    assert seconds(f"import numpy, scipy; {check}") - seconds("import numpy, scipy") < 0.5


@pytest.mark.parametrize("name", ["help", "book", "test", "lab", "bench", "verify"])
def test_make_knows_the_target(name: str) -> None:
    result = subprocess.run(["make", "-n", name], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"make {name} " in listed


def test_the_lock_of_the_scripts_names_no_registry():
    packages = json.loads((ROOT / ".ci" / "package-lock.json").read_text())["packages"]
    wanted = json.loads((ROOT / ".ci" / "package.json").read_text())["optionalDependencies"]
    assert {
        name.removeprefix("node_modules/"): entry["version"] for name, entry in packages.items() if name
    } == wanted
    assert all(
        "resolved" not in entry and entry["integrity"].startswith("sha512-")
        for name, entry in packages.items()
        if name
    )


def test_licenses_are_those_of_the_lock_and_a_wheel_needs_no_gpl() -> None:
    """tqdm's MPL binds its own files alone; the GPL and its kin would bind what imports them."""
    spec = importlib.util.spec_from_file_location("licenses", ROOT / ".ci" / "licenses.py")
    licenses = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(licenses)
    assert (ROOT / "LICENSES.md").read_text() == licenses.text(), "run python .ci/licenses.py > LICENSES.md"
    needed = {name: licenses.license_of(name) for name in licenses.required()}
    assert {"numpy", "scipy", "finufft"} <= set(needed)
    assert all(needed.values())
    assert {name: text for name, text in needed.items() if re.search(r"\b[AL]?GPL", text)} == {}


def test_binder_installs_this_package_with_packages_that_are_locked() -> None:
    lines = (ROOT / ".binder" / "requirements.txt").read_text().splitlines()
    package, *others = (line for line in lines if not line.startswith("#"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.fullmatch(r"\.\[([\w,]+)\]", package)[1].split(",")) <= set(extras)
    lock = _lock()
    for requirement in map(Requirement, others):
        assert requirement.specifier.contains(lock[canonicalize_name(requirement.name)])
        assert str(requirement) in {str(Requirement(line)) for line in extras["book"]}
    runtime = (ROOT / ".binder" / "runtime.txt").read_text().strip()
    assert runtime == "python-3.11"
