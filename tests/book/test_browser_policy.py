"""The pages' policy in Chromium: explorers answer, over http and from disk, and nothing injected runs."""

import re

import pytest

# The server, the browser and the page that remembers its errors; pytest finds fixtures by name in here.
from test_browser import HTML, _pages, _Watched, browser, pytestmark, site, sync_api  # noqa: F401

_EXPLORERS = (
    [page for page in _pages() if "fts-still" in (HTML / f"{page}.html").read_text()] if HTML.is_dir() else []
)
_SETTLED = "[aria-busy='false'][data-milliseconds]"
# Every control that a reader sees, in all explorers of the page.
_CONTROLS = ".fts-explorer :is(.fts-control:not([hidden]), .fts-head) :is(input, select, button)"
# Another value than the present one, as a reader's hand would set it.
_MOVE = """e => {
  delete e.closest('.fts-explorer').dataset.milliseconds;
  if (e.tagName === 'BUTTON') return e.disabled || e.click();
  if (e.tagName === 'SELECT') e.selectedIndex = (e.selectedIndex + 1) % e.options.length;
  else e.value = Number(e.value) > Number(e.min) ? e.min : e.max;
  e.dispatchEvent(new Event(e.tagName === 'SELECT' ? 'change' : 'input'));
}"""
_INJECT = """() => {
  window.ran = [];
  window.blocked = [];
  document.addEventListener('securitypolicyviolation', (e) => window.blocked.push(e.effectiveDirective));
  const add = (name, attributes) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    document.querySelector('article').append(element);
    return element;
  };
  add('script', {}).append("window.ran.push('inline script')");
  add('script', { src: "data:text/javascript,window.ran.push('data')" });
  add('script', { src: URL.createObjectURL(new Blob(["window.ran.push('blob')"])) });
  add('img', { src: 'none.png', onerror: "window.ran.push('attribute')" });
  add('a', { href: "javascript:window.ran.push('address')" }).click();
  add('iframe', { srcdoc: "<script>parent.ran.push('frame')</script>" });
  add('base', { href: 'https://example.org/' });
  add('object', { data: 'data:text/html,<script>parent.ran.push(1)</script>' });
  setTimeout("window.ran.push('text of a timer')", 0);
}"""


def _url(scheme: str, site: str, page: str) -> str:  # noqa: F811
    return f"{site}/{page}.html" if scheme == "http" else (HTML / f"{page}.html").as_uri()


@pytest.fixture(params=["http", "file"])
def scheme(request: pytest.FixtureRequest) -> str:
    """Over http, and from disk."""
    return request.param


def _errors(watched: _Watched) -> list[str]:
    """What went wrong, but for the icon fonts, which Chromium does not preload from disk."""
    fonts = re.compile(r"webfonts/|net::ERR_FAILED$")
    return [
        error
        for error in watched.errors
        if not (error.startswith(("console", "failed")) and fonts.search(error))
    ]


@pytest.mark.parametrize("chapter", _EXPLORERS)
def test_every_control_answers(browser, site: str, scheme: str, chapter: str) -> None:  # noqa: F811
    watched = _Watched(browser, site if scheme == "http" else "file://", 1280, "light")
    page = watched.open(_url(scheme, site, chapter))
    stills = page.locator(".fts-still").count()
    for index in range(stills):
        cell = page.locator(".cell_output:has(.fts-still)").nth(index)
        page.locator(".fts-still").nth(index).or_(cell).first.scroll_into_view_if_needed()
        cell.locator(f".fts-explorer{_SETTLED}").wait_for(timeout=120_000)
    controls = page.locator(_CONTROLS)
    assert controls.count() >= 2 * stills > 0
    moved = 0
    # The reset comes last: it can be pressed only when something was moved.
    for index in sorted(
        range(controls.count()), key=lambda i: controls.nth(i).get_attribute("class") == "fts-reset"
    ):
        control = controls.nth(index)
        # Some are for another dimension than the field that was chosen; nothing can be reset where only
        # the picture was touched.
        if not (control.is_visible() and control.is_enabled()):
            continue
        moved += 1
        control.evaluate(_MOVE)
        page.wait_for_function(
            "(e) => e.closest('.fts-explorer').matches(`[aria-busy='false'][data-milliseconds]`)",
            arg=control.element_handle(),
            timeout=120_000,
        )
    assert moved >= stills
    assert _errors(watched) == []
    watched.context.close()


# Where cells run, Python's worker imports modules by blobs, which only a script that already runs can make.
@pytest.mark.parametrize("chapter", ["book/explore", "book/intro"])
def test_what_is_injected_does_not_run(browser, site: str, scheme: str, chapter: str) -> None:  # noqa: F811
    watched = _Watched(browser, site if scheme == "http" else "file://", 1280, "light")
    page = watched.open(_url(scheme, site, chapter))
    page.evaluate(_INJECT)
    page.wait_for_timeout(1000)
    assert page.evaluate("window.ran") == (["blob"] if chapter == "book/intro" else [])
    blocked = page.evaluate("window.blocked")
    assert {"script-src-elem", "script-src-attr", "script-src", "base-uri"} <= set(blocked)
    assert page.evaluate("document.baseURI") == page.url
    watched.context.close()


def test_a_script_written_into_a_page_does_not_run(browser, site: str) -> None:  # noqa: F811
    """As from a proxy, or a notebook's output that was not escaped: the same text without the policy runs."""
    context = browser.new_context()
    page = context.new_page()
    text = (HTML / "book" / "intro.html").read_text()
    written = text.replace("<article", "<script>window.ran = true</script><article", 1)
    assert written != text
    for body, ran in ((re.sub(r"<meta http-equiv[^>]*>", "", written), True), (written, False)):
        page.route(
            "**/intro.html", lambda route, *, body=body: route.fulfill(body=body, content_type="text/html")
        )
        page.goto(f"{site}/book/intro.html")
        assert page.evaluate("window.ran === true") is ran
        page.unroute("**/intro.html")
    context.close()


def test_the_themes_buttons_answer(browser, site: str, scheme: str) -> None:  # noqa: F811
    watched = _Watched(browser, site if scheme == "http" else "file://", 1280, "light")
    page = watched.open(_url(scheme, site, "book/notation"))
    page.evaluate("() => { window.called = []; window.print = () => window.called.push('print'); }")
    page.locator("[data-call=print]").evaluate("e => e.click()")
    page.evaluate("() => { document.documentElement.requestFullscreen = () => window.called.push('full'); }")
    page.locator("[data-call=toggleFullScreen]").evaluate("e => e.click()")
    assert page.evaluate("window.called") == ["print", "full"]
    mode = "document.documentElement.dataset.mode"
    before = page.evaluate(mode)
    page.locator(".theme-switch-button").first.evaluate("e => e.click()")
    assert page.evaluate(mode) != before
    assert _errors(watched) == []
    watched.context.close()


def test_the_search_quotes_pages(browser, site: str) -> None:  # noqa: F811
    watched = _Watched(browser, site, 1280, "light")
    page = watched.open(f"{site}/search.html?q=kernel")
    page.locator("#search-results li p.context").first.wait_for(timeout=20_000)
    assert page.locator("#search-results li").count() > 3
    assert _errors(watched) == []
    watched.context.close()
