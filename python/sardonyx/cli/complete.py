"""What the shell completes: designs, machines, programs, recordings, keys, figures, and every word
that an option lists.

Each function gives what fits the word so far; where nothing fits, the shell completes files. The
shells' scripts are click's: ``sardonyx --install-completion``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sardonyx import _core
from sardonyx.runs.metrics import NAMES
from sardonyx.runs.recordings import recordings

#: A list in the text of an option, as in ``Format: a, b or c``.
SEPARATOR = re.compile(r", or |, | or ")
LIST = re.compile(
    r"(?:[:;] |^Of )([a-z][\w.-]*(?:(?:, or |, | or )[a-z][\w.-]*\w)+)(?=[:;.,]|$| \()"
)
PROMISES = ("every line", "after program recovery")


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


def goals(incomplete: str) -> list[str]:
    """Goals, as in ``max ipc``."""
    return _fitting((f"{end} {name}" for end in ("max", "min") for name in NAMES), incomplete)


def mutants(incomplete: str) -> list[str]:
    """Mistakes that can be planted into programs."""
    known = json.loads(_core.programs())
    lists = ("mutants", "drained_mutants", "equivalent_mutants")
    return _fitting([str(each["name"]) for name in lists for each in known[name]], incomplete)


def listed(of: Mapping[str, Any]) -> list[str]:
    """The words that an option takes: its own list, or the one that its text begins with."""
    if "oneOf" in of:
        return [str(each["const"]) for each in of["oneOf"]]
    found = LIST.search(" ".join(of.get("description", "").split()))
    return list(of.get("enum", ())) or (SEPARATOR.split(found[1]) if found else [])


#: What completes a parameter of this name.
BY_PARAMETER: dict[str, Callable[[Any, str], list[str]]] = {
    **dict.fromkeys(("designs", "memory", "near_design"), lambda _, word: designs(word)),
    **dict.fromkeys(("machine", "near"), lambda _, word: machines(word)),
    "goal": lambda _, word: goals(word),
    "at_most": lambda _, word: _fitting((f"{name}=" for name in NAMES), word),
    "mutant": lambda _, word: mutants(word),
    "mix": lambda _, word: _fitting(_core.merge_mixes(), word),
    "spec": lambda _, word: _fitting(_named(_core.ladder()), word),
    "survives": lambda _, word: _fitting(PROMISES, word),
    "set": keys,
    "traces": lambda _, word: workloads(word),
    "programs": lambda _, word: programs(word),
    "name": lambda _, word: machines(word),
    "source": lambda _, word: traces(word),
    "trace": lambda _, word: traces(word),
    "recording": lambda _, word: traces(word),
}
