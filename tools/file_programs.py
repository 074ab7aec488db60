"""Small random programs that write files, and what runs one: ``python file_programs.py FOLDER MARKS
PROGRAM``, with the program as JSON.

Each call opens what it needs. Before and after it the program marks where it is, and after it it
prints a line. A call that fails is passed over. Two kinds stand for what the kernel does by itself
at any time: a commit of the journal, by a file beside the folder, and data that are written back.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

LIBC = ctypes.CDLL(None, use_errno=True)
#: What a folder begins with: the bytes of each file; the folders ``s`` and ``t`` are there too.
FILES: Final = {"a": 3, "b": 6000, "c": 20480, "s/x": 100}
NAMES: Final = ("a", "b", "c", "s/x", "n", "s/m", "t/o")
OFFSETS: Final = (0, 0, 100, 512, 3000, 4096, 5000, 8192, 16384)
LENGTHS: Final = (1, 10, 300, 512, 1500, 4096, 5000, 9000)
SIZES: Final = (0, 1, 50, 512, 4000, 4096, 7000, 12288, 30000)
#: A file beside the folder, by which the journal is committed.
OTHER: Final = "../other"
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 0x10
EXCHANGE: Final = 2
CLONE: Final = 0x4004_9409
HERE: Final = -100

Call = list[Any]
Program = list[Call]


def bad(result: int) -> int:
    """An error of the C library as an exception."""
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


class Runner:
    """Runs calls. With ``keep`` a file that was opened stays open."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.number = 0
        self.open: dict[tuple[str, int], int] = {}

    def at(self, path: str, flags: int = os.O_RDWR) -> int:
        """A descriptor of a file."""
        known = self.open.get((path, flags))
        if known is None:
            known = self.open[path, flags] = os.open(path, flags, 0o644)
        return known

    def run(self, call: Call) -> None:
        """One call."""
        self.number += 1
        name, *given = call
        with contextlib.suppress(OSError):
            CALLS[name][0](self, *given)
        if not self.keep:
            for descriptor in self.open.values():
                os.close(descriptor)
            self.open.clear()

    def data(self, length: int) -> bytes:
        """Bytes that no other call writes; no two sectors of it are equal."""
        text = b"".join(b"%c%03d" % (64 + self.number, at) for at in range(length // 4 + 1))
        return text[:length]

    def pwrite(self, path: str, offset: int, length: int, flags: int = 0) -> None:
        """pwrite(2) through a descriptor with flags."""
        os.pwrite(self.at(path, os.O_RDWR | flags), self.data(length), offset)

    def pwritev(self, path: str, offset: int, length: int, flags: int = 0) -> None:
        """pwritev2(2) of two halves."""
        data = self.data(length)
        os.pwritev(self.at(path), [data[: length // 2], data[length // 2 :]], offset, flags)

    def write(self, path: str, offset: int, length: int) -> None:
        """lseek(2) and write(2)."""
        descriptor = self.at(path)
        os.lseek(descriptor, offset, os.SEEK_SET)
        os.write(descriptor, self.data(length))

    def writev(self, path: str, offset: int, length: int) -> None:
        """lseek(2) and writev(2) of two halves."""
        descriptor, data = self.at(path), self.data(length)
        os.lseek(descriptor, offset, os.SEEK_SET)
        os.writev(descriptor, [data[: length // 2], data[length // 2 :]])

    def append(self, path: str, length: int, flags: int = 0) -> None:
        """write(2) with O_APPEND."""
        os.write(self.at(path, os.O_WRONLY | os.O_APPEND | flags), self.data(length))

    def create(self, path: str) -> None:
        """open(2) with O_EXCL."""
        self.at(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def cut(self, path: str) -> None:
        """open(2) with O_TRUNC."""
        self.at(path, os.O_RDWR | os.O_TRUNC)

    def ftruncate(self, path: str, size: int) -> None:
        """ftruncate(2)."""
        os.ftruncate(self.at(path), size)

    def fallocate(self, path: str, offset: int, length: int, mode: int) -> None:
        """fallocate(2)."""
        places = ctypes.c_long(offset), ctypes.c_long(length)
        bad(LIBC.fallocate(self.at(path), mode, *places))

    def temporary(self, path: str, length: int) -> None:
        """A file without a name (O_TMPFILE) that is written and then gets one by link(2)."""
        descriptor = os.open(os.path.dirname(path) or ".", os.O_TMPFILE | os.O_RDWR, 0o644)
        os.write(descriptor, self.data(length))
        os.link(f"/proc/self/fd/{descriptor}", path, follow_symlinks=True)
        os.close(descriptor)

    def exchange(self, one: str, other: str) -> None:
        """renameat2(2) with RENAME_EXCHANGE."""
        bad(LIBC.renameat2(HERE, one.encode(), HERE, other.encode(), EXCHANGE))

    def sync(self, path: str) -> None:
        """fsync(2), of a folder too."""
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def sync_data(self, path: str) -> None:
        """fdatasync(2), of a folder too."""
        descriptor = os.open(path, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.close(descriptor)

    def sync_range(self, path: str) -> None:
        """sync_file_range(2) of the whole file with all its flags, as git's batch mode does."""
        bad(LIBC.sync_file_range(self.at(path), ctypes.c_long(0), ctypes.c_long(0), 7))

    def sync_system(self) -> None:
        """syncfs(2)."""
        bad(LIBC.syncfs(self.at(".", os.O_RDONLY)))

    def store(self, path: str, offset: int, length: int, how: int) -> None:
        """Stores through a mapping; then msync(2) with MS_SYNC, with MS_ASYNC, or none."""
        descriptor = self.at(path)
        length = min(length, os.fstat(descriptor).st_size - offset)
        if length > 0:
            with mmap.mmap(descriptor, 0) as mapped:
                mapped[offset : offset + length] = self.data(length)
                if how == 1:
                    mapped.flush()
                elif how == 2:
                    word = ctypes.c_char.from_buffer(mapped)
                    LIBC.msync(ctypes.byref(word), ctypes.c_size_t(length), 1)
                    del word

    def copy(self, path: str, other: str, length: int, offset: int) -> None:
        """copy_file_range(2)."""
        os.copy_file_range(self.at(path), self.at(other), length, 0, offset)

    def send(self, path: str, other: str, length: int) -> None:
        """sendfile(2)."""
        os.sendfile(self.at(other), self.at(path, os.O_RDONLY), 0, length)

    def clone(self, path: str, other: str) -> None:
        """ioctl(2) FICLONE."""
        bad(LIBC.ioctl(self.at(other), ctypes.c_ulong(CLONE), self.at(path)))

    def commit(self) -> None:
        """What the file system does by itself in time: its journal is written."""
        os.pwrite(self.at(OTHER), self.data(8), 0)
        os.fsync(self.at(OTHER))

    def write_back(self, path: str) -> None:
        """What the kernel does by itself in time: a file's data are written."""
        os.posix_fadvise(self.at(path), 0, 0, os.POSIX_FADV_DONTNEED)


Does = Callable[..., Any]
#: Every kind of call: what does it, and the kinds of its arguments.
CALLS: Final[dict[str, tuple[Does, str]]] = {
    "create": (Runner.create, "p"),
    "pwrite": (Runner.pwrite, "pol"),
    "pwrite O_SYNC": (lambda own, *given: own.pwrite(*given, os.O_SYNC), "pol"),
    "pwrite O_DSYNC": (lambda own, *given: own.pwrite(*given, os.O_DSYNC), "pol"),
    "pwritev": (Runner.pwritev, "pol"),
    "pwritev2 RWF_SYNC": (lambda own, *given: own.pwritev(*given, os.RWF_SYNC), "pol"),
    "pwritev2 RWF_DSYNC": (lambda own, *given: own.pwritev(*given, os.RWF_DSYNC), "pol"),
    "write": (Runner.write, "pol"),
    "writev": (Runner.writev, "pol"),
    "append": (Runner.append, "pl"),
    "append O_DSYNC": (lambda own, *given: own.append(*given, os.O_DSYNC), "pl"),
    "truncate": (lambda _, path, size: os.truncate(path, size), "ps"),
    "ftruncate": (Runner.ftruncate, "ps"),
    "open O_TRUNC": (Runner.cut, "p"),
    "fallocate": (lambda own, *given: own.fallocate(*given, 0), "pol"),
    "fallocate keep": (lambda own, *given: own.fallocate(*given, KEEP_SIZE), "pol"),
    "fallocate punch": (
        lambda own, *given: own.fallocate(*given, KEEP_SIZE | PUNCH_HOLE), "pol"),
    "fallocate zero": (lambda own, *given: own.fallocate(*given, ZERO_RANGE), "pol"),
    "link": (lambda _, path, new: os.link(path, new), "pp"),
    "symlink": (lambda _, path, new: os.symlink(path, new), "pp"),
    "O_TMPFILE": (Runner.temporary, "pl"),
    "unlink": (lambda _, path: os.unlink(path), "p"),
    "mkdir": (lambda _, path: os.mkdir(path), "d"),
    "rmdir": (lambda _, path: os.rmdir(path), "d"),
    "rename": (lambda _, path, new: os.rename(path, new), "pp"),
    "rename folder": (lambda _, path, new: os.rename(path, new), "dd"),
    "exchange": (Runner.exchange, "pp"),
    "fsync": (Runner.sync, "p"),
    "fsync folder": (Runner.sync, "f"),
    "fdatasync": (Runner.sync_data, "p"),
    "fdatasync folder": (Runner.sync_data, "f"),
    "sync_file_range": (Runner.sync_range, "p"),
    "sync": (lambda _: os.sync(), ""),
    "syncfs": (Runner.sync_system, ""),
    "store": (lambda own, *given: own.store(*given, 0), "pol"),
    "store msync": (lambda own, *given: own.store(*given, 1), "pol"),
    "store MS_ASYNC": (lambda own, *given: own.store(*given, 2), "pol"),
    "copy_file_range": (Runner.copy, "pplo"),
    "sendfile": (Runner.send, "ppl"),
    "FICLONE": (Runner.clone, "pp"),
    "commit": (Runner.commit, ""),
    "write back": (Runner.write_back, "p"),
}  # fmt: skip
ARGUMENTS: Final[dict[str, tuple[Any, ...]]] = {
    "p": NAMES, "o": OFFSETS, "l": LENGTHS, "s": SIZES, "d": ("t", "u", "s/v"),
    "f": (".", "s", "t"),
}  # fmt: skip
#: Calls that most programs are made of are drawn more often; ``sync`` of the whole machine is slow.
OFTEN: Final = ("create", "pwrite", "append", "rename", "fsync", "commit", "write back")


def drawn(choice: random.Random, most: int) -> Program:
    """A program of 3 calls at least: of any kinds on few files, so that they meet each other."""
    kinds = [kind for kind in CALLS if kind != "sync"] + 2 * list(OFTEN)
    names = choice.sample(NAMES, 4)
    program: Program = []
    for _ in range(choice.randint(3, most)):
        kind = choice.choice(kinds)
        values = [choice.choice(names if one == "p" else ARGUMENTS[one]) for one in CALLS[kind][1]]
        program.append([kind, *values])
        if kind in ("create", "O_TMPFILE") and choice.random() < 0.7:
            program.append(["append", values[0], choice.choice(LENGTHS)])
    return program


def prepare(folder: Path) -> None:
    """The folder with which every program begins, and the file beside it."""
    for name in ("s", "t"):
        (folder / name).mkdir(parents=True)
    for name, size in FILES.items():
        text = b"".join(b"%s%03d" % (name[-1:].encode(), at) for at in range(size // 4 + 1))
        (folder / name).write_bytes(text[:size])
    (folder / OTHER).write_bytes(b"other\n")


def main() -> None:
    """Runs a program."""
    folder, marks, text = sys.argv[1:]
    mark = os.open(marks, os.O_WRONLY)
    asked = json.loads(text)
    os.chdir(folder)
    runner = Runner(asked["keep"])
    for call in asked["calls"]:
        os.write(mark, b"begin")
        runner.run(call)
        os.write(mark, b"end")
        os.write(1, b"done\n")


if __name__ == "__main__":
    main()
