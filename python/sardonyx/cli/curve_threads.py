"""``sardonyx curve`` of a memory module under threads: what is printed of it.

Left out: everything that computes, and the options, which ``curve`` has.
"""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import check_json_target, check_target, for_people, write_json
from sardonyx.report import write_accesses_report
from sardonyx.runs.accesses import QUANTITIES, Accesses, Point, agreements

#: What a curve should be within, on the mean of its points.
WITHIN = 0.1


def show(asked: Accesses, points: list[Point], plot: Path | None, json_to: str | None) -> None:
    """Print, draw and write the points of ``asked``."""
    people = for_people(json_to)
    people.print(_table(points))
    people.print(_agreements(points))
    far = [found for found in agreements(points) if found.mean > WITHIN]
    if far:
        names = ", ".join(f"{' of '.join(reversed(found.curve))}" for found in far)
        people.print(Text(f"Further than {WITHIN:.0%} on the mean: {names}."), soft_wrap=True)
    if asked.sets or asked.designs != ("no-encryption",):
        people.print(
            Text("What was measured is the machine as it is, without a design.", style="dim")
        )
    if plot is not None:
        write_accesses_report(asked, points, plot, _core.VERSION)
        people.print(f"plots: {plot}", soft_wrap=True)
    write_json(json_to, _document(asked, points))


def check(asked: Accesses, plot: Path | None, json_to: str | None) -> None:
    """Refuse what cannot be run or written, before anything runs."""
    asked.check()
    check_json_target(json_to)
    if plot is not None:
        check_target(plot, [], "--plot ")


def _table(points: list[Point]) -> Table:
    several = len({point.design for point in points}) > 1
    table = Table(box=None, header_style="dim", pad_edge=False)
    for head in (*(["design"] if several else []), "curve", "load"):
        table.add_column(head, overflow="fold")
    for head in ("ours", "measured", "error"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("unit", overflow="fold")
    before = None
    for point in points:
        at = (point.design, *point.beside.curve)
        names = [point.design, " of ".join(reversed(point.beside.curve))] if at != before else []
        before = at
        table.add_row(
            *(names or ["", ""])[0 if several else 1 :],
            point.beside.load,
            f"{point.value:,.2f}",
            f"{point.beside.measured:,.2f}",
            f"{point.error:+.1%}",
            QUANTITIES[point.beside.quantity],
        )
    return table


def _agreements(points: list[Point]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("curve", overflow="fold")
    for head in ("points", "mean error", "worst"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("at", overflow="fold")
    for found in agreements(points):
        table.add_row(
            " of ".join(reversed(found.curve)),
            f"{found.points}",
            f"{found.mean:.1%}",
            f"{found.worst.error:+.1%}",
            found.worst.beside.load,
        )
    return table


def _document(asked: Accesses, points: list[Point]) -> dict[str, object]:
    return {
        "sardonyx": _core.VERSION,
        "machine": asked.machine,
        "settings": dict(asked.sets),
        "requests": asked.requests,
        "seed": asked.seed,
        "in_order": asked.in_order,
        "agreement": [
            {
                "figure": found.curve[0],
                "operation": found.curve[1],
                "points": found.points,
                "mean_error": found.mean,
                "worst_error": found.worst.error,
                "worst_at": found.worst.beside.load,
            }
            for found in agreements(points)
        ],
        "points": [point.to_document() for point in points],
    }
