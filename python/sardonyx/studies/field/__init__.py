"""The field: logs in hardware, deduplications and schemes of integrity, each kind on one bench.

Every design stands beside the one of its kind that papers hold theirs against, on the same programs
or recordings: time, writes, energy, what a power cut costs, what survives it. The later papers'
headlines are in ``claims.toml``, each over its own baseline, judged over cells as a paper's are.
Left out: attacks and recoveries (``studies.integrity``).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from sardonyx import _core
from sardonyx.papers.choices import DrawnSizes, check_programs, program_sample, warmed
from sardonyx.papers.claims import NO_PAPER, Claim, ClaimRow, Found
from sardonyx.papers.reproduction import Asked, Cell, Exhibit, Plan, Reproduction
from sardonyx.papers.sampling import Sampled
from sardonyx.questions import ProgramSource, Source, TrialQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.answers import Spread
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Setting, Settings, Simulations
from sardonyx.runs.measures import divide, written
from sardonyx.runs.programs import KB, MB
from sardonyx.runs.recordings import recordings
from sardonyx.runs.results import Run, Scalar
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import named
from sardonyx.studies.integrity import schemes, why_not

MACHINE = "sca"
PROGRAMS = ("array-swap", "queue", "hash", "btree", "rbtree")
#: The run after which the power is cut, and its caches drained.
DRAINED = "btree, drained"
#: What is counted, as ``claims.toml`` calls it.
COUNTED = {
    "time": "runtime_ns",
    "writes": "medium_writes",
    "energy": "energy_nj",
    "write_latency": "mean_write_latency_ns",
    "read_latency": "mean_read_latency_ns",
}
#: Not drawn: where MACs lie and what a tree stands over, since each scheme rules others' ways out.
SETTLED = (("integrity.mac_place", "region"), ("integrity.leaves", "own-versions"))
#: What a design adds to a tree that is written back and keeps nothing for a recovery.
WRITTEN_BACK = "sca@sgx"
#: Dolos's stack without its queue: what a write waits for.
CRITICAL = "fca@bonsai-lazy-sound"


@dataclass(frozen=True, slots=True)
class Kind:
    """Designs of one kind: the one that the others stand beside, and what of them is compared."""

    name: str
    over: str
    others: tuple[str, ...]
    metrics: tuple[str, ...]
    #: Whether they run recordings, whose contents are of real programs.
    recorded: bool = False

    @property
    def designs(self) -> tuple[str, ...]:
        return (self.over, *self.others)


@cache
def kinds() -> tuple[Kind, ...]:
    """All of them; schemes are those that the simulator has and that promise all."""
    whole = [name for name, scheme in schemes().items() if all(scheme["refuses"].values())]
    deduplications = ("esd", "fsdedup", "dewrite", "dedup-sha1")
    sound = tuple(f"{name}-sound" for name in deduplications)
    logs = ("sca", "easy-pm", "proteus", "fwb", "morlog", "lad", "hoop", "silo")
    of_programs = ("time", "writes", "energy")
    of_recordings = ("write_latency", "read_latency", "writes", "energy")
    return (
        Kind("logs", "hw-log", logs, of_programs),
        Kind(
            "deduplications", "baseline", ("zero-lines", *deduplications, *sound), of_recordings,
            recorded=True,
        ),
        Kind(
            "integrity", "sca", (*(f"sca@{name}" for name in whole), CRITICAL, "dolos"), of_programs
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run; sizes are bytes, ``records`` of each recording from its middle."""

    footprint: int = 16 * MB
    transaction_size: int = 64
    transactions: int = 6_000
    warmup: int = 2_000
    records: int = 50_000
    drained: int = 16 * MB
    cuts: int = 40
    cut_programs: tuple[str, ...] = ("queue", "btree")
    seed: int = 0
    #: Settings of a design in runs that are too short for its usual ones.
    short: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)


FULL = Scale()
#: HOOP's collector works when its region is full, or every 10 ms: neither is in a short run.
SHORT: Mapping[str, Mapping[str, Scalar]] = {"hoop": {"hoop.slices": 1024}}
QUICK = Scale(
    footprint=1 * MB,
    transactions=600,
    warmup=200,
    records=6_000,
    drained=1 * MB,
    cuts=6,
    cut_programs=("queue",),
    short=SHORT,
)
CELL = replace(QUICK, footprint=4 * MB, records=4_000)
#: A cell takes two minutes of a processor.
CELLS, QUICK_CELLS = 100, 10


# ---- the runs


def points(scale: Scale) -> list[Point]:
    """A run of each design on the workloads of its kind, each once."""
    found: dict[tuple[str, str], Point] = {}
    sources = {True: recorded(scale), False: programs(scale)}
    for kind in kinds():
        for name, source in sources[kind.recorded].items():
            for design in kind.designs:
                point = Point(name, source, design, scale.short.get(design, {}))
                found.setdefault((name, design), point)
    return list(found.values())


def programs(scale: Scale) -> dict[str, Source]:
    """The programs, by name."""
    return {name: _program(scale, name, scale.footprint) for name in PROGRAMS}


def _program(scale: Scale, name: str, footprint: int) -> ProgramSource:
    return ProgramSource(
        name=name,
        item_bytes=scale.transaction_size,
        footprint=footprint,
        transactions=scale.transactions,
        seed=scale.seed,
    )


def recorded(scale: Scale) -> dict[str, Source]:
    """The recordings of one thread, by name."""
    whole = [str(path) for name, path in recordings().items() if not name.endswith("threads")]
    return {
        name: source.replace(window=0.5, limit=scale.records)
        for name, source in named(whole, scale.records).items()
    }


def drained(scale: Scale) -> list[Point]:
    """A run of each design after which reserve power drains the processor's caches."""
    source = _program(scale, "btree", scale.drained)
    designs = dict.fromkeys(design for kind in kinds() for design in kind.designs)
    return [
        Point(DRAINED, source, design, {**scale.short.get(design, {}), "drain.lines": "all"})
        for design in designs
    ]


# ---- what is compared


def _each(run: Run | None, metric: str) -> float | None:
    if run is None:
        return None
    value, transactions = run.metric(COUNTED[metric]), run.metric("transactions")
    return divide(value, transactions) if transactions and metric in COUNTED else value


def times_less(runs: Sequence[Run], metric: str, design: str, over: str) -> dict[str, float | None]:
    """How many times less than that of ``over``, by workload."""
    found = {(run.trace, run.design): run for run in runs}
    return {
        name: divide(_each(found[name, over], metric), _each(found.get((name, design)), metric))
        for name, of in found
        if of == over and name != DRAINED
    }


def extra_writes_saved(runs: Sequence[Run], design: str, over: str) -> dict[str, float | None]:
    """The share that is saved of the writes which ``over`` adds to a tree that is written back."""
    ours, theirs = (times_less(runs, "writes", each, WRITTEN_BACK) for each in (design, over))

    def saved(one: float | None, other: float | None) -> float | None:
        if not one or not other or 1 / other <= 1:
            return None
        return 1 - (1 / one - 1) / (1 / other - 1)

    return {name: saved(ours[name], theirs[name]) for name in ours}


# ---- the claims


@cache
def published() -> tuple[tuple[Claim, str, str], ...]:
    """The papers' figures, each with what is counted and over which design."""
    text = files(__package__).joinpath("claims.toml").read_text(encoding="utf-8")
    found = []
    for row in tomllib.loads(text)["claims"]:
        metric, over = row.pop("metric"), row.pop("over")
        where = f"{row.pop('paper')}, {row.pop('where')}"
        claim = Claim(paper="field", where=where, metric=f"{metric} of {over} / own", **row)
        found.append((claim, metric, over))
    return tuple(found)


@cache
def own() -> tuple[tuple[Claim, str, str], ...]:
    """No paper's: time, or writes' latency, and writes of each design beside its kind's."""
    return tuple(
        (
            Claim(
                "field", NO_PAPER, f"{metric} of {kind.over} / own", design, "mean", 1.0,
                "at_least",
            ),
            metric,
            kind.over,
        )
        for kind in kinds()
        for design in kind.others
        for metric in (kind.metrics[0], "writes")
    )  # fmt: skip


def claims(comparison: Comparison) -> list[ClaimRow]:
    """The papers' figures beside ours, and each design beside its kind's first."""
    return [_row(comparison.results.runs, *of) for of in (*published(), *own())]


def _row(runs: Sequence[Run], claim: Claim, metric: str, over: str) -> ClaimRow:
    needs = f"runs of {claim.design} and {over}"
    of = [run for run in runs if run.design == claim.design and run.trace != DRAINED]
    if metric == "extra_writes_saved":
        values = extra_writes_saved(runs, claim.design, over)
        note = f"1 - extra writes over {WRITTEN_BACK} / those of {over}"
        return Found(values, "%", note, needs, aspect="counts", runs=of).beside(claim)
    values = times_less(runs, metric, claim.design, over)
    words = metric.replace("_", " ")
    aspect: Any = {"writes": "counts", "energy": "energy"}.get(metric, "time")
    note = f"{words} of {over} / {words} of {claim.design}"
    return Found(values, "x", note, needs, aspect=aspect, runs=of).beside(claim)


# ---- the tables


def attempt(
    scale: Scale, machine: str, overrides: Sequence[Setting], watch: Watch | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Every design under the programs that are cut, by the explorer's plan, without attacks."""
    designs = dict.fromkeys(design for kind in kinds() for design in kind.designs)
    pairs = [(design, program) for design in designs for program in scale.cut_programs]
    tasks = [
        Task(f"cuts of {program} on {design}", _tried(scale, machine, overrides, design, program))
        for design, program in pairs
    ]
    found: dict[str, list[dict[str, Any]]] = {}
    for (design, _), answer in zip(pairs, scheduler.run(tasks, watch=watch), strict=True):
        found.setdefault(design, []).append(json.loads(answer))
    return found


def _tried(
    scale: Scale, machine: str, overrides: Sequence[Setting], design: str, program: str
) -> Callable[[Any], str]:
    question = TrialQuestion(
        program=program,
        design=design,
        machine=machine,
        overrides=tuple(overrides),
        seed=scale.seed + 1,
        cuts=scale.cuts,
        recovery_cuts=0,
        attack=False,
        threads=1,
    )

    def call(progress: Any) -> str:
        try:
            return _core.crash_trial(question.json(), progress)
        except BaseException as error:
            return json.dumps({"error": why_not(error)})

    return call


def _survives(tried: Sequence[Mapping[str, Any]]) -> Cell:
    whole = [one for one in tried if one.get("cuts")]
    if not whole:
        return Cell(None, "not cut", str(tried[0].get("error", "")) if tried else "", {}, {})
    lost = sum(bool(one["lost_cuts"]) for one in whole)
    cuts = sum(int(one["cuts"]) for one in whole)
    words = f"lost in {lost} of {len(whole)} programs" if lost else "survives"
    evidence = f"{cuts:,} cuts of {len(whole)} of {len(tried)} programs"
    return Cell(None, words, evidence, {"cuts": cuts}, {})


def _cut_cost(run: Run | None) -> Cell:
    lines = None if run is None else run.metric("drained_lines")
    if run is None or not lines:
        return Cell(None, "–", "not run", {}, {})
    accesses = (run.metric("drain_reads") or 0) + (run.metric("drain_writes") or 0)
    energy = (run.metric("drain_energy_nj") or 0) / 1000
    evidence = f"{accesses / lines:.1f} accesses a line, {lines:,.0f} lines"
    return Cell(None, f"{energy:,.0f} µJ", evidence, {}, {})


def _times(values: Mapping[str, float | None], better: str, worse: str) -> Cell:
    ratios = {name: value for name, value in values.items() if value is not None}
    if not ratios:
        return Cell(None, "–", "not run", {}, {})
    spread = Spread(better, worse, ratios, ratios)
    each = {name: written(value, "x") for name, value in ratios.items()}
    return Cell(None, written(spread.mean, "x"), spread.text(), {}, each)


def _table(
    kind: Kind, runs: Sequence[Run], tried: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Exhibit:
    cut = {run.design: run for run in runs if run.trace == DRAINED}
    rows = {}
    for design in kind.designs:
        row = {
            metric: _times(times_less(runs, metric, design, kind.over), "less", "more")
            for metric in kind.metrics
        }
        row["a cut"] = _cut_cost(cut.get(design))
        row["after it"] = _survives(tried.get(design, ()))
        rows[design] = row
    note = (
        f"How many times less than {kind.over}: mean, and on how many workloads. A cut: what "
        "draining the processor's caches through the design takes after a run of btree. After it: "
        "cuts of the explorer's plan, without attacks."
    )
    facts = {"over": kind.over, "designs": list(kind.designs)}
    return Exhibit(kind.name, kind.name.capitalize(), "design", rows, note, facts)


def verdict(comparison: Comparison, rows: Sequence[ClaimRow]) -> tuple[str, ...]:
    """Of each kind how many are better in the mean, and the best; how many headlines hold."""
    runs = comparison.results.runs
    said = []
    for kind in kinds():
        metric = kind.metrics[0]
        of = {}
        for design in kind.others:
            values = times_less(runs, metric, design, kind.over)
            ratios = {name: value for name, value in values.items() if value is not None}
            if ratios:
                of[design] = Spread("less", "more", ratios, ratios)
        better = [design for design, spread in of.items() if (spread.mean or 0) > 1]
        best = max(of, key=lambda design: of[design].mean or 0, default="")
        words = metric.replace("_", " ")
        text = f"{kind.name.capitalize()}: {len(better)} of {len(of)} have less {words} than "
        text += f"{kind.over} in the mean"
        said.append(f"{text}; the least has {best}: {of[best].text()}." if best else f"{text}.")
    headlines = [row for row in rows if row.claim.where != NO_PAPER and row.ours is not None]
    held = sum(bool(row.holds) for row in headlines)
    near = sum(bool(row.near) for row in headlines)
    said.append(
        f"{held} of {len(headlines)} of the papers' headlines are on their side of no change, "
        f"{near} within 15 %."
    )
    return tuple(said)


def sampled(asked: Asked) -> Sampled:
    """All designs on all workloads, over what the papers leave open."""

    def plain(sizes: DrawnSizes) -> list[Point]:
        return points(replace(CELL, **asdict(sizes)))

    note = (
        f"A cell is a machine on which each of {len(PROGRAMS)} programs runs "
        f"{CELL.transactions} transactions and each recording {CELL.records:,} records; HOOP's "
        "region has 1,024 slices, so that its collector works in so short a run."
    )
    of = program_sample(
        asked, PROGRAMS, CELL.footprint, (64, CELL.transaction_size, 4096), CELL.transactions,
        plain, claims, note,
    )  # fmt: skip

    def runs(values: Mapping[str, str], keys: Sequence[Setting]) -> Simulations:
        drawn = of.runs(values, keys)
        assert isinstance(drawn, Simulations)
        count, share = _core.warmup(asked.warmup or f"{100 * float(values['warmup']):.0f}%")
        return replace(drawn, settings=Settings(asked.machine, keys, count, warmup_share=share))

    given = {key for key, _ in of.overrides}
    settled = [(key, value) for key, value in SETTLED if key not in given]
    return replace(
        of,
        runs=runs,
        workloads=(*PROGRAMS, *recorded(CELL)),
        overrides=(*of.overrides, *settled),
        cells=CELLS,
        quick_cells=QUICK_CELLS,
    )


class Field:
    """No paper's: what a paper of today must stand beside."""

    name = "field"
    machine = MACHINE
    takes: tuple[str, ...] = ("machine", "warmup")
    instead = ""

    def plan(self, asked: Asked) -> Plan:
        check_programs(self.name, asked)
        scale = replace(QUICK if asked.quick else FULL, seed=asked.seed)
        warmup = warmed(asked, scale.warmup, scale.transactions)

        def measure(comparison: Comparison, watch: Watch | None) -> tuple[Exhibit, ...]:
            tried = attempt(scale, asked.machine, asked.overrides, watch)
            return tuple(_table(kind, comparison.results.runs, tried) for kind in kinds())

        return Plan(
            Simulations(
                # A share, since recordings have requests where programs have transactions.
                Settings(asked.machine, asked.overrides, warmup_share=warmup / scale.transactions),
                [*points(scale), *drained(scale)],
            ),
            f"Programs of {scale.footprint // KB} KB and items of 64 bytes, "
            f"{scale.transactions:,} transactions of which {warmup:,} warm up; {scale.records:,} "
            "records of each recording. The papers' figures are those of abstracts.",
            claims,
            measure,
            verdict,
            sampled=sampled(asked),
        )


REPRODUCTION: Reproduction = Field()
