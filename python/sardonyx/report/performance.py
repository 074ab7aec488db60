"""The figures of designs beside the baseline: writes saved, speed-ups, IPC, energy, tails, causes.

Counterparts of ESD Fig. 2, 11-17 and 19.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from sardonyx.draw.figure import (
    AMBER,
    BLUE,
    CAUSE_COLOURS,
    GREY,
    RED,
    TEAL,
    Cell,
    Figure,
    Head,
    Missing,
    Series,
    Table,
    View,
    at_one,
    bar,
    design_colour,
    label,
    layout,
    scatter,
)
from sardonyx.runs import measures
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import BASELINE, HANGING, MEASURES, arithmetic_mean, assumed_by

CDF_POINTS = 300
Kind: TypeAlias = Literal["read", "write"]


class Words(NamedTuple):
    """What is said of a measure beside the baseline's."""

    cf: str
    shows: str
    reading: str
    axis: str


BESIDE_BASELINE = {
    "write_reduction": Words(
        "ESD Fig. 11",
        "The share of write requests whose data line was never written to the medium.",
        "Write requests that stored no line / write requests; metadata and counters do not enter. "
        "Higher is better for wear. The rightmost group is the arithmetic mean.",
        "writes removed",
    ),
    "write_speedup": Words(
        "ESD Fig. 12",
        "How many times faster the mean write is than the baseline's on the same trace.",
        "Baseline's mean write latency / the design's. A write lasts from its arrival at the "
        "controller to the end of programming; a removed duplicate ends with the update of its "
        "mapping. Above the dotted line is faster. The rightmost group is the geometric mean.",
        "write speed-up",
    ),
    "read_speedup": Words(
        "ESD Fig. 13",
        "How many times faster the mean read is than the baseline's on the same trace.",
        "Baseline's mean read latency / the design's, from arrival to data. Reads gain where "
        "removed writes free their bank. The rightmost group is the geometric mean.",
        "read speed-up",
    ),
    "ipc_ratio": Words(
        "ESD Fig. 14",
        "Instructions per cycle, relative to the baseline on the same trace.",
        "The design's IPC / the baseline's; above the dotted line the program finishes sooner. The "
        "rightmost group is the geometric mean.",
        "IPC / baseline's",
    ),
    "energy_ratio": Words(
        "ESD Fig. 16",
        "Energy of medium, encryption and deduplication logic, relative to the baseline on the "
        "same trace.",
        "The design's energy / the baseline's; below the dotted line is less. The rightmost group "
        "is the geometric mean.",
        "energy / baseline's",
    ),
}


def beside_baseline(comparison: Comparison, key: str) -> Figure | Missing:
    """Grouped bars of one measure, workloads along the axis, the mean at its end."""
    measure, words = MEASURES[key], BESIDE_BASELINE[key]
    head = Head(key.removesuffix("_ratio").replace("_", "-"), measure.title, words.cf)
    if BASELINE not in comparison.designs:
        return head.missing("There is no `baseline` run to compare with.")
    found = {
        d: [comparison.estimate(measure.of, w, d, BASELINE) for w in comparison.workloads]
        for d in comparison.beside_baseline
    }
    values = {d: [each.value for each in of] for d, of in found.items()}
    values = {d: each for d, each in values.items() if any(value is not None for value in each)}
    halves = {d: [each.half for each in of] for d, of in found.items()}
    title = measure.title.lower()
    if not values:
        return head.missing(f"No run beside the baseline says its {title}.")
    series = Series("workload", comparison.workloads, measure.mean)
    if measure.unit == "%":
        form, shape = "%{y:.1%}", layout(words.axis, yaxis={"tickformat": ".0%"})
    else:
        shape = layout(words.axis, shapes=[at_one()], yaxis={"ticksuffix": "×"})
        form = "%{y:.2f}×"
    hover = f" on %{{x}}<br>{title}: {form}"
    data = series.designs(values, hover, comparison.designs, measure.unit, halves=halves)
    return head.figure(
        words.shows,
        words.reading,
        [View("", data, shape)],
        series.table(),
        assumed_by(comparison.runs(), measure.aspect) if measure.aspect in HANGING else [],
    )


def worst_cases(comparison: Comparison) -> Figure | Missing:
    """The two workloads where deduplication hurts writes most (ESD Fig. 2)."""
    head = Head("worst-cases", "Worst cases", "ESD Fig. 2")
    designs = comparison.beside_baseline
    worst: list[tuple[float, str]] = []
    for workload in comparison.workloads:
        speedups = [
            comparison.value(measures.write_speedup, workload, d, BASELINE) for d in designs
        ]
        if known := [value for value in speedups if value is not None]:
            worst.append((min(known), workload))
    if not worst:
        return head.missing("This needs a baseline and a deduplicating design.")
    chosen = [workload for _, workload in sorted(worst)[:2]]
    shown = [MEASURES[m] for m in ("write_speedup", "read_speedup", "ipc_ratio")]
    series = Series(
        "workload and measure", [f"{w}, {m.title.lower()}" for w in chosen for m in shown], None
    )
    outer = [label(workload) for workload in chosen for _ in shown]
    series.axis = [outer, ["write", "read", "IPC"] * len(chosen)]
    cells = {
        d: [comparison.value(m.of, w, d, BASELINE) for w in chosen for m in shown] for d in designs
    }
    hover = ", %{x}<br>%{y:.2f} of the baseline"
    data = series.designs(cells, hover, comparison.designs)
    axes = {"type": "multicategory", "automargin": True}
    shape = layout("relative to baseline", shapes=[at_one()], xaxis=axes, yaxis={"ticksuffix": "×"})
    return head.figure(
        "The two traces with the lowest write speed-up of any design, with all that deduplication "
        "does to them.",
        "Write and read: baseline's mean latency / the design's; IPC: the design's / the "
        "baseline's. Below the dotted line, deduplication costs more than it saves.",
        [View("", data, shape)],
        series.table(),
        assumed_by(comparison.runs(), "time"),
    )


def latency_distribution(comparison: Comparison, kind: Kind) -> Figure | Missing:
    """Cumulative distributions of latency, a trace at a time (of writes: ESD Fig. 15)."""
    paper = "ESD Fig. 15" if kind == "write" else ""
    head = Head(f"{kind}-latency", f"{kind.capitalize()} latency distribution", paper)
    views = []
    rows: list[list[Cell]] = []
    for workload in comparison.workloads:
        data = []
        for design in comparison.designs:
            run = comparison.run(workload, design)
            if run is None:
                continue
            percentiles = [run.metric(f"{p}_{kind}_latency_ns") for p in _PERCENTILES]
            rows.append([f"{workload}, {design}", *percentiles])
            cdf = run.write_latency_cdf if kind == "write" else run.read_latency_cdf
            points = _thinned([p for p in cdf if p[0] > 0])
            if points:
                colour = design_colour(design, comparison.designs)
                data.append(
                    scatter(
                        "lines",
                        design,
                        [round(ns, 2) for ns, _ in points],
                        [round(fraction, 6) for _, fraction in points],
                        f"<b>{label(design)}</b><br>%{{y:.2%}} of {kind}s within %{{x:,.4~g}} ns",
                        line={"color": colour, "width": 2.4, "shape": "hv"},
                    )
                )
        if data:
            shape = layout(f"share of {kind}s", yaxis={"tickformat": ".0%", "range": [0, 1.01]})
            shape["xaxis"] = {
                "type": "log",
                "title": {"text": f"{kind} latency (ns)"},
                "automargin": True,
                "dtick": 1,
                "tickformat": ",~f",
                "minor": {"dtick": "D1", "showgrid": True},
            }
            views.append(View(workload, data, shape))
    if not views:
        return head.missing("No run of these results carries its latency distribution.")
    columns = (("workload, design", ""), *((p, "ns") for p in _PERCENTILES))
    return head.figure(
        f"For the chosen trace, the share of {kind}s that took at most the time on the axis.",
        "A curve further left is faster; where it nears 100 % is the tail. The time axis is "
        "logarithmic. The table gives percentiles of every trace.",
        views,
        Table(columns, rows),
        assumed_by(comparison.runs(), "time"),
        choose="Trace",
    )


_PERCENTILES = ("p50", "p95", "p99", "p999")


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """About ``CDF_POINTS`` points at most, evenly apart along the curve's height, with its ends."""
    if len(points) <= CDF_POINTS:
        return points
    fractions = [fraction for _, fraction in points]
    picked = {0, len(points) - 1}
    # Steps of height are even, and then ever finer towards 1, where the tail is.
    half = CDF_POINTS // 2
    targets = [i / half for i in range(half)]
    targets += [1 - 10 ** (-1 - 3 * i / half) for i in range(half)]
    picked.update(min(bisect_left(fractions, t), len(points) - 1) for t in targets)
    return [points[i] for i in sorted(picked)]


def latency_by_cause(comparison: Comparison) -> Figure | Missing:
    """What a write's latency consists of (ESD Fig. 17)."""
    head = Head("latency-by-cause", "Where write latency goes", "ESD Fig. 17")
    causes = comparison.causes()
    designs = [
        design
        for design in comparison.designs
        if any(measures.write_latency_total(run) is not None for run in comparison.runs(design))
    ]
    if not designs:
        return head.missing("No run of these results books its latency by cause.")
    views = []
    rows: list[list[Cell]] = []
    means: dict[str, list[float | None]] = {}
    for design in designs:
        cells: list[list[float | None]] = []
        for workload in comparison.workloads:
            run = comparison.run(workload, design)
            shares = [None if run is None else measures.cause_share(run, cause) for cause in causes]
            cells.append(shares)
            rows.append([f"{workload}, {design}", *shares])
        means[design] = [arithmetic_mean(column) for column in zip(*cells, strict=True)]
        rows.append([f"arithmetic mean, {design}", *means[design]])
        names = [*map(label, comparison.workloads), "<b>mean</b>"]
        views.append(_by_cause(design, causes, names, [*cells, means[design]]))
    whole = "mean of all traces"
    if len(comparison.workloads) == 1:  # the mean is the trace's
        (whole,), views = comparison.workloads, []
        rows = [row for row in rows if not str(row[0]).startswith("arithmetic mean")]
    overview = _by_cause(whole, causes, list(map(label, designs)), list(means.values()), bargap=0.5)
    return head.figure(
        "Every nanosecond of a write's latency is booked under the cause on its critical path; a "
        "bar shows each cause's share.",
        "Share = latency booked under the cause / latency of all writes; a bar adds up to 100 %. "
        "Look-up is reading fingerprints or their index from the medium, compare reads the line "
        "that may be equal, data is the write itself with its queueing. Means are arithmetic over "
        "traces.",
        [overview, *views],
        Table((("workload, design", ""), *((cause, "%") for cause in causes)), rows),
        assumed_by(comparison.runs(), "time"),
        choose="Design",
    )


def _by_cause(
    name: str,
    causes: Sequence[str],
    groups: Sequence[str],
    shares: Sequence[Sequence[float | None]],
    **more: Any,
) -> View:
    """A stacked bar of each group's shares; a cause without a share is left out."""
    data = [
        bar(
            cause,
            groups,
            column,
            CAUSE_COLOURS.get(cause, GREY),
            f"%{{x}}<br>{label(cause)}: %{{y:.1%}} of write latency",
        )
        for cause, column in zip(causes, zip(*shares, strict=True), strict=True)
        if any(column)
    ]
    return View(name, data, _shares("share of write latency", **more))


def _shares(axis: str, **more: Any) -> dict[str, Any]:
    return layout(axis, barmode="stack", yaxis={"tickformat": ".0%", "range": [0, 1.0001]}, **more)


def metadata(comparison: Comparison) -> Figure | Missing:
    """Metadata in the medium, relative to the largest rival (ESD Fig. 19)."""
    head = Head("metadata", "Metadata footprint", "ESD Fig. 19")
    designs = [
        design
        for design in comparison.designs
        if design != BASELINE
        and any(run.metric("metadata_bytes") for run in comparison.runs(design))
    ]
    if not designs:
        return head.missing("No run of these results says how much metadata it keeps.")
    against = "dedup-sha1" if "dedup-sha1" in designs else designs[0]
    series = Series("workload", comparison.workloads)
    relative, absolute, in_use = [], [], []
    for design in designs:
        colour = design_colour(design, comparison.designs)
        ratios = comparison.each(measures.metadata_ratio, design, against).values()
        used = comparison.each(measures.metadata_in_use_ratio, design, against).values()
        runs = [comparison.run(w, design) for w in comparison.workloads]
        sizes = [run.metric("metadata_bytes_per_line") if run else None for run in runs]
        hover = f"<b>{label(design)}</b> on %{{x}}<br>%{{y:.1%}} of {against}'s metadata"
        column = f"{design}, of {against}"
        relative.append(series.bar(design, "%", ratios, colour, hover, column))
        hover = f"<b>{label(design)}</b> on %{{x}}<br>%{{y:.2f}} B a line"
        absolute.append(series.bar(design, "B", sizes, colour, hover, f"{design}, B/line"))
        hover = f"<b>{label(design)}</b> on %{{x}}<br>%{{y:.1%}} of {against}'s entries in use"
        column = f"{design}, in use, of {against}"
        in_use.append(series.bar(design, "%", used, colour, hover, column))
    shape = layout(f"of {against}'s", yaxis={"tickformat": ".0%"})
    views = [View(f"relative to {against}", relative, shape)]
    if any(value for trace in absolute for value in trace["y"]):
        views.append(View("bytes a line", absolute, layout("bytes a 64-byte line")))
    if any(value for trace in in_use for value in trace["y"]):
        views.append(View("entries in use alone", in_use, shape))
    return head.figure(
        "Bytes of the medium that hold mappings, fingerprints and reference counts.",
        "Tables with an entry for every 64-byte line, as ESD and DeWrite count them, so the bytes "
        "a line are the design's alone; or only the entries in use, of which full deduplication "
        "has fewer the more is duplicated. Encryption counters and tables in on-chip caches alone "
        "do not count. The rightmost group is the arithmetic mean.",
        views,
        series.table(),
        assumed_by(comparison.runs(*designs), "space"),
    )


def predictions(comparison: Comparison) -> Figure | Missing:
    """How DeWrite's predictions came out (ESD Fig. 4)."""
    head = Head("predictions", "Prediction outcomes", "ESD Fig. 4")
    outcomes = (
        ("T1", "predicted duplicate, was one", "prediction_t1", TEAL),
        ("F2", "predicted duplicate, was none", "prediction_f2", RED),
        ("T3", "predicted unique, was unique", "prediction_t3", BLUE),
        ("F4", "predicted unique, was a duplicate", "prediction_f4", AMBER),
    )
    runs = [(w, comparison.run(w, "dewrite")) for w in comparison.workloads]
    known = [
        (w, r) for w, r in runs if r and any(r.metric(m) is not None for _, _, m, _ in outcomes)
    ]
    if not known:
        return head.missing("This needs runs of `dewrite`, the design that predicts.")
    series = Series("workload", [w for w, _ in known])
    data = []
    totals = [sum(r.metric(m) or 0 for _, _, m, _ in outcomes) for _, r in known]
    for name, meaning, metric, colour in outcomes:
        values: list[float | None] = [
            (r.metric(metric) or 0) / total if total else None
            for (_, r), total in zip(known, totals, strict=True)
        ]
        hover = f"%{{x}}<br>{name}: {meaning}<br>%{{y:.1%}} of predictions"
        data.append(series.bar(f"{name}: {meaning}", "%", values, colour, hover, name))
    return head.figure(
        "DeWrite predicts whether a write is a duplicate and starts encrypting early when not; a "
        "bar splits its predictions by outcome.",
        "T1 and T3 are right. F2 delays a unique line, since its encryption starts late; F4 wastes "
        "an encryption. The rightmost bar is the arithmetic mean.",
        [View("", data, _shares("share of predictions"))],
        series.table(),
    )


def duplicates_found(comparison: Comparison) -> Figure | Missing:
    """Where duplicates are found, and what looking in the medium costs (ESD Fig. 5)."""
    head = Head("duplicates-found", "Where duplicates are found", "ESD Fig. 5")
    views = []
    rows: list[list[Cell]] = []
    used = []
    for design in [d for d in comparison.designs if d in ("dedup-sha1", "dewrite")]:
        workloads = [w for w in comparison.workloads if comparison.run(w, design)]
        runs = [run for w in workloads if (run := comparison.run(w, design))]
        in_cache, in_medium = (
            [measures.share_of_writes(run, f"duplicates_found_in_{place}") for run in runs]
            for place in ("cache", "medium")
        )
        if all(value is None for value in in_cache + in_medium):
            continue
        series = Series("", workloads)
        hover = "%{x}<br>%{y:.1%} of writes, found"
        by_cache = f"{hover} by a fingerprint in the cache"
        by_look = f"{hover} only by looking in the medium"
        data = [
            series.bar("found by a cached fingerprint", "%", in_cache, TEAL, by_cache),
            series.bar("found by looking in the medium", "%", in_medium, BLUE, by_look),
            scatter(
                "markers",
                "look-up share of write latency",
                series.axis,
                series.add("", "%", [measures.cause_share(run, "lookup") for run in runs]),
                "%{x}<br>look-ups take %{y:.1%} of write latency",
                marker={"color": RED, "size": 9, "symbol": "diamond"},
            ),
        ]
        views.append(View(design, data, _shares("share of writes, of latency")))
        used.append(design)
        rows += [[f"{name}, {design}", *cells] for name, *cells in series.table().rows]
    if not views:
        return head.missing(
            "This needs runs of `dedup-sha1` or `dewrite`, which look in the medium.",
        )
    heads = (("found in cache", "%"), ("found in medium", "%"), ("look-up of latency", "%"))
    return head.figure(
        "Bars: the share of writes found to be duplicates, by where their fingerprint was. "
        "Diamonds: the share of write latency spent on looking in the medium.",
        "Both are shares of all writes, not of duplicates. A short blue bar under a high diamond "
        "means costly look-ups for few duplicates. The rightmost group is the arithmetic mean.",
        views,
        Table((("workload, design", ""), *heads), rows),
        assumed_by(comparison.runs(*used), "time"),
        choose="Design",
    )
