"""What the shell completes: designs, machines, programs, recordings and keys.

Each function gives what fits the word so far; where nothing fits, the shell completes files. The
shells' scripts are click's: ``sardonyx --install-completion``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from sardonyx import _core
from sardonyx.runs.recordings import recordings


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _named(text: str) -> list[str]:
    return [str(each["name"]) for each in json.loads(text)]


def designs(incomplete: str) -> list[str]:
    """Designs separated by commas: the last one is completed."""
    done, comma, last = incomplete.rpartition(",")
    given = done.split(",")
    names = [name for name in _named(_core.designs()) if name not in given]
    return [done + comma + name for name in _fitting(names, last)]


def machines(incomplete: str) -> list[str]:
    """Machines that come with the program."""
    return _fitting(_named(_core.machines()), incomplete)


def programs(incomplete: str) -> list[str]:
    """Persistent programs."""
    known = json.loads(_core.programs())["programs"]
    return _fitting([str(each["name"]) for each in known], incomplete)


def traces(incomplete: str) -> list[str]:
    """Recordings that come with the program."""
    return _fitting(recordings(), incomplete)


def workloads(incomplete: str) -> list[str]:
    """Recordings, then programs."""
    return traces(incomplete) + programs(incomplete)


def keys(ctx: Any, incomplete: str) -> list[str]:
    """Keys of the machine that the command line names so far, each with its ``=``."""
    name = (ctx.params or {}).get("machine") or "esd"
    try:
        machine = json.loads(_core.machine(name, []))
    except _core.SardonyxError:  # no such machine: the command itself will say so
        return []
    return _fitting([f"{key}=" for key in machine["parameters"]], incomplete)


def nothing(_: Any, __: str) -> list[str]:
    """Words of which we know none."""
    return []


#: What completes a parameter of this name.
BY_PARAMETER: dict[str, Callable[[Any, str], list[str]]] = {
    "designs": lambda _, word: designs(word),
    "machine": lambda _, word: machines(word),
    "set": keys,
    "traces": lambda _, word: workloads(word),
    "programs": lambda _, word: programs(word),
    "name": lambda _, word: machines(word),
    "source": lambda _, word: traces(word),
    "trace": lambda _, word: traces(word),
    "recording": lambda _, word: traces(word),
}
#: And an argument, whose name may be that of an option elsewhere.
BY_ARGUMENT: dict[str, Callable[[Any, str], list[str]]] = {
    "trace": lambda _, word: traces(word),
    "source": lambda _, word: traces(word),
}
