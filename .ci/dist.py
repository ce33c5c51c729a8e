"""A checkout -> wheel and source archive in a folder, byte for byte the same from the same sources.

`python .ci/dist.py dist`; times in the archives are SOURCE_DATE_EPOCH, or the start of 2026.
"""

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_SOURCES = ("fts", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
_START = "1767225600"
# setuptools writes to sys.argv.
_BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]
build_meta.build_sdist(folder)
build_meta.build_wheel(folder)
"""


def main(folder: Path) -> None:
    """Builds both from a copy: setuptools leaves folders of its own beside the sources."""
    folder.mkdir(parents=True, exist_ok=True)
    epoch = os.environ.get("SOURCE_DATE_EPOCH", _START)
    with tempfile.TemporaryDirectory() as scratch:
        sources, made = Path(scratch) / "sources", Path(scratch) / "made"
        made.mkdir()
        for name in _SOURCES:
            _copy(_ROOT / name, sources / name)
        environment = os.environ | {"SOURCE_DATE_EPOCH": epoch}
        command = [sys.executable, "-W", "ignore", "-c", _BUILD, str(made)]
        subprocess.run(command, cwd=sources, env=environment, check=True, capture_output=True)
        for path in made.iterdir():
            data = path.read_bytes()
            (folder / path.name).write_bytes(_normal(data, int(epoch)) if path.suffix == ".gz" else data)


def _copy(source: Path, target: Path) -> None:
    """Files as git keeps them: one mode, no compiled code."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o644)
        return
    for path in source.iterdir():
        if path.name != "__pycache__":
            _copy(path, target / path.name)


def _normal(archive: bytes, epoch: int) -> bytes:
    """The same members in alphabetical order, without times, owners and modes of this machine."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=epoch) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            content = old.extractfile(member) if member.isfile() else None
            member.mtime, member.mode = epoch, 0o644 if member.isfile() else 0o755
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            new.addfile(member, content)
    return packed.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
