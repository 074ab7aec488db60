"""Clients of the block device that keep no rule, beside honest ones that time and check.

``SARDONYX_CONNECTIONS=100000`` makes more of them. ``nbd_fuzz.py`` tries a server that runs.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import struct
from contextlib import ExitStack
from pathlib import Path

import pytest
from nbd import FLUSH, READ, TRIM, WRITE, ZEROES, Client
from nbd_fuzz import (
    EXPORT_NAME,
    FIXED_WITHOUT_ZEROES,
    GO,
    META_SET,
    STRUCTURED,
    Fuzzer,
    connected,
    honest,
    named,
    option,
    request,
    resident,
    standing,
)
from sardonyx import _core
from test_store_device import BLOCK, child_of, serving

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(not shutil.which("nbdkit"), reason="no nbdkit; `make system-all`"),
]
CONNECTIONS = int(os.environ.get("SARDONYX_CONNECTIONS", "2000"))
SIZE = 64 << 20
#: Flags of a request, and the commands that may have each.
FUA, NO_HOLE, DF, REQ_ONE, FAST_ZERO = 1, 2, 4, 8, 16
CACHE, BLOCK_STATUS = 5, 7


def test_every_command_with_every_flag_is_answered_and_ends_nobody(tmp_path: Path) -> None:
    """Each of the commands with each set of flags, once the client has agreed on each handshake."""
    # The protocol lets every command ask to be on the disk when it is answered.
    allowed = dict.fromkeys((READ, WRITE, FLUSH, TRIM), FUA)
    allowed[ZEROES] = FUA | NO_HOLE | FAST_ZERO
    with serving(tmp_path, "--size", "1M"):
        client = Client(tmp_path / "s")
        for kind in (READ, WRITE, FLUSH, TRIM, CACHE, ZEROES, BLOCK_STATUS):
            for flags in range(32):
                length = 0 if kind == FLUSH else BLOCK
                data = b"d" * BLOCK if kind == WRITE else b""
                refused = 0
                try:
                    client.ask(kind, 0, length, data, flags)
                except ConnectionError:
                    raise
                except OSError as error:
                    refused = error.errno or 0
                wanted = 0
                if kind == ZEROES and flags & ~allowed[kind] == 0:
                    # What keeps its room is written, no faster than by the client.
                    slow = flags & FAST_ZERO and flags & NO_HOLE
                    wanted = errno.EOPNOTSUPP if slow else 0
                elif kind not in allowed or flags & ~allowed[kind]:
                    wanted = errno.EINVAL
                assert refused == wanted, (kind, flags)
        client.ask(WRITE, 0, data=b"x" * BLOCK)
        assert client.ask(READ, 0, BLOCK) == b"x" * BLOCK
        client.ask(ZEROES, 0, BLOCK, flags=FAST_ZERO)
        assert client.ask(READ, 0, BLOCK) == bytes(BLOCK)


def test_a_client_that_hangs_up_before_its_answer_ends_nobody_else(tmp_path: Path) -> None:
    """It asks what is where, of a device with holes, and goes: nbdkit 1.32 sends into nothing."""
    context = b"base:allocation"
    query = struct.pack(">I", 0) + struct.pack(">II", 1, len(context)) + context
    hello = struct.pack(">I", FIXED_WITHOUT_ZEROES) + option(STRUCTURED)
    hello += option(META_SET, query) + option(GO, named(b""))
    with serving(tmp_path, "--size", "1M"):
        client = Client(tmp_path / "s")
        for number in range(0, 256, 2):
            client.ask(WRITE, number * BLOCK, data=b"x" * BLOCK)
        for _ in range(50):
            with connected(tmp_path / "s") as gone:
                gone.sendall(hello)
                gone.recv(4096)
                gone.sendall(request(BLOCK_STATUS, 0, 1 << 20) * 20)
        assert client.ask(READ, 2 * BLOCK, BLOCK) == b"x" * BLOCK
        assert Client(tmp_path / "s").ask(READ, BLOCK, BLOCK) == bytes(BLOCK)


def test_a_long_request_gives_way(tmp_path: Path) -> None:
    """Zeros over all of the device, kept as contents, while others read and write."""
    with serving(tmp_path, "--size", str(SIZE)):
        # There are 256 turns, and each lets in whoever waits; on a busy machine few may. The first
        # that is answered beside them may have come before them, and the last after.
        assert any(_asked_beside_zeros(tmp_path / "s") > 2 for _ in range(20))


def _asked_beside_zeros(place: Path) -> int:
    """Reads that are answered while one request for zeros is."""
    with connected(place) as slow:
        slow.sendall(struct.pack(">I", FIXED_WITHOUT_ZEROES) + option(EXPORT_NAME))
        slow.recv(28, socket.MSG_WAITALL)
        slow.sendall(request(ZEROES, 0, SIZE, flags=NO_HOLE))
        client, asked = Client(place), 0
        slow.setblocking(False)
        while True:
            client.ask(READ, SIZE - BLOCK, BLOCK)
            asked += 1
            try:
                slow.recv(16)
            except BlockingIOError:
                continue
            return asked


def test_the_number_of_clients_has_no_end_that_is_ours(tmp_path: Path) -> None:
    """Hundreds that say nothing, then one that is served."""
    with serving(tmp_path, "--size", "1M"), ExitStack() as silent:
        for _ in range(400):
            silent.enter_context(connected(tmp_path / "s"))
        assert Client(tmp_path / "s").ask(READ, 0, BLOCK) == bytes(BLOCK)


def test_a_client_without_rules_beside_honest_ones(tmp_path: Path) -> None:
    with serving(tmp_path, "--size", str(SIZE)) as process:
        server, fuzzer = child_of(process), Fuzzer(tmp_path / "s", SIZE, seed=1)
        memory = []
        with standing(tmp_path / "s"), honest(tmp_path / "s", SIZE) as seen:
            for number in range(CONNECTIONS):
                fuzzer.connection()
                if number % (CONNECTIONS // 10) == 0:
                    memory.append(resident(server))
        assert seen.problem is None, repr(seen.problem)
        # Each was tried, and honest clients were served beside them.
        assert min(fuzzer.ended.values()) > CONNECTIONS // 10, fuzzer.ended
        assert min(len(seen.old), len(seen.new)) > CONNECTIONS // 50, seen.shown()
        # A connection's largest request is 32 MiB, and few are there at a time.
        assert max(memory) < 512 << 20, memory
    assert json.loads((tmp_path / "r").read_text())["not_flushed"] is None
    assert json.loads(_core.store_check(str(tmp_path / "d"), None))["faults"] == []
