"""``sweep``: all points of a file, on this machine or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sardonyx.answer import CHECK_FAILED, Answer
from sardonyx.api.asked import Sweep
from sardonyx.places import output_directory
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.sizes import duration, memory
from sardonyx.sweeps import folder as folders
from sardonyx.sweeps import reading
from sardonyx.sweeps.estimate import Estimate, estimate
from sardonyx.sweeps.folder import RESULTS, Folder
from sardonyx.sweeps.hq import run as run_on_hq
from sardonyx.sweeps.rows import watching
from sardonyx.sweeps.run import Outcome, described, read_shard
from sardonyx.sweeps.run import Sweep as Run

if TYPE_CHECKING:
    import pandas

#: This many failed points are listed; ``--json`` has all of them.
FEW = 20


def answer(asked: Sweep, watch: Watch | None) -> Answer:
    """What the sweep has come to, or what it would take."""
    target = asked.out or Path("results") / Path(str(asked.file)).stem
    folder = Folder(target)
    share = None if asked.shard is None else read_shard(asked.shard)
    plan = reading.read(asked.file, folder.before)
    folder.check(plan)
    plan.check()
    if asked.plan:
        if watch is not None:
            watch([Task("trying a few points", lambda _: None, state="running")])
        expected = estimate(plan, folder, asked.jobs)
        return Answer("sweep", expected.to_document(), shown=expected)
    with output_directory(target), watching(watch, plan) as view:
        if asked.hq is not None:
            outcome = run_on_hq(plan, folder, asked.hq, view)
        else:
            outcome = Run(plan, folder, asked.jobs, share, view).run()
    damaged = outcome.damaged.items()
    return Answer(
        "sweep",
        outcome.to_document(),
        CHECK_FAILED if outcome.failures else 0,
        [
            f"{path}: cannot be read and counts as missing; remove it ({why})"
            for path, why in damaged
        ],
        (outcome, target, plan, folder, outcome.results),
    )


def frame(answer: Answer) -> pandas.DataFrame:
    """A row a point, in the order of its plan, with a column for each figure, and ``error``: what
    ended a point that failed, else none. Of a share it has the points that are done or have failed.
    """
    plan, folder, results = answer.shown[2:]
    return folders.frame(plan, folder, results)


def tell(people: Console, answer: Answer) -> None:
    """What a sweep has come to, or what it would take."""
    if isinstance(answer.shown, Estimate):
        _tell_plan(people, answer.shown)
    else:
        _tell(people, *answer.shown[:2])


def _tell_plan(people: Console, expected: Estimate) -> None:
    """What a sweep would take."""
    people.print(
        f"{expected.points:,} points: {expected.done:,} done, {expected.left:,} to run"
        + _same(expected.same),
        soft_wrap=True,
    )
    for error in dict.fromkeys(expected.errors):
        people.print(Text(f"a point that was tried failed: {error}", style="red"), soft_wrap=True)
    if expected.seconds is None or expected.total_seconds is None or expected.memory is None:
        return
    people.print(
        f"a point takes {duration(expected.seconds)} and its worker {memory(expected.memory)} "
        f"({expected.tried} tried)",
        soft_wrap=True,
    )
    people.print(
        f"all of them: about {duration(expected.total_seconds)} on {expected.workers} workers, "
        f"{memory(expected.memory * expected.workers)}",
        soft_wrap=True,
    )


def _tell(people: Console, outcome: Outcome, target: Path) -> None:
    """What a sweep has come to."""
    found = f", {outcome.found:,} were done before" if outcome.found else ""
    people.print(
        f"{outcome.points:,} points: {outcome.finished:,} run in {outcome.seconds:,.1f} s{found}"
        + _same(outcome.same),
        soft_wrap=True,
    )
    for failure in outcome.failures[:FEW]:
        people.print(Text(f"failed: {described(failure['settings'])}", style="red"), soft_wrap=True)
        people.print(f"  {failure['error']}", soft_wrap=True)
        people.print(f"  {failure['command']}", soft_wrap=True)
    if len(outcome.failures) > FEW:
        people.print(f"and {len(outcome.failures) - FEW:,} more; --json has all of them")
    if outcome.results is None:
        people.print(
            f"{target / RESULTS} follows when the other points are done, by this command again",
            soft_wrap=True,
        )
    else:
        people.print(f"results: {outcome.results}", soft_wrap=True)


def _same(points: int) -> str:
    """Points that need no run."""
    return f", {points:,} with nothing of their design changed" if points else ""
