"""Reproducing ESD (HPCA'23): which runs it needs, and our figure for each of its claims.

Every claim's metric is one small function from runs to one value a workload; the claim's
statistic (min, mean, max) is then taken over the workloads. Means are arithmetic. SPEC and PARSEC
are not ours to ship: recordings of real programs and a ladder of generated traces stand in, and
``stand_ins`` says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import add, mul, sub
from typing import Literal

from sardonyx import _core
from sardonyx.papers.claims import (
    WITHIN,
    Claim,
    ClaimRow,
    Found,
    Unit,
    claim_rows,
    written_claim,
)
from sardonyx.papers.reproduction import Asked, Plan, Reproduction
from sardonyx.papers.sampling import Sampled
from sardonyx.papers.worlds import World, open_worlds
from sardonyx.questions import Source, SynthSource
from sardonyx.runs import cache_sizes
from sardonyx.runs import measures as m
from sardonyx.runs.cache_sizes import AMT_BYTES, EFIT_BYTES, KB, MB
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Setting, Settings, Simulations
from sardonyx.runs.measures import One, Two
from sardonyx.runs.recordings import PLACES, recordings
from sardonyx.runs.results import Run, Scalar
from sardonyx.runs.sources import named
from sardonyx.vary.ranges import Range

DESIGNS = ("baseline", "dedup-sha1", "dewrite", "esd")
QUICK_SIZES = (64 * KB, 512 * KB, MB, 2 * MB)
#: A core runs this many records of each trace, from its middle; the first half of them warms up.
WINDOW, QUICK_WINDOW = 150_000, 30_000
#: A core of a sample's cell runs about this many records of each of 18 workloads, so that 200 cells
#: take some 40 minutes of a processor.
SAMPLED_WINDOW = 3_000
WARMUP = "50%"
#: The window begins at this share of the records before and after it.
MIDDLE = 0.5
#: The number of cores of Table I.
CORES = 8
RECLAIM = "esd.reclaim"
READINGS = ("paper", "counted")
#: Settings that change a design's figures, for runs next to the plain one, by name.
OTHERWISE: Mapping[str, Mapping[str, Mapping[str, Scalar]]] = {
    "esd": {
        **{f"reclaim = {reading}": {RECLAIM: reading} for reading in READINGS},
        "freed places lifo": {"places.reuse": "lifo"},
    },
    "dedup-sha1": {"one SHA-1 unit": {"units.sha1.number": 1}},
    "dewrite": {"one CRC-32 unit": {"units.crc32.number": 1}},
}
#: What nobody would average. If places are never reused, EFIT also shares what no line holds any
#: more, which the full indices forget: so that reading is no choice of one rival among others.
WORLDS = (
    World(
        "contents of their own",
        {"own contents": "1", RECLAIM: "counted"},
        "eight runs of a program on inputs of their own",
    ),
    World(
        "equal contents",
        {"own contents": "0", RECLAIM: "counted"},
        "SPEC's rate runs: eight copies of one program on one input",
    ),
    World(
        "places never reused",
        {"own contents": "1", RECLAIM: "paper"},
        "the paper has no word on places that nothing refers to any more",
    ),
)
#: What the paper says of all applications.
FOR_ALL = ("write_speedup_over_baseline", "read_speedup_over_baseline", "ipc_over_baseline")
#: The kind of trace that stands in for the paper's programs: of a real program, or generated.
Kind = Literal["recording", "ladder"]


# ---- the runs


def shipped() -> list[str]:
    """The recordings that come with the package; a checkout has them in ``traces``."""
    if found := recordings():
        return [str(path) for path in found.values()]
    raise _core.SardonyxError(
        f"{PLACES[0]}: the package's recordings are not there; install it again, or name traces"
    )


def points(sources: Mapping[str, Source], quick: bool = False) -> list[Point]:
    """All runs that ESD's figures need, workload by workload.

    ``quick`` sweeps four cache sizes, not six, and leaves out the smallest steps no claim asks for.
    """
    sizes = QUICK_SIZES if quick else cache_sizes.SIZES
    found: list[Point] = []
    for name, source in sources.items():
        found += [Point(name, source, design) for design in DESIGNS]
        found += [
            Point(name, source, design, settings)
            for design, others in OTHERWISE.items()
            for settings in others.values()
        ]
        found += [Point(name, source, "esd", variant) for variant in cache_sizes.variants(sizes)]
    return found


def stand_ins(
    kinds: Mapping[str, Kind], window: int = WINDOW, copies: int = CORES, warmup: str = WARMUP
) -> str:
    """What replaces the paper's programs, in a few sentences: names, and what of them runs."""
    parts = []
    for kind, words in (
        ("recording", "recordings of real programs"),
        ("ladder", "generated traces"),
    ):
        names = [name for name, of in kinds.items() if of == kind]
        if names:
            parts.append(f"{words} ({', '.join(names)})")
    cores = (
        "one core runs" if copies == 1 else f"{copies} cores run, each with contents of its own,"
    )
    return (
        "SPEC CPU 2017 and PARSEC, which the paper ran, are replaced by "
        + (" and ".join(parts) or "no workload at all")
        + ". A gap between the columns is therefore a gap of workloads first. Of each trace "
        f"{cores} {window:,} records from its middle, of which {warmup} only warm up; its "
        "duplicates and its locality (Fig. 1 and 3) are those of all of it."
    )


# ---- our figures for a claim


Finder = Callable[[Comparison, Claim], Found]
Values = dict[str, float | None]


def _otherwise(comparison: Comparison, measure: Two, design: str, over: str) -> dict[str, Values]:
    """``measure`` with each setting that either design's figure depends on."""

    def variant(of: str, settings: Mapping[str, Scalar]) -> dict[str, Run]:
        runs = comparison.results.runs
        return {run.trace: run for run in runs if run.design == of and run.variant == settings}

    found: dict[str, Values] = {}
    for which in dict.fromkeys((design, over)):
        for name, settings in OTHERWISE.get(which, {}).items():
            runs = variant(which, settings)
            values = found[name] = {}
            for label, trace in comparison.trace_of.items():
                pair = [comparison.run(label, each) for each in (design, over)]
                pair = [
                    runs.get(trace) if each == which else plain
                    for each, plain in zip((design, over), pair, strict=True)
                ]
                run, base = pair
                values[label] = None if run is None or base is None else measure(run, base)
    return found


def _one(
    of: One, note: str, needs: str, aspect: m.Aspect, readings: Mapping[str, One] | None = None
) -> Finder:
    """A share of the claim's design by itself."""

    def find(comparison: Comparison, claim: Claim) -> Found:
        def values(of: One) -> Values:
            return comparison.each(lambda run, _: of(run), claim.design, claim.design)

        read: dict[str, Values] = {name: values(each) for name, each in (readings or {}).items()}
        if aspect == "time":
            read |= _otherwise(comparison, lambda run, _: of(run), claim.design, claim.design)
        return Found(
            values(of),
            "%",
            note,
            f"runs of {claim.design} {needs}",
            read,
            aspect,
            comparison.runs(claim.design),
        )

    return find


def _two(
    of: Two,
    over: str,
    unit: Unit,
    note: str,
    metric: str,
    aspect: m.Aspect = "time",
    readings: Mapping[str, Two] | None = None,
    *,
    otherwise: bool = True,
    more: Callable[[Comparison, Claim], str] = lambda *_: "",
) -> Finder:
    """The claim's design beside another; ``otherwise`` with what either depends on.

    ``more`` adds to the note.
    """

    def find(comparison: Comparison, claim: Claim) -> Found:
        words = {"design": claim.design, "over": over}
        read: dict[str, Mapping[str, float | None] | float | None] = {
            name.format(**words): comparison.each(each, claim.design, over)
            for name, each in (readings or {}).items()
        }
        if otherwise:
            read |= _otherwise(comparison, of, claim.design, over)
        return Found(
            comparison.each(of, claim.design, over),
            unit,
            note.format(**words) + more(comparison, claim),
            f"runs of {claim.design} and {over} with `{metric}`",
            read,
            aspect,
            comparison.runs(claim.design, over),
        )

    return find


def _fact(name: str, note: str) -> Finder:
    def find(comparison: Comparison, _: Claim) -> Found:
        values = {trace.name: trace.facts.get(name) for trace in comparison.results.traces}
        return Found(values, "%", note, f"`{name}` of each trace")

    return find


def _written_over_1000_times(attribute: Literal["contents", "writes"], note: str) -> Finder:
    def find(comparison: Comparison, _: Claim) -> Found:
        values: Values = {}
        top = total = 0.0
        for trace in comparison.results.traces:
            rows = {row.times: row for row in trace.locality}
            high = rows.get(">1000")
            values[trace.name] = getattr(high, f"{attribute}_share") if high else None
            top += (getattr(high, attribute) or 0.0) if high else 0.0
            total += sum(getattr(row, attribute) or 0.0 for row in trace.locality)
        pooled = {"all traces pooled": m.divide(top, total)}
        return Found(values, "%", note, "`locality` of each trace", pooled)

    return find


def _duplicates_found(place: str, note: str) -> Finder:
    metric = f"duplicates_found_in_{place}"

    def of_duplicates(run: Run) -> float | None:
        both = (run.metric(f"duplicates_found_in_{x}") for x in ("cache", "medium"))
        return m.divide(run.metric(metric), m.of_known(add, *both))

    readings = {"as a share of the duplicates found": of_duplicates}
    of = partial(m.share_of_writes, metric=metric)
    return _one(of, note, f"with `{metric}`", "time", readings)


def service_share(comparison: Comparison, run: Run, cause: str) -> float | None:
    """The share of a cause in the service times of writes: what they would last if nothing queued.

    A fingerprint takes its unit's latency, a look-up and the read that confirms a match a read of
    the array each, and a unique line a write of the array (ESD Fig. 17's four parts).
    """
    parameters = comparison.results.machine.parameters

    def of(*names: str) -> float | None:
        values = [parameters.get(name) for name in names]
        known = [float(value) for value in values if isinstance(value, int | float)]
        return math.prod(known) if len(known) == len(values) else None

    read = of("medium.timing.clock_ns", "medium.timing.tRCD")
    write = of("medium.timing.clock_ns", "medium.timing.tWP")
    hashed = {"dedup-sha1": "units.sha1.latency_ns", "dewrite": "units.crc32.latency_ns"}
    hashing = of(hashed[run.design]) if run.design in hashed else 0.0

    def accesses(of_cause: str, what: str) -> float | None:
        booked = run.causes.get(of_cause)
        return getattr(booked, what) if booked else 0.0

    parts = {
        "fingerprint": m.of_known(mul, run.metric("writes"), hashing),
        "lookup": m.of_known(mul, accesses("lookup", "medium_reads"), read),
        "compare": m.of_known(mul, accesses("compare", "medium_reads"), read),
        "data": m.of_known(mul, accesses("data", "medium_writes"), write),
    }
    total = m.of_known(lambda *all_: math.fsum(all_), *parts.values())
    return m.divide(parts[cause], total)


def _share_of_write_latency(cause: str, note: str) -> Finder:
    def over_the_rest(run: Run) -> float | None:
        return m.of_known(lambda share: m.divide(share, 1 - share), m.cause_share(run, cause))

    def with_compare(run: Run) -> float | None:
        return m.of_known(add, m.cause_share(run, cause), m.cause_share(run, "compare"))

    readings = {"as an increase over the rest of the latency": over_the_rest}
    if cause == "lookup":
        readings["with the read that confirms a match"] = with_compare
    of = partial(m.cause_share, cause=cause)
    plain = _one(of, note, "that book write latency by cause", "time", readings)

    def find(comparison: Comparison, claim: Claim) -> Found:
        found = plain(comparison, claim)
        served = comparison.each(
            lambda run, _: service_share(comparison, run, cause), claim.design, claim.design
        )
        return replace(found, readings={**found.readings, "of service times, no queues": served})

    return find


def _write_reduction(comparison: Comparison, claim: Claim) -> Found:
    note = "write requests that stored no line / write requests"
    found = _one(m.write_reduction, note, "with `write_reduction`", "counts")(comparison, claim)
    readings: dict[str, Mapping[str, float | None] | float | None] = {
        "all medium writes, metadata included": comparison.each(
            m.medium_write_reduction, claim.design, m.BASELINE
        )
    }
    readings |= _otherwise(
        comparison, lambda run, _: m.write_reduction(run), claim.design, m.BASELINE
    )
    return replace(found, readings=readings)


def _lead(of: Callable[[float, float], float | None]) -> Two:
    """``of`` the write reductions of a run and of ESD's."""
    return lambda run, esd: m.of_known(of, m.write_reduction(run), m.write_reduction(esd))


def _hit_rate_gain(metric: str, size: str, small: int, policy: str | None = None) -> Finder:
    large = 2 * small

    def find(comparison: Comparison, _: Claim) -> Found:
        swept = cache_sizes.points(comparison.results, size, policy)
        gains: Values = {}
        relative: Values = {}
        used: list[Run] = []
        for trace in dict.fromkeys(comparison.trace_of.values()):
            before, after = (swept.get(trace, {}).get(s) for s in (small, large))
            if before is None or after is None:
                continue
            used += [before, after]
            b, a = before.metric(metric), after.metric(metric)
            gains[trace] = m.of_known(sub, a, b)
            relative[trace] = m.divide(gains[trace], b)
        return Found(
            gains,
            "pp",
            f"`{metric}` at {large // KB} KB minus that at {small // KB} KB",
            f"a sweep of `{size}` with {small // KB} and {large // KB} KB"
            + (f" under {policy}" if policy else ""),
            {"relative to the smaller size's": relative},
            "counts",
            used,
        )

    return find


def _workloads_ahead(faster: Two) -> Finder:
    """The share of the workloads on which the claim's design is ahead of the baseline."""

    def find(comparison: Comparison, claim: Claim) -> Found:
        each = comparison.each(faster, claim.design, m.BASELINE)
        known = [value > 1 for value in each.values() if value is not None]
        return Found(
            {"all workloads": m.divide(sum(known), len(known)) if known else None},
            "%",
            "workloads on which it is ahead / workloads; the paper names three or four of 20",
            f"runs of {claim.design} and {m.BASELINE}",
            aspect="time",
            runs=comparison.runs(claim.design, m.BASELINE),
            workloads=1,
        )

    return find


def _not_ours(program: str) -> Finder:
    """A figure of one of the paper's programs."""
    needs = f"a run of {program}, which is of SPEC CPU 2017 and not ours to ship"
    return lambda *_: Found({}, "x", "", needs)


def _not_drawn(*_: object) -> Found:
    return Found(
        {},
        "x",
        "",
        "a CRC that looks for equal lines by itself: ours compares what it finds, so no run counts "
        "its collisions over all lines",
    )


def _energy_bound(comparison: Comparison, claim: Claim) -> str:
    """The most energy of a write that a removed duplicate can save, by the machine's keys."""
    parameters = comparison.results.machine.parameters
    names = ("medium.energy.write_nj", "medium.energy.read_nj", "units.aes.energy_nj")
    write, read, pad = (parameters.get(name) for name in names)
    known = all(isinstance(value, int | float) for value in (write, read, pad))
    if not known or claim.kind == "order":
        return ""
    write, read, pad = (float(value) for value in (write, read, pad))  # type: ignore[arg-type]
    saves = write - read
    needed = saves / claim.value - write
    how = f"needs x <= {needed:.2f} nJ" if needed >= 0 else "is impossible even at x = 0"
    return (
        f"; a duplicate, which is read and compared, saves at most {saves:.2f} / ({write:g} + x) "
        f"of its write, x the energy of a pad: {saves / (write + pad):.0%} at the machine's "
        f"{pad:g} nJ, {saves / write:.0%} at none; the paper's {claim.value:.1%} {how}"
    )


#: The computation of each metric of ESD's claims from results.
METRICS: dict[str, Finder] = {
    "duplicate_rate": _fact("duplicate_rate", "writes whose content was written before / writes"),
    "unique_lines_written_over_1000_times": _written_over_1000_times(
        "contents", "distinct contents written more than 1000 times / distinct contents"
    ),
    "volume_of_lines_written_over_1000_times": _written_over_1000_times(
        "writes", "writes of contents written more than 1000 times / writes"
    ),
    "duplicates_found_in_fingerprint_cache": _duplicates_found(
        "cache", "duplicates found by a cached fingerprint / writes"
    ),
    "duplicates_found_by_nvmm_lookup": _duplicates_found(
        "medium",
        "duplicates found only by looking in the medium / writes; the paper prints 13.7 % and 18.3 "
        "%",
    ),
    "nvmm_lookup_share_of_write_latency": _share_of_write_latency(
        "lookup",
        "write latency booked under look-up / all write latency; the paper prints 49.2, 50.0, and "
        "in Fig. 17 12 and 23 %",
    ),
    "fingerprint_share_of_write_latency": _share_of_write_latency(
        "fingerprint", "write latency booked under fingerprint / all write latency"
    ),
    "write_reduction": _write_reduction,
    "write_reduction_lead_over_esd": _two(
        _lead(sub),
        "esd",
        "pp",
        "write reduction of {design} minus that of esd, in percentage points",
        "write_reduction",
        "counts",
        {
            "relative to esd's reduction": _lead(lambda f, e: m.divide(f - e, e)),
            "relative to {design}'s reduction": _lead(lambda f, e: m.divide(f - e, f)),
        },
    ),
    "workloads_with_faster_writes_than_baseline": _workloads_ahead(m.write_speedup),
    "workloads_with_faster_reads_than_baseline": _workloads_ahead(m.read_speedup),
    "workloads_with_higher_ipc_than_baseline": _workloads_ahead(m.ipc_ratio),
    "write_speedup_over_esd_on_lbm": _not_ours("lbm"),
    "read_speedup_over_esd_on_lbm": _not_ours("lbm"),
    "time_added_by_wrong_predictions_on_lbm_ms": _not_ours("lbm"),
    "collisions_over_crc": _not_drawn,
    "metadata_overhead_of_capacity": _one(
        lambda run: m.divide(run.metric("metadata_bytes_per_line"), m.LINE_BYTES),
        "metadata bytes a line / 64",
        "with `metadata_bytes_per_line`",
        "space",
    ),
}
for _step, _small in (("512KB_to_1MB", 512 * KB), ("1MB_to_2MB", MB)):
    METRICS[f"amt_hit_rate_gain_{_step}"] = _hit_rate_gain("amt_hit_rate", AMT_BYTES, _small)
    METRICS |= {
        f"efit_hit_rate_gain_{_step}_with_{_policy}": _hit_rate_gain(
            "efit_hit_rate", EFIT_BYTES, _small, _policy
        )
        for _policy in cache_sizes.POLICIES
    }
for _over in ("baseline", "dedup-sha1", "dewrite"):
    for _rw, _faster in (("write", m.write_speedup), ("read", m.read_speedup)):
        _latency = f"mean_{_rw}_latency_ns"
        _note = f"{{over}}'s mean {_rw} latency / {{design}}'s"
        METRICS[f"{_rw}_speedup_over_{_over}"] = _two(_faster, _over, "x", _note, _latency)
    _note = "{design}'s IPC / {over}'s"
    METRICS[f"p99_write_speedup_over_{_over}"] = _two(
        m.gain_of("p99_write_latency_ns"),
        _over,
        "x",
        "{over}'s 99th percentile of write latency / {design}'s",
        "p99_write_latency_ns",
    )
    METRICS[f"ipc_over_{_over}"] = _two(m.ipc_ratio, _over, "x", _note, "ipc")
    _note = "1 - {design}'s energy / {over}'s"
    _note += "; the paper's abstract and its Sec. IV-E differ" * (_over != "dewrite")
    _saved = _two(
        m.energy_reduction,
        _over,
        "%",
        _note,
        "energy_nj",
        "energy",
        more=_energy_bound if _over == "baseline" else lambda *_: "",
    )
    METRICS[f"energy_reduction_vs_{_over}"] = _saved
    METRICS[f"energy_reduction_vs_{_over}_abstract"] = _saved
    METRICS[f"metadata_reduction_vs_{_over}"] = _two(
        m.saved(m.metadata_ratio),
        _over,
        "%",
        "1 - {design}'s metadata bytes in the medium / {over}'s, in tables with an entry for every "
        "line",
        "metadata_bytes",
        "space",
        {"entries in use alone": m.saved(m.metadata_in_use_ratio)},
        otherwise=False,
    )


def claims(comparison: Comparison) -> list[ClaimRow]:
    """Our figure for every claim of ESD, in the paper's order, over all traces of the results.

    A claim that these results cannot speak to has ``ours = None`` and says what is lacking.
    """

    def find(claim: Claim) -> Found:
        found = METRICS[claim.metric](comparison, claim)
        workloads = len(set(comparison.trace_of.values()))
        return found if found.workloads else replace(found, workloads=workloads)

    return claim_rows("esd", find)


# ---- what it comes to


def verdict(comparison: Comparison, rows: Sequence[ClaimRow]) -> tuple[str, ...]:
    """What holds, what does not, and what it depends on."""
    judged = [(row, row.holds) for row in rows if row.holds is not None]
    if not judged:
        return ()
    near = sum(bool(row.near) for row in rows)
    by_figure: dict[str, list[bool]] = {}
    for row, good in judged:
        figure = row.claim.where.split(" (text")[0].split("(")[0].strip()
        by_figure.setdefault(figure, []).append(good)
    held = [
        f"{figure} ({sum(all_)} of {len(all_)})" for figure, all_ in by_figure.items() if any(all_)
    ]
    missed = [figure for figure, all_ in by_figure.items() if not any(all_)]
    count = sum(good for _, good in judged)
    return (
        f"What holds: {count} of the paper's {len(judged)} claims as it words them"
        + (f", of {', '.join(held)}" if held else "")
        + f"; {near} of ours are within {WITHIN:.0%} of its figures.",
        "What does not: "
        + (f"no figure of {', '.join(missed)}; " if missed else "")
        + _for_all(rows)
        + ".",
        f"What it depends on: {_hangs(comparison, rows)}; docs/papers/esd.md has a cause and a "
        "command for every gap.",
    )


def _for_all(rows: Sequence[ClaimRow]) -> str:
    """The number of workloads on which ESD is worse than the baseline; the paper has none."""
    found = []
    for row in rows:
        if row.claim.metric in FOR_ALL and row.claim.of_all and row.workloads:
            worse = sum(value <= row.claim.value for value in row.workloads.values())
            what = row.claim.metric.removesuffix("_over_baseline").removesuffix("_speedup")
            what = what.upper() if what == "ipc" else f"{what}s"
            found.append(f"{what} on {worse}")
    if not found:
        return "no run beside the baseline says more"
    number = max(len(row.workloads) for row in rows)
    return (
        f"of {number} workloads ESD is worse than the baseline in {', '.join(found)}, by the paper "
        "in none"
    )


def _hangs(comparison: Comparison, rows: Sequence[ClaimRow]) -> str:
    """The figures that move most under another reading, each with its move."""
    wanted = (
        (
            "write_speedup_over_dedup-sha1",
            "max",
            "one SHA-1 unit",
            "with one SHA-1 unit, not one a core, ESD's largest",
        ),
        (
            "ipc_over_baseline",
            "min",
            "freed places lifo",
            "where the place freed last is used first, ESD's least",
        ),
    )
    found = []
    for metric, stat, reading, words in wanted:
        for row in rows:
            if (row.claim.metric, row.claim.stat) == (metric, stat) and reading in row.readings:
                what = metric.replace("_", " ").replace("ipc", "IPC")
                ours, other = (
                    written_claim(value, row.unit) for value in (row.ours, row.readings[reading])
                )
                found.append(f"{words} {what} is {other}, not {ours}")
    energy = [row for row in rows if row.claim.metric == "energy_reduction_vs_baseline"]
    if energy and "; a duplicate" in energy[0].note:
        pad = comparison.results.machine.parameters["units.aes.energy_nj"]
        found.append(f"energy on that of a pad ({pad} nJ, assumed)")
    cores = sorted({run.copies for run in comparison.runs()})
    found.append(
        f"and all of it on the workloads and on the cores ({' or '.join(map(str, cores))})"
    )
    return "; ".join(found)


def sampled(asked: Asked, whole: Mapping[str, Source]) -> Sampled:
    """The four designs on all workloads, over what the paper leaves open about these."""
    records = asked.limit or SAMPLED_WINDOW
    copies = asked.copies or CORES
    choices = [
        Range("window", str(MIDDLE), "no paper says which part of a program ran", "0", "1"),
        Range(
            "records",
            str(records),
            "nor how much of it: three times less, to twice as much",
            str(-(-records // 3)),
            str(2 * records),
            whole=True,
        ),
        Range("seed", str(asked.seed), "of generated traces", "0", "999", whole=True),
    ]
    if asked.warmup is None:
        choices.append(Range("warmup", "0.5", "the share of records", "0.25", "0.75"))
    if copies > 1:
        why = "copies of a program, or the same program on inputs of its own"
        choices.append(Range("own contents", "1", why, others=("0",)))

    def runs(values: Mapping[str, str], keys: Sequence[Setting]) -> Simulations:
        sources = {
            name: source.replace(window=float(values["window"]), limit=int(values["records"]))
            for name, source in whole.items()
        }
        for name, source in sources.items():
            if isinstance(source, SynthSource):
                sources[name] = source.replace(seed=int(values["seed"]))
        count, share = _core.warmup(asked.warmup or f"{100 * float(values['warmup']):.1f}%")
        own = float(values.get("own contents", 0))
        settings = Settings(asked.machine, keys, count, copies, own, share)
        plain = [
            Point(name, source, design) for name, source in sources.items() for design in DESIGNS
        ]
        return Simulations(settings, plain)

    note = f"A cell is a machine on which each of {len(whole)} workloads runs, on {copies} cores."
    settled = [key for key, _ in asked.overrides] + (["own contents"] if copies == 1 else [])
    return Sampled(
        tuple(whole),
        tuple(choices),
        runs,
        claims,
        asked.machine,
        asked.overrides,
        note,
        open_worlds(WORLDS, settled),
    )


class Esd:
    """The paper's four designs on recordings and on the ladder, with the sweeps of Fig. 18."""

    name = "esd"
    machine = "esd"
    takes: tuple[str, ...] = ("traces", "machine", "limit", "warmup", "copies")
    instead = ""

    def plan(self, asked: Asked) -> Plan:
        window = asked.limit or (QUICK_WINDOW if asked.quick else WINDOW)
        recorded = named(asked.traces or shipped(), window)
        whole: dict[str, Source] = recorded | {
            rung["name"]: SynthSource(name=rung["name"], seed=asked.seed, limit=window)
            for rung in json.loads(_core.ladder())
        }
        middle = {name: source.replace(window=MIDDLE) for name, source in whole.items()}
        kinds: dict[str, Kind] = {
            name: "recording" if name in recorded else "ladder" for name in whole
        }
        copies = asked.copies or CORES
        warmup = asked.warmup or WARMUP
        count, share = _core.warmup(warmup)
        return Plan(
            Simulations(
                Settings(asked.machine, asked.overrides, count, copies, float(copies > 1), share),
                points(middle, asked.quick),
            ),
            stand_ins(kinds, window, copies, warmup),
            claims,
            verdict=verdict,
            facts={"workloads": [{"name": name, "kind": kind} for name, kind in kinds.items()]},
            sampled=sampled(asked, whole),
        )


REPRODUCTION: Reproduction = Esd()
