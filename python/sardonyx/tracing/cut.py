"""``trace cut``: a stretch of a trace."""

from __future__ import annotations

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import TraceCut
from sardonyx.api.command import ran
from sardonyx.runs.recordings import path_of
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_file
from sardonyx.tracing.facts import check_new
from sardonyx.tracing.facts import tell as tell


def answer(asked: TraceCut, watch: Watch | None) -> Answer:
    """What is in the copy."""
    source, target = path_of(asked.source), str(asked.target)
    check_file(source)
    check_new(asked.target, [source])
    found = ran(
        source,
        lambda progress: _core.trace_cut(source, target, asked.skip, asked.limit, progress),
        watch,
    )
    return Answer("trace cut", found, shown=target)
