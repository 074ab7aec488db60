"""``curve``: latency against bandwidth of a memory, beside what was measured.

Left out: everything that computes.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx import report as pages
from sardonyx._core import SardonyxError
from sardonyx.answer import Answer
from sardonyx.api.asked import Curve, schema_of
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.files import check_target
from sardonyx.report.curves import figures
from sardonyx.runs.accesses import Accesses, is_of_accesses
from sardonyx.runs.accesses import read_measured as read_accesses
from sardonyx.runs.curves import (
    Curves,
    Measured,
    Point,
    agreement,
    file_text,
    read_measured,
    shipped,
)
from sardonyx.runs.scheduler import Watch
from sardonyx.simulator.curve_threads import AS_IS, Shown, threads_shown

#: The shares of reads if nothing was measured.
READS = (100, 67, 50)


def answer(asked: Curve, watch: Watch | None) -> Answer:
    """The curves of each design."""
    text, name = _measured(asked.measured, asked.machine)
    loads: Accesses | Curves
    if is_of_accesses(text):
        loads = Accesses(
            machine=asked.machine,
            designs=asked.designs,
            points=tuple(read_accesses(text, name)),
            sets=asked.set,
            requests=asked.requests,
            seed=asked.seed,
            in_order=asked.in_order,
        )
    else:
        beside = read_measured(text, name) if text else []
        loads = Curves(
            machine=asked.machine,
            designs=asked.designs,
            reads=_shares(asked.reads, beside),
            sets=asked.set,
            outstanding=asked.outstanding,
            streams=asked.streams,
            bytes=asked.bytes,
            requests=asked.requests,
            seed=asked.seed,
            measured=tuple(beside),
        )
    _check_form(asked, name, threads=isinstance(loads, Accesses))
    loads.check()
    if asked.plot is not None:
        check_target(asked.plot, [], "--plot ")
    if isinstance(loads, Accesses):
        shown = threads_shown(loads, loads.run(asked.jobs, watch))
    else:
        shown = _shown(loads, loads.run(asked.jobs, watch))
    found = Answer("curve", shown.document, shown=(loads, shown))
    if asked.plot is not None:
        found.report(asked.plot)
        found.files.append(f"plots: {asked.plot}")
    return found


def _check_form(asked: Curve, measured: str, *, threads: bool) -> None:
    """An error if an option says what the points of a measurement do, or there are none."""
    if asked.in_order and not threads:
        raise SardonyxError(f"--in-order: nothing of {asked.machine} is a load of threads")
    usual = schema_of("curve")["properties"]
    for option in ("reads", "outstanding", "streams", "bytes") if threads else ():
        if getattr(asked, option) != usual[option].get("default"):
            raise SardonyxError(
                f"--{option}: {measured} says of each point what is asked for; leave the option "
                "out, or give --measured none"
            )


def tell(people: Console, answer: Answer) -> None:
    """The points, and how far they lie from what was measured."""
    for part in answer.shown[1].printed:
        people.print(part, soft_wrap=isinstance(part, Text))


def groups(answer: Answer) -> list[Any]:
    """Its figures."""
    return [SimpleNamespace(figures=answer.shown[1].figures)]


def report(answer: Answer, path: str | os.PathLike[str]) -> None:
    """Write the curves as a page."""
    loads, shown = answer.shown
    pages.write_curve_report(loads, shown.facts, shown.figures, Path(path))


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
            raise SardonyxError(f"--reads {part.strip()}: give whole percents, 0 to 100")
        shares.append(int(part))
    return tuple(dict.fromkeys(shares))


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
