"""What the build does to a page so that only the book's own scripts run in it."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from content_policy import drop_unused_code, protect
from sphinx.errors import ExtensionError

_STATE = {
    "a": {"state": {"code": "b", "_esm": "import(code)", "key": "</script><script>alert(1)</script>"}},
    "b": {"state": {"text": "const render = 1;\nexport default { render };\n"}},
    "c": {"state": {"data": "none"}},
}


def _page(chapter: str = "", head: str = "") -> str:
    return (
        '<html><head><meta charset="utf-8" /><script src="a.js"></script><script>theme()</script>'
        f"{head}</head>"
        f"<body><article>{chapter}</article></body></html>"
    )


def _with_explorers() -> str:
    state = json.dumps({"state": _STATE}).replace("</", "<\\/")
    return _page(head=f'<script type="application/vnd.jupyter.widget-state+json">{state}</script>')


def _policy(text: str) -> dict[str, list[str]]:
    (content,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    return {directive: sources for directive, *sources in map(str.split, content.split(";"))}


def test_the_themes_scripts_are_allowed_by_hash(tmp_path: Path) -> None:
    digest = base64.b64encode(hashlib.sha256(b"theme()").digest()).decode()
    policy = _policy(protect(_page(), tmp_path, "a"))
    assert policy["script-src"] == ["'self'", f"'sha256-{digest}'"]
    assert "worker-src" not in policy


def test_a_page_may_allow_more_than_the_others(tmp_path: Path) -> None:
    more = {"script-src": ["'wasm-unsafe-eval'"], "worker-src": ["blob:"]}
    policy = _policy(protect(_page(), tmp_path, "a", more))
    assert policy["script-src"][-1] == "'wasm-unsafe-eval'"
    assert policy["worker-src"] == ["blob:"]
    assert "'wasm-unsafe-eval'" not in _policy(protect(_page(), tmp_path, "a"))["script-src"]


def test_the_explorers_code_moves_into_a_file(tmp_path: Path) -> None:
    static = tmp_path / "_static"
    static.mkdir()
    text = protect(_with_explorers(), static, "a")
    (file,) = static.iterdir()
    assert "return { render };" in file.read_text()
    assert file.name in file.read_text()
    assert "const render" not in text
    assert "_esm" not in text
    stored = json.loads(re.search(r"widget-state\+json\">(.*?)</script>", text)[1])["state"]
    assert stored["b"]["state"] == {"script": file.name}
    assert stored["a"]["state"]["key"] == _STATE["a"]["state"]["key"]
    assert _policy(text)["worker-src"] == ["blob:"]
    assert protect(text, static, "a") == text  # a page that is not written again
    (tmp_path / "a.html").write_text(text)
    (static / "fts-explorers-0123456789ab.js").write_text("an earlier build's")
    drop_unused_code(tmp_path)
    assert list(static.iterdir()) == [file]


@pytest.mark.parametrize(
    "chapter",
    [
        "<script>alert(1)</script>",
        "<script type='module'>alert(1)</script>",
        '<SCRIPT async type="text/javascript">alert(1)</SCRIPT>',
        "<script data-src='a.js'>alert(1)</script>",
        '<p onclick="alert(1)">',
        "<img src=a.png onerror=alert(1)>",
    ],
)
def test_a_chapter_with_a_script_ends_the_build(tmp_path: Path, chapter: str) -> None:
    with pytest.raises(ExtensionError, match=r"^book/a (holds|calls) a script"):
        protect(_page(chapter), tmp_path, "book/a")


def test_what_only_looks_like_a_script_stays(tmp_path: Path) -> None:
    chapter = (
        '<script type="application/json">{}</script><code>&lt;p onclick="a()"&gt;</code><p title="on time">'
    )
    assert chapter in protect(_page(chapter), tmp_path, "a")


def test_the_themes_buttons_call_by_name(tmp_path: Path) -> None:
    text = protect(_page(head='<button onclick="window.print()"><b onclick="full()">'), tmp_path, "a")
    assert '<button data-call="print"><b data-call="full">' in text
