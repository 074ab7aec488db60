"""The figures of a sweep: small multiples, parallel coordinates, the Pareto front.

Rows are points. Where a figure has fewer axes than the sweep, the others are averaged,
and it says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
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
from sardonyx.report.content import (
    Block,
    Grid,
    Group,
    Row,
    Td,
    Text,
    heads_of_words,
    words,
)
from sardonyx.runs.measures import arithmetic_mean
from sardonyx.sweeps.table import Goal, Swept, front, ranked

#: The most panels, lines in one, views, and rows of a table.
PANELS, LINES, VIEWS, BEST = 12, 8, 12, 20
#: A plot draws at most this many points.
DRAWN = 2_000
#: Colours from the worst to the best: Viridis, which reads in grey too.
EIGHTHS = (
    "#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725",
)  # fmt: skip
Values = Mapping[str, Any]


def groups(swept: Swept) -> list[Group]:
    """The report's sections."""
    found = [
        Group(
            "about-sweep",
            "The sweep",
            [_multiples(swept), _parallel(swept), _pareto(swept)],
        )
    ]
    if swept.failed:
        found.append(Group("failed", "Failed points", inner=_failed(swept)))
    found.append(Group("assumed", "Assumptions", inner=_assumed(swept)))
    return found


def _numeric(swept: Swept) -> list[str]:
    return [
        name
        for name in swept.axes
        if name not in ("seed", "repeat")
        and all(
            isinstance(value, int | float) and not isinstance(value, bool)
            for value in swept.values(name)
        )
    ]


def _multiples(swept: Swept) -> Figure | Missing:
    """A panel a subject, a line a design or value, along each numeric axis."""
    head = Head("multiples", "Figures along the axes", "")
    along = _numeric(swept)
    if not along or not swept.goals:
        return head.missing("This needs an axis of numbers and a figure to draw.")
    rows: list[list[Cell]] = []
    views: list[View] = []
    for goal, axis in list(product(swept.goals, along))[:VIEWS]:
        others = [name for name in swept.axes if name not in (axis, swept.subject)]
        lines = next(iter(others), "")
        if "design" in swept.axes and axis != "design":
            lines = "design"
        views.append(_panels(swept, goal, axis, lines, rows))
    return head.figure(
        "Each panel is a subject, each line a design or a value of another axis, along one axis. "
        "Dots are arithmetic means over the axes that are left.",
        "Look for the value of the axis from which a line is flat: more buys nothing there. Panels "
        "have scales of their own; axes of y need not start at 0.",
        views,
        Table(
            (("figure, subject, line, value", ""), ("mean", ""), ("least", ""), ("most", "")), rows
        ),
    )


def _panels(swept: Swept, goal: Goal, axis: str, lines: str, rows: list[list[Cell]]) -> View:
    panels = list(swept.by_subject().items())[:PANELS]
    across = 1 if len(panels) == 1 else 2 if len(panels) <= 4 else 3
    down = math.ceil(len(panels) / across)
    xs = swept.values(axis)
    names = [value for value in (swept.values(lines) if lines else [None])][:LINES]
    above = [float(x) for x in xs if isinstance(x, int | float) and x > 0]
    spread = len(above) == len(xs) > 2 and max(above) / min(above) >= 8
    data: list[dict[str, Any]] = []
    shape = layout("", height=120 + 240 * down)
    shape["grid"] = {"rows": down, "columns": across, "pattern": "independent"}
    shape["annotations"] = []
    for at, (subject, own) in enumerate(panels):
        number = "" if at == 0 else str(at + 1)
        shape[f"xaxis{number}"] = {
            "title": {"text": label(axis)},
            "automargin": True,
            "type": "log" if spread else "linear",
            **({"tickvals": xs, "ticktext": [f"{x}" for x in xs]} if len(xs) <= 8 else {}),
        }
        shape[f"yaxis{number}"] = {"title": {"text": label(goal.name)}, "automargin": True}
        shape["annotations"].append(
            {"text": label(subject), "xref": f"x{number} domain", "yref": f"y{number} domain",
             "x": 0.5, "y": 1.12, "showarrow": False}
        )  # fmt: skip
        for index, value in enumerate(names):
            means: list[float | None] = []
            for x in xs:
                found = [
                    float(figure)
                    for row in own
                    if row.get(axis) == x
                    and (not lines or row.get(lines) == value)
                    and isinstance(figure := row.get(goal.name), int | float)
                ]
                means.append(arithmetic_mean(found))
                if found:
                    line = f"{goal.name}, {subject}, {value}, {axis} = {x}"
                    rows.append([line, means[-1], min(found), max(found)])
            text = str(value) if lines else goal.name
            colour = LINE_COLOURS[index % len(LINE_COLOURS)]
            data.append(
                scatter(
                    "lines+markers", text, xs, means,
                    f"<b>{label(subject)}, {label(text)}</b><br>%{{x}}<br>%{{y:.6~g}}",
                    line={"color": colour, "width": 2.2}, marker={"size": 7}, legendgroup=text,
                    showlegend=at == 0, xaxis=f"x{number}", yaxis=f"y{number}",
                    meta={"of": {"workload": str(subject)}},
                )
            )  # fmt: skip
    return View(f"{goal.name} along {axis}", data, shape)


def _parallel(swept: Swept) -> Figure | Missing:
    """Every point as a line over all axes and figures, drawn without WebGL."""
    head = Head("parallel", "Parallel coordinates", "")
    names = [name for name in swept.axes if name != "repeat"]
    if not names or not swept.goals or not swept.rows:
        return head.missing("This needs an axis and a figure.")
    columns = [*names, *(goal.name for goal in swept.goals)]
    views: list[View] = []
    rows: list[list[Cell]] = []
    every = 1
    for goal in swept.goals[:VIEWS]:
        known = list(reversed(ranked(swept.rows, goal)))  # the best are drawn last, on top
        every = max(every, -(-len(known) // DRAWN))
        if known:
            views.append(_lines(swept, goal, columns, known[::-every][::-1]))
        for row in ranked(known, goal)[:BEST]:
            shown = ", ".join(str(row.get(name)) for name in names)
            rows.append([f"{goal.name}: {shown}", *(row.get(each.name) for each in swept.goals)])
    if not views:
        return head.missing("No point has the figures.")
    left_out = f" One point in {every} is drawn." if every > 1 else ""
    return head.figure(
        "Every line is a point: its settings, then what came of them, each between the least and "
        "the most." + left_out,
        "The colour goes by the figure chosen, from the worst eighth of the points to the best. "
        "Click an eighth in the legend to hide it. Where lines of one colour pass through one "
        "setting, that setting drives the result. The table has the best.",
        views,
        Table(
            ((f"figure: {', '.join(names)}", ""), *((each.name, "") for each in swept.goals)), rows
        ),
        choose="Colour by",
    )


def _lines(swept: Swept, goal: Goal, columns: Sequence[str], rows: Sequence[Values]) -> View:
    scales = {name: _scale(swept, name) for name in columns}
    data = []
    parts = min(len(EIGHTHS), len(rows))
    for part in range(parts):
        x: list[str | None] = []
        y: list[float | None] = []
        text: list[str] = []
        for row in rows[part * len(rows) // parts : (part + 1) * len(rows) // parts]:
            for name in columns:
                place = scales[name].get(row.get(name))
                x.append(label(name))
                y.append(place)
                text.append(label(f"{name} = {row.get(name)}"))
            x.append(None)
            y.append(None)
            text.append("")
        words = "worst" if part == 0 else "best" if part == parts - 1 else f"{part + 1} of {parts}"
        line = {"color": EIGHTHS[part * len(EIGHTHS) // parts], "width": 1.2}
        hover = "%{text}"
        data.append(scatter("lines", words, x, y, hover, text=text, line=line, opacity=0.75))
    shape = layout("", height=440)
    shape["margin"] = {"l": 40, "r": 40, "t": 60, "b": 60}
    shape["xaxis"] = {"type": "category", "automargin": True, "showgrid": True}
    shape["yaxis"] = {"visible": False, "range": [-0.08, 1.08]}
    shape["annotations"] = [
        {"text": label(text), "x": label(name), "y": at, "showarrow": False, "font": {"size": 11},
         "bgcolor": "rgba(128,128,128,0.15)"}
        for name in columns
        for text, at in _marks(swept, name)
    ]  # fmt: skip
    return View(goal.name, data, shape)


class _Scale(dict[Any, float]):
    """Places of numbers between the least and the most."""

    def __init__(self, least: float, most: float) -> None:
        super().__init__()
        self._least, self._most = least, most

    def get(self, value: Any, default: Any = None) -> Any:
        if not isinstance(value, int | float):
            return default
        wide = self._most - self._least
        return (value - self._least) / wide if wide else 0.5


def _scale(swept: Swept, name: str) -> dict[Any, float]:
    values = swept.values(name)
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if name not in swept.axes or (numbers and len(numbers) == len(values) > 8):
        return _Scale(min(numbers), max(numbers)) if numbers else {}
    return {value: at / max(1, len(values) - 1) for at, value in enumerate(values)}


def _marks(swept: Swept, name: str) -> list[tuple[str, float]]:
    """The marks of an axis: all of a few values, or the ends."""
    scale = _scale(swept, name)
    if not isinstance(scale, _Scale):
        return [(str(value), at) for value, at in scale.items()][:40]
    numbers = [v for v in swept.values(name) if isinstance(v, int | float)]
    return [(f"{min(numbers):,.4g}", -0.04), (f"{max(numbers):,.4g}", 1.04)]


def _pareto(swept: Swept) -> Figure | Missing:
    head = Head("pareto", "Pareto front", "")
    if len(swept.goals) < 2:
        return head.missing(
            'This needs two figures: goals = ["max ipc", "min energy_nj"] in the sweep\'s file, or '
            "--goal twice."
        )
    views: list[View] = []
    rows: list[list[Cell]] = []
    pairs = [(a, b) for at, a in enumerate(swept.goals) for b in swept.goals[at + 1 :]]
    several = len(pairs) > 1
    settings = [name for name in swept.axes if name != swept.subject]
    for one, two in pairs:
        for subject, own in swept.by_subject().items():
            best = front(own, one, two)
            if not best:
                continue
            pair = f", {one.name} and {two.name}" if several else ""
            rows += [
                [f"{subject}{pair}: {_settings(row, settings)}", row[one.name], row[two.name]]
                for row in best
            ]
            if len(views) < VIEWS:
                views.append(_front(swept, subject + pair, own, best, one, two))
    if not views:
        return head.missing("No point has both figures.")
    first, second = ("first figure", "second figure") if several else (g.name for g in swept.goals)
    return head.figure(
        "Each dot is a point. The line joins those that no other point beats in one figure without "
        f"losing in the other: {'; '.join(goal.text for goal in swept.goals)}.",
        "Every other point is dominated: a point of the line is at least as good in both figures.",
        views,
        Table((("subject: settings", ""), (first, ""), (second, "")), rows[: 50 * BEST]),
        choose="Subject",
    )


def _front(
    swept: Swept, name: str, own: Sequence[Values], best: Sequence[Values], one: Goal, two: Goal
) -> View:
    settings = [axis for axis in swept.axes if axis != swept.subject]
    data = []
    every = -(-len(own) // DRAWN) or 1
    for index, design in enumerate(
        swept.values("design") if "design" in swept.settings else [None]
    ):
        rows = [row for row in own[::every] if row.get("design") == design]
        data.append(
            scatter(
                "markers", str(design), [row.get(one.name) for row in rows],
                [row.get(two.name) for row in rows],
                f"<b>{label(str(design))}</b><br>%{{text}}<br>%{{x:.6~g}}, %{{y:.6~g}}",
                text=[label(_settings(row, settings)) for row in rows],
                marker={"size": 7, "color": LINE_COLOURS[index % len(LINE_COLOURS)]},
            )
        )  # fmt: skip
    data.append(
        scatter(
            "lines", "front", [row[one.name] for row in best], [row[two.name] for row in best],
            "front<br>%{x:.6~g}, %{y:.6~g}",
            line={"width": 2, "dash": "dot", "color": "#8a8f98", "shape": "linear"},
            meta={"whole": True},
        )
    )  # fmt: skip
    shape = layout(label(two.text), yaxis={"rangemode": "normal"})
    shape["xaxis"] = {"title": {"text": label(one.text)}, "automargin": True}
    return View(name, data, shape)


def _settings(row: Values, names: Sequence[str]) -> str:
    return ", ".join(f"{name} = {row[name]}" for name in names if row.get(name) is not None)


def _failed(swept: Swept) -> list[Block]:
    rows = [
        Row(
            [
                words(_settings(row, swept.settings)),
                words(str(row["error"])),
                Td(str(row["command"]), "name", as_="code"),
            ]
        )
        for row in swept.failed[:200]
    ]
    return [Grid(heads_of_words("point", "error", "command"), rows, tall=False)]


def _assumed(swept: Swept) -> list[Block]:
    rows = [
        Row([words(name), words(each["parameter"]), Td(str(each["value"])), words(each["why"])])
        for name, machine in swept.machines.items()
        for each in machine["assumed"]
        if each["parameter"] not in swept.axes
    ]
    if not rows:
        return [Text("The machines of these points are not known here, or assume nothing.")]
    text = "No source gives these values of the machines; figures may rest on them."
    return [Text(text), Grid(heads_of_words("machine", "parameter", "value", "why"), rows)]
