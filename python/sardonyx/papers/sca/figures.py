"""The figures of persistent programs: counterparts of SCA Figs. 12-17."""

from __future__ import annotations

from typing import Any

from sardonyx.draw.figure import (
    Cell,
    Curves,
    Figure,
    Head,
    Missing,
    Table,
    View,
    bar,
    design_colour,
    label,
    layout,
)
from sardonyx.draw.programs import MEAN, assumed, beside, curves_of, sweep
from sardonyx.papers.sca import causes as sweeps
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import ratio_of
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

TITLE = "Persistent programs"


def figures(comparison: Comparison) -> list[Figure | Missing]:
    """Every figure, in the paper's order; none but of programs."""
    if not any(trace.program for trace in comparison.results.traces):
        return []
    programs = comparison.programs
    return [
        runtime(programs),
        throughput(programs),
        traffic(programs),
        counter_caches(programs),
        transaction_sizes(programs),
        latencies(programs),
        causes(programs),
    ]


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
        design: curves_of(
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
        assumed(programs),
        choose="Program",
    )


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
        speed[name] = curves_of(programs, speedup, [(point, points[0]) for point in points])[MEAN]
        missed = [(point, point) for point in points]
        miss[name] = curves_of(programs, lambda run, _: miss_rate(run), missed)[MEAN]
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
    curves = curves_of(programs, runtime_ratio, selected)
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
        curves = curves_of(programs, speedup, selected)
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
    swept = sweeps.swept(programs)
    views, texts = [], []
    for cause, lines in swept:
        x = [cause.written(value) for value in cause.values]
        views.append(Curves(cause.name, x, dict(lines), "runtime / no-encryption's", False))
        where = "; ".join(f"{a}: {b}" for a, b in sweeps.crossings(cause, lines).items())
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
