"""What the book needs beyond Sphinx: a cache that knows imports, MathJax at home, pages with a policy."""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import partial
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from docutils import nodes
from fontTools.subset import Subsetter
from fontTools.ttLib import TTFont
from PIL import Image
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.fileutil import copy_asset

from content_policy import drop_unused_code, protect
from fts.lab.layout import needed_by, read_layout

# What is written, and what stands in the page instead.
_MENDED = [
    # The theme's icons as a script of 1.5 MB: its style sheet has the same icons as fonts.
    (re.compile(r"<script[^>]*/fontawesome/[^>]*>\s*</script>"), ""),
    # Fonts are fetched where an icon needs one; from disk, preloading them is an error.
    (re.compile(r'\s*<link rel="preload" as="font"[^>]*>'), ""),
    # Settings of a service that is not used, and a script with them.
    (re.compile(r'<script type="text/x-thebe-config">[\s\S]*?</script>'), ""),
    (re.compile(r"<script>kernelName = [^<]*</script>"), ""),
    # A heading that heads nothing: a screen reader would stop at it.
    (re.compile(r"<th((?: [^>]*)?)>\s*(?:<p>\s*</p>)?\s*</th>"), r"<td\1></td>"),
    # What scrolls can be reached with the keyboard.
    (re.compile(r'(<div class="pst-scrollable-table-container")>'), r'\1 tabindex="0">'),
    # A division in a list is an item of it, whatever else it is.
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
]
# Styles and scripts of blocks that a page may not have, by what its chapter has where it needs them.
_BLOCKS = {
    r"sphinx-design\.min\.css|design-tabs\.js": r'class="sd-',
    r"togglebutton\.(?:css|js)": r'class="[^"]*(?:\btoggle\b|dropdown)',
    r"exercise\.css|proof\.css": r'class="[^"]*(?:exercise|proof|solution)',
    r"mathjax/tex-chtml\.js": r'class="[^"]*\bmath\b',
}
_CHAPTER = re.compile(r"<article[\s\S]*</article>")
_COMMENT = re.compile(r"/\*[\s\S]*?\*/")
_PICTURE = re.compile(r'<img (?=[^>]*src="([^"]*_images/[^"]+\.png)")')
_ICON = re.compile(r"\bfa-([a-z0-9-]+)")
_GLYPH = re.compile(r"\\([ef][0-9a-f]{3})\b")
_RULE = re.compile(r"@font-face\{[^}]*\}|[^{}]+\{[^{}]*\}")
# What a reader sees of a cell that only asserts.
_CHECKED = "✓ checked"
# Where words are defined, a word per entry of a list.
_WORDS = Path("book/notation.md")
_ENTRY = re.compile(r"^([\w ]+)\n: (.+?)[;.]$", re.M)
# Code in a docstring, and what reStructuredText would read as markup.
_CODE = re.compile(r"`([^`]+)`|[*|\\_`]")
# What tex-chtml.js may ask for later: its fonts and the TeX packages it loads on first use.
_MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions")


# What any notebook may compute with besides the package's modules.
_DATA = ("fts/**/*.js", "fts/**/*.css", "assets/*.js", "book/fields/**/*", "book/records/**/*", "*.lock")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-get-outdated", _find_outdated)
    app.connect("source-read", _key_cache)
    app.connect("source-read", _fold_checks)
    app.connect("doctree-resolved", _explain_words)
    app.connect("html-page-context", _drop_thebe, priority=900)
    app.connect("autodoc-process-docstring", _read_as_plain_text)
    app.connect("build-finished", _copy_mathjax)
    app.connect("build-finished", _mend_pages)
    # What single pages allow beyond the common policy: {"book/page": {"connect-src": ["'self'"]}}.
    app.add_config_value("fts_policy", {}, "html", (dict,))
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def notebook_keys(root: Path, names: Iterable[str]) -> dict[str, str]:
    """A hash of everything that each of these notebooks (paths without suffix) computes with."""
    layout = read_layout(root / "fts")
    data = [(path, _content(path)) for pattern in _DATA for path in root.glob(pattern) if path.is_file()]
    modules = {name: (file.path, _content(file.path)) for name, file in layout.files.items()}
    data.append((root / "fts/__init__.py", _content(root / "fts/__init__.py")))
    keys = {}
    for name in names:
        cells = json.loads((root / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        used = sorted([*data, *(modules[module] for module in needed_by(layout, code))])
        lines = [f"{path.relative_to(root).as_posix()} {content}\n" for path, content in used]
        keys[name] = hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
    return keys


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _find_outdated(app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """Pages whose notebook computes with something that changed since they were read."""
    before = getattr(env, "notebook_keys", {})
    names = [name for name in env.found_docs if str(env.doc2path(name)).endswith(".ipynb")]
    env.notebook_keys = notebook_keys(Path(app.srcdir), names)
    return [name for name, key in env.notebook_keys.items() if before.get(name) != key]


def _key_cache(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the notebook's key where the execution cache sees it.

    jupyter-cache hashes the cells and the kernel, so an edit to the package would leave stale outputs.
    """
    if key := app.env.notebook_keys.get(name):
        notebook = json.loads(source[0])
        notebook["metadata"]["kernelspec"]["computes_with"] = key
        source[0] = json.dumps(notebook)


def _fold_checks(app: Sphinx, name: str, source: list[str]) -> None:
    """Fold cells tagged `checked`, which only assert what the prose says, behind a mark that opens them."""
    if str(app.env.doc2path(name)).endswith(".ipynb"):
        notebook = json.loads(source[0])
        for metadata in (cell["metadata"] for cell in notebook["cells"]):
            if "checked" in metadata.get("tags", []):
                metadata["tags"].append("hide-input")
                metadata["mystnb"] = {"code_prompt_show": _CHECKED, "code_prompt_hide": _CHECKED}
        source[0] = json.dumps(notebook)


def _explain_words(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Give the first use of a defined word in a chapter its definition, which shows under the pointer."""
    if not str(app.env.doc2path(name)).endswith(".ipynb"):
        return
    words = dict(_ENTRY.findall((Path(app.srcdir) / _WORDS).read_text(encoding="utf-8")))
    for paragraph in list(doctree.findall(nodes.paragraph)):
        for text in list(paragraph.findall(nodes.Text)):
            if isinstance(text.parent, nodes.paragraph | nodes.strong):
                text.parent.replace(text, _explained(str(text), words))


def _explained(text: str, words: dict[str, str]) -> list[nodes.Node]:
    """The text with its definable words as abbreviations; these leave `words`."""
    parts: list[nodes.Node] = []
    while words and (use := re.search(rf"\b({'|'.join(words)})\b", text)):
        meaning = words.pop(use[0]).replace("$", "")
        parts += [nodes.Text(text[: use.start()]), nodes.abbreviation(use[0], use[0], explanation=meaning)]
        text = text[use.end() :]
    return [*parts, nodes.Text(text)]


def _read_as_plain_text(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Make docstrings, which are plain text with `code` and indented formulas, reStructuredText."""
    text, indented = [], False
    for line in lines:
        formula = line.startswith("    ")
        if formula and not indented and not (text and text[-1]):
            text += ["::", ""]
        indented = formula or (indented and not line)
        text.append(line if formula else _CODE.sub(_escaped, line))
    lines[:] = text


def _escaped(match: re.Match[str]) -> str:
    return f"``{match[1]}``" if match[1] else f"\\{match[0]}"


def _drop_thebe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Leave out the scripts of sphinx-thebe: unused here, added twice, and an error in the console."""
    scripts = context.get("script_files", [])
    scripts[:] = [script for script in scripts if "thebe" not in f"{script}{script.attributes.get('body')}"]


def _mend_pages(app: Sphinx, exception: Exception | None) -> None:
    """Take out of the written pages what the theme and Sphinx should not have put there (`_MENDED`).

    Then each gets its content security policy.
    """
    if exception is None and app.builder.format == "html":
        html = Path(app.outdir)
        for page in html.rglob("*.html"):
            if html / "_static" in page.parents:
                continue
            text = mended = page.read_text(encoding="utf-8")
            for pattern, better in _MENDED:
                mended = pattern.sub(better, mended)
            mended = _PICTURE.sub(partial(_sized, page.parent), mended)
            mended = _without_unused(mended)
            name = page.relative_to(html).with_suffix("").as_posix()
            mended = protect(mended, html / "_static", name, app.config.fts_policy.get(name))
            if mended != text:
                page.write_text(mended, encoding="utf-8")
        drop_unused_code(html)
        for script in html.glob("_static/vendor/fontawesome/*/js/*"):
            script.unlink()
        _keep_icons_in_use(html)
        for sheet in html.glob("_static/*.css"):
            text = _COMMENT.sub("", sheet.read_text(encoding="utf-8"))
            sheet.write_text(re.sub(r"\n\s*", "\n", text), encoding="utf-8")


def _without_unused(text: str) -> str:
    """The page without styles and scripts of blocks that it does not have."""
    chapter = _CHAPTER.search(text)
    for files, needed_by_block in _BLOCKS.items():
        if not re.search(needed_by_block, chapter[0] if chapter else ""):
            text = re.sub(rf"\s*<(?:link|script)[^>]*/(?:{files})[^>]*>(?:</script>)?", "", text)
    return text


def _sized(folder: Path, picture: re.Match[str]) -> str:
    """A picture that is fetched when it nears the screen, with its size: it keeps its room until then."""
    with Image.open(folder / picture[1]) as image:
        width, height = image.size
    return f'<img loading="lazy" width="{width}" height="{height}" '


def _keep_icons_in_use(html: Path) -> None:
    """Cut the font and the style sheet of icons down to those that pages, scripts and styles name."""
    (sheet,) = html.glob("_static/vendor/fontawesome/*/css/all.min.css")
    texts = [
        path.read_text(encoding="utf-8", errors="ignore")
        for path in html.rglob("*.*")
        if path.suffix in (".html", ".js", ".css") and path != sheet
    ]
    names = {name for text in texts for name in _ICON.findall(text)}
    glyphs = {glyph for text in texts for glyph in _GLYPH.findall(text)}
    kept = []
    for rule in _RULE.findall(sheet.read_text(encoding="utf-8")):
        shown = _GLYPH.findall(rule)
        if rule.startswith("@font-face"):
            if "6 Free" in rule and "font-weight:900" in rule:
                kept.append(
                    re.sub(r"src:[^;}]*", 'src:url(../webfonts/fa-solid-900.woff) format("woff")', rule)
                )
        elif not shown or names & {*_ICON.findall(rule)}:
            kept.append(rule)
            glyphs.update(shown)
    sheet.write_text("".join(kept), encoding="utf-8")
    fonts = sheet.parents[1] / "webfonts"
    font = TTFont(fonts / "fa-solid-900.ttf")
    subsetter = Subsetter()
    subsetter.populate(unicodes=[int(glyph, 16) for glyph in glyphs])
    subsetter.subset(font)
    font.flavor = "woff"
    font.save(fonts / "fa-solid-900.woff")
    for unused in (*fonts.glob("*.ttf"), *fonts.glob("*.woff2")):
        unused.unlink()


def _copy_mathjax(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        package = distribution("sphinx-mathjax-offline")
        source = Path(str(package.locate_file("sphinx-mathjax-offline/static/mathjax")))
        for part in _MATHJAX:
            target = Path(app.outdir) / "_static" / "mathjax" / part
            copy_asset(
                str(source / part),
                str(target.parent if (source / part).is_file() else target),
            )
