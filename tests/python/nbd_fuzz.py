"""A client of the NBD protocol that keeps none of its rules, beside honest ones that check.

``python tests/python/nbd_fuzz.py SOCKET --process PID --connections 100000`` tries a server that
runs, be it ours or ``nbdkit memory 64M``, and prints what honest clients saw meanwhile.

Fuzzed requests change the first half of the device only, or reach beyond its end, so that honest
clients know what the second half holds. Meanwhile one connection says nothing, one is stuck in its
handshake, one in the payload of a write, and one never reads its answers.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from nbd import FLUSH, READ, TRIM, WRITE, ZEROES, Client

HELLO = 18
OPTION, REQUEST = b"IHAVEOPT", 0x25609513
FIXED_WITHOUT_ZEROES = 3
EXPORT_NAME, ABORT, LIST, INFO, GO, STRUCTURED, META_LIST, META_SET = 1, 2, 3, 6, 7, 8, 9, 10
#: Reads, writes, ends, flushes, trims, caches, zeroes, block states, and numbers without a command.
COMMANDS = (*range(9), 9, 200, 0xFFFF)
#: The most bytes that a fuzzed write or option really sends.
SENT = 1 << 16
BLOCK = 4096


def connected(path: Path) -> socket.socket:
    """A connection whose server has said hello."""
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(5)
    made.connect(str(path))
    return made


def option(kind: int, data: bytes = b"", length: int | None = None) -> bytes:
    """An option of the handshake, whose length may lie."""
    return OPTION + struct.pack(">II", kind, len(data) if length is None else length) + data


def request(
    kind: int, offset: int, length: int, data: bytes = b"", flags: int = 0, cookie: int = 7
) -> bytes:
    """A request, whose length may lie."""
    return struct.pack(">IHHQQI", REQUEST, flags, kind, cookie, offset, length) + data


class Fuzzer:
    """Connections that one seed decides."""

    def __init__(self, path: Path, size: int, seed: int) -> None:
        self.path = path
        self.size = size
        self.draw = random.Random(seed)
        #: How each connection ended, by name.
        self.ended: dict[str, int] = {}

    def connection(self) -> None:
        """One connection, from its beginning to whatever end it takes."""
        with suppress(OSError), connected(self.path) as client:  # the server may hang up any time
            how = self.draw.choice([self.garbage, self.options, self.requests, self.requests])
            self.ended[how.__name__] = self.ended.get(how.__name__, 0) + 1
            how(client)
            if self.draw.random() < 0.3:  # read what there is
                client.settimeout(0.01)
                client.recv(1 << 16)

    def garbage(self, client: socket.socket) -> None:
        """Bytes of no meaning, or a handshake that is cut off."""
        wanted = struct.pack(">I", FIXED_WITHOUT_ZEROES) + option(EXPORT_NAME)
        cut = wanted[: self.draw.randrange(len(wanted))]
        client.sendall(self.draw.choice([cut, self.draw.randbytes(self.draw.randrange(200))]))

    def options(self, client: socket.socket) -> None:
        """Options in any order, of any length."""
        flags = self.draw.choice([0, 1, 2, 3, 3, 3, 0xFFFFFFFF])
        client.sendall(struct.pack(">I", flags))
        for _ in range(self.draw.randrange(1, 6)):
            kind = self.draw.choice(
                [EXPORT_NAME, ABORT, LIST, 4, 5, INFO, GO, STRUCTURED, META_LIST, META_SET, 99]
            )
            data = self.draw.choice([b"", named(b""), named(b"x" * 300), self.draw.randbytes(40)])
            length = self.draw.choice([None, None, 0, 1, 4096, 1 << 20, 0xFFFFFFFF])
            client.sendall(option(kind, data, length))

    def requests(self, client: socket.socket) -> None:
        """A handshake as it should be, then commands with any flag, place and length."""
        hello = struct.pack(">I", FIXED_WITHOUT_ZEROES)
        if self.draw.random() < 0.5:
            client.sendall(hello + option(EXPORT_NAME))
        else:
            steps = [option(STRUCTURED)] * self.draw.randrange(2)
            if self.draw.random() < 0.5:
                context = b"base:allocation"
                query = struct.pack(">I", 0) + struct.pack(">II", 1, len(context)) + context
                steps.append(option(META_SET, query))
            client.sendall(hello + b"".join([*steps, option(GO, named(b""))]))
        client.recv(4096)
        for _ in range(self.draw.randrange(1, 12)):
            client.sendall(self.command())

    def command(self) -> bytes:
        """One request."""
        draw, half = self.draw, self.size // 2
        kind = draw.choice(COMMANDS)
        flags = draw.choice([0, 0, 1 << draw.randrange(16), draw.getrandbits(16)])
        lengths = [0, 1, 511, BLOCK, BLOCK + 1, SENT, half // 2, 1 << 25, (1 << 32) - 1]
        length = draw.choice(lengths)
        beyond = [self.size, self.size - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - length]
        offset = draw.choice([0, draw.randrange(half), *beyond]) % (1 << 64)
        if offset < self.size and offset + length <= self.size:
            length = min(length, max(half - offset, 0))  # the second half is the honest clients'
        data = b""
        if kind == WRITE:
            # What does not come is waited for; what is more is taken for the next request.
            sent = draw.choice([length, length, draw.randrange(SENT)])
            data = draw.choice([b"\0", b"x", draw.randbytes(1)]) * min(sent, SENT)
        magic = draw.choice([REQUEST] * 20 + [0, 0x12345678])
        return struct.pack(">IHHQQI", magic, flags, kind, 7, offset, length) + data


def named(name: bytes) -> bytes:
    """The data of GO and INFO: an export's name, and no questions."""
    return struct.pack(">I", len(name)) + name + struct.pack(">H", 0)


@dataclass
class Seen:
    """What honest clients saw: seconds of each request, and of each new connection's first one."""

    old: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)
    problem: BaseException | None = None

    def shown(self) -> dict[str, float]:
        """Counts, and the largest and nearly largest of the times in milliseconds."""
        found: dict[str, float] = {}
        for name, times in (("old", sorted(self.old)), ("new", sorted(self.new))):
            found |= {f"{name}_count": len(times), f"{name}_most_ms": 1e3 * times[-1]}
            found |= {f"{name}_p999_ms": 1e3 * times[len(times) * 999 // 1000]}
        return found


@contextmanager
def honest(path: Path, size: int, seed: int = 1) -> Iterator[Seen]:
    """Two clients at work on the second half, one on an old connection, one on ever new ones."""
    seen, stop, draw = Seen(), Event(), random.Random(seed)
    first, blocks = size // 2 // BLOCK, size // 2 // BLOCK // 2

    def old() -> None:
        client, held = Client(path), [bytes(BLOCK)] * blocks
        while not stop.is_set():
            number = draw.randrange(blocks)
            at, kind = (first + number) * BLOCK, draw.choice([READ, READ, WRITE, TRIM, ZEROES])
            data = draw.randbytes(16) * (BLOCK // 16) if kind == WRITE else b""
            began = time.monotonic()
            got = client.ask(kind, at, BLOCK, data)
            seen.old.append(time.monotonic() - began)
            if kind == READ:
                assert got == held[number], f"block {number} holds something else"
            else:
                held[number] = data or bytes(BLOCK)
        for number, content in enumerate(held):
            assert client.ask(READ, (first + number) * BLOCK, BLOCK) == content, number

    def new() -> None:
        while not stop.is_set():
            began = time.monotonic()
            client = Client(path)
            at = size - BLOCK
            client.ask(WRITE, at, data=b"n" * BLOCK)
            assert client.ask(READ, at, BLOCK) == b"n" * BLOCK
            seen.new.append(time.monotonic() - began)
            client.close()

    def noting(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            seen.problem = error

    threads = [Thread(target=noting, args=(work,), daemon=True) for work in (old, new)]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=120)
        if seen.problem is None and any(thread.is_alive() for thread in threads):
            seen.problem = TimeoutError("an honest client was not served")


@contextmanager
def standing(path: Path) -> Iterator[None]:
    """Connections that stand still: in hello, in the handshake, in a payload, before answers."""
    silent, half_open, writer, deaf = (connected(path) for _ in range(4))
    with silent, half_open, writer, deaf:
        half_open.sendall(struct.pack(">I", FIXED_WITHOUT_ZEROES) + OPTION)
        for client in (writer, deaf):
            client.sendall(struct.pack(">I", FIXED_WITHOUT_ZEROES) + option(EXPORT_NAME))
        writer.sendall(request(WRITE, 0, 1 << 20, b"H" * 1000))
        deaf.settimeout(0.2)
        with suppress(TimeoutError):
            for _ in range(500):
                deaf.sendall(request(READ, 0, 1 << 20))
        yield


def resident(process: int) -> int:
    """Bytes of memory that a process has."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Try a server that runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket", type=Path)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--process", type=int, help="the server's number, for its memory")
    asked = parser.parse_args()
    client = Client(asked.socket)
    client.ask(FLUSH)
    fuzzer = Fuzzer(asked.socket, client.size, asked.seed)
    memory = []
    began = time.monotonic()
    with standing(asked.socket), honest(asked.socket, client.size) as seen:
        for number in range(asked.connections):
            fuzzer.connection()
            if asked.process and number % (asked.connections // 10 or 1) == 0:
                memory.append(resident(asked.process) >> 20)
    print(json.dumps(fuzzer.ended | seen.shown() | {"seconds": time.monotonic() - began}))
    print("memory, MiB:", *memory)
    if seen.problem is not None:
        raise seen.problem


if __name__ == "__main__":
    main()
