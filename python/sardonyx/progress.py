"""Progress on standard error, and only to a terminal: one bar a run and one over all of them.

``Watcher`` is what ``api_jobs.run`` calls; ``bar`` follows one native call on its own thread.
Left out: anything that computes; without a terminal both do nothing but wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NotYet
from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from sardonyx import _core
from sardonyx.api_jobs import LOOK_EVERY, Job, ending

T = TypeVar("T")


class _Rate(ProgressColumn):
    """Requests a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed or task.fields.get("whole"):
            return Text("")
        for size, letter in ((1e6, "M"), (1e3, "k")):
            if speed >= size:
                return Text(f"{speed / size:.1f} {letter}req/s")
        return Text(f"{speed:.0f} req/s")


class Watcher:
    """Shows the jobs that run, and how much of the whole is done."""

    def __init__(self, console: Console) -> None:
        self._shown = console.is_terminal
        self._bars = _progress(console)
        self._tasks: dict[Job, TaskID] = {}
        self._all: TaskID | None = None

    def __enter__(self) -> Watcher:
        if self._shown:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._bars.stop()

    def __call__(self, jobs: Sequence[Job]) -> None:
        if not self._shown:
            return
        if self._all is None:
            self._all = self._bars.add_task("all runs", total=len(jobs), whole=True)
        self._bars.update(self._all, completed=sum(job.state == "done" for job in jobs))
        for job in jobs:
            if job.state == "running":
                task = self._tasks.get(job)
                if task is None:
                    task = self._tasks[job] = self._bars.add_task(job.label, total=None)
                total = job.progress.total or None
                self._bars.update(task, completed=job.progress.done, total=total)
            elif job.state == "done" and job in self._tasks:
                self._bars.remove_task(self._tasks.pop(job))


def bar(console: Console, label: str, call: Callable[[_core.Progress], T]) -> T:
    """``call`` with a native progress, shown while it runs; an interrupt cancels it."""
    native = _core.Progress()
    with Watcher(console) as watcher, ending(1, [native]) as pool:
        future = pool.submit(call, native)
        task = watcher._bars.add_task(label, total=None) if watcher._shown else None
        while True:
            try:
                return future.result(timeout=LOOK_EVERY)
            except NotYet:
                if future.done():
                    raise
                if task is not None:
                    total = native.total or None
                    watcher._bars.update(task, completed=native.done, total=total)


def _progress(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        _Count(),
        _Rate(),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        get_time=time.monotonic,
    )


class _Count(ProgressColumn):
    """Runs for the whole, a percentage for one run."""

    def __init__(self) -> None:
        super().__init__()
        self._runs = MofNCompleteColumn()

    def render(self, task: Task) -> Text:
        if task.fields.get("whole"):
            return self._runs.render(task)
        return Text(f"{task.percentage:3.0f}%" if task.total else f"{task.completed:,.0f}")
