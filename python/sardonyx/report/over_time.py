"""Figures over time and over units: epochs, what was in use, energy by cause, worn lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.draw.figure import (
    CAUSE_COLOURS,
    Cell,
    Figure,
    Head,
    Missing,
    Table,
    View,
    bar,
    design_colour,
    label,
    layout,
    scatter,
)
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import assumed_by, divide
from sardonyx.runs.results import Run, Series, Usage

#: Figures over time: the columns' names, their title and the format of values.
EPOCHS = (
    (("request_gb_per_s",), "bandwidth of requests (GB/s)", ".3~g"),
    (("p99_write_latency_ns",), "p99 write latency (ns)", ",.4~g"),
    (("p99_read_latency_ns",), "p99 read latency (ns)", ",.4~g"),
    (("mean_write_latency_ns",), "mean write latency (ns)", ",.4~g"),
    (("mean_read_latency_ns",), "mean read latency (ns)", ",.4~g"),
    (("write_queue",), "accesses in the write queues", ".3~g"),
    (("read_queue",), "accesses in the read queues", ".3~g"),
    (("row_hit_rate",), "accesses that hit the open row", ".1%"),
    (("write_reduction",), "writes saved", ".1%"),
    (
        ("efit_hit_rate", "fingerprint_cache_hit_rate"),
        "fingerprint look-ups that hit on chip",
        ".1%",
    ),
    (("amt_hit_rate",), "mapping look-ups that hit on chip", ".1%"),
    (("counter_cache_hit_rate",), "counter look-ups that hit on chip", ".1%"),
)
#: With more traces than this only the first figures have a view for each trace, to keep the page
#: small.
FEW_TRACES = 2
FIRST_EPOCHS = 5


def epochs(comparison: Comparison) -> Figure | Missing:
    """What a run did in each part of its simulated time."""
    head = Head("over-time", "Over time", "")
    views: list[View] = []
    rows: list[list[Cell]] = []
    wanted = EPOCHS if len(comparison.workloads) <= FEW_TRACES else EPOCHS[:FIRST_EPOCHS]
    for workload in comparison.workloads:
        found = {d: r.epochs for d in comparison.designs if (r := comparison.run(workload, d))}
        known = {design: series for design, series in found.items() if series is not None}
        for design, series in known.items():
            first = (series.columns.get(names[0], ()) for names, _, _ in EPOCHS[:2])
            rows.append([f"{workload}, {design}", *map(_spread, first)])
        for names, title, form in wanted:
            data = [
                line
                for design, series in known.items()
                if (line := _line(comparison, design, series, names, form))
            ]
            if data:
                name = f"{workload}: {title}" if len(comparison.workloads) > 1 else title
                views.append(View(name, data, _over(title, form)))
    if not views:
        return head.missing("No run of these results says what it did over time.")
    columns = (
        ("workload, design", ""),
        ("bandwidth, most of an epoch over its mean", "x"),
        ("p99 write latency, most of an epoch over its mean", "x"),
    )
    return head.figure(
        "Each point is an epoch: an equal part of the run's simulated time, 64 to 128 in all. "
        "A design that is done earlier has a shorter line.",
        "A latency belongs to the epoch in which the request was done. Percentiles of an epoch are "
        "at most 6 % too high. A gap is an epoch in which there was nothing to measure. The table "
        "says how uneven a run is.",
        views,
        Table(columns, rows),
        assumed_by(comparison.runs(), "time"),
    )


def _spread(values: Sequence[float | None]) -> float | None:
    """The largest epoch relative to the mean of all."""
    known = [value for value in values if value is not None]
    return divide(max(known), sum(known) / len(known)) if known else None


def _line(
    comparison: Comparison, design: str, series: Series, names: Sequence[str], form: str
) -> dict[str, Any] | None:
    values = next((series.columns[name] for name in names if name in series.columns), ())
    if not any(values):
        return None
    drawn = scatter(
        "lines",
        design,
        [],
        [None if value is None else float(f"{value:.4g}") for value in values],
        f"<b>{label(design)}</b><br>%{{y:{form}}} from %{{x:.4~g}} ms",
        line={"color": design_colour(design, comparison.designs), "width": 1.8, "shape": "hv"},
    )
    del drawn["x"]  # equal steps need no list
    return drawn | {"x0": 0, "dx": float(f"{series.width_ns / 1e6:.6g}")}


def _over(title: str, form: str) -> dict[str, Any]:
    ticks: dict[str, Any] = {}
    if form.endswith("%"):
        ticks = {"tickformat": ".0%", "range": [0, 1.01]}
    shape = layout(title, yaxis=ticks)
    shape["xaxis"] = {"title": {"text": "simulated time (ms)"}, "automargin": True}
    return shape


def usage(comparison: Comparison) -> Figure | Missing:
    """How much of the memory was in use."""
    head = Head("in-use", "Banks, buses, queues and units in use", "")
    views: list[View] = []
    rows: list[list[Cell]] = []
    for workload in comparison.workloads:
        runs = {d: r for d in comparison.designs if (r := comparison.run(workload, d)) and r.usage}
        if not runs:
            continue
        shares = {design: _shares(run) for design, run in runs.items()}
        names = list(dict.fromkeys(name for of in shares.values() for name in of))
        data = [
            bar(
                design,
                [label(name) for name in names],
                [of.get(name) for name in names],
                design_colour(design, comparison.designs),
                f"<b>{label(design)}</b><br>%{{x}}: %{{y:.1%}}",
            )
            for design, of in shares.items()
        ]
        shape = layout("share of time", yaxis={"tickformat": ".0%", "range": [0, 1.01]})
        views.append(View(workload, data, shape))
        rows += [
            [f"{workload}, {name}", *(shares.get(d, {}).get(name) for d in comparison.designs)]
            for name in names
        ]
    if not views:
        return head.missing("No run of these results says what was in use.")
    return head.figure(
        "The share of the run's time in which something was in use: what is near 100 % is what the "
        "run waits for.",
        "A bank is in use from the selection of an access until its data are out or in the array; "
        "a bus while it carries data; a unit while it cannot begin another use (one that begins "
        "any number at once is not drawn). Of queues it is the share of slots that were taken.",
        views,
        Table((("workload", ""), *((design, "%") for design in comparison.designs)), rows),
        assumed_by(comparison.runs(), "time"),
        choose="Trace",
    )


def _shares(run: Run) -> dict[str, float | None]:
    of = run.usage
    assert of is not None, "only such runs are drawn"
    shares: dict[str, float | None] = {}
    for name, all_ in (("banks", of.banks), ("data bus", of.buses)):
        known = [share for share in all_ if share is not None]
        if known:
            shares[f"{name}, mean" if len(known) > 1 else name] = sum(known) / len(known)
        if len(known) > 1:
            shares[f"{name}, busiest"] = max(known)
    shares["read queue"] = of.read_queues
    shares["write queue"] = of.write_queues
    shares |= {unit.name: unit.share for unit in of.units if unit.share is not None}
    return shares


def energy_by_cause(comparison: Comparison) -> Figure | Missing:
    """What energy is spent on, beside the baseline's whole if there is one."""
    head = Head("energy-by-cause", "Where energy goes", "")
    views: list[View] = []
    rows: list[list[Cell]] = []
    causes = comparison.causes()
    for workload in comparison.workloads:
        runs = {d: r for d in comparison.designs if (r := comparison.run(workload, d))}
        spent = {
            design: [(run.causes[c].energy_nj or 0) if c in run.causes else 0 for c in causes]
            for design, run in runs.items()
        }
        spent = {design: of for design, of in spent.items() if any(of)}
        if not spent:
            continue
        first = next(iter(spent))
        whole = sum(spent[first])
        for design, of in spent.items():
            rows.append([f"{workload}, {design}", *of, sum(of)])
        data = [
            bar(
                cause,
                list(map(label, spent)),
                [of[at] / whole for of in spent.values()],
                CAUSE_COLOURS.get(cause, "#777d86"),
                f"%{{x}}<br>{label(cause)}: %{{y:.1%}} of {label(first)}'s energy",
            )
            for at, cause in enumerate(causes)
            if any(of[at] for of in spent.values())
        ]
        shape = layout(
            f"energy, of {first}'s", barmode="stack", yaxis={"tickformat": ".0%"}, bargap=0.5
        )
        views.append(View(workload, data, shape))
    if not views:
        return head.missing("No run of these results books its energy by cause.")
    columns = (("workload, design", ""), *((cause, "nJ") for cause in causes), ("all", "nJ"))
    return head.figure(
        "A bar is a design's energy, and its parts are what it was spent on.",
        "Energy of the medium and of the controller's units is booked under what it was for: "
        "data is the program's own lines, counter the encryption counters that were read and "
        "written, mapping the tables that say where lines lie.",
        views,
        Table(columns, rows),
        assumed_by(comparison.runs(), "energy"),
        choose="Trace",
    )


def wear_map(comparison: Comparison) -> Figure | Missing:
    """How unevenly lines were written, and where."""
    head = Head("wear-map", "Spread of line writes", "")
    views: list[View] = []
    rows: list[list[Cell]] = []
    parts: tuple[tuple[str, Callable[[Usage], list[tuple[float, float]]], str, str], ...] = (
        ("most written first", _concentration, "share of lines that were written", ".0%"),
        ("by place", _places, "the medium, from its first written page to its last", ".0%"),
    )
    for workload in comparison.workloads:
        runs = {d: r for d in comparison.designs if (r := comparison.run(workload, d))}
        used = {d: r.usage for d, r in runs.items() if r.usage is not None and r.usage.worn}
        for view, points, along, ticks in parts:
            data = [
                scatter(
                    "lines",
                    design,
                    [x for x, _ in of],
                    [y for _, y in of],
                    f"<b>{label(design)}</b><br>%{{x:.1%}}: "
                    + ("%{y:.1%} of writes" if points is _concentration else "%{y:.3~g} a line"),
                    line={"color": design_colour(design, comparison.designs), "width": 2},
                )
                for design, usage_ in used.items()
                if (of := points(usage_))
            ]
            if data:
                by_share = points is _concentration
                title = "share of line writes" if by_share else "writes of a written line"
                shape = layout(title, yaxis={"tickformat": ".0%"} if by_share else {})
                shape["xaxis"] = {
                    "title": {"text": along}, "tickformat": ticks, "automargin": True
                }  # fmt: skip
                views.append(View(f"{workload}: {view}", data, shape))
        rows += [
            [
                f"{workload}, {design}",
                sum(each.lines for each in of.worn),
                divide(sum(e.writes for e in of.worn), sum(e.lines for e in of.worn)),
                runs[design].metric("max_line_writes"),
            ]
            for design, of in used.items()
        ]
    if not views:
        return head.missing("No run of these results says how its lines were written.")
    return head.figure(
        "The first view orders lines by how often they were written: the further a curve lies to "
        "the top left, the fewer lines take the writes, and the more wear levelling would help. "
        "The second has the mean writes of a line along the medium.",
        "All lines of the medium count, those of counters and tables too, if they were written at "
        "all; between powers of two the first curve is drawn straight. Lines of tables that lie by "
        "hash are not in the second view.",
        views,
        Table(
            (
                ("workload, design", ""), ("lines written", ""), ("mean writes of one", ""),
                ("most of one", ""),
            ),
            rows,
        ),
    )  # fmt: skip


def _concentration(usage: Usage) -> list[tuple[float, float]]:
    lines = sum(each.lines for each in usage.worn)
    writes = sum(each.writes for each in usage.worn)
    points, some, their = [(0.0, 0.0)], 0, 0
    for each in reversed(usage.worn):
        some, their = some + each.lines, their + each.writes
        if each.lines:
            points.append((round(some / lines, 6), round(their / writes, 6)))
    return points


def _places(usage: Usage) -> list[tuple[float, float]]:
    count = len(usage.map)
    return [
        (round((at + 0.5) / count, 4), float(f"{part.writes / part.lines:.4g}"))
        for at, part in enumerate(usage.map)
        if part.lines
    ]
