"""The figures of persistent programs: counterparts of SCA Figs. 12-17."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.papers import sca_causes
from sardonyx.report.figure import (
    Cell,
    Curves,
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
)
from sardonyx.runs.measures import Two, arithmetic_mean, assumed_by, ratio_of
from sardonyx.runs.programs import (
    ACCESSES,
    BYTES,
    COUNTER_CACHE,
    LATENCIES,
    Programs,
    miss_rate,
    runtime_ratio,
    speedup,
    traffic_ratio,
    written_size,
)

MEAN = "mean"


def figures(programs: Programs) -> list[Figure | Missing]:
    """Every figure, in the paper's order."""
    return [
        runtime(programs),
        throughput(programs),
        traffic(programs),
        counter_caches(programs),
        transaction_sizes(programs),
        latencies(programs),
        causes(programs),
    ]


def _assumed(programs: Programs) -> list[str]:
    return assumed_by(programs.runs(), "time")


def _curves(
    programs: Programs, of: Two, points: Sequence[tuple[dict[str, Any], dict[str, Any]]]
) -> dict[str, list[float | None]]:
    """``of`` two runs, which each point selects, by program, and the mean over the programs."""
    found = [programs.each(of, a, b) for a, b in points]
    curves = {program: [values[program] for values in found] for program in programs.names}
    return curves | {MEAN: [arithmetic_mean(values.values()) for values in found]}


def beside(
    programs: Programs,
    head: Head,
    shows: str,
    reading: str,
    axis: str,
    measures: dict[str, Two],
    over: str = "no-encryption",
    cores: int = 1,
) -> Figure | Missing:
    """Each program under each design relative to the same under ``over``, and the mean."""
    designs = programs.designs
    if over not in designs or cores not in programs.cores:
        on = "one core" if cores == 1 else f"{cores} cores"
        return head.missing(f"There is no run of `{over}` on {on} to compare with.")
    shape = layout(axis, shapes=[at_one()], yaxis={"ticksuffix": "×"})
    views, tables = [], []
    for name, measure in measures.items():
        series = Series("program", programs.names)
        hover = f", %{{x}}<br>{axis}: %{{y:.2f}}×"
        values = {
            d: programs.each(
                measure, {"design": d, "cores": cores}, {"design": over, "cores": cores}
            ).values()
            for d in designs
        }
        views.append(View(name, series.designs(values, hover, designs), shape))
        tables.append(series.table())
    return head.figure(shows, reading, views, tables[0], _assumed(programs))


def runtime(programs: Programs) -> Figure | Missing:
    return beside(
        programs,
        Head("program-runtime", "Runtime on one core", "SCA Fig. 12"),
        "Time a transaction relative to the same program without encryption.",
        "Lower is better. The rightmost group is the arithmetic mean.",
        "runtime / no-encryption's",
        {"": runtime_ratio},
    )


def traffic(programs: Programs) -> Figure | Missing:
    return beside(
        programs,
        Head("program-traffic", "Write traffic on one core", "SCA Fig. 14"),
        "What a transaction writes to the medium, relative to the program without encryption.",
        "In bytes a counter counts as the eight bytes that changed; in accesses a line of counters "
        "counts as one. Lower is better.",
        "written / no-encryption's",
        {
            "bytes": traffic_ratio(BYTES),
            "accesses": traffic_ratio(ACCESSES),
        },
    )


def throughput(programs: Programs) -> Figure | Missing:
    head = Head("program-throughput", "Throughput by number of cores", "SCA Fig. 13")
    designs, cores = programs.designs, programs.cores
    if "no-encryption" not in designs or len(cores) < 2:
        reason = "This needs runs on several numbers of cores, `no-encryption` among them."
        return head.missing(reason)

    plain = {"design": "no-encryption"}
    curves = {
        design: _curves(
            programs,
            ratio_of("transactions_per_second"),
            [({"design": design, "cores": n}, plain) for n in cores],
        )
        for design in designs
    }
    rows: list[list[Cell]] = []
    views = []
    for program in (MEAN, *programs.names):
        data = []
        for design in designs:
            drawn = curves[design][program]
            hover = f"<b>{label(design)}</b>, %{{x}} cores<br>throughput: %{{y:.2f}}×"
            x = [str(n) for n in cores]
            data.append(bar(design, x, drawn, design_colour(design, designs), hover))
            rows.append([f"{program}, {design}", *drawn])
        shape = layout("throughput / one core's without encryption", yaxis={"ticksuffix": "×"})
        shape["xaxis"] = {"type": "category", "title": {"text": "cores"}, "automargin": True}
        views.append(View(program, data, shape))
    return head.figure(
        "Transactions a second of all cores together, relative to one core without encryption.",
        "Higher is better. All cores share one controller and one channel.",
        views,
        Table((("program, design", ""), *((f"{n} cores", "x") for n in cores)), rows),
        _assumed(programs),
        choose="Program",
    )


def sweep(
    programs: Programs, head: Head, shows: str, reading: str, along: str, views: Sequence[Curves]
) -> Figure | Missing:
    """Curves over the values of a setting, a view each."""
    if not any(value is not None for v in views for line in v.lines.values() for value in line):
        return head.missing("This needs a sweep: `sardonyx reproduce sca` runs it.")
    longest = max((view.x for view in views), key=len)
    rows: list[list[Cell]] = [
        [f"{view.name}: {name}" if view.name else name, *line, *[None] * (len(longest) - len(line))]
        for view in views
        for name, line in view.lines.items()
    ]
    table = Table((("curve", ""), *((x, "") for x in longest)), rows)
    drawn = [view.view(along) for view in views]
    return head.figure(shows, reading, drawn, table, _assumed(programs))


def counter_caches(programs: Programs) -> Figure | Missing:
    sizes = [int(size) for size in programs.settings(COUNTER_CACHE)]
    speed: dict[str, list[float | None]] = {}
    miss: dict[str, list[float | None]] = {}
    for footprint in programs.footprints(COUNTER_CACHE):
        points: list[dict[str, Any]] = [
            {"design": "sca", "footprint": footprint, "variant": {COUNTER_CACHE: size}}
            for size in sizes
        ]
        name = written_size(footprint)
        speed[name] = _curves(programs, speedup, [(point, points[0]) for point in points])[MEAN]
        missed = [(point, point) for point in points]
        miss[name] = _curves(programs, lambda run, _: miss_rate(run), missed)[MEAN]
    x = [written_size(size) for size in sizes]
    return sweep(
        programs,
        Head("counter-cache-size", "Counter-cache size", "SCA Fig. 15"),
        "SCA with growing counter caches: speed-up over the smallest, and the share of "
        "look-ups that miss; means over the programs, a curve for each footprint.",
        "A miss of a read waits for a line of eight counters from the medium.",
        "counter cache",
        [
            Curves("speed-up", x, speed, "speed-up over the smallest"),
            Curves("miss rate", x, miss, "miss rate"),
        ],
    )


def transaction_sizes(programs: Programs) -> Figure | Missing:
    sizes = programs.sizes()
    selected = [
        ({"design": "sca", "transaction_size": s}, {"design": "ideal", "transaction_size": s})
        for s in sizes
    ]
    curves = _curves(programs, runtime_ratio, selected)
    return sweep(
        programs,
        Head("transaction-size", "Transaction size", "SCA Fig. 16"),
        "Runtime of SCA relative to the ideal design, for items of growing size.",
        "The larger a transaction, the smaller the part of its writes that are counter-atomic.",
        "bytes of an item",
        [Curves("", [written_size(s) for s in sizes], curves, "runtime / ideal's", False)],
    )


def latencies(programs: Programs) -> Figure | Missing:
    views = []
    for name, (key, nominal) in LATENCIES.items():
        settings = sorted({*programs.settings(key), nominal}, reverse=True)
        variants = [{} if setting == nominal else {key: setting} for setting in settings]
        selected = [
            ({"design": "sca", "variant": v}, {"design": "co-located", "variant": v})
            for v in variants
        ]
        curves = _curves(programs, speedup, selected)
        x = [_factor(setting / nominal) for setting in settings]
        views.append(Curves(f"{name} latency", x, curves, "speed-up of sca over co-located"))
    return sweep(
        programs,
        Head("medium-latency", "Latency of the medium", "SCA Fig. 17"),
        "How much faster SCA is than the co-located design, for slower and faster media.",
        "Reads vary in tRCD, writes in tWR; the other stays as in Table 2.",
        "latency",
        views if any(len(view.x) > 1 for view in views) else [],
    )


def causes(programs: Programs) -> Figure | Missing:
    """The sweeps of what may explain a gap, each with where the paper's order sets in."""
    swept = sca_causes.swept(programs)
    views, texts = [], []
    for cause, lines in swept:
        x = [cause.written(value) for value in cause.values]
        views.append(Curves(cause.name, x, dict(lines), "runtime / no-encryption's", False))
        where = "; ".join(f"{a}: {b}" for a, b in sca_causes.crossings(cause, lines).items())
        texts.append(f"{cause.name} ({cause.meaning}): {where}.")
    return sweep(
        programs,
        Head("causes", "One cause at a time", "SCA Fig. 12, 13"),
        "Runtime relative to the same program without encryption, where one setting varies and all "
        "others stay; the means over the programs in which causes were looked for.",
        " ".join(texts),
        "setting",
        views,
    )


def _factor(factor: float) -> str:
    if factor == 1:
        return "Table 2"
    return f"{factor:g}× slower" if factor > 1 else f"{1 / factor:g}× faster"
