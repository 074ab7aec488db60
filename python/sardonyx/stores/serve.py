"""``store serve``: a deduplicating store as a network block device, by nbdkit.

nbdkit speaks the protocol and loads our plugin (crates/stores/nbd), which tells its counters on a
pipe. Here nbdkit is started, watched and ended. docs/store/device.md explains the rest.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket as sockets
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import StoreServe
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.scheduler import tell as say
from sardonyx.runs.stores import known
from sardonyx.signals import ending_patiently

PLUGIN = Path(__file__).parents[1] / "libsardonyx_nbd.so"
#: The longest name of a socket, by Linux.
LONGEST_SOCKET = 107
LOOK_EVERY = 0.1
#: Lines of nbdkit's that are shown; the rest is counted.
MOST_NOTES = 100
#: Times of requests within the device, as counters and the report have them, each with its
#: description.
TIMES = {
    "read_time": "time of a read",
    "write_time": "of a write",
    "discard_time": "of zeros or a trim",
    "flush_time": "of a flush",
}
#: A hint to clients that do not ask for less.
PREFERRED = 4096


def answer(asked: StoreServe, watch: Watch | None) -> Answer:
    """What the device was asked until somebody ended it, and what that takes."""
    folder, trace = asked.dir, asked.trace
    nbdkit = shutil.which("nbdkit")
    if nbdkit is None:
        raise _core.SardonyxError("no nbdkit in PATH; on Debian: apt-get install nbdkit")
    check_socket(asked.socket)
    check_folder(folder)
    if trace is not None and os.path.lexists(trace):
        raise _core.SardonyxError(f"--trace {trace}: is there already; name a new file")
    settings = {
        "dir": str(folder.absolute()),
        "design": asked.design,
        "size": asked.size,
        "block": asked.block,
        "trace": None if trace is None else str(trace.absolute()),
        "blocksize-minimum": 1,
        "blocksize-preferred": PREFERRED,
    }
    given = [f"{name}={value}" for name, value in settings.items() if value is not None]
    # Its end waits for the disk, which has to hold what was flushed.
    with ending_patiently(), served(nbdkit, asked.socket.absolute(), given) as server:
        wait(server, watch)
    if server.ready is None:
        raise _core.SardonyxError("; ".join(server.said) or "nbdkit ended and said nothing")
    server.tell_notes(watch)
    if server.noted > MOST_NOTES:
        say(watch, f"note: nbdkit said {server.noted - MOST_NOTES:,} lines more")
    report = reported(server)
    errors = []
    if server.end is None:
        code = server.process.returncode
        how = f"signal {-code}" if code < 0 else f"status {code}"
        errors.append(f"nbdkit ended with {how}; what was flushed is in {folder}")
    elif report["not_traced"]:
        errors.append(f"--trace {trace}: not all was written: {report['not_traced']}")
    elif report["not_flushed"]:
        errors.append(f"not flushed at the end: {report['not_flushed']}")
    return Answer("store serve", report, int(bool(errors)), errors=errors)


def tell(people: Console, answer: Answer) -> None:
    people.print(table_of(answer))
    people.print(f"energy from assumed inputs: {answer['assumed']}", style="dim", soft_wrap=True)


def check_socket(path: Path) -> None:
    """An error unless a socket can be made there."""
    name = str(path.absolute())
    if len(os.fsencode(name)) > LONGEST_SOCKET:
        raise _core.SardonyxError(
            f"--socket {path}: a socket's whole name has at most {LONGEST_SOCKET} bytes, and this "
            f"has {len(os.fsencode(name))}; name a shorter one"
        )
    if not path.absolute().parent.is_dir():
        raise _core.SardonyxError(f"--socket {path}: its directory does not exist; make it first")
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise _core.SardonyxError(f"--socket {path}: exists and is not a socket; name another file")
    with sockets.socket(sockets.AF_UNIX) as client:
        try:
            client.connect(name)
        except ConnectionRefusedError:
            raise _core.SardonyxError(
                f"--socket {path}: is left from a server that has ended; remove it: rm {path}"
            ) from None
    raise _core.SardonyxError(f"--socket {path}: a server listens there; name another file")


def check_folder(path: Path) -> None:
    """An error unless a store can be kept there."""
    if path.exists() and not path.is_dir():
        raise _core.SardonyxError(
            f"--dir {path}: is no folder; name one, or one that is to be made"
        )
    if path.is_dir() and not os.access(path, os.W_OK):
        raise _core.SardonyxError(
            f"--dir {path}: cannot be written, and a store is written while it is served; serve a "
            f"copy of it: cp -r {path} copy"
        )


@dataclass
class Server:
    """nbdkit at work, and what its plugin has told."""

    process: subprocess.Popen[str]
    socket: Path
    started: float = field(default_factory=time.monotonic)
    ready: dict[str, Any] | None = None
    last: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    #: nbdkit's output before it was ready.
    said: list[str] = field(default_factory=list)
    #: What it said later and nobody has shown yet, and how much it said in all.
    notes: list[str] = field(default_factory=list)
    noted: int = 0

    def hear(self, told: IO[str]) -> None:
        """Take lines of counters to their end."""
        for line in told:
            with suppress(json.JSONDecodeError):  # cut off by the end of nbdkit
                message = json.loads(line)
                match message["what"]:
                    case "ready":
                        self.ready = message
                    case "end":
                        self.end = message
                self.last = message.get("counters", self.last)

    def listen(self, said: IO[str]) -> None:
        """Take what nbdkit says: errors of the start are ours, later ones are notes.

        A client can make it say a line for each request, so nothing here waits for who reads ours:
        nbdkit would wait too, and with it all clients.
        """
        for line in said:
            words = re.sub(r"^nbdkit: ([\w.\[\]-]+: )?(error: )?", "", line.strip())
            if self.ready is None:
                self.said.append(words)
                continue
            self.noted += 1
            if self.noted <= MOST_NOTES:
                self.notes.append(words)

    def tell_notes(self, watch: Watch | None) -> None:
        """Say what has come since the last time."""
        while self.notes:
            say(watch, f"note: {self.notes.pop(0)}")


@contextmanager
def served(nbdkit: str, socket: Path, settings: list[str]) -> Iterator[Server]:
    """nbdkit from its start to its end; it ends with us, whatever ends us."""
    ours, its = os.pipe()
    its_life, our_life = os.pipe()  # which ends when we close it, and when we are killed
    command = [nbdkit, "--foreground", "--unix", str(socket), "--filter=blocksize-policy"]
    command += [str(PLUGIN), *settings, f"counters=/dev/fd/{its}", f"life=/dev/fd/{its_life}"]
    with (
        open(ours, encoding="utf-8", errors="replace") as told,
        open(our_life, "wb") as life,
    ):
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(its, its_life),
                start_new_session=True,  # Ctrl-C is for us; we end it and hear its last counters
                text=True,
                errors="replace",
            )
        finally:
            os.close(its)
            os.close(its_life)
        server = Server(process, socket)
        assert process.stderr is not None
        threads = [
            Thread(target=server.hear, args=(told,), daemon=True),
            Thread(target=server.listen, args=(process.stderr,), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield server
        finally:
            life.close()
            if server.ready is None:
                process.terminate()  # it does not look at its life yet
            process.wait()
            for thread in threads:
                thread.join()
            if server.ready is not None:
                socket.unlink(missing_ok=True)


def wait(server: Server, watch: Watch | None) -> None:
    """Show counters until the server ends or somebody wants it to end."""
    announced = False
    shown = Task("opening", lambda _: None, state="running")
    try:
        while server.process.poll() is None:
            if server.ready is not None and not announced:
                counters = server.ready["counters"]
                say(
                    watch,
                    f"serving nbd+unix:///?socket={server.socket} ({counters['design']}, "
                    f"{counters['size_bytes']:,} bytes); Ctrl-C ends it",
                )
                announced = True
            server.tell_notes(watch)
            if server.last is not None:
                shown.label = _line(server.last)
            if watch is not None:
                watch([shown])
            time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        if server.ready is None:
            raise


def _line(counters: dict[str, Any]) -> str:
    told, blocks = counters["told_blocks"], blocks_of(counters)
    if told < blocks:
        return f"served, not yet counted: the design knows {told:,} of {blocks:,} blocks"
    metrics = metrics_of(counters)
    parts = [
        f"{metrics['writes']:,} blocks written, {metrics['duplicate_share']:.1%} duplicates",
        f"{metrics['reads']:,} read",
        f"{metrics['cycles']:,} cycles",
        f"{metrics['energy_nj'] / 1e6:,.3g} mJ",
        f"{metrics['operations_per_second'] / 1e6:.3f} M blocks/s by its clock",
    ]
    return " · ".join(parts)


def blocks_of(counters: dict[str, Any]) -> int:
    """Blocks of the device."""
    return int(counters["size_bytes"]) // int(counters["block_bytes"])


def metrics_of(counters: dict[str, Any]) -> dict[str, Any]:
    """Flat figures of the blocks that the design has handled, by its own clock."""
    totals, cost = counters["totals"], counters["totals"]["cost"]
    operations = totals["writes"] + totals["reads"] + totals["deletes"]
    seconds = cost["time_ns"] / 1e9
    stored = totals["stored_blocks"]
    return {
        "writes": totals["writes"],
        "duplicate_writes": totals["duplicate_writes"],
        "duplicate_share": totals["duplicate_writes"] / max(totals["writes"], 1),
        "reads": totals["reads"],
        "deletes": totals["deletes"],
        "live_blocks": totals["live_blocks"],
        "stored_blocks": stored,
        "ratio": totals["live_blocks"] / stored if stored else None,
        "cycles": cost["cycles"],
        "seconds": seconds,
        "operations_per_second": operations / seconds if seconds else 0.0,
        "bytes_per_second": operations * counters["block_bytes"] / seconds if seconds else 0.0,
        "energy_nj": cost["energy_nj"],
    }


def reported(server: Server) -> dict[str, Any]:
    """What there is to say at the end."""
    counters = server.last or {}
    energy = {name: value for name, value in counters["totals"]["energy_by"] if value}
    return {
        "design": counters["design"],
        "size_bytes": counters["size_bytes"],
        "block_bytes": counters["block_bytes"],
        "requests": counters["requests"],
        **{time: counters[time] for time in TIMES},
        "not_counted_blocks": blocks_of(counters) - counters["told_blocks"],
        "metrics": metrics_of(counters),
        "energy_by_nj": energy,
        "assumed": known(counters["design"]).energy_from,
        "not_flushed": server.end and server.end["more"]["not_flushed"],
        "not_traced": server.end and server.end["more"]["not_traced"],
    }


def table_of(report: dict[str, Any]) -> Table:
    """The report, for people."""
    table = Table(box=None, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right")
    requests, metrics = report["requests"], report["metrics"]
    ratio = "-" if metrics["ratio"] is None else f"{metrics['ratio']:.2f}x"
    rows = {
        "design": report["design"],
        "requests to read": f"{requests['reads']:,} ({requests['read_bytes']:,} bytes)",
        "requests to write": f"{requests['writes']:,} ({requests['written_bytes']:,} bytes)",
        "zeros, trims, flushes": f"{requests['zeroes']:,}, {requests['trims']:,}, "
        f"{requests['flushes']:,}",
        "blocks written": f"{metrics['writes']:,}",
        "of them duplicates": f"{metrics['duplicate_writes']:,} ({metrics['duplicate_share']:.1%})",
        "blocks read, deleted": f"{metrics['reads']:,}, {metrics['deletes']:,}",
        "blocks live, distinct": f"{metrics['live_blocks']:,}, {metrics['stored_blocks']:,}",
        "ratio": ratio,
        "cycles": f"{metrics['cycles']:,}",
        "time by its clock": f"{metrics['seconds'] * 1e3:,.3f} ms",
        "blocks a second": f"{metrics['operations_per_second']:,.0f}",
        "energy": f"{metrics['energy_nj'] / 1e6:,.4g} mJ",
    }
    for name, value in rows.items():
        table.add_row(name, Text(value))
    for key, name in TIMES.items():
        if (of := report[key])["count"]:
            table.add_row(name, Text(_quantiles(of)))
    if report["not_counted_blocks"]:
        told = f"it did not learn of {report['not_counted_blocks']:,} blocks that were there"
        table.add_row("nothing counted", Text(told))
    for name, value in report["energy_by_nj"].items():
        table.add_row(f"  {name}", Text(f"{value / 1e6:,.4g} mJ"))
    return table


def _quantiles(of: dict[str, Any]) -> str:
    parts = [
        f"{name} {of[key]:,.0f}"
        for name, key in (
            ("median", "median_us"),
            ("99 %", "p99_us"),
            ("99.9 %", "p999_us"),
            ("longest", "most_us"),
        )
    ]
    return ", ".join(parts) + " us"
