"""The present environment -> lock files: every package, its version, and the hashes its index lists.

`pip freeze --all | python .ci/lock.py > requirements.lock` takes all but torch; `python .ci/lock.py torch`
writes torch.lock, its CPU build, and torch-cuda.lock, the index's build with the libraries that it needs. An
installation then takes these files or none. All files of a version count, not only the one installed here, so
that the locks serve other systems and Pythons; torch's CPU build is locked for one.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urljoin

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version
from pip._internal.models.index import PyPI
from pip._internal.network.lazy_wheel import dist_from_wheel_url
from pip._internal.network.session import PipSession

_LEFT_OUT = ("pip", "torch", "fts")
_LINK = re.compile(r'<a [^>]*href="([^"#]*)#sha256=([0-9a-f]{64})"[^>]*>([^<]+)</a>')
# What cannot be installed with the Pythons this package asks for.
_OLD = re.compile(r"cp(2\d|3\d|310)|pp\d+|graalpy\d+")
# The platform of the GPU runner: only there does torch bring CUDA libraries.
_GPU = "manylinux", "x86_64"


def main() -> None:
    if sys.argv[1:] == ["torch"]:
        pinned = f"torch=={Version(version('torch')).public}"
        Path("torch.lock").write_text(_lines(pinned, _downloaded(pinned)))
        Path("torch-cuda.lock").write_text(_locked([pinned, *sorted(_cuda_pins(pinned))]))
        return
    lines = [line for line in sys.stdin.read().split("\n") if "==" in line and "@" not in line]
    pins = [line.partition("+")[0] for line in lines]
    sys.stdout.write(_locked([pin for pin in pins if _name(pin) not in _LEFT_OUT]))


def _locked(pins: Iterable[str]) -> str:
    """Lines for `pip install --require-hashes`."""
    pins = list(pins)
    with ThreadPoolExecutor(8) as pool:
        digests = pool.map(lambda pin: {digest for _, digest in _files(pin).values()}, pins)
    return "".join(_lines(pin, listed) for pin, listed in zip(pins, digests, strict=True))


def _lines(pin: str, digests: set[str]) -> str:
    if not digests:
        raise SystemExit(f"{pin} is not in the index: install a version that is")
    return " \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in sorted(digests))]) + "\n"


def _downloaded(pin: str) -> set[str]:
    """Hashes of the CPU build, which this machine's pip takes and the index does not list."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, pin]
        subprocess.run(command, check=True)
        return {hashlib.sha256(file.read_bytes()).hexdigest() for file in Path(folder).iterdir()}


def _cuda_pins(pin: str) -> set[str]:
    """What the index's build of torch needs on a GPU machine beyond requirements.lock, all of it."""
    pins: dict[str, str] = {}
    waiting = [each for each in _needs(pin) if re.match(r"nvidia|cuda|triton", each.name)]
    while waiting:
        # What somebody pins comes first: others ask for the same library in any version.
        needed = waiting.pop(max(range(len(waiting)), key=lambda i: "==" in str(waiting[i].specifier)))
        name = canonicalize_name(needed.name)
        if name not in pins:
            pins[name] = f"{name}=={_newest(needed)}"
        waiting += [
            each for each in _needs(pins[name], needed.extras) if canonicalize_name(each.name) not in pins
        ]
    return set(pins.values())


def _needs(pin: str, extras: Iterable[str] = ()) -> list[Requirement]:
    """The requirements that the metadata of the pinned version lists for a GPU machine."""
    href = next(
        href
        for file, (href, _) in sorted(_files(pin).items())
        if file.endswith(".whl") and (all(part in file for part in _GPU) or file.endswith("-any.whl"))
    )
    # Read by parts: these wheels have hundreds of megabytes.
    wheel = dist_from_wheel_url(_name(pin), href, PipSession())
    listed = [Requirement(line) for line in wheel.metadata.get_all("Requires-Dist", [])]
    machine = {"platform_system": "Linux", "sys_platform": "linux", "platform_machine": "x86_64"}
    kept = []
    for each in listed:
        choices = [machine | {"extra": extra} for extra in (*extras, "")]
        if each.marker is None or any(each.marker.evaluate(choice) for choice in choices):
            kept.append(each)
    return kept


def _newest(needed: Requirement) -> Version:
    versions = {_version_of(file) for file, _, _ in _listed(needed.name)} - {None}
    return max(each for each in versions if each is not None and needed.specifier.contains(each))


def _files(pin: str) -> dict[str, tuple[str, str]]:
    """Address and hash by name of the files of a pinned version that serve this package's Pythons."""
    name, pinned = pin.split("==")
    return {file: (href, digest) for file, href, digest in _listed(name) if _serves(file, Version(pinned))}


def _listed(name: str) -> list[tuple[str, str, str]]:
    page = f"{PyPI.simple_url}/{canonicalize_name(name)}/"
    with urllib.request.urlopen(page, timeout=180) as answer:
        links = _LINK.findall(answer.read().decode())
    return [(unescape(file), urljoin(page, href), digest) for href, digest, file in links]


def _name(pin: str) -> str:
    return canonicalize_name(pin.split("==")[0])


def _serves(file: str, wanted: Version) -> bool:
    if file.endswith(".whl"):
        _, found, _, tags = parse_wheel_filename(file)
        usable = any(tag.abi == "abi3" or not _OLD.fullmatch(tag.interpreter) for tag in tags)
        return found == wanted and usable
    return _version_of(file) == wanted


def _version_of(file: str) -> Version | None:
    try:
        if file.endswith(".whl"):
            return parse_wheel_filename(file)[1]
        return parse_sdist_filename(file)[1] if file.endswith((".tar.gz", ".zip")) else None
    except ValueError:
        return None  # a name of the time before there was a rule for them


if __name__ == "__main__":
    main()
