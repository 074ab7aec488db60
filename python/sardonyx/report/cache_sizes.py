"""The figures of ESD's cache sizes: hit rates of EFIT, by replacement policy, and of the AMT cache.

Counterparts of ESD Fig. 18 (a) and (b), from runs whose variant sets the size.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.draw.figure import Cell, Curves, Figure, Head, Missing, Table
from sardonyx.runs.cache_sizes import AMT_BYTES, EFIT_BYTES, POLICY, points
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import arithmetic_mean
from sardonyx.runs.results import Run


def efit(comparison: Comparison) -> Figure | Missing:
    results = comparison.results
    policies = sorted(
        {
            str(run.variant[POLICY])
            for run in results.runs
            if set(run.variant) == {EFIT_BYTES, POLICY}
        }
    )
    series = {f"EFIT, {policy.upper()}": points(results, EFIT_BYTES, policy) for policy in policies}
    if unnamed := points(results, EFIT_BYTES):
        series["EFIT, the machine's policy"] = unnamed
    return _figure(
        Head("efit-size", "EFIT hit rate by size", "ESD Fig. 18(a)"),
        series,
        lambda run: run.metric("efit_hit_rate"),
        "The share of EFIT look-ups that find their fingerprint, for growing EFITs, under each "
        "replacement policy.",
        "LRCU prefers to drop entries that were referenced once, LRU the oldest. Where a curve "
        "flattens, a larger table finds few more duplicates.",
    )


def amt(comparison: Comparison) -> Figure | Missing:
    return _figure(
        Head("amt-size", "AMT hit rate by size", "ESD Fig. 18(b)"),
        {"AMT cache": points(comparison.results, AMT_BYTES)},
        lambda run: run.metric("amt_hit_rate"),
        "The share of address translations that the on-chip AMT cache answers, for growing caches.",
        "A miss reads a line of the mapping table from the medium.",
    )


def _figure(
    head: Head,
    series: dict[str, dict[str, dict[int, Run]]],
    rate: Callable[[Run], float | None],
    shows: str,
    reading: str,
) -> Figure | Missing:
    traces = list(dict.fromkeys(t for by_trace in series.values() for t in by_trace))
    sizes = sorted({s for by_trace in series.values() for by in by_trace.values() for s in by})
    if not sizes:
        return head.missing(
            "This needs a sweep of the cache's size: `sardonyx reproduce esd` runs it.",
        )
    several = len(traces) > 1
    rows: list[list[Cell]] = []
    curves: dict[str, dict[str, list[float | None]]] = {t: {} for t in traces}
    means: dict[str, list[float | None]] = {}
    for name, by_trace in series.items():
        for trace in traces:
            by = by_trace.get(trace, {})
            curve = [rate(by[size]) if size in by else None for size in sizes]
            curves[trace][name] = curve
            rows.append([f"{trace}, {name}", *curve])
        columns = zip(*(curve[name] for curve in curves.values()), strict=True)
        means[name] = [arithmetic_mean(column) for column in columns]
        if several:
            rows.append([f"arithmetic mean, {name}", *means[name]])
    names = [_size(size) for size in sizes]
    views = [
        Curves(view, names, lines, "hit rate").view("size")
        for view, lines in ({"mean of all traces": means} | curves if several else curves).items()
    ]
    return head.figure(
        shows,
        f"{reading} The mean is arithmetic over traces; the axis need not start at 0.",
        views,
        Table((("workload, table", ""), *((name, "%") for name in names)), rows),
        choose="Trace",
    )


def _size(size: int) -> str:
    if size >= 1 << 20 and size % (1 << 20) == 0:
        return f"{size >> 20} MB"
    return f"{size >> 10} KB" if size % 1024 == 0 else f"{size:,} B"
