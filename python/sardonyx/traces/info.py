"""``trace info``: what is in a trace, counted."""

from __future__ import annotations

from functools import partial

from rich.console import Console
from rich.text import Text

from sardonyx import _core
from sardonyx import report as pages
from sardonyx.api.command import ran
from sardonyx.questions import TraceInfo
from sardonyx.runs import mixes, sources
from sardonyx.runs.caveats import warnings
from sardonyx.runs.recordings import path_of
from sardonyx.runs.results import Info, Trace
from sardonyx.runs.scheduler import Watch
from sardonyx.traces.bars import trace_bars
from sardonyx.traces.facts import Facts, table_of, writable


def answer(asked: TraceInfo, watch: Watch | None) -> Facts:
    """The facts, and their drawing."""
    (name, source), *_ = sources.named([asked.trace], asked.limit).items()
    mixes.refuse("trace info", {name: source})
    sources.check(source)
    if asked.plot is not None:
        writable(asked.plot, [path_of(asked.trace)])
    facts = ran(asked.trace, partial(_core.trace_info, source.json()), watch)
    notes = sources.beyond([source])
    found = Facts("trace info", asked.trace, facts, asked.plot, notes=notes)
    if asked.plot is not None:
        pages.write_trace_report([_known(found)], asked.plot, _core.VERSION)
    return found


def tell(people: Console, answer: Facts) -> None:
    table_of(people, answer.title, answer.document())
    known = _known(answer)
    people.print(trace_bars(known, people.width))
    for warning in warnings([known]):
        people.print(Text(f"warning: {warning}.", style="yellow"), soft_wrap=True)
    if answer.plot is not None:
        people.print(f"plots: {answer.plot}", soft_wrap=True)


def _known(answer: Facts) -> Trace:
    """The trace as reports have it."""
    (name,) = sources.named([answer.title])
    return Trace(name, Info.of(answer.document()))
