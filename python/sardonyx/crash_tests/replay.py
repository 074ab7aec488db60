"""``crash-test replay``: the recovery on one image, as a report names it."""

from __future__ import annotations

from functools import partial

from rich.console import Console
from rich.text import Text

from sardonyx.answer import Answer
from sardonyx.api.asked import CrashTestReplay
from sardonyx.crash_tests.searching import answered, searched
from sardonyx.crash_tests.tested import question
from sardonyx.questions import CrashTestQuestion
from sardonyx.runs.crash_test import crash_test
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashTestReplay, watch: Watch | None) -> Answer:
    """How the recovery ends on the image."""
    ask = CrashTestQuestion(replay=asked.image, **question(asked))
    found = searched(asked.recording.name, partial(crash_test, ask), watch)
    return answered("crash-test replay", found, ())


def tell(people: Console, answer: Answer) -> None:
    """How it ended, at which cut, and what it said."""
    fails, cut = answer["fails"], answer["cut"]
    people.print(
        Text.assemble(
            ("fails" if fails else "passes", "red" if fails else "green"),
            f": {answer['ended']} at cut {cut['number']} (row {cut['row']:,})",
        ),
        soft_wrap=True,
    )
    if answer["said"]:
        people.print(answer["said"], soft_wrap=True)
