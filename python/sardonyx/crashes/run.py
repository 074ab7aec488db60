"""``crash run``: each design tried by a plan of runs, all cut at every position."""

from __future__ import annotations

from sardonyx.api.command import Answer
from sardonyx.crashes.replays import replays
from sardonyx.crashes.tried import answered, below, cut_how, pairs, runs
from sardonyx.crashes.verdicts import tell as tell
from sardonyx.questions import CrashRun, TrialQuestion
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashRun, watch: Watch | None) -> Answer:
    """What each plan shows; the cut of each violation is in a replay file."""
    plan = [
        TrialQuestion(
            program=program,
            design=design,
            seed=asked.seed,
            cores=asked.cores,
            transactions=asked.transactions,
            item_bytes=asked.transaction_size,
            footprint=asked.footprint,
            thorough_seconds=asked.thorough,
            software_log=not asked.no_log,
            cuts=None if asked.cuts == "all" else int(asked.cuts),
            **below(asked),
            **cut_how(asked),
        )
        for program, design in pairs(asked)
    ]
    again = replays(asked)
    found = runs(plan, watch)
    return answered("crash run", found, again.lines(found))
