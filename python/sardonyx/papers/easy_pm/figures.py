"""The figures of hardware logs: counterparts of EASY-PM Fig. 5-7, and what they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.draw.figure import Curves, Figure, Head, Missing
from sardonyx.draw.programs import beside, sweep
from sardonyx.papers import easy_pm
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import Two, arithmetic_mean, divide, ratio_of
from sardonyx.runs.programs import Programs, l1_latency, speedup, traffic_ratio, written_size
from sardonyx.runs.results import Run

TITLE = "Persistent programs"


def figures(comparison: Comparison) -> list[Figure | Missing]:
    """Every figure, in the paper's order; none without programs on the paper's baseline."""
    programs = comparison.programs
    if not any(trace.program for trace in comparison.results.traces):
        return []
    if easy_pm.BASELINE not in programs.designs:
        return []
    return [throughput(programs), traffic(programs), latency(programs), causes(programs)]


def _beside(
    programs: Programs, head: Head, shows: str, reading: str, axis: str, of: dict[str, Two]
) -> Figure | Missing:
    at = (easy_pm.BASELINE, easy_pm.CORES)
    return beside(programs, head, shows, reading, axis, of, *at)


def throughput(programs: Programs) -> Figure | Missing:
    return _beside(
        programs,
        Head("log-throughput", "Throughput of the logs", "EASY-PM Fig. 5"),
        "Transactions a second relative to the same structure under hw-log, the paper's baseline.",
        "Higher is better. SCA's log is the program's own; the rightmost group is the mean over "
        "all structures, two more than the paper's.",
        "throughput / hw-log's",
        {"": ratio_of("transactions_per_second")},
    )


def traffic(programs: Programs) -> Figure | Missing:
    return _beside(
        programs,
        Head("log-traffic", "Accesses to the medium", "EASY-PM Fig. 6"),
        "Reads and writes of the medium a transaction, all of them (REQ) and the counters' (CNT).",
        "Lower is better. No counters are written for a log that chains its ciphertext.",
        "accesses / hw-log's",
        {
            "REQ_WT": traffic_ratio("medium_writes"),
            "REQ_RD": traffic_ratio("medium_reads"),
            "CNT_WT": easy_pm.counter_ratio("writes"),
            "CNT_RD": easy_pm.counter_ratio("reads"),
        },
    )


def latency(programs: Programs) -> Figure | Missing:
    def ratio(run: Run, over: Run) -> float | None:
        return divide(*(l1_latency(one, programs.parameters) for one in (run, over)))

    return _beside(
        programs,
        Head("log-latency", "Latency of loads and stores", "EASY-PM Fig. 7"),
        "Mean latency of a load or store relative to the same structure under hw-log.",
        "From asking L1 to the line; hits in any cache count as L1's, which no design changes.",
        "latency / hw-log's",
        {"": ratio},
    )


def causes(programs: Programs) -> Figure | Missing:
    """EASY-PM's gain over the other logs, one cause varied at a time."""
    axis = "easy-pm's gain"
    views = []
    for varied, lines in easy_pm.gains(programs):
        x = [varied.written(value) for value in varied.values]
        views.append(Curves(varied.name, x, dict(lines), axis))
    sizes = [int(size) for size in programs.sizes()]
    by_size = [{"cores": easy_pm.CORES, "transaction_size": size} for size in sizes]
    by_cores = [{"cores": cores} for cores in programs.cores]
    views += [
        Curves("transaction size", [*map(written_size, sizes)], _gains(programs, by_size), axis),
        Curves("cores", list(map(str, programs.cores)), _gains(programs, by_cores), axis),
    ]
    return sweep(
        programs,
        Head("log-causes", "What the gain depends on", "EASY-PM Fig. 5"),
        "EASY-PM's gain in transactions a second over the other logs, one cause varied at a time.",
        "Means over the structures that were run at every value. Above 0 EASY-PM is ahead.",
        "setting",
        views,
    )


_Lines = dict[str, list[float | None]]


def _gains(programs: Programs, selections: Sequence[dict[str, Any]]) -> _Lines:
    """EASY-PM's mean gain over each other log at each selection, of programs that have all logs."""

    def at(over: str, selected: dict[str, Any]) -> dict[str, float | None]:
        a, b = {"design": easy_pm.EASY, **selected}, {"design": over, **selected}
        return programs.each(speedup, a, b)

    lines: _Lines = {}
    for over in (easy_pm.BASELINE, easy_pm.ALC, easy_pm.SOFTWARE):
        found = [at(over, selected) for selected in selections]
        whole = [n for n in programs.names if all(values[n] is not None for values in found)]
        lines[over] = [arithmetic_mean(values[n] for n in whole) for values in found]
    return lines
