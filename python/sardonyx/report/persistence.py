"""The figures of persistent programs: counterparts of SCA Figs. 12-17."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.report.figure import (
    Cell,
    Figure,
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
from sardonyx.runs.measures import arithmetic_mean, assumed_by, divide
from sardonyx.runs.programs import (
    ACCESSES,
    BYTES,
    COUNTER_CACHE,
    READ_LATENCY,
    READ_NS,
    WRITE_LATENCY,
    WRITE_NS,
    Programs,
    miss_rate,
    runtime_ratio,
    speedup,
    traffic_ratio,
    written_size,
)

MEAN = "mean"
_COLOURS = ("#009e73", "#1f78c8", "#d55e00", "#cc79a7", "#e69f00", "#8a8f98", "#56b4e9")


def figures(programs: Programs) -> list[Figure | Missing]:
    """Every figure, in the paper's order."""
    return [
        runtime(programs),
        throughput(programs),
        traffic(programs),
        counter_caches(programs),
        transaction_sizes(programs),
        latencies(programs),
    ]


def _assumed(programs: Programs) -> list[str]:
    return assumed_by(programs.runs(), "time")


def _bars(
    programs: Programs,
    designs: Sequence[str],
    of: Callable[[str, str], float | None],
    what: str,
) -> tuple[list[dict[str, Any]], Table]:
    """Programs along the axis and their mean; a series a design."""
    series = Series("program", programs.names)
    data = []
    for design in designs:
        values = [of(program, design) for program in programs.names]
        hover = f"<b>{label(design)}</b>, %{{x}}<br>{what}: %{{y:.2f}}×"
        data.append(series.bar(design, "x", values, design_colour(design, designs), hover))
    return data, series.table()


def _beside_plain(
    programs: Programs,
    key: str,
    title: str,
    cf: str,
    words: tuple[str, str, str],
    measures: Sequence[tuple[str, Callable[[str, str], float | None]]],
) -> Figure | Missing:
    designs = programs.designs
    if "no-encryption" not in designs:
        return Missing(key, title, cf, "There is no run of `no-encryption` to compare with.")
    shows, reading, axis = words
    shape = layout(axis, shapes=[at_one()], yaxis={"ticksuffix": "×"})
    made = [(name, *_bars(programs, designs, of, axis)) for name, of in measures]
    views = [View(name, data, shape) for name, data, _ in made]
    return Figure(key, title, cf, shows, reading, views, made[0][2], _assumed(programs))


def runtime(programs: Programs) -> Figure | Missing:
    def of(program: str, design: str) -> float | None:
        run, base = programs.run(program, design), programs.run(program, "no-encryption")
        return None if run is None or base is None else runtime_ratio(run, base)

    return _beside_plain(
        programs,
        "program-runtime",
        "Runtime on one core",
        "SCA Fig. 12",
        (
            "Time a transaction relative to the same program without encryption.",
            "Lower is better. The rightmost group is the arithmetic mean.",
            "runtime / no-encryption's",
        ),
        [("", of)],
    )


def traffic(programs: Programs) -> Figure | Missing:
    def in_unit(metric: str) -> Callable[[str, str], float | None]:
        def of(program: str, design: str) -> float | None:
            run, base = programs.run(program, design), programs.run(program, "no-encryption")
            return None if run is None or base is None else traffic_ratio(run, base, metric)

        return of

    return _beside_plain(
        programs,
        "program-traffic",
        "Write traffic on one core",
        "SCA Fig. 14",
        (
            "What a transaction writes to the medium, relative to the program without encryption.",
            "In bytes a counter counts as the eight bytes that changed; in accesses a line of "
            "counters counts as one. Lower is better.",
            "written / no-encryption's",
        ),
        [("bytes", in_unit(BYTES)), ("accesses", in_unit(ACCESSES))],
    )


def throughput(programs: Programs) -> Figure | Missing:
    key, title, cf = "program-throughput", "Throughput by number of cores", "SCA Fig. 13"
    designs, cores = programs.designs, programs.cores
    if "no-encryption" not in designs or len(cores) < 2:
        reason = "This needs runs on several numbers of cores, `no-encryption` among them."
        return Missing(key, title, cf, reason)

    def of(program: str, design: str, n: int) -> float | None:
        run = programs.run(program, design, n)
        base = programs.run(program, "no-encryption", 1)
        if run is None or base is None:
            return None
        rate = "transactions_per_second"
        return divide(run.metric(rate), base.metric(rate))

    rows: list[list[Cell]] = []
    by_program: dict[str, dict[str, list[float | None]]] = {}
    for program in programs.names:
        by_program[program] = {d: [of(program, d, n) for n in cores] for d in designs}
    by_program[MEAN] = {
        d: [
            arithmetic_mean(by_program[p][d][index] for p in programs.names)
            for index in range(len(cores))
        ]
        for d in designs
    }
    views = []
    for program in (MEAN, *programs.names):
        data = []
        for design in designs:
            values = by_program[program][design]
            hover = f"<b>{label(design)}</b>, %{{x}} cores<br>throughput: %{{y:.2f}}×"
            x = [str(n) for n in cores]
            data.append(bar(design, x, values, design_colour(design, designs), hover))
            rows.append([f"{program}, {design}", *values])
        shape = layout("throughput / one core's without encryption", yaxis={"ticksuffix": "×"})
        shape["xaxis"] = {"type": "category", "title": {"text": "cores"}, "automargin": True}
        views.append(View(program, data, shape))
    return Figure(
        key,
        title,
        cf,
        "Transactions a second of all cores together, relative to one core without encryption.",
        "Higher is better. All cores share one controller and one channel.",
        views,
        Table((("program, design", ""), *((f"{n} cores", "x") for n in cores)), rows),
        _assumed(programs),
        choose="Program",
    )


def _lines(
    curves: dict[str, list[float | None]], x: Sequence[str], axis: str, along: str, percent: bool
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    form = "%{y:.2%}" if percent else "%{y:.3f}×"
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": label(name),
            "x": list(x),
            "y": values,
            "line": {"color": _COLOURS[index % len(_COLOURS)], "width": 2.4},
            "marker": {"size": 8},
            "hovertemplate": f"<b>{label(name)}</b>, %{{x}}<br>{form}<extra></extra>",
        }
        for index, (name, values) in enumerate(curves.items())
    ]
    ticks = {"tickformat": "~%"} if percent else {"ticksuffix": "×"}
    shape = layout(axis, yaxis={**ticks, "rangemode": "normal"})
    shape["xaxis"] = {"type": "category", "title": {"text": along}, "automargin": True}
    return data, shape


def _sweep(
    programs: Programs,
    identity: tuple[str, str, str],
    words: tuple[str, str, str],
    views: Sequence[tuple[str, Sequence[str], dict[str, list[float | None]], str, bool]],
) -> Figure | Missing:
    key, title, cf = identity
    shows, reading, along = words
    if not any(v is not None for _, _, curves, _, _ in views for c in curves.values() for v in c):
        reason = "This needs a sweep: `sardonyx reproduce sca` runs it."
        return Missing(key, title, cf, reason)
    made = []
    rows: list[list[Cell]] = []
    longest = max((x for _, x, _, _, _ in views), key=len)
    for name, x, curves, axis, percent in views:
        data, shape = _lines(curves, x, axis, along, percent)
        made.append(View(name, data, shape))
        room = len(longest) - len(x)
        rows += [[f"{name}: {c}" if name else c, *v, *[None] * room] for c, v in curves.items()]
    columns = (("curve", ""), *((f"{x}", "") for x in longest))
    return Figure(key, title, cf, shows, reading, made, Table(columns, rows), _assumed(programs))


def counter_caches(programs: Programs) -> Figure | Missing:
    sizes = [int(size) for size in programs.settings(COUNTER_CACHE)]
    speed: dict[str, list[float | None]] = {}
    miss: dict[str, list[float | None]] = {}
    for footprint in programs.footprints(COUNTER_CACHE):

        def point(size: int, footprint: int = footprint) -> dict[str, Any]:
            variant = {COUNTER_CACHE: size}
            return {"design": "sca", "footprint": footprint, "variant": variant}

        name = written_size(footprint)
        speed[name] = [
            arithmetic_mean(programs.each(speedup, point(s), point(sizes[0])).values())
            for s in sizes
        ]
        miss[name] = [
            arithmetic_mean(
                programs.each(lambda run, _: miss_rate(run), point(s), point(s)).values()
            )
            for s in sizes
        ]
    x = [written_size(size) for size in sizes]
    return _sweep(
        programs,
        ("counter-cache-size", "Counter-cache size", "SCA Fig. 15"),
        (
            "SCA with growing counter caches: speed-up over the smallest, and the share of "
            "look-ups that miss; means over the programs, a curve for each footprint.",
            "A miss of a read waits for a line of eight counters from the medium.",
            "counter cache",
        ),
        [
            ("speed-up", x, speed, "speed-up over the smallest", True),
            ("miss rate", x, miss, "miss rate", True),
        ],
    )


def transaction_sizes(programs: Programs) -> Figure | Missing:
    sizes = programs.sizes()
    curves: dict[str, list[float | None]] = {program: [] for program in programs.names}
    for size in sizes:
        a = {"design": "sca", "transaction_size": size}
        b = {"design": "ideal", "transaction_size": size}
        for program, value in programs.each(runtime_ratio, a, b).items():
            curves[program].append(value)
    curves[MEAN] = [arithmetic_mean(c[i] for c in curves.values()) for i in range(len(sizes))]
    return _sweep(
        programs,
        ("transaction-size", "Transaction size", "SCA Fig. 16"),
        (
            "Runtime of SCA relative to the ideal design, for items of growing size.",
            "The larger a transaction, the smaller the part of its writes that are counter-atomic.",
            "bytes of an item",
        ),
        [("", [written_size(s) for s in sizes], curves, "runtime / ideal's", False)],
    )


def latencies(programs: Programs) -> Figure | Missing:
    views = []
    for name, key, nominal in (
        ("read latency", READ_LATENCY, READ_NS),
        ("write latency", WRITE_LATENCY, WRITE_NS),
    ):
        settings = sorted({*programs.settings(key), nominal}, reverse=True)
        curves: dict[str, list[float | None]] = {program: [] for program in programs.names}
        for setting in settings:
            variant = {} if setting == nominal else {key: setting}
            a, b = ({"design": d, "variant": variant} for d in ("sca", "co-located"))
            for program, value in programs.each(speedup, a, b).items():
                curves[program].append(value)
        curves[MEAN] = [
            arithmetic_mean(c[i] for c in curves.values()) for i in range(len(settings))
        ]
        x = [_factor(setting / nominal) for setting in settings]
        views.append((name, x, curves, "speed-up of sca over co-located", True))
    if all(len(x) == 1 for _, x, _, _, _ in views):
        reason = "This needs a sweep: `sardonyx reproduce sca` runs it."
        return Missing("medium-latency", "Latency of the medium", "SCA Fig. 17", reason)
    return _sweep(
        programs,
        ("medium-latency", "Latency of the medium", "SCA Fig. 17"),
        (
            "How much faster SCA is than the co-located design, for slower and faster media.",
            "Reads vary in tRCD, writes in tWR; the other stays as in Table 2.",
            "latency",
        ),
        views,
    )


def _factor(factor: float) -> str:
    if factor == 1:
        return "Table 2"
    return f"{factor:g}× slower" if factor > 1 else f"{1 / factor:g}× faster"
