"""What a sweep would take, from a few of its points, before it is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sardonyx.runs import scheduler
from sardonyx.sweeps.folder import Folder
from sardonyx.sweeps.local import pool, spawning
from sardonyx.sweeps.plan import Plan
from sardonyx.sweeps.work import Ran, attempt, setup

#: The number of points that are tried, and the seconds for each of them.
TRIED, MOST = 5, 6.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Points, and what one takes: ``seconds`` on average, ``memory`` in bytes at most."""

    points: int
    done: int
    #: The number of points that differ from another one only in what their design does not have.
    same: int
    workers: int
    tried: int
    seconds: float | None
    memory: int | None
    #: Errors of points that were tried.
    errors: tuple[str, ...]

    @property
    def left(self) -> int:
        return self.points - self.done - self.same

    @property
    def total_seconds(self) -> float | None:
        """On all workers."""
        if self.seconds is None:
            return None
        return self.seconds * self.left / max(1, min(self.workers, self.left))

    def to_document(self) -> dict[str, Any]:
        return {
            "points": self.points,
            "done": self.done,
            "same_as_others": self.same,
            "left": self.left,
            "workers": self.workers,
            "tried": self.tried,
            "seconds_a_point": self.seconds,
            "memory_a_worker": self.memory,
            "seconds": self.total_seconds,
            "errors": list(self.errors),
        }


def estimate(plan: Plan, folder: Folder, workers: int | None = None) -> Estimate:
    """Count what is done and try a few of the other points; nothing is written."""
    asked: set[str] = set()
    points = done = same = 0
    left: list[int] = []  # evenly spread: every `step`th of those that are left
    step, missing = 1, 0
    for point in plan.points():
        points += 1
        if point.name in asked:
            same += 1
            continue
        if folder.done(point.name) is not None:
            done += 1
            continue
        asked.add(point.name)
        if missing % step == 0:
            left.append(point.number)
            if len(left) == 2 * TRIED:
                left, step = left[::2], 2 * step
        missing += 1
    tried = (
        left[:TRIED]
        if len(left) <= TRIED
        else [left[round(i * (len(left) - 1) / (TRIED - 1))] for i in range(TRIED)]
    )
    answers: list[Ran] = []
    if tried:
        with pool(setup(plan, folder, None), 1) as executor:
            for number in tried:
                with spawning():
                    asking = executor.submit(attempt, number, MOST)
                answers.append(asking.result())
    timed = [each.seconds for each in answers if each.error is None]
    return Estimate(
        points,
        done,
        same,
        workers or scheduler.processors(),
        len(answers),
        sum(timed) / len(timed) if timed else None,
        max((each.memory for each in answers), default=None),
        tuple(each.error for each in answers if each.error is not None),
    )
