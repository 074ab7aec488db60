"""``curve`` of a memory module under threads: what is printed of it.

Left out: everything that computes, and the options, which ``curve`` has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.draw.figure import Figure, Missing
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.report.accesses import figures
from sardonyx.runs.accesses import QUANTITIES, Accesses, Point, agreements

#: Curves whose points are further off than this on the mean are named.
WITHIN = 0.1
AS_IS = Text("What was measured is the machine as it is, without a design.", style="dim")


@dataclass(frozen=True)
class Shown:
    """What is printed of points, said and drawn in the report, and written as JSON."""

    printed: Sequence[Table | Text]
    facts: Sequence[tuple[str, str]]
    figures: Sequence[Figure | Missing]
    document: dict[str, object]


def threads_shown(asked: Accesses, points: list[Point]) -> Shown:
    """The points beside the measured ones, and how far each curve lies from its own."""
    parts: list[Table | Text] = [_table(points), _agreements(points)]
    far = [found for found in agreements(points) if found.mean > WITHIN]
    if far:
        names = ", ".join(f"{' of '.join(reversed(found.curve))}" for found in far)
        parts.append(Text(f"Further than {WITHIN:.0%} on the mean: {names}."))
    if not asked.as_measured():
        parts.append(AS_IS)
    facts = [
        (
            " of ".join(reversed(found.curve)),
            f"{found.mean:.1%} on the mean of {found.points} points",
        )
        for found in agreements(points)
    ]
    return Shown(parts, facts, figures(points), _document(asked, points))


def _table(points: list[Point]) -> Table:
    several = len({point.design for point in points}) > 1
    words = folded(*(["design"] if several else []), "curve", "load")
    values = numbers("ours", "measured", "error", no_wrap=True)
    table = grid(*words, *values, *folded("unit"), header_style="dim")
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
    values = numbers("points", "mean error", "worst", no_wrap=True)
    table = grid(*folded("curve"), *values, *folded("at"), header_style="dim")
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
