"""``crash once``: one run of each design, cut."""

from __future__ import annotations

from typing import Any

from sardonyx.api.command import Answer
from sardonyx.crashes.replays import replays
from sardonyx.crashes.tried import answered, cut_how, one_run, runs
from sardonyx.crashes.verdicts import tell as tell
from sardonyx.questions import CrashOnce
from sardonyx.runs.scheduler import Watch

#: The prefix of a position in ``cuts``.
AT = "at:"


def answer(asked: CrashOnce, watch: Watch | None) -> Answer:
    """What each run shows; the cut of each violation is in a replay file."""
    asks = one_run(asked, asked.sharing, **_cuts(asked.cuts), **cut_how(asked))
    again = replays(asked)
    found = runs(asks, watch)
    return answered("crash once", found, again.lines(found))


def _cuts(cuts: int | str) -> dict[str, Any]:
    """The positions that are cut."""
    if isinstance(cuts, str) and cuts.startswith(AT):
        return {"cut": int(cuts.removeprefix(AT))}
    return {"cuts": None if cuts == "all" else cuts}
