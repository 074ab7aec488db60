"""``crash-test search``: a recorded program, cut at every fence; its own recovery runs on the rest.

Other orders of threads, cuts inside the recovery and the pool below designs are tried afterwards,
if they are asked for. Left out: everything that computes.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from sardonyx.answer import Answer
from sardonyx.api.asked import CrashTestSearch
from sardonyx.crash_tests import designs, recovery, threads
from sardonyx.crash_tests.searching import answered, check_targets, effort, reported, searched
from sardonyx.crash_tests.show import notes, show
from sardonyx.crash_tests.tested import question, replay
from sardonyx.questions import CrashTestQuestion
from sardonyx.report.checks import accept
from sardonyx.runs.crash_test import crash_test, given, words
from sardonyx.runs.jobs import check_designs
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashTestSearch, watch: Watch | None) -> Answer:
    """Search, try what else is asked for, and say how each cause is seen again."""
    names = None if asked.designs is None else check_designs(asked.designs)
    ask = CrashTestQuestion(
        tear=asked.tear == "words",
        start=asked.start,
        creation=asked.creation,
        **effort(asked),
        **question(asked),
    )
    baseline = check_targets(asked, [str(asked.recording)])
    found = searched(asked.recording.name, partial(crash_test, ask), watch)
    if found["start"] is not None and found["ended_by"] is None:
        more = ask.replace(platform=found["platform"])
        if asked.threads:
            found["orders"] = threads.in_orders(more, found, asked.orders, watch)
            threads.add(found, found["orders"])
        if asked.recovery:
            found["inside"] = recovery.inside(more, found, asked.depth, asked.keep, watch)
            for one in found["inside"]:
                recovery.replays(one, asked.recover.replace("{acks}", one["acks"]))
                found["fails"] = found["fails"] or bool(one["violations"])
        if names is not None:
            found["below"] = designs.below(more, found, asked.machine, names, watch)
    for cause in found["causes"]:
        again = replay(asked, cause["image"], found["platform"], cause["assumed"])
        again += ["--thread-order", cause["order"]] if "order" in cause else []
        cause["replay"] = shlex.join(again)
        if asked.keep is not None and "order" not in cause:
            kept = asked.keep / f"{cause['kept']}-fails.pool"
            cause["gdb"] = gdb(asked.recover, kept, [pool["name"] for pool in found["pools"]])
    accept(found, baseline)
    said = notes(found, kept=asked.keep is not None)
    return reported(answered("crash-test search", found, said, shown=asked.machine), asked)


def tell(people: Console, answer: Answer) -> None:
    """The search, and what else was tried."""
    show(people, answer)
    if "inside" in answer:
        recovery.show(people, answer["inside"])
    if "below" in answer:
        designs.show(people, answer["below"], answer.shown)


def gdb(recover: str, image: Path, names: Sequence[str]) -> str:
    """A command that runs the recovery under gdb on a copy of an image that was kept.

    The image is a file, or a folder with a file of each of the names if they are several.
    """
    copy = image.with_suffix(".gdb")
    several = len(names) > 1
    pools = [str(copy / name) for name in names] if several else [str(copy)]
    folder = copy if several else copy.parent
    command = given(recover, pools, folder, "/dev/null")
    if words(recover)[0] == "/bin/sh":
        command = shlex.join(["/bin/sh", "-c", command])
    made = ["cp", *(["-r"] if several else []), str(image), str(copy)]
    return f"{shlex.join(made)} && gdb --args {command}"
