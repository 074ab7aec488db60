"""What the crash test of a program that writes files is asked, as one JSON document."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.questions import CrashFilesQuestion
from sardonyx.runs.crash_test import words

PLATFORMS = ("ordered", "writeback", "strict")


def recovery(command: str, place: str = "") -> tuple[str, ...]:
    """The words of a recovery that is given a folder."""
    if "{dir}" not in command:
        raise _core.SardonyxError(
            f"{place}'{command}': does not say where the folder goes; write {{dir}} there, as in "
            "'check {dir}'"
        )
    return words(command, place, ())


def check_folder(folder: Path, place: str = "") -> None:
    """An error unless it is a folder that a program can work in."""
    if not folder.is_dir():
        raise _core.SardonyxError(
            f"{place}{folder}: is no folder; name the one that the program works in, or make it: "
            f"mkdir -p {folder}"
        )


def check_program(program: Sequence[str]) -> None:
    """An error unless there is such a program."""
    if shutil.which(program[0]) is None:
        raise _core.SardonyxError(
            f"{program[0]}: is no program that can be run; give its path, or one in PATH"
        )


def crash_files(
    question: CrashFilesQuestion, progress: _core.Progress | None = None
) -> dict[str, Any]:
    """What was found."""
    answer: dict[str, Any] = json.loads(_core.crash_files(question.json(), progress))
    return answer
