"""``crash replay``: the cut of a replay file, made again."""

from __future__ import annotations

import shlex

from sardonyx.api.command import Answer
from sardonyx.crashes.attacks import told
from sardonyx.crashes.replays import read
from sardonyx.crashes.tried import answered, runs
from sardonyx.crashes.verdicts import tell as tell
from sardonyx.questions import CrashReplay
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashReplay, watch: Watch | None) -> Answer:
    """What the run of the file shows at its cut."""
    found = runs([read(asked.file, asked.jobs, watch)], watch)
    line = shlex.join(["sardonyx", "crash", "replay", str(asked.file)])
    return answered("crash replay", found, [line for run in found for _ in told(run)])
