"""JupyterLab with a real kernel: a notebook runs, its explorer answers, its controls are Python values."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from test_browser import CHROMIUM, browser, pytestmark  # noqa: F401

from fts.explorers.widgets import explore
from fts.fields.frozen import load_field

pytestmark = [*pytestmark, pytest.mark.slow]

_CELL = """
from pathlib import Path

import fts

explorer = fts.explore(fts.load_field("kdv", "S20"))


def answer(change):
    Path("seen").write_text(f"{change.new} {explorer.selection.equation}")
    explorer.tau = 0.75


explorer.observe(answer, "lam0_factor")
explorer
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a JupyterLab whose folder is `tmp_path`."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(_CELL)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "smoke.ipynb")
    home = tmp_path / "home"
    home.mkdir()
    # Settings of whoever runs the tests stay out, and theirs stay untouched.
    environment = os.environ | {"JUPYTER_CONFIG_DIR": str(home), "IPYTHONDIR": str(home), "HOME": str(home)}
    port = _free_port()
    options = ["--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token=smoke"]
    options += ["--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None"]
    command = [sys.executable, "-m", "jupyterlab", *options, f"--notebook-dir={tmp_path}"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tmp_path)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token=smoke", server, tmp_path / "log")
        yield f"http://127.0.0.1:{port}/lab/tree/smoke.ipynb?token=smoke"
    finally:
        server.terminate()
        server.wait(30)


def test_an_explorer_answers_in_jupyterlab(browser, lab: str, tmp_path: Path) -> None:  # noqa: F811
    page = browser.new_page()
    page.goto(lab, timeout=120_000)
    page.wait_for_function(
        "window.jupyterapp?.commands.hasCommand('notebook:run-all-cells')", timeout=120_000
    )
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=120_000)
    page.wait_for_function(
        "window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
        timeout=120_000,
    )
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    shown = page.locator(".fts-explorer[aria-busy='false'][data-milliseconds]")
    shown.wait_for(timeout=180_000)
    explorer = explore(load_field("kdv", "S20"))
    assert shown.get_attribute("data-equation") == str(explorer.selection.equation)
    assert not page.locator(".fts-still").is_visible()

    slider = shown.locator("[data-control=lam0_factor] input")
    before, cell = slider.input_value(), "window.jupyterapp.shell.currentWidget.content.activeCellIndex"
    active = page.evaluate(cell)
    slider.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert float(slider.input_value()) > float(before), "the notebook took the arrow keys"
    assert page.evaluate(cell) == active

    slider.evaluate("e => { e.value = 2; e.dispatchEvent(new Event('input')); }")
    explorer.tau = 0.75  # as the notebook answered the arrow keys
    explorer.lam0_factor = 4.0
    expected = f"4.0 {explorer.selection.equation}"
    seen = tmp_path / "seen"
    for _ in range(600):
        if seen.is_file() and seen.read_text() == expected:
            break
        time.sleep(0.1)
    assert seen.read_text() == expected, "the kernel did not hear of the slider"
    page.wait_for_function(
        "document.querySelector('.fts-explorer [data-control=tau] output').textContent === '0.75'",
        timeout=30_000,
    )
    page.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(240):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"JupyterLab did not start: {log.read_text()}")
