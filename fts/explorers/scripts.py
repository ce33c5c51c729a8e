"""The explorers' JavaScript as text: source files under js joined into a worker script and one ES module.

Every file is an ES module by itself; joined, their imports and exports between each other fall away.
"""

import base64
import json
import re
from functools import cache
from pathlib import Path

import numpy as np

from fts.params import PAPER

# All of the paper's problems draw their phases from one seed; explorers offer it and those behind it.
SEEDS = range(PAPER["kdv"].svws.phase_seed, PAPER["kdv"].svws.phase_seed + 30)

_FOLDER = Path(__file__).resolve().parent / "js"
# Joined in this order: a file imports only files before it.
_NUMERICS = (
    *("container", "phases", "linear", "splines", "series", "field", "terms"),
    *("weak", "sparse", "svws", "errors", "modes", "tasks", "worker"),
)
_FRONT = (
    *("container", "terms", "engine", "palette", "charts", "share", "style", "frame"),
    *(
        "view_selection",
        "view_path",
        "view_patches",
        "view_proposals",
        "view_adapter",
        "view_scrubber",
        "view_pool",
        "view_sensors",
        "supports",
        "view_noise",
        "main",
    ),
)
# Numbers per seed: up to 24 generation systems, one fit and seven validation systems, on three axes and time.
_DRAWN = (24 + 1 + 7) * 4


@cache
def numerics() -> str:
    """The worker's script: fields, weak systems, STLSQ and SVWS, without a page."""
    return f"const DRAWN = {json.dumps(_drawn())};\n{_join(_NUMERICS)}"


@cache
def module() -> str:
    """The ES module whose default export renders an explorer; it carries the worker's script as a string."""
    return f"const NUMERICS = {json.dumps(numerics(), ensure_ascii=False)};\n{_join(_FRONT)}"


def _drawn() -> dict[str, str]:
    """What NumPy draws for every seed, in base64: 41 KB, so that pages need not know its generator."""
    drawn = {seed: np.random.default_rng(seed).random(_DRAWN).astype("<f8") for seed in SEEDS}
    return {str(seed): base64.b64encode(values.tobytes()).decode() for seed, values in drawn.items()}


def _join(names: tuple[str, ...]) -> str:
    return "".join(_plain((_FOLDER / f"{name}.js").read_text(encoding="utf-8")) for name in names)


def _plain(text: str) -> str:
    """The file without imports, named exports and comments, which pages need not carry."""
    text = re.sub(r"^import .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*//.*\n|^\s*/\*\*[\s\S]*?\*/\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export (?!default )", "", text, flags=re.MULTILINE)
