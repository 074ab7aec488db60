"""``crash run``: each design by a plan of runs, all cut at every position."""

from __future__ import annotations

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import CrashRun
from sardonyx.crashes import plans, replays
from sardonyx.crashes.show import show
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashRun, watch: Watch | None) -> Answer:
    """The verdict of each pair, and what it rests on."""
    kept = replays.of(asked)
    found = plans.ran(asked, _core.crash_trial, watch)
    if asked.self_test:
        tested = plans.ran(asked, _core.crash_self_test, watch, ", with faults")
        for run, planted in zip(found["runs"], tested["runs"], strict=True):
            run["self_test"] = planted
    found.shown = kept.write(found["runs"])
    return found


def tell(people: Console, answer: Answer) -> None:
    """The verdicts, what they rest on, and each violation with the command that makes it again."""
    show(people, answer["runs"], answer.shown)
