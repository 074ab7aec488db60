"""``trace convert``: another simulator's trace to ours, or ours to another's."""

from __future__ import annotations

from functools import partial

from sardonyx import _core
from sardonyx.questions import TraceConvert
from sardonyx.runs.scheduler import Watch
from sardonyx.traces.facts import Facts, tell, there, written

__all__ = ["answer", "tell"]


def answer(asked: TraceConvert, watch: Watch | None) -> Facts:
    """What was written."""
    source = there(asked.source)
    call = partial(_core.trace_convert, asked.replace(source=source).json())
    return written("trace convert", asked.target, [source], call, watch)
