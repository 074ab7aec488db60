"""``trace convert``: another simulator's trace as ours, or ours as another's."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import TraceConvert
from sardonyx.api.command import ran
from sardonyx.runs.recordings import path_of
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_file
from sardonyx.tracing.facts import check_new
from sardonyx.tracing.facts import tell as tell


def answer(asked: TraceConvert, watch: Watch | None) -> Answer:
    """What is in the new trace."""
    source = path_of(asked.source)
    if not Path(source).is_dir():  # of which the format says what to do
        check_file(source)
    check_new(asked.target, [source])
    call = partial(_core.trace_convert, asked.replace(source=source).json())
    return Answer("trace convert", ran(source, call, watch), shown=str(asked.target))
