"""Why our figures of SCA differ from the paper's: one cause varied at a time, and the readings of
what the paper leaves out, each held against all of Fig. 12-17 together.

A *sweep* varies one setting over a few designs. A *reading* is a set of settings under which every
claim is computed again. Left out: how a claim follows from runs, which ``sca`` says, and the plots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.papers.causes import Sweep, crossing
from sardonyx.papers.claims import Claim, ClaimRow, Unit
from sardonyx.papers.reproduction import Cell, Exhibit
from sardonyx.runs.measures import arithmetic_mean, of_known
from sardonyx.runs.programs import COUNTER_CACHE, KB, LATENCIES, MB, Programs, runtime_ratio
from sardonyx.runs.results import Scalar

CHANNELS = "medium.geometry.channels"
LLC = "caches.llc.bytes"
LOADS, THINK = "think.loads", "think.instructions"
WRITE, _ = LATENCIES["write"]
DESIGNS = ("no-encryption", "ideal", "co-located", "fca", "sca")
PLAIN = "no-encryption"
#: A larger gap needs a cause.
CLOSE = 0.15


REACH: Mapping[str, Scalar] = {COUNTER_CACHE: 32 * MB}
SWEEPS = (
    Sweep(
        "counter cache",
        COUNTER_CACHE,
        (MB, 2 * MB, 8 * MB, 32 * MB),
        "bytes of counter cache: how much of the structure its counters cover",
    ),
    Sweep(
        "last-level cache",
        LLC,
        (2 * MB, 512 * KB, 128 * KB),
        "bytes of LLC a core, with all counters in reach: how many reads miss",
        under=REACH,
    ),
    Sweep(
        "tWR",
        WRITE,
        (300, 150, 75, 15),
        "ns for which a write, a counter's too, holds its bank",
    ),
    Sweep(
        "share of reads",
        LOADS,
        (0, 2, 4, 8, 16, 64),
        "private loads between transactions, with all counters in reach",
        under=REACH,
    ),
    Sweep(
        "think time",
        THINK,
        (0, 3_200, 12_800, 25_600, 102_400),
        "instructions between transactions; 16,000 take 1 µs",
    ),
    Sweep("channels", CHANNELS, (1, 2, 4, 8), "channels of the medium, for eight cores", cores=8),
)

#: Readings of what the paper leaves out. All except Table 2 itself are assumed.
READINGS: Mapping[str, Mapping[str, Scalar]] = {
    "as Table 2 says": {},
    "all counters in reach": REACH,
    "an LLC of 128 KB": {LLC: 128 * KB},
    "writes that hold a bank for 15 ns": {WRITE: 15},
    "1.6 µs of think time": {THINK: 25_600},
    "16 private loads": {LOADS: 16},
    "4 channels": {CHANNELS: 4},
    "16 private loads, all counters in reach": {LOADS: 16, **REACH},
    "16 private loads, all counters in reach, 4 channels": {LOADS: 16, **REACH, CHANNELS: 4},
}
TABLE_2 = next(iter(READINGS))


# ---- the bound


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that decrypting after each read can cost: a program that is nothing but reads, each
    waiting for the one before; ``read`` and ``pad`` are nanoseconds.
    """

    read: float
    pad: float

    @property
    def ratio(self) -> float:
        """A read that waits for its line and then for its pad, over one that waits for its line."""
        return (self.read + self.pad) / self.read

    @staticmethod
    def of(parameters: Mapping[str, Any]) -> Bound:
        """A load on this machine that misses all caches and finds its bank closed and idle."""

        def value(name: str) -> float:
            return float(parameters[name])

        cycles = sum(value(f"medium.timing.{name}") for name in ("tRCD", "tCL", "tBURST"))
        cycles += value("medium.timing.off_chip")
        levels = [level for level in ("l1", "l2", "llc") if value(f"caches.{level}.bytes")]
        caches = sum(value(f"caches.{level}.latency_ns") for level in levels)
        read = cycles * value("medium.timing.clock_ns") + caches
        return Bound(read, value("units.aes.latency_ns"))


# ---- distances


def as_ratio(value: float, unit: Unit) -> float | None:
    """A claim's value as a ratio, of which the logarithm can be taken."""
    ratio = value if unit == "x" else 1 + value
    return ratio if ratio > 0 else None


def apart(row: ClaimRow, ours: float | None = None) -> float | None:
    """How far our figure is from the claim: the logarithm of the ratio of both, without sign."""
    value = row.ours if ours is None else ours
    found = None if value is None else as_ratio(value, row.unit)
    paper = as_ratio(row.claim.value, row.unit)
    return None if found is None or paper is None else abs(math.log(found / paper))


def is_close(row: ClaimRow) -> bool:
    """Whether the two ratios are within 15 % of each other."""
    distance = apart(row)
    return distance is not None and distance <= math.log(1 + CLOSE)


#: The claims of a reading, in the paper's order.
Claims = Callable[[Programs], list[ClaimRow]]


@dataclass(frozen=True, slots=True)
class Read:
    """A reading, and its claims as far as they were run under every reading."""

    name: str
    rows: Sequence[ClaimRow]

    @property
    def distance(self) -> float | None:
        return arithmetic_mean(map(apart, self.rows))

    def of(self, claim: Claim) -> ClaimRow | None:
        """The row of a claim."""
        return next((row for row in self.rows if row.claim == claim), None)

    def named(self, metric: str, design: str) -> ClaimRow | None:
        """The row of a claim by its metric and design."""
        wanted = (metric, design)
        found = (row for row in self.rows if (row.claim.metric, row.claim.design) == wanted)
        return next(found, None)


def readings(
    programs: Programs,
    names: Sequence[str],
    footprint: int,
    cores: Sequence[int],
    claims: Claims,
) -> list[Read]:
    """Each reading over the same programs and the same claims."""
    under = {
        name: claims(programs.under(settings, names, footprint, cores))
        for name, settings in READINGS.items()
    }
    ran = [all(row.ours is not None for row in rows) for rows in zip(*under.values(), strict=True)]
    return [
        Read(name, [row for row, every in zip(rows, ran, strict=True) if every])
        for name, rows in under.items()
    ]


def nearest(reads: Iterable[Read]) -> Read | None:
    """The reading that is nearest to all claims together."""
    known = [(read.distance, index, read) for index, read in enumerate(reads)]
    return min(((d, i, r) for d, i, r in known if d is not None), default=(0, 0, None))[2]


#: Columns of the table of readings: a claim's metric and design.
COLUMNS = {
    "sca / no-encryption": ("runtime_vs_no-encryption", "sca"),
    "co-located / sca": ("runtime_over_sca", "co-located"),
    "sca over fca, 1 core": ("speedup_over_fca_1_core", "sca"),
    "8 cores": ("speedup_over_fca_8_cores", "sca"),
    "sca behind ideal, at most": ("throughput_loss_vs_ideal", "sca"),
    "4 KB items, at most": ("runtime_overhead_vs_ideal_4KB_transactions", "sca"),
    "reads 4x faster": ("speedup_over_co-located_read_latency_4x_faster", "sca"),
    "writes 4x faster": ("speedup_over_co-located_write_latency_4x_faster", "sca"),
}


NOT_RUN = Cell(None, "–", "not run", {}, {})


def _paper_cell(row: ClaimRow | None, written: Callable[[ClaimRow, bool], str]) -> Cell:
    return NOT_RUN if row is None else Cell(None, written(row, False), "", {}, {})


def _ours(read: Read) -> dict[str, float | None]:
    """Our figure in each column of the table of readings."""
    rows = {column: read.named(*claim) for column, claim in COLUMNS.items()}
    return {column: None if row is None else row.ours for column, row in rows.items()}


def reading_table(reads: Sequence[Read], written: Callable[[ClaimRow, bool], str]) -> Exhibit:
    """The readings beside the paper; ``written`` says a row's value, ours or the paper's."""
    papers = {name: _paper_cell(reads[0].named(*claim), written) for name, claim in COLUMNS.items()}
    rows = {"the paper": {"apart": Cell(None, "", "", {}, {}), **papers}}
    for read in reads:
        distance = read.distance
        close = sum(map(is_close, read.rows))
        words = "–" if distance is None else f"{math.expm1(distance):.1%}"
        evidence = f"{close} of {len(read.rows)} within 15 %"
        cells = {
            "apart": Cell(None, words, evidence, {"close": close, "claims": len(read.rows)}, {})
        }
        for column, claim in COLUMNS.items():
            row = read.named(*claim)
            if row is None:
                cells[column] = NOT_RUN
                continue
            each = {name: f"{value:.4g}" for name, value in row.workloads.items()}
            cells[column] = Cell(None, written(row, True), "", {}, each)
        rows[read.name] = cells
    best = nearest(reads)
    note = (
        "Readings of what the paper leaves out, each one set of settings for all of Fig. 12-17. "
        "`apart` is the mean over these claims of how far our ratio and the paper's are from each "
        "other. All settings but Table 2's are assumed."
    )
    facts = {
        "nearest": None if best is None else best.name,
        "settings": {name: dict(settings) for name, settings in READINGS.items()},
        "apart": {read.name: read.distance for read in reads},
        "ours": {read.name: _ours(read) for read in reads},
    }
    return Exhibit("readings", "Readings", "reading", rows, note, facts)


# ---- the sweeps


def runtimes(programs: Programs, sweep: Sweep) -> dict[str, list[float | None]]:
    """Of each design the runtime over no encryption's at each value, mean over the programs."""

    def mean(design: str, value: int) -> float | None:
        at = {"cores": sweep.cores, "variant": sweep.variant(value)}
        over = {"design": PLAIN, **at}
        found = programs.each(runtime_ratio, {"design": design, **at}, over)
        return arithmetic_mean(found.values())

    return {
        design: [mean(design, value) for value in sweep.values]
        for design in DESIGNS
        if design != PLAIN
    }


def crossings(sweep: Sweep, found: Mapping[str, list[float | None]]) -> dict[str, str]:
    """Where the paper's order sets in along a sweep: a question in words, and the answer."""

    def over(a: str, b: str) -> list[float | None]:
        pairs = zip(found[a], found[b], strict=True)
        return [of_known(lambda x, y: x / y, x, y) for x, y in pairs]

    def slower(a: str, b: str) -> str:
        return crossing(sweep, over(a, b), 1.0)

    return {
        "co-located slower than sca": slower("co-located", "sca"),
        "co-located slower than fca": slower("co-located", "fca"),
        "sca over 1.2 times no-encryption": crossing(sweep, found["sca"], 1.2),
        "sca over 1.05 times ideal": crossing(sweep, over("sca", "ideal"), 1.05),
    }


def swept(programs: Programs) -> list[tuple[Sweep, dict[str, list[float | None]]]]:
    """The sweeps that were run, each with its curves."""
    made = []
    for sweep in SWEEPS:
        of = programs.setting(sweep.variant(sweep.values[-1]))
        if of:
            view = programs.under({}, list(of), max(of.values()))
            made.append((sweep, runtimes(view, sweep)))
    return made


def sweep_table(programs: Programs) -> Exhibit | None:
    """Each sweep's range and crossovers; ``None`` where none was run."""
    rows: dict[str, dict[str, Cell]] = {}
    curves = {}
    for sweep, found in swept(programs):
        curves[sweep.name] = {"values": list(sweep.values), **found}
        cells = {}
        for name, where in crossings(sweep, found).items():
            design = name.split()[0]
            ends = [f"{y:.2f}" for y in (found[design][0], found[design][-1]) if y is not None]
            cells[name] = Cell(None, where, f"{design}: {' to '.join(ends)}", {}, {})
        rows[sweep.name] = cells
    note = (
        "One cause varied at a time, from Table 2's value on: where each order of the paper sets "
        "in or ends. Below each, runtime over no-encryption's at the first and the last value. The "
        "curves are in the report."
    )
    settings = {sweep.name: sweep.key for sweep in SWEEPS if sweep.name in rows}
    facts = {"settings": settings, "runtimes": curves}
    return Exhibit("causes", "Causes", "cause", rows, note, facts) if rows else None
