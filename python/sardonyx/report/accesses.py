"""The figures of ``sardonyx curve`` of a module under threads: ours beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.draw.figure import (
    LINE_COLOURS,
    Cell,
    Figure,
    Head,
    Missing,
    Table,
    View,
    label,
    layout,
    scatter,
)
from sardonyx.runs.accesses import QUANTITIES, Point, varied

COLUMNS = (("design", ""), ("operation", ""), ("load", ""), ("ours", ""), ("measured", ""))
AXES = {"threads": "threads", "access_bytes": "bytes of an access", "bytes": "bytes of the region"}


def figures(points: Sequence[Point]) -> list[Figure | Missing]:
    """One for each measured figure."""
    names = dict.fromkeys(point.beside.figure for point in points)
    return [_figure(name, [p for p in points if p.beside.figure == name]) for name in names]


def _figure(name: str, points: Sequence[Point]) -> Figure:
    over = varied([point.beside for point in points])
    unit = QUANTITIES[points[0].beside.quantity]
    data: list[dict[str, Any]] = []
    curves = list(dict.fromkeys((point.design, point.beside.operation) for point in points))
    for index, (design, operation) in enumerate(curves):
        of = [p for p in points if (p.design, p.beside.operation) == (design, operation)]
        colour = LINE_COLOURS[index % len(LINE_COLOURS)]
        x = [float(getattr(point.beside, over)) for point in of]
        called = f"{design}, {operation}"
        hover = f"<b>{label(called)}</b><br>%{{x}}: %{{y:,.2f}} {unit}"
        line, marker = {"color": colour, "width": 2}, {"size": 6}
        ours = [point.value for point in of]
        data.append(scatter("lines+markers", called, x, ours, hover, line=line, marker=marker))
        called = f"measured, {operation}"
        hover = f"<b>{label(called)}</b><br>%{{x}}: %{{y:,.2f}} {unit}"
        cross = {"color": colour, "symbol": "x", "size": 8}
        beside = [point.beside.measured for point in of]
        data.append(scatter("markers", called, x, beside, hover, marker=cross))
    shape = layout(unit, height=460)
    shape["xaxis"] = {
        "title": {"text": AXES[over]},
        "automargin": True,
        "type": "linear" if over == "threads" else "log",
    }
    rows: list[list[Cell]] = [
        [p.design, p.beside.operation, p.beside.load, p.value, p.beside.measured] for p in points
    ]
    head = Head(name.replace(" ", "-"), name.capitalize(), "")
    return head.figure(
        "A line for each operation and design. Crosses: measured.",
        "The nearer a line is to its crosses, the better.",
        [View(name, data, shape)],
        Table(COLUMNS, rows),
    )
