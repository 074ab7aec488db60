"""The one schedule of work: so much at once on threads, watched, cancelled together.

A native call releases the interpreter's lock, so threads are enough; sweeps have processes of their
own (``sweeps.local``). Left out: what is called (``jobs``, ``crashes``, ``sweep``)
and how progress looks (``cli.progress``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from threading import enumerate as enumerate_threads
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from sardonyx import _core

#: Seconds between two looks at the tasks' progress.
LOOK_EVERY = 0.1
#: Seconds that a cancelled call has to end: it looks many times a second, but may have to wait for
#: a busy processor. A second interrupt waits for nothing.
GRACE = 20.0
T = TypeVar("T")


class Work(Protocol):
    """How far a task is, and a way to end it."""

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int: ...

    def cancel(self) -> None: ...


@dataclass(eq=False, slots=True)
class Task(Generic[T]):
    """One call to be; ``label`` says what it is in a few words."""

    label: str
    call: Callable[[Any], T]
    progress: Work = field(default_factory=_core.Progress)
    state: Literal["waiting", "running", "done"] = "waiting"

    def run(self) -> T:
        self.state = "running"
        answer = self.call(self.progress)
        self.state = "done"
        return answer


Watch: TypeAlias = Callable[[Sequence[Task[Any]]], None]


def tell(watch: Watch | None, line: str) -> None:
    """Say a line to who watches, if that hears lines too (``tell``), as the command line does."""
    if heard := getattr(watch, "tell", None):
        heard(line)


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def run(
    tasks: Sequence[Task[T]], workers: int | None = None, watch: Watch | None = None
) -> list[T]:
    """What the tasks give, in their order, whatever finishes first.

    ``watch`` is called a few times a second. The first error, or an interrupt, cancels what still
    runs and is raised. ``workers`` run at once; by default one a processor.
    """
    answers: dict[int, T] = {}
    waiting = iter(tasks)
    look = watch and (lambda _: watch(tasks))
    for task, answer in each(lambda: next(waiting, None), workers, look):
        answers[id(task)] = answer
    return [answers[id(task)] for task in tasks]


def each(
    more: Callable[[], Task[T] | None], workers: int | None = None, watch: Watch | None = None
) -> Iterator[tuple[Task[T], T]]:
    """Tasks and what they give, as they finish, however many there are.

    ``more`` is asked for the next task whenever there is room; ``None`` means that there is none
    now. It ends when there is none and nothing runs. ``watch`` sees what runs.
    """
    running: dict[Future[T], Task[T]] = {}
    workers = workers or processors()
    with _ending(workers, running) as pool:
        while True:
            while len(running) < workers and (task := more()) is not None:
                running[pool.submit(task.run)] = task
            if not running:
                return
            done, _ = wait(running, timeout=LOOK_EVERY, return_when=FIRST_COMPLETED)
            for future in done:
                answer = future.result()
                yield running.pop(future), answer
            if watch:
                watch(list(running.values()))


@contextmanager
def _ending(workers: int, running: Mapping[Any, Task[Any]]) -> Iterator[ThreadPoolExecutor]:
    """A pool whose threads are waited for; when broken off they are cancelled, and not for ever.

    What the native half cannot break off (a program's structure being built) goes on for a while,
    but nobody waits for it, and it writes nothing.
    """
    name = f"sardonyx-{next(_POOLS)}-"
    pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
    try:
        yield pool
    except BaseException:
        for task in list(running.values()):
            task.progress.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + GRACE
        # Threads are found by name: an interrupt may come before the pool itself knows its thread.
        while any(t.name.startswith(name) for t in enumerate_threads()):
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        raise
    pool.shutdown()


_POOLS = count()
