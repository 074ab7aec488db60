"""The commands as functions: each takes what its command takes, checks it, and gives an answer.

A function is made of what Rust declares when it is first used; ``__init__.pyi`` tells type checkers
of all of them. ``known`` leads to what answers.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx.runs.results import Results

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


def __getattr__(name: str) -> Any:
    from sardonyx.answer import Answer, Listed
    from sardonyx.api.command import function_of
    from sardonyx.known import COMMANDS

    commands = {command.replace(" ", "_").replace("-", "_"): command for command in COMMANDS}
    if name in ("Answer", "Listed"):
        return {"Answer": Answer, "Listed": Listed}[name]
    if name not in commands:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, function_of(commands[name]))


def __dir__() -> list[str]:
    from sardonyx.known import COMMANDS

    return [command.replace(" ", "_").replace("-", "_") for command in COMMANDS] + [*globals()]
