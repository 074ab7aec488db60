"""Snapshots of live processes as ELF cores, a folder a process: machines for ``sardonyx merge``.

Only anonymous pages that are in memory are written, with the names of the mappings' files. Reading
another's memory needs root, or its owner with ptrace allowed. ``--pause`` stops a process while it
is read, so that a snapshot is of one moment.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import signal
import struct
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
PRESENT, OF_FILE = 1 << 63, 1 << 61
NT_FILE = 0x46494C45
TRIES = 5
MAPS = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (r\S\Sp) \S+ \S+ \S+ *(.*)")
KERNELS = {"[vvar]", "[vdso]", "[vvar_vclock]"}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pids", type=int, nargs="+", metavar="PID")
    parser.add_argument("--out", type=Path, required=True, help="made; a folder a process in it")
    parser.add_argument("--count", type=int, default=3, help="snapshots of each (3)")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two (1)")
    parser.add_argument("--pause", action="store_true", help="stop a process while it is read")
    wanted = parser.parse_args()
    if wanted.out.exists():
        sys.exit(f"error: {wanted.out}: is there already; name a folder that is not")
    for number in range(1, wanted.count + 1):
        if number > 1:
            time.sleep(wanted.every)
        for pid in wanted.pids:
            try:
                patiently(pid, wanted.out, f"{number:04}.core", wanted.pause)
            except ProcessLookupError:
                print(
                    f"pid {pid}: has no memory of its own, or has exited; earlier snapshots stay",
                    file=sys.stderr,
                )
            except FileNotFoundError:
                print(f"pid {pid}: there is no such process", file=sys.stderr)
            except PermissionError as error:
                sys.exit(f"error: {error.filename}: {error.strerror}; run as root")
    if not wanted.out.exists():
        sys.exit("error: nothing was read")


def patiently(pid: int, out: Path, name: str, pause: bool) -> None:
    """One process now; again if a mapping vanishes while it is read."""
    for left in range(TRIES, 0, -1):
        try:
            return snapshot(pid, out, name, pause)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            if left == 1:
                sys.exit(f"error: pid {pid}: its mappings vanish while they are read; give --pause")


def snapshot(pid: int, out: Path, name: str, pause: bool) -> None:
    """One process now."""
    command = Path(f"/proc/{pid}/comm").read_text().strip().replace("/", "_")
    if pause:
        os.kill(pid, signal.SIGSTOP)
    try:
        mappings = list(private(pid))
        runs = [run for first, end, _ in mappings for run in present(pid, first, end)]
        if not runs:
            raise ProcessLookupError(pid)
        folder = out / f"{command}-{pid}"
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f".{name}"
        try:
            write_core(scratch, pid, mappings, runs)
            scratch.rename(folder / name)
        finally:
            scratch.unlink(missing_ok=True)
    finally:
        if pause:
            os.kill(pid, signal.SIGCONT)


def private(pid: int) -> Iterator[tuple[int, int, str]]:
    """First and last address of the private mappings, and what is mapped."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        found = MAPS.fullmatch(line)
        if found and found[4] not in KERNELS:
            yield int(found[1], 16), int(found[2], 16), found[4] or "[anonymous]"


def present(pid: int, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Runs of anonymous pages in memory: address and bytes."""
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        start = None
        for chunk in range(first, end, PAGE << 16):
            pagemap.seek(chunk // PAGE * 8)
            entries = array("Q", pagemap.read(min(end - chunk, PAGE << 16) // PAGE * 8))
            for index, entry in enumerate(entries):
                address = chunk + index * PAGE
                if entry & PRESENT and not entry & OF_FILE:
                    start = address if start is None else start
                elif start is not None:
                    yield start, address - start
                    start = None
        if start is not None:
            yield start, end - start


def write_core(
    path: Path, pid: int, mappings: list[tuple[int, int, str]], runs: list[tuple[int, int]]
) -> None:
    """An ELF core with a segment a run and a note of the mappings' names."""
    places = b"".join(struct.pack("<QQQ", first, end, 0) for first, end, _ in mappings)
    names = b"".join(name.encode(errors="surrogateescape") + b"\0" for *_, name in mappings)
    files = struct.pack("<QQ", len(mappings), PAGE) + places + names
    note = struct.pack("<III", 5, len(files), NT_FILE) + b"CORE\0\0\0\0"
    note += files + b"\0" * (-len(files) % 4)
    count = len(runs) + 1
    if count >= 0xFFFF:
        sys.exit(f"error: pid {pid}: {count} stretches of memory are more than a core can list")
    heads = 64 + 56 * count
    start = -(-(heads + len(note)) // PAGE) * PAGE
    with path.open("wb") as core, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        identity = b"\x7fELF\x02\x01\x01"
        core.write(
            struct.pack(
                "<16sHHIQQQIHHHHHH", identity, 4, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0
            )
        )
        core.write(struct.pack("<IIQQQQQQ", 4, 0, heads, 0, 0, len(note), 0, 4))
        offset = start
        for address, size in runs:
            core.write(struct.pack("<IIQQQQQQ", 1, 6, offset, address, 0, size, size, PAGE))
            offset += size
        core.write(note)
        core.seek(start)
        for address, size in runs:
            memory.seek(address)
            left = size
            while left:
                data = memory.read(left)
                if not data:
                    raise ProcessLookupError(pid)
                core.write(data)
                left -= len(data)


if __name__ == "__main__":
    main()
