"""The tests of edges_api.py, in a process of its own: here beartype would answer before the package does."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("kind", ["not five_hundred", pytest.param("five_hundred", marks=pytest.mark.slow)])
def test_odd_arguments_are_answered_by_a_sentence(root, kind):
    file = str(root / "tests" / "edges_api.py")
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pytest",
        "--noconftest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    done = subprocess.run(
        [*command, "-k", kind, file],
        capture_output=True,
        text=True,
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
