"""What the crash test of a recorded program is asked, as one JSON document."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.questions import CrashTestQuestion, Job, TraceSource
from sardonyx.runs.sources import parts

PLATFORMS = ("auto", "adr", "eadr", "pages", "sectors")
TEARS = ("lines", "words")
CREATIONS = ("orderly", "status", "skip")
ACKNOWLEDGED = ("lines", "none")
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
    found = parts(text)
    if not all(part.isascii() and part.isdigit() and int(part) < 256 for part in found):
        raise _core.SardonyxError(f"{place}{text}: give exit statuses, as in 0,3")
    return tuple(sorted({0, *map(int, found)}))


def given(word: str, pools: Sequence[str], folder: Path, acks: str = "{acks}") -> str:
    """A word of the recovery's command, with what it is given for the names in braces."""
    names = {f"pool{number}": path for number, path in enumerate(pools, 1)}
    names |= {"pool": pools[0], "pools": str(folder), "acks": acks}
    return PLACES.sub(lambda found: names.get(found[1], found[0]), word)


def lint(
    recording: str,
    pools: Sequence[str],
    source: bool,
    machine: str,
    progress: _core.Progress | None = None,
) -> dict[str, Any]:
    """What the recording shows without a run, and what its idle flushes and fences cost.

    The cost is the difference of two simulations of what the recording has of the pool, on a core
    of the machine, without encryption; all other instructions take their time and touch no memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = _core.crash_lint(recording, list(pools), source, folder, progress)
        found: dict[str, Any] = json.loads(answer)

        def took(name: str) -> float:
            job = Job(
                source=TraceSource(path=f"{folder}/{name}.parquet"),
                design="no-encryption",
                machine=machine,
            )
            ran = json.loads(_core.simulate(job.json(), progress))
            return float(ran["metrics"]["simulated_ns"])

        if any(found["idle"].values()):
            everything = took("all")
            found["took_ns"] = everything
            found["cost_ns"] = {
                name: everything - took(name) if idle else 0.0
                for name, idle in found["idle"].items()
            }
    return found


def crash_test(
    question: CrashTestQuestion, progress: _core.Progress | None = None
) -> dict[str, Any]:
    """What was found."""
    answer: dict[str, Any] = json.loads(_core.crash_test(question.json(), progress))
    return answer
