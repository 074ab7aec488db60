"""``sardonyx store estimate``: what deduplication would save of a tree, a device or a trace.

The counting is native (crates/stores/estimate); docs/store/estimate.md explains the figures.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypeGuard, get_args

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx import report as pages
from sardonyx.cli.common import PATH, check_json_target, err, for_people, size_in_bytes, write_json
from sardonyx.cli.forms import Options
from sardonyx.cli.options import JsonTo
from sardonyx.cli.progress import watched
from sardonyx.draw.grid import numbers
from sardonyx.places import check_target
from sardonyx.questions import EstimateQuestion, Format
from sardonyx.report.savings import times_of
from sardonyx.runs.rivals import rivals
from sardonyx.sizes import SUFFIXES, amount

NONE = "none"
BLOCKS = ("1K", "2K", "4K", "8K")
#: Seconds that the state may take to be written after Ctrl-C.
LONGEST_WRITE = 60.0


def is_format(text: str) -> TypeGuard[Format]:
    """Whether a trace may have this format."""
    return text in get_args(Format)


@dataclass(frozen=True, kw_only=True)
class Estimate(Options):
    """The options of ``sardonyx store estimate``."""

    path: Annotated[
        str, typer.Argument(help="A directory, a file, a device, or - for standard input.")
    ]
    block: Annotated[
        list[str] | None,
        typer.Option(help="Size of fixed blocks; repeatable. Default: 1K, 2K, 4K and 8K."),
    ] = None
    content_defined: Annotated[
        str,
        typer.Option(
            help="Average size of chunks whose ends the content decides; none: no such chunks."
        ),
    ] = "8K"
    trace: Annotated[
        str | None,
        typer.Option(help="PATH is a trace with digests for contents: fiu or destor."),
    ] = None
    memory: Annotated[str, typer.Option(help="The most memory; beyond it counts are sampled.")] = (
        "1G"
    )
    state: Annotated[
        Path | None,
        typer.Option(
            help="Save the state here each minute and at Ctrl-C, and go on from it.", **PATH
        ),
    ] = None
    plot: Annotated[
        Path | None, typer.Option(help="Draw ratios, references and costs as HTML.", **PATH)
    ] = None
    json_to: JsonTo = None


def estimate(asked: Estimate) -> None:
    """Tell what deduplication would save: distinct chunks, how often each comes, and the ratio.

    [bold]Example[/bold]: sardonyx store estimate /usr/share --block 4K
    """
    path, trace, state, plot = asked.path, asked.trace, asked.state, asked.plot
    check_json_target(asked.json_to, [path])
    if path != "-" and not os.path.lexists(path):
        raise _core.SardonyxError(
            f"{path}: there is no such file or folder; name one, or - for standard input"
        )
    if trace is not None and not is_format(trace):
        raise _core.SardonyxError(f"--trace {trace}: give {' or '.join(get_args(Format))}")
    if state is not None:
        check_target(state, [path], "--state ")
    if plot is not None:
        check_target(plot, [path], "--plot ")
    sizes = {size_in_bytes("--block", size) for size in BLOCKS}
    average = None
    if trace is None:
        sizes = {size_in_bytes("--block", size) for size in asked.block or BLOCKS}
        if asked.content_defined != NONE:
            average = size_in_bytes("--content-defined", asked.content_defined)
    question = EstimateQuestion(
        path=path,
        trace=trace,
        blocks=tuple(sorted(sizes)),
        content_defined=average,
        memory=size_in_bytes("--memory", asked.memory),
        state=str(state.absolute()) if state else None,
    ).json()
    plan = json.loads(_core.store_plan(question))
    json_to = asked.json_to
    asked.refuse_idle(
        f"with --trace {trace}, whose chunks are as recorded" if trace else "without --trace"
    )
    _announce(plan)
    started = time.monotonic()
    answer = _counted(path, question, state)
    seconds = max(time.monotonic() - started, 1e-9)
    found, designs = answer["found"], answer["designs"]
    if found["unreadable"] and not found["bytes"]:
        raise _core.SardonyxError(
            f"nothing could be read: {found['unreadable_named'][0]}; check the path and its "
            "permissions"
        )
    tables = [
        {"cutting": named(one), **asdict(rival)}
        for one in found["cuttings"]
        for rival in rivals(one, found["files"])
    ]
    people = for_people(json_to)
    _tell(people, found, designs, tables)
    if plot is not None:
        names = [named(cutting) for cutting in found["cuttings"]]
        pages.write_savings_report(path, names, found, designs, plot, _core.VERSION)
        people.print(f"plots: {plot}", soft_wrap=True)
    if found["unreadable"]:
        err.print(f"note: {found['unreadable']:,} files could not be read, among them:")
        for reason in found["unreadable_named"]:
            err.print(f"  {reason}", soft_wrap=True)
    read = plan["bytes"] if trace is not None else found["bytes"]
    err.print(f"{amount(read or 0)} in {seconds:.1f} s", style="dim")
    write_json(json_to, {"path": path} | found | {"designs": designs, "tables": tables})


def _counted(path: str, question: str, state: Path | None) -> dict[str, Any]:
    try:
        with TemporaryDirectory(prefix="sardonyx.") as scratch:
            call = partial(_core.store_estimate, question, scratch)
            answer: dict[str, Any] = json.loads(watched(err, path, call, "B"))
            return answer
    except KeyboardInterrupt:
        if state is not None:
            for thread in threading.enumerate():  # the native one, which writes the state
                if thread.name.startswith("sardonyx-"):
                    thread.join(LONGEST_WRITE)
        if state is not None and state.exists():
            err.print(f"note: the same command goes on from {state}", soft_wrap=True)
        raise


def _tell(
    people: Console,
    found: dict[str, Any],
    designs: list[dict[str, Any]],
    tables: list[dict[str, Any]],
) -> None:
    people.print(_cuttings(found["cuttings"]))
    people.print("\ndistinct contents by how often they come", style="dim")
    people.print(_references(found["cuttings"]))
    if designs:
        people.print(
            "\nto store it: recam by its model, conventional by its costs, energies assumed",
            style="dim",
        )
        people.print(_designs(designs))
    if tables:
        people.print("\nthe table in other systems, by their makers' formulas", style="dim")
        people.print(_rivals(tables))
    if found["hole_bytes"]:
        people.print(f"{found['hole_bytes']:,} bytes of holes are skipped: no store keeps them")


def _announce(plan: dict[str, Any]) -> None:
    """Print the memory and the precision, before any of it is taken."""
    what = "a stream" if plan["bytes"] is None else amount(plan["bytes"])
    precise = "every count exact" if plan["exact"] else "counts sampled if that is full"
    err.print(
        f"{what} in {plan['files']:,} file{'s' if plan['files'] != 1 else ''}; memory at most "
        f"{amount(plan['memory_bytes'])}, "
        f"{precise}",
        style="dim",
    )


def _table(of: str, *figures: str) -> Table:
    return Table(of, *numbers(*figures), box=None, header_style="dim")


def _cuttings(cuttings: list[dict[str, Any]]) -> RenderableType:
    heads = ("count", "distinct", "duplicates", "zero", "bytes kept", "ratio")
    table = _table("chunks", *heads)
    for one in cuttings:
        about = "~" if one["followed_one_in"] > 1 else ""
        share = 1 - one["unique_chunks"] / one["chunks"] if one["chunks"] else 0.0
        ratio = "-" if one["ratio"] is None else f"{one['ratio']:.2f}x"
        table.add_row(
            named(one),
            f"{one['chunks']:,}",
            f"{about}{one['unique_chunks']:,}",
            f"{about}{share:.1%}",
            f"{one['zero_chunks']:,}",
            f"{about}{one['unique_bytes']:,}",
            f"{about}{ratio}",
        )
    return table


def _references(cuttings: list[dict[str, Any]]) -> RenderableType:
    """Distinct contents by how often they come: one column for each cutting."""
    table = _table("times", *map(named, cuttings))
    longest = max((one["references"] for one in cuttings), key=len)
    for number, row in enumerate(longest):
        counts = (one["references"][number : number + 1] for one in cuttings)
        table.add_row(
            times_of(row),
            *(f"{count[0]['contents']:,}" if count else "-" for count in counts),
        )
    return table


def _designs(costs: list[dict[str, Any]]) -> RenderableType:
    """The cost of storing it with each design."""
    table = _table("design", "block", "room", "time", "energy")
    for one in costs:
        table.add_row(
            one["design"],
            short(one["block_bytes"]),
            short(one["capacity_bytes"]),
            f"{one['seconds']:,.4g} s",
            f"{one['energy_nj'] / 1e9:,.4g} J",
        )
    return table


def _rivals(tables: list[dict[str, Any]]) -> RenderableType:
    """Memory of the tables; how a write reads them and the formula's source stand below."""
    names = list(dict.fromkeys(row["name"] for row in tables))
    table = _table("chunks", *(f"{name} MB" for name in names))
    for cutting in dict.fromkeys(row["cutting"] for row in tables):
        memory = {row["name"]: row["memory_bytes"] for row in tables if row["cutting"] == cutting}
        cells = (f"{memory[name] / 1e6:,.1f}" if name in memory else "-" for name in names)
        table.add_row(cutting, *cells)
    said = {row["name"]: row for row in tables}
    notes = [
        Text(f"{name}: reads a write: {row['reads_a_write']} ({row['source']})", style="dim")
        for name, row in said.items()
    ]
    return Group(table, *notes)


def short(size: int) -> str:
    """``4K``, ``16M``, ``1G``; other sizes in bytes."""
    for letter in ("G", "M", "K"):
        if size and size % SUFFIXES[letter] == 0:
            return f"{size // SUFFIXES[letter]:,}{letter}"
    return f"{size:,}"


def named(cutting: dict[str, Any]) -> str:
    """What a way of cutting is called: ``4K``, ``~8K by content``."""
    size = cutting["chunk_bytes"]
    if size is None:
        return "as recorded"
    return short(size) if cutting["kind"] == "fixed" else f"~{short(size)} by content"
