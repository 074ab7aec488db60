"""Merges of page images, and the running kernel's KSM beside the model, with its knobs guarded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.values import Value, read

KSM = Path("/sys/kernel/mm/ksm")
#: The knobs in the order in which they are restored; ``run`` is the last.
KNOBS = (
    "advisor_mode",
    "max_page_sharing",
    "use_zero_pages",
    "smart_scan",
    "stable_node_chains_prune_millisecs",
    "pages_to_scan",
    "sleep_millisecs",
    "run",
)
#: A process of its own, so that it outlives a SIGKILL of ours: unless it reads a word on its input
#: before the input ends, it restores the knobs.
GUARD = """
import pathlib, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if not sys.stdin.read():
    ksm = pathlib.Path(sys.argv[1])
    for pair in ["run=2", *sys.argv[2:]]:
        name, value = pair.split("=")
        try:
            (ksm / name).write_text(value)
        except OSError:
            pass
"""


class Algorithm(Value, lenient=True):
    """What merges: ``keys`` are those that it declares; one that does not merge is a yardstick."""

    name: str
    line: str
    source: str
    merges: bool
    keys: frozenset[str]


@lru_cache
def algorithms() -> dict[str, Algorithm]:
    """All merging algorithms by name."""
    known = json.loads(_core.merge_algorithms())
    return {one["name"]: read(Algorithm, one) for one in known}


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


def kernel_now() -> dict[str, int] | None:
    """What the running kernel's KSM says of itself; nothing if there is none."""
    names = ("run", "pages_shared", "pages_sharing", "pages_unshared", "ksm_zero_pages")
    try:
        return {name: int((KSM / name).read_text()) for name in names}
    except (OSError, ValueError):
        return None


def validate(seed: int, mixes: int, watch: Watch | None = None) -> dict[str, Any]:
    """The running kernel's KSM over seeded mixes, beside the model: ``values``, ``mismatches``."""
    _core.merge_available()
    with _knobs_given_back():
        task = Task("mixes", partial(_core.merge_validate, seed, mixes))
        answer: dict[str, Any] = json.loads(scheduler.run([task], 1, watch)[0])
    return {"sardonyx": _core.VERSION, **answer}


@contextmanager
def _knobs_given_back() -> Iterator[None]:
    """Have the native half restore the knobs, or a guard if this program is killed meanwhile."""
    knobs = []
    for name in KNOBS:
        if (KSM / name).exists():
            text = (KSM / name).read_text().strip()
            chosen = text.partition("[")[2].partition("]")[0]
            knobs.append(f"{name}={chosen or text}")
    guard = subprocess.Popen(
        [sys.executable, "-c", GUARD, str(KSM), *knobs],
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    finished = False
    try:
        yield
        finished = True
    finally:
        # After an error or a signal the native half may still be at work: then the guard does it
        # too.
        guard.communicate("done" if finished else "")
