"""``merge time``: what merging costs applications, over a memory of any design.

Left out: everything that computes, and the paper that the machine comes from (``reproduce``).
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sardonyx.api.command import Answer
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.questions import MergeTime
from sardonyx.runs.jobs import Setting
from sardonyx.runs.measures import divide
from sardonyx.runs.merging import algorithms
from sardonyx.runs.results import Results, Run
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_known
from sardonyx.runs.tailbench import APPLICATIONS, PLAIN, TimedPoint, TimedRuns

#: Each column: its heading, the metric, its format, and whether it is relative to no merging.
COLUMNS = (
    ("mean us", "geomean_sojourn_ns", "{:,.0f}", 1e-3),
    ("mean", "geomean_sojourn_ns", "x{:.2f}", None),
    ("95th", "p95_sojourn_ns", "x{:.2f}", None),
    ("read", "mean_read_latency_ns", "x{:.2f}", None),
    ("energy", "energy_nj", "x{:.2f}", None),
    ("saved %", "saving", "{:.1f}", 100),
    ("copied", "pages_copied", "{:,.0f}", 1),
    ("shared writes %", "write_reduction", "{:.1f}", 100),
    ("lines kept %", "loaded_lines_stored", "{:.1f}", 100),
)


def answer(asked: MergeTime, watch: Watch | None) -> Answer:
    """Every application under every design, on every memory."""
    chosen = list(dict.fromkeys(asked.applications or APPLICATIONS))
    for name in chosen:
        check_known("application", name, APPLICATIONS)
    sets: Sequence[Setting] = asked.set
    own: dict[str, Sequence[Setting]] = {}
    if asked.quick:
        from sardonyx.papers.pageforge import QUICK

        sets, own = (*QUICK.sets, *sets), {name: QUICK.own(name) for name in chosen}
    runs = TimedRuns(
        [
            TimedPoint(application, design, memory=under)
            for application in chosen
            for under in asked.memory
            for design in asked.designs
        ],
        machine=asked.machine,
        sets=sets,
        seed=asked.seed,
        own=own,
    )
    runs.check()
    return Answer("merge time", runs.run(asked.jobs, watch).to_document())


def tell(people: Console, answer: Answer) -> None:
    results = Results.from_document(answer.document())
    for application in dict.fromkeys(run.trace for run in results.runs):
        _tell(people, application, results)


def _tell(people: Console, application: str, results: Results) -> None:
    figures = numbers(*(heading for heading, *_ in COLUMNS))
    table = grid(*folded("memory"), "merging", *figures, title=application)
    ours = [run for run in results.runs if run.trace == application]
    yardsticks = {
        run.variant.get("memory", PLAIN): run for run in ours if not algorithms()[run.design].merges
    }
    for run in ours:
        memory = run.variant.get("memory", PLAIN)
        none = yardsticks.get(memory)
        table.add_row(f"{memory}", run.design, *(_cell(run, none, *rest) for _, *rest in COLUMNS))
    people.print(table)
    people.print(
        Text(
            "x: over no merging on the same memory; mean, 95th: what queries take; read: latency; "
            "shared writes, lines kept: what the memory's design itself shares",
            style="dim",
        ),
        soft_wrap=True,
    )


def _cell(run: Run, none: Run | None, name: str, form: str, factor: float | None) -> str:
    value = run.metric(name)
    if factor is None:
        value = None if none is None else divide(value, none.metric(name))
        factor = 1
    return "-" if value is None else form.format(factor * value)
