"""The commands as functions: each takes what its command takes, checks it, and gives an answer.

A function is made of what Rust declares when it is first used; ``__init__.pyi`` tells type checkers
of all of them. ``known`` leads to what answers.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx.answer import Answer
    from sardonyx.runs.results import Results

#: Commands whose functions have a shorter name too.
SHORT = {
    "crash": "crash_run",
    "crash_test": "crash_test_search",
    "estimate": "store_estimate",
    "store": "store_compare",
}
#: ESD (HPCA'23) and the designs that it was compared with.
DESIGNS = ("baseline", "dedup-sha1", "dewrite", "esd")


def synth(name: str, records: int | None = None, seed: int | None = None) -> str:
    """The name under which ``compare`` takes a generated trace of the locality ladder."""
    from sardonyx._core import SardonyxError

    if seed is not None and records is None:
        raise SardonyxError("seed: needs a number of records too; give records=..")
    parts = [name, *(str(part) for part in (records, seed) if part is not None)]
    return "synth:" + ":".join(parts)


def load(path: str | os.PathLike[str]) -> Results:
    """The results that ``compare`` with ``out`` or ``Results.save`` have written."""
    from sardonyx.runs.results import Results

    return Results.load(path)


def record(*program: str | os.PathLike[str], **options: Any) -> Answer:
    """Record a program: ``record("sqlite3", "a.db", ".tables", output="a.parquet")``."""
    return call("trace record", *program, **options)


def crash_files(*program: str | os.PathLike[str], **options: Any) -> Answer:
    """Cut a program that writes files.

    ``crash_files("./app", "run", files="data", recover="./app check {dir}")``
    """
    return call("crash-test files", *program, **options)


def call(command: str, *words: Any, **options: Any) -> Any:
    """Run a command, as in ``call("crash stages", "btree", designs="sca")``."""
    from sardonyx.api import command as commands

    return commands.call(command, *words, **options)


def __getattr__(name: str) -> Any:
    from sardonyx.answer import Answer, Listed
    from sardonyx.api.command import function_of
    from sardonyx.known import COMMANDS

    name = SHORT.get(name, name)
    commands = {command.replace(" ", "_").replace("-", "_"): command for command in COMMANDS}
    if name in ("Answer", "Listed"):
        return {"Answer": Answer, "Listed": Listed}[name]
    if name not in commands:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, function_of(commands[name]))


def __dir__() -> list[str]:
    from sardonyx.known import COMMANDS

    return [command.replace(" ", "_").replace("-", "_") for command in COMMANDS] + [*globals()]
