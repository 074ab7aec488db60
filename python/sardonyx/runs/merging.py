"""Merges of page images, and the knobs of the running kernel's KSM."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.questions import MergeQuestion, Owner
from sardonyx.runs import scheduler
from sardonyx.runs.jobs import Setting
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.values import Value, read

KSM = Path("/sys/kernel/mm/ksm")


class Algorithm(Value, lenient=True):
    """What merges: ``keys`` are those that it declares; one that does not merge is a yardstick."""

    name: str
    line: str
    source: str
    merges: bool
    keys: tuple[str, ...]


@lru_cache
def algorithms() -> dict[str, Algorithm]:
    """All merging algorithms by name."""
    known = json.loads(_core.merge_algorithms())
    return {one["name"]: read(Algorithm, one) for one in known}


def merge(question: MergeQuestion, watch: Watch | None = None) -> dict[str, Any]:
    """The answer: ``runs``, ``machines``, ``settings``, ``assumed``, and what else was asked."""
    task = Task("pages", partial(_core.merge, question.json()))
    answer: dict[str, Any] = json.loads(scheduler.run([task], 1, watch)[0])
    return {"sardonyx": _core.VERSION, **answer}


def came_and_went(machine: dict[str, Any]) -> str | None:
    """What of a machine is not there to the end: it exited, or mappings vanished."""
    if machine["ended_at_pass"] is not None:
        return (
            f"{machine['name']}: exited meanwhile; from pass {machine['ended_at_pass']} on its "
            f"{machine['gone']:,} pages are gone, and count for nothing"
        )
    if machine["gone"]:
        return (
            f"{machine['name']}: {machine['gone']:,} pages of earlier snapshots are gone in the "
            "last, and count for nothing"
        )
    return None


def owned(pairs: Sequence[str], names: Sequence[str]) -> tuple[Owner, ...]:
    """``NAME=GLOB`` pairs over the machines' names; a machine is its first owner's."""
    owners: dict[str, list[int]] = {}
    taken: dict[int, str] = {}
    for pair in pairs:
        name, equals, glob = pair.partition("=")
        if not (name and equals and glob):
            raise _core.SardonyxError(
                f"--owner {pair}: not of the form NAME=GLOB; for example --owner web='dumps/web*'"
            )
        called = [
            index
            for index, machine in enumerate(names)
            if fnmatch(machine, glob) or fnmatch(Path(machine).name, glob)
        ]
        hits = [index for index in called if index not in taken]
        if not called:
            raise _core.SardonyxError(
                f"--owner {pair}: no machine is called so; they are {', '.join(names)}"
            )
        if not hits:
            raise _core.SardonyxError(
                f"--owner {pair}: {names[called[0]]} is {taken[called[0]]}'s already; a machine is "
                "its first owner's, so give the narrower glob first"
            )
        taken |= dict.fromkeys(hits, name)
        owners.setdefault(name, []).extend(hits)
    return tuple(Owner(name=name, machines=tuple(own)) for name, own in owners.items())


def kernel_now() -> dict[str, int] | None:
    """What the running kernel's KSM says of itself; nothing if there is none."""
    names = ("run", "pages_shared", "pages_sharing", "pages_unshared", "ksm_zero_pages")
    try:
        return {name: int((KSM / name).read_text()) for name in names}
    except (OSError, ValueError):
        return None


#: The clock that advances with the kernel's tick, CLOCK_MONOTONIC_COARSE of <linux/time.h>.
COARSE = 6


def host_knobs() -> tuple[Setting, ...]:
    """The running kernel's knobs as keys and values of the merge; those that it has."""
    found = []
    for key in algorithms()["ksm"].keys:
        name = key.removeprefix("ksm.")
        try:
            text = (KSM / name).read_text().strip()
        except OSError:
            continue
        chosen = text.partition("[")[2].partition("]")[0] or text
        if name in {"smart_scan", "use_zero_pages"}:
            chosen = "true" if chosen == "1" else "false"
        found.append((key, chosen))
    if found:
        tick = time.clock_getres(COARSE)
        found.append(("ksm.tick_us", str(round(tick * 1e6))))
    return tuple(found)


def beside_the_host(answer: dict[str, Any]) -> list[dict[str, str]]:
    """The running kernel's knobs (``host``) beside what is asked (``asked``)."""
    settings = {name: json.dumps(value).strip('"') for name, value in answer["settings"].items()}
    return [
        {"key": key, "host": value, "asked": settings[key]}
        for key, value in host_knobs()
        if key in settings
    ]
