"""Reproducing SCA (HPCA'18): which runs its figures need, and our figure for each of its claims.

The five persistent programs run on the machine of Table 2. Each claim is one small function of
runs; its statistic is taken over the programs, means are arithmetic. What the paper does not say
(footprint and size of transactions of Figs. 12-14) is a setting of :class:`Scale`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sardonyx import results_measures as m
from sardonyx.api_jobs import Job, ProgramSettings
from sardonyx.claims import Claim, ClaimRow, Found, Unit, claims_document, load_claims
from sardonyx.results import Results, Run, Scalar
from sardonyx.sca_stages import Table1

PROGRAMS = ("array-swap", "queue", "hash", "btree", "rbtree")
DESIGNS = ("no-encryption", "ideal", "co-located", "co-located-cc", "fca", "sca")
CORES = (1, 2, 4, 8)
KB, MB = 1 << 10, 1 << 20
#: The paper's megabytes of footprint; 1 MB there and here is 2**20 bytes.
COUNTER_CACHE = "encryption.counter_cache.bytes"
READ_LATENCY, WRITE_LATENCY = "medium.timing.tRCD_ns", "medium.timing.tWR_ns"
#: Table 2.
READ_NS, WRITE_NS, CACHE_BYTES = 48.0, 300.0, MB


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run; sizes are bytes, latencies factors of Table 2's."""

    footprint: int = 100 * MB
    transaction_size: int = 64
    transactions: int = 20_000
    warmup: int = 10_000
    caches: tuple[int, ...] = (128 * KB, 256 * KB, 512 * KB, MB, 2 * MB, 4 * MB, 8 * MB)
    footprints: tuple[int, ...] = (100 * MB, 300 * MB, 1000 * MB)
    sizes: tuple[int, ...] = (64, 128, 256, 512, KB, 2 * KB, 4 * KB)
    latencies: tuple[float, ...] = (10, 4, 2, 1, 0.5, 0.25)
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
)


@dataclass(frozen=True, slots=True)
class Point:
    """One run: a program under a design, on so many cores, with these settings."""

    program: str
    design: str
    cores: int
    transaction_size: int
    footprint: int
    variant: Mapping[str, Scalar] = field(default_factory=dict)

    def trace(self, scale: Scale) -> str:
        """What results call the program with these sizes."""
        parts = [self.program]
        if self.transaction_size != scale.transaction_size:
            parts.append(written_size(self.transaction_size))
        if self.footprint != scale.footprint:
            parts.append(written_size(self.footprint))
        return " ".join(parts)

    def job(self, scale: Scale) -> Job:
        settings = ProgramSettings(
            scale.transactions, self.transaction_size, self.footprint, scale.seed
        )
        source = settings.source(self.program)
        return Job(self.trace(scale), source, self.design, dict(self.variant), copies=self.cores)


def written_size(size: int) -> str:
    """A size as people say it."""
    for unit, name in ((MB, "MB"), (KB, "KB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size}B"


# ---- the runs


def plan(scale: Scale, programs: Sequence[str] = PROGRAMS) -> list[Point]:
    """All runs that the figures need, each once, those of the most figures first."""

    def base(program: str, design: str, cores: int = 1, **more: Any) -> Point:
        sizes = {"transaction_size": scale.transaction_size, "footprint": scale.footprint}
        return Point(program, design, cores, **(sizes | more))

    points = [base(p, d, cores) for cores in CORES for p in programs for d in DESIGNS]
    points += [
        base(p, "sca", footprint=footprint, variant={COUNTER_CACHE: size})
        for footprint in scale.footprints
        for p in programs
        for size in scale.caches
    ]
    points += [
        base(p, design, transaction_size=size)
        for p in programs
        for size in scale.sizes
        for design in ("ideal", "sca")
    ]
    points += [
        base(p, design, variant=latency(key, nominal, factor))
        for p in programs
        for key, nominal in ((READ_LATENCY, READ_NS), (WRITE_LATENCY, WRITE_NS))
        for factor in scale.latencies
        for design in ("co-located", "sca")
    ]
    unique: dict[tuple[object, ...], Point] = {}
    for point in points:
        unique.setdefault(_identity(point), point)
    return list(unique.values())


def latency(key: str, nominal: float, factor: float) -> dict[str, Scalar]:
    """The setting for a latency of ``factor`` times Table 2's; none for Table 2's own."""
    return {} if factor == 1 else {key: nominal * factor}


def _identity(point: Point) -> tuple[object, ...]:
    variant = tuple(sorted(point.variant.items()))
    return (
        point.program,
        point.design,
        point.cores,
        point.transaction_size,
        point.footprint,
        variant,
    )


# ---- the evidence


class Evidence:
    """The runs of a results document by what distinguishes them: program, sizes, design, cores and
    settings. What a question leaves open is as in the program's plain runs.
    """

    def __init__(self, results: Results) -> None:
        sizes: dict[str, tuple[str, float, float]] = {}
        self.plain: dict[str, tuple[float, float]] = {}
        for trace in results.traces:
            program = trace.other.get("program")
            size, footprint = (
                trace.facts.get(f"{of}_bytes") for of in ("transaction", "footprint")
            )
            if not isinstance(program, str) or size is None or footprint is None:
                continue
            sizes[trace.name] = program, size, footprint
            if trace.name == program:
                self.plain[program] = size, footprint
        self._runs: dict[tuple[object, ...], Run] = {}
        for run in results.runs:
            if run.trace in sizes:
                key = (*sizes[run.trace], run.design, run.copies, run.variant_label)
                self._runs[key] = run
        self.programs = list(self.plain)

    @property
    def designs(self) -> list[str]:
        """Designs of plain runs, in the order of the runs."""
        plain = {(program, *sizes) for program, sizes in self.plain.items()}
        return list(dict.fromkeys(str(key[3]) for key in self._runs if key[:3] in plain))

    @property
    def cores(self) -> list[int]:
        return sorted({run.copies for run in self._runs.values()})

    def runs(self) -> list[Run]:
        return list(self._runs.values())

    def sizes(self) -> list[int]:
        """Transaction sizes that were run."""
        return sorted({int(str(key[1])) for key in self._runs})

    def footprints(self, setting: str) -> list[int]:
        """Footprints at which ``setting`` was varied."""
        varied = (key for key, run in self._runs.items() if set(run.variant) == {setting})
        return sorted({int(str(key[2])) for key in varied})

    def settings(self, name: str) -> list[float]:
        """Values to which runs set ``name`` alone."""
        runs = (run for run in self._runs.values() if set(run.variant) == {name})
        return sorted({float(run.variant[name]) for run in runs})

    def run(
        self,
        program: str,
        design: str,
        cores: int = 1,
        transaction_size: int | None = None,
        footprint: int | None = None,
        variant: Mapping[str, Scalar] | None = None,
    ) -> Run | None:
        if program not in self.plain:
            return None
        size, bytes_ = self.plain[program]
        variant = variant or {}
        label = " ".join(f"{key}={variant[key]}" for key in sorted(variant))
        size = size if transaction_size is None else transaction_size
        bytes_ = bytes_ if footprint is None else footprint
        return self._runs.get((program, size, bytes_, design, cores, label))

    def each(
        self, of: Callable[[Run, Run], float | None], a: Mapping[str, Any], b: Mapping[str, Any]
    ) -> dict[str, float | None]:
        """``of`` two runs of each program, which ``a`` and ``b`` select."""
        values: dict[str, float | None] = {}
        for program in self.programs:
            first, second = self.run(program, **a), self.run(program, **b)
            values[program] = None if first is None or second is None else of(first, second)
        return values


def runtime_ratio(run: Run, over: Run) -> float | None:
    """Time a transaction of ``run`` relative to ``over``."""
    return m.divide(over.metric("transactions_per_second"), run.metric("transactions_per_second"))


def overhead(run: Run, over: Run) -> float | None:
    """Time a transaction of ``run`` beyond that of ``over``, relative to it."""
    ratio = runtime_ratio(run, over)
    return None if ratio is None else ratio - 1


def speedup(run: Run, over: Run) -> float | None:
    """Transactions a second of ``run`` beyond those of ``over``, relative to them."""
    return overhead(over, run)


def loss(run: Run, over: Run) -> float | None:
    """Transactions a second that ``run`` lacks to ``over``, relative to them."""
    ratio = runtime_ratio(over, run)
    return None if ratio is None else 1 - ratio


def per_transaction(run: Run, metric: str) -> float | None:
    return m.divide(run.metric(metric), run.metric("transactions"))


def traffic_ratio(run: Run, over: Run, metric: str) -> float | None:
    return m.divide(per_transaction(run, metric), per_transaction(over, metric))


def miss_rate(run: Run) -> float | None:
    """Look-ups in the counter cache that missed."""
    hits = run.metric("counter_cache_hit_rate")
    return None if hits is None else 1 - hits


BYTES, ACCESSES = "medium_write_bytes", "medium_writes"


Finder = Callable[[Evidence, Claim], Found]


def _runtime(over: str, unit: Unit = "x") -> Finder:
    def find(evidence: Evidence, claim: Claim) -> Found:
        of = runtime_ratio if unit == "x" else speedup
        return Found(
            evidence.each(of, {"design": claim.design}, {"design": over}),
            unit,
            f"time a transaction of {claim.design} / of {over}, one core"
            if unit == "x"
            else f"transactions a second of {claim.design} / of {over} - 1, one core",
            f"runs of {claim.design} and {over} on one core",
        )

    return find


def _speedup_on(cores: int) -> Finder:
    def find(evidence: Evidence, claim: Claim) -> Found:
        a, b = {"design": claim.design, "cores": cores}, {"design": "fca", "cores": cores}
        words = f"{cores} {'core' if cores == 1 else 'cores'}"
        return Found(
            evidence.each(speedup, a, b),
            "%",
            f"transactions a second of {claim.design} / of fca - 1, {words}",
            f"runs of {claim.design} and fca on {words}",
        )

    return find


def _loss_to_ideal(evidence: Evidence, claim: Claim) -> Found:
    values: dict[str, float | None] = {}
    for cores in evidence.cores:
        a, b = {"design": claim.design, "cores": cores}, {"design": "ideal", "cores": cores}
        for program, value in evidence.each(loss, a, b).items():
            values[f"{program} ×{cores}"] = value
    return Found(
        values,
        "%",
        "1 - transactions a second / those of ideal, over all programs and numbers of cores",
        f"runs of {claim.design} and ideal",
    )


def _traffic(over: str, gain: bool = False) -> Finder:
    def find(evidence: Evidence, claim: Claim) -> Found:
        def of(metric: str) -> Callable[[Run, Run], float | None]:
            def reduction(run: Run, base: Run) -> float | None:
                ratio = traffic_ratio(run, base, metric)
                if ratio is None:
                    return None
                return 1 / ratio - 1 if gain else 1 - ratio

            return reduction

        a, b = {"design": claim.design}, {"design": over}
        what = f"{over}'s bytes / bytes - 1" if gain else f"1 - bytes / {over}'s bytes"
        return Found(
            evidence.each(of(BYTES), a, b),
            "%",
            f"{what} written to the medium a transaction; a counter counts as 8 bytes",
            f"runs of {claim.design} and {over} on one core",
            {"in accesses, a line of counters as one": evidence.each(of(ACCESSES), a, b)},
        )

    return find


def _counter_cache(footprint: int, miss: bool) -> Finder:
    def find(evidence: Evidence, claim: Claim) -> Found:
        def selected(size: int) -> dict[str, Any]:
            variant = {COUNTER_CACHE: size}
            return {"design": claim.design, "footprint": footprint, "variant": variant}

        def drop(large: Run, small: Run) -> float | None:
            rates = miss_rate(large), miss_rate(small)
            return None if rates[0] is None or rates[1] is None else rates[1] - rates[0]

        of = drop if miss else speedup
        what = "counter-cache miss rate at 128 KB minus at 8 MB"
        return Found(
            evidence.each(of, selected(8 * MB), selected(128 * KB)),
            "pp" if miss else "%",
            what if miss else "transactions a second with 8 MB / with 128 KB of counter cache - 1",
            f"runs of {claim.design} over {written_size(footprint)} with both counter caches"
            " (--quick leaves the larger footprints out)",
        )

    return find


def _transaction_size(size: int, only: str | None = None) -> Finder:
    def find(evidence: Evidence, claim: Claim) -> Found:
        a = {"design": claim.design, "transaction_size": size}
        b = {"design": "ideal", "transaction_size": size}
        values = evidence.each(overhead, a, b)
        if only is not None:
            values = {only: values.get(only)}
        return Found(
            values,
            "%",
            f"time a transaction / ideal's - 1, items of {written_size(size)}",
            f"runs of {claim.design} and ideal with items of {written_size(size)}",
        )

    return find


def _medium_latency(key: str, nominal: float, factor: float) -> Finder:
    def find(evidence: Evidence, claim: Claim) -> Found:
        variant = latency(key, nominal, factor)
        a = {"design": claim.design, "variant": variant}
        b = {"design": "co-located", "variant": variant}
        return Found(
            evidence.each(speedup, a, b),
            "%",
            f"transactions a second of {claim.design} / of co-located - 1, "
            f"{key.split('.')[-1].removesuffix('_ns')} of {nominal * factor:g} ns",
            f"runs of {claim.design} and co-located at that latency",
        )

    return find


#: How each metric of SCA's claims is computed from results.
METRICS: dict[str, Finder] = {
    "runtime_vs_no-encryption": _runtime("no-encryption"),
    "runtime_over_sca": _runtime("sca"),
    "speedup_over_sca": _runtime("sca", "%"),
    "speedup_over_fca_1_core": _speedup_on(1),
    "speedup_over_fca_2_cores": _speedup_on(2),
    "speedup_over_fca_4_cores": _speedup_on(4),
    "speedup_over_fca_8_cores": _speedup_on(8),
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
    "speedup_over_co-located_read_latency_10x_slower": _medium_latency(READ_LATENCY, READ_NS, 10),
    "speedup_over_co-located_read_latency_4x_faster": _medium_latency(READ_LATENCY, READ_NS, 0.25),
    "speedup_over_co-located_write_latency_10x_slower": _medium_latency(
        WRITE_LATENCY, WRITE_NS, 10
    ),
    "speedup_over_co-located_write_latency_4x_faster": _medium_latency(
        WRITE_LATENCY, WRITE_NS, 0.25
    ),
}


def claims(results: Results) -> list[ClaimRow]:
    """Every claim of the paper beside our figure."""
    evidence = Evidence(results)
    assumed = tuple(m.assumed_by(results.runs, "time"))
    rows = []
    for claim in load_claims("sca"):
        found = METRICS[claim.metric](evidence, claim)
        rows.append(found.beside(claim, len(found.values), assumed))
    return rows


def stand_ins(scale: Scale) -> str:
    """One sentence on what was run."""
    return (
        "The five programs are written anew for Sardonyx; the paper gives neither their sources "
        "nor, for Figs. 12-14, their sizes: here structures of "
        f"{written_size(scale.footprint)} and items of {written_size(scale.transaction_size)} a "
        f"core, {scale.transactions:,} transactions of which {scale.warmup:,} warm up."
    )


def document(
    results: Results, rows: Sequence[ClaimRow], scale: Scale, table_1: Table1
) -> dict[str, Any]:
    """The whole reproduction as JSON."""
    return {
        "paper": "sca",
        "stand_ins": stand_ins(scale),
        "table_1": table_1.to_document(),
        "claims": claims_document(rows),
        "results": results.to_document(),
    }
