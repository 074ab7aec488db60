"""What the table of a deduplication that people run would cost, by its own makers' formulas.

Nothing is measured here. Left out: what the stores themselves take beside the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MB = 10**6
TB = 10**12
#: The size of a VDO's blocks in pages, the only one that it has.
VDO_BLOCK = 4096


@dataclass(frozen=True)
class Rival:
    """A table: what it takes in memory, and what of it each write of a block reads from a disk."""

    name: str
    memory_bytes: int
    reads_a_write: str
    source: str


def zfs(unique: int) -> Rival:
    """ZFS: an entry of the deduplication table (DDT) for each distinct block."""
    return Rival(
        "ZFS",
        320 * unique,
        "0 while the table is in memory, else 1 at random",
        "320 bytes an entry in core: module/zfs/ddt.c of Klara's tree; zdb -DD says it of a pool",
    )


def vdo(unique_bytes: int, logical_bytes: int) -> Rival:
    """VDO: its module, the least block map cache, and a dense index whose window is all data."""
    module = 38 * MB + 1.15 * 150 * MB
    module += 1.6 * MB * logical_bytes / TB + 268 * MB * unique_bytes / TB
    index = max(250 * MB, 1000 * MB * unique_bytes / TB)
    return Rival(
        "VDO",
        round(module + index),
        "a page of the block map and, of a duplicate, one of the index, unless cached",
        "Red Hat Enterprise Linux 9, LVM-VDO requirements, 2.1",
    )


def borg(unique: int, files: int) -> Rival:
    """borg: index of the repository, cache of chunks, cache of files."""
    return Rival(
        "borg",
        164 * unique + 240 * files,
        "0: all is in memory",
        "borg's internals, Indexes / Caches memory usage; tables 0.25 to 0.75 full take more",
    )


def restic(unique: int) -> Rival:
    """restic: an entry of the index for each blob."""
    return Rival(
        "restic",
        64 * unique,
        "0: all is in memory",
        "64 bytes an entry on 64 bits: restic's pull request 21937 (56 after it)",
    )


def rivals(cutting: dict[str, Any], files: int) -> list[Rival]:
    """The rivals' tables for what a way of cutting found (``cuttings`` of an estimate).

    Args:
        cutting: one of them.
        files: files with contents.

    Returns:
        Each rival that can cut so: VDO has blocks of 4 KB only.
    """
    unique = cutting["unique_chunks"]
    found = [zfs(unique)]
    if cutting["kind"] == "fixed" and cutting["chunk_bytes"] == VDO_BLOCK:
        found.append(vdo(cutting["unique_bytes"], cutting["bytes"]))
    found += [borg(unique, files), restic(unique)]
    return found
