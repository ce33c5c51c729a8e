"""Pages as a reader meets them: jumps land, a phone cuts nothing off, axe-core finds nothing."""

import os
from importlib.resources import files
from pathlib import Path

import pytest

# The server, the browser and the page that remembers its errors; pytest finds fixtures by name in here.
from test_browser import HTML, _pages, _Watched, browser, pytestmark, site, sync_api  # noqa: F401

from fts.plotting import DPI, SMALLEST_TEXT

NEAR = 80  # pixels between where a jump ends and its target
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")

_SETTLED = """() => [...document.querySelectorAll('.fts-holder:not(:empty)')].every(
  (holder) => holder.querySelector("[aria-busy='false'][data-milliseconds]"))"""
_ANSWERED = ".fts-explorer[aria-busy='false'][data-milliseconds]"
# How far the target is from where the page puts targets; nothing when the page can scroll no further.
_MISSED = """(name) => {
  const target = document.getElementById(name), root = document.documentElement;
  const wanted = parseFloat(getComputedStyle(root).scrollPaddingTop) || 0;
  const margin = parseFloat(getComputedStyle(target).scrollMarginTop) || 0;
  const box = target.getBoundingClientRect(), end = root.scrollHeight - innerHeight - scrollY < 2;
  if (end && box.top >= 0 && box.top < innerHeight) return 0;
  return box.top - wanted - margin;
}"""

# Explorers above a target move it by mounting: of the targets under equally many the last one is enough.
_FARTHEST = """(names) => {
  const explorers = [...document.querySelectorAll('.fts-still')], last = new Map();
  const follows = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;
  for (const name of names) {
    const target = document.getElementById(name);
    const above = explorers.filter((explorer) => follows(explorer, target)).length;
    const known = document.getElementById(last.get(above));
    if (!known || follows(known, target)) last.set(above, name);
  }
  return [...last.values()];
}"""

# Nothing mounts on a page without explorers: it has jumped once it is drawn again.
_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


def _wait(page: "sync_api.Page") -> None:
    page.wait_for_timeout(150)
    page.wait_for_function(_SETTLED, timeout=120_000)
    page.wait_for_timeout(100)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("chapter", _pages())
def test_every_jump_lands_at_its_target(browser, site: str, chapter: str, width: int) -> None:  # noqa: F811
    watched = _Watched(browser, site, width, "light")
    page = watched.open(f"{site}/{chapter}.html")
    links = page.locator("main a[href^='#'], .bd-sidebar-secondary a[href^='#']")
    names = [*dict.fromkeys(links.evaluate_all("all => all.map(a => decodeURIComponent(a.hash.slice(1)))"))]
    names = [name for name in names if name and page.locator(f"[id='{name}']").count()]
    assert names or chapter in ("book/references",)
    unmounted = page.locator(".fts-still").count()
    missed = {}
    for name in page.evaluate(_FARTHEST, names) if unmounted else names:
        # Explorers are mounted by nearing them: where there are some, every jump is a reader's first.
        page = watched.open(f"{site}/{chapter}.html") if unmounted else page
        page.evaluate("name => { location.hash = ''; scrollTo(0, 0); location.hash = name; }", name)
        if unmounted:
            _wait(page)
        else:
            page.evaluate(_FRAMES)
        missed[name] = page.evaluate(_MISSED, name)
    assert {name: off for name, off in missed.items() if abs(off) > NEAR} == {}
    watched.context.close()


def _through(page: "sync_api.Page") -> None:
    """Scroll to every explorer and open every toggle, as a reader would."""
    for index in range(page.locator(".fts-still").count()):
        page.locator(".cell_output:has(.fts-still)").nth(index).scroll_into_view_if_needed()
        _wait(page)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


# axe-core does not read MathML, and takes a heading that is a formula for an empty one.
_FORMULA = "target => Boolean(document.querySelector(target).querySelector('math')?.textContent.trim())"


# Cells that were just opened fade in: what is half transparent has no contrast yet.
_STILL = """() => document.getAnimations().forEach((one) => {
  if (one.effect.getComputedTiming().endTime !== Infinity) one.finish();
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("chapter", _pages())
def test_axe_finds_nothing(browser, site: str, chapter: str, theme: str) -> None:  # noqa: F811
    watched = _Watched(browser, site, 1280, theme)
    page = watched.open(f"{site}/{chapter}.html")
    _through(page)
    page.evaluate(_STILL)
    page.evaluate(AXE)
    report = page.evaluate("axe.run(document.querySelector('.bd-article'), { resultTypes: ['violations'] })")
    reported = [
        f"{result['id']}: {node['html'][:160]}"
        for result in report["violations"]
        for node in result["nodes"]
        if not (result["id"] == "empty-table-header" and page.evaluate(_FORMULA, node["target"][0]))
    ]
    assert reported == []
    watched.context.close()


# What ends outside the screen and cannot be scrolled to, or is hidden by its own box.
_CUT = """(width) => [...document.querySelectorAll('.bd-article *')].filter((e) => {
  const box = e.getBoundingClientRect();
  const unseen = 'mjx-assistive-mml, [hidden], .headerlink, .fts-unseen';
  if (!box.width || !box.height || e.closest(unseen)) return false;
  const hides = getComputedStyle(e).overflowX === 'hidden' && e.scrollWidth > e.clientWidth + 1;
  let scrolled = e.parentElement;
  const fixed = (box) => !/auto|scroll/.test(getComputedStyle(box).overflowX);
  while (scrolled && fixed(scrolled)) scrolled = scrolled.parentElement;
  return hides || ((box.right > width + 1 || box.left < -1) && !scrolled);
}).map((e) => `${e.tagName}.${e.className}`.slice(0, 80))"""


# Tables, figures and formulas wider than what they stand in, which would hide or scroll their ends.
_WIDE = """() => {
  const things = 'table, figure img, .fts-still img, mjx-container[display=true]';
  const roomOf = (e) => {
    let room = e.parentElement;
    while (!/auto|scroll|hidden/.test(getComputedStyle(room).overflowX) && room.parentElement)
      room = room.parentElement;
    return room;
  };
  const isCut = (e) => {
    const [mine, room] = [e.getBoundingClientRect(), roomOf(e)];
    const inside = e.tagName === 'IMG' || e.scrollWidth <= e.clientWidth + 2;
    return mine.width && !(inside && mine.right <= room.getBoundingClientRect().left + room.clientWidth + 2);
  };
  return [...document.querySelectorAll(`.bd-article :is(${things})`)]
    .filter((e) => !e.closest('details:not([open])') && isCut(e))
    .map((e) => `${e.tagName} ${e.closest('[id]')?.id}`);
}"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("chapter", _pages())
def test_nothing_is_cut_off(browser, site: str, chapter: str, width: int) -> None:  # noqa: F811
    watched = _Watched(browser, site, width, "light")
    page = watched.open(f"{site}/{chapter}.html")
    _through(page)
    assert page.evaluate(_CUT, width) == []
    assert page.evaluate(_WIDE) == []
    # Numbers do not break: what a cell of a chapter's table holds is one line high. The cell is as high
    # as its row, in which a label may wrap.
    broken = page.locator(".cell_output table td").evaluate_all(
        """all => all.filter((e) => {
          const inside = document.createRange();
          inside.selectNodeContents(e);
          const number = /^[-\\u2212\\d./%|▲▼= ]+$/.test(e.innerText);
          return number && inside.getBoundingClientRect().height > 40;
        }).map((e) => e.innerText)"""
    )
    assert broken == []
    watched.context.close()


def test_a_tapped_figure_is_as_large_as_on_a_wide_screen(browser, site: str) -> None:  # noqa: F811
    watched = _Watched(browser, site, 390, "light")
    page = watched.open(f"{site}/book/paths.html")
    picture = page.locator("#fig-all-seeds img")
    widths = []
    for _ in range(3):
        widths.append(picture.evaluate("e => e.clientWidth"))
        assert page.evaluate(_CUT, 390) == []
        picture.click()
    assert widths[0] == widths[2] < 390 < 576 <= widths[1]
    watched.context.close()


@pytest.mark.parametrize("address", ["#fts:%", "#fts:%E0%A4%A?tau=1", "#fts:selection?tau", "#fts:;;?"])
def test_a_broken_address_leaves_explorers_alive(browser, site: str, address: str) -> None:  # noqa: F811
    watched = _Watched(browser, site, 1280, "light")
    page = watched.open(f"{site}/book/explore.html{address}")
    page.locator(".cell_output:has(.fts-still)").first.scroll_into_view_if_needed()
    page.locator(".fts-explorer[aria-busy='false'][data-milliseconds]").first.wait_for(timeout=120_000)
    assert watched.errors == []
    watched.context.close()


def test_a_power_too_low_cannot_be_set(browser, site: str) -> None:  # noqa: F811
    watched = _Watched(browser, site, 1280, "light")
    page = watched.open(f"{site}/book/explore.html")
    key = page.locator(".fts-still[data-key^=patches]").first.get_attribute("data-key")
    page = watched.open(f"{site}/book/explore.html#fts:{key}?power=2")
    page.reload()
    shown = page.locator(f".fts-explorer[data-key='{key}'][aria-busy='false'][data-milliseconds]")
    shown.wait_for(timeout=120_000)
    slider = shown.locator("[data-control=power] input")
    assert int(slider.input_value()) > 4
    slider.evaluate("e => { e.value = 1; e.dispatchEvent(new Event('input')); }")
    page.wait_for_timeout(300)
    shown.wait_for(timeout=120_000)
    assert slider.input_value() == slider.get_attribute("min") == "5"
    assert shown.locator(".fts-result > .fts-bad").count() == 0, "an error instead of an equation"
    watched.context.close()


def test_icons_come_once() -> None:
    static = Path(__file__).resolve().parents[2] / "_build" / "html" / "_static" / "vendor" / "fontawesome"
    assert len(list(static.rglob("*.*tf")) + list(static.rglob("*.woff*"))) == 1, (
        "one font, of the icons in use"
    )
    assert not list(static.rglob("*.js")), "the same icons again, as a script of 1.5 MB"


@pytest.mark.parametrize("chapter", _pages())
def test_text_in_figures_is_legible(browser, site: str, chapter: str) -> None:  # noqa: F811
    """At 1280 pixels the smallest text, of as many points as tests/lab allows, has at least eleven."""
    watched = _Watched(browser, site, 1280, "light")
    page = watched.open(f"{site}/{chapter}.html")
    sizes = page.locator(".bd-article figure img").evaluate_all(
        "all => all.map((i) => [i.clientWidth, Number(i.getAttribute('width'))])"
    )
    for shown, drawn in sizes:
        assert SMALLEST_TEXT / 72 * DPI * shown / drawn >= 11
    watched.context.close()


@pytest.mark.parametrize(
    ("word", "chapter"),
    [
        ("SVWS", "book/svws"),
        ("install", "book/intro"),
        ("license", "book/intro"),
        ("noise", "book/cross"),
        ("scattered", "book/samples"),
    ],
)
def test_the_search_finds_the_right_chapter_first(browser, site: str, word: str, chapter: str) -> None:  # noqa: F811
    watched = _Watched(browser, site, 1280, "light")
    page = watched.open(f"{site}/search.html?q={word}")
    first = page.locator("#search-results ul.search > li > a").first
    first.wait_for()
    page.wait_for_timeout(1000)  # results come in one by one, sorted
    assert first.get_attribute("href").split("#")[0].split("?")[0] == f"{chapter}.html"
    watched.context.close()


def test_the_first_page_is_light_and_answers_at_once(browser, site: str) -> None:  # noqa: F811
    """Under a megabyte over http; from disk the explorer answers within a second of an idle machine."""
    watched, sizes = _Watched(browser, site, 1280, "light"), {}
    watched.page.on("response", lambda response: sizes.update({response.url: len(response.body())}))
    watched.open(f"{site}/book/intro.html").locator(_ANSWERED).first.wait_for()
    assert sum(size for url, size in sizes.items() if url.startswith("http")) < 1e6
    watched.context.close()
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    seconds = []
    for _ in range(3):
        watched = _Watched(browser, "file://", 1280, "light")
        watched.page.goto((HTML / "book/intro.html").as_uri(), wait_until="commit")
        watched.page.locator(_ANSWERED).first.wait_for()
        seconds.append(watched.page.evaluate("performance.now()") / 1000)
        watched.context.close()
    assert min(seconds) < 1.0 * busy
