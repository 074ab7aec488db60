"""What a reader must know of traces before she believes a mean over them.

The native module counts bursts and says what is doubtful (``crates/trace/src/bursts.rs``);
here it stands beside the caches of the recording and of the simulated machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.runs.facts import Trace
from sardonyx.runs.measures import divide, written
from sardonyx.runs.results import Results, Run

#: The machine's tables on chip by the design that has them; ``""`` stands for every design.
TABLES = (
    ("", "counter cache", "encryption.counter_cache.bytes"),
    ("esd", "EFIT", "esd.efit_bytes"),
    ("esd", "AMT cache", "esd.amt_bytes"),
    ("dedup-sha1", "fingerprints of dedup-sha1", "dedup_sha1.fingerprint_cache.bytes"),
    ("dewrite", "fingerprints of dewrite", "dewrite.fingerprint_cache.bytes"),
)


@dataclass(frozen=True, slots=True)
class Worth:
    """One trace: its writes, those in bursts as a share, bytes touched, bytes cached above it."""

    name: str
    writes: int
    burst_share: float | None
    footprint: int
    recorded_below: int | None


def worth(traces: Sequence[Trace]) -> list[Worth]:
    """Of the traces that say so; programs have no bursts of a recording."""
    found = []
    for trace in traces:
        facts = trace.facts
        writes, footprint = facts.get("writes"), facts.get("footprint_bytes")
        if writes is None or footprint is None or "burst_write_share" not in facts:
            continue
        below = facts.get("recorded_cache_bytes")
        share = facts["burst_write_share"]
        cached = None if below is None else int(below)
        found.append(Worth(trace.name, int(writes), share, int(footprint), cached))
    return found


def warnings(traces: Sequence[Trace]) -> list[str]:
    """A sentence for each thing that makes a mean doubtful, with the trace's name."""
    return [
        f"{trace.name}: {text}"
        for trace in traces
        if isinstance(said := trace.info.other.get("warnings"), list)
        for text in said
    ]


#: The figures of epochs that should not change over a run, by the figure that weighs an epoch.
STEADY = (
    ("mean_read_latency_ns", "reads", "ns"),
    ("mean_write_latency_ns", "writes", "ns"),
    ("write_reduction", "writes", "%"),
)
#: Means of the second and the last third that differ by more than this share have not settled.
#: *assumed*
SETTLED = 0.05


def unsettled(results: Results) -> list[str]:
    """A sentence for each figure that is another one in the last third of a run than before.

    It has the means over the second and the last third of the run's requests, of the run in which
    they differ most. ``--warmup`` leaves out the beginning.
    """
    found = []
    for figure, weight, unit in STEADY:
        thirds = [(run, each) for run in results.runs if (each := _thirds(run, figure, weight))]
        moved = [
            (abs(last - second) / abs(second), run, second, last)
            for run, (second, last) in thirds
            if abs(last - second) > SETTLED * abs(second)
        ]
        if moved:
            _, run, second, last = max(moved, key=lambda each: each[0])
            found.append(
                f"{figure} in {len(moved)} of {len(thirds)} runs; most on {run.trace} under "
                f"{run.design}, {written(second, unit)} in the second third of the requests and "
                f"{written(last, unit)} in the last"
            )
    return found


def _thirds(run: Run, figure: str, weight: str) -> tuple[float, float] | None:
    """The means of a figure over the second and the last third of a run's requests."""
    columns = run.epochs.columns if run.epochs is not None else {}
    values, weights = columns.get(figure), columns.get(weight)
    if not values or not weights:
        return None
    total, gone = sum(each or 0 for each in weights), 0.0
    sums = {1: [0.0, 0.0], 2: [0.0, 0.0]}
    for value, number in zip(values, weights, strict=True):
        if value is None or not number:
            continue
        third = min(2, int(3 * (gone + number / 2) / total))
        gone += number
        if third in sums:
            sums[third][0] += value * number
            sums[third][1] += number
    second, last = (divide(*sums[third]) for third in (1, 2))
    return None if not second or last is None else (second, last)


def tables(results: Results) -> list[tuple[str, int]]:
    """The sizes of the machine's tables that the designs of these results have."""
    found = []
    for design, name, key in TABLES:
        value = results.machine.parameters.get(key)
        if isinstance(value, int) and (not design or design in results.designs):
            found.append((name, value))
    return found


def size(value: int | None) -> str:
    """Bytes as people say them."""
    if value is None:
        return "–"
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value} B"


def beside_caches(results: Results) -> str:
    """What a footprint is held against, in a sentence."""
    sizes = ", ".join(f"{name} {size(value)}" for name, value in tables(results))
    return (
        "In bursts: writes in runs of 64 accesses and more with no instruction between. Footprint: "
        "lines read or written. One that fits the caches above the recording, or the tables on chip"
        f"{f' ({sizes})' if sizes else ''}, says little about larger ones."
    )
