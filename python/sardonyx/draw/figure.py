"""What a report figure is: plots as plain Plotly dictionaries, words, a table, and its assumptions.

Left out: colours of page and axes, which the page sets for its light or dark theme.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sardonyx.runs.measures import Mean, mean

if TYPE_CHECKING:
    import plotly.graph_objects

Cell = str | float | None

#: One colour a design, in every report. The paper's four are of the palette of Okabe and Ito, which
#: colour-blind readers tell apart; a variant of a design is a shade of it.
DESIGN_COLOURS = {
    "baseline": "#8a8f98",
    "dedup-sha1": "#d55e00",
    "dedup-sha1-sound": "#f2a35e",
    "dewrite": "#1f78c8",
    "dewrite-sound": "#7ab8ea",
    "esd": "#009e73",
    "esd-as-published": "#6fcfae",
    "esd-sound": "#00694d",
    "fsdedup": "#4fa36c",
    "fsdedup-sound": "#2c6e63",
    "zero-lines": "#c9a227",
    "no-encryption": "#4d5560",
    "ideal": "#b9bec6",
    "fca": "#cc79a7",
    "sca": "#7a5195",
    "no-atomicity": "#b84a62",
    "co-located": "#e69f00",
    "co-located-cc": "#a05a2c",
    "deuce": "#5b7c99",
    "hw-log": "#56b4e9",
    "alc": "#8f9b3a",
    "easy-pm": "#2f4b9b",
    "proteus": "#3b8ea5",
    "silo": "#9467bd",
    "lad": "#6b4c3b",
    "fwb": "#7a9a01",
    "morlog": "#b03a5b",
    "hoop": "#5b8c2a",
    "dolos": "#3a5f7d",
}
#: Colours of designs that the table does not have, such as compositions.
_MORE_COLOURS = ("#d9a5c7", "#5f9ea0", "#b5651d", "#6b8e23", "#9370db", "#c71585", "#708090")

#: Colours of other things than designs: lines over an axis, and causes. No design has one of these.
TEAL, BLUE, RED, PURPLE, AMBER, GREY, SKY = (
    "#0f8f8a", "#3467d6", "#c8452f", "#b04fb5", "#d98e04", "#777d86", "#45a3d9",
)  # fmt: skip
LINE_COLOURS = (TEAL, BLUE, RED, PURPLE, AMBER, GREY, SKY)
#: Colours of ordered classes, such as contents by how often they are written.
ORDERED_COLOURS = ("#9aa7b5", "#86c5c2", "#3fa7a2", TEAL, AMBER, RED)

CAUSE_COLOURS = {
    "fingerprint": "#c8452f",
    "lookup": "#d98e04",
    "compare": "#45a3d9",
    "data": "#0f8f8a",
    "mapping": "#3467d6",
    "counter": "#6d4aa8",
    "encryption": "#b04fb5",
    "ingress": "#777d86",
    "hazard": "#5b616b",
    "reclaim": "#a8a11c",
    "log": "#7c4a21",
    "integrity": "#3b3f8f",
    "link": "#94602e",
    "levelling": "#2e6b4f",
    "near": "#8a5a2b",
}


def design_colour(design: str, designs: Sequence[str]) -> str:
    """The design's colour; those that the table has not take further ones by their names."""
    if design in DESIGN_COLOURS:
        return DESIGN_COLOURS[design]
    others = sorted(d for d in designs if d not in DESIGN_COLOURS)
    return _MORE_COLOURS[others.index(design) % len(_MORE_COLOURS)]


def label(text: str) -> str:
    """A name as Plotly shows it literally; Plotly reads a small HTML of its own."""
    return html.escape(text, quote=False)


@dataclass(frozen=True, slots=True)
class View:
    """One state of a figure; a figure with several lets the reader choose."""

    name: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Figures behind a plot: columns are (heading, unit), the first one names the row."""

    columns: tuple[tuple[str, str], ...]
    rows: list[list[Cell]]


@dataclass(frozen=True, slots=True)
class Head:
    """What a figure is called, and its counterpart in a paper."""

    key: str
    title: str
    cf: str

    def missing(self, reason: str) -> Missing:
        return Missing(self.key, self.title, self.cf, reason)

    def figure(
        self,
        shows: str,
        reading: str,
        views: list[View],
        table: Table,
        assumed: Sequence[str] = (),
        choose: str = "Show",
    ) -> Figure:
        head = (self.key, self.title, self.cf)
        return Figure(*head, shows, reading, views, table, list(assumed), choose)


@dataclass(frozen=True, slots=True)
class Missing(Head):
    """A figure that these results cannot fill, and what would fill it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Figure(Head):
    """A plot of the report with everything that a reader needs to judge it."""

    shows: str
    reading: str
    views: list[View]
    table: Table
    assumed: list[str] = field(default_factory=list)
    choose: str = "Show"

    def plotly(self, view: int = 0) -> plotly.graph_objects.Figure:
        """One view as a Plotly figure, for notebooks and further work (needs plotly)."""
        import plotly.graph_objects as go

        chosen = self.views[view]
        return go.Figure(data=chosen.data, layout=chosen.layout)

    def svg(self, view: int = 0, width: float = 238, size: float = 8) -> str:
        """One view as an SVG for paper, of this width and with type of this size, in points."""
        from sardonyx.draw.still import still

        return still(self.views[view], self.title, width, size).svg()


class Series:
    """Figures over named groups and their mean, along a plot's axis and in its table."""

    def __init__(
        self, heading: str, names: Sequence[str], kind: Mean | None = "arithmetic"
    ) -> None:
        kind = kind if len(names) > 1 else None  # the mean of one is that one
        self._kind = kind
        means = [] if kind is None else [f"{kind} mean"]
        self.axis: list[Any] = list(map(label, names))
        self.axis += ["<b>geo. mean</b>" if kind == "geometric" else "<b>mean</b>"] if kind else []
        self._columns = [(heading, "")]
        self._rows: list[list[Cell]] = [[name] for name in (*names, *means)]

    def add(self, column: str, unit: str, values: Iterable[float | None]) -> list[float | None]:
        """A column of the table; the values with their mean."""
        whole = list(values)
        whole += [mean(whole, self._kind)] if self._kind else []
        self._columns.append((column, unit))
        for row, value in zip(self._rows, whole, strict=True):
            row.append(value)
        return whole

    def spread(self, column: str, unit: str, halves: Sequence[float | None]) -> None:
        """A column of half intervals, which the mean has not."""
        self._columns.append((column, unit))
        for index, row in enumerate(self._rows):
            row.append(halves[index] if index < len(halves) else None)

    def bar(
        self,
        name: str,
        unit: str,
        values: Iterable[float | None],
        colour: str,
        hover: str,
        column: str | None = None,
    ) -> dict[str, Any]:
        """Bars, which are a column too."""
        return bar(name, self.axis, self.add(column or name, unit, values), colour, hover)

    def designs(
        self,
        values: Mapping[str, Iterable[float | None]],
        hover: str,
        known: Sequence[str],
        unit: str = "x",
        column: str = "{}",
        halves: Mapping[str, Sequence[float | None]] | None = None,
    ) -> list[dict[str, Any]]:
        """Bars of each design; ``known`` are all designs of the report. ``halves`` of intervals, of
        the values along the axis but not of their mean, are whiskers and columns of their own.
        """
        bars = []
        for design, each in values.items():
            drawn = self.bar(
                design,
                unit,
                each,
                design_colour(design, known),
                f"<b>{label(design)}</b>{hover}",
                column.format(design),
            )
            known_halves = halves.get(design, ()) if halves else ()
            if any(half is not None for half in known_halves):
                self.spread(f"{column.format(design)} ±", unit, known_halves)
                drawn["error_y"] = {"array": list(known_halves), "thickness": 1, "width": 3}
            bars.append(drawn)
        return bars

    def table(self) -> Table:
        return Table(tuple(self._columns), self._rows)


@dataclass(frozen=True, slots=True)
class Curves:
    """A view of lines over one axis, a line a name."""

    name: str
    x: Sequence[str]
    lines: dict[str, list[float | None]]
    axis: str
    percent: bool = True

    def view(self, along: str) -> View:
        form = "%{y:.2%}" if self.percent else "%{y:.3f}×"
        data = [
            scatter(
                "lines+markers",
                name,
                self.x,
                values,
                f"<b>{label(name)}</b>, %{{x}}<br>{form}",
                line={"color": LINE_COLOURS[index % len(LINE_COLOURS)], "width": 2.4},
                marker={"size": 8},
            )
            for index, (name, values) in enumerate(self.lines.items())
        ]
        ticks = {"tickformat": "~%"} if self.percent else {"ticksuffix": "×"}
        shape = layout(self.axis, yaxis={**ticks, "rangemode": "normal"})
        shape["xaxis"] = {"type": "category", "title": {"text": along}, "automargin": True}
        return View(self.name, data, shape)


def bar(
    name: str, x: Sequence[Any], y: Sequence[float | None], colour: str, hover: str, **more: Any
) -> dict[str, Any]:
    """One series of bars; ``hover`` is Plotly's template for a bar's tool tip."""
    trace: dict[str, Any] = {
        "type": "bar",
        "name": label(name),
        "x": list(x),
        "y": list(y),
        "marker": {"color": colour},
        "hovertemplate": f"{hover}<extra></extra>",
    }
    return trace | more


def scatter(
    mode: str, name: str, x: Sequence[Any], y: Sequence[Any], hover: str, **more: Any
) -> dict[str, Any]:
    """One series of points or lines, or both."""
    return {
        "type": "scatter",
        "mode": mode,
        "name": label(name),
        "x": list(x),
        "y": list(y),
        "hovertemplate": f"{hover}<extra></extra>",
        **more,
    }


def bars(
    head: Head,
    shows: str,
    reading: str,
    axis: str,
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    unit: str = "",
    assumed: Sequence[str] = (),
    colours: Mapping[str, str] | None = None,
    *,
    paper: str,
    **more: Any,
) -> Figure | Missing:
    """Bars of each series over the names, of runs that reproducing the ``paper`` makes."""
    if all(value is None for values in series.values() for value in values):
        return head.missing(
            f"There is no run of this kind; `sardonyx reproduce {paper}` makes them."
        )
    form = {"%": "%{y:.1%}", "x": "%{y:.3f}×"}.get(unit, "%{y:,.4g}")
    palette = dict(zip(series, LINE_COLOURS, strict=False)) | dict(colours or {})
    drawn = [
        bar(name, list(names), values, palette[name], f"<b>{label(name)}</b>, %{{x}}<br>{form}")
        for name, values in series.items()
    ]
    rows: list[list[Cell]] = [
        [each, *(values[at] for values in series.values())] for at, each in enumerate(names)
    ]
    columns = (("", ""), *((name, unit) for name in series))
    views = [View("", drawn, layout(axis, **more))]
    return head.figure(shows, reading, views, Table(columns, rows), assumed)


def layout(y_title: str, **more: Any) -> dict[str, Any]:
    """A layout for bars over workloads; keyword arguments replace whole members but ``yaxis``."""
    yaxis: Mapping[str, Any] = more.pop("yaxis", {})
    base: dict[str, Any] = {
        "height": 360,
        "barmode": "group",
        "bargap": 0.24,
        "bargroupgap": 0.04,
        "hovermode": "closest",
        "margin": {"l": 64, "r": 36, "t": 36, "b": 28},
        "legend": {
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "normal",
        },
        "xaxis": {"automargin": True, "type": "category"},
        "yaxis": {"title": {"text": y_title}, "automargin": True, "rangemode": "tozero", **yaxis},
    }
    return base | more


def at_one() -> dict[str, Any]:
    """The line at 1, where a design equals what it is compared with."""
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": 1,
        "y1": 1,
        "line": {"width": 1.5, "dash": "dot", "color": "#8a8f98"},
        "layer": "above",
    }
