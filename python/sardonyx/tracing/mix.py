"""``trace mix``: several traces as one."""

from __future__ import annotations

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import TraceMix
from sardonyx.api.command import ran
from sardonyx.runs.recordings import path_of
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_file
from sardonyx.tracing.facts import check_new
from sardonyx.tracing.facts import tell as tell


def answer(asked: TraceMix, watch: Watch | None) -> Answer:
    """What is in the mix."""
    traces, target = [*map(path_of, asked.traces)], str(asked.output)
    for source in traces:
        check_file(source)
    check_new(asked.output, traces)
    found = ran(
        " + ".join(traces), lambda progress: _core.trace_mix(traces, target, progress), watch
    )
    return Answer("trace mix", found, shown=target)
