"""The present environment -> requirements.lock: every package, its version, and the hashes its index lists.

`pip freeze --all | python .ci/lock.py > requirements.lock`. An installation then takes these files or none.
All files of a version count, not only the one installed here, so that the lock serves other systems and
Pythons. torch is left out: its builds for one machine or another come with libraries of their own, which
would all have to be listed; torch.lock names its version.
"""

import re
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from html import unescape

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version
from pip._internal.models.index import PyPI

_LEFT_OUT = ("pip", "torch", "fts")
_LINK = re.compile(r'<a [^>]*href="[^"#]*#sha256=([0-9a-f]{64})"[^>]*>([^<]+)</a>')
# What cannot be installed with the Pythons this package asks for.
_OLD = re.compile(r"cp(2\d|3\d|310)|pp\d+|graalpy\d+")


def main() -> None:
    lines = [line for line in sys.stdin.read().split("\n") if "==" in line and "@" not in line]
    pins = [line.partition("+")[0].split("==") for line in lines]
    wanted = [(name, version) for name, version in pins if canonicalize_name(name) not in _LEFT_OUT]
    with ThreadPoolExecutor(8) as several:
        found = several.map(lambda pin: _hashes(*pin), wanted)
    for (name, version), hashes in zip(wanted, found, strict=True):
        if not hashes:
            raise SystemExit(f"{name}=={version} is not in the index: install a version that is")
        sys.stdout.write(
            " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{one}" for one in hashes)]) + "\n"
        )


def _hashes(name: str, version: str) -> list[str]:
    with urllib.request.urlopen(f"{PyPI.simple_url}/{canonicalize_name(name)}/", timeout=180) as page:
        links = _LINK.findall(page.read().decode())
    return sorted({digest for digest, file in links if _serves(unescape(file), Version(version))})


def _serves(file: str, version: Version) -> bool:
    if file.endswith(".whl"):
        _, found, _, tags = parse_wheel_filename(file)
        usable = any(tag.abi == "abi3" or not _OLD.fullmatch(tag.interpreter) for tag in tags)
        return found == version and usable
    if file.endswith((".tar.gz", ".zip")):
        try:
            return parse_sdist_filename(file)[1] == version
        except ValueError:
            return False  # a name of the time before there was a rule for them
    return False


if __name__ == "__main__":
    main()
