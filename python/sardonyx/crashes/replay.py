"""``crash replay``: the cut of a replay file, made again."""

from __future__ import annotations

import shlex

from sardonyx.answer import Answer
from sardonyx.api.asked import CrashReplay
from sardonyx.crashes import plans
from sardonyx.crashes.replays import read
from sardonyx.crashes.run import tell as tell
from sardonyx.runs.crashes import explore
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashReplay, watch: Watch | None) -> Answer:
    """What came of the cut."""
    runs = [read(asked.file, asked.jobs, watch)]
    found = plans.ran("crash replay", runs, lambda: explore(runs, watch), watch)
    line = shlex.join(["sardonyx", "crash", "replay", str(asked.file)])
    found.shown = lambda *_: line
    return found
