"""The whole of a sweep: what is not done is given out, and what is done is merged.

One schedule (``runs.scheduler``) gives batches of points to workers. A batch is about a second's
work, so that giving it out costs little and a worker that dies loses little.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from signal import SIGKILL
from typing import Any

from sardonyx import _core
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task
from sardonyx.sweeps import folder as folders
from sardonyx.sweeps.folder import RESULTS, Folder, Incomplete, Index
from sardonyx.sweeps.local import Batch, Local, available
from sardonyx.sweeps.plan import Plan, check_goal
from sardonyx.sweeps.work import finished, setup

#: The seconds of work in a batch, roughly, and the most points.
BATCH_SECONDS = 1.0
BATCH_MOST = 200
#: A point may end its worker this often before it counts as failed: a crash is the point's own, and
#: a kill may come from anywhere.
CRASHES, KILLS = 3, 10


@dataclass
class State:
    """How far a sweep is, for whoever shows it."""

    total: int
    goal: str | None
    workers: int = 0
    #: The number of points that were done before.
    found: int = 0
    finished: int = 0
    #: The number of points that differ from another one only in what their design does not have.
    same: int = 0
    failed: int = 0
    seconds: float = 0.0
    died: int = 0
    best: tuple[float, int] | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Points that need no work any more."""
        return self.found + self.same + self.finished

    def cancel(self) -> None:
        """Nothing: an interrupt ends a sweep, and its points are found again."""

    @property
    def rate(self) -> float:
        """Points a second."""
        return self.finished / max(time.monotonic() - self.started, 1e-9)

    @property
    def left(self) -> float | None:
        """Seconds to the end, about."""
        missing = self.total - self.done
        return missing / self.rate if self.finished else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sweep has come to. ``results`` is there once every point is."""

    points: int
    found: int
    same: int
    finished: int
    failures: list[dict[str, Any]]
    results: Path | None
    seconds: float
    simulated_seconds: float
    died: int
    damaged: Mapping[str, str]

    def to_document(self) -> dict[str, Any]:
        return {
            "points": self.points,
            "done_before": self.found,
            "same_as_others": self.same,
            "run": self.finished,
            "failed": self.failures,
            "results": None if self.results is None else str(self.results),
            "seconds": self.seconds,
            "seconds_of_points": self.simulated_seconds,
            "workers_lost": self.died,
            "damaged_shards": dict(self.damaged),
        }


View = Callable[[State], None]


class Sweep:
    """One program's share of a sweep, on this machine."""

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        workers: int | None = None,
        shard: tuple[int, int] | None = None,
        view: View | None = None,
    ) -> None:
        self.plan, self.folder, self.view = plan, folder, view
        self.workers = workers or scheduler.processors()
        self.shard = shard
        self.index = Index(folder)
        goal = plan.goals[0] if plan.goals else None
        self._better = check_goal("goals", goal)[1] if goal else False
        total = plan.count if shard is None else sum(1 for _ in self._numbers(wanted=True))
        self.state = State(total, goal, self.workers)
        self._lock = threading.Lock()
        self._mean: float | None = None
        self._again: deque[tuple[int, ...]] = deque()
        #: Names of points that are about to be given out.
        self._names: dict[int, str] = {}
        self._deaths: dict[int, int] = {}
        self._position = 0

    def run(self) -> Outcome:
        """Run what is not done; the results are merged once all of it is."""
        started = time.monotonic()
        self.folder.begin(self.plan)
        try:
            self.index.refresh()
            goal = self.plan.goals[0].split()[1] if self.plan.goals else None
            local = Local(setup(self.plan, self.folder, goal), self._heard)
            try:
                # Timed points run alone, after everything else.
                for alone in (False, True) if self.plan.is_timed else (False,):
                    self._all(local, alone)
            finally:
                local.close()
            failures, results = self._merged()
        finally:
            self.folder.end()
        return Outcome(
            self.state.total,
            self.state.found,
            self.state.same,
            self.state.finished,
            failures,
            results,
            time.monotonic() - started,
            self.state.seconds,
            self.state.died,
            {str(path): why for path, why in self.index.damaged.items()},
        )

    # ---- what is to be done

    def _numbers(self, *, wanted: bool = False) -> Iterator[int]:
        first, step = (0, 1) if self.shard is None else (self.shard[0], self.shard[1])
        for number in range(first, self.plan.size, step):
            if not wanted or self.plan.wants(number):
                yield number

    def _todo(self, numbers: Iterable[int], alone: bool) -> Iterator[int]:
        for number in numbers:
            self._position = number
            point = self.plan.at(number)
            if point is None or point.question.alone != alone:
                continue
            if point.name in self.index:
                self.state.found += 1
            elif not self.index.is_first(point.name):
                self.state.same += 1
            else:
                self._names[number] = point.name
                yield number

    def _name(self, number: int) -> str:
        if (name := self._names.pop(number, None)) is not None:
            return name
        point = self.plan.at(number)  # it is given out again
        assert point is not None
        return point.name

    def _all(self, local: Local, alone: bool) -> None:
        todo = self._todo(self._numbers(), alone)
        while True:
            self._give_out(local, todo, 1 if alone else self.workers)
            if lost := local.keep():
                self._again.append(lost)
            if not self._again:
                return

    def _give_out(self, local: Local, todo: Iterator[int], workers: int) -> None:
        """Have workers run the points that are left; points that are lost on the way are given out
        again.
        """
        running: set[Task[Batch]] = set()

        def more() -> Task[Batch] | None:
            if running and local.memory > available():
                return None
            if (numbers := self._next(todo)) is None:
                return None
            task = Task("points", local.run, Batch(numbers, [*map(self._name, numbers)]))
            running.add(task)
            return task

        for task, batch in scheduler.each(more, workers, lambda _: self._look()):
            running.discard(task)
            self._settle(batch)

    def _look(self) -> None:
        if self.view:
            self.view(self.state)

    def _next(self, todo: Iterator[int]) -> tuple[int, ...] | None:
        return (self._again.popleft() if self._again else tuple(islice(todo, self._size()))) or None

    def _size(self) -> int:
        """Points of the next batch: a second's work, and towards the end few for each worker."""
        if self._mean is None:
            return 1
        step = 1 if self.shard is None else self.shard[1]
        left = (self.plan.size - self._position) // step
        fair = max(1, left // (4 * self.workers))
        return max(1, min(int(BATCH_SECONDS / max(self._mean, 1e-6)), BATCH_MOST, fair))

    # ---- what has been done

    def _heard(self, said: Mapping[str, Any]) -> None:
        with self._lock:
            if "point" in said:
                seconds = said["seconds"]
                self._mean = seconds if self._mean is None else 0.8 * self._mean + 0.2 * seconds
                self.state.finished += 1
                self.state.seconds += seconds
                self.state.failed += "error" in said
                goal = said.get("goal")
                if isinstance(goal, int | float):
                    best = self.state.best
                    if best is None or (goal > best[0] if self._better else goal < best[0]):
                        self.state.best = float(goal), said["point"]

    def _settle(self, batch: Batch) -> None:
        """Give out again what a worker took with it; a point that always does so has failed."""
        if batch.died is None:
            return
        state = self.state
        state.died += 1
        lost = list(batch.lost)
        with self._lock:
            state.finished -= sum(1 for number in lost if number not in batch.numbers[batch.done :])
        if batch.done < len(batch.numbers):
            blamed = batch.numbers[batch.done]
            self._deaths[blamed] = self._deaths.get(blamed, 0) + 1
            most = KILLS if batch.died.status == -SIGKILL else CRASHES
            if self._deaths[blamed] >= most:
                lost.remove(blamed)
                self._fail(blamed, f"its worker {batch.died.how}, {self._deaths[blamed]} times")
        if lost:
            self._again.append(tuple(lost))

    def _fail(self, number: int, error: str) -> None:
        point = self.plan.at(number)
        assert point is not None
        file, folder = self.plan.place.name, str(self.folder.path)
        self.folder.keep([finished(self.plan, point, file, folder, {}, 0.0, error, point.name)])
        self.state.finished += 1
        self.state.failed += 1

    def _merged(self) -> tuple[list[dict[str, Any]], Path | None]:
        self.index.refresh()
        target = self.folder.path / RESULTS
        try:
            return folders.merge(self.plan, self.folder, self.index, target), target
        except Incomplete:
            return self._own_failures(), None

    def _own_failures(self) -> list[dict[str, Any]]:
        """Failed points of this share of the plan; an error if it has others that are not done."""
        bad = folders.failed(self.folder)
        found, missing = [], []
        for point in self.plan.points(list(self._numbers())):
            if point.name in self.index:
                continue
            if point.name in bad:
                found.append(folders.failure(bad[point.name], self.plan.row(point)))
            else:
                missing.append(point)
        if missing:
            raise _core.SardonyxError(
                f"{self.folder.path}: {len(missing):,} of {self.state.total:,} points have neither "
                f"figures nor an error after all have run, the first at "
                f"{described(self.plan.row(missing[0]))}; give the same command again, and if that "
                "does not help, report it with the folder"
            )
        return found


def read_shard(text: str) -> tuple[int, int]:
    """The first number and the step of share ``i/N``; i from 1, and 0 means N."""
    first, slash, count = text.partition("/")
    whole = all(part.isascii() and part.isdigit() and len(part) < 19 for part in (first, count))
    if not (slash and whole and int(count) >= 1 and int(first) <= int(count)):
        raise _core.SardonyxError(
            f"--shard {text}: is not a share; give i/N with i from 1 to N, as in 3/16"
        )
    return (int(first) - 1) % int(count), int(count)


def described(row: Mapping[str, Any]) -> str:
    """A point's settings in a few words."""
    return ", ".join(
        f"{name} = {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in row.items()
        if value is not None
    )
