"""Bad input of every kind to every command: a status, a line or a few, and never a traceback.

Commands and their options are taken from the command line itself (``test_options.FORMS`` has the
least of each), and run in this process. Words of others reach a terminal as text only.
"""

from __future__ import annotations

import faulthandler
import fcntl
import io
import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest
from click.exceptions import ClickException
from sardonyx import cli, layers
from sardonyx.cli.terminal import visible
from test_options import FORMS, asked, commands, folder

TRACES = Path(__file__).resolve().parents[2] / "traces"
__all__ = ["folder"]  # a fixture of every test here
#: Numbers that no option means.
SENSELESS = ("nan", "inf", "-inf", "1e999", "-0", str(2**64), "9" * 400, "0x10", "", "٣")
#: An ESC that sets a terminal's title, C1's CSI, and a word that turns the rest of the line round.
HOSTILE = "a\x1b]0;x\x07b\x9b31mc\u202ed\x7f"
ROOM = 4 << 30


@pytest.fixture(autouse=True)
def bounded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test takes much memory, and none waits for what never comes."""
    monkeypatch.setenv(layers.VARIABLE, "")
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    resource.setrlimit(resource.RLIMIT_AS, before)


def ended(*words: str) -> tuple[int, str, str]:
    """The status of a command line, and what it wrote to both streams; a traceback is an error."""
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as out, io.StringIO() as err:
        patch.setattr(sys, "argv", ["sardonyx", *words])
        with redirect_stdout(out), redirect_stderr(err):
            status = cli._run()
        return status, out.getvalue(), err.getvalue()


def refused(*words: str, statuses: tuple[int, ...] = (2,)) -> str:
    """What is said of bad input: little, and as text."""
    status, said, error = ended(*words)
    line = shlex.join(words)
    assert status in statuses, f"{line}: {status}: {error}"
    assert status != 2 or error.splitlines()[-1].startswith("error: "), f"{line}: {error}"
    assert error.count("\n") <= 3 and len(error) < 1500, f"{line}: {error}"
    assert "Traceback" not in said + error
    return error


def form_without(command: str, option: str) -> list[str]:
    """The least of a command, in a form that does not have this option."""
    forms = [shlex.split(form) for form in FORMS[command]]
    return next((words for words in forms if option not in words), [])


def numbers() -> list[tuple[str, str]]:
    """Every option that takes a number, by its command."""
    return [
        (command, max(param.opts, key=len))
        for command, made in commands().items()
        if hasattr(made, "question")
        for param in made.params
        if {"integer", "number"} & {*_kinds(made.question.get(param.name, {}))}
        and param.param_type_name == "option"
    ]


def _kinds(field: dict[str, Any]) -> list[str]:
    kinds = field.get("type", [])
    return (
        [] if "format" in field and "string" in kinds else [kinds] * isinstance(kinds, str) or kinds
    )


@pytest.mark.parametrize("command", FORMS)
def test_a_number_without_sense_is_refused_by_every_option(command: str) -> None:
    for _, option in (each for each in numbers() if each[0] == command):
        form = form_without(command, option)
        for text in SENSELESS:
            error = refused(*command.split(), f"{option}={text}", *form)
            assert option in error, error


def test_there_are_numbers_and_each_has_bounds() -> None:
    assert len(numbers()) > 60
    for command, option in numbers():
        wanted = option.lstrip("-").replace("-", "_")
        field = commands()[command].question.get(wanted, {"minimum": 0})
        assert "minimum" in field, f"{command} {option}"


#: What could stand for a number in a word: of sizes, shares, limits, windows, brackets.
WORDS = ("nan", "-1", "1e999", str(2**64), "a=nan", "max nan", "1x1e999", "nan%", "1..nan", HOSTILE)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(each, marks=[pytest.mark.slow] if each in ("reproduce", "crash run") else [])
        for each in FORMS
    ],
)
def test_a_word_without_sense_never_ends_in_a_traceback(command: str) -> None:
    """Nothing is run: what would be asked is kept."""
    for param in commands()[command].params:
        option = max(param.opts, key=len)
        if param.param_type_name == "option" and not param.is_flag:
            form = shlex.join(form_without(command, option))
            for word in WORDS:
                with suppress(ClickException):
                    _, error = asked(f"{command} {option}={shlex.quote(word)} {form}")
                    assert error.count("error: ") <= 1 and "\x1b" not in error, error


# ---- files


def special(kind: str) -> str:
    """The name of a file of this kind, here."""
    path = Path(f"bad-{kind}")
    match kind:
        case "missing":
            pass
        case "folder":
            path.mkdir()
        case "empty":
            path.touch()
        case "binary":
            path.write_bytes(bytes(range(256)) * 64)
        case "text":
            path.write_text('{"sardonyx": [}\n[sweep\n')
        case "fifo":
            os.mkfifo(path)
        case "zeros":
            path.symlink_to("/dev/zero")
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
        case "loop":
            path.symlink_to(path)
        case "below":
            Path("plain").touch()
            return "plain/bad-below"
        case "long":
            return "b" * 300
        case "escapes":
            return HOSTILE
    return str(path)


FILES = (
    *("missing", "folder", "empty", "binary", "text", "fifo", "zeros", "socket", "loop", "below"),
    *("long", "escapes"),
)
#: Forms in which a word is a file that is read: the word, by the command.
_IS_READ = re.compile(r"(?!t\.)[\w-]+\.(parquet|json|toml|csv|raw)|r1|d|d/a")
READ = {
    command: next((word for word in shlex.split(form) if _IS_READ.fullmatch(word)), "")
    for command, (form, *_) in FORMS.items()
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_kind_is_a_line_or_a_few(kind: str) -> None:
    name = special(kind)
    tried = 0
    for command, word in READ.items():
        if not word or command == "store serve":
            continue
        if kind == "fifo" and command == "store estimate":
            continue  # it reads pipes, and waits for what is written
        form = [name if each == word else each for each in shlex.split(FORMS[command][0])]
        # An empty folder, file or text is something to a store, an image or a design.
        may = (0, 1, 2, 3) if command.startswith(("store", "merge", "crash-test")) else (2,)
        refused(*command.split(), *form, statuses=may)
        tried += 1
    assert tried > 15


def test_a_signal_ends_what_waits_for_bytes_that_never_come(tmp_path: Path) -> None:
    """Native code that reads a pipe hears of no signal; whoever writes to it may write no more."""
    os.mkfifo(tmp_path / "pipe")
    for number in (signal.SIGINT, signal.SIGTERM):
        with open(os.open(tmp_path / "pipe", os.O_RDWR), "wb", buffering=0) as pipe:
            pipe.write(bytes(100))
            words = [
                "trace",
                "convert",
                "pipe",
                "t.parquet",
                "--from",
                "nvmain",
                "--to",
                "sardonyx",
            ]
            command = [sys.executable, "-m", "sardonyx", *words]
            process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
            while fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) != bytes(4):
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            process.send_signal(number)  # it has read what there was, and waits for more
            _, said = process.communicate(timeout=600)
        assert process.returncode == 128 + number
        assert f"ended by {number.name} while it worked" in said
        assert not (tmp_path / "t.parquet").exists()


# ---- words


@pytest.mark.parametrize("command", FORMS)
def test_a_misspelt_option_is_named(command: str) -> None:
    form = shlex.split(FORMS[command][0])
    for param in commands()[command].params:
        option = max(param.opts, key=len)
        if param.param_type_name == "option" and len(option) > 5 and option != "--help-all":
            wrong = f"{option[:-2]}{option[-1]}{option[-2]}q"
            words = [wrong] if param.is_flag else [f"{wrong}=7"]
            assert wrong in refused(*command.split(), *words, *form)


def test_a_misspelt_command_is_named() -> None:
    for command in FORMS:
        *group, name = command.split()
        error = refused(*group, f"{name[:-1]}qx")
        assert f"{name[:-1]}qx" in error


# ---- what reaches a terminal


def test_no_character_acts() -> None:
    acting = {chr(n) for n in (*range(32), *range(127, 160))} - {"\n", "\t"}
    acting |= set("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\ufeff")
    for each in acting:
        assert visible(f"a{each}b") == f"a{each.encode('unicode_escape').decode()}b"
    for text in ("naïve – 3 µs ×2 †", "日本語", "a\tb\nc", "e\u0301"):
        assert visible(text) == text


def test_words_of_others_reach_a_terminal_as_text(tmp_path: Path) -> None:
    """Each command that shows a name, a figure or an error of a file that somebody else made."""
    shutil.copy(TRACES / "redis.parquet", f"{HOSTILE}.parquet")
    metrics: dict[str, float] = {HOSTILE: 1, "ipc": 2, "writes": 3}
    run = {"trace": HOSTILE, "design": HOSTILE, "metrics": metrics}
    results = {"sardonyx": HOSTILE, "machine": {"name": HOSTILE}, "runs": [run]}
    for name, factor in (("r1", 1), ("r2", 2)):
        metrics["ipc"] = factor
        Path(name, "results.json").write_text(json.dumps(results))
        Path(name, "origin.json").write_text(json.dumps({"command": HOSTILE, "date": HOSTILE}))
    Path("hostile.toml").write_text(
        f'[sweep]\ntraces = [{json.dumps(HOSTILE)}]\ndesigns = ["esd"]\n'
    )
    Path("hostile.ini").write_text(f"[dram_structure]\nprotocol = {HOSTILE}\n[{HOSTILE}]\n")
    Path("hostile.py").write_text(f"raise ValueError({HOSTILE!r})\n")
    Path("hostile.csv").write_text(f"view,event,tag,ps,bytes\n{HOSTILE},asked,1,1,1\n")
    trace = f"{HOSTILE}.parquet"
    for words in (
        ("trace", "info", trace, "--limit", "100"),
        ("trace", "check", trace),
        ("trace", "cut", trace, "t.parquet", "--limit", "10"),
        ("compare", trace, "--designs", "baseline,esd", "--limit", "100"),
        ("compare", HOSTILE),
        ("compare", "redis", "--designs", HOSTILE),
        ("compare", "redis", "--designs", "hostile.py"),
        ("compare", "redis", "--machine", HOSTILE),
        ("compare", "redis", "--machine", "hostile.ini"),
        ("compare", "redis", "--set", f"{HOSTILE}=1"),
        ("report", "r1"),
        ("diff", "r1", "r2"),
        ("cite", "r1"),
        ("sweep", "hostile.toml"),
        ("check-host", "hostile.csv"),
        ("merge", "run", HOSTILE),
        ("store", "check", HOSTILE),
        (HOSTILE,),
        ("compare", f"--{HOSTILE}"),
        ("crash", HOSTILE),
    ):
        _, said, error = ended(*words)
        acting = re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", said + error)
        assert not acting, f"{words}: {said}{error}"
        assert "\\x1b" in said + error or words[0] == "trace", f"{words}: {said}{error}"


def test_everything_for_people_goes_through_one_console() -> None:
    written = re.compile(
        r"(?<![\w.])(?:print|Console)\(|std(?:out|err)\.write|click\.(?:secho|echo)"
    )
    found = {
        (path.name, line.strip())
        for path in Path(str(cli.__file__)).parent.rglob("*.py")
        for line in path.read_text().splitlines()
        if written.search(line)
    }
    assert found == {
        ("help.py", "console = Console(highlight=False, markup=False, emoji=False)"),
        ("common.py", "sys.stdout.write(text)"),  # JSON
        ("__init__.py", 'sys.stderr.write(f"{error.format_message()}\\n")'),  # help
    }


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "redis", "--limit", "300", "--designs", "baseline,esd"),
        ("trace", "info", "redis", "--limit", "300"),
        ("designs",),
        ("show", "esd"),
        ("compare", "--help-all"),
        ("compare", "naïve–×"),
        ("store", "compare", "--bytes", "1M", "--designs", "recam"),
    ],
)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_ascii_is_enough(
    words: tuple[str, ...], encoding: str, tmp_path: Path
) -> None:
    narrow = {"PYTHONIOENCODING": encoding, "COLUMNS": "40", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "sardonyx", *words],
        cwd=tmp_path, env=os.environ | narrow, capture_output=True, check=False,
    )  # fmt: skip
    said = (done.stdout + done.stderr).decode(encoding)
    assert done.returncode == (2 if words[1:] == ("naïve–×",) else 0), said
    assert "Traceback" not in said and "\\u" not in done.stdout.decode(encoding)
