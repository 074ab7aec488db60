"""Figures of persistent programs that papers share: designs beside one of them, and curves over a
setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.draw.figure import (
    Cell,
    Curves,
    Figure,
    Head,
    Missing,
    Series,
    Table,
    View,
    at_one,
    layout,
)
from sardonyx.runs.measures import Two, arithmetic_mean, assumed_by
from sardonyx.runs.programs import Programs

MEAN = "mean"


def assumed(programs: Programs) -> list[str]:
    """The assumed keys on which times of these runs hang."""
    return assumed_by(programs.runs(), "time")


def curves_of(
    programs: Programs, of: Two, points: Sequence[tuple[dict[str, Any], dict[str, Any]]]
) -> dict[str, list[float | None]]:
    """``of`` two runs, which each point selects, by program, and the mean over the programs."""
    found = [programs.each(of, a, b) for a, b in points]
    curves = {program: [values[program] for values in found] for program in programs.names}
    return curves | {MEAN: [arithmetic_mean(values.values()) for values in found]}


def beside(
    programs: Programs,
    head: Head,
    shows: str,
    reading: str,
    axis: str,
    measures: dict[str, Two],
    over: str = "no-encryption",
    cores: int = 1,
) -> Figure | Missing:
    """Each program under each design relative to the same under ``over``, and the mean."""
    designs = programs.designs
    if over not in designs or cores not in programs.cores:
        on = "one core" if cores == 1 else f"{cores} cores"
        return head.missing(f"There is no run of `{over}` on {on} to compare with.")
    shape = layout(axis, shapes=[at_one()], yaxis={"ticksuffix": "×"})
    views, tables = [], []
    for name, measure in measures.items():
        series = Series("program", programs.names)
        hover = f", %{{x}}<br>{axis}: %{{y:.2f}}×"
        found = {
            d: programs.estimates(
                measure, {"design": d, "cores": cores}, {"design": over, "cores": cores}
            ).values()
            for d in designs
        }
        values = {d: [each.value for each in of] for d, of in found.items()}
        halves = {d: [each.half for each in of] for d, of in found.items() if d != over}
        bars = series.designs(values, hover, designs, halves=halves)
        views.append(View(name, bars, shape))
        tables.append(series.table())
    return head.figure(shows, reading, views, tables[0], assumed(programs))


def sweep(
    programs: Programs, head: Head, shows: str, reading: str, along: str, views: Sequence[Curves]
) -> Figure | Missing:
    """Curves over the values of a setting, a view each."""
    if not any(value is not None for v in views for line in v.lines.values() for value in line):
        return head.missing("This needs a sweep: `sardonyx reproduce sca` runs it.")
    longest = max((view.x for view in views), key=len)
    rows: list[list[Cell]] = [
        [f"{view.name}: {name}" if view.name else name, *line, *[None] * (len(longest) - len(line))]
        for view in views
        for name, line in view.lines.items()
    ]
    table = Table((("curve", ""), *((x, "") for x in longest)), rows)
    drawn = [view.view(along) for view in views]
    return head.figure(shows, reading, drawn, table, assumed(programs))
