"""``crash replay``: the cut of a replay file, made again."""

from __future__ import annotations

import shlex

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import CrashReplay
from sardonyx.crashes import plans
from sardonyx.crashes.replays import read
from sardonyx.crashes.run import tell as tell
from sardonyx.runs.crashes import label
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashReplay, watch: Watch | None) -> Answer:
    """What came of the cut."""
    question = read(asked.file, asked.jobs, watch)
    run = {
        "label": label(question),
        "question": question.document(),
        "memory": _core.crash_memory(question.json()),
    }
    found = plans.judged("crash replay", [run], _core.crash, watch)
    line = shlex.join(["sardonyx", "crash", "replay", str(asked.file)])
    found.shown = lambda *_: line
    return found
