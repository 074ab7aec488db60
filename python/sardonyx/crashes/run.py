"""``crash run``: each design by a plan of runs, all cut at every position."""

from __future__ import annotations

from rich.console import Console

from sardonyx.answer import Answer
from sardonyx.api.asked import CrashRun
from sardonyx.crashes import plans, replays
from sardonyx.crashes.show import show
from sardonyx.questions import TrialQuestion
from sardonyx.runs.crashes import explore
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashRun, watch: Watch | None) -> Answer:
    """The verdict of each pair, and what it rests on."""
    kept = replays.of(asked)
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
            machine=asked.machine,
            overrides=asked.set,
            mutant=asked.mutant,
            platform=asked.platform,
            **plans.cut_how(asked),
        )
        for program, design in plans.pairs(asked)
    ]
    found = plans.ran("crash run", plan, lambda: explore(plan, watch), watch)
    found.shown = kept.write(found["runs"])
    return found


def tell(people: Console, answer: Answer) -> None:
    """The verdicts, what they rest on, and each violation with the command that makes it again."""
    show(people, answer["runs"], answer.shown)
