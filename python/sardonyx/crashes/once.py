"""``crash once``: one run of each design, with the settings given, cut."""

from __future__ import annotations

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import CrashOnce
from sardonyx.crashes import plans, replays
from sardonyx.crashes.run import tell as tell
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashOnce, watch: Watch | None) -> Answer:
    """What came of each run."""
    kept = replays.of(asked)
    found = plans.ran(asked, _core.crash, watch)
    found.shown = kept.write(found["runs"])
    return found
