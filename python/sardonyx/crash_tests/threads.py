"""Other orders of a recording's threads than the recorded one, each cut as the recording is.

What they may be follows from what happened before what
(``crates/crash-test/src/recording/orders.rs``). Left out: what the recorded order's own cuts show.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.crash_tests.tested import tested
from sardonyx.questions import CrashTestQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch


def in_orders(
    question: CrashTestQuestion, found: dict[str, Any], most: int, watch: Watch | None
) -> list[dict[str, Any]]:
    """What was found in at most ``most`` other orders: each has ``order`` beside the rest.

    The budget holds for all of them together, in equal parts. What the recorded order's causes
    explain is left out.
    """
    question = question.replace(assume_persisted=(*question.assume_persisted, *found["assumed"]))
    call = partial(_core.crash_orders, question.json(), found["start"]["row"], most)
    (names,) = scheduler.run([Task(Path(question.recording).name, call)], 1, watch)
    told = []
    for name in names:
        budget = question.budget / len(names)
        order = question.replace(thread_order=name, budget=budget, keep=None, start=None)
        told.append(tested(order, watch) | {"order": name})
    return told


def add(found: dict[str, Any], orders: list[dict[str, Any]]) -> None:
    """Add to what was found the causes that only another order shows, each with its ``order``."""
    known = {cause["summary"] for cause in found["causes"]}
    places = {suspect["place"] for suspect in found["suspects"]}
    for one in orders:
        new = [cause for cause in one["causes"] if cause["summary"] not in known]
        if not new and one["causes"]:
            continue
        if one["violations"]:
            found["fails"] = True
            found["unreduced"] += one["unreduced"]
            found["violations"] += sum(c["violations"] for c in new) or one["violations"]
            if found["first_violation_s"] is None:
                found["first_violation_s"] = found["seconds"] + one["first_violation_s"]
        known |= {cause["summary"] for cause in new}
        found["causes"] += [c | {"order": one["order"], "held": one["held"]} for c in new]
        fresh = [s for s in one["suspects"] if new and s["place"] not in places]
        found["suspects"] += fresh
        places |= {suspect["place"] for suspect in fresh}
    if any(one["violations"] for one in orders):
        found["unsaid"] = None
        found["verdict"] = "violation" if found["fails"] else found["verdict"]
