"""``sardonyx merge time``: what merging costs applications, over a memory of any design.

Left out: everything that computes, and the paper that the machine comes from (``reproduce``).
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from sardonyx._core import SardonyxError
from sardonyx.cli.common import MOST, check_json_target, err, for_people, write_json
from sardonyx.cli.options import JsonTo, Machine, Set, Workers
from sardonyx.cli.progress import Watcher
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.runs.jobs import parse_settings
from sardonyx.runs.measures import divide
from sardonyx.runs.merging import algorithms
from sardonyx.runs.results import Results, Run
from sardonyx.runs.sources import check_known, parts
from sardonyx.runs.tailbench import APPLICATIONS, PLAIN, TimedPoint, TimedRuns

ALL = ",".join(algorithms())
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


def in_time(
    applications: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="APPLICATION..", help=f"Of {', '.join(APPLICATIONS)}; default: all of them."
        ),
    ] = None,
    designs: Annotated[
        str, typer.Option("--designs", "-d", help=f"What merges: {ALL}, separated by commas.")
    ] = ALL,
    memory: Annotated[
        str,
        typer.Option(
            help="The designs of the memory under the applications, separated by commas: names, "
            "or LOGGING/MAPPING+POLICY as in esd+sca."
        ),
    ] = PLAIN,
    machine: Machine = "pageforge",
    settings: Set = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A window of 40 ms in place of 400, smaller machines.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Seed of machines and queries.")] = 0,
    workers: Workers = None,
    json_to: JsonTo = None,
) -> None:
    """Say what same-page merging costs applications, on a memory of each design.

    [bold]Example[/bold]: sardonyx merge time silo --memory no-encryption,sca,esd --quick
    """
    chosen = applications or list(APPLICATIONS)
    for name in chosen:
        check_known("application", name, APPLICATIONS)
    sets, own = parse_settings(settings or ()), {}
    if quick:
        from sardonyx.papers.pageforge import QUICK

        sets, own = (*QUICK.sets, *sets), {name: QUICK.own(name) for name in chosen}
    runs = TimedRuns(
        [
            TimedPoint(application, design, memory=under)
            for application in dict.fromkeys(chosen)
            for under in _names("--memory", memory)
            for design in _names("--designs", designs)
        ],
        machine=machine,
        sets=sets,
        seed=seed,
        own=own,
    )
    runs.check()
    check_json_target(json_to)
    with Watcher(err) as watch:
        results = runs.run(workers, watch)
    people = for_people(json_to)
    for application in dict.fromkeys(chosen):
        _tell(people, application, results)
    write_json(json_to, results.to_document())


def _names(option: str, text: str) -> list[str]:
    names = parts(text)
    if not names:
        raise SardonyxError(f"{option}: none given; give one at least")
    return list(dict.fromkeys(names))


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
