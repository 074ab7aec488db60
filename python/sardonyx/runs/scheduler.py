"""The one schedule of native calls: so many at once on threads, watched, cancelled together.

A native call releases the interpreter's lock, so threads are enough. Left out: what is called
(``jobs``, ``crashes``) and how progress looks (``cli.progress``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from threading import enumerate as enumerate_threads
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from sardonyx import _core

#: Seconds between two looks at how far the tasks are.
LOOK_EVERY = 0.1
#: Seconds that a call which was cancelled has to end.
GRACE = 3.0
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Task(Generic[T]):
    """One native call to be; ``label`` says what it is in a few words."""

    label: str
    call: Callable[[_core.Progress], T]
    progress: _core.Progress = field(default_factory=_core.Progress)
    state: Literal["waiting", "running", "done"] = "waiting"

    def run(self) -> T:
        self.state = "running"
        answer = self.call(self.progress)
        self.state = "done"
        return answer


Watch: TypeAlias = Callable[[Sequence[Task[Any]]], None]


def run(
    tasks: Sequence[Task[T]], workers: int | None = None, watch: Watch | None = None
) -> list[T]:
    """What the tasks give, in their order, whatever finishes first.

    ``watch`` is called a few times a second. The first error, or an interrupt, cancels what still
    runs and is raised. ``workers`` run at once; by default one a processor.
    """
    with _ending(workers or os.cpu_count() or 1, [task.progress for task in tasks]) as pool:
        futures = [pool.submit(task.run) for task in tasks]
        waiting = set(futures)
        while waiting:
            timeout = LOOK_EVERY if watch else None
            done, waiting = wait(waiting, timeout=timeout, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            if watch:
                watch(tasks)
    return [future.result() for future in futures]


@contextmanager
def _ending(workers: int, works: Iterable[_core.Progress]) -> Iterator[ThreadPoolExecutor]:
    """A pool whose threads are waited for; when broken off they are cancelled, and not for ever.

    What the native half cannot break off (a program's structure being built) goes on for a while,
    but nobody waits for it, and it writes nothing.
    """
    name = f"sardonyx-{next(_POOLS)}-"
    pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
    try:
        yield pool
    except BaseException:
        for work in works:
            work.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + GRACE
        # By name: an interrupt may come before the pool itself knows its thread.
        while any(t.name.startswith(name) for t in enumerate_threads()):
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        raise
    pool.shutdown()


_POOLS = count()
