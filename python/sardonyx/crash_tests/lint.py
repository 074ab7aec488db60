"""``crash-test lint``: what a recording shows without any run.

What a library does while it sets a pool up is one line. Left out: everything that computes.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.text import Text

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import CrashTestLint
from sardonyx.draw.grid import grid, numbers
from sardonyx.questions import Job, TraceSource
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch


def answer(asked: CrashTestLint, watch: Watch | None) -> Answer:
    """What is never flushed, or flushed for nothing, and what that costs."""
    pools = [*map(str, asked.pool)]
    call = partial(lint, str(asked.recording), pools, not asked.no_source, asked.machine)
    (found,) = scheduler.run([Task(asked.recording.name, call)], 1, watch)
    notes = [*found["notes"]]
    if not found["has_places"]:
        notes.append(
            "the recording has no places in the program; record with --pc to see lines of code"
        )
    document = {"sardonyx": _core.VERSION, **found}
    return Answer("crash-test lint", document, 0, notes, shown=(asked.all, asked.machine))


def lint(
    recording: str,
    pools: Sequence[str],
    source: bool,
    machine: str,
    progress: _core.Progress | None = None,
) -> dict[str, Any]:
    """What the recording shows without a run, and what its idle flushes and fences cost.

    The cost is the difference of two simulations of what the recording has of the pool, on a core
    of the machine, without encryption; all other instructions take their time and touch no memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = _core.crash_lint(recording, list(pools), source, folder, progress)
        found: dict[str, Any] = json.loads(answer)

        def took(name: str) -> float:
            job = Job(
                source=TraceSource(path=f"{folder}/{name}.parquet"),
                design="no-encryption",
                machine=machine,
            )
            ran = json.loads(_core.simulate(job.json(), progress))
            return float(ran["metrics"]["simulated_ns"])

        if any(found["idle"].values()):
            everything = took("all")
            found["took_ns"] = everything
            found["cost_ns"] = {
                name: everything - took(name) if idle else 0.0
                for name, idle in found["idle"].items()
            }
    return found


def tell(people: Console, answer: Answer) -> None:
    """The findings, those of a library's set-up in one line unless all are asked for."""
    everything, machine = answer.shown
    people.print(
        f"{answer['stores']:,} stores, {answer['flushes']:,} flushes and {answer['fences']:,} "
        f"fences of {answer['pool']}"
    )
    setup = [] if everything else [each for each in answer["findings"] if each["setup"]]
    shown = [each for each in answer["findings"] if each not in setup]
    if setup:
        counts: Counter[str] = Counter()
        for each in setup:
            counts[each["meaning"]] += each["count"]
        listed = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
        people.print(
            "left out, of libraries that set the pool up before the program's own first store: "
            f"{listed}; --all shows them",
            soft_wrap=True,
        )
    if not shown:
        people.print(Text("nothing to find fault with", style="green"))
    else:
        table = grid("what", *numbers("times"), "where", "in", header_style="bold")
        for finding in shown:
            through = f" (in {finding['through']})" if finding["through"] else ""
            table.add_row(
                finding["meaning"],
                f"{finding['count']:,}",
                finding["place"]
                + (f" ({finding['pool']})" if finding["pool"] else "")
                + (f", {finding['used']}" if finding["used"] else ""),
                ((finding["frame"] or {}).get("function") or "") + through,
            )
        people.print(table)
    for name, cost in answer.get("cost_ns", {}).items():
        if answer["idle"][name]:
            people.print(
                f"{answer['idle'][name]:,} {name} that do nothing cost {cost / 1e3:,.1f} of "
                f"{answer['took_ns'] / 1e3:,.1f} us on {machine} without encryption"
            )
