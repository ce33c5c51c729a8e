"""Every page of the built book in Chromium: no error, no request to another host, no sideways scrolling."""

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

sync_api = pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
SHOTS = ROOT / ".screenshots"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None and os.environ.get("CI") != "true",
        reason="no Chromium found: install it (apt-get install chromium) to check the pages in a browser",
    ),
]


def _pages() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    chapters = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *chapters]


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    assert (HTML / "index.html").is_file(), "the book is not built: run make book"
    handler = functools.partial(_Quiet, directory=str(HTML))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator["sync_api.Browser"]:
    assert CHROMIUM, "under CI=true the browser checks must run: install Chromium (.ci/run does)"
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class _Watched:
    """A page that remembers every error and every request that left `home`."""

    def __init__(self, browser: "sync_api.Browser", home: str, width: int, theme: str) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
        )
        self.context.add_init_script(f"localStorage.setItem('mode', '{theme}')")
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        self.page.on("console", self._console)
        self.page.on("requestfailed", lambda request: self.errors.append(f"failed: {request.url}"))
        self.page.on("response", self._response)
        self.page.on("request", lambda request: self._request(request.url, home))

    def _console(self, message: "sync_api.ConsoleMessage") -> None:
        if message.type == "error":
            self.errors.append(f"console: {message.text}")

    def _response(self, response: "sync_api.Response") -> None:
        if response.status >= 400:
            self.errors.append(f"{response.status}: {response.url}")

    def _request(self, url: str, home: str) -> None:
        if not url.startswith((home, "data:", "blob:")):
            self.errors.append(f"request to another host: {url}")

    def open(self, url: str) -> "sync_api.Page":
        self.page.goto(url, wait_until="load")
        self.page.evaluate("() => window.MathJax?.startup?.promise")
        self.page.wait_for_load_state("networkidle")
        return self.page


@pytest.mark.parametrize("page", _pages())
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_loads_clean(browser: "sync_api.Browser", site: str, page: str, width: int, theme: str) -> None:
    watched = _Watched(browser, site, width, theme)
    shown = watched.open(f"{site}/{page}.html")
    SHOTS.mkdir(exist_ok=True)
    # A picture of the whole page resizes the window, and the sidebar would slide while it is taken.
    shown.add_style_tag(content="* { transition: none !important; animation: none !important; }")
    shown.screenshot(path=SHOTS / f"{Path(page).name}-{width}-{theme}.png", full_page=True)
    assert watched.errors == []
    assert shown.evaluate("document.documentElement.dataset.theme") == theme
    assert shown.locator("mjx-merror").count() == 0, "a formula MathJax cannot read"
    assert shown.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    broken = shown.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
    assert broken == []
    assert (
        shown.evaluate("[...document.querySelectorAll('main img')].filter(i => !i.alt).map(i => i.src)") == []
    )
    watched.context.close()


def test_formulas_are_typeset(browser: "sync_api.Browser", site: str) -> None:
    watched = _Watched(browser, site, 1280, "light")
    shown = watched.open(f"{site}/book/notation.html")
    assert shown.locator("mjx-container").count() > 20
    assert watched.errors == []
    watched.context.close()


def test_pages_open_from_disk(browser: "sync_api.Browser") -> None:
    watched = _Watched(browser, "file://", 1280, "light")
    shown = watched.open((HTML / "book" / "notation.html").as_uri())
    assert shown.locator("mjx-container").count() > 20
    # Chromium refuses to preload the theme's icon fonts from disk; the style sheet then loads them.
    assert [error for error in watched.errors if error.startswith(("exception", "request"))] == []
    watched.context.close()
