"""The explorers' JavaScript as text: source files under fts/js joined into a worker script and one ES module.

Every file is an ES module by itself; joined, their imports and exports between each other fall away.
"""

import json
import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "js"
# Joined in this order: a file imports only files before it.
_NUMERICS = (
    *(
        "container",
        "random",
        "matmul",
        "linear",
        "features",
        "chebyshev",
        "splines",
        "series",
        "field",
        "terms",
    ),
    *("weak", "sparse", "svws", "modes", "tasks", "worker"),
)
_FRONT = (
    *("terms", "engine", "palette", "charts", "share", "style", "frame"),
    *("view_selection", "view_path", "view_patches", "view_adapter", "main"),
)


@cache
def numerics() -> str:
    """The worker's script: fields, weak systems, STLSQ and SVWS, without a page."""
    return _join(_NUMERICS)


@cache
def module() -> str:
    """The ES module whose default export renders an explorer; it carries the worker's script as a string."""
    return f"const NUMERICS = {json.dumps(numerics(), ensure_ascii=False)};\n{_join(_FRONT)}"


def _join(names: tuple[str, ...]) -> str:
    return "".join(_plain((_FOLDER / f"{name}.js").read_text(encoding="utf-8")) for name in names)


def _plain(text: str) -> str:
    """The file without imports, named exports and comments, which pages need not carry."""
    text = re.sub(r"^import .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*//.*\n|^\s*/\*\*[\s\S]*?\*/\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export (?!default )", "", text, flags=re.MULTILINE)
