"""What the crash test of a recorded program is asked, as one JSON document."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.questions import CrashTestQuestion

PLATFORMS = ("auto", "adr", "eadr", "pages", "sectors")
TEARS = ("lines", "words")
#: Placeholders of files: the first pool, the second, the folder of all, and so on.
PLACES = re.compile(r"{(pool[0-9]*|pools|acks|operations)}")
#: Characters that only a shell understands.
SHELL = set("|&;<>()$`*?[]~#\n")


def words(command: str, place: str = "", holds: Sequence[str] = ("{pool}",)) -> tuple[str, ...]:
    """The command's words; one that needs a shell is given to one. ``place`` begins an error."""
    for name in holds:
        if name not in command and not (name == "{pool}" and "{pools}" in command):
            raise _core.SardonyxError(
                f"{place}'{command}': does not say where the {name[1:-1]} go"
                f"{'es' if name == '{pool}' else ''}; write {name} there, "
                f"as in 'check {' '.join(holds)}'"
            )
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise _core.SardonyxError(f"{place}'{command}': {error}; close it") from error
    bare = "".join(shlex.split(command, posix=False))
    plain = command if bare == command else bare
    unquoted = "".join(part for part in plain.split("'")[::2])
    assigns = "=" in parts[0]
    unquoted = PLACES.sub("", unquoted)
    if assigns or SHELL & set(unquoted):
        return ("/bin/sh", "-c", command)
    return tuple(parts)


def statuses(text: str, place: str = "") -> tuple[int, ...]:
    """Exit statuses from ``0,3``; 0 is always one."""
    found = [each.strip() for each in text.split(",") if each.strip()]
    if not all(part.isascii() and part.isdigit() and int(part) < 256 for part in found):
        raise _core.SardonyxError(f"{place}{text}: give exit statuses, as in 0,3")
    return tuple(sorted({0, *map(int, found)}))


def given(word: str, pools: Sequence[str], folder: Path, acks: str = "{acks}") -> str:
    """A word of the recovery's command, with what it is given for the names in braces."""
    names = {f"pool{number}": path for number, path in enumerate(pools, 1)}
    names |= {"pool": pools[0], "pools": str(folder), "acks": acks}
    return PLACES.sub(lambda found: names.get(found[1], found[0]), word)


def crash_test(
    question: CrashTestQuestion, progress: _core.Progress | None = None
) -> dict[str, Any]:
    """What was found."""
    answer: dict[str, Any] = json.loads(_core.crash_test(question.json(), progress))
    return answer
