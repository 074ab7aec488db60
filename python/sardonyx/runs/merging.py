"""Merges of page images, and the knobs of the running kernel's KSM."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from sardonyx import _core
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
