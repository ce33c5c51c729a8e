"""What the build puts beside pages that run Python: verified files, or a manifest that says there is none."""

import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path

import fts_live
import pytest


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fts_live.Assets:
    """A cache in which nothing is."""
    assets = fts_live.Assets(tmp_path / "cache")
    monkeypatch.setattr(fts_live, "cached", lambda: assets)
    return assets


def _no_registry(command: list[str], end: float | None) -> None:
    raise fts_live.Unavailable("the registries do not give it")


def test_a_file_other_than_its_lock_names_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "numpy.whl"
    hashes = {hashlib.sha256(b"as it is").hexdigest()}
    with pytest.raises(fts_live.Unavailable, match="is missing"):
        fts_live._verified(path, hashes)
    path.write_bytes(b"as it is")
    assert fts_live._verified(path, hashes) == b"as it is"
    path.write_bytes(b"as it is not")
    with pytest.raises(fts_live.Unavailable, match="is not the file its lock names"):
        fts_live._verified(path, hashes)


def test_a_runtime_with_another_content_is_not_taken(empty: fts_live.Assets) -> None:
    empty.folder.mkdir()
    (empty.folder / "runtime.tgz").write_bytes(b"another")
    assert not empty.complete()


@pytest.mark.parametrize(("arguments", "code"), [(["--try"], 0), ([], 1)])
def test_without_a_registry_only_make_live_fails(
    empty: fts_live.Assets, monkeypatch: pytest.MonkeyPatch, capsys, arguments: list[str], code: int
) -> None:
    monkeypatch.setattr(fts_live, "_call", _no_registry)
    monkeypatch.setattr(sys, "argv", ["fts_live.py", *arguments])
    assert fts_live.main() == code
    assert "make live tries again" in capsys.readouterr().err


def test_a_book_without_python_says_so(empty: fts_live.Assets, tmp_path: Path) -> None:
    (tmp_path / "_live").mkdir()
    (tmp_path / "_live" / "numpy.whl.0.js").write_text("of an earlier build")
    page = tmp_path / "book" / "try.html"
    page.parent.mkdir()
    page.write_text("<p><!-- live licences --><!-- end --></p>")
    fts_live.install(tmp_path)
    assert [path.name for path in (tmp_path / "_live").iterdir()] == ["manifest.js"]
    assert (tmp_path / "_live" / "manifest.js").read_text() == "ftsLive.manifest(null);\n"
    assert "make live" in page.read_text()


def test_pages_run_the_package_that_a_wheel_holds() -> None:
    contents = {lab: zipfile.ZipFile(io.BytesIO(fts_live._package(lab=lab))) for lab in (False, True)}
    public, lab = (set(archive.namelist()) for archive in contents.values())
    assert {"fts/__init__.py", "fts/py.typed", "fts/explorers/js/terms.js"} <= public
    assert not any(name.startswith("fts/lab/") for name in public)
    assert all(name.startswith(("fts/lab/", "fts_lab-")) for name in lab)
    source = contents[False].read("fts/__init__.py")
    assert source == (fts_live.ROOT / "fts" / "__init__.py").read_bytes()
    assert fts_live._package() == fts_live._package(), "the same files give the same bytes"


@pytest.mark.parametrize("page", fts_live.live_chapters())
def test_live_cells_need_neither_torch_nor_records(page: str) -> None:
    cells = json.loads((fts_live.ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]
    live = ["".join(cell["source"]) for cell in cells if "live" in cell["metadata"].get("tags", ())]
    for word in ("import torch", "fts.adapter", "read_study(", "fts.lab.explorers", "fts.explore("):
        assert not [text for text in live if word in text], word
    loaded = sum(text.count("load_field(") for text in live)
    assert bool(fts_live.fields_of(page)) == bool(loaded)
