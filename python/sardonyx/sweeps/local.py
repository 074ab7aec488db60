"""Workers on this machine: a pool of processes that live as long as the sweep.

A worker that dies ends its pool, and what is not done is run by another one. Every finished point
is in its file by then.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

from sardonyx.runs.scheduler import LOOK_EVERY
from sardonyx.sweeps import work
from sardonyx.sweeps.work import Ran, Setup

#: Points that are given out for each worker: one runs, and one waits.
AHEAD = 2


class Died(Exception):
    """A worker died; ``lost`` are the numbers of points that were given out then."""

    def __init__(self, lost: list[int]) -> None:
        super().__init__(lost)
        self.lost = lost


@contextmanager
def pool(setup: Setup, workers: int) -> Iterator[ProcessPoolExecutor]:
    """Workers of a sweep. After an error they end at once, and within a point."""
    context = get_context("spawn")
    ending, alive = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(workers, context, work.start, (setup, ending))
    with ending, alive:
        try:
            yield executor
        except BaseException:
            alive.close()
            executor.shutdown(cancel_futures=True)
            raise
        executor.shutdown()


@contextmanager
def spawning() -> Iterator[None]:
    """Processes that start meanwhile leave Ctrl-C to us, and do not import the user's script, which
    would run the sweep again.
    """
    main = sys.modules["__main__"]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(
    setup: Setup,
    workers: int,
    points: Iterator[tuple[int, str]],
    heard: Callable[[int, Ran], None],
    look: Callable[[], None],
) -> None:
    """Have workers run points, by number and name, and say how each went; ``Died`` names those that
    were lost with a worker.
    """
    running: dict[Future[Ran], int] = {}
    memory, lost = 0, []
    try:
        with pool(setup, workers) as executor:
            while True:
                while len(running) < AHEAD * workers and not (running and memory > available()):
                    if (point := next(points, None)) is None:
                        break
                    lost = [point[0]]
                    with spawning():
                        running[executor.submit(work.run, *point)] = point[0]
                    lost = []
                if not running:
                    return
                for future in wait(running, LOOK_EVERY, FIRST_COMPLETED).done:
                    ran = future.result()
                    memory = max(memory, ran.memory)
                    heard(running.pop(future), ran)
                look()
    except BrokenProcessPool as error:
        raise Died([*running.values(), *lost]) from error


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
