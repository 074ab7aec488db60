"""Other orders of a recording's threads than the recorded one, each cut as the recording is.

What they may be follows from what happened before what (crates/crash-test/src/recording/orders.rs). Left out:
what the recorded order's own cuts show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from sardonyx import _core
from sardonyx.questions import CrashTestQuestion
from sardonyx.runs.recoveries import crash_real

#: The most orders that can be asked for.
MOST = 1000


def check_orders(most: int, operations: object, designs: Sequence[str]) -> None:
    """An error if what is asked beside other orders of threads is not known in them."""
    if most and operations is not None:
        raise _core.SardonyxError(
            "--thread-orders: operations have the one order in which they were acknowledged; leave "
            "it out, or --operations"
        )
    if most and designs:
        raise _core.SardonyxError(
            "--thread-orders: below a design the recording is played as it is; leave it out, or "
            "--designs"
        )


def in_orders(
    question: CrashTestQuestion, found: dict[str, Any], most: int
) -> list[dict[str, Any]]:
    """What was found in at most ``most`` other orders: each has ``order`` beside the rest.

    The budget holds for all of them together, in equal parts. What the recorded order's causes
    explain is left out.
    """
    question = question.model_copy(
        update={"assume_persisted": (*question.assume_persisted, *found["assumed"])}
    )
    names = _core.crash_orders(question.model_dump_json(), found["start"]["row"], most)
    told = []
    for name in names:
        asked = {"thread_order": name, "budget": question.budget / len(names)}
        asked |= {"keep": None, "start": None}
        told.append(crash_real(question.model_copy(update=asked)) | {"order": name})
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


def held(cause: dict[str, Any]) -> str:
    """The order of a cause, for people."""
    thread, _, row = cause["order"].partition("@")
    return f"with thread {thread} held back before {cause['held']}, after row {int(row):,}"


def show_orders(people: Console, orders: Sequence[dict[str, Any]]) -> None:
    """Say how much was tried in other orders."""
    if not orders:
        people.print(
            "other orders of threads: none in which a thread makes sure of something while another "
            "is held back before it has",
            soft_wrap=True,
        )
        return
    images, cuts = (sum(one[key] for one in orders) for key in ("images", "cuts_tried"))
    unsaid = sum(bool(one["unsaid"]) for one in orders)
    people.print(
        f"other orders of threads: {len(orders)}, {images:,} images at {cuts:,} cuts of theirs"
        + (f"; of {unsaid} nothing can be said: --budget ended" if unsaid else ""),
        soft_wrap=True,
    )
    if not any(one["violations"] for one in orders) and not unsaid:
        people.print(Text("no violation in other orders of threads", style="green"))
