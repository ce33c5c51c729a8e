"""What holds for every test: shapes are checked, floating-point errors raise, one thread per process."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # read once, when NumPy and torch load
os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

from pathlib import Path  # noqa: E402

from beartype import BeartypeConf  # noqa: E402
from beartype.claw import beartype_package  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent

# Before any test imports fts: from here on every annotated signature of the package is checked at each call.
# Shapes are checked in the modules that state them: it costs far more than checking plain types.
# The command names types that it imports late.
beartype_package("fts", conf=BeartypeConf(claw_is_pep526=False, claw_skip_package_names=("fts.cli",)))
SHAPED = [path for path in (ROOT / "fts").rglob("*.py") if "from jaxtyping import" in path.read_text()]
SHAPED = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in SHAPED]
install_import_hook(SHAPED, "beartype.beartype")

from collections.abc import Iterator  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(autouse=True)
def _floating_point_errors_raise() -> Iterator[None]:
    with np.errstate(all="raise", under="ignore"):
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return ROOT


@pytest.fixture
def rng() -> np.random.Generator:
    """The same draws in every run of a test."""
    return np.random.default_rng(20270)
