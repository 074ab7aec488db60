"""``sardonyx curve``: latency against bandwidth of a memory, beside what was measured.

Left out: everything that computes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx import report as pages
from sardonyx.cli.common import (
    MOST,
    check_json_target,
    err,
    for_people,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.curve_threads import AS_IS, Shown, threads_shown
from sardonyx.cli.options import Designs, JsonTo, Machine, Set, Workers
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.files import check_target
from sardonyx.report.curves import figures
from sardonyx.runs.accesses import Accesses, is_of_accesses
from sardonyx.runs.accesses import read_measured as read_accesses
from sardonyx.runs.curves import (
    Curves,
    Loads,
    Measured,
    Point,
    agreement,
    file_text,
    read_measured,
    shipped,
)
from sardonyx.runs.jobs import parse_settings
from sardonyx.runs.sources import parts

P = TypeVar("P")


class _Asked(Protocol[P]):
    """Loads that are run point by point."""

    def count(self) -> int: ...

    def run(self, workers: int | None, told: Callable[[], None]) -> list[P]: ...


#: The shares of reads if nothing was measured.
READS = (100, 67, 50)


def curve(
    ctx: typer.Context,
    machine: Machine = "cxl",
    designs: Designs = "no-encryption",
    reads: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT,..",
            help="Shares of reads, a curve each. Default: those measured, or 100,67,50.",
        ),
    ] = None,
    outstanding: Annotated[
        int, typer.Option(min=1, max=1 << 16, help="The most requests in flight.")
    ] = 256,
    streams: Annotated[
        int,
        typer.Option(
            min=0,
            max=1 << 16,
            help="Streams of lines that follow one another, half of reads and half of writes; "
            "0 draws any line.",
        ),
    ] = 16,
    span: Annotated[str, typer.Option("--bytes", help="The most bytes that are touched.")] = "1G",
    requests: Annotated[
        int,
        typer.Option(min=1000, max=MOST, help="Requests a point, after half as many uncounted."),
    ] = 60_000,
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Seed of addresses and contents.")] = 1,
    measured: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|none",
            help="Measured points as CSV: reads_percent,gb_per_s,read_ns, with the end of "
            "each curve last; or loads of threads (docs/simulator/medium.md). Default: the "
            "package's points for the machine of that name.",
        ),
    ] = None,
    in_order: Annotated[
        bool,
        typer.Option(
            "--in-order",
            help="Loads of threads: lines reach the memory in the order in which a thread "
            "asks for them, threads in turn. Default: in any order.",
        ),
    ] = False,
    settings: Set = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write the curves as an HTML page to this file.")
    ] = None,
    workers: Workers = None,
    json_to: JsonTo = None,
) -> None:
    """Draw a memory's latency against its bandwidth, beside published measurements.

    [bold]Example[/bold]: sardonyx curve --machine cxl --plot cxl.html

    The machine optane was measured with threads, so its curves are drawn over threads.
    """
    names = tuple(dict.fromkeys(parts(designs)))
    if not names:
        raise _core.SardonyxError("--designs: none given; give one at least")
    text, name = _measured(measured, machine)
    if is_of_accesses(text):
        for option in ("reads", "outstanding", "streams", "span"):
            source = ctx.get_parameter_source(option)
            if source is not None and source.name == "COMMANDLINE":
                flag = "bytes" if option == "span" else option
                raise _core.SardonyxError(
                    f"--{flag}: {name} says of each point what is asked for; leave the option "
                    "out, or give --measured none"
                )
        loads = Accesses(
            machine=machine,
            designs=names,
            points=tuple(read_accesses(text, name)),
            sets=parse_settings(settings or ()),
            requests=requests,
            seed=seed,
            in_order=in_order,
        )
        _check(loads, plot, json_to)
        _tell(loads, threads_shown(loads, _run(loads, workers)), plot, json_to)
        return
    if in_order:
        raise _core.SardonyxError(f"--in-order: nothing of {machine} is a load of threads")
    beside = read_measured(text, name) if text else []
    shares = _shares(reads, beside)
    asked = Curves(
        machine=machine,
        designs=names,
        reads=shares,
        sets=parse_settings(settings or ()),
        outstanding=outstanding,
        streams=streams,
        bytes=size_in_bytes("--bytes", span, 1 << 12),
        requests=requests,
        seed=seed,
        measured=tuple(beside),
    )
    _check(asked, plot, json_to)
    _tell(asked, _shown(asked, _run(asked, workers)), plot, json_to)


def _check(asked: Loads, plot: Path | None, json_to: str | None) -> None:
    """Refuse what cannot be run or written, before anything runs."""
    asked.check()
    check_json_target(json_to)
    if plot is not None:
        check_target(plot, [], "--plot ")


def _tell(asked: Loads, shown: Shown, plot: Path | None, json_to: str | None) -> None:
    people = for_people(json_to)
    for part in shown.printed:
        people.print(part, soft_wrap=isinstance(part, Text))
    if plot is not None:
        pages.write_curve_report(asked, shown.facts, shown.figures, plot)
        people.print(f"plots: {plot}", soft_wrap=True)
    write_json(json_to, shown.document)


def _measured(given: str | None, machine: str) -> tuple[str, str]:
    """The text of the measurement, empty for none, and its name."""
    if given == "none":
        return "", ""
    if given is not None:
        return file_text(given), given
    return shipped(machine) or "", f"{machine}.csv"


def _shares(text: str | None, beside: list[Measured]) -> tuple[int, ...]:
    if text is None:
        return tuple(dict.fromkeys(point.reads_percent for point in beside)) or READS
    shares = []
    for part in text.split(","):
        if not (part.strip().isdecimal() and 0 <= int(part) <= 100):
            raise _core.SardonyxError(f"--reads {part.strip()}: give whole percents, 0 to 100")
        shares.append(int(part))
    return tuple(dict.fromkeys(shares))


def _run(asked: _Asked[P], workers: int | None) -> list[P]:
    columns = (TextColumn("points"), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        task = bars.add_task("points", total=asked.count())
        return asked.run(workers, lambda: bars.advance(task))


def _table(points: list[Point]) -> Table:
    beside = any(point.measured for point in points)
    several = len({point.design for point in points}) > 1
    heads = ["reads %", "GB/s", "read ns", "99th", "write ns", "waiting"]
    heads += ["measured", "ns", "error"] if beside else []
    designs = folded("design") if several else []
    table = grid(*designs, *numbers(*heads, no_wrap=True), header_style="dim")
    before = None
    for point in points:
        curve = (point.design, point.reads_percent)
        names = (point.design, f"{point.reads_percent}") if curve != before else ("", "")
        before = curve
        row = [
            *names[0 if several else 1 :],
            f"{point.gb_per_s:.2f}",
            *(_ns(value) for value in (point.read_ns, point.read_p99_ns, point.write_ns)),
            f"{point.outstanding:.0f}",
        ]
        if beside:
            at = point.measured
            row += ["", ""] if at is None else [f"{at.gb_per_s:.2f}", _ns(at.read_ns)]
            row.append("" if point.error is None else f"{point.error:+.1%}")
        table.add_row(*row, end_section=point.offered is None)
    return table


def _ns(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _shown(asked: Curves, points: list[Point]) -> Shown:
    found = agreement(points)
    facts = [
        ("waiting at most", f"{asked.outstanding:,} requests"),
        ("streams", f"{asked.streams}" if asked.streams else "none: any line"),
    ]
    if found is None:
        said = "No measurements of this machine are known: --measured FILE gives yours."
        return Shown(
            [_table(points), Text(said, style="dim")],
            facts,
            figures(points),
            _document(asked, points),
        )
    worst = found.worst
    said = f"{found.mean:.1%} on the mean of {found.points} points"
    facts.append(("read latency, from measured", said))
    facts.append(("bandwidth at the ends, from measured", f"{found.ends:.1%} on the mean"))
    sentence = Text(
        f"Read latencies differ from the measured ones by {found.mean:.1%} on the mean of "
        f"{found.points} points, ends of curves included; most by {worst.error:+.1%}, at "
        f"{worst.reads_percent} % reads and {worst.gb_per_s:.1f} GB/s on {worst.design}. The "
        f"bandwidths at the ends differ by {found.ends:.1%} on the mean."
    )
    parts: list[Table | Text] = [_table(points), sentence]
    if not asked.as_measured():
        parts.append(AS_IS)
    return Shown(parts, facts, figures(points), _document(asked, points))


def _document(asked: Curves, points: list[Point]) -> dict[str, object]:
    found = agreement(points)
    return {
        "sardonyx": _core.VERSION,
        "machine": asked.machine,
        "settings": dict(asked.sets),
        "outstanding": asked.outstanding,
        "streams": asked.streams,
        "bytes": asked.bytes,
        "requests": asked.requests,
        "seed": asked.seed,
        "agreement": found
        and {
            "points": found.points,
            "mean_error": found.mean,
            "worst_error": found.worst.error,
            "mean_error_of_ends": found.ends,
        },
        "points": [point.to_document() for point in points],
    }
