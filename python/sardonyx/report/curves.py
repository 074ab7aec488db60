"""The figures of ``sardonyx curve``: latency against bandwidth, ours beside what was measured."""

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
from sardonyx.runs.curves import Point

COLUMNS = (
    ("design", ""),
    ("reads", "%"),
    ("asked for", "GB/s"),
    ("bandwidth", "GB/s"),
    ("read, mean", "ns"),
    ("read, 99th percentile", "ns"),
    ("write accepted, mean", "ns"),
    ("measured bandwidth", "GB/s"),
    ("measured read", "ns"),
)


def figures(points: Sequence[Point]) -> list[Figure | Missing]:
    """Both: reads' latencies and writes'."""
    curves = list(dict.fromkeys((point.design, point.reads_percent) for point in points))
    views = [
        _view("reads", "mean read latency (ns)", curves, points, "read_ns"),
        _view(
            "99th percentile", "read latency, 99th percentile (ns)", curves, points, "read_p99_ns"
        ),
        _view("writes", "mean time to acceptance (ns)", curves, points, "write_ns"),
    ]
    head = Head("curve", "Latency against bandwidth", "")
    figure = head.figure(
        "A line for each share of reads and design: what is asked for grows from point to point, "
        "and the last one is the end, where more is asked for than goes through. Crosses: "
        "measured.",
        "Right and low is better. Where a line turns up, the memory or the link to it is full.",
        views,
        Table(COLUMNS, [_row(point) for point in points]),
    )
    return [figure]


def _view(
    name: str,
    axis: str,
    curves: Sequence[tuple[str, int]],
    points: Sequence[Point],
    figure: str,
) -> View:
    data: list[dict[str, Any]] = []
    for index, (design, percent) in enumerate(curves):
        of = [point for point in points if (point.design, point.reads_percent) == (design, percent)]
        colour = LINE_COLOURS[index % len(LINE_COLOURS)]
        called = f"{design}, {percent} % reads"
        hover = f"<b>{label(called)}</b><br>%{{x:.2f}} GB/s: %{{y:,.1f}} ns"
        ours = [getattr(point, figure) for point in of]
        line = {"color": colour, "width": 2}
        x = [point.gb_per_s for point in of]
        data.append(scatter("lines+markers", called, x, ours, hover, line=line, marker={"size": 6}))
        beside = [point.measured for point in of if point.measured]
        if beside and figure == "read_ns":
            called = f"measured, {percent} % reads"
            hover = f"<b>{label(called)}</b><br>%{{x:.2f}} GB/s: %{{y:,.1f}} ns"
            marker = {"color": colour, "symbol": "x", "size": 8}
            x, y = [at.gb_per_s for at in beside], [at.read_ns for at in beside]
            data.append(scatter("markers", called, x, y, hover, marker=marker))
    shape = layout(axis, height=460)
    shape["xaxis"] = {
        "title": {"text": "bandwidth (GB/s)"},
        "automargin": True,
        "rangemode": "tozero",
    }
    return View(name, data, shape)


def _row(point: Point) -> list[Cell]:
    measured = point.measured
    return [
        point.design,
        point.reads_percent / 100,
        point.offered,
        point.gb_per_s,
        point.read_ns,
        point.read_p99_ns,
        point.write_ns,
        measured.gb_per_s if measured else None,
        measured.read_ns if measured else None,
    ]
