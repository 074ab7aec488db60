"""What each command is asked, whole: made of what Rust declares (few: ``saved``), no source here.

Type checkers read ``asked.pyi``, which has a class for each command; at run time they are one.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sardonyx import _core
from sardonyx.api.saved import QUESTIONS, completed


class Asked(SimpleNamespace):
    """The whole question of a command: its fields by their names in Rust."""

    command: str

    def json(self) -> str:
        """It as the native module reads it."""
        given = {name: value for name, value in vars(self).items() if name != "command"}
        return json.dumps(given, default=str)

    def replace(self, **changes: Any) -> Asked:
        """The question with some fields changed."""
        return Asked(**{**vars(self), **changes})


def __getattr__(name: str) -> type[Asked]:
    if name.startswith("_"):
        raise AttributeError(name)
    return Asked


@cache
def schema_of(command: str) -> dict[str, Any]:
    """What is declared of a command: ``properties``, whose ``order`` is beside them."""
    if command in QUESTIONS:
        return QUESTIONS[command]
    schema: dict[str, Any] = json.loads(_core.command(command))
    return schema


def whole(command: str, given: str) -> Asked:
    """The question, checked and completed; ``SardonyxError`` says what of it cannot be asked."""
    fields = schema_of(command)["properties"]
    here = command in QUESTIONS
    document = completed(command, given) if here else json.loads(_core.asked(command, given))
    held = {name: _held(value, fields[name]) for name, value in document.items()}
    return Asked(command=command, **held)


def _held(value: Any, field: dict[str, Any]) -> Any:
    """A value as commands use it: paths are paths, and lists do not change."""
    if isinstance(value, list):
        return tuple(_held(each, field.get("items", {})) for each in value)
    return Path(value) if field.get("format") == "path" and value is not None else value
