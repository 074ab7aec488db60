"""The figures about the traces alone: duplicates, content locality, fingerprint collisions.

Counterparts of ESD Fig. 1, 3 and 8. They rest on the bytes of the traces and on no machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.draw.figure import (
    AMBER,
    BLUE,
    GREY,
    ORDERED_COLOURS,
    PURPLE,
    RED,
    TEAL,
    Figure,
    Head,
    Missing,
    Series,
    View,
    label,
    layout,
)
from sardonyx.report.content import Block, Grid, Row, Td, Text, Th
from sardonyx.runs.caveats import size, worth
from sardonyx.runs.facts import Collisions, Trace
from sardonyx.runs.measures import arithmetic_mean, divide, written

#: The fingerprint that others are compared with.
CRC32 = "crc-32"
FINGERPRINT_COLOURS = {
    CRC32: GREY,
    "truncated-hamming": TEAL,
    "hsiao-opentitan": BLUE,
    "hsiao-1970": AMBER,
}


def duplicates(traces: Sequence[Trace]) -> Figure | Missing:
    """Share of written lines whose content was written before (ESD Fig. 1)."""
    head = Head("duplicates", "Duplicate lines", "ESD Fig. 1")
    known = [t for t in traces if t.facts.get("duplicate_rate") is not None]
    if not known:
        return head.missing("No trace in these results says how many duplicates it has.")
    kinds = (
        ("all duplicates", "duplicate_rate", BLUE),
        ("zero lines", "zero_rate", GREY),
        ("silent: the line held this already", "silent_write_rate", AMBER),
    )
    series = Series("trace", [t.name for t in known])
    bars = [
        series.bar(
            name, "%", [t.facts.get(fact) for t in known], colour, "%{x}<br>%{y:.1%} of writes"
        )
        for name, fact, colour in kinds
    ]
    data = [each for each in bars if any(value is not None for value in each["y"])]
    return head.figure(
        "For each trace, the share of written lines whose 64 bytes had been written before, "
        "at any address.",
        "This is what deduplication could remove at best. Zero lines are all-zero contents; a "
        "silent write stores what its own address already holds. The rightmost group is the "
        "arithmetic mean.",
        [View("", data, layout("share of writes", yaxis={"tickformat": ".0%", "range": [0, 1]}))],
        series.table(),
    )


def locality(traces: Sequence[Trace]) -> Figure | Missing:
    """How unevenly contents repeat (ESD Fig. 3)."""
    head = Head("locality", "Content locality", "ESD Fig. 3")
    known = [t for t in traces if t.locality]
    if not known:
        return head.missing("No trace in these results counts how often contents repeat.")
    classes = list(dict.fromkeys(row.times for t in known for row in t.locality))
    views = []
    series = Series("trace", [t.name for t in known])
    for view, attribute in (
        ("volume: share of all writes", "writes_share"),
        ("contents: share of distinct contents", "contents_share"),
    ):
        data = []
        for index, name in enumerate(classes):
            values: list[float | None] = [
                next((getattr(r, attribute) for r in t.locality if r.times == name), None)
                for t in known
            ]
            colour = ORDERED_COLOURS[index % len(ORDERED_COLOURS)]
            hover = f"%{{x}}<br>contents written {label(name)} times: %{{y:.2%}}"
            column = f"{view.split(':')[0]} {name}×"
            data.append(series.bar(f"written {name}×", "%", values, colour, hover, column))
        yaxis = {"tickformat": ".0%", "range": [0, 1]}
        shares = layout(view.split(": ")[1], barmode="stack", yaxis=yaxis)
        views.append(View(view, data, shares))
    return head.figure(
        "Contents are grouped by how many times each was written; a bar shows how much of the "
        "trace each group accounts for.",
        "Switch between distinct contents and writes: where a sliver of the contents carries much "
        "of the volume, a small fingerprint cache can catch most duplicates.",
        views,
        series.table(),
    )


def collisions(traces: Sequence[Trace]) -> Figure | Missing:
    """Distinct contents with equal fingerprints (ESD Fig. 8)."""
    head = Head("collisions", "Fingerprint collisions", "ESD Fig. 8")
    known = [t for t in traces if t.collisions]
    if not known:
        return head.missing("No trace in these results counts fingerprint collisions.")
    codes = list(dict.fromkeys(c.fingerprint for t in known for c in t.collisions))
    series = Series("trace", [t.name for t in known], None)
    views = []
    for view, of, unit, form in (
        ("share of distinct contents", _colliding_share, "%", "%{y:.3~%} of distinct contents"),
        ("relative to CRC-32", _to_crc32, "x", "%{y:.3~g} times CRC-32's"),
    ):
        data = []
        for code in codes:
            values = [of(t, code) for t in known]
            colour = FINGERPRINT_COLOURS.get(code, PURPLE)
            hover = f"%{{x}}<br>{label(code)}: {form}"
            data.append(series.bar(code, unit, values, colour, hover, f"{code}, {view}"))
        if any(value for trace in data for value in trace["y"]):
            axis: dict[str, Any] = {"type": "log", "rangemode": "normal", "exponentformat": "power"}
            if unit == "%":
                axis |= {"tickformat": "~%", "dtick": 1}
            views.append(View(view, data, layout(view, yaxis=axis)))
    if not views:
        return head.missing("No two contents of these traces share a fingerprint of any kind.")
    return head.figure(
        "The share of distinct contents whose fingerprint an earlier content had, for the "
        "check bits of three ECC matrices (8 bits a word, 64 a line) and for CRC-32.",
        "The axis is logarithmic. No bar: not one collision, or, relative to CRC-32, none of "
        "CRC-32's to divide by. A design that compares before it drops pays a read for a collision "
        f"and loses no data. {_beside_fig_8(known, codes)}",
        views,
        series.table(),
    )


def _row(trace: Trace, code: str) -> Collisions:
    """The trace's figures of the fingerprint; empty if there are none."""
    rows = (row for row in trace.collisions if row.fingerprint == code)
    return next(rows, Collisions(code))


def _colliding_share(trace: Trace, code: str) -> float | None:
    return divide(_row(trace, code).contents, trace.facts.get("distinct_contents"))


def _to_crc32(trace: Trace, code: str) -> float | None:
    return _row(trace, code).contents_to_crc32


def _beside_fig_8(traces: Sequence[Trace], codes: Sequence[str]) -> str:
    """Whether these traces agree with the paper: ECC collides no more often than CRC."""
    counts = {code: sum(_row(t, code).contents or 0 for t in traces) for code in codes}
    checks = {code: count for code, count in counts.items() if code != CRC32}
    if CRC32 not in counts or not checks:
        return ""
    more = [code for code, count in checks.items() if count > counts[CRC32]]
    told = (
        f"Over all traces {counts[CRC32]:,} contents collide under CRC-32, "
        + ", ".join(f"{count:,} under {code}" for code, count in checks.items())
        + ". ESD's Fig. 8 has check bits collide no more often than CRC: "
    )
    if not more:
        return f"{told}these traces agree."
    which = "" if len(more) == len(checks) else f" for {', '.join(more)}"
    return f"{told}these traces contradict it{which}."


def summary(traces: Sequence[Trace]) -> list[tuple[str, str]]:
    """Facts for the page's header: how many traces, how many writes, mean duplicate rate."""
    writes = [t.facts.get("writes") for t in traces]
    known = [w for w in writes if w is not None]
    rate = arithmetic_mean(t.facts.get("duplicate_rate") for t in traces)
    facts = [("traces", str(len(traces)))] if traces else []
    if known:
        facts.append(("writes", f"{int(sum(known)):,}"))
    if rate is not None:
        facts.append(("mean duplicate rate", written(rate, "%")))
    in_bursts = [trace for trace in worth(traces) if trace.burst_share]
    if in_bursts:
        most = max(in_bursts, key=lambda trace: trace.burst_share or 0.0)
        facts.append(
            ("writes in bursts, at most", f"{written(most.burst_share, '%')}, {most.name}")
        )
    return facts


def rests_on(traces: Sequence[Trace]) -> Figure | Missing:
    """The share of writes in bursts, where a trace has any."""
    head = Head("worth", "Writes in bursts", "")
    known = [each for each in worth(traces) if each.burst_share is not None]
    if not known:
        return head.missing("No trace in these results says how many of its writes are in bursts.")
    if not any(each.burst_share for each in known):
        return head.missing("No write of these traces is in a burst.")
    series = Series("trace", [each.name for each in known])
    shares: list[float | None] = [each.burst_share for each in known]
    bar = series.bar("writes in bursts", "%", shares, RED, "%{x}<br>%{y:.1%} of writes")
    return head.figure(
        "For each trace, the share of its writes that come in bursts: runs of 64 accesses without "
        "an instruction between them.",
        "A cache writes back a line now and then; thousands of writes at one instant are a flush "
        "of it, and their latencies are those of a full write queue.",
        [View("", [bar], layout("share of writes", yaxis={"tickformat": ".0%", "range": [0, 1]}))],
        series.table(),
    )


def worth_of_each(traces: Sequence[Trace]) -> list[Block]:
    """What a mean over the traces rests on: writes, bursts, footprint."""
    known = [each for each in worth(traces) if each.burst_share is not None]
    if not known:
        return []
    heads = ("trace", "writes", "in bursts", "footprint", "below caches of")
    rows = [
        Row(
            [
                Td(each.name, head=True),
                Td(f"{each.writes:,}", number=str(each.writes)),
                Td(written(each.burst_share, "%"), number=repr(each.burst_share), unit="share"),
                *(
                    Td(size(bytes_), number="" if bytes_ is None else str(bytes_), unit="B")
                    for bytes_ in (each.footprint, each.recorded_below)
                ),
            ]
        )
        for each in known
    ]
    reading = (
        "What a mean rests on. Below a thousand writes, or above 5 % in bursts (runs of 64 "
        "accesses without an instruction between), it says little. A footprint that fits the "
        "caches above the recording, or the tables on chip, says little about larger ones."
    )
    grid = Grid([Th(heads[0], "name"), *map(Th, heads[1:])], rows, "worth", tall=False)
    return [grid, Text(reading, "reading")]
