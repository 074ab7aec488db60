"""The figures of ``store estimate``: what deduplication would save, how often contents come, and
what each design would take to store it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from sardonyx.draw.figure import ORDERED_COLOURS, Figure, Head, Missing, Series, View, label, layout

#: The answer of ``_core.store_estimate`` for one way of cutting, and for one design.
Cutting = Mapping[str, Any]
Design = Mapping[str, Any]

COLOURS = ORDERED_COLOURS
OF_DESIGNS = ("#009e73", "#d55e00", "#0072b2", "#cc79a7", "#56b4e9", "#e69f00")


def figures(
    names: Sequence[str], cuttings: Sequence[Cutting], designs: Sequence[Design]
) -> list[Figure | Missing]:
    """All of them; ``names`` are what the ways of cutting are called."""
    return [_ratio(names, cuttings), _references(names, cuttings), _designs(designs)]


def _ratio(names: Sequence[str], cuttings: Sequence[Cutting]) -> Figure | Missing:
    head = Head("ratio", "Deduplication ratio", "")
    series = Series("chunks", names, None)
    ratios = [one["ratio"] for one in cuttings]
    bars = [series.bar("ratio", "x", ratios, COLOURS[2], "%{x}<br>%{y:.2f}x")]
    return head.figure(
        "Bytes over bytes of distinct chunks, for each way of cutting.",
        "Smaller blocks find more duplicates and need a larger index. Chunks cut by content find "
        "what has moved by a few bytes, which fixed blocks do not.",
        [View("", bars, layout("bytes over distinct bytes"))],
        series.table(),
    )


def _references(names: Sequence[str], cuttings: Sequence[Cutting]) -> Figure | Missing:
    head = Head("references", "How often contents come", "")
    longest = max((one["references"] for one in cuttings), key=len)
    if not longest:
        return head.missing("There is no chunk.")
    series = Series("chunks", names, None)
    views = []
    for view, figure in (("chunks", "chunks"), ("distinct contents", "contents")):
        data = []
        for number, row in enumerate(longest):
            times = times_of(row)
            shares = [_share(one["references"], number, figure) for one in cuttings]
            colour = COLOURS[number % len(COLOURS)]
            hover = f"%{{x}}<br>come {times} times: %{{y:.2%}} of {view}"
            data.append(series.bar(f"{times}×", "%", shares, colour, hover, f"{view} {times}×"))
        yaxis = {"tickformat": ".0%", "range": [0, 1]}
        views.append(View(view, data, layout(f"share of {view}", barmode="stack", yaxis=yaxis)))
    return head.figure(
        "Contents are grouped by how often they come; a bar shows the share of each group.",
        "Where few contents make up many chunks, a small cache of fingerprints finds most "
        "duplicates.",
        views,
        series.table(),
    )


def _share(rows: Sequence[Mapping[str, int]], number: int, figure: str) -> float | None:
    whole = sum(row[figure] for row in rows)
    return rows[number][figure] / whole if number < len(rows) else None


def times_of(row: Mapping[str, int]) -> str:
    """``1``, ``3-4``: how often the contents of a row come."""
    least, most = row["least"], row["most"]
    return f"{most}" if least == most else f"{least}-{most}"


def _designs(designs: Sequence[Design]) -> Figure | Missing:
    head = Head("designs", "To store it", "")
    sizes = list(dict.fromkeys(one["block_bytes"] for one in designs))
    if not sizes:
        return head.missing("No way of cutting gives blocks of one size.")
    series = Series("block", [f"{size:,} bytes" for size in sizes], None)
    views = []
    for view, key, unit, scale in (("time", "seconds", "s", 1), ("energy", "energy_nj", "J", 1e9)):
        data = []
        for name, colour in zip(dict.fromkeys(one["design"] for one in designs), cycle(OF_DESIGNS)):
            values = [one[key] / scale for one in designs if one["design"] == name]
            hover = f"{label(name)}, blocks of %{{x}}<br>%{{y:.4~g}} {unit}"
            data.append(series.bar(name, "", values, colour, hover, f"{name}, {view} ({unit})"))
        axis = {"type": "log", "rangemode": "normal", "exponentformat": "power"}
        views.append(View(view, data, layout(f"{view} ({unit})", yaxis=axis)))
    return head.figure(
        "What each design would take to write all of it, block after block.",
        "What is simulated, by its model, for contents that share no row, in a store of the next "
        "power of two of the distinct bytes. What is executed, by a short run on this "
        "machine, so it differs each time.",
        views,
        series.table(),
        [
            "energies of the array and power of the machine: middles of brackets "
            "(docs/store/stores.md)"
        ],
    )
