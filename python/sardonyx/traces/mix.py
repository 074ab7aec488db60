"""``trace mix``: traces of several programs as one."""

from __future__ import annotations

from functools import partial

from sardonyx import _core
from sardonyx.questions import TraceMix
from sardonyx.runs.scheduler import Watch
from sardonyx.traces.facts import Facts, tell, there, written

__all__ = ["answer", "tell"]


def answer(asked: TraceMix, watch: Watch | None) -> Facts:
    """What was written."""
    sources = list(map(there, asked.traces))
    call = partial(_core.trace_mix, sources, str(asked.output))
    return written("trace mix", asked.output, sources, call, watch)
