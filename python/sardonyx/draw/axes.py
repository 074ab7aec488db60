"""An axis of a figure for paper: which values it has, where each is, what its ticks say."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

#: A logarithmic axis of fewer decades has ticks at 2 and 5 too.
FEW = 1.6


@dataclass
class Axis:
    """Places are shares of its length, from its beginning; ``names`` are of a category axis."""

    key: str
    title: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    names: list[Any] = field(default_factory=list)
    groups: list[tuple[float, float, str]] = field(default_factory=list)
    form: str = ""
    suffix: str = ""
    marks: Sequence[tuple[float, str]] | None = None
    reverse: bool = False
    hidden: bool = False
    zero_line: bool = False
    #: Whether the figure says where it ends: what is beyond is drawn there.
    fixed: bool = False
    #: The room of a bar that stands at a number, if there are such.
    bar: float = 0.0

    @property
    def step(self) -> float:
        """The room of one value of those that have bars."""
        return 1 / self._span if self.names else self.bar

    @property
    def _span(self) -> float:
        return (self.high - self.low) or 1.0

    @property
    def rows(self) -> int:
        """The rows of a category axis that goes upwards."""
        return len(self.names) if self.key == "y" else 0

    @property
    def zero(self) -> float | None:
        """Where 0 is, if a line stands there."""
        return self.place(0.0) if self.zero_line and not self.names else None

    def of(self, trace: Mapping[str, Any]) -> list[Any]:
        """A trace's values along it."""
        given = trace.get(self.key)
        if given is None:
            start, step = trace.get(f"{self.key}0", 0), trace.get(f"d{self.key}", 1)
            other = trace.get("y" if self.key == "x" else "x") or ()
            return [start + at * step for at in range(len(other))]
        if len(given) == 2 and all(isinstance(each, list | tuple) for each in given):
            return list(zip(*given, strict=True))
        return list(given)

    def place(self, value: Any, *, low: bool = False) -> float | None:
        """Where a value is; with ``low`` one that a logarithm lacks is at the beginning."""
        if value is None:
            return None
        if self.names:
            if value not in self.names:
                return None
            number = float(self.names.index(value))
        elif isinstance(value, bool) or not isinstance(value, int | float):
            return None
        else:
            number = float(value)
            if self.log:
                if number <= 0:
                    return 0.0 if low else None
                number = math.log10(number)
        found = (number - self.low) / self._span
        found = min(max(found, 0.0), 1.0) if self.fixed else found
        return 1 - found if self.reverse else found

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Places and texts, about so many of them unless they are names."""
        if self.hidden:
            return []
        if self.names:
            texts = [each[1] if isinstance(each, tuple) else each for each in self.names]
            found = [(self.place(each), plain(text)) for each, text in
                     zip(self.names, texts, strict=True)]  # fmt: skip
        elif self.marks is not None:
            found = [(self.place(value), plain(text)) for value, text in self.marks]
        else:
            values = self._decades(most) if self.log else self._even(most)
            found = [(self.place(value), self.said(value)) for value in values]
        return [(place, text) for place, text in found if place is not None and -1e-6 <= place
                <= 1 + 1e-6]  # fmt: skip

    def said(self, value: float) -> str:
        """What stands at a tick."""
        if self.form.endswith("%"):
            text = f"{100 * value:.6g}%"
        elif value and not 1e-4 <= abs(value) < 1e6:
            text = re.sub(r"e([-+])0*", lambda found: "e" + found[1].strip("+"), f"{value:g}")
        else:
            text = f"{value:,.6g}"
        return text + self.suffix

    def _even(self, most: int) -> list[float]:
        raw = self._span / max(most, 1)
        size = 10 ** math.floor(math.log10(raw))
        step = next(each * size for each in (1, 2, 5, 10) if each * size >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first
        return [round((first + at) * step, 12) for at in range(count + 1)]

    def _decades(self, most: int) -> list[float]:
        parts = (1, 2, 5) if self._span < FEW else (1,)
        first, last = math.floor(self.low), math.ceil(self.high)
        every = max(1, math.ceil((last - first) / max(most, 1)))
        whole = range(first, last + 1, every)
        return [part * 10.0**power for power in whole for part in parts]


def axis_of(
    given: Mapping[str, Any],
    traces: Sequence[Mapping[str, Any]],
    key: str,
    stacked: bool,
    also: Sequence[float] = (),
) -> Axis:
    """The axis ``x`` or ``y`` of a layout, over the traces' values and ``also`` these."""
    title = (given.get("title") or {}).get("text") or ""
    axis = Axis(key, plain(title), form=given.get("tickformat", "").replace("~", ""))
    axis.suffix = given.get("ticksuffix", "")
    axis.hidden = given.get("visible") is False
    axis.zero_line = bool(given.get("zeroline"))
    if "tickvals" in given:
        axis.marks = list(zip(given["tickvals"], given.get("ticktext", given["tickvals"]),
                              strict=True))  # fmt: skip
    values = [value for trace in traces for value in axis.of(trace) if value is not None]
    kind = given.get("type")
    if kind in ("category", "multicategory") or any(isinstance(v, str | tuple) for v in values):
        _name(axis, given, values)
        return axis
    axis.log = kind == "log"
    numbers = [float(v) for v in values if isinstance(v, int | float) and (v > 0 or not axis.log)]
    numbers += also
    if not axis.log:
        numbers += _stacks(traces, key, stacked)
    _span(axis, given, numbers, any(_bars_along(each, key) for each in traces), traces)
    return axis


def _name(axis: Axis, given: Mapping[str, Any], values: Sequence[Any]) -> None:
    axis.names = list(dict.fromkeys(given.get("categoryarray") or values))
    axis.reverse = given.get("autorange") == "reversed"
    axis.low, axis.high = -0.5, len(axis.names) - 0.5
    if axis.names and isinstance(axis.names[0], tuple):
        first = 0
        for at in range(1, len(axis.names) + 1):
            group = axis.names[first][0]
            if at == len(axis.names) or axis.names[at][0] != group:
                ends = (first / len(axis.names), at / len(axis.names))
                axis.groups.append((*ends, plain(group)))
                first = at


def _bars_along(trace: Mapping[str, Any], key: str) -> bool:
    """Whether the trace has bars whose length is along this axis."""
    return trace["type"] == "bar" and (trace.get("orientation") == "h") == (key == "x")


def _stacks(traces: Sequence[Mapping[str, Any]], key: str, bars: bool) -> list[float]:
    """How high the stacks of bars and areas are."""
    other = "y" if key == "x" else "x"
    whole: dict[Any, float] = {}
    for trace in traces:
        if (bars and _bars_along(trace, key)) or ("stackgroup" in trace and key == "y"):
            names, lengths = Axis(other, "").of(trace), Axis(key, "").of(trace)
            for name, length in zip(names, lengths, strict=False):
                whole[name] = whole.get(name, 0.0) + (length or 0.0)
    return list(whole.values())


def _span(
    axis: Axis,
    given: Mapping[str, Any],
    numbers: list[float],
    bars: bool,
    traces: Sequence[Mapping[str, Any]],
) -> None:
    if "range" in given:
        axis.low, axis.high = map(float, given["range"])
        axis.fixed = True
        return
    if axis.log:
        numbers = [math.log10(number) for number in numbers] or [0.0, 1.0]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    along = [t for t in traces if t["type"] == "bar" and not _bars_along(t, axis.key)]
    if along and not axis.log:  # bars at numbers: half of one at either end
        places = sorted({float(v) for t in along for v in axis.of(t)})
        least = min((b - a for a, b in pairwise(places)), default=1.0)
        low, high = low - least / 2, high + least / 2
        axis.bar = least / ((high - low) or 1.0)
        axis.low, axis.high = low, high
        return
    zero = (bars or given.get("rangemode") == "tozero") and not axis.log
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.05 * (high - low) or 0.5
    axis.low = low if zero and low == 0 else low - room
    axis.high = high if zero and high == 0 else high + room


def plain(text: object) -> str:
    """A text of Plotly's, without its marks."""
    return html.unescape(re.sub(r"</?(?:b|i|br|sup|sub)>", " ", str(text))).strip()
