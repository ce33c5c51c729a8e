"""The height every explorer takes in the built book, in Chromium -> assets/heights.css.

`python tests/book/heights.py` after a build; the next build copies the file. Pages keep that much room before
an explorer mounts, so that a jump past it lands where it should. The browser tests fail when one outgrows it.
"""

import functools
import http.server
import threading

from test_browser import CHROMIUM, FLAGS, HTML, ROOT, _pages, _Quiet, _Watched, sync_api

FILE = ROOT / "assets" / "heights.css"
# Windows whose columns belong to the classes of assets/fts.css, where explorers stand highest and between.
WINDOWS = {
    "wide": (1280, 900, 768, 710),
    "middle": (704, 620, 548),
    "narrow": (540, 480, 436),
    "phone": (430, 390, 360),
}
SPARE = 8  # pixels, for fonts that are a little larger elsewhere
_SETTLED = ".fts-explorer[aria-busy='false'][data-milliseconds]"
_MEASURE = """holders => holders.map((e) => {
  e.style.minHeight = '0';
  const height = Math.ceil(e.getBoundingClientRect().height);
  e.style.minHeight = '';
  return [e.dataset.key, height];
})"""


def measure(home: str) -> dict[str, dict[str, int]]:
    """Pixels by explorer and class of width."""
    result: dict[str, dict[str, int]] = {}
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for chapter in _pages():
            page = _Watched(browser, home, 1280, "light").open(f"{home}/{chapter}.html")
            cells = page.locator(".cell_output:has(.fts-still)")
            for index in range(cells.count()):
                cells.nth(index).scroll_into_view_if_needed()
                cells.nth(index).locator(_SETTLED).wait_for(timeout=120_000)
            for kind, windows in WINDOWS.items():
                for width in windows if cells.count() else ():
                    page.set_viewport_size({"width": width, "height": 900})
                    page.wait_for_timeout(1000)
                    for key, height in page.locator(".fts-holder").evaluate_all(_MEASURE):
                        room = result.setdefault(key, dict.fromkeys(WINDOWS, 0))
                        room[kind] = max(room[kind], height + SPARE)
            page.context.close()
        browser.close()
    return result


def main() -> None:
    handler = functools.partial(_Quiet, directory=str(HTML))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lines = ["/* Room kept free for every explorer, measured by tests/book/heights.py. */"]
    for key, room in sorted(measure(f"http://127.0.0.1:{server.server_address[1]}").items()):
        values = " ".join(f"--fts-{kind}: {pixels}px;" for kind, pixels in room.items())
        lines.append(f':is(.fts-still, .fts-holder)[data-key="{key}"] {{ {values} }}')
    FILE.write_text("\n".join(lines) + "\n")
    server.shutdown()


if __name__ == "__main__":
    main()
