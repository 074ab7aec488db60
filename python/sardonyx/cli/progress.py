"""Progress on standard error: on a terminal a bar a task and one over all, in a log a line now and
then.

``Watcher`` is what the scheduler calls. Left out: anything that computes.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.live import Live
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
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sardonyx import sizes
from sardonyx.cli.common import note
from sardonyx.runs.scheduler import Task

if TYPE_CHECKING:
    from sardonyx.sweeps.plan import Plan
    from sardonyx.sweeps.run import State

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


class _Left(TimeRemainingColumn):
    """The time left: of several tasks that of all, which no task of them knows."""

    def render(self, task: Bar) -> Text:
        return Text("") if task.fields.get("one_of_several") else super().render(task)


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

    def __init__(self, console: Console, unit: str = "req", *, logged: bool = True) -> None:
        self._shown, self._logged = console.is_terminal, logged
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Count(),
            _Rate(unit),
            _Left(compact=True),
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

    def sweep(self, plan: Plan) -> AbstractContextManager[Callable[[State], None]]:
        """What shows a sweep in the place of bars."""
        if self._shown:
            self._bars.stop()
        return Points(self._bars.console, plan)

    def __call__(self, tasks: Sequence[Task[Any]]) -> None:
        if not self._shown:
            return self._lines.tell(lambda: line(tasks)) if self._logged else None
        if len(tasks) > 1:
            if self._all is None:
                self._all = self._bars.add_task("all runs", total=len(tasks), whole=True)
            self._bars.update(self._all, completed=sum(task.state == "done" for task in tasks))
        for task in tasks:
            if task.state == "running":
                bar = self._tasks.get(task)
                if bar is None:
                    several = len(tasks) > 1
                    bar = self._bars.add_task(task.label, total=None, one_of_several=several)
                    self._tasks[task] = bar
                total = task.progress.total or None
                self._bars.update(
                    bar, completed=task.progress.done, total=total, description=task.label
                )
            elif task.state == "done" and task in self._tasks:
                self._bars.remove_task(self._tasks.pop(task))


class Points:
    """How far a sweep is: points, rate, time left, failures, the best so far.

    A terminal has it as a table that changes, a log as a line now and then.
    """

    def __init__(self, console: Console, plan: Plan) -> None:
        self._plan, self._lines = plan, Lines(console)
        self._live = Live(console=console, transient=True, refresh_per_second=4)
        self._shown = console.is_terminal

    def __enter__(self) -> Points:
        if self._shown:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._live.stop()

    def __call__(self, state: State) -> None:
        if self._shown:
            self._live.update(self.table(state))
        else:
            self._lines.tell(lambda: self.line(state))

    def line(self, state: State) -> str:
        """How far it is now, in one line."""
        words = [f"{state.done:,} of {state.total:,} points"]
        words += [f"{state.rate:,.1f} a second"]
        words += [] if state.left is None else [f"{sizes.duration(state.left)} left"]
        words += [f"{state.failed:,} failed"] if state.failed else []
        words += [f"{state.died:,} workers lost"] if state.died else []
        return ", ".join(words)

    def table(self, state: State) -> Table:
        """The view as it is now."""
        from sardonyx.sweeps.run import described

        done = state.done
        table = Table.grid(padding=(0, 2))
        table.add_row("points", f"{done:,} of {state.total:,}", _bar(done, state.total))
        left = "" if state.left is None else f"{sizes.duration(state.left)} left"
        table.add_row("rate", f"{state.rate:,.1f} a second", left)
        failed = Text(f"{state.failed:,}", style="red" if state.failed else "")
        lost = f"{state.died:,} workers lost, their points run again" if state.died else ""
        table.add_row("failed", failed, lost)
        if state.best is not None and (point := self._plan.at(state.best[1])) is not None:
            figure = f"{state.best[0]:,.6g}"
            table.add_row(f"best so far, {state.goal}", figure, described(self._plan.row(point)))
        return table


def _bar(done: int, total: int) -> Any:
    return ProgressBar(total=max(total, 1), completed=done, width=30)


def line(tasks: Sequence[Task[Any]]) -> str:
    """How far tasks are, in one line."""
    done = sum(task.state == "done" for task in tasks)
    words = [f"{done:,} of {len(tasks):,} runs"] if len(tasks) > 1 else []
    for task in [task for task in tasks if task.state == "running"][:FEW]:
        at, total = task.progress.done, task.progress.total
        words.append(f"{task.label} {at / total:.0%}" if total else f"{task.label} {at:,}")
    return ", ".join(words)


class _Count(ProgressColumn):
    """Runs for the whole, a percentage for one run."""

    def __init__(self) -> None:
        super().__init__()
        self._runs = MofNCompleteColumn()

    def render(self, task: Bar) -> Text:
        if task.fields.get("whole"):
            return self._runs.render(task)
        if not task.total:
            return Text(f"{task.completed:,.0f}" if task.completed else "")
        return Text(f"{task.percentage:3.0f}%")
