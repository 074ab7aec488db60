"""Reproducing SCA (HPCA'18): which runs its figures need, and our figure for each of its claims.

The five persistent programs run on the machine of Table 2. Each claim is one small function of
runs; its statistic is taken over the programs, means are arithmetic. What the paper does not say
(footprint and size of transactions of Figs. 12-14) is a setting of :class:`Scale`; what else could
explain a gap is varied in ``causes``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import sub
from typing import Any

from sardonyx.papers.choices import DrawnSizes, check_programs, program_sample, warmed
from sardonyx.papers.claims import Claim, ClaimRow, Found, Unit, claim_rows, written_claim
from sardonyx.papers.reproduction import Asked, Exhibit, Plan, Reproduction
from sardonyx.papers.sampling import Sampled
from sardonyx.papers.sca import causes, stages
from sardonyx.papers.sca.causes import CLOSE, READINGS, SWEEPS, Read, apart, is_close
from sardonyx.questions import CrashQuestion, ProgramSource
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Settings, Simulations
from sardonyx.runs.measures import Two, arithmetic_mean, divide, of_known, saved
from sardonyx.runs.programs import (
    ACCESSES,
    BYTES,
    COUNTER_CACHE,
    KB,
    LATENCIES,
    MB,
    Programs,
    loss,
    miss_rate,
    overhead,
    runtime_ratio,
    speedup,
    traffic_ratio,
    written_size,
)
from sardonyx.runs.results import Run, Scalar

PROGRAMS = ("array-swap", "queue", "hash", "btree", "rbtree")
DESIGNS = ("no-encryption", "ideal", "co-located", "co-located-cc", "fca", "sca")
CORES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run; sizes are bytes, latencies factors of Table 2's."""

    footprint: int = 100 * MB
    transaction_size: int = 64
    transactions: int = 6_000
    warmup: int = 3_000
    caches: Sequence[int] = (128 * KB, 512 * KB, 2 * MB, 8 * MB)
    footprints: Sequence[int] = (100 * MB, 1000 * MB)
    sizes: Sequence[int] = (64, 256, KB, 4 * KB)
    latencies: Sequence[float] = (10, 4, 2, 1, 0.5, 0.25)
    #: Causes are looked for in these programs, sizes of structures, and numbers of cores.
    cause_programs: Sequence[str] = ("hash", "rbtree")
    cause_footprint: int = 16 * MB
    cause_cores: Sequence[int] = CORES
    seed: int = 0


FULL = Scale()
QUICK = Scale(
    footprint=16 * MB,
    transactions=1_500,
    warmup=500,
    caches=(128 * KB, 8 * MB),
    footprints=(100 * MB,),
    sizes=(64, 512, 4 * KB),
    latencies=(10, 1, 0.25),
    cause_programs=("hash",),
    cause_cores=(1, 8),
)


#: The scale of a sample's cell, which runs all programs: 200 cells take some 40 minutes of a
#: processor.
CELL = replace(QUICK, footprint=4 * MB, transactions=200, warmup=200)


# ---- the runs


def points(scale: Scale, programs: Sequence[str] = PROGRAMS) -> list[Point]:
    """All runs that the figures need, each once, those of the most figures first."""

    def point(
        program: str,
        design: str,
        cores: int = 1,
        size: int = scale.transaction_size,
        footprint: int = scale.footprint,
        variant: Mapping[str, Scalar] | None = None,
    ) -> Point:
        name = [program]
        name += [written_size(size)] if size != scale.transaction_size else []
        name += [written_size(footprint)] if footprint != scale.footprint else []
        source = ProgramSource(
            name=program,
            item_bytes=size,
            footprint=footprint,
            transactions=scale.transactions,
            seed=scale.seed,
        )
        return Point(" ".join(name), source, design, variant or {}, copies=cores)

    found = [point(p, d, cores) for cores in CORES for p in programs for d in DESIGNS]
    found += [
        point(p, "sca", footprint=footprint, variant={COUNTER_CACHE: size})
        for footprint in scale.footprints
        for p in programs
        for size in scale.caches
    ]
    found += [
        point(p, design, size=size)
        for p in programs
        for size in scale.sizes
        for design in ("ideal", "sca")
    ]
    found += [
        point(p, design, variant=latency(key, nominal, factor))
        for p in programs
        for key, nominal in LATENCIES.values()
        for factor in scale.latencies
        for design in ("co-located", "sca")
    ]
    for p in (program for program in scale.cause_programs if program in programs):
        found += _cause_points(scale, partial(point, p, footprint=scale.cause_footprint))
    unique = {(p.source, p.design, p.copies, frozenset(p.variant.items())): p for p in found}
    return list(unique.values())


def _cause_points(scale: Scale, point: Callable[..., Point]) -> list[Point]:
    """The runs of one program for the sweeps, and for the claims under each reading."""
    found = [
        point(design=design, cores=sweep.cores, variant=sweep.variant(value))
        for sweep in SWEEPS
        for value in sweep.values
        for design in causes.DESIGNS
    ]
    for settings in READINGS.values():
        found += [point(design=design, variant=settings) for design in DESIGNS]
        found += [
            point(design=design, cores=cores, variant=settings)
            for cores in scale.cause_cores
            for design in ("ideal", "fca", "sca")
        ]
        found += [
            point(design=design, size=4 * KB, variant=settings) for design in ("ideal", "sca")
        ]
        found += [
            point(design=design, variant={**settings, **latency(key, nominal, factor)})
            for key, nominal in LATENCIES.values()
            for factor in (10, 0.25)
            for design in ("co-located", "sca")
        ]
        found += [
            point(design="sca", footprint=100 * MB, variant={**settings, COUNTER_CACHE: size})
            for size in (128 * KB, 8 * MB)
            if 100 * MB in scale.footprints and scale.footprint == 100 * MB
        ]
    return found


def latency(key: str, nominal: float, factor: float) -> dict[str, Scalar]:
    """The setting for a latency of ``factor`` times Table 2's; none for Table 2's own."""
    return {} if factor == 1 else {key: nominal * factor}


# ---- the claims

Finder = Callable[[Programs, Claim], Found]


def _against(
    over: str,
    of: Two,
    unit: Unit,
    note: str,
    where: str = "on one core",
    **selected: Any,
) -> Finder:
    """``of`` the claim's design and another, both with the same selection of runs."""

    def find(programs: Programs, claim: Claim) -> Found:
        a, b = {"design": claim.design, **selected}, {"design": over, **selected}
        needs = f"runs of {claim.design} and {over} {where}"
        return Found(programs.each(of, a, b), unit, note.format(claim.design), needs)

    return find


def _runtime(over: str) -> Finder:
    return _against(over, runtime_ratio, "x", f"time a transaction of {{}} / of {over}, one core")


def _in_words(cores: int, space: str = " ") -> str:
    return f"{cores}{space}{'core' if cores == 1 else 'cores'}"


def _speedup(over: str, cores: int) -> Finder:
    words = _in_words(cores)
    note = f"transactions a second of {{}} / of {over} - 1, {words}"
    return _against(over, speedup, "%", note, f"on {words}", cores=cores)


def _loss_to_ideal(programs: Programs, claim: Claim) -> Found:
    values: dict[str, float | None] = {}
    for cores in programs.cores:
        a, b = {"design": claim.design, "cores": cores}, {"design": "ideal", "cores": cores}
        for program, value in programs.each(loss, a, b).items():
            known = [each for each in (values.get(program), value) if each is not None]
            values[program] = max(known, default=None)
    return Found(
        values,
        "%",
        "1 - transactions a second / those of ideal, of each program on the number of cores where "
        "it is the most",
        f"runs of {claim.design} and ideal",
    )


def _traffic(over: str, gain: bool = False) -> Finder:
    def of(metric: str) -> Two:
        ratio = traffic_ratio(metric)
        if not gain:
            return saved(ratio)
        return lambda run, base: None if not (r := ratio(run, base)) else 1 / r - 1

    what = f"{over}'s bytes / bytes - 1" if gain else f"1 - bytes / {over}'s bytes"
    note = f"{what} written to the medium a transaction; a counter counts as 8 bytes"
    in_bytes, in_accesses = (_against(over, of(unit), "%", note) for unit in (BYTES, ACCESSES))

    def find(programs: Programs, claim: Claim) -> Found:
        accesses = in_accesses(programs, claim).values
        readings = {"in accesses, a line of counters as one": accesses}
        return replace(in_bytes(programs, claim), readings=readings)

    return find


def _counter_cache(footprint: int, miss: bool) -> Finder:
    def drop(large: Run, small: Run) -> float | None:
        return of_known(sub, miss_rate(small), miss_rate(large))

    def of_its_own(large: Run, small: Run) -> float | None:
        return of_known(divide, drop(large, small), miss_rate(small))

    def find(programs: Programs, claim: Claim) -> Found:
        large, small = (
            {"design": claim.design, "footprint": footprint, "variant": {COUNTER_CACHE: size}}
            for size in (8 * MB, 128 * KB)
        )
        what = "counter-cache miss rate at 128 KB minus at 8 MB"
        return Found(
            programs.each(drop if miss else speedup, large, small),
            "pp" if miss else "%",
            what if miss else "transactions a second with 8 MB / with 128 KB of counter cache - 1",
            f"runs of {claim.design} over {written_size(footprint)} with both counter caches"
            " (--quick leaves the larger footprints out)",
            {"of the rate at 128 KB": programs.each(of_its_own, large, small)} if miss else {},
        )

    return find


def _transaction_size(size: int, only: str | None = None) -> Finder:
    note = f"time a transaction / ideal's - 1, items of {written_size(size)}"
    where = f"with items of {written_size(size)}"
    all_programs = _against("ideal", overhead, "%", note, where, transaction_size=size)

    def find(programs: Programs, claim: Claim) -> Found:
        found = all_programs(programs, claim)
        return found if only is None else replace(found, values={only: found.values.get(only)})

    return find


def _medium_latency(key: str, nominal: float, factor: float) -> Finder:
    what = f"{key.split('.')[-1].removesuffix('_ns')} of {nominal * factor:g} ns"
    note = f"transactions a second of {{}} / of co-located - 1, {what}"
    variant = latency(key, nominal, factor)
    return _against("co-located", speedup, "%", note, "at that latency", variant=variant)


#: The computation of each metric of SCA's claims from results.
METRICS: dict[str, Finder] = {
    "runtime_vs_no-encryption": _runtime("no-encryption"),
    "runtime_over_sca": _runtime("sca"),
    "speedup_over_sca": _against(
        "sca", speedup, "%", "transactions a second of {} / of sca - 1, one core"
    ),
    **{f"speedup_over_fca_{_in_words(cores, '_')}": _speedup("fca", cores) for cores in CORES},
    "throughput_loss_vs_ideal": _loss_to_ideal,
    "write_traffic_reduction_vs_fca": _traffic("fca"),
    "write_traffic_reduction_vs_co-located": _traffic("co-located"),
    "write_traffic_reduction_vs_co-located-cc": _traffic("co-located-cc"),
    "lifetime_gain_vs_co-located": _traffic("co-located", gain=True),
    "speedup_8MB_vs_128KB_counter_cache_100MB_footprint": _counter_cache(100 * MB, False),
    "speedup_8MB_vs_128KB_counter_cache_1000MB_footprint": _counter_cache(1000 * MB, False),
    "miss_rate_drop_8MB_vs_128KB_100MB_footprint": _counter_cache(100 * MB, True),
    "miss_rate_drop_8MB_vs_128KB_1000MB_footprint": _counter_cache(1000 * MB, True),
    "runtime_overhead_vs_ideal_64B_transactions": _transaction_size(64),
    "runtime_overhead_vs_ideal_4KB_transactions": _transaction_size(4 * KB),
    "runtime_overhead_vs_ideal_4KB_transactions_btree": _transaction_size(4 * KB, "btree"),
}
METRICS |= {
    f"speedup_over_co-located_{which}_latency_{name}": _medium_latency(key, nominal, factor)
    for which, (key, nominal) in LATENCIES.items()
    for name, factor in (("10x_slower", 10), ("4x_faster", 0.25))
}


def claims_of(programs: Programs) -> list[ClaimRow]:
    """Every claim of the paper beside our figure, of these programs."""
    runs = programs.runs()

    def find(claim: Claim) -> Found:
        return replace(METRICS[claim.metric](programs, claim), runs=runs)

    return claim_rows("sca", find)


def read(comparison: Comparison, scale: Scale) -> list[Read]:
    """The claims under each reading, over the programs in which causes were looked for."""
    names = [name for name in scale.cause_programs if name in comparison.programs.plain]
    of = (names, scale.cause_footprint, scale.cause_cores)
    return causes.readings(comparison.programs, *of, claims_of)


def claims(comparison: Comparison, scale: Scale) -> list[ClaimRow]:
    """Every claim of the paper beside our figure; beside one that is far off, the reading under
    which it comes nearest.
    """
    reads = read(comparison, scale)
    rows = []
    for row in claims_of(comparison.programs):
        under = {r.name: found for r in reads if (found := r.of(row.claim)) is not None}
        if under and abs(row.relative_gap or 0) > CLOSE:
            name = min(under, key=lambda name: apart(under[name]) or 0.0)
            nearest = {f"nearest, under {name}": _ours(under[name])}
            row = replace(row, readings={**row.readings, **nearest})
        rows.append(row)
    return rows


def _ours(row: ClaimRow) -> float:
    assert row.ours is not None
    return row.ours


def tables(comparison: Comparison, scale: Scale) -> tuple[Exhibit, ...]:
    """Readings and causes, as far as they were run."""
    reads = read(comparison, scale)
    if not any(r.rows for r in reads):
        return ()

    def written(row: ClaimRow, ours: bool) -> str:
        return written_claim(row.ours if ours else row.claim.value, row.unit)

    found = [causes.reading_table(reads, written), causes.sweep_table(comparison.programs)]
    return tuple(table for table in found if table is not None)


def verdict(comparison: Comparison, rows: Sequence[ClaimRow], scale: Scale) -> tuple[str, ...]:
    """What holds, what does not, what it depends on."""
    programs = comparison.programs
    order = ("no-encryption", "ideal", "sca", "fca")

    def mean(design: str, over: str, cores: int = 1) -> float | None:
        a, b = {"design": design, "cores": cores}, {"design": over, "cores": cores}
        return arithmetic_mean(programs.each(runtime_ratio, a, b).values())

    kept = [
        cores
        for cores in programs.cores
        if all((mean(b, a, cores) or 0) >= 1 for a, b in pairwise(order))
    ]
    leads = [(cores, mean("fca", "sca", cores)) for cores in programs.cores]
    lead = ", ".join(f"{100 * (r - 1):.0f}" for _, r in leads if r is not None)
    close = sum(map(is_close, rows))
    ours = {(row.claim.metric, row.claim.design): row for row in rows}

    def said(metric: str, design: str) -> str:
        row = ours[metric, design]
        return f"{written_claim(row.ours, row.unit)} in place of {row.reported}"

    bound = causes.Bound.of(comparison.results.machine.parameters)
    reads = read(comparison, scale)
    best, plain = causes.nearest(reads), next(iter(reads))
    hangs = "No reading of what the paper leaves out was run"
    if best is not None and best.distance is not None and plain.distance is not None:
        hangs = (
            "It depends on what the programs do between transactions, how far the counter cache "
            f"reaches and how full the channel is: nearest to all of Fig. 12-17 together is "
            f"{best.name!r}, on average {math.expm1(best.distance):.0%} from the paper's ratios "
            f"({math.expm1(plain.distance):.0%} as Table 2 says)"
        )
    return (
        f"Holds: no-encryption <= ideal <= sca <= fca on {len(kept)} of {len(programs.cores)} "
        f"numbers of cores ({', '.join(map(str, programs.cores))}), where SCA leads FCA by {lead} "
        f"%; {close} of {len(rows)} figures are within 15 % of the paper's, as ratios.",
        "Does not: SCA's runtime is "
        f"{said('runtime_vs_no-encryption', 'sca')}, and the co-located design's over SCA's "
        f"{said('runtime_over_sca', 'co-located')}.",
        f"{hangs}; no reading explains the co-located design's runtime, since {bound.ratio:.2f} "
        f"times SCA's is the most that {bound.pad:g} ns of decryption after each read of "
        f"{bound.read:.0f} ns can make of it.",
    )


def stand_ins(scale: Scale) -> str:
    """One sentence on what was run."""
    return (
        "The five programs are written for Sardonyx; the paper gives neither their sources "
        "nor, for Figs. 12-14, their sizes: here structures of "
        f"{written_size(scale.footprint)} and items of {written_size(scale.transaction_size)} a "
        f"core, {scale.transactions:,} transactions of which {scale.warmup:,} warm up."
    )


def sampled(asked: Asked) -> Sampled:
    """Plain runs of all programs, on one core and on several, over what the paper leaves open."""
    scale = CELL
    cores = (1, 4) if asked.quick else (1, 8)

    def plain(sizes: DrawnSizes) -> list[Point]:
        return [
            point
            for point in points(replace(scale, **sizes.scale))
            if not point.variant and point.copies in cores and point.trace in PROGRAMS
        ]

    note = (
        "A cell is a machine on which each program runs, on "
        f"{' and '.join(map(str, cores))} cores, "
        f"{scale.transactions:,} transactions on each."
    )
    return program_sample(
        asked,
        PROGRAMS,
        scale.footprint,
        (64, scale.transaction_size, 4096),
        scale.transactions,
        plain,
        lambda comparison: claims_of(comparison.programs),
        note,
    )


class Sca:
    """The paper's programs on its machine; Table 1 is measured by cutting the power."""

    name = "sca"
    machine = "sca"
    takes: tuple[str, ...] = ("machine",)
    instead = ""

    def plan(self, asked: Asked) -> Plan:
        check_programs(self.name, asked)
        scale = replace(QUICK if asked.quick else FULL, seed=asked.seed)
        scale = replace(scale, warmup=warmed(asked, scale.warmup, scale.transactions))
        cut = (stages.QUICK if asked.quick else stages.FULL).replace(seed=asked.seed)
        question = CrashQuestion(
            program=cut, design="sca", machine=asked.machine, overrides=tuple(asked.overrides)
        )
        return Plan(
            Simulations(Settings(asked.machine, asked.overrides, scale.warmup), points(scale)),
            stand_ins(scale),
            partial(claims, scale=scale),
            lambda comparison, watch: (
                *tables(comparison, scale),
                stages.measure(PROGRAMS, question, watch),
            ),
            verdict=partial(verdict, scale=scale),
            sampled=sampled(asked),
        )


REPRODUCTION: Reproduction = Sca()
