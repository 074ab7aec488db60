"""A block device that writes down every write and flush, and one that becomes what they leave.

The bytes of the first are in this process. A file in FUSE (file systems in user space) leads to
them, and a loop device leads to that file, because the kernel passes a flush on as an fsync. Needs
root, ``/dev/fuse`` and ``losetup``. Mounts are in a namespace of their own, which ends with us.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
import subprocess
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_NOATIME, MS_REC, MS_PRIVATE = 0x1, 0x400, 0x4000, 0x40000
CLONE_NEWNS: Final = 0x20000
#: Parts of zeros are left out of images, which is faster.
PART: Final = 1 << 14
#: Btrfs knows a file system by its number, on one device at a time (``BTRFS_IOC_FORGET_DEV``).
BTRFS, FORGET_DEVICES = "/dev/btrfs-control", 0x5000_9405
#: Bytes of the largest write that the kernel sends.
LARGEST: Final = 1 << 20

# What the kernel asks (include/uapi/linux/fuse.h), and the two files that there are.
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE = 1, 2, 3, 4, 14, 15, 16
RELEASE, FSYNC, FLUSH, INIT, INTERRUPT, FORGETS = 18, 20, 25, 26, 36, 42
ROOT, DISK, MARKS = 1, 2, 3
NAMES: Final = {b"disk": DISK, b"marks": MARKS}
#: Reads and writes are not cached; a reply to ``INIT`` that allows writes of 1 MiB.
DIRECT: Final = 1
BIG_WRITES, ASYNC_DIRECT, MAX_PAGES = 1 << 5, 1 << 15, 1 << 22
#: A write that is held ends when another one is, or after so many milliseconds without a request.
IDLE: Final = 20


@dataclass(frozen=True)
class Write:
    """Bytes that were written at an offset."""

    offset: int
    data: bytes


@dataclass(frozen=True)
class Flush:
    """All writes before it are durable."""


@dataclass(frozen=True)
class Mark:
    """What a program wrote to the file of marks."""

    text: str


Record = Write | Flush | Mark


def checked(result: int, what: str) -> None:
    """An error of the C library as an exception."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: Path, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    words = [text.encode() for text in (source, str(target), kind)]
    checked(LIBC.mount(*words, flags, options.encode()), f"mount {kind} {source} {target}")


def unmount(target: Path) -> None:
    """umount(2)."""
    checked(LIBC.umount2(str(target).encode(), 0), f"umount {target}")


def forget_btrfs() -> None:
    """The kernel forgets which devices had which btrfs."""
    control = os.open(BTRFS, os.O_RDWR)
    checked(LIBC.ioctl(control, ctypes.c_ulong(FORGET_DEVICES), bytes(4096)), BTRFS)
    os.close(control)


def own_mounts() -> None:
    """Mounts of this process are seen by nobody else from now on."""
    checked(LIBC.unshare(CLONE_NEWNS), "unshare")
    mount("none", Path("/"), "none", MS_REC | MS_PRIVATE)


def attach(file: Path, *options: str) -> str:
    """A loop device of a file."""
    command = ["losetup", "--find", "--show", *options, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def detach(device: str) -> None:
    """Ends a loop device."""
    subprocess.run(["losetup", "--detach", device], check=True)


class ImageDisk:
    """A device that becomes one image after another: some bytes, and writes to them."""

    def __init__(self, content: bytes | bytearray, file: Path) -> None:
        self.size = len(content)
        parts = ((at, bytes(content[at : at + PART])) for at in range(0, self.size, PART))
        self._parts = [Write(at, part) for at, part in parts if part.strip(b"\0")]
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        self.become(())
        self.device = attach(file)

    def become(self, writes: Iterable[Write]) -> None:
        """The bytes that it was made with, and these writes. Nothing may be mounted from it."""
        os.ftruncate(self._file, 0)
        os.ftruncate(self._file, self.size)
        for write in (*self._parts, *writes):
            os.pwrite(self._file, write.data, write.offset)

    def close(self) -> None:
        """Ends the device; nothing may be mounted from it."""
        detach(self.device)
        os.close(self._file)


class Disk:
    """The device. ``records`` has what was asked of it since it was last set to a list."""

    def __init__(self, content: bytes, folder: Path) -> None:
        self.content = bytearray(content)
        self.records: list[Record] | None = None
        self.device = ""
        self.marks = folder / "marks"
        #: Whether a write is held until later requests are done, as a disk may.
        self.holds: Callable[[], bool] = lambda: False
        self._undo: list[tuple[int, bytes]] = []
        self._folder = folder
        folder.mkdir()
        self._fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._fuse},rootmode=40000,user_id=0,group_id=0"
        mount("sardonyx", folder, "fuse.sardonyx", 0, options)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self.device = attach(folder / "disk", "--direct-io=on")

    def close(self) -> None:
        """Ends the device; nothing may be mounted from it."""
        detach(self.device)
        unmount(self._folder)
        self._thread.join()
        os.close(self._fuse)

    def keep(self) -> None:
        """The bytes that it has now are those that it was made with."""
        self._undo.clear()

    def revert(self) -> None:
        """The bytes that it was made with. Nothing may be mounted from it."""
        for offset, data in reversed(self._undo):
            self.content[offset : offset + len(data)] = data
        self._undo.clear()

    def _put(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        self._undo.append((offset, bytes(self.content[offset:end])))
        self.content[offset:end] = data

    def _serve(self) -> None:
        room = bytearray(LARGEST + 8192)
        waiting = select.poll()
        waiting.register(self._fuse, select.POLLIN)
        held: list[tuple[int, int, bytes]] = []
        while True:
            if held and not waiting.poll(IDLE):
                self._end(held.pop(0))
                continue
            try:
                length = os.readv(self._fuse, [room])
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    continue
                return  # it is unmounted
            _, opcode, unique, node = struct.unpack_from("=IIQQ", room)
            if opcode in (FORGET, FORGETS, INTERRUPT):
                continue
            if opcode == WRITE and node == DISK and self.holds():
                held.append((unique, node, bytes(memoryview(room)[40:length])))
            else:
                self._reply(unique, self._answer(opcode, node, memoryview(room)[40:length]))
            if len(held) > 1:
                self._end(held.pop(0))

    def _end(self, held: tuple[int, int, bytes]) -> None:
        unique, node, asked = held
        self._reply(unique, self._answer(WRITE, node, memoryview(asked)))

    def _reply(self, unique: int, answer: bytes | int) -> None:
        failed = -answer if isinstance(answer, int) else 0
        body = b"" if isinstance(answer, int) else answer
        os.writev(self._fuse, [struct.pack("=IiQ", 16 + len(body), failed, unique), body])

    def _answer(self, opcode: int, node: int, asked: memoryview) -> bytes | int:
        """The body of a reply, or an error's number."""
        if opcode == INIT:
            flags = BIG_WRITES | ASYNC_DIRECT | MAX_PAGES
            head = struct.pack("=IIIIHHII", 7, 31, 0, flags, 64, 48, LARGEST, 1)
            return head + struct.pack("=HHI", LARGEST // 4096, 0, 0) + bytes(28)
        if opcode == LOOKUP:
            found = NAMES.get(bytes(asked).rstrip(b"\0"))
            if found is None:
                return errno.ENOENT
            return struct.pack("=QQQQII", found, 0, 3600, 3600, 0, 0) + self._attributes(found)
        if opcode in (GETATTR, SETATTR):
            return struct.pack("=QII", 3600, 0, 0) + self._attributes(node)
        if opcode == OPEN:
            return struct.pack("=QIi", 0, DIRECT, 0)
        if opcode in (RELEASE, FLUSH):
            return b""
        if opcode == READ:
            offset, size = struct.unpack_from("=QI", asked, 8)
            return bytes(self.content[offset : offset + size]) if node == DISK else b""
        if opcode == WRITE:
            offset, size = struct.unpack_from("=QI", asked, 8)
            self._write(node, offset, bytes(asked[40 : 40 + size]))
            return struct.pack("=II", size, 0)
        if opcode == FSYNC:
            self._record(Flush())
            return b""
        return errno.ENOSYS

    def _write(self, node: int, offset: int, data: bytes) -> None:
        if node == MARKS:
            self._record(Mark(data.decode()))
            return
        self._record(Write(offset, data))
        self._put(offset, data)

    def _record(self, record: Record) -> None:
        if self.records is not None:
            self.records.append(record)

    def _attributes(self, node: int) -> bytes:
        mode = 0o40755 if node == ROOT else 0o100600
        size = len(self.content) if node == DISK else 0
        times = (0, 0, 0, 0, 0, 0)
        sizes = (node, size, size // 512)
        return struct.pack("=QQQQQQIIIIIIIIII", *sizes, *times, mode, 1, 0, 0, 0, 4096, 0)
