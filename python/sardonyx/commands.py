"""The commands of the command line as functions: the same words, checks and figures.

A function takes what its command takes: arguments by position, options by name with ``_`` for
``-``. An option of ``None`` is left out, ``True`` is a flag, ``False`` its opposite; a list is
several values, a mapping ``KEY=VALUE`` pairs. It gives the document that ``--json`` writes, and
raises ``SardonyxError`` where the command line would end with status 2.

A command that is not made of its question yet (``known``) is a process of its own. It has the
designs that are in files; of one that the main program or a notebook defines there is an error.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from sardonyx import _core, layers
from sardonyx._core import SardonyxError
from sardonyx.api.command import Answer
from sardonyx.api.known import COMMANDS
from sardonyx.arguments import named
from sardonyx.runs.results import Results

#: A file, a folder, a recording by name, results, or another word of a command.
Word: TypeAlias = str | os.PathLike[str] | Results
Ended: TypeAlias = subprocess.CompletedProcess[str]
#: Statuses of commands that have done their work: it held, a check failed, nothing can be said.
DONE = (0, 1, 3)


class Printed(Answer):
    """The answer of a command that ran as a process, which printed its table."""

    def __init__(self, command: str, document: Mapping[str, Any], ended: Ended) -> None:
        lines = ended.stderr.splitlines()
        notes = [line for line in lines if line.startswith(("note: ", "warning: "))]
        super().__init__(command, document, ended.returncode, notes)
        self._said = ended.stdout

    def table(self, width: int = 100) -> str:
        return self._said


def call(command: str, *arguments: Word, **options: Any) -> Answer:
    """Run a command, as in ``call("crash stages", "btree", designs="sca")``."""
    if command in COMMANDS:
        return _asked(command, arguments, options)
    known = _parameters(command)
    words = command.split()
    for name, value in options.items():
        words += _option(command, known, name, value)
    with TemporaryDirectory(prefix="sardonyx.") as scratch:
        target = Path(scratch) / "answer.json"
        if "json_to" in known:
            words += ["--json", str(target)]
        words.append("--")
        for number, word in enumerate(arguments):
            words.append(_word(command, word, Path(scratch, f"{number}.json")))
        ended = subprocess.run(
            [sys.executable, "-m", "sardonyx", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        found: Any = json.loads(target.read_text()) if target.exists() else {}
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    if ended.returncode not in DONE or (errors and not found):
        said = errors[-1].removeprefix("error: ") if errors else ended.stderr.strip()
        raise SardonyxError(said or f"{command}: ended with status {ended.returncode}")
    document = found if isinstance(found, dict) else {"list": found}
    return Printed(command, document, ended)


def _asked(command: str, words: Sequence[Word], options: Mapping[str, Any]) -> Answer:
    """The answer of a command that runs here; its last argument takes the words that are left."""
    from sardonyx import api

    schema = json.loads(_core.command(command))
    fields = schema["properties"]
    *before, last = [name for name in schema["order"] if "argument" in fields[name]] or [""]
    given: list[Any] = list(words)
    if last and "array" in fields[last]["type"]:
        given[len(before) :] = [given[len(before) :]]
    answer: Answer = getattr(api, command.replace(" ", "_").replace("-", "_"))(*given, **options)
    return answer


def _word(command: str, word: object, file: Path) -> str:
    """An argument as the command line has it; results are written to the file."""
    if isinstance(word, Results):
        word.save(file)
        return str(file)
    if isinstance(word, str | os.PathLike):
        return os.fspath(word)
    raise SardonyxError(f"{command}: an argument is of {type(word)}; give a string or a path")


@lru_cache
def _parameters(command: str) -> dict[str, Any]:
    """The options of a command by their names in Python."""
    import typer.main
    from typer import Context

    from sardonyx.cli import app

    found: Any = typer.main.get_command(app)
    for word in command.split():
        names = found.list_commands(Context(found)) if hasattr(found, "list_commands") else []
        if word not in names:
            raise SardonyxError(f"{command}: there is no such command{_near(word, names)}")
        found = found.get_command(Context(found), word)
    return {_named(param): param for param in found.params if param.opts[0].startswith("-")} | {
        param.name: param for param in found.params if param.name == "json_to"
    }


def _named(param: Any) -> str:
    longest: str = max(param.opts, key=len)
    return longest.lstrip("-").replace("-", "_")


def _near(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else f"; known: {', '.join(sorted(known))}"


def _option(command: str, known: Mapping[str, Any], name: str, value: Any) -> list[str]:
    param = known.get(name.rstrip("_"))  # `set_` and the like
    if param is None or param.name == "json_to":
        options = [each for each in known if each != "json_to"]
        raise SardonyxError(
            f"{name}: `sardonyx {command}` has no such option{_near(name, options)}"
        )
    if value is None:
        return []
    if param.name in ("design", "designs"):
        given = value if isinstance(value, list | tuple | set) else [value]
        layers.check_elsewhere(name for one in given for name in _text(one).split(","))
    option = max(param.opts, key=len)
    if isinstance(value, bool):
        if value:
            return [option]
        return [max(param.secondary_opts, key=len)] if param.secondary_opts else []
    if isinstance(value, Mapping):
        return [word for key, one in value.items() for word in (option, f"{key}={_text(one)}")]
    if isinstance(value, list | tuple | set):
        if param.multiple:
            return [word for one in value for word in (option, _text(one))]
        return [option, ",".join(map(_text, value))]
    return [option, _text(value)]


def _text(value: Any) -> str:
    value = named(value)
    if isinstance(value, bool):
        return str(value).lower()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def record(*program: Word, **options: Any) -> Answer:
    """Record a program: ``record("sqlite3", "a.db", ".tables", output="a.parquet")``."""
    return call("trace record", *program, **options)


def trace_info(trace: Word, **options: Any) -> Answer:
    """What is in a trace: ``trace_info("redis")["writes"]``."""
    return call("trace info", trace, **options)


def curve(machine: str, **options: Any) -> Answer:
    """A memory's latency against its bandwidth: ``curve("ddr4-2400")``."""
    return call("curve", machine=machine, **options)


def crash(program: str = "all", **options: Any) -> Answer:
    """Cut the power under designs: ``crash("btree", designs=["sca", "no-atomicity"])``."""
    return call("crash run", program, **options)


def crash_test(recording: Word, pool: Any, recover: str, **options: Any) -> Answer:
    """Cut a recorded program: ``crash_test("app.parquet", "data.pool", "app-check {pool}")``."""
    return call("crash-test search", recording, pool=pool, recover=recover, **options)


def crash_files(*program: Word, files: Word, recover: str, **options: Any) -> Answer:
    """Cut a program that writes files.

    ``crash_files("./app", "run", files="data", recover="./app check {dir}")``
    """
    return call("crash-test files", *program, files=files, recover=recover, **options)


def store(**options: Any) -> Answer:
    """Deduplicating stores beside each other: ``store(block="8K", bytes="1G")``."""
    return call("store compare", **options)


def estimate(path: Word, **options: Any) -> Answer:
    """What deduplication would save: ``estimate("/usr/share", block="4K")``."""
    return call("store estimate", path, **options)


def reproduce(paper: str, **options: Any) -> Answer:
    """A paper's claims beside our figures: ``reproduce("esd", quick=True)``."""
    return call("reproduce", paper, **options)


def diff(before: Word, after: Word, **options: Any) -> Answer:
    """Two results, by their folders or as ``compare`` gives them: ``diff("results/a", mine)``."""
    return call("diff", before, after, **options)


def show(machine: Word = "esd", **options: Any) -> Answer:
    """A machine's effective configuration: ``show("sca", set={"cores": 2})``."""
    return call("show", machine, **options)


def recordings() -> Answer:
    """The recordings that come with the program, by name."""
    return call("recordings")
