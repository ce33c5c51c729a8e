"""Files that can crash their reader, read in a process of its own, limited in time and memory.

SciPy's reader of MATLAB files runs compiled code on whatever a file says; a flipped byte can end the process.
The child is a fresh interpreter that imports the readers alone and does not run the caller's script; arrays
are handed over as .npy files.
"""

import json
import resource
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from fts.containers import FileError
from fts.io import formats

SECONDS = 60
MEMORY = 3 << 30  # address space: the libraries' own, and a few copies of the largest file that is read
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from fts.io.isolated import main; main(sys.argv[2])"
)


def read(ending: str, path: Path, columns: formats.Columns) -> dict[str, np.ndarray]:
    """What `formats.read_binary` returns, from a child; FileError where it died."""
    if not sys.executable:
        return formats.read_binary(ending, path, columns)
    folders = [str(Path(folder).absolute()) for folder in sys.path]
    with tempfile.TemporaryDirectory(prefix="fts-") as folder:
        task = {"ending": ending, "path": str(path.absolute()), "columns": columns, "folder": folder}
        command = [sys.executable, "-I", "-c", _START, json.dumps(folders), json.dumps(task, default=dict)]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise FileError(
                f"{path.name} takes more than {SECONDS} s to read: save it again, or thin it out"
            ) from None
        answer = _answer(done.stdout)
        if answer is None:
            raise FileError(f"{path.name} is damaged: its reader died ({_cause(done)}); save it again")
        if "refused" in answer:
            raise FileError(answer["refused"])
        for text in answer["warnings"]:
            warnings.warn(text, formats.FileWarning, stacklevel=2)
        return {role: _load(Path(folder), role, role in answer["masked"]) for role in answer["roles"]}


def main(text: str) -> None:
    """The child: reads as it is told, writes .npy files and one line of JSON."""
    task = json.loads(text)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path, folder = Path(task["path"]), Path(task["folder"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            arrays = formats.read_binary(task["ending"], path, task["columns"])
        except OSError as error:
            return _say({"refused": formats.unreadable(path, error)})
        except FileError as error:
            return _say({"refused": str(error)})
    masked = [role for role, values in arrays.items() if np.ma.getmaskarray(values).any()]
    for role, values in arrays.items():
        np.save(folder / f"{role}.npy", np.ma.getdata(values), allow_pickle=False)
        if role in masked:
            np.save(folder / f"{role}-mask.npy", np.ma.getmaskarray(values), allow_pickle=False)
    sentences = [str(entry.message) for entry in caught if entry.category is formats.FileWarning]
    _say({"roles": list(arrays), "masked": masked, "warnings": sentences})


def _say(answer: dict) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")


def _answer(output: bytes) -> dict | None:
    try:
        return json.loads(output.decode().strip().rpartition("\n")[2])
    except ValueError:
        return None


def _cause(done: subprocess.CompletedProcess) -> str:
    """How the child ended: its signal, or the last line it wrote."""
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"code {done.returncode}"]
    return lines[-1][:120]


def _load(folder: Path, role: str, masked: bool) -> np.ndarray:
    values = np.load(folder / f"{role}.npy", allow_pickle=False)
    return np.ma.array(values, mask=np.load(folder / f"{role}-mask.npy")) if masked else values
