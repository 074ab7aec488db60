"""A paper's figures and ours on one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.draw.figure import GREY, RED, TEAL, Cell, Figure, Table, View, label, scatter
from sardonyx.papers.claims import ClaimRow

OURS, PAPERS = TEAL, RED


def figures(rows: Sequence[ClaimRow]) -> list[Figure]:
    """One figure for ratios, one for shares: a diamond is the paper's value, a dot is ours."""
    kinds = (
        (
            "claims-ratios",
            "Speed-ups and ratios beside the paper's",
            ("x",),
            "×, 1 is no change",
            "x",
        ),
        ("claims-shares", "Shares and reductions beside the paper's", ("%", "pp"), "share", "%"),
    )
    made = []
    for key, title, units, axis, unit in kinds:
        chosen = [row for row in rows if row.unit in units]
        if any(row.ours is not None for row in chosen):
            made.append(_figure(key, title, chosen, axis, unit))
    return made


def _figure(key: str, title: str, rows: Sequence[ClaimRow], axis: str, unit: str) -> Figure:
    names = [label(_name(row)) for row in rows]
    pairs = [(row, name) for row, name in zip(rows, names, strict=True) if row.ours is not None]
    gaps = {
        "type": "scatter",
        "mode": "lines",
        "x": [x for row, _ in pairs for x in (row.claim.value, row.ours, None)],
        "y": [y for _, name in pairs for y in (name, name, None)],
        "line": {"color": GREY, "width": 2},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    dots = markers(
        names,
        unit,
        (
            ("the paper's", [row.claim.value for row in rows], PAPERS, "diamond-open"),
            ("ours", [row.ours for row in rows], OURS, "circle"),
        ),
    )
    values = [x for row in rows for x in (row.claim.value, row.ours) if x is not None]
    low, high = min(0.0, *values), max(values)
    room = 0.04 * (high - low)
    xaxis: dict[str, Any] = {
        "range": [low - room, high + room],
        "title": {"text": axis},
        "automargin": True,
        "zeroline": True,
    }
    if unit == "%":
        xaxis["tickformat"] = ".0%"
    else:
        xaxis |= {"ticksuffix": "×", "tickformat": ",~f"}
        if (least := min(values)) > 0:  # a generated trace can be a hundred times the paper's
            xaxis |= {"type": "log", "dtick": "D2"}
            xaxis["range"] = [math.log10(0.85 * min(1, least)), math.log10(1.2 * high)]
    cells: list[list[Cell]] = [[_name(row), row.claim.value, row.ours, row.gap] for row in rows]
    return Figure(
        key,
        title,
        rows[0].claim.paper.upper(),
        "Each line is one claim: an open diamond where the paper reports it, a dot where we find "
        "it.",
        "Workloads differ from the paper's, so a gap is not an error by itself. The notes in the "
        "table say how each figure is defined.",
        [View("", [gaps, *dots], rows_of(names, xaxis))],
        Table((("claim", ""), ("paper", unit), ("ours", unit), ("gap", unit)), cells),
        sorted({name for row in rows for name in row.assumed}),
    )


def markers(
    names: Sequence[str],
    unit: str,
    kinds: Sequence[tuple[str, Sequence[float | None], str, str]],
) -> list[dict[str, Any]]:
    """The claims' values as points: of each kind whose they are, the values, colour and symbol."""
    form = "%{x:.3~%}" if unit == "%" else "%{x:.2f}×"
    return [
        scatter(
            "markers",
            whose,
            values,
            names,
            f"%{{y}}<br><b>{whose}</b>: {form}",
            marker={"color": colour, "size": 10, "symbol": symbol, "line": {"width": 2}},
        )
        for whose, values, colour, symbol in kinds
    ]


def rows_of(names: Sequence[str], xaxis: Mapping[str, Any]) -> dict[str, Any]:
    """The layout of a plot with a row for each claim, the first on top."""
    return {
        "height": 130 + 27 * len(names),
        "hovermode": "closest",
        "margin": {"l": 64, "r": 36, "t": 36, "b": 48},
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        "xaxis": xaxis,
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "range": [-0.7, len(names) - 0.3],
            "showgrid": True,
            "automargin": True,
        },
    }


def _name(row: ClaimRow) -> str:
    claim = row.claim
    whose = "" if claim.design == "workload" else f"{claim.design} "
    return f"{whose}{claim.metric.replace('_', ' ')}, {claim.stat} · {claim.where}"
