"""Bad input and bad endings over the whole command line, on the real native module.

Bad input: status 2, one line with the place and the remedy, nothing left behind. Signals: 128 and
their number, and nothing left either. Neither ever shows a traceback.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sardonyx import cli
from sardonyx.files import replaced_together
from sardonyx.runs.results import Results, ResultsError
from test_cli_native import sardonyx

TRACES = Path(__file__).resolve().parents[2] / "traces"
TRACE = str(TRACES / "redis.parquet")
SHORT = ("--designs", "esd", "--limit", "300")
PROGRAM = [sys.executable, "-m", "sardonyx"]


def refused(*arguments: str | bytes, where: Path, words: str) -> None:
    """Status 2, one line with these words, and the directory is as it was."""
    before = {path: path.read_bytes() for path in where.iterdir() if path.is_file()}
    ended = sardonyx(*arguments, where=where, status=2)
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert words in ended.stderr
    assert {path: path.read_bytes() for path in where.iterdir() if path.is_file()} == before
    assert not (where / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", TRACE, *SHORT, "--out", ""], "--out: the name is empty"),
        (["compare", TRACE, *SHORT, "--json", ""], "--json: the name is empty"),
        (["compare", TRACE, *SHORT, "--machine", ""], "machine: its name is empty"),
        (["compare", "", *SHORT], "the trace's name is empty"),
        (["reproduce", "esd", TRACE, "--out", ""], "the name is empty"),
        (["reproduce", "sca", "--quick", "--limit", "5"], "--limit 5"),
        (["report", ""], "the name is empty"),
        (["show", ""], "machine: its name is empty"),
        (["trace", "cut", TRACE, ""], "the name is empty"),
        (["trace", "synth", "rung-60", ""], "the name is empty"),
        (["trace", "record", "-o", "", "--", "true"], "the name is empty"),
        (["trace", "cut", TRACE, "c", "--json", "./c"], "--json ./c: and c are one file"),
        (["trace", "record", "--cores", "-5", "--", "true"], "--cores -5"),
        (["trace", "info", b"no\xff.parquet"], "no\\udcff.parquet: is not UTF-8"),
        (["trace", "info", "y" * 5000], "y: there is no such file"),
        (["compare", "redis", "y" * 5000, "--json", "a.json"], "y: there is no such file"),
        (["trace", "info", "a\n\x1b[31mb"], "a \\x1b[31mb: there is no such file"),
        (["trace", "info", TRACE, "--json", "x" * 300], "--json " + "x" * 300 + ": cannot be"),
        (["compare", TRACE, *SHORT, "--json", "x" * 300], "File name too long"),
        (["compare", TRACE, *SHORT, "--json", "/proc/x"], "--json /proc/x: cannot be written"),
        (["show", "esd", "--set", "core.window=" + "9" * 50_000], "out of range"),
        (
            ["crash", "once", "queue", "-d", "sca", "--transactions", "2", "--cuts", "at:99999999"],
            "the run has positions 0 to",
        ),
        (
            ["crash", "run", "queue", "-d", "sca", "--transactions", "2", "--cuts", str(2**62)],
            "ask for fewer",
        ),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str | bytes], words: str) -> None:
    refused(*arguments, where=tmp_path, words=words)


@pytest.mark.slow
def test_what_is_read_is_never_written_over(tmp_path: Path) -> None:
    shutil.copy(TRACE, tmp_path / "in.parquet")
    (tmp_path / "link.parquet").symlink_to("in.parquet")
    (tmp_path / "hard.parquet").hardlink_to(tmp_path / "in.parquet")
    for target in ("in.parquet", "./in.parquet", "link.parquet", "hard.parquet"):
        words = f"{Path(target)}: is also what is read"
        for command in (
            ["trace", "cut", "in.parquet", target, "--limit", "10"],
            ["trace", "convert", "in.parquet", target, "--to", "nvmain"],
            ["trace", "mix", "in.parquet", str(TRACES / "cc1.parquet"), "-o", target],
            ["trace", "check", "in.parquet", "--json", target],
            ["trace", "info", "in.parquet", "--json", target],
            ["trace", "info", "in.parquet", "--plot", target],
            ["compare", "in.parquet", *SHORT, "--json", target],
        ):
            refused(*command, where=tmp_path, words=words)


def test_links_stay_links_and_pipes_stay_pipes(tmp_path: Path) -> None:
    (tmp_path / "kept.json").touch()
    (tmp_path / "kept.parquet").touch()
    (tmp_path / "to.json").symlink_to("kept.json")
    (tmp_path / "to.parquet").symlink_to("kept.parquet")
    cut = ("trace", "cut", TRACE, "to.parquet", "--limit", "10", "--json", "to.json")
    sardonyx(*cut, where=tmp_path)
    assert (tmp_path / "to.json").is_symlink()
    assert json.loads((tmp_path / "kept.json").read_text())["records"] == 10
    assert (tmp_path / "to.parquet").is_symlink()
    assert (tmp_path / "kept.parquet").read_bytes().startswith(b"PAR1")

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    listener = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    listener.start()
    sardonyx("designs", "--json", "pipe", where=tmp_path)
    listener.join()
    assert json.loads(heard[0])
    assert pipe.is_fifo()
    refused("trace", "cut", TRACE, "pipe", where=tmp_path, words="pipe: is not a regular file")
    refused("report", "pipe", where=tmp_path, words="pipe: is not a regular file")
    assert pipe.is_fifo()


def test_links_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    refused("trace", "info", "loop", where=tmp_path, words="loop")
    refused("trace", "cut", TRACE, "loop", where=tmp_path, words="levels of symbolic links")
    refused("designs", "--json", "loop", where=tmp_path, words="levels of symbolic links")
    assert (tmp_path / "loop").is_symlink()


@pytest.mark.parametrize(
    "name", ["a b.parquet", "[red]x[/blue].parquet", "-x.parquet", ":x:.parquet"]
)
def test_names_are_only_names(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    shutil.copy(TRACE, tmp_path / name)
    sardonyx("trace", "cut", "--limit", "50", "--", name, "cut", where=tmp_path)
    (tmp_path / "cut").replace(tmp_path / name)
    checked = sardonyx("trace", "check", "--", name, where=tmp_path)
    assert checked.stdout == f"{name}: 50 records, sound\n"
    sardonyx("trace", "info", "--", name, where=tmp_path)
    sardonyx("compare", "--designs", "esd", "--", name, where=tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"sardonyx": ' + "9" * 10_000 + "}", "{", "\0"])
def test_json_without_sense_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    refused("report", ".", where=tmp_path, words="results.json")
    with pytest.raises(ResultsError, match=r"results\.json"):
        Results.load(tmp_path)
    (tmp_path / "spec.json").write_text(text)
    refused("trace", "synth", "spec.json", "s.parquet", where=tmp_path, words="spec.json")


def test_results_are_replaced_together_or_not_at_all(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")
    (tmp_path / "c").mkdir()

    def replace(*names: str) -> None:
        with replaced_together(tmp_path) as scratch:
            for name in names:
                (scratch / name).write_text("new")

    with pytest.raises(IsADirectoryError):
        replace("a", "c")
    (tmp_path / "c").rmdir()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old", "b": "old"}
    replace("a")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "new", "b": "old"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["designs"],
        ["show", "esd"],
        ["machines", "--json", "-"],
        ["trace", "info", TRACE, "--limit", "100"],
    ],
)
def test_nobody_has_to_read_the_output(tmp_path: Path, arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*PROGRAM, *arguments], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")
    closed = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *PROGRAM, *arguments],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (closed.returncode, closed.stderr) == (0, b"")
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*PROGRAM, *arguments], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error: ")
    assert ended.stderr.count(b"\n") == 1


def test_what_was_asked_for_is_done_though_nobody_reads(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = ["compare", TRACE, *SHORT, "--json", "out.json"]
    ended = subprocess.run([*PROGRAM, *arguments], cwd=tmp_path, stdout=writer, check=False)
    os.close(writer)
    assert ended.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["runs"]


@pytest.mark.slow  # a cancelled call has 20 s of the clock to end
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("arguments", "sign"),
    [
        (["trace", "synth", "rung-60", "x.parquet", "--records", "2000000000"], ".sardonyx-*.tmp"),
        (["compare", "synth:rung-60:2000000000", *SHORT[:2]], "results"),
    ],
)
def test_a_signal_ends_it_and_leaves_nothing(
    tmp_path: Path, arguments: list[str], sign: str, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [*PROGRAM, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as running:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(sign)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(number)
        said = running.communicate(timeout=600)[1]
    assert running.returncode == 128 + number
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_cannot_be_broken_off_is_not_waited_for(tmp_path: Path) -> None:
    # Its structure alone takes seconds to build.
    arguments = ["crash", "once", "queue", "-d", "sca", "--footprint", "12M", "--jobs", "1"]
    with subprocess.Popen(
        [*PROGRAM, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as running:
        while _threads(running.pid) < 2:
            assert running.poll() is None
            time.sleep(0.02)
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        said = running.communicate()[1]
    assert running.returncode == 130
    lines = said.splitlines()
    assert 0 < len(lines) <= 2
    assert set(lines) <= {  # the first if it can be broken off after all; both if just in time
        "error: interrupted; no output was replaced",
        "error: ended by SIGINT while it worked; no output was left half-written",
    }


def _threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_an_early_interrupt_shows_no_traceback(tmp_path: Path) -> None:
    for delay in (0.05, 0.15, 0.3, 0.5):
        with subprocess.Popen(
            [*PROGRAM, "designs"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            stdout=subprocess.DEVNULL,
        ) as running:
            time.sleep(delay)
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=600)[1]
        assert "sardonyx/cli" not in said, delay


def test_an_interrupt_that_python_wraps_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Python 3.11 raises another error, from it, where it comes while a class is made."""

    def while_a_class_is_made(*_: object, **__: object) -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli.app, "main", while_a_class_is_made)
        patch.setattr(sys, "argv", ["sardonyx", "designs"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.parametrize(("room", "missing"), [(300_000, "report.html"), (60_000, "results.json")])
def test_what_fits_on_a_full_disk_stays(room: int, missing: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("results.json", "report.html"):
        (out / name).write_text("old")

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    command = [*PROGRAM, "compare", "synth:rung-60", "--limit", "300"]
    ended = subprocess.run(
        [*command, "--out", str(out)],
        preexec_fn=little_room, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    said = ended.stderr.splitlines()[-1]
    assert "speed-up" in ended.stdout and "make room" in said
    if missing == "results.json":
        assert said.startswith(f"error: {out / missing}: File too large")
        assert {path.name: path.read_text() for path in out.iterdir()} == {
            "results.json": "old", "report.html": "old",
        }  # fmt: skip
    else:
        assert f"{out}: report.html could not be written" in said
        assert sorted(path.name for path in out.iterdir()) == [
            "origin.json", "results.json", "results.parquet",
        ]  # fmt: skip
        again = subprocess.run([*PROGRAM, "report", str(out)], capture_output=True, check=False)
        assert again.returncode == 0 and (out / "report.html").stat().st_size > room
