"""Python in the page: every sample file answered as the command line answers it, over http and from disk."""

import contextlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fts_live import live_chapters, make_samples

# The server, the browser and the page that remembers its errors; pytest finds fixtures by name in here.
from test_browser import HTML, SHOTS, _Watched, browser, pytestmark, site, sync_api  # noqa: F401
from test_browser_pages import AXE

from fts import cli

ROOT = Path(__file__).resolve().parents[2]
CLOSE = 1e-8  # of coefficients and their standard errors, relative
FIRST, AGAIN = 30, 10  # seconds of one core from a click to the answer: with Python to load, and without
MEMORY = 1.5e9  # bytes of the page's process at most
_NUMBER = re.compile(r"\d+(?:[.]\d+)?(?:e[-+]?\d+)?")
LONG = 400_000  # milliseconds to wait on a busy machine

MANIFEST = HTML / "_live" / "manifest.js"
pytestmark = [
    *pytestmark,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        MANIFEST.is_file() and "null" in MANIFEST.read_text(),
        reason="the book was built without Python for its pages: make live, then make book",
    ),
]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """The sample files of the page, with the options that go with them and the command line's answers."""
    folder = tmp_path_factory.mktemp("samples")
    answers = {}
    for about, data in make_samples():
        path = folder / about["name"]
        path.write_bytes(data)
        options = [str(path), *about["options"]]
        answers[about["name"]] = {"path": path, "options": options, "answer": _in_shell(folder, options)}
    return answers


def _in_shell(folder: Path, options: list[str]) -> dict:
    output = folder / "answer.json"
    assert cli.main(["discover", *options, "--json", "--quiet", "--output", str(output), "--force"]) in (0, 1)
    return json.loads(output.read_text())


@pytest.fixture(scope="module")
def page(browser, site: str) -> Iterator["_Page"]:  # noqa: F811
    yield from _open(browser, site, f"{site}/book/try.html")


@pytest.fixture(scope="module")
def page_from_disk(browser) -> Iterator["_Page"]:  # noqa: F811
    yield from _open(browser, HTML.as_uri(), (HTML / "book" / "try.html").as_uri())


def _open(browser, home: str, address: str) -> Iterator["_Page"]:  # noqa: F811
    watched = _Watched(browser, home, 1280, "light")
    yield _Page(watched, address)
    watched.context.close()


class _Page:
    """The page that takes samples, and what it answers."""

    def __init__(self, watched: _Watched, address: str) -> None:
        self.watched = watched
        watched.page.goto(address, wait_until="load")
        self.page = watched.page
        self.root = self.page.locator("#fts-try")
        self.page.locator("[data-sample]").first.wait_for()

    def answer(self) -> None:
        self.page.wait_for_function(
            "() => { const e = document.getElementById('fts-try');"
            " return e.dataset.status && e.getAttribute('aria-busy') === 'false'; }",
            timeout=LONG,
        )

    def click(self, name: str) -> dict:
        self.page.locator(f"[data-sample='{name}']").click()
        self.answer()
        return json.loads(self.root.get_attribute("data-answer") or "{}")

    def give(self, name: str, data: bytes) -> str:
        payload = {"name": name, "mimeType": "text/plain", "buffer": data}
        self.page.locator("#fts-try input[type=file]").set_input_files(payload)
        self.answer()
        return self.page.locator("#fts-try [role=alert]").inner_text()

    def settle(self) -> None:
        self.page.wait_for_function(
            "() => document.getElementById('fts-try').getAttribute('aria-busy') === 'false'", timeout=LONG
        )

    @property
    def text(self) -> str:
        return self.root.inner_text()

    def errors(self) -> list[str]:
        """Errors and requests elsewhere; from disk Chromium refuses to preload the theme's icon fonts."""
        kinds = ("exception", "request") if self.page.url.startswith("file:") else ("",)
        return [error for error in self.watched.errors if error.startswith(kinds)]


def _processes() -> list[Path]:
    """The browser's processes: those that descend from this one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    family, size = {os.getpid()}, 0
    while len(family) > size:
        size = len(family)
        family |= {child for child, parent in parents.items() if parent in family}
    return [Path("/proc") / str(child) for child in family - {os.getpid()}]


def _seconds() -> float:
    """Seconds of one core that the browser has taken."""
    total = 0
    for process in _processes():
        with contextlib.suppress(OSError):
            total += sum(map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def _largest() -> int:
    """Bytes of memory that the largest of the browser's processes has had at most."""
    peaks = [0]
    for process in _processes():
        with contextlib.suppress(OSError):
            lines = (process / "status").read_text().splitlines()
            peaks += [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return max(peaks)


def _agree(answer: object, expected: object, where: str = "") -> None:
    """The same answer: words alike, numbers, in words too, as close as other arithmetic lets them be."""
    assert type(answer) is type(expected), where
    if isinstance(expected, dict):
        assert answer.keys() == expected.keys(), where
        for key in expected.keys() - {"source"}:
            _agree(answer[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(answer) == len(expected), where
        for index, pair in enumerate(zip(answer, expected, strict=True)):
            _agree(*pair, f"{where}[{index}]")
    elif isinstance(expected, str):
        assert _NUMBER.sub("0", answer) == _NUMBER.sub("0", expected), where
        _agree([*map(float, _NUMBER.findall(answer))], [*map(float, _NUMBER.findall(expected))], where)
    else:
        assert answer == pytest.approx(expected, rel=CLOSE), where


def test_samples_are_answered_over_http_as_in_a_shell(page: _Page, samples: dict[str, dict]) -> None:
    began = _seconds()
    first = page.click("waves.csv")
    assert _seconds() - began < FIRST
    _agree(first, samples["waves.csv"]["answer"])
    for name in ("scattered.csv", "one-sine.csv"):
        began = _seconds()
        _agree(page.click(name), samples[name]["answer"])
        assert _seconds() - began < AGAIN, name
    assert not samples["one-sine.csv"]["answer"]["identified"], "this file is there to be refused"
    assert page.page.get_by_text("rival:").count()
    assert _largest() < MEMORY
    assert page.errors() == []


def test_samples_are_answered_from_disk_as_in_a_shell(
    page_from_disk: _Page, samples: dict[str, dict]
) -> None:
    for name, known in samples.items():
        _agree(page_from_disk.click(name), known["answer"])
    assert page_from_disk.errors() == []


@pytest.mark.parametrize(
    "data",
    [b"x,t,u\n0,0,1\n1,0,abc\n", b"", b"a,b,c\n1,2,3\n", b"x,t,u\n0,0,1\n0,0,2\n1,1,1\n", b"\xff\xfe\x00x,t"],
)
def test_a_malformed_file_gets_the_command_s_sentence(
    page: _Page, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.csv").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        code = cli.main(["discover", "odd.csv", "--quiet"])
    assert code == cli.BAD_INPUT
    assert page.give("odd.csv", data) == printed.getvalue().strip()


def test_a_file_too_large_is_refused_before_python_starts(browser, site: str) -> None:  # noqa: F811
    for page in _open(browser, site, f"{site}/book/try.html"):
        reported = page.give("large.csv", b"x,t,u\n" + b"0.125,0.25,0.5\n" * 1_100_000)
        assert "16.5 MB" in reported
        assert reported.endswith("fts discover large.csv")
        assert page.page.workers == []


def test_too_many_samples_are_refused_before_the_fit(page: _Page) -> None:
    rows = "".join(f"{i % 300},{i // 300},{(i * 7919) % 1013}\n" for i in range(60_300))
    reported = page.give("many.csv", b"x,t,u\n" + rows.encode())
    assert reported.startswith("60,300 samples")
    assert reported.endswith("fts discover many.csv")


def test_columns_and_terms_are_chosen_as_in_a_shell(page: _Page, samples: dict[str, dict], tmp_path) -> None:
    data = samples["one-sine.csv"]["path"].read_bytes().replace(b"x,t,u", b"place,time,height")
    (tmp_path / "named.csv").write_bytes(data)
    assert "--columns x=HEADING" in page.give("named.csv", data)
    for role, heading in (("x", "place"), ("t", "time"), ("u", "height")):
        page.page.get_by_label(f"column of {role}").fill(heading)
    page.page.get_by_role("button", name="Look again").click()
    page.settle()
    page.page.get_by_label("candidate terms").fill("u_x u_xx")
    page.page.get_by_label("x is periodic").check()
    page.page.get_by_label("x to").fill("6.28318530717959")
    command = page.page.locator("#fts-try code").first.inner_text()
    page.page.get_by_role("button", name="Discover").click()
    page.answer()
    options = [
        str(tmp_path / "named.csv"),
        *("--axis", "x=0:6.28318530717959:periodic"),
        *("--columns", "x=place", "t=time", "u=height", "--library", "u_x", "u_xx"),
    ]
    assert command.split()[3:] == options[1:]
    _agree(json.loads(page.root.get_attribute("data-answer") or ""), _in_shell(tmp_path, options))


def test_components_inputs_and_second_order_are_chosen_as_in_a_shell(page: _Page, tmp_path, rng) -> None:
    x, t = (a.ravel() for a in np.meshgrid(np.arange(24) * np.pi / 12, np.linspace(0, 3, 25), indexing="ij"))
    right, left = np.exp(np.cos(x - t)) + 0.3 * np.sin(2 * (x - t)), 0.5 * np.exp(np.sin(2 * (x + t)))
    # Without noise the standard errors are of rounding, in which the page and a shell differ.
    waves = np.column_stack([right + left, right - left]) + 0.01 * rng.standard_normal((x.size, 2))
    path = tmp_path / "tank.csv"
    np.savetxt(path, np.column_stack([x, t, waves]), delimiter=",", header="x,t,height,speed", comments="")
    page.give("tank.csv", path.read_bytes())
    page.page.get_by_label("column of u").fill("height")
    page.page.get_by_label("further components").fill("v=speed")
    page.page.get_by_role("button", name="Look again").click()
    page.settle()
    assert page.page.get_by_label("further components").input_value() == "v=speed"
    ring = ["--axis", "x=0:6.28318530717959:periodic"]
    page.page.get_by_label("x is periodic").check()
    page.page.get_by_label("x to").fill("6.28318530717959")

    def answer(terms: list[str]) -> dict:
        page.page.get_by_label("candidate terms").fill(" ".join(terms))
        page.page.get_by_role("button", name="Discover").click()
        page.answer()
        return json.loads(page.root.get_attribute("data-answer") or "")

    terms = ["--library", "u_x", "v_x", "u"]
    shell = _in_shell(tmp_path, [str(path), *ring, "--columns", "u=height", "v=speed", *terms])
    _agree(answer(terms[1:]), shell)
    assert list(shell["components"]) == ["u", "v"]
    assert (
        page.page.locator("#fts-try .fts-result").count()
        == page.page.locator("#fts-try figure svg").count()
        == 2
    )
    with page.page.expect_download(timeout=LONG) as waiting:
        page.page.get_by_role("button", name="Notebook").click()
    lines = "".join(json.loads(Path(waiting.value.path()).read_text())["cells"][0]["source"])
    names: dict = {}
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()):
        exec(lines, names)
    (v,) = names["result"].components["v"].selection.coefficients.values()
    assert v == pytest.approx(shell["components"]["v"]["coefficients"]["u_x"], rel=CLOSE)
    page.settle()
    page.page.locator("#fts-try summary", has_text="Which column").click()
    page.page.get_by_label("further components").fill("")
    page.page.get_by_label("left-hand side").select_option("u_tt")
    terms = ["--library", "u_xx", "u"]
    shell = _in_shell(tmp_path, [str(path), *ring, "--columns", "u=height", "--target", "u_tt", *terms])
    _agree(answer(terms[1:]), shell)
    assert "u_tt" in shell["components"]["u"]["equation"]
    assert page.errors() == []


def test_downloads_and_a_run_forward(
    page: _Page, samples: dict[str, dict], tmp_path: Path, monkeypatch
) -> None:
    page.click("waves.csv")
    page.page.get_by_role("button", name="Run it forward").click()
    page.settle()
    assert "misses the samples by" in page.text
    assert page.page.locator("#fts-try figure svg").count() == 2
    downloads = {}
    for button in ("JSON", "Notebook", "Report"):
        with page.page.expect_download(timeout=LONG) as waiting:
            page.page.get_by_role("button", name=button).click()
        downloads[button] = Path(waiting.value.path()).read_text()
        page.settle()
    known = samples["waves.csv"]
    _agree(json.loads(downloads["JSON"]), known["answer"])
    assert downloads["Report"].count("<img") >= 5
    assert known["answer"]["equation"][:6] == "u_t = "
    cells = json.loads(downloads["Notebook"])["cells"]
    monkeypatch.chdir(known["path"].parent)
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in cells:
            exec("".join(cell["source"]), names)
    assert names["result"].selection.coefficients == known["answer"]["coefficients"]
    assert page.errors() == []


def test_a_cancelled_run_can_be_followed_by_another(page: _Page, samples: dict[str, dict]) -> None:
    """Cancelled in the midst of a fit, and again while Python is loading anew."""
    for stage in ("Fitting the field", "Loading Python ("):
        page.page.locator("[data-sample='scattered.csv']").click()
        page.page.get_by_text(stage).wait_for(timeout=LONG)
        page.page.get_by_role("button", name="Cancel").click()
        assert "Cancelled" in page.page.locator("#fts-try [role=status]").inner_text()
        for _ in range(300):  # one in the midst of a loop takes a while to end
            if stage.startswith("Loading") or not page.page.workers:
                break
            page.page.wait_for_timeout(100)
        assert stage.startswith("Loading") or page.page.workers == []
    _agree(page.click("one-sine.csv"), samples["one-sine.csv"]["answer"])
    assert len(page.page.workers) == 1


def test_the_answer_is_accessible_and_fits_a_phone(page: _Page) -> None:
    SHOTS.mkdir(exist_ok=True)
    page.page.locator("[data-sample='one-sine.csv']").focus()
    page.page.keyboard.press("Enter")
    page.answer()
    try:
        for theme in ("light", "dark"):
            page.page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
            for width in (1280, 390):
                page.page.set_viewport_size({"width": width, "height": 900})
                page.page.screenshot(path=SHOTS / f"try-answer-{width}-{theme}.png", full_page=True)
                assert page.page.evaluate("document.documentElement.scrollWidth") <= width
            page.page.evaluate(AXE)
            broken = page.page.evaluate("axe.run('#fts-try', { resultTypes: ['violations'] })")["violations"]
            assert [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in broken] == []
    finally:
        page.page.set_viewport_size({"width": 1280, "height": 900})


def test_without_python_the_page_explains_itself(browser, site: str) -> None:  # noqa: F811
    watched = _Watched(browser, site, 1280, "light")
    nothing = {"body": "ftsLive.manifest(null);", "content_type": "text/javascript"}
    watched.page.route("**/_live/manifest.js", lambda route: route.fulfill(**nothing))
    shown = watched.open(f"{site}/book/try.html")
    shown.locator("#fts-try[data-status=without]").wait_for()
    assert "make live" in shown.locator("#fts-try").inner_text()
    assert watched.errors == []
    watched.context.close()


_CHAPTERS = [
    ("intro", "http"),
    ("data", "disk"),
    ("weak", "http"),
    ("svws", "disk"),
    ("discovery", "http"),
    ("systems", "disk"),
    ("samples", "http"),
]
_SECONDS = re.compile(r"\d+ ms\b")


def test_every_chapter_with_live_cells_is_run() -> None:
    assert sorted(f"book/{chapter}" for chapter, _ in _CHAPTERS) == live_chapters()


@pytest.mark.parametrize(("chapter", "place"), _CHAPTERS)
def test_cells_run_top_to_bottom_and_print_what_the_page_prints(
    browser,  # noqa: F811
    site: str,  # noqa: F811
    chapter: str,
    place: str,
) -> None:
    home = site if place == "http" else HTML.as_uri()
    watched = _Watched(browser, home, 1280, "light")
    shown = watched.page
    shown.goto(f"{home}/book/{chapter}.html", wait_until="load")
    cells = shown.locator(".cell.tag_live")
    built = [_output(cells.nth(i), ".cell_output") for i in range(cells.count())]
    assert sum(map(bool, built)), "no live cell of this chapter prints"
    # The last may stand in a solution, which is folded.
    cells.last.get_by_text("Run this cell", exact=True).evaluate("button => button.click()")
    shown.wait_for_function(
        "() => [...document.querySelectorAll('.cell.tag_live')].at(-1).dataset.live"
        " || document.querySelector('[data-live=failed]')",
        timeout=LONG,
    )
    printed = [_output(cells.nth(i), ".fts-cell-output") for i in range(len(built))]
    assert printed == built
    assert _largest() < MEMORY
    kinds = ("",) if place == "http" else ("exception", "request")  # the theme's icon fonts, as above
    assert [error for error in watched.errors if error.startswith(kinds)] == []
    watched.context.close()


def _output(cell: "sync_api.Locator", kind: str) -> str:
    """What a cell prints; milliseconds are another machine's."""
    texts = cell.locator(f"{kind} pre").all_text_contents()
    return _SECONDS.sub("ms", "\n".join(text.rstrip() for text in texts))


def test_a_cell_is_stopped_edited_kept_and_reset(browser, site: str) -> None:  # noqa: F811
    watched = _Watched(browser, site, 390, "light")
    shown = watched.open(f"{site}/book/intro.html")
    cell = shown.locator(".cell.tag_live").first
    cell.get_by_role("button", name="Edit").focus()
    shown.keyboard.press("Enter")
    cell.locator("textarea").fill("while True: pass")
    cell.locator("textarea").press("Shift+Enter")
    shown.get_by_text("Running").wait_for(timeout=LONG)
    cell.get_by_role("button", name="Stop").click()
    shown.get_by_text("Stopped.").wait_for()
    cell.locator("textarea").fill("import torch")
    shown = watched.open(f"{site}/book/intro.html")
    assert cell.locator("textarea").input_value() == "import torch"
    cell.get_by_role("button", name="Run this cell").click()
    cell.locator(".fts-cell-output pre").wait_for(timeout=LONG)
    assert "torch is not in this page" in cell.locator(".fts-cell-output").inner_text()
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    shown.evaluate(AXE)
    assert shown.evaluate("axe.run('.cell.tag_live', { preload: false })")["violations"] == []
    cell.get_by_role("button", name="Reset").click()
    assert not cell.locator("textarea").is_visible()
    assert cell.locator(".cell_input").is_visible()
    shown = watched.open(f"{site}/book/intro.html")
    assert not cell.locator("textarea").is_visible()
    assert watched.errors == []
    watched.context.close()
