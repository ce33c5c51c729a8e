"""What the book needs beyond Sphinx: a cache that knows the package, MathJax at home, a clean console."""

import hashlib
import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.fileutil import copy_asset

# What is written, and what stands in the page instead.
_MENDED = [
    # The theme's icons as a script of 1.5 MB: its style sheet has the same icons as fonts.
    (re.compile(r"<script[^>]*/fontawesome/[^>]*>\s*</script>"), ""),
    # A heading that heads nothing: a screen reader would stop at it.
    (re.compile(r"<th((?: [^>]*)?)>\s*(?:<p>\s*</p>)?\s*</th>"), r"<td\1></td>"),
    # What scrolls can be reached with the keyboard.
    (re.compile(r'(<div class="pst-scrollable-table-container")>'), r'\1 tabindex="0">'),
    # A division in a list is an item of it, whatever else it is.
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
]
# What tex-chtml.js may ask for later: its fonts and the TeX packages it loads on first use.
_MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", _key_cache_by_package)
    app.connect("html-page-context", _drop_thebe, priority=900)
    app.connect("build-finished", _copy_mathjax)
    app.connect("build-finished", _mend_pages)
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _key_cache_by_package(app: Sphinx, config: Config) -> None:
    """Put a hash of everything a chapter computes with into the cache's path.

    jupyter-cache keys on a notebook's own cells, so an edit to the package would leave stale outputs.
    """
    root = Path(app.srcdir)
    files = [
        *root.glob("fts/**/*.py"),
        *root.glob("fts/**/*.js"),
        *root.glob("assets/*.js"),
    ]
    files += [path for folder in ("fields", "records") for path in root.glob(f"book/{folder}/**/*")]
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    config.nb_execution_cache_path = str(Path(app.outdir).parent / ".jupyter_cache" / digest.hexdigest()[:16])


def _drop_thebe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Leave out the scripts of sphinx-thebe: unused here, added twice, and an error in the console."""
    scripts = context.get("script_files", [])
    scripts[:] = [script for script in scripts if "thebe" not in f"{script}{script.attributes.get('body')}"]


def _mend_pages(app: Sphinx, exception: Exception | None) -> None:
    """Take out of the written pages what the theme and Sphinx should not have put there (`_MENDED`)."""
    if exception is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = mended = page.read_text(encoding="utf-8")
            for pattern, better in _MENDED:
                mended = pattern.sub(better, mended)
            if mended != text:
                page.write_text(mended, encoding="utf-8")
        for script in Path(app.outdir).glob("_static/vendor/fontawesome/*/js/*"):
            script.unlink()


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
