"""A worker: a process that lives as long as a sweep, runs points and writes them as shards.

``python -m sardonyx.sweeps.work`` reads JSON lines: first what the sweep is, then numbers of points
to run. It answers a line for each point that is finished, and one for those that are kept. When
its input ends, be it that the sweep was killed, it keeps what is finished and ends at once.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import shlex
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from sardonyx import _core, layers
from sardonyx.sweeps import reading
from sardonyx.sweeps.folder import ROW, Done, Folder
from sardonyx.sweeps.inputs import Changed, Input
from sardonyx.sweeps.plan import Plan, Point

#: Seconds after which finished points are written, if points are short: soon at first, so that a
#: worker that is killed again and again makes progress, and then ever later.
KEEP_FIRST, KEEP_EVERY = 0.1, 2.0
#: Finished points are written when there are this many.
KEEP_MOST = 1_000


def setup(plan: Plan, folder: Folder, goal: str | None) -> dict[str, Any]:
    """What a worker is told first; an error if it would not have the designs of this process."""
    plan.check_elsewhere()
    return {
        "sweep": plan.document,
        "base": str(plan.place.base.absolute()),
        "folder": str(folder.path.absolute()),
        "scratch": str(folder.own and folder.own.absolute()),
        "file": plan.place.name,
        "goal": goal,
        "inputs": [
            [each.name, str(each.path.absolute()), each.sha256, each.bytes, each.seen]
            for each in plan.inputs.known.values()
        ],
    }


class Worker:
    """Runs points of one plan. ``tell`` is called with each answer."""

    def __init__(self, said: dict[str, Any], tell: Any) -> None:
        layers.load_named()
        inputs = {}
        for name, path, sha256, length, seen in said["inputs"]:
            signature = tuple((p, size, when, node) for p, size, when, node in seen)
            inputs[name] = Input(name, Path(path), sha256, length, signature)
        self._plan = reading.read(said["sweep"], inputs=inputs, base=Path(said["base"]))
        self._folder = Folder(Path(said["folder"]))
        self._scratch = Path(said["scratch"])
        self._file, self._goal, self._tell = said["file"], said["goal"], tell
        self._lock = threading.Lock()
        self._done: list[Done] = []
        self._numbers: list[int] = []
        self._kept, self._every = time.monotonic(), KEEP_FIRST

    def run(self, numbers: list[int], names: list[str]) -> None:
        """Run the points of these numbers and tell of each. ``names`` are those in the sweep."""
        for number, name in zip(numbers, names, strict=True):
            point = self._plan.at(number)
            assert point is not None
            self._run(point, name)
            if time.monotonic() - self._kept > self._every or len(self._numbers) >= KEEP_MOST:
                self.keep()
        self._tell({"ended": True, "memory": _memory()})

    def _run(self, point: Point, name: str) -> None:
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
        done = finished(
            self._plan, point, self._file, str(self._folder.path), figures, seconds, error, name
        )
        with self._lock:
            self._done.append(done)
            self._numbers.append(point.number)
        said: dict[str, Any] = {"point": point.number, "seconds": seconds}
        if error is not None:
            said["error"] = error
        elif self._goal is not None:
            said["goal"] = figures.get(self._goal)
        self._tell(said)

    def attempt(self, number: int, most: float) -> None:
        """Run a point for so many seconds at most and tell how long all of it would take."""
        point = self._plan.at(number)
        assert point is not None
        progress = _core.Progress()
        timer = threading.Timer(most, progress.cancel)
        timer.start()
        started = time.perf_counter()
        said: dict[str, Any] = {"whole": True}
        try:
            point.question.ask(progress)
        except _core.SardonyxError as error:
            said = {"whole": False}
            if timer.is_alive():
                said["error"] = str(error)
        finally:
            timer.cancel()
        seconds = time.perf_counter() - started
        if not said["whole"] and "error" not in said and progress.done and progress.total:
            seconds *= max(1.0, progress.total / progress.done)
        self._tell({**said, "seconds": seconds, "ended": True, "memory": _memory()})

    def keep(self) -> None:
        """Write what is finished."""
        with self._lock:
            if self._done:
                self._folder.keep(self._done, self._scratch)
                self._tell({"kept": self._numbers})
                self._done, self._numbers = [], []
            self._kept = time.monotonic()
            self._every = min(2 * self._every, KEEP_EVERY)


def finished(
    plan: Plan,
    point: Point,
    file: str,
    folder: str,
    figures: dict[str, Any],
    seconds: float,
    error: str | None,
    name: str,
) -> Done:
    """A point as shards have it. ``name`` is its own in the sweep, whoever refused it."""
    words, row = point.question.command, plan.row(point)
    alone = ("sweep", file, "--out", folder, "--shard", f"{point.number + 1}/{plan.size}")
    return Done(
        point=name,
        asked=json.dumps(point.question.identity, sort_keys=True),
        row=row,
        figures={name: figure for name, figure in figures.items() if name not in (*row, *ROW)},
        seconds=seconds,
        error=error,
        command=shlex.join(["sardonyx", *(words or alone)]) if error is not None else None,
    )


def _memory() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Serve the sweep at the other end of standard input and output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    worker: list[Worker] = []

    def listen() -> None:
        for line in sys.stdin:
            asked.put(line)
        # The answers are no longer read. Finished points are kept, and running ones are not waited
        # for.
        try:
            if worker:
                worker[0].keep()
        except Exception:
            os._exit(1)
        os._exit(0)

    def tell(said: dict[str, Any]) -> None:
        with suppress(OSError):  # the sweep is gone: the end of the input ends us
            answers.write(json.dumps(said) + "\n")

    threading.Thread(target=listen, daemon=True).start()
    try:
        worker.append(Worker(json.loads(asked.get()), tell))
        tell({"ready": True})
        while True:
            said = json.loads(asked.get())
            if "run" in said:
                worker[0].run(said["run"], said["names"])
            elif "try" in said:
                worker[0].attempt(said["try"], said["seconds"])
            else:
                worker[0].keep()
                tell({"ended": True})
    except Changed as error:
        worker[0].keep()
        tell({"stop": str(error)})
    except _core.SardonyxError as error:
        tell({"stop": str(error)})
    except Exception as error:
        traceback.print_exc()
        tell({"stop": f"a worker has a bug: {type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
