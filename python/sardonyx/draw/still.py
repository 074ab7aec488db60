"""A view of a figure drawn for paper: bars, lines and points as Plotly draws them, at a column's
width and in one size of type.

What is drawn are Plotly's members that our figures use. Left out: what only a screen can show.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sardonyx._core import SardonyxError
from sardonyx.draw.axes import Axis, axis_of, plain
from sardonyx.draw.drawing import Anchor, Drawing, Point, Stroke, Words, width_of
from sardonyx.draw.figure import LINE_COLOURS, Figure, View
from sardonyx.files import replacing, write_text

INK, GRID = "#222222", "#d9dce0"
#: Points of units of length; the least and the most of one, and a column of a paper.
POINTS = {"in": 72.0, "mm": 72 / 25.4, "cm": 72 / 2.54, "pt": 1.0}
LEAST, MOST, USUAL = 4, 3000, "3.3in"
#: A plot's height beside its width, and a row's height beside the size of type.
SHAPE, ROW = 0.62, 1.5
#: The most degrees' worth of labels below an axis that stand level.
LEVEL, TURNED = 0.0, 40.0
#: Points of a circle.
ROUND = 14


def points(text: str, option: str = "width") -> float:
    """A length in points, as in 3.3in, 84mm, 8.4cm or 238pt."""
    found = re.fullmatch(r"(\d{1,4}(?:\.\d{1,4})?)(in|mm|cm|pt)", text.strip(), re.ASCII)
    length = float(found[1]) * POINTS[found[2]] if found else 0.0
    if not LEAST <= length <= MOST:
        raise SardonyxError(
            f"{option} {text}: is no length of {LEAST} to {MOST} points; give one as in {USUAL}"
        )
    return length


def save(
    figures: Sequence[Figure], path: Path, width: str = USUAL, font: str = "8pt", option: str = ""
) -> None:
    """Draw the figure that a file is named after, as its name ends: ``write-speedup.pdf``, and
    ``wear-2.svg`` for the second view of ``wear``.

    Raises:
        SardonyxError: There is no such figure, form, or length.
    """
    check(path, option)
    size = points(font, "--figure-font" if option else "font")
    known = {each.key: (each, 0) for each in figures}
    known |= {f"{f.key}-{at + 1}": (f, at) for f in figures for at in range(len(f.views))}
    if path.stem not in known:
        near = difflib.get_close_matches(path.stem, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        names = ", ".join(each.key for each in figures) or "none"
        raise SardonyxError(
            f"{option}{path}: no figure {path.stem} is drawn; {meant}drawn: {names}"
        )
    figure, at = known[path.stem]
    across = points(width, "--figure-width" if option else "width")
    drawn = still(figure.views[at], figure.title, across, size)
    if path.suffix == ".svg":
        write_text(path, drawn.svg())
    else:
        with replacing(path) as scratch:
            scratch.write_bytes(drawn.pdf())


def check(path: Path, option: str = "") -> None:
    """An error unless the file's name is that of a drawing."""
    if path.suffix not in (".pdf", ".svg"):
        raise SardonyxError(f"{option}{path}: its name ends in none of .pdf, .svg")


def still(view: View, title: str, width: float = 238, size: float = 8) -> Drawing:
    """The view as a drawing of this width, with type of this size, both in points."""
    return _Still(view, title, width, size).draw()


@dataclass
class _Panel:
    """One plot of a figure: its traces, its axes, its room."""

    traces: list[Mapping[str, Any]]
    x: Axis
    y: Axis
    left: float = 0
    right: float = 0
    top: float = 0
    bottom: float = 0

    def at(self, x: Any, y: Any) -> Point | None:
        """Where a point of the data is."""
        a, b = self.x.place(x), self.y.place(y)
        if a is None or b is None:
            return None
        return self.left + a * (self.right - self.left), self.bottom - b * (self.bottom - self.top)


@dataclass
class _Still:
    view: View
    title: str
    width: float
    size: float
    sheet: Drawing = field(init=False)

    def draw(self) -> Drawing:
        layout = self.view.layout
        panels, grid = self._panels(), layout.get("grid", {"rows": 1, "columns": 1})
        down, across = grid["rows"], grid["columns"]
        named = self._legend_rows()
        top = self.size * (0.7 + 1.4 * len(named))
        rows = max((p.y.rows for p in panels), default=0)
        names = (text for p in panels if p.y.names for _, text in p.y.ticks(0))
        long = any(width_of(text, self.size) > 0.5 * self.width / across for text in names)
        high = rows * (2.5 if long else ROW) * self.size
        each = max(SHAPE * self.width / across, 7 * self.size, high)
        each += self.size * 5 if rows else 0
        self.sheet = Drawing(self.width, top + down * each, self.title)
        self._legend(named)
        for at, panel in enumerate(panels):
            row, column = divmod(at, across)
            step = self.width / across
            self._room(panel, column * step, (column + 1) * step, top + row * each, each)
            self._axes(panel, each)
            self._bars(panel)
            self._areas(panel)
            for trace in panel.traces:
                if trace["type"] == "scatter" and "stackgroup" not in trace:
                    self._scatter(panel, trace)
        for shape in layout.get("shapes", ()):
            self._shape(panels[0], shape)
        for note in layout.get("annotations", ()):
            self._note(panels, note)
        return self.sheet

    def _panels(self) -> list[_Panel]:
        layout = self.view.layout
        found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for trace in self.view.data:
            pair = (trace.get("xaxis") or "x", trace.get("yaxis") or "y")
            found.setdefault(pair, []).append(trace)
        stacked, shapes = layout.get("barmode") == "stack", layout.get("shapes", ())
        panels = []
        for (x, y), traces in found.items():
            axes = []
            for key, name in (("x", x), ("y", y)):
                ends = [s[f"{key}{end}"] for s in shapes for end in "01"
                        if s.get(f"{key}ref") != "paper"]  # fmt: skip
                also = [float(each) for each in ends if isinstance(each, int | float)]
                given = layout.get(f"{key}axis{name[1:]}", {})
                axes.append(axis_of(given, traces, key, stacked, also))
            panels.append(_Panel(traces, axes[0], axes[1]))
        return panels

    # ---- the legend

    def _named(self) -> list[tuple[str, str, bool]]:
        """Names, colours and whether they are lines, of what the legend has."""
        found: dict[str, tuple[str, str, bool]] = {}
        for at, trace in enumerate(self.view.data):
            name = plain(trace.get("name", ""))
            if name and trace.get("showlegend", True):
                line = trace["type"] == "scatter" and "lines" in trace.get("mode", "")
                found.setdefault(name, (name, _colour(trace, at), line))
        return list(found.values()) if len(self.view.data) > 1 else []

    def _legend_rows(self) -> list[list[tuple[str, str, bool]]]:
        rows: list[list[tuple[str, str, bool]]] = []
        left = 0.0
        for each in self._named():
            room = self._legend_width(each[0])
            if not rows or left + room > self.width:
                rows.append([])
                left = 0.0
            rows[-1].append(each)
            left += room
        return rows

    def _legend_width(self, name: str) -> float:
        return 2.6 * self.size + width_of(name, self.size)

    def _legend(self, rows: Sequence[Sequence[tuple[str, str, bool]]]) -> None:
        for number, row in enumerate(rows):
            x, y = 0.2 * self.size, self.size * (1.1 + 1.4 * number)
            for name, colour, line in row:
                middle = y - 0.35 * self.size
                if line:
                    self._line([(x, middle), (x + 1.2 * self.size, middle)], colour, 1.5)
                else:
                    self._box(x + 0.3 * self.size, middle - 0.35 * self.size, 0.7 * self.size,
                              0.7 * self.size, colour)  # fmt: skip
                self._words((x + 1.5 * self.size, y), name)
                x += self._legend_width(name)

    # ---- axes

    def _room(self, panel: _Panel, left: float, right: float, top: float, height: float) -> None:
        size = self.size
        panel.right = right - 0.7 * size
        panel.top = top + (1.6 if self.view.layout.get("grid") else 0.5) * size
        # Names of rows may take half of the width and are cut beyond it.
        labels = min(self._label_width(panel, height), 0.5 * (right - left))
        lines = _wrapped(panel.y.title, size, 0.75 * height)
        panel.left = left + labels + (0.7 + 1.3 * len(lines)) * size
        panel.bottom = top + height - 1.5 * size - (1.4 * size if panel.x.title else 0)
        panel.bottom = max(panel.bottom - self._below(panel), panel.top + 4 * size)
        for number, line in enumerate(lines):
            x = left + (1.0 + 1.3 * number) * size
            self._words((x, (panel.top + panel.bottom) / 2), line, "middle", 90)

    def _up(self, height: float) -> int:
        """How many ticks go upwards."""
        return 6 if height > 14 * self.size else 4

    def _label_width(self, panel: _Panel, height: float) -> float:
        ticks = panel.y.ticks(self._up(height))
        return max((width_of(text, self.size) for _, text in ticks), default=0)

    def _below(self, panel: _Panel) -> float:
        """How far turned labels reach down, and the line of groups below them."""
        extra = 1.4 * self.size if panel.x.groups else 0.0
        if self._turn(panel) == LEVEL:
            return extra
        longest = max(width_of(text, self.size) for _, text in panel.x.ticks(6))
        longest = min(longest, 12 * self.size)
        return extra + longest * math.sin(math.radians(TURNED))

    def _turn(self, panel: _Panel) -> float:
        ticks = panel.x.ticks(6)
        room = (panel.right - panel.left) / max(len(ticks), 1)
        wide = any(width_of(text, self.size) + 0.4 * self.size > room for _, text in ticks)
        return TURNED if wide and panel.x.names else LEVEL

    def _axes(self, panel: _Panel, height: float) -> None:
        size = self.size
        for value, text in panel.y.ticks(self._up(height)):
            y = panel.bottom - value * (panel.bottom - panel.top)
            if not panel.y.names:
                self._line([(panel.left, y), (panel.right, y)], GRID, 0.5)
            right = panel.left - 0.4 * size
            lines = _wrapped(text, size, right)
            for number, line in enumerate(lines):
                down = 0.35 + 1.1 * (number - (len(lines) - 1) / 2)
                self._words((right, y + down * size), line, "end")
        turn, across = self._turn(panel), panel.right - panel.left
        ticks = panel.x.ticks(max(2, int(across / (4 * size))))
        for value, text in ticks:
            x = panel.left + value * across
            if not panel.x.names:
                self._line([(x, panel.top), (x, panel.bottom)], GRID, 0.5)
            text = _cut(text, size, min(12 * size, 1.25 * x) if turn else across)
            at = (x + 0.3 * size * (turn > 0), panel.bottom + 1.2 * size)
            over = 0 if turn else max(0.0, x + width_of(text, size) / 2 - self.width)
            self._words((at[0] - over, at[1]), text, "end" if turn else "middle", turn)
        for start, end, text in panel.x.groups:
            y = panel.bottom + self._below(panel) + 1.1 * size
            x = panel.left + (start + end) / 2 * across
            self._words((x, y), text, "middle")
            if start > 0:
                x = panel.left + start * across
                self._line([(x, panel.bottom), (x, y)], GRID, 0.5)
        self._line([(panel.left, panel.bottom), (panel.right, panel.bottom)], INK, 0.6)
        if (zero := panel.x.zero) is not None:
            x = panel.left + zero * across
            self._line([(x, panel.top), (x, panel.bottom)], INK, 0.6)
        if panel.x.title:
            y = panel.bottom + 2.5 * size + self._below(panel)
            self._words((panel.left + across / 2, y), panel.x.title, "middle")

    # ---- data

    def _bars(self, panel: _Panel) -> None:
        bars = [trace for trace in panel.traces if trace["type"] == "bar"]
        stacked = self.view.layout.get("barmode") == "stack"
        slot = 1 - self.view.layout.get("bargap", 0.2)
        each = slot if stacked else slot / max(len(bars), 1)
        heights: dict[Any, float] = {}
        for at, trace in enumerate(bars):
            level = trace.get("orientation") == "h"
            along, value = (panel.y, panel.x) if level else (panel.x, panel.y)
            names, values = along.of(trace), value.of(trace)
            halves = trace.get("error_y", {}).get("array", ())
            for index, (name, height) in enumerate(zip(names, values, strict=False)):
                middle = along.place(name)
                if middle is None or height is None:
                    continue
                below = heights.get(name, 0.0) if stacked else 0.0
                heights[name] = below + height
                shift = 0.0 if stacked else (at - (len(bars) - 1) / 2) * each
                start = middle + (shift - each / 2) * along.step
                low, high = value.place(below, low=True), value.place(below + height, low=True)
                if low is None or high is None:
                    continue
                self._bar(panel, level, start, each * along.step * 0.94, low, high, _fill(trace, at,
                          index))  # fmt: skip
                half = halves[index] if index < len(halves) else None
                ends = [value.place(height + s * half) for s in (-1, 1)] if half else []
                if ends and None not in ends and not level:
                    x = panel.left + (start + each * along.step / 2) * (panel.right - panel.left)
                    ys = [panel.bottom - e * (panel.bottom - panel.top) for e in ends if e]
                    self._line([(x, y) for y in ys], INK, 0.6)

    def _bar(
        self, panel: _Panel, level: bool, start: float, thick: float, low: float, high: float,
        colour: str,
    ) -> None:  # fmt: skip
        across, down = panel.right - panel.left, panel.bottom - panel.top
        if level:
            top = panel.bottom - (start + thick) * down
            self._box(panel.left + low * across, top, (high - low) * across, thick * down, colour)
        else:
            left, top = panel.left + start * across, panel.bottom - max(low, high) * down
            self._box(left, top, thick * across, abs(high - low) * down, colour)

    def _areas(self, panel: _Panel) -> None:
        below: dict[Any, float] = {}
        for at, trace in enumerate(panel.traces):
            if "stackgroup" not in trace:
                continue
            xs, ys = panel.x.of(trace), panel.y.of(trace)
            base = [below.get(x, 0.0) for x in xs]
            tops = [b + (y or 0.0) for b, y in zip(base, ys, strict=True)]
            edge = [panel.at(x, y) for x, y in zip(xs, tops, strict=True)]
            edge += [panel.at(x, y) for x, y in reversed(list(zip(xs, base, strict=True)))]
            points = [each for each in edge if each]
            self.sheet.marks.append(Stroke(points, fill=_colour(trace, at)))
            below.update(zip(xs, tops, strict=True))

    def _scatter(self, panel: _Panel, trace: Mapping[str, Any]) -> None:
        at = self.view.data.index(trace)  # type: ignore[arg-type]
        colour, line = _colour(trace, at), trace.get("line", {})
        places = [panel.at(x, y) for x, y in zip(panel.x.of(trace), panel.y.of(trace),
                                                 strict=False)]  # fmt: skip
        mode = trace.get("mode", "lines")
        if "lines" in mode:
            width = 0.55 * line.get("width", 2)
            for part in _parts(places, line.get("shape") == "hv"):
                self.sheet.marks.append(
                    Stroke(part, colour, width, "", "dash" in line and line["dash"] != "solid",
                         trace.get("opacity", 1.0))
                )  # fmt: skip
        if "markers" in mode:
            marker = trace.get("marker", {})
            radius = 0.25 * marker.get("size", 6)
            for place in places:
                if place:
                    self._marker(place, radius, marker.get("symbol", "circle"), colour)

    def _marker(self, at: Point, radius: float, symbol: str, colour: str) -> None:
        x, y = at
        corners = 4 if "diamond" in symbol else ROUND
        ring = [
            (x + radius * math.sin(2 * math.pi * n / corners),
             y - radius * math.cos(2 * math.pi * n / corners))
            for n in range(corners)
        ]  # fmt: skip
        if symbol == "x":
            self._line([(x - radius, y - radius), (x + radius, y + radius)], colour, 1)
            self._line([(x - radius, y + radius), (x + radius, y - radius)], colour, 1)
        elif symbol.startswith("line-ns"):
            self._line([(x, y - radius), (x, y + radius)], colour, 1.2)
        elif symbol.endswith("-open"):
            self.sheet.marks.append(Stroke(ring, colour, 1, "#ffffff"))
        else:
            self.sheet.marks.append(Stroke(ring, fill=colour))

    def _shape(self, panel: _Panel, shape: Mapping[str, Any]) -> None:
        def place(which: str, axis: Axis) -> Callable[[Any], float | None]:
            return float if shape.get(f"{which}ref") == "paper" else axis.place

        points = []
        for end in "01":
            x, y = place("x", panel.x)(shape[f"x{end}"]), place("y", panel.y)(shape[f"y{end}"])
            if x is None or y is None:
                return
            points.append((panel.left + x * (panel.right - panel.left),
                           panel.bottom - y * (panel.bottom - panel.top)))  # fmt: skip
        line = shape.get("line", {})
        self.sheet.marks.append(Stroke(points, line.get("color", INK), 0.8, dash="dash" in line))

    def _note(self, panels: Sequence[_Panel], note: Mapping[str, Any]) -> None:
        number = re.fullmatch(r"x(\d*) domain", str(note.get("xref", "")))
        if number:
            panel = panels[int(number[1] or 1) - 1]
            x = panel.left + note["x"] * (panel.right - panel.left)
            at: Point | None = (x, panel.top - 0.4 * self.size)
        else:
            at = panels[0].at(note["x"], note["y"])
        if at:
            text = plain(note["text"])
            if "bgcolor" in note:
                wide = width_of(text, self.size) + 0.4 * self.size
                corner = (at[0] - wide / 2, at[1] - 0.6 * self.size)
                self._box(*corner, wide, 1.2 * self.size, "#ffffff")
            self._words((at[0], at[1] + 0.35 * self.size), text, "middle")

    # ---- marks

    def _line(self, points: Sequence[Point], colour: str, width: float) -> None:
        self.sheet.marks.append(Stroke(points, colour, width))

    def _box(self, x: float, y: float, wide: float, high: float, colour: str) -> None:
        corners = [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)]
        self.sheet.marks.append(Stroke(corners, fill=colour))

    def _words(self, at: Point, text: str, anchor: Anchor = "start", turn: float = 0) -> None:
        self.sheet.marks.append(Words(at, text, self.size, anchor, turn, INK))


def _colour(trace: Mapping[str, Any], at: int) -> str:
    for part in ("line", "marker"):
        colour = trace.get(part, {}).get("color")
        if isinstance(colour, str) and re.fullmatch("#[0-9a-f]{6}", colour, re.I):
            return colour
    return LINE_COLOURS[at % len(LINE_COLOURS)]


def _fill(trace: Mapping[str, Any], at: int, index: int) -> str:
    colours = trace.get("marker", {}).get("color")
    return colours[index] if isinstance(colours, list) else _colour(trace, at)


def _parts(places: Sequence[Point | None], steps: bool) -> list[list[Point]]:
    """Lines without gaps, of points that are apart on paper."""
    parts: list[list[Point]] = [[]]
    for place in places:
        if place is None:
            parts.append([])
            continue
        line = parts[-1]
        if line and abs(line[-1][0] - place[0]) + abs(line[-1][1] - place[1]) < 0.1:
            continue
        if steps and line:
            line.append((place[0], line[-1][1]))
        line.append(place)
    return [part for part in parts if len(part) > 1]


def _wrapped(text: str, size: float, room: float) -> list[str]:
    """A text in one line or two, each of which fits if that can be."""
    if width_of(text, size) <= room or " " not in text:
        return [_cut(text, size, room)] if text else []
    breaks = [at for at, sign in enumerate(text) if sign == " "]
    middle = min(breaks, key=lambda at: abs(at - len(text) / 2))
    return [_cut(part, size, room) for part in (text[:middle], text[middle + 1 :])]


def _cut(text: str, size: float, room: float) -> str:
    """A text that fits, its end cut off if need be."""
    if width_of(text, size) <= room:
        return text
    while text and width_of(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text}…"
