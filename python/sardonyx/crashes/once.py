"""``crash once``: one run of each design, with the settings given, cut."""

from __future__ import annotations

from typing import Any

from sardonyx.answer import Answer
from sardonyx.api.asked import CrashOnce
from sardonyx.crashes import plans, replays
from sardonyx.crashes.run import tell as tell
from sardonyx.runs.crashes import explore
from sardonyx.runs.scheduler import Watch

#: The prefix of a position in ``--cuts``.
AT = "at:"


def answer(asked: CrashOnce, watch: Watch | None) -> Answer:
    """What came of each run."""
    kept = replays.of(asked)
    how: dict[str, Any] = plans.cut_how(asked)
    if asked.cuts.startswith(AT):
        how["cut"] = int(asked.cuts.removeprefix(AT))
    elif asked.cuts != "all":
        how["cuts"] = int(asked.cuts)
    runs = plans.one_run(asked, asked.sharing, **how)
    found = plans.ran("crash once", runs, lambda: explore(runs, watch), watch)
    found.shown = kept.write(found["runs"])
    return found
