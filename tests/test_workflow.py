"""The public forge's workflows name only what exists: make targets, modules and their subcommands."""

import importlib
import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _commands(path: Path) -> list[str]:
    workflow = yaml.safe_load(path.read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [line for step in steps if "run" in step for line in step["run"].splitlines()]


def test_all_workflows_are_there() -> None:
    assert {path.stem for path in WORKFLOWS} == {"gpu", "release", "test"}


def test_a_release_cannot_start_by_accident() -> None:
    (path,) = (path for path in WORKFLOWS if path.stem == "release")
    workflow = yaml.safe_load(path.read_text())
    assert set(workflow[True]) == {"workflow_dispatch"}, "only a person starts it"
    assert workflow[True]["workflow_dispatch"]["inputs"]["version"]["required"]
    for job in workflow["jobs"].values():
        assert job["if"] == "github.ref_type == 'tag' && github.ref_name == format('v{0}', inputs.version)"
        assert job["environment"] == "release"
    commands = _commands(path)
    assert [command.split()[1] for command in commands] == ["test", "verify", "dist"]
    assert "secrets." not in path.read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_exists(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert True in workflow, "YAML reads the key `on` as true; without it the workflow never starts"
    for command in _commands(path):
        if match := re.match(r"make (\S+)", command):
            result = subprocess.run(["make", "-n", match[1]], cwd=ROOT, capture_output=True, text=True)
            assert result.returncode == 0, f"{command}: {result.stderr}"
        elif match := re.match(r"\.venv/bin/python -m (\S+) (\S+)", command):
            assert importlib.util.find_spec(match[1]), f"{command}: no module {match[1]}"
            main = importlib.import_module(f"{match[1]}.__main__").main
            with pytest.raises(SystemExit) as ended:  # --help ends a program, and an unknown command too
                main([match[2], "--help"])
            assert ended.value.code == 0, command
        else:
            raise AssertionError(f"{command}: workflows call make or a module of fts, nothing else")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_runs_actions_by_commit(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    used = re.findall(r"uses: (\S+)", path.read_text())
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)] == []


def test_ordinary_runners_run_the_tests() -> None:
    (path,) = (path for path in WORKFLOWS if path.stem == "test")
    assert any(command.startswith("make test") for command in _commands(path))


def test_the_gpu_runner_retrains_verifies_and_builds() -> None:
    (path,) = (path for path in WORKFLOWS if path.stem == "gpu")
    commands = _commands(path)
    steps = ["make verify", "fields --retrain", "studies main", "studies reproduce", "make book"]
    indices = [next(i for i, command in enumerate(commands) if step in command) for step in steps]
    assert indices == sorted(indices)


def test_continuous_integration_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"
    assert script.read_text().rstrip().endswith("make test")
