"""What depends on assumed keys: a tornado of each headline figure, and conclusions that flip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.draw.figure import (
    BLUE,
    GREY,
    RED,
    Cell,
    Figure,
    Head,
    Missing,
    Table,
    View,
    label,
    layout,
)
from sardonyx.report.content import Block, Folded, Grid, Row, Td, Text, Th
from sardonyx.runs.sensitivity import Headline, Sensitivity

#: A tornado draws this many keys; its table has all that move the figure.
KEYS = 20
LOW, HIGH, TOGETHER = BLUE, RED, GREY


def tornado(found: Sensitivity) -> Figure | Missing:
    """How far each assumed key, alone, moves each headline figure."""
    head = Head("tornado", "What moves the headline figures", "")
    views: list[View] = []
    rows: list[list[Cell]] = []
    for headline in found.headlines:
        moved = found.rows(headline)
        if not moved or headline.value is None:
            continue
        who = f"{headline.design} over {headline.over}" if headline.over else headline.design
        name = f"{headline.title}, {who}"
        rows += [[f"{name}: {key.parameter}", low, high] for key, low, high in moved]
        views.append(_view(name, headline, headline.value, found))
    if not views:
        return head.missing("No assumed key moves a headline figure of these results.")
    return head.figure(
        "The chosen figure with one assumed key at the ends of its plausible range, all others as "
        "they are; the key that moves it most is at the top.",
        "A bar from the figure at the key's low, or its other words, to that at its high; the "
        "dotted line is the figure as it is. The grey bar is the least and the most of "
        f"{found.draws} draws of all keys together.",
        views,
        Table((("figure and key", ""), ("least", "x"), ("most", "x")), rows),
        choose="Figure",
    )


def _view(name: str, headline: Headline, base: float, found: Sensitivity) -> View:
    data: list[dict[str, Any]] = []
    moved = found.rows(headline)[:KEYS]
    names = [key.parameter for key, _, _ in moved]
    for place, colour, title in ((0, LOW, "low, or another word"), (-1, HIGH, "high")):
        lengths: list[float | None] = []
        told: list[str] = []
        for key, _, _ in moved:
            tried = key.tried[place] if len(key.tried) > 1 or place == _own_side(key) else None
            value = None if tried is None else tried.figures.get(headline.name)
            lengths.append(None if value is None else value - base)
            told.append("" if tried is None else f"{key.parameter} = {tried.value}")
        data.append(_bars(title, names, lengths, told, base, colour))
    if headline.low is not None and headline.high is not None:
        names = [*names, "all together"]
        ends = [headline.low, headline.high]
        for end, shown in zip(ends, (True, False), strict=True):
            each = _bars("all together", ["all together"], [end - base], [""], base, TOGETHER)
            data.append(each | {"showlegend": shown})
    shape = layout("")
    shape |= {
        "barmode": "overlay",
        "height": 120 + 26 * len(names),
        "xaxis": {"title": {"text": label(name)}, "automargin": True, "zeroline": False},
        "yaxis": {"automargin": True, "type": "category", "autorange": "reversed"},
        "shapes": [
            {
                "type": "line",
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "x0": base,
                "x1": base,
                "line": {"width": 1.5, "dash": "dot", "color": TOGETHER},
            }
        ],
    }
    return View(name, data, shape)


def _own_side(key: Any) -> int:
    """The side of a key with one value to try: above its own, or below."""
    return -1 if key.tried and key.tried[0].value == key.high else 0


def _bars(
    title: str,
    names: list[str],
    lengths: list[float | None],
    told: list[str],
    base: float,
    colour: str,
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": title,
        "y": list(map(label, names)),
        "x": lengths,
        "base": base,
        "customdata": [
            [label(text), None if length is None else base + length]
            for text, length in zip(told, lengths, strict=True)
        ],
        "marker": {"color": colour},
        "hovertemplate": "%{customdata[0]}<br>%{customdata[1]:.3f}<extra></extra>",
    }


def tables(found: Sensitivity) -> list[Block]:
    """The flips, the flips of all together, and every key with its range."""
    varied = sum(bool(key.tried) for key in found.keys)
    parts: list[Block] = [Text(found.note)] if found.note else []
    parts.append(
        Text(
            f"{varied} assumed keys at the ends of their ranges, one at a time, and {found.draws} "
            f"draws of all together: {found.runs:,} runs. Of {found.conclusions} conclusions "
            f"{len(found.by_conclusion())} flip under one key alone."
        )
    )
    flips = [
        [
            each.title,
            f"{each.design} over {each.over}" if each.over else each.design,
            each.workload or "mean",
            each.kind,
            _number(each.value),
            each.holds,
            each.becomes,
            each.parameter,
            each.until,
            each.since,
            f"{_number(each.at_value)} at {each.at}",
        ]
        for each in found.flips
    ]
    heads = [
        "figure", "designs", "workload", "by", "value", "as it is", "becomes", "key", "holds at",
        "flips at", "at the end",
    ]  # fmt: skip
    parts.append(_table("Conclusions that flip under one key", heads, flips, opened=True))
    drawn = [
        [
            each.title,
            f"{each.design} over {each.over}" if each.over else each.design,
            each.workload or "mean",
            each.kind,
            each.holds,
            f"{each.flips} of {each.draws}",
        ]
        for each in found.together
    ]
    heads = ["figure", "designs", "workload", "by", "as it is", "draws in which it flips"]
    parts.append(_table("Conclusions that flip with all drawn together", heads, drawn))
    keys = [
        [
            each.parameter,
            each.value,
            each.left_out or ", ".join(each.others) or f"{each.low} to {each.high}",
            each.why,
            each.reason,
            ", ".join(each.designs),
        ]
        for each in found.keys
    ]
    heads = ["key", "value", "range", "why this value", "why this range", "designs"]
    parts.append(_table("The assumed keys and their ranges", heads, keys))
    if found.failures:
        parts.append(Text("Could not be run:"))
        parts += [Text(each) for each in found.failures]
    return parts


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, opened: bool = False
) -> Block:
    if not rows:
        return Text(f"{title}: none.")
    cells = [Row([Td(cell, "name") for cell in row]) for row in rows]
    grid = Grid([Th(each, "name") for each in heads], cells)
    return Folded(f"{title} ({len(rows)})", [grid], opened)
