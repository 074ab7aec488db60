"""Bad input of every kind to every command: a status, a line or a few, and never a traceback.

Commands and their options are taken from the command line itself (``test_options.FORMS`` has the
least of each), and run in this process. Words of others reach a terminal as text only.
"""

from __future__ import annotations

import faulthandler
import io
import os
import re
import resource
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from sardonyx import cli, layers
from sardonyx.cli.terminal import visible
from test_options import FORMS, commands, folder

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
    assert status != 2 or error.startswith("error: "), f"{line}: {error}"
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
        for param in made.params
        if getattr(getattr(param, "type_descriptor", None), "annotation", None) in (int, float)
        and param.param_type_name == "option"
    ]


@pytest.mark.parametrize("command", FORMS)
def test_a_number_without_sense_is_refused_by_every_option(command: str) -> None:
    for _, option in (each for each in numbers() if each[0] == command):
        form = form_without(command, option)
        for text in SENSELESS:
            error = refused(*command.split(), f"{option}={text}", *form)
            assert option in error, error


def test_there_are_numbers_and_each_has_bounds() -> None:
    assert len(numbers()) > 60
    for command, made in commands().items():
        for param in made.params:
            kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
            if kind in (int, float) and param.param_type_name == "option":
                assert param.type_descriptor.parameter_info.min is not None, (
                    f"{command} {param.opts}"
                )


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
_IS_READ = re.compile(r"[\w-]+\.(parquet|json|toml|csv|raw)|r1|d|d/a")
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
        form = [name if each == word else each for each in shlex.split(FORMS[command][0])]
        # An empty folder, file or text is something to a store, an image or a design.
        may = (0, 1, 2, 3) if command.startswith(("store", "merge", "crash-test")) else (2,)
        refused(*command.split(), *form, statuses=may)
        tried += 1
    assert tried > 15


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
