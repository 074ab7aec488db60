"""``trace info``: what is in a trace."""

from __future__ import annotations

from functools import partial
from typing import Any

from rich.console import Console

from sardonyx import _core, report
from sardonyx.answer import Answer
from sardonyx.api.asked import TraceInfo
from sardonyx.api.command import ran
from sardonyx.draw.bars import trace_bars
from sardonyx.report.tables import worth_warnings
from sardonyx.runs import scheduler, sources
from sardonyx.runs.facts import Info, Trace
from sardonyx.runs.recordings import path_of
from sardonyx.runs.scheduler import Watch
from sardonyx.tracing import facts


def answer(asked: TraceInfo, watch: Watch | None) -> Answer:
    """Records, duplicates, contents, collisions, locality."""
    source, notes = sources.trace("trace info", asked.trace, asked.limit)
    for line in notes:
        scheduler.tell(watch, line)
    if asked.plot is not None:
        facts.check_new(asked.plot, [path_of(asked.trace)])
    found = ran(asked.trace, partial(_core.trace_info, source), watch)
    known = Answer("trace info", found, shown=asked.trace)
    if asked.plot is not None:
        report.write_trace_report([_trace(asked.trace, found)], asked.plot)
        known.files.append(f"plots: {asked.plot}")
    return known


def tell(people: Console, answer: Answer) -> None:
    """The numbers, as bars too, and what they are worth."""
    facts.tell(people, answer)
    known = _trace(answer.shown, dict(answer))
    people.print(trace_bars(known, people.width))
    for warning in worth_warnings([known]):
        people.print(warning, soft_wrap=True)


def _trace(text: str, found: dict[str, Any]) -> Trace:
    """The facts under the name that reports give the trace."""
    (name, *_) = sources.named([text])
    return Trace(name, Info.of(found))
