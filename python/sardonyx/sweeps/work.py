"""A worker: a process of a pool that runs points of one sweep and writes each when it is finished.

``start`` prepares it, ``run`` and ``attempt`` are what it is asked. It ends at once when the
program that started it does, or lets go of it.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sardonyx import _core, layers
from sardonyx.sweeps import reading
from sardonyx.sweeps.folder import ROW, Folder
from sardonyx.sweeps.inputs import Input
from sardonyx.sweeps.plan import Plan, Point


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker is told first."""

    sweep: dict[str, Any]
    base: Path
    folder: Path
    scratch: Path | None
    file: str
    goal: str | None
    inputs: dict[str, Input]


def setup(plan: Plan, folder: Folder, goal: str | None) -> Setup:
    """The setup of a sweep's workers; an error if they would not have the designs of this
    process.
    """
    plan.check_elsewhere()
    return Setup(
        dict(plan.document),
        plan.place.base.absolute(),
        folder.path.absolute(),
        folder.own and folder.own.absolute(),
        plan.place.name,
        goal,
        {
            name: Input(each.name, each.path.absolute(), each.sha256, each.bytes, each.seen)
            for name, each in plan.inputs.known.items()
        },
    )


@dataclass(frozen=True, slots=True)
class Ran:
    """How a point went: ``seconds`` that it takes, its worker's ``memory`` in bytes, and what it
    has of the goal.
    """

    seconds: float
    memory: int
    error: str | None = None
    goal: Any = None


class Worker:
    """Runs points of one plan."""

    def __init__(self, said: Setup) -> None:
        layers.load_named()
        self._said = said
        self._plan = reading.read(said.sweep, inputs=said.inputs, base=said.base)
        self._folder = Folder(said.folder)

    def run(self, number: int, name: str) -> Ran:
        """Run the point of this number and keep it. ``name`` is its own in the sweep."""
        point = self._plan.at(number)
        assert point is not None
        question, inputs = point.question, self._plan.inputs
        inputs.check(question.inputs)
        started = time.perf_counter()
        error: str | None = None
        figures: dict[str, Any] = {}
        try:
            if name != point.name and "refused" not in question.identity:
                # Its figures would be those of another question.
                raise _core.SardonyxError(
                    "a worker would run something else than the sweep asks: a design's file, or "
                    "the program, has changed meanwhile; give the same command again"
                )
            figures = question.ask(None)
        except _core.SardonyxError as problem:
            error = str(problem)
        except Exception as problem:  # a bug: the point is listed, the others go on
            error = f"{type(problem).__name__}: {problem}"
        seconds = time.perf_counter() - started
        inputs.check(question.inputs)  # what was read may have been half the old and half the new
        folder = str(self._said.folder)
        kept = finished(self._plan, point, self._said.file, folder, figures, seconds, error, name)
        self._folder.keep(kept, self._said.scratch)
        goal = None if self._said.goal is None else figures.get(self._said.goal)
        return Ran(seconds, _memory(), error, goal)

    def attempt(self, number: int, most: float) -> Ran:
        """Run a point for so many seconds at most and say how long all of it would take."""
        point = self._plan.at(number)
        assert point is not None
        progress = _core.Progress()
        timer = threading.Timer(most, progress.cancel)
        timer.start()
        started = time.perf_counter()
        error, whole = None, True
        try:
            point.question.ask(progress)
        except _core.SardonyxError as problem:
            whole = False
            error = str(problem) if timer.is_alive() else None
        finally:
            timer.cancel()
        seconds = time.perf_counter() - started
        if not whole and error is None and progress.done and progress.total:
            seconds *= max(1.0, progress.total / progress.done)
        return Ran(seconds, _memory(), error)


def finished(
    plan: Plan,
    point: Point,
    file: str,
    folder: str,
    figures: dict[str, Any],
    seconds: float,
    error: str | None,
    name: str,
) -> dict[str, Any]:
    """A point as its file has it. ``name`` is its own in the sweep, whoever refused it."""
    words, row = point.question.command, plan.row(point)
    alone = ("sweep", file, "--out", folder, "--shard", f"{point.number + 1}/{plan.size}")
    return {
        "point": name,
        "asked": json.dumps(point.question.identity, sort_keys=True),
        **row,
        "seconds": seconds,
        "host": socket.gethostname(),
        "error": error,
        "command": shlex.join(["sardonyx", *(words or alone)]) if error is not None else None,
        **{name: figure for name, figure in figures.items() if name not in (*row, *ROW)},
    }


def _memory() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---- the process

#: The worker of this process, or why there is none.
_worker: list[Worker | str] = []


def start(said: Setup, ending: Connection) -> None:
    """Prepare this process; it ends when the other end of ``ending`` is closed."""

    def end_with_it() -> None:
        with suppress(EOFError, OSError):
            ending.recv()
        os._exit(0)

    threading.Thread(target=end_with_it, daemon=True).start()
    os.dup2(2, 1)  # designs in Python may print
    try:
        _worker.append(Worker(said))
    except _core.SardonyxError as error:
        _worker.append(str(error))


def _ready() -> Worker:
    (worker,) = _worker
    if isinstance(worker, str):
        raise _core.SardonyxError(worker)
    return worker


def run(number: int, name: str) -> Ran:
    """Run a point."""
    return _ready().run(number, name)


def attempt(number: int, most: float) -> Ran:
    """Try a point."""
    return _ready().attempt(number, most)
