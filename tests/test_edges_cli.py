"""The command at its edges: no flag destroys data, ends in a traceback or misleads."""

import contextlib
import html
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fts import cli, containers
from fts.discovery import report
from fts.discovery import systems as discovery

SAMPLES = "x,t,u\n" + "".join(f"{x},{t},{x + t}\n" for x in range(4) for t in range(4))
# One entry for each fit of a test.
FITS = []


class Answer:
    """What `discover` returns, as far as the command prints it."""

    identified = True
    field = "a field"

    def __init__(self, text: str = "identified: û_t = ∂u") -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with the samples a.csv; the fit takes no time and counts its calls."""
    (tmp_path / "a.csv").write_text(SAMPLES)
    monkeypatch.chdir(tmp_path)
    FITS.clear()
    monkeypatch.setattr(discovery, "discover", lambda *_, **__: FITS.append(1) or Answer())
    monkeypatch.setattr(report, "page", lambda _: "<html>")
    return tmp_path


def _run(*words: str) -> int:
    return cli.main(["discover", "a.csv", "--quiet", *words])


def _spellings(folder: Path) -> dict[str, str]:
    (folder / "sub").mkdir()
    (folder / "soft").symlink_to("a.csv")
    (folder / "chain").symlink_to("soft")
    os.link(folder / "a.csv", folder / "hard")
    return {
        "same": "a.csv",
        "relative": "./sub/../a.csv",
        "absolute": str(folder / "a.csv"),
        "slash": "a.csv/",
        "symlink": "soft",
        "chain": "chain",
        "hard link": "hard",
    }


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("option", ["--output", "--report"])
@pytest.mark.parametrize(
    "spelling", ["same", "relative", "absolute", "slash", "symlink", "chain", "hard link"]
)
def test_an_output_that_is_the_input_is_refused(folder, capsys, spelling, option, force):
    name = _spellings(folder)[spelling]
    before = {path.name: path.lstat().st_ino for path in folder.iterdir()}
    assert _run(option, name, *force) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (folder / "a.csv").read_text() == SAMPLES
    assert {path.name: path.lstat().st_ino for path in folder.iterdir()} == before
    assert not FITS


def test_an_output_that_is_the_input_behind_a_symlink_is_refused(folder):
    (folder / "soft.csv").symlink_to("a.csv")
    assert cli.main(["discover", "soft.csv", "--quiet", "--output", "a.csv", "--force"]) == 2
    assert (folder / "a.csv").read_text() == SAMPLES


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize(
    ("output", "page"),
    [("o", "o"), ("o", "./o"), ("o", "soft"), ("soft", "o"), ("dangling", "n"), ("o", "hard")],
)
def test_equal_outputs_are_refused(folder, output, page, force):
    (folder / "o").write_text("old")
    (folder / "soft").symlink_to("o")
    (folder / "dangling").symlink_to("n")
    os.link(folder / "o", folder / "hard")
    assert _run("--output", output, "--report", page, *force) == 2
    assert (folder / "o").read_text() == "old"
    assert not (folder / "n").exists()
    assert not FITS


_SAMPLES = ("a.csv", "hard.csv", "fifo.csv", "device.csv", "sub", "loop.csv", "to-new.csv")
_NAMES = (
    "a.csv",
    "./a.csv",
    "soft.csv",
    "hard.csv",
    "new",
    "old",
    "to-new.csv",
    "to-old",
    "sub",
    "fifo.csv",
    "device.csv",
    "loop.csv",
    "-",
)


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize(
    "samples", ["soft.csv", *(pytest.param(name, marks=pytest.mark.slow) for name in _SAMPLES)]
)
def test_every_pair_of_samples_and_outputs_destroys_nothing(folder, samples, force):
    """Every output with every report: equal, linked, special or absent; what was there stays as it was."""
    for name, target in {
        "soft.csv": "a.csv",
        "to-new.csv": "new",
        "to-old": "old",
        "loop.csv": "loop.csv",
    }.items():
        (folder / name).symlink_to(target)
    (folder / "device.csv").symlink_to("/dev/null")
    (folder / "sub").mkdir()
    os.mkfifo(folder / "fifo.csv")
    os.link(folder / "a.csv", folder / "hard.csv")
    nodes = {path.name: (path.lstat().st_ino, path.lstat().st_mode) for path in folder.iterdir()}
    for output, page in itertools.product(_NAMES, repeat=2):
        (folder / "old").write_text("old")
        (folder / "new").unlink(missing_ok=True)
        words = [
            word for pair in (("--output", output), ("--report", page)) if pair[1] != "-" for word in pair
        ]
        code = cli.main(["discover", samples, "--quiet", *words, *force])
        assert (folder / "a.csv").read_text() == SAMPLES, words
        after = {path.name: (path.lstat().st_ino, path.lstat().st_mode) for path in folder.iterdir()}
        assert {name: after.get(name) for name in nodes} == nodes, words
        written = {name: (folder / name).read_text() for name in ("old", "new") if (folder / name).exists()}
        if code:
            assert written == {"old": "old"}, words
        else:
            assert written["old"] == "old" or force, words
            both = "-" not in (output, page)
            assert sum(text != "old" for text in written.values()) == len(words) // 2, words
            assert not both or len(written) == 2, words


@pytest.mark.parametrize("option", ["--output", "--report"])
@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("name", ["many/1.parquet", "many/new", "many/deep/new", "link/1.parquet", "outside"])
def test_nothing_is_written_into_a_folder_of_samples(folder, capsys, option, force, name):
    (folder / "many" / "deep").mkdir(parents=True)
    (folder / "many" / "1.parquet").write_bytes(b"samples")
    (folder / "link").symlink_to("many")
    (folder / "outside").symlink_to("many/deep/new")
    for samples in ("many", "link", "a.csv"):
        words = [samples] if samples != "a.csv" else [samples, "many"]
        assert cli.main(["discover", *words, "--quiet", option, name, *force]) == 2
        assert f"{option} {name} is in many, a folder of samples" in capsys.readouterr().err.replace(
            "in link,", "in many,"
        )
    assert sorted(path.name for path in (folder / "many").rglob("*")) == ["1.parquet", "deep"]
    assert (folder / "many" / "1.parquet").read_bytes() == b"samples"
    assert not FITS


@pytest.mark.parametrize("option", ["--output", "--report"])
@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "link to fifo", "loop"])
def test_only_regular_files_are_written(folder, option, kind, force):
    target = folder / "special"
    if kind == "folder":
        target.mkdir()
    elif kind == "device":
        target.symlink_to("/dev/null")
    elif kind == "loop":
        target.symlink_to("special")
    else:
        os.mkfifo(folder / "fifo")
        target.symlink_to("fifo")
    name = "fifo" if kind == "fifo" else "special"
    before = (folder / name).lstat()
    assert _run(option, name, *force) == 2
    assert (folder / name).lstat().st_mode == before.st_mode
    assert (folder / name).lstat().st_ino == before.st_ino
    assert not FITS


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_file_is_replaced_only_by_force_and_keeps_its_mode(folder, capsys, option):
    out = folder / "out"
    out.write_text("old")
    out.chmod(0o600)
    assert _run(option, "out") == 2
    assert "--force" in capsys.readouterr().err
    assert out.read_text() == "old"
    assert not FITS
    assert _run(option, "out", "--force") == 0
    assert out.read_text() != "old"
    assert out.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027])
def test_new_files_follow_the_umask(folder, mask):
    old = os.umask(mask)
    try:
        assert _run("--output", "out") == 0
        containers.write_atomic(folder / "b.fts", b"b")
    finally:
        os.umask(old)
    assert {(folder / name).stat().st_mode & 0o777 for name in ("out", "b.fts")} == {0o666 & ~mask}


def test_writing_follows_symlinks_and_refuses_what_is_no_file(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    containers.write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("fifo", "loop"):
        with pytest.raises(OSError, match="not a regular file"):
            containers.write_atomic(tmp_path / name, b"new")
    assert (tmp_path / "fifo").is_fifo()
    assert (tmp_path / "loop").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link", "fifo", "loop"}


def test_a_folder_that_refuses_files_is_noticed_before_the_fit(folder, capsys):
    # Also root cannot write there.
    assert _run("--output", "/proc/out.txt") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not FITS


@pytest.mark.parametrize(("length", "code"), [(240, 0), (255, 0), (256, 2), (5000, 2)])
def test_long_names_are_written_or_refused_in_a_line(folder, capsys, length, code):
    assert _run("--output", "n" * length) == code
    assert capsys.readouterr().err.count("\n") == (code > 0)
    assert len(FITS) == (code == 0)


def test_an_answer_that_cannot_be_written_after_all_is_printed(folder, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(containers, "write_atomic", full)
    assert _run("--output", "out") == 2
    captured = capsys.readouterr()
    assert "identified" in captured.out
    assert "No space left" in captured.err


def test_control_characters_do_not_reach_the_terminal(folder, capsys, monkeypatch):
    assert cli.main(["discover", "\x1b[31mred\u202e\x07.csv", "--quiet"]) == 2
    assert cli.main(["discover", "a.csv", "--quiet", "--columns", "x=\x1b]0;t\x07", "t=t", "u=u"]) == 2
    monkeypatch.setattr(discovery, "discover", lambda *_, **__: Answer("one \x1b[2J\ntwo"))
    assert _run() == 0
    assert _run("--output", "out") == 0
    monkeypatch.setattr(discovery, "discover", lambda *_, **__: [][0] or "\x1b")
    captured = capsys.readouterr()
    text = captured.out + captured.err + (folder / "out").read_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert r"\x1b" in captured.err
    assert "one \\x1b[2J\ntwo" in captured.out


@pytest.mark.parametrize(
    "words",
    [
        ["--axis", "x=0:9", "--axis", "x=0:3"],
        ["--axis", "t=0:9", "--axis", "t=0:9"],
        ["--columns", "x=x", "t=t", "u=u", "x=t"],
        ["--columns", "x=x", "t=t", "u=u", "--columns", "x=t"],
        ["--library", "u", "--library", "u_x"],
        ["--output", "o", "--output", "p"],
        ["--recipe", "kernel", "--recipe", "auto"],
    ],
)
def test_what_is_given_twice_is_refused(folder, capsys, words):
    assert _run(*words) == 2
    assert re.search("once|twice", capsys.readouterr().err)
    assert not FITS
    assert [path.name for path in folder.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    "rows", [SAMPLES[:66], "x,t,u\n" + "".join(f"{x},{t},7\n" for x in range(9) for t in range(9))]
)
def test_a_report_of_samples_that_carry_no_field_gives_the_reason(tmp_path, monkeypatch, capsys, rows):
    """Nothing is fitted: too few samples, or all of them alike."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(rows.rpartition("\n")[0])
    assert _run("--report", "a.html") == 1
    reason = capsys.readouterr().out.splitlines()[-1].removeprefix("- ")
    page = (tmp_path / "a.html").read_text()
    assert "<strong>Not identifiable</strong>" in page
    assert html.escape(reason) in page
    assert "<img" not in page
    assert "default-src 'none'" in page


def test_an_axis_called_periodic_whose_ends_disagree_is_refused(tmp_path, capsys):
    rows = "".join(f"{x / 9},{t},{3 * x / 9 + 0.01 * t}\n" for x in range(10) for t in range(10))
    (tmp_path / "a.csv").write_text("x,t,u\n" + rows)
    assert cli.main(["discover", str(tmp_path / "a.csv"), "--quiet", "--axis", "x=0:1:periodic"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "differ by 3" in line
    assert "not periodic, or leave one end out" in line


def test_help_says_what_is_read(capsys):
    with pytest.raises(SystemExit):
        cli.main(["discover", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for word in (".gz", "ISO dates", "--missing", "-999"):
        assert word in text


# The command in a process of its own, with a fit that takes no time.
_STUB = """
import sys
from fts.discovery import systems
class Answer:
    identified, field = True, None
    def __str__(self): return "identified: \\u00fb_t = \\u2202u" + "\\n- reason" * 20_000
systems.discover = lambda *_, **__: Answer()
from fts.cli import main
sys.exit(main(sys.argv[1:]))
"""


def _process(folder: Path, code: str, *words: str, shell: str = "", **environment: str):
    command = [sys.executable, "-c", code, *words]
    if shell:
        command = ["bash", "-c", f'set -o pipefail; "$@" {shell}', "bash", *command]
    return subprocess.run(command, cwd=folder, capture_output=True, env=os.environ | environment, timeout=120)


def test_an_ascii_terminal_gets_replacements(folder):
    done = _process(folder, _STUB, "discover", "a.csv", "--quiet", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"identified: \xfb_t = \u2202u" in done.stdout


@pytest.mark.parametrize("shell", ["| head -n 1", ">&-", "> /dev/full"])
def test_an_answer_that_nobody_reads_is_one_line(folder, shell):
    done = _process(folder, _STUB, "discover", "a.csv", "--quiet", shell=shell)
    assert done.returncode == 2, done.stderr
    assert (done.stderr.count(b"\n"), done.stderr[:5]) == (1, b"fts: "), done.stderr


@pytest.mark.parametrize("shell", [">&-", "> /dev/full"])
@pytest.mark.parametrize("word", ["problems", "--help", "--version"])
def test_help_that_nobody_reads_is_one_line(folder, shell, word):
    done = _process(folder, "import sys; from fts.cli import main; sys.exit(main())", word, shell=shell)
    assert done.returncode == 2, done.stderr
    assert (done.stderr.count(b"\n"), done.stderr[:5]) == (1, b"fts: "), done.stderr


def test_closed_streams_do_not_end_up_in_files(folder):
    done = _process(folder, _STUB, "discover", "a.csv", "--quiet", "--output", "out", shell="<&- >&- 2>&-")
    assert done.returncode == 0
    assert (folder / "out").read_text().startswith("identified: û_t")
    assert (folder / "a.csv").read_text() == SAMPLES


def test_an_interrupted_import_ends_in_a_line(folder):
    code = """
import sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "numpy":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from fts.cli import main
sys.exit(main(["problems"]))
"""
    done = _process(folder, code)
    assert (done.returncode, done.stderr) == (130, b"fts: interrupted\n")


@pytest.fixture
def interruptible():
    """Interrupts arrive: a shell that runs the tests in the background has them ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_fit_ends_in_a_line(folder, capsys, monkeypatch):
    def interrupted(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(discovery, "discover", interrupted)
    assert _run("--output", "out") == 130
    assert capsys.readouterr().err == "fts: interrupted\n"
    assert [path.name for path in folder.iterdir()] == ["a.csv"]


_WRITER = """
import os, sys
from pathlib import Path
from fts import containers
def wait(*_):
    print("ready", flush=True)
    sys.stdin.read()
os.replace = wait
containers.write_atomic(Path("a.fts"), b"half")
"""


def test_partial_files_of_dead_writers_go_and_nothing_else(tmp_path):
    """Two writers, one of them killed: the next write removes what that one left, and only that."""
    writers = []
    for _ in range(2):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert writer.stdout.readline() == b"ready\n"
        writers.append(writer)
    try:
        partial = {pid: list(tmp_path.glob(f".*{pid}*.partial")) for pid in (w.pid for w in writers)}
        assert [len(paths) for paths in partial.values()] == [1, 1]
        writers[0].kill()
        writers[0].wait()
        dead, living = (partial[writer.pid][0] for writer in writers)
        foreign = [".a.fts.k2j3h4.partial", "a.partial", dead.name + ".bak", "x" + dead.name]
        for name in foreign:
            (tmp_path / name).write_text("mine")
        (tmp_path / dead.name.replace("-", "_")).mkdir()
        linked = tmp_path / re.sub(r"-\w+\.partial", "-abcdef01.partial", dead.name)
        linked.symlink_to("a.partial")
        before = {path.name for path in tmp_path.iterdir()}
        containers.write_atomic(tmp_path / "b.fts", b"whole")
        assert {path.name for path in tmp_path.iterdir()} == before - {dead.name} | {"b.fts"}
        assert living.exists()
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def test_a_hundred_killed_writers_leave_nothing_for_ever(tmp_path):
    names = [f".fts-{pid}-{n:08x}.partial" for n, pid in enumerate(range(4_194_305, 4_194_405))]
    for name in names:  # process ids that no Linux gives
        (tmp_path / name).write_bytes(b"half")
    containers.write_atomic(tmp_path / "b.fts", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["b.fts"]


def test_nobody_else_connects_to_the_workers_of_a_study():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    from fts.lab.studies import workers

    with workers.workers(None, 1) as client:
        assert client.submit(np.square, 3).result() == 9
        address = client.scheduler.address
        ends = [address, *client.scheduler_info(n_workers=-1)["workers"]]
        assert all(end.startswith("tls://127.0.0.1:") for end in ends)
        for end in ends:
            plain = end.replace("tls://", "tcp://")
            with pytest.raises(OSError, match=r"Timed out|closed"):
                distributed.Client(plain, timeout=1)
        # Certificates of another study do not do.
        with pytest.raises(OSError, match=r"certificate|TLS|Timed"):
            distributed.Client(address, timeout=2, security=workers._security())


def test_a_study_listens_for_tls_and_nothing_else():
    """No dashboard, no other service over HTTP: not of the scheduler, not of a worker."""
    pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    import psutil

    from fts.lab.studies import workers

    before = _listening(psutil.Process())
    with workers.workers(None, 1) as client:
        info = client.scheduler_info(n_workers=-1)["workers"]
        ends = [client.scheduler.address, *info, *(worker["nanny"] for worker in info.values())]
        assert all(end.startswith("tls://127.0.0.1:") for end in ends)
        listening = _listening(psutil.Process()) - before
    assert listening == {("127.0.0.1", int(end.rpartition(":")[2])) for end in ends}


def _listening(process: Any) -> set[tuple[str, int]]:
    """Addresses and ports at which a process and its children accept connections."""
    ends = [
        end for entry in (process, *process.children(recursive=True)) for end in entry.net_connections("tcp")
    ]
    return {tuple(end.laddr) for end in ends if end.status == "LISTEN"}


class Lost:
    """A client, and a future, of a scheduler that is gone."""

    def submit(self, *_, **__):
        return self

    def exception(self) -> None:
        return None

    def result(self) -> None:
        from distributed.client import FutureCancelledError

        raise FutureCancelledError("run-1", "scheduler-connection-lost")

    def release(self) -> None:
        pass


def test_a_scheduler_that_dies_ends_the_study_in_a_sentence(tmp_path, monkeypatch, capsys):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    from fts.lab.studies import __main__ as studies

    monkeypatch.setattr(distributed, "as_completed", iter)
    monkeypatch.setattr(studies, "workers", lambda *_: contextlib.nullcontext(Lost()))
    assert studies.main(["main", "--seeds", "1301", "--problem", "ks", "--folder", str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("the Dask scheduler is gone: ")
    assert not list(tmp_path.iterdir())  # no run is recorded as failed


def _wave(folder: Path) -> None:
    """Linear waves on a ring, height and speed, as one file of both and one of the height alone."""
    x, t = (a.ravel() for a in np.meshgrid(np.arange(24) * np.pi / 12, np.linspace(0, 3, 25), indexing="ij"))
    right, left = np.exp(np.cos(x - t)) + 0.3 * np.sin(2 * (x - t)), 0.5 * np.exp(np.sin(2 * (x + t)))
    for name, columns in {
        "two.csv": {"height": right + left, "speed": right - left},
        "right.csv": {"u": right},
        "left.csv": {"u": 0.5 * np.exp(np.sin(2 * (x - t)))},
    }.items():
        rows = np.column_stack([x, t, *columns.values()])
        np.savetxt(folder / name, rows, delimiter=",", header=",".join(["x", "t", *columns]), comments="")


@pytest.fixture
def ring(tmp_path, monkeypatch, capsys):
    """`fts discover` on these waves, as a function from its words to the answer by component."""
    monkeypatch.chdir(tmp_path)
    _wave(tmp_path)

    def answer(*words: str, code: int = 0) -> dict[str, dict]:
        options = ["--axis", f"x=0:{2 * np.pi}:periodic", "--quiet", "--json"]
        assert cli.main(["discover", *words, *options]) == code
        return json.loads(capsys.readouterr().out)["components"]

    return answer


def test_a_component_for_each_column_gives_an_equation_each(ring):
    two = ["two.csv", "--columns", "u=height", "v=speed", "--library", "u_x", "v_x", "u"]
    parts = ring(*two, "--report", "a.html")
    assert {name: list(each["coefficients"]) for name, each in parts.items()} == {"u": ["v_x"], "v": ["u_x"]}
    page = Path("a.html").read_text()
    assert "<h1>u_t = -1.00 v_x</h1>" in page
    assert "<h1>v_t = -1.00 u_x</h1>" in page


@pytest.mark.slow
def test_inputs_experiments_and_other_left_hand_sides_are_asked_for_by_options(ring):
    height = ["two.csv", "--columns", "u=height"]
    (second,) = ring(*height, "--target", "u_tt", "--library", "u_xx", "u").values()
    assert second["equation"].startswith("u_tt = ")
    (alone,) = ring(*height, "--inputs", "speed", "--library", "u_x", "speed_x").values()
    assert list(alone["coefficients"]) == ["speed_x"]
    (runs,) = ring("right.csv", "left.csv", "--library", "u_x", "u_xx", code=1).values()
    assert runs["coefficients"]["u_x"] == pytest.approx(-1, abs=1e-4)
    assert any("only travels" in reason for reason in runs["verdict"]["reasons"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--columns", "u=height", "v=height"], "'height' is given to u, v"),
        (["--columns", "u=height", "v=sped"], "did you mean 'speed'"),
        (["--columns", "u=height", "x_1=speed"], "cannot name a component"),
        (["--columns", "x", "t", "u", "w", "--inputs", "w"], "as u=HEADING v=HEADING"),
        (["--columns", "u=height", "--inputs", "rain"], "no column 'rain'"),
        (["--columns", "u=height", "--target", "u_ttt"], "first or second order in time"),
        (["two.csv", "--columns", "u=height"], "experiment 2 repeats the samples of another"),
        (["right.csv", "--columns", "u=height"], "right.csv has no column 'height'"),
        (["right.csv", "--columns", "u=height", "--output", "right.csv", "--force"], "is a file of samples"),
        (["right.csv", "--report", "link.html", "--force"], "is a file of samples"),
        (["--scheduler", "tcp://127.0.0.1:1"], "two.csv is not read in chunks: leave --scheduler out"),
        (["many", "--columns", "u=height"], "many is read in chunks, which gives one equation in u"),
        (["many"], "many is read in chunks, which gives one equation in u"),
    ],
)
def test_odd_options_of_systems_are_answered_in_a_line(tmp_path, monkeypatch, capsys, words, reason):
    monkeypatch.chdir(tmp_path)
    _wave(tmp_path)
    (tmp_path / "link.html").symlink_to("right.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "many").mkdir()
    assert cli.main(["discover", "two.csv", *words, "--quiet"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    (tmp_path / "many").rmdir()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
