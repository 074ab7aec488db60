"""Reproducing EASY-PM: which runs its figures need, and our figure for each of its claims, as the
machine is and under every choice that the paper leaves open.

Seven persistent programs run on the machine of Table I, with no word about logs: the hardware keeps
them. The statistics are over the paper's five programs. Left out: how a design logs (the core's
``controller/logging``), and the plots, which ``report.logging`` draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from sardonyx.papers.causes import Sweep, crossing
from sardonyx.papers.choices import DrawnSizes, check_programs, program_sample, warmed
from sardonyx.papers.claims import (
    Claim,
    ClaimRow,
    Found,
    Statistic,
    claim_rows,
    load_claims,
    written_claim,
)
from sardonyx.papers.reproduction import Asked, Cell, Exhibit, Plan, Reproduction
from sardonyx.papers.sampling import Sampled
from sardonyx.questions import ProgramSource
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Settings, Simulations
from sardonyx.runs.measures import Two, arithmetic_mean, divide, of_known, saved
from sardonyx.runs.programs import (
    COUNTER_CACHE,
    KB,
    MB,
    Programs,
    counter_accesses,
    l1_latency,
    speedup,
    traffic_ratio,
    transactions_per_wall_second,
    written_size,
)
from sardonyx.runs.results import Run, Scalar

#: The paper's structures, and two of SCA's that it does not have.
PAPERS = ("array-swap", "hash", "chain-queue", "bplus-tree", "rbtree")
PROGRAMS = (*PAPERS, "queue", "btree")
#: The paper's names: baseline, Asynchronous-Log-Counter, EASY-PM.
BASELINE, ALC, EASY = "hw-log", "alc", "easy-pm"
SOFTWARE = "sca"
DESIGNS = ("no-encryption", SOFTWARE, BASELINE, ALC, EASY)
SERIAL = "easy_pm.cfb_serial"
#: The number of cores of Table I.
CORES = 4


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run; sizes are bytes, of each core."""

    footprint: int = 16 * MB
    transaction_size: int = 64
    transactions: int = 3_000
    warmup: int = 1_000
    sizes: Sequence[int] = (64, 256, KB, 4 * KB)
    cores_too: Sequence[int] = (1, 2, 8)
    swept: Sequence[str] = PAPERS
    seed: int = 0


FULL = Scale()
QUICK = Scale(
    footprint=4 * MB,
    transactions=900,
    warmup=300,
    sizes=(64, 512, 4 * KB),
    cores_too=(1, 8),
    swept=("hash", "rbtree"),
)

#: The scale of a quick sample, which has many runs.
TINY = replace(QUICK, transactions=300, warmup=100)

SWEEPS = (
    Sweep(
        "counter cache",
        COUNTER_CACHE,
        (512 * KB, 128 * KB, 2 * MB, 8 * MB),
        "bytes of counter cache: how far the counters of data and log reach",
        cores=CORES,
    ),
    Sweep(
        "records a bucket",
        "log.records",
        (64, 16, 8),
        "how often a transaction takes a new bucket, and how many there are in a region",
        cores=CORES,
    ),
    Sweep(
        "array write",
        "medium.timing.tWP_ns",
        (300, 150, 75, 15),
        "ns for which a write, a counter's too, holds its bank",
        cores=CORES,
    ),
    Sweep(
        "array read",
        "medium.timing.tRCD_ns",
        (48, 24, 96, 192),
        "ns to open a row",
        cores=CORES,
    ),
    Sweep(
        "think time",
        "think.instructions",
        (0, 3_200, 12_800, 51_200),
        "instructions between transactions; 8,000 take 1 µs",
        cores=CORES,
    ),
    Sweep("channels", "medium.geometry.channels", (1, 2, 4), "channels of the medium", CORES),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting that the paper leaves open: the machine's value first, then another that can be
    defended as well, and the designs that it touches.
    """

    name: str
    key: str
    values: tuple[Scalar, Scalar]
    designs: Sequence[str]

    @property
    def other(self) -> dict[str, Scalar]:
        """The settings of the other value."""
        return {self.key: self.values[1]}


#: The designs by whose throughput the choices are judged.
JUDGED = (SOFTWARE, BASELINE, ALC, EASY)
LOGS = (BASELINE, ALC, EASY)
#: Choices that are run alone and all together.
CHOICES = (
    Choice("order of reuse", "log.reuse", ("fifo", "lifo"), LOGS),
    Choice("placement of buckets", "log.placement", ("staggered", "packed"), LOGS),
    Choice("merging of groups", "medium.queues.group_merging", ("all", "member"), JUDGED),
    Choice(
        "address mapping", "medium.mapping", ("dramsim2-2", "row:rank:bank:channel:column"), JUDGED
    ),
    Choice("valid headers", "easy_pm.valid_headers", ("both", "registers"), (EASY,)),
)
#: Choices that are run alone: what Table I does not say of the controller, and one thing that it
#: does.
ALONE = (
    Choice("address mapping", "medium.mapping", (CHOICES[3].values[0], "dramsim2-4"), JUDGED),
    Choice("merging again", "medium.queues.remerging", (False, True), JUDGED),
    Choice("scheduler", "medium.queues.scheduler", ("fr-fcfs-cap", "fcfs"), JUDGED),
    Choice("coalescing", "medium.queues.coalescing", (True, False), JUDGED),
    Choice("banks", "medium.geometry.banks", (8, 16), JUDGED),
)


def combinations(design: str) -> Iterator[dict[str, Scalar]]:
    """Every combination of the choices' values that ``design`` can tell from others."""
    touching = [choice for choice in CHOICES if design in choice.designs]
    for taken in product((False, True), repeat=len(touching)):
        yield _settings(choice for choice, other in zip(touching, taken, strict=True) if other)


def _settings(choices: Iterable[Choice]) -> dict[str, Scalar]:
    """The settings that give the choices their other values."""
    return {key: value for choice in choices for key, value in choice.other.items()}


# ---- the runs


def points(scale: Scale, programs: Sequence[str] = PROGRAMS) -> list[Point]:
    """All runs that the figures need, each once."""

    def point(
        program: str,
        design: str,
        cores: int = CORES,
        size: int = scale.transaction_size,
        variant: Mapping[str, Scalar] | None = None,
    ) -> Point:
        name = program if size == scale.transaction_size else f"{program} {written_size(size)}"
        source = ProgramSource(
            name=program,
            item_bytes=size,
            footprint=scale.footprint,
            transactions=scale.transactions,
            seed=scale.seed,
        )
        return Point(name, source, design, variant or {}, copies=cores)

    found = [point(p, design) for p in programs for design in DESIGNS]
    found += [point(p, EASY, variant={SERIAL: True}) for p in programs]
    for p in (program for program in programs if program in scale.swept):
        logs = (SOFTWARE, BASELINE, ALC, EASY)
        found += [point(p, design, size=size) for size in scale.sizes for design in logs]
        found += [point(p, design, cores) for cores in scale.cores_too for design in logs]
        found += [
            point(p, design, variant=sweep.variant(value))
            for sweep in SWEEPS
            for value in sweep.values
            for design in logs
        ]
        found += [
            point(p, design, variant=variant)
            for design in JUDGED
            for variant in (
                *combinations(design),
                *(choice.other for choice in ALONE if design in choice.designs),
            )
        ]
    unique = {(p.source, p.design, p.copies, frozenset(p.variant.items())): p for p in found}
    return list(unique.values())


# ---- the claims

Finder = Callable[[Programs, Claim], Found]


def _over(of: Two, over: str, note: str) -> Finder:
    def find(programs: Programs, claim: Claim) -> Found:
        at = {"cores": CORES}
        a, b = {"design": claim.design, **at}, {"design": over, **at}
        serial = programs.each(of, {**a, "variant": {SERIAL: True}}, b)
        readings = {"the chain charged block by block": serial}
        needs = f"runs of {claim.design} and {over} on {CORES} cores"
        return Found(programs.each(of, a, b), "%", note, needs, readings=readings)

    return find


def _of_one(program: str, of: Finder) -> Finder:
    """What ``of`` finds for one of the programs."""

    def find(programs: Programs, claim: Claim) -> Found:
        found = of(programs, claim)
        return replace(found, values={program: found.values.get(program)}, readings={})

    return find


@dataclass(frozen=True, slots=True)
class Uncoalesced:
    """Writes of a record of seven lines if no two of them meet in a queue or in a line of counters:
    seven lines, seven old lines and a header.
    """

    lines: int = 7

    @property
    def logged(self) -> int:
        return self.lines + 1

    def writes(self, log_counters: bool) -> int:
        """All of them, with a counter for each line of data and, if so, of the log."""
        return self.lines + self.logged + self.counters(log_counters)

    def counters(self, log_counters: bool) -> int:
        return self.lines + (self.logged if log_counters else 0)

    @property
    def saved(self) -> float:
        return 1 - self.writes(False) / self.writes(True)

    @property
    def counters_saved(self) -> float:
        return 1 - self.counters(False) / self.counters(True)


RECORD = Uncoalesced()


def counter_ratio(kind: str) -> Two:
    """Counter accesses a transaction of a run over those of another."""

    def of(run: Run, over: Run) -> float | None:
        each = [
            divide(counter_accesses(one, kind), one.metric("transactions")) for one in (run, over)
        ]
        return divide(*each)

    return of


def _write_traffic(programs: Programs, claim: Claim) -> Found:
    find = _over(saved(traffic_ratio("medium_writes")), BASELINE, WRITES_NOTE)
    counters = _over(saved(counter_ratio("writes")), BASELINE, "")
    readings: dict[str, Mapping[str, float | None] | float | None] = {
        "counter writes alone": counters(programs, claim).values,
        "seven lines uncoalesced, all writes": RECORD.saved,
        "seven lines uncoalesced, counter writes": RECORD.counters_saved,
    }
    return replace(find(programs, claim), readings=readings)


WRITES_NOTE = "1 - all writes to the medium a transaction / those of hw-log"


def _latency_ratio(programs: Programs, run: Run, over: Run) -> float | None:
    """The mean latency of loads and stores of a run relative to another."""
    return divide(*(l1_latency(one, programs.parameters) for one in (run, over)))


def _l1_latency(programs: Programs, claim: Claim) -> Found:
    def ratio(run: Run, over: Run) -> float | None:
        return _latency_ratio(programs, run, over)

    note = "1 - mean latency of loads and stores / hw-log's; a hit in any cache counts as L1's"
    return _over(saved(ratio), BASELINE, note)(programs, claim)


def _bytes(*metrics: str, readings: Mapping[str, float] | None = None) -> Finder:
    """On-chip bytes for 32 transactions, which no program changes."""

    def find(programs: Programs, claim: Claim) -> Found:
        runs = [run for run in programs.runs() if run.design == claim.design and not run.variant]
        value: float | None = None
        if runs:
            parts = [runs[0].metric(metric) for metric in metrics]
            value = of_known(lambda *known: sum(known), *parts)
        note = f"bytes of {' + '.join(metrics)}"
        needs = f"a run of {claim.design}"
        return Found({"on chip": value}, "", note, needs, readings or {}, aspect="counts")

    return find


def _writes_per_line(programs: Programs, claim: Claim) -> Found:
    def ratio(run: Run, _: Run) -> float | None:
        data = run.causes.get("data")
        return divide(run.metric("medium_writes"), None if data is None else data.medium_writes)

    at = {"design": claim.design, "cores": CORES}
    return Found(
        programs.each(ratio, at, at),
        "",
        "all writes to the medium / those of the programs' lines",
        f"runs of {claim.design}",
        {"seven lines uncoalesced": RECORD.writes(True) / RECORD.lines},
        aspect="counts",
    )


#: The computation of each metric of EASY-PM's claims from results.
METRICS: dict[str, Finder] = {
    "throughput_gain_over_baseline": _over(
        speedup, BASELINE, "transactions a second / those of hw-log - 1"
    ),
    "throughput_gain_over_alc": _over(speedup, ALC, "transactions a second / those of alc - 1"),
    "throughput_gain_over_alc_bplus_tree": _of_one(
        "bplus-tree", _over(speedup, ALC, "transactions a second / those of alc - 1")
    ),
    "pm_write_traffic_reduction_vs_baseline": _write_traffic,
    "pm_read_traffic_reduction_vs_baseline": _over(
        saved(traffic_ratio("medium_reads")),
        BASELINE,
        "1 - all reads of the medium a transaction / those of hw-log",
    ),
    "l1_latency_reduction_vs_baseline": _l1_latency,
    "log_metadata_registers_bytes_32_transactions": _bytes(
        "log_register_bytes", "log_open_header_bytes", "log_timer_bytes"
    ),
    "recent_ciphertext_registers_bytes_32_transactions": _bytes(
        "log_rc_bytes",
        readings={"64 B a transaction, as the paper counts": 32 * 64},
    ),
    "medium_writes_per_line_written": _writes_per_line,
}


def papers(programs: Programs) -> Programs:
    """The same runs, of the paper's five programs."""
    names = [name for name in programs.plain if name in PAPERS]
    footprint = max((int(programs.plain[name][1]) for name in names), default=0)
    return programs.under({}, names, footprint)


def claims(comparison: Comparison) -> list[ClaimRow]:
    """Every claim of the paper beside our figure."""
    programs = papers(comparison.programs)

    def find(claim: Claim) -> Found:
        return replace(METRICS[claim.metric](programs, claim), runs=programs.runs())

    return claim_rows("easy-pm", find)


# ---- the tables


def paired(programs: Programs) -> Exhibit:
    """Transactions a second of each structure: the hardware's logs beside SCA's software log."""
    rows: dict[str, dict[str, Cell]] = {}
    gains = []
    for name in programs.names:
        view = programs.under({}, [name], int(programs.plain[name][1]))

        def one(of: Two, design: str, over: str = EASY, view: Programs = view) -> float | None:
            a, b = ({"design": d, "cores": CORES} for d in (design, over))
            return next(iter(view.each(of, a, b).values()))

        cells = {}
        for design in DESIGNS:
            rate = one(lambda run, _: run.metric("transactions_per_second"), design, design)
            wall = one(lambda run, _: transactions_per_wall_second(run), design, design)
            words = "–" if rate is None else f"{rate / 1e6:.3f} M/s"
            host = "" if wall is None else f"simulated at {wall / 1e3:.1f} k/s of real time"
            cells[design] = Cell(None, words, host, {}, {})
        gain = one(speedup, EASY, SOFTWARE)
        gains.append(gain)
        words = "–" if gain is None else f"{gain:+.1%}"
        kept = "" if gain is None else ("at least SCA's" if gain >= 0 else "below SCA's")
        cells["easy-pm over sca"] = Cell(None, words, kept, {}, {})
        rows[name] = cells
    mean = arithmetic_mean(gains)
    note = (
        "Transactions a second of simulated time, all cores together; the same structures, with "
        f"SCA's undo log in software and with the hardware's. EASY-PM over SCA: "
        f"{'–' if mean is None else f'{mean:+.1%}'} on average."
    )
    facts = {"easy_pm_over_sca": dict(zip(programs.names, gains, strict=True))}
    return Exhibit("paired", "Throughput", "structure", rows, note, facts)


def traffic(programs: Programs) -> Exhibit:
    """Fig. 6: reads and writes of the medium a transaction, and the counters' part of them."""
    kinds: dict[str, Callable[[Run], float | None]] = {
        "REQ_RD": lambda run: run.metric("medium_reads"),
        "REQ_WT": lambda run: run.metric("medium_writes"),
        "CNT_RD": lambda run: counter_accesses(run, "reads"),
        "CNT_WT": lambda run: counter_accesses(run, "writes"),
        "LOG_WT": lambda run: log_writes(run),
    }
    view = papers(programs)

    def mean(design: str, of: Callable[[Run], float | None]) -> tuple[str, dict[str, str]]:
        at = {"design": design, "cores": CORES}
        each = view.each(lambda run, _: divide(of(run), run.metric("transactions")), at, at)
        value = arithmetic_mean(each.values())
        words = {name: f"{v:.2f}" for name, v in each.items() if v is not None}
        return "–" if value is None else f"{value:.2f}", words

    rows = {}
    for design in (SOFTWARE, BASELINE, ALC, EASY):
        cells = {}
        for name, of in kinds.items():
            ours, each = mean(design, of)
            cells[name] = Cell(None, ours, "", {}, each)
        rows[design] = cells
    note = (
        "Accesses to the medium a transaction, means over the paper's five structures. REQ is all "
        "of them, CNT the counters' part, LOG the log's without its counters. If nothing is "
        f"coalesced, seven lines cost hw-log {RECORD.writes(True)} writes and easy-pm "
        f"{RECORD.writes(False)} (-{RECORD.saved:.0%}), of counters {RECORD.counters(True)} and "
        f"{RECORD.counters(False)} (-{RECORD.counters_saved:.0%}): the paper's 55.61 % fits the "
        "counters' writes alone, and cannot be all writes."
    )
    return Exhibit("traffic", "Traffic", "design", rows, note, {})


def log_writes(run: Run) -> float | None:
    """Lines of the log written, its counters left out."""
    log = run.causes.get("log")
    return None if log is None else log.medium_writes


NOT_ITEMISED = "part of 3,226 B"


def space(programs: Programs) -> Exhibit:
    """The log manager's registers, itemised, beside the paper's two sums."""
    runs = [run for run in programs.runs() if run.design == EASY and not run.variant]
    run = runs[0] if runs else None

    def held(metric: str) -> str:
        value = None if run is None else run.metric(metric)
        return "–" if value is None else f"{value:,.0f} B"

    rows = {
        name: {
            "ours": Cell(None, held(metric), what, {}, {}),
            "the paper": Cell(None, paper, "", {}, {}),
        }
        for name, metric, paper, what in (
            (
                "registers",
                "log_register_bytes",
                NOT_ITEMISED,
                "32 lines: transaction, headers, buckets",
            ),
            (
                "open headers",
                "log_open_header_bytes",
                NOT_ITEMISED,
                "seven addresses and a count, each",
            ),
            ("timers", "log_timer_bytes", NOT_ITEMISED, "8 B each"),
            ("recent ciphertext", "log_rc_bytes", "2,048 B", "two chains of 16 B each"),
        )
    }
    note = (
        "On-chip state for 32 transactions. The paper has 3.15 KB for the log's registers, 100.8 B "
        "a transaction, as ATOM, and does not itemise them; its 2 KB of recent ciphertext are two "
        "of 32 B a transaction, twice what CFB-128 needs (32 x 2 x 16 B is 1 KB)."
    )
    return Exhibit("space", "Space", "registers", rows, note, {})


def swept(programs: Programs) -> Exhibit | None:
    """Each sweep: EASY-PM's gain over the others along it."""
    rows: dict[str, dict[str, Cell]] = {}
    for sweep, lines in gains(programs):
        cells = {}
        for over, line in lines.items():
            ends = [f"{value:+.1%}" for value in line if value is not None]
            where = crossing(sweep, line, 0.0)
            cells[f"over {over}"] = Cell(None, ", ".join(ends), f"above 0: {where}", {}, {})
        rows[sweep.name] = cells
    if not rows:
        return None
    note = (
        "EASY-PM's gain in transactions a second over the others, one cause varied at a time; "
        "in the order of the values: "
        + "; ".join(
            f"{s.name} {', '.join(map(s.written, s.values))}" for s in SWEEPS if s.name in rows
        )
        + "."
    )
    return Exhibit("causes", "Causes", "cause", rows, note, {})


def gains(programs: Programs) -> list[tuple[Sweep, dict[str, list[float | None]]]]:
    """The sweeps that were run, each with EASY-PM's gain over the others at its values."""
    made = []
    for sweep in SWEEPS:
        of = programs.setting(sweep.variant(sweep.values[-1]))
        if not of:
            continue
        view = programs.under({}, list(of), max(of.values()))

        def gain(over: str, value: int, view: Programs = view, sweep: Sweep = sweep) -> Any:
            at = {"cores": sweep.cores, "variant": sweep.variant(value)}
            found = view.each(speedup, {"design": EASY, **at}, {"design": over, **at})
            return arithmetic_mean(found.values())

        lines = {
            over: [gain(over, value) for value in sweep.values]
            for over in (BASELINE, ALC, SOFTWARE)
        }
        made.append((sweep, lines))
    return made


#: The columns of the paper's headline figures, and the claim of each.
CLAIMED: Mapping[str, tuple[str, Statistic]] = {
    "over hw-log, mean": ("throughput_gain_over_baseline", "mean"),
    "over hw-log, most": ("throughput_gain_over_baseline", "max"),
    "over alc, mean": ("throughput_gain_over_alc", "mean"),
    "L1 latency, mean": ("l1_latency_reduction_vs_baseline", "mean"),
}
HEADLINES = tuple(CLAIMED)
OVER_SCA = "over sca, mean"


def headlines(programs: Programs, others: Sequence[Choice]) -> dict[str, float | None]:
    """The paper's four figures, and the gain over SCA, of runs under which ``others`` have their
    other values.
    """

    def each(of: Two, over: str) -> dict[str, float | None]:
        def side(design: str) -> dict[str, Any]:
            touching = [choice for choice in others if design in choice.designs]
            return {"design": design, "cores": CORES, "variant": _settings(touching)}

        return programs.each(of, side(EASY), side(over))

    gain = each(speedup, BASELINE)
    known = [value for value in gain.values() if value is not None]
    latency = each(saved(lambda a, b: _latency_ratio(programs, a, b)), BASELINE)
    found = (
        arithmetic_mean(gain.values()),
        max(known, default=None),
        arithmetic_mean(each(speedup, ALC).values()),
        arithmetic_mean(latency.values()),
        arithmetic_mean(each(speedup, SOFTWARE).values()),
    )
    return dict(zip((*HEADLINES, OVER_SCA), found, strict=True))


def choices(programs: Programs) -> Exhibit | None:
    """The headline figures under each choice that the paper leaves open, one at a time, and the
    least and the most of all their combinations.
    """
    of = programs.setting(CHOICES[0].other)
    if not of:
        return None
    view = programs.under({}, [n for n in of if n in PAPERS], max(of.values()))

    def written(name: str, value: Scalar) -> str:
        return f"{name}: {str(value).lower() if isinstance(value, bool) else value}"

    rows: dict[str, dict[str, float | None]] = {"as the machine is": headlines(view, ())}
    for choice in (*CHOICES, *ALONE):
        rows[written(choice.name, choice.values[1])] = headlines(view, (choice,))
    taken = product((False, True), repeat=len(CHOICES))
    joint = [[c for c, other in zip(CHOICES, one, strict=True) if other] for one in taken]
    joined = [(others, headlines(view, others)) for others in joint]
    extremes: dict[str, dict[str, Cell]] = {}
    for name, best in (("least of all combinations", min), ("most of all combinations", max)):
        cells = {}
        for column in (*HEADLINES, OVER_SCA):
            ours = [
                (value, others)
                for others, figures in joined
                if (value := figures[column]) is not None
            ]
            if not ours:
                cells[column] = Cell(None, "–", "", {}, {})
                continue
            value, others = best(ours, key=lambda one: one[0])
            where = ", ".join(f"{c.key}={c.values[1]}" for c in others) or "as the machine is"
            cells[column] = Cell(None, f"{value:+.1%}", where, {}, {})
        extremes[name] = cells
    table = {
        name: {
            column: Cell(None, "–" if value is None else f"{value:+.1%}", "", {}, {})
            for column, value in figures.items()
        }
        for name, figures in rows.items()
    }
    note = (
        "What the paper leaves open, one choice at a time, then the least and the most over all "
        f"{len(joined)} combinations of the first {len(CHOICES)}; of {', '.join(view.names)}. The "
        "machine has " + ", ".join(f"{c.key}={c.values[0]}" for c in CHOICES) + "."
    )
    facts = {
        "one_at_a_time": rows,
        "combinations": [
            {"settings": _settings(others), "figures": figures} for others, figures in joined
        ],
    }
    reported = {(claim.metric, claim.stat): claim.value for claim in load_claims("easy-pm")}
    paper = {
        column: Cell(None, f"{reported[claim]:+.1%}", "", {}, {})
        for column, claim in CLAIMED.items()
    }
    paper[OVER_SCA] = Cell(None, "–", "", {}, {})
    shown = {"the paper": paper, **table, **extremes}
    return Exhibit("choices", "Choices", "choice", shown, note, facts)


def tables(comparison: Comparison) -> tuple[Exhibit, ...]:
    """What the paper's figures show, in numbers."""
    programs = comparison.programs
    found = [
        paired(programs),
        traffic(programs),
        space(programs),
        choices(programs),
        swept(programs),
    ]
    return tuple(table for table in found if table is not None)


def verdict(comparison: Comparison, rows: Sequence[ClaimRow]) -> tuple[str, ...]:
    """What holds, what does not, what it depends on."""
    by = {(row.claim.metric, row.claim.stat): row for row in rows}

    def said(metric: str) -> str:
        row = by[metric, "mean"]
        return f"{written_claim(row.ours, row.unit)} (the paper: {row.reported})"

    def gain(over: str) -> dict[str, float | None]:
        at = {"cores": CORES}
        a, b = {"design": EASY, **at}, {"design": over, **at}
        return comparison.programs.each(speedup, a, b)

    count = len(comparison.programs.names)

    def ahead(over: str) -> str:
        found = gain(over)
        behind = [name for name, value in found.items() if value is None or value < 0]
        words = f"{count - len(behind)} of {count} structures"
        return words + (f" (not {', '.join(behind)})" if 0 < len(behind) < count else "")

    return (
        f"Holds: easy-pm is ahead of hw-log on {ahead(BASELINE)}, by "
        f"{said('throughput_gain_over_baseline')}, and commits at least SCA's transactions a "
        f"second on {ahead(SOFTWARE)}.",
        f"Beside alc, which a power cut can break, it is ahead on {ahead(ALC)}, by "
        f"{said('throughput_gain_over_alc')}; it reduces writes by "
        f"{said('pm_write_traffic_reduction_vs_baseline')} and L1 latency by "
        f"{said('l1_latency_reduction_vs_baseline')}.",
        hanging(comparison.programs)
        + f"The paper's reduction of all writes exceeds the {RECORD.saved:.0%} that a log without "
        "counters can save where nothing is coalesced, and fits its counter writes.",
    )


def hanging(programs: Programs) -> str:
    """Which of the paper's claims have its sign under every combination of what it leaves open, and
    which single choice turns the others; nothing if no choice was run.
    """
    table = choices(programs)
    if table is None:
        return ""
    joined = [one["figures"] for one in table.facts["combinations"]]
    alone: Mapping[str, Mapping[str, float | None]] = table.facts["one_at_a_time"]
    (_, plain), *others = alone.items()
    sentences = []
    for column in (HEADLINES[0], *HEADLINES[2:], OVER_SCA):
        known = [value for figures in joined if (value := figures[column]) is not None]
        here = plain[column]
        if not known or here is None:
            continue
        ahead = sum(value > 0 for value in known)
        turned = [
            name
            for name, figures in others
            if (value := figures[column]) is not None and (value > 0) != (here > 0)
        ]
        words = (
            f"{column}: above 0 in {ahead} of {len(known)}, {min(known):+.1%} to {max(known):+.1%}"
        )
        sentences.append(words + (f", turned by {'; '.join(turned)}" if turned else ""))
    return f"Over all combinations of what the paper leaves open, {'; '.join(sentences)}. "


def sampled(asked: Asked) -> Sampled:
    """Plain runs of the paper's structures on its cores, over what the paper leaves open."""
    scale = TINY if asked.quick else QUICK

    def plain(sizes: DrawnSizes) -> list[Point]:
        return [
            point
            for point in points(replace(scale, **sizes.scale), PAPERS)
            if not point.variant and point.copies == CORES and point.trace in PAPERS
            if point.design in JUDGED
        ]

    sizes = (64, scale.transaction_size, 1024)
    note = (
        f"A cell is a machine on which each structure runs, on {CORES} cores, "
        f"{scale.transactions:,} transactions on each."
    )
    return program_sample(
        asked, PAPERS, scale.footprint, sizes, scale.transactions, plain, claims, note
    )


class EasyPm:
    """The paper's structures and SCA's on its machine."""

    name = "easy-pm"
    machine = "easy-pm"
    takes: tuple[str, ...] = ("machine",)
    instead = ""

    def plan(self, asked: Asked) -> Plan:
        check_programs(self.name, asked)
        scale = replace(QUICK if asked.quick else FULL, seed=asked.seed)
        scale = replace(scale, warmup=warmed(asked, scale.warmup, scale.transactions))
        return Plan(
            Simulations(Settings(asked.machine, asked.overrides, scale.warmup), points(scale)),
            "The structures are written for Sardonyx; the paper states neither their sizes "
            f"nor its transactions: here {written_size(scale.footprint)} and items of "
            f"{written_size(scale.transaction_size)} a core, {CORES} cores, "
            f"{scale.transactions:,} transactions of which {scale.warmup:,} warm up. Means are "
            "over the paper's five structures.",
            claims,
            lambda comparison, _: tables(comparison),
            verdict=verdict,
            sampled=sampled(asked),
        )


REPRODUCTION: Reproduction = EasyPm()
