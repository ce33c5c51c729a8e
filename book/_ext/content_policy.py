"""A written page -> the same page under a content security policy: only the build's own scripts run in it.

The explorers' code moves out of the pages into a file, so that no page has to allow scripts from its own
memory; `'self'` is the book's own files, over http and, in Chromium, from disk. The few inline scripts of the
theme are allowed by their hashes. Inside a chapter none is, and the build ends where one stands there.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

Policy = Mapping[str, Sequence[str]]

# Theme, MathJax and explorers write styles into pages; the rest bounds what a style could load.
_BASE = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'", "'unsafe-inline'"],
    "img-src": ["'self'", "data:"],
    "font-src": ["'self'"],
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
}
# The explorers compute in a worker; from disk a browser starts one only from memory. It inherits the policy.
_EXPLORERS = {"worker-src": ["blob:"]}

_META = re.compile(r'\s*<meta http-equiv="Content-Security-Policy"[^>]*>')
_CHARSET = re.compile(r'<meta charset="utf-8" ?/?>')
_SCRIPT = re.compile(r"<script\b([^>]*)>([\s\S]*?)</script>", re.IGNORECASE)
_STATE = re.compile(r'(<script type="application/vnd.jupyter.widget-state\+json">)([\s\S]*?)(</script>)')
_CHAPTER = re.compile(r"<article[\s\S]*</article>")
# Types of scripts that a browser runs.
_RUN = {"", "module", "text/javascript", "application/javascript"}
# What the theme's buttons call in an attribute is called by assets/fts-page.js.
_CALL = re.compile(r'(<[a-z][^<>]*\s)onclick="(?:window\.)?(\w+)\(\)"')
_HANDLER = re.compile(r"<[a-z][^<>]*\s(on[a-z]+)\s*=[^<>]*>", re.IGNORECASE)
_FILE = "fts-explorers-{}.js"
# The module in a function: a page from disk loads scripts, but no modules.
_WRAPPED = (
    '(globalThis[Symbol.for("fts pages")] ??= new Map()).set("{}", (() => {{\n"use strict";\n{}}})());\n'
)


def protect(text: str, static: Path, name: str, more: Policy | None = None) -> str:
    """The page's text with its policy, `more` than the common one; explorers' code goes to `static`."""
    if not _CHARSET.search(text):  # a redirection
        return text
    text, has_explorers = _move_code(_META.sub("", text, count=1), static)
    text = _CALL.sub(r'\1data-call="\2"', text)
    chapter = _CHAPTER.search(text)
    for body, inside in _inline_scripts(text, chapter.span() if chapter else (0, 0)):
        if inside:
            raise ExtensionError(
                f"{name} holds a script, which readers' browsers will not run: {body[:80]!r}"
            )
    if handler := _HANDLER.search(_SCRIPT.sub("", text)):
        raise ExtensionError(
            f"{name} calls a script from an attribute, which will not run: {handler[0][:80]}"
        )
    hashes = dict.fromkeys(_hashed(body) for body, _ in _inline_scripts(text, (0, 0)))
    policy = {directive: list(sources) for directive, sources in _BASE.items()}
    policy["script-src"] += hashes
    for additional in (_EXPLORERS if has_explorers else {}, more or {}):
        for directive, sources in additional.items():
            policy.setdefault(directive, []).extend(sources)
    content = "; ".join(f"{directive} {' '.join(sources)}" for directive, sources in policy.items())
    meta = f'\n    <meta http-equiv="Content-Security-Policy" content="{content}" />'
    return _CHARSET.sub(lambda charset: charset[0] + meta, text, count=1)


def drop_unused_code(html: Path) -> None:
    """Remove explorers' code of earlier builds, which no page names any more."""
    pages = "".join(page.read_text(encoding="utf-8") for page in html.rglob("*.html"))
    for file in (html / "_static").glob(_FILE.format("*")):
        if file.name not in pages:
            file.unlink()


def _inline_scripts(text: str, span: tuple[int, int]) -> list[tuple[str, bool]]:
    """The text of every script that is none of a file's, and whether it stands within the span."""
    scripts = []
    for script in _SCRIPT.finditer(text):
        kind = re.search(r"""\btype=["']?([^"'\s>]*)""", script[1], re.IGNORECASE)
        from_file = re.search(r"(?:^|\s)src\s*=", script[1], re.IGNORECASE)
        if not from_file and (kind[1].lower() if kind else "") in _RUN:
            scripts.append((script[2], span[0] <= script.start() < span[1]))
    return scripts


def _hashed(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _move_code(text: str, static: Path) -> tuple[str, bool]:
    """The page with the names of files in place of the explorers' code, and whether it has explorers."""
    has_explorers = False

    def moved(match: re.Match[str]) -> str:
        nonlocal has_explorers
        stored = json.loads(match[2])
        models: dict[str, Any] = {key: model["state"] for key, model in stored["state"].items()}
        for model in models.values():
            if code := models.get(model.get("code", "")):
                has_explorers = True
                model.pop("_esm", None)  # the way to the code in a notebook
                if "text" in code:
                    code["script"] = _write(code.pop("text"), static)
        return match[1] + json.dumps(stored).replace("<", "\\u003c") + match[3]

    return _STATE.sub(moved, text), has_explorers


def _write(module: str, static: Path) -> str:
    """The name of the script file with this module's code."""
    body, count = re.subn(r"^export default ", "return ", module, flags=re.MULTILINE)
    if count != 1:
        raise ExtensionError(f"the explorers' module has {count} default exports, one is needed")
    name = _FILE.format(hashlib.sha256(body.encode()).hexdigest()[:12])
    (static / name).write_text(_WRAPPED.format(name, body), encoding="utf-8")
    return name
