"""Workers on this machine: processes that live as long as the sweep, one a thread of the schedule.

A worker that dies loses what it had not yet written, and nothing else: its numbers come back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from sardonyx import _core

#: This many workers may be killed, one after the other, before one is ready.
STARTS = 50


class Died(Exception):
    """A worker has ended by itself, or was ended."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status

    @property
    def how(self) -> str:
        if self.status < 0:
            return f"was ended by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


@dataclass(eq=False, slots=True)
class Batch:
    """Numbers for one worker to run, each with the name of its point, and how far it is."""

    numbers: Sequence[int]
    names: Sequence[str]
    done: int = 0
    worker: Process | None = None
    #: The end of its worker, if the worker ended before it was through.
    died: Died | None = None
    #: Points not yet written then, of this batch or of an earlier one.
    lost: tuple[int, ...] = ()
    cancelled: bool = False

    @property
    def total(self) -> int:
        return len(self.numbers)

    def cancel(self) -> None:
        """Nobody waits any more: the worker writes what is finished and ends."""
        self.cancelled = True
        if self.worker is not None:
            self.worker.close()


class Process:
    """One worker."""

    def __init__(self, setup: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sardonyx.sweeps.work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            process_group=0,  # Ctrl-C is for the sweep, which says when its workers end
        )
        #: Points that are running, or finished and not yet written.
        self.unkept: dict[int, None] = {}
        self._say(setup)
        for _ in self.answers():
            break

    @property
    def pid(self) -> int:
        return self._process.pid

    def _say(self, said: Mapping[str, Any]) -> None:
        pipe: IO[str] | None = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps(said) + "\n")
            pipe.flush()
        except (OSError, ValueError):
            raise Died(self._process.wait()) from None

    def answers(self) -> Iterator[dict[str, Any]]:
        """What it says, until it has ended what it was asked."""
        pipe = self._process.stdout
        assert pipe is not None
        for line in pipe:
            try:
                said: dict[str, Any] = json.loads(line)
            except ValueError:
                break  # killed within a line
            if "stop" in said:
                raise _core.SardonyxError(said["stop"])
            for number in said.get("kept", ()):
                self.unkept.pop(number, None)
            yield said
            if "ended" in said:
                return
        raise Died(self._process.wait())

    def ask(self, said: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Answers to one request."""
        self.unkept.update(dict.fromkeys(said.get("run", ())))
        self._say(said)
        yield from self.answers()

    def close(self) -> None:
        """End of its input: it writes what is finished and ends."""
        pipe = self._process.stdin
        if pipe is not None:
            with suppress(OSError, ValueError):
                pipe.close()

    def wait(self, seconds: float) -> None:
        """Wait for its end, and end it after so many seconds."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass
class Local:
    """The workers of one sweep. ``heard`` gets every answer of every worker."""

    setup: Mapping[str, Any]
    heard: Callable[[Mapping[str, Any]], None]
    memory: int = 0
    _idle: SimpleQueue[Process] = field(default_factory=SimpleQueue)
    _all: list[Process] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, batch: Batch) -> Batch:
        """Have a worker run the batch; a new one if none is idle."""
        try:
            batch.worker = self._idle.get_nowait()
        except Empty:
            batch.worker = self._started()
        if batch.cancelled:
            batch.worker.close()
        try:
            asked = {"run": list(batch.numbers), "names": list(batch.names)}
            for said in batch.worker.ask(asked):
                batch.done += "point" in said
                self.memory = max(self.memory, said.get("memory", 0))
                self.heard(said)
        except Died as died:
            batch.died, batch.lost = died, tuple(batch.worker.unkept)
            self._all.remove(batch.worker)
        else:
            self._idle.put(batch.worker)
        return batch

    def _started(self) -> Process:
        for attempt in range(STARTS):  # whoever kills workers may kill a new one
            try:
                process = Process(self.setup)
            except Died as died:
                if attempt == STARTS - 1 or died.status >= 0:
                    raise _core.SardonyxError(
                        f"a worker {died.how} before its first point; give fewer --jobs"
                    ) from died
            else:
                with self._lock:
                    self._all.append(process)
                return process
        raise AssertionError

    def keep(self) -> tuple[int, ...]:
        """Have all idle workers write what is finished; the answer: numbers that were lost."""
        lost: list[int] = []
        alive = []
        while not self._idle.empty():
            process = self._idle.get()
            try:
                for said in process.ask({"keep": True}):
                    self.heard(said)
            except Died as died:
                if died.status >= 0:
                    raise _core.SardonyxError(f"a worker {died.how} by itself") from died
                lost += process.unkept
                self._all.remove(process)
            else:
                alive.append(process)
        for process in alive:
            self._idle.put(process)
        return tuple(lost)

    def close(self) -> None:
        """End all workers; each writes what is finished."""
        for process in self._all:
            process.close()
        for process in self._all:
            process.wait(30)


def available() -> int:
    """Bytes of memory that may still be taken: the machine's, or what a control group leaves."""
    found = []
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(each for each in lines if each.startswith("MemAvailable"))
        found.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next(each for each in lines if each.startswith("0::"))
        place = Path("/sys/fs/cgroup", own.strip().removeprefix("0::/"))
        limit = (place / "memory.max").read_text().strip()
        if limit != "max":
            found.append(int(limit) - int((place / "memory.current").read_text()))
    return min(found, default=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
