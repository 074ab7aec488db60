"""The whole of a sweep: what is not done is given out, and what is done is merged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.runs import scheduler
from sardonyx.sweeps import folder as folders
from sardonyx.sweeps import local
from sardonyx.sweeps.folder import RESULTS, Folder, Incomplete
from sardonyx.sweeps.local import Died
from sardonyx.sweeps.plan import Plan, check_goal
from sardonyx.sweeps.work import Ran, Setup, finished, setup


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
            "damaged_points": dict(self.damaged),
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
        goal = plan.goals[0] if plan.goals else None
        self._better = check_goal("goals", goal)[1] if goal else False
        total = plan.count if shard is None else sum(map(plan.wants, self._numbers()))
        self.state = State(total, goal, self.workers)
        #: Points that were given out, so that none runs twice.
        self._asked: set[str] = set()

    def run(self) -> Outcome:
        """Run what is not done; the results are merged once all of it is."""
        started = time.monotonic()
        self.folder.begin(self.plan)
        try:
            goal = self.plan.goals[0].split()[1] if self.plan.goals else None
            said = setup(self.plan, self.folder, goal)
            # Timed points run alone, after everything else.
            for alone in (False, True) if self.plan.is_timed else (False,):
                self._all(said, self._todo(alone), 1 if alone else self.workers)
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
            dict(self.folder.damaged),
        )

    # ---- what is to be done

    def _numbers(self) -> range:
        first, step = (0, 1) if self.shard is None else self.shard
        return range(first, self.plan.size, step)

    def _todo(self, alone: bool) -> Iterator[tuple[int, str]]:
        for point in self.plan.points(self._numbers()):
            if point.question.alone != alone:
                continue
            if point.name in self._asked:
                self.state.same += 1
            elif self.folder.done(point.name) is not None:
                self.state.found += 1
            else:
                self._asked.add(point.name)
                yield point.number, point.name

    def _all(self, said: Setup, todo: Iterator[tuple[int, str]], workers: int) -> None:
        """Have workers run the points that are left. Of those that were lost with a worker each
        runs by itself, and one that ends its worker again has failed.
        """
        while True:
            try:
                return local.run(said, workers, todo, self._heard, self._look)
            except Died as died:
                self.state.died += 1
                for number in died.lost:
                    self._again(said, number)

    def _again(self, said: Setup, number: int) -> None:
        point = self.plan.at(number)
        assert point is not None
        if self.folder.done(point.name) is not None:  # its worker died after that
            self.state.finished += 1
            return
        try:
            local.run(said, 1, iter([(number, point.name)]), self._heard, self._look)
        except Died:
            self.state.died += 1
            self.state.finished += 1
            self.state.failed += 1
            error = "its worker died, twice: it was killed, as for want of memory, or it crashed"
            where = (self.plan.place.name, str(self.folder.path))
            self.folder.keep(finished(self.plan, point, *where, {}, 0.0, error, point.name))

    def _look(self) -> None:
        if self.view:
            self.view(self.state)

    # ---- what has been done

    def _heard(self, number: int, ran: Ran) -> None:
        self.state.finished += 1
        self.state.seconds += ran.seconds
        self.state.failed += ran.error is not None
        if isinstance(ran.goal, int | float):
            best = self.state.best
            if best is None or (ran.goal > best[0] if self._better else ran.goal < best[0]):
                self.state.best = float(ran.goal), number

    def _merged(self) -> tuple[list[dict[str, Any]], Path | None]:
        target = self.folder.path / RESULTS
        try:
            return folders.merge(self.plan, self.folder, target), target
        except Incomplete:
            return self._own_failures(), None

    def _own_failures(self) -> list[dict[str, Any]]:
        """Failed points of this share of the plan; an error if it has others that are not done."""
        found, missing = [], []
        for point in self.plan.points(self._numbers()):
            if self.folder.done(point.name) is not None:
                continue
            if (failed := self.folder.failed(point.name)) is not None:
                found.append(folders.failure(failed, self.plan.row(point)))
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
