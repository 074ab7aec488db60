"""Progress on standard error: on a terminal a bar a task and one over all, in a log a line now and
then.

``Watcher`` is what the scheduler calls. Left out: anything that computes.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Task as Bar
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import note
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task

T = TypeVar("T")
#: Seconds between two lines of a log, and the number of running tasks that a line names.
LINE_EVERY, FEW = 10.0, 4
#: Signals that end a program, and leave it time.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Rate(ProgressColumn):
    """Requests a second, or of another unit; empty without a unit."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Bar) -> Text:
        speed = task.finished_speed or task.speed
        if not speed or not self._unit or task.fields.get("whole"):
            return Text("")
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if speed >= size:
                return Text(f"{speed / size:.1f} {letter}{self._unit}/s")
        return Text(f"{speed:.0f} {self._unit}/s")


class Lines:
    """Lines of a log, so many seconds apart."""

    def __init__(self, console: Console) -> None:
        self._console, self._told = console, time.monotonic()

    def tell(self, line: Callable[[], str]) -> None:
        """Write the line if one is due."""
        if time.monotonic() - self._told >= LINE_EVERY:
            self._told = time.monotonic()
            self._console.print(line(), soft_wrap=True)


class Watcher:
    """Shows the tasks that run, and of several how much of the whole is done."""

    def __init__(self, console: Console, unit: str = "req") -> None:
        self._shown = console.is_terminal
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Count(),
            _Rate(unit),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            get_time=time.monotonic,
        )
        self._lines = Lines(console)
        self._tasks: dict[Task[Any], TaskID] = {}
        self._all: TaskID | None = None

    def __enter__(self) -> Watcher:
        if self._shown:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._bars.stop()

    def tell(self, line: str) -> None:
        """Say a line beside the bars."""
        note(line)

    def __call__(self, tasks: Sequence[Task[Any]]) -> None:
        if not self._shown:
            return self._lines.tell(lambda: line(tasks))
        if len(tasks) > 1:
            if self._all is None:
                self._all = self._bars.add_task("all runs", total=len(tasks), whole=True)
            self._bars.update(self._all, completed=sum(task.state == "done" for task in tasks))
        for task in tasks:
            if task.state == "running":
                bar = self._tasks.get(task)
                if bar is None:
                    bar = self._tasks[task] = self._bars.add_task(task.label, total=None)
                total = task.progress.total or None
                self._bars.update(bar, completed=task.progress.done, total=total)
            elif task.state == "done" and task in self._tasks:
                self._bars.remove_task(self._tasks.pop(task))


def line(tasks: Sequence[Task[Any]]) -> str:
    """How far tasks are, in one line."""
    done = sum(task.state == "done" for task in tasks)
    words = [f"{done:,} of {len(tasks):,} runs"] if len(tasks) > 1 else []
    for task in [task for task in tasks if task.state == "running"][:FEW]:
        at, total = task.progress.done, task.progress.total
        words.append(f"{task.label} {at / total:.0%}" if total else f"{task.label} {at:,}")
    return ", ".join(words)


def watched(
    console: Console, label: str, call: Callable[[_core.Progress], T], unit: str = "req"
) -> T:
    """What ``call`` gives, shown while it runs; an interrupt cancels it. Progress counts units."""
    with Watcher(console, unit) as watch:
        return scheduler.run([Task(label, call)], 1, watch)[0]


class _Count(ProgressColumn):
    """Runs for the whole, a percentage for one run."""

    def __init__(self) -> None:
        super().__init__()
        self._runs = MofNCompleteColumn()

    def render(self, task: Bar) -> Text:
        if task.fields.get("whole"):
            return self._runs.render(task)
        return Text(f"{task.percentage:3.0f}%" if task.total else f"{task.completed:,.0f}")
