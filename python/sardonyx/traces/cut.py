"""``trace cut``: a stretch of a trace."""

from __future__ import annotations

from functools import partial

from sardonyx import _core
from sardonyx.questions import TraceCut
from sardonyx.runs.scheduler import Watch
from sardonyx.traces.facts import Facts, tell, there, written

__all__ = ["answer", "tell"]


def answer(asked: TraceCut, watch: Watch | None) -> Facts:
    """What was written."""
    source = there(asked.source)
    call = partial(_core.trace_cut, source, str(asked.target), asked.skip, asked.limit)
    return written("trace cut", asked.target, [source], call, watch)
