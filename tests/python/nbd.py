"""A small client of the NBD protocol: what a test needs to know exactly what was answered when."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

READ, WRITE, END, FLUSH, TRIM, ZEROES = 0, 1, 2, 3, 4, 6
#: Flags of a request: on the disk when answered; keep the space.
FUA, NO_HOLE = 1, 2


class Client:
    """One connection, one request at a time. An end of the server is a ``ConnectionError``."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        magic, _, _ = struct.unpack(">8s8sH", self._take(18))
        assert magic == b"NBDMAGIC"
        fixed_without_zeroes, export_name = 3, 1
        self._socket.sendall(
            struct.pack(">I8sII", fixed_without_zeroes, b"IHAVEOPT", export_name, 0)
        )
        self.size, _ = struct.unpack(">QH", self._take(10))

    def close(self) -> None:
        """Leave as the protocol wants it."""
        self._socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, END, 0, 0, 0))
        self._socket.close()

    def ask(
        self, kind: int, offset: int = 0, length: int = 0, data: bytes = b"", flags: int = 0
    ) -> bytes:
        """The answer's bytes; an ``OSError`` with the server's number if it refuses."""
        header = struct.pack(">IHHQQI", 0x25609513, flags, kind, 7, offset, length or len(data))
        self._socket.sendall(header + data)
        magic, error, _ = struct.unpack(">IIQ", self._take(16))
        assert magic == 0x67446698
        if error:
            raise OSError(error, "the server refuses")
        return self._take(length) if kind == READ else b""

    def _take(self, length: int) -> bytes:
        taken = b""
        while len(taken) < length:
            part = self._socket.recv(length - len(taken))
            if not part:
                raise ConnectionResetError("the server has gone")
            taken += part
        return taken
