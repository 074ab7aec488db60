"""Reproducing ReCAM: which runs its figures need, and our figure for each of its claims.

The resistive CAM is simulated with the paper's cycle counts; a conventional store of ours, in the
place of the paper's opendedup, stores each stream, and its time is counted by assumed costs of the
paper's server. Energies rest on brackets, which the paper's circuit simulation would narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sardonyx.papers.claims import Claim, ClaimRow, Found, claim_rows
from sardonyx.papers.reproduction import Asked, Plan, Reproduction
from sardonyx.papers.sampling import Sampled
from sardonyx.questions import Stream
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Setting, texts
from sardonyx.runs.measures import Aspect, divide, of_known
from sardonyx.runs.results import Results, Run, Scalar
from sardonyx.runs.stores import GB, KB, StoreDesign, StorePoint, StoreQuestion, StoreRuns
from sardonyx.vary.ranges import Range

MB = KB * KB
#: The paper's store and its rival.
RECAM, RIVAL = StoreDesign(name="recam"), StoreDesign(name="conventional")
DESIGNS = (RECAM.name, RIVAL.name)
BLOCKS = (1 * KB, 2 * KB, 4 * KB, 8 * KB)
#: The share of duplicates of the paper's figure in words (Sec. IV).
NOMINAL = 0.3
#: The share of reads of the appliance that the paper names.
READS = 0.7
#: The bytes written whose energy Fig. 10 shows.
FIG_10 = 50 * GB
#: An overwritten block is written this often, for wear.
TIMES_OVER = 16
#: The bits of the fingerprint whose row would come first.
FINGERPRINT = 40

COMPARE, FIRST, PRINT = "recam.compare", "recam.first", "recam.fingerprint_bits"
ADDRESS, FREE_ROW = "recam.address_cycles", "recam.free_row_compare"
WIDTH, MODULES = "recam.row_bits", "recam.modules"
DEDUPLICATE, VERIFY = "conventional.deduplicate", "conventional.verify"


@dataclass(frozen=True, slots=True)
class Scale:
    """How many bytes are written: simulated at a point of Figs. 9 and 10, simulated beside them,
    and really written by the conventional store.
    """

    simulated: int = 50 * GB
    beside: int = 2 * GB
    written: int = 2 * GB
    duplicates: Sequence[float] = (0.0, 0.3, 0.6, 0.9)
    seed: int = 0


FULL = Scale()
QUICK = Scale(simulated=1 * GB, beside=512 * MB, written=128 * MB, duplicates=(0.0, 0.3, 0.9))


# ---- the runs


def name(block: int, duplicates: float = NOMINAL, more: str = "") -> str:
    """What results call a workload."""
    return f"{block // KB} KB, {duplicates:.0%} duplicates" + (f", {more}" if more else "")


def points(scale: Scale, array: StoreDesign, on_files: StoreDesign) -> list[StorePoint]:
    """All runs that the figures need."""

    def stream(of: int, duplicates: float, **more: Any) -> Stream:
        return Stream(bytes=of, duplicates=duplicates, seed=scale.seed, **more)

    def recam(
        block: int,
        duplicates: float = NOMINAL,
        of: int = scale.beside,
        variant: Mapping[str, Scalar] | None = None,
        more: str = "",
        **workload: Scalar,
    ) -> StorePoint:
        design = array.having(texts(variant or {}))
        question = StoreQuestion(
            design=design, workload=stream(of, duplicates, **workload), block_bytes=block
        )
        return StorePoint(name(block, duplicates, more), question, variant or {})

    def rival(
        block: int,
        duplicates: float = NOMINAL,
        variant: Mapping[str, Scalar] | None = None,
        more: str = "",
        **workload: Scalar,
    ) -> StorePoint:
        question = StoreQuestion(
            design=on_files.having(texts(variant or {})),
            workload=stream(scale.written, duplicates, **workload),
            block_bytes=block,
        )
        return StorePoint(name(block, duplicates, more), question, variant or {})

    shares = scale.duplicates
    found = [recam(block, share, scale.simulated) for block in BLOCKS for share in shares]
    found += [recam(block, variant={COMPARE: "single"}) for block in BLOCKS]
    found += [recam(block, of=scale.simulated, variant={FIRST: "starts"}) for block in BLOCKS]
    large = BLOCKS[-1]
    variants: list[dict[str, Scalar]] = [{ADDRESS: 1}, {FREE_ROW: True}, {PRINT: FINGERPRINT}]
    variants += [{WIDTH: bits} for bits in (128, 512, 1024)]
    found += [recam(large, variant=variant) for variant in variants]
    reads = f"{READS:.0%} reads"
    found += [recam(large, more=reads, reads=READS)]
    found += [recam(large, variant={MODULES: 8}, more=reads, reads=READS)]
    found += [recam(large, more="encrypted", encrypted=True)]
    found += [recam(large, more=f"{TIMES_OVER} times over", span=scale.beside // TIMES_OVER)]
    found += [rival(block, share) for block in BLOCKS for share in shares]
    found += [rival(block, variant={DEDUPLICATE: False}) for block in BLOCKS]
    found += [rival(large, variant={VERIFY: False})]
    found += [rival(large, more=reads, reads=READS)]
    found += [rival(large, more="encrypted", encrypted=True)]
    return found


# ---- what is derived


class Stores:
    """The runs of a reproduction, by what they are."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._runs = {(run.trace, run.design, run.variant_label): run for run in results.runs}
        known = {info["block_bytes"] for trace in results.traces if (info := trace.facts)}
        self.blocks = sorted(int(block) for block in known if block is not None)
        plain = [run for run in results.runs if not run.variant and run.trace.count(",") == 1]
        rates = {t.name: t.facts.get("duplicate_rate") for t in results.traces}
        shares = {rates[run.trace] for run in plain}
        self.shares = sorted(share for share in shares if share is not None)

    def run(
        self,
        design: str,
        block: int,
        duplicates: float = NOMINAL,
        variant: Mapping[str, Scalar] | None = None,
        more: str = "",
    ) -> Run | None:
        """The run, if there is one."""
        label = " ".join(f"{key}={value}" for key, value in sorted((variant or {}).items()))
        return self._runs.get((name(block, duplicates, more), design, label))


def metric(run: Run | None, of: str) -> float | None:
    return None if run is None else run.metric(of)


def energy(run: Run | None, end: str = "") -> float | None:
    """Joules for Fig. 10's 50 GB, in proportion to what was written; ``end`` is low or high."""
    nanojoules = metric(run, "energy_nj" + (f"_{end}" if end else ""))
    scaled = of_known(lambda nj, b: divide(nj * FIG_10, b * 1e9), nanojoules, metric(run, "bytes"))
    return scaled


# ---- the claims

Finder = Callable[[Stores, Claim], Found]


def _found(
    values: Mapping[str, float | None],
    unit: str,
    note: str,
    runs: Sequence[Run | None],
    readings: Mapping[str, float | None],
    aspect: Aspect = "time",
) -> Found:
    return Found(
        values,
        "x" if unit == "x" else "",
        note,
        "runs of both stores",
        readings,
        aspect,
        [run for run in runs if run is not None],
    )


def _throughput(stores: Stores, _: Claim) -> Found:
    run = stores.run("recam", 8 * KB)
    one = stores.run("recam", 8 * KB, variant={ADDRESS: 1})
    free = stores.run("recam", 8 * KB, variant={FREE_ROW: True})
    return _found(
        {"8 KB": metric(run, "writes_per_second")},
        "",
        "writes a second at 1 GHz by Sec. III-C's cycles, two cycles for each of LBA and PA",
        [run],
        {
            "one cycle for each of LBA and PA": metric(one, "writes_per_second"),
            "with Fig. 6's compare for an empty row": metric(free, "writes_per_second"),
        },
    )


def _appliance(stores: Stores, _: Claim) -> Found:
    more = f"{READS:.0%} reads"
    rival = stores.run("conventional", 8 * KB, more=more)
    ours = stores.run("recam", 8 * KB, more=more)
    many = stores.run("recam", 8 * KB, more=more, variant={MODULES: 8})
    return _found(
        {"8 KB": metric(rival, "operations_per_second")},
        "",
        "the appliance is not here: the conventional store's operations a second by its costs, "
        "which the paper calls similar, 8 KB blocks",
        [rival],
        {
            "recam on the same stream": metric(ours, "operations_per_second"),
            "recam of 8 modules": metric(many, "operations_per_second"),
        },
    )


def _speedup(stores: Stores, _: Claim) -> Found:
    values: dict[str, float | None] = {}
    runs: list[Run | None] = []
    for block in stores.blocks:
        for share in stores.shares:
            ours, rival = (stores.run(d, block, share) for d in ("recam", "conventional"))
            ratio = divide(metric(ours, "writes_per_second"), metric(rival, "writes_per_second"))
            values[name(block, share)] = ratio
            runs += [ours, rival]
    known = [value for value in values.values() if value is not None]
    nominal = stores.run("recam", 8 * KB)
    return _found(
        values,
        "x",
        "writes a second of recam / of the conventional store, mean over blocks and shares of "
        "duplicates; the conclusion says `up to 100x`, and 2.2 M over 150 K is 14.7x",
        runs,
        {
            "the largest": max(known, default=None),
            "the smallest": min(known, default=None),
            "our 8 KB, 30 % over the appliance's 150 K": divide(
                metric(nominal, "writes_per_second"), 150_000.0
            ),
        },
    )


def _compare_cycles(stores: Stores, _: Claim) -> Found:
    run = stores.run("recam", 4 * KB)
    cycles = divide(metric(run, "search_cycles"), metric(run, "writes"))
    return _found({"4 KB": cycles}, "", "cycles of search / writes", [], {}, "counts")


def _energy_ratio(block: int, design: str) -> Finder:
    other = "recam" if design == "conventional" else "conventional"

    def find(stores: Stores, _: Claim) -> Found:
        def ratio(share: float, a: str = "", b: str = "") -> float | None:
            mine, theirs = (stores.run(d, block, share) for d in (design, other))
            return divide(energy(mine, a), energy(theirs, b))

        runs = [stores.run(d, block, share) for d in (design, other) for share in stores.shares]
        ends = {
            "both at the brackets' lower ends": ("low", "low"),
            "both at the upper ends": ("high", "high"),
            f"{design} low, {other} high": ("low", "high"),
            f"{design} high, {other} low": ("high", "low"),
        }
        readings = {words: ratio(NOMINAL, *of) for words, of in ends.items()}
        small, large = (
            divide(*(energy(stores.run(d, size)) for d in DESIGNS))
            for size in (stores.blocks[0], stores.blocks[-1])
        )
        readings["what recam / conventional falls by from the smallest block to the largest"] = (
            divide(small, large)
        )
        return _found(
            {name(block, share): ratio(share) for share in stores.shares},
            "x",
            f"energy of {design} / of {other} at the brackets' middles; the brackets decide it",
            runs,
            readings,
            "energy",
        )

    return find


#: The computation of each metric of the claims from results.
METRICS: dict[str, Finder] = {
    "write_iops_8KB_blocks_30pct_duplicates": _throughput,
    "iops_all_flash_appliance": _appliance,
    "throughput_over_conventional_dedup": _speedup,
    "compare_cycles_4KB_block_256_bit_rows": _compare_cycles,
    "energy_over_conventional_1KB_blocks": _energy_ratio(1 * KB, "recam"),
    "energy_over_recam_8KB_blocks": _energy_ratio(8 * KB, "conventional"),
}


#: The text's claims on Fig. 10 without a figure: one store takes more than the other.
ORDER = (
    Claim(
        "recam",
        "Fig. 10 (text: slightly higher for smaller blocks)",
        "energy_over_conventional_1KB_blocks",
        "recam",
        "min",
        1.0,
        "order",
    ),
    Claim(
        "recam",
        "Fig. 10 (text: lower for larger blocks)",
        "energy_over_recam_8KB_blocks",
        "conventional",
        "min",
        1.0,
        "order",
    ),
)


def claims(comparison: Comparison) -> list[ClaimRow]:
    """Every claim of the paper beside our figure, and the order that it has in words."""
    of = Stores(comparison.results)

    def find(claim: Claim) -> Found:
        return METRICS[claim.metric](of, claim)

    return [*claim_rows("recam", find), *(find(claim).beside(claim) for claim in ORDER)]


def verdict(comparison: Comparison, rows: Sequence[ClaimRow]) -> tuple[str, ...]:
    """What holds, what does not, and what it depends on, from this run's figures."""
    ours = {row.claim.metric: row.ours for row in rows}
    of = Stores(comparison.results)
    large, cycles, speedup = (
        ours.get(metric)
        for metric in (
            "write_iops_8KB_blocks_30pct_duplicates",
            "compare_cycles_4KB_block_256_bit_rows",
            "throughput_over_conventional_dedup",
        )
    )
    ends = {
        end: [
            divide(*(energy(of.run(d, block), end) for d in DESIGNS))
            for block in (of.blocks[0], of.blocks[-1])
        ]
        for end in ("low", "", "high")
    }
    if None in (large, cycles, speedup) or any(None in pair for pair in ends.values()):
        return ("The runs that a verdict needs are missing.",)
    held = [
        words
        for end, words in {"low": "lower ends", "": "middles", "high": "upper ends"}.items()
        if (pair := ends[end])[0] is not None and pair[1] is not None and pair[0] > 1 > pair[1]
    ]
    return (
        f"By the paper's own cycles the array writes {large:,.0f} blocks of 8 KB a second (the "
        f"paper 2.2 million) and compares one of 4 KB in {cycles:.0f} cycles (128).",
        f"Over a conventional store it is {speedup:.3g} times as fast on the mean (the paper 100); "
        "that store's time is counted by assumed costs, and the block's size decides.",
        "Which store needs less energy depends on the energies of a bit, which the paper does not "
        "print: its order of Fig. 10, more for small blocks and less for large ones, appears at "
        + (f"the brackets' {' and '.join(held)} alone." if held else "no end of the brackets."),
    )


def stand_ins(scale: Scale) -> str:
    """What was run in the place of the paper's server, in a few sentences."""
    return (
        "The paper's opendedup on four Xeon E5-4650 with an Intel P3700 is replaced by a "
        "conventional store of our own, which really writes "
        f"{scale.written / GB:.3g} GB a point. Its time and energy are counted from what it does, "
        "by assumed costs of that server. The resistive CAM simulates "
        f"{scale.simulated / GB:.3g} GB a point in the figures of the paper and "
        f"{scale.beside / GB:.3g} GB elsewhere. Energies are shown for 50 GB, in proportion. "
        "Every energy rests on a bracket: 0.1 to 17 fJ a bit compared, 1 to 10 pJ a bit written, "
        "and of the rival's processors 16 to 520 W. What does not rest on them: cycles, "
        "throughput of the CAM, active rows, and the ratio of continuous to single compare."
    )


#: Choices that the paper and its energies leave open; all are *assumed*.
CHOICES = (
    Range("duplicates", str(NOMINAL), "the share of writes whose block is there", "0", "0.9"),
    Range("times over", "1", "how often each block is written", "1", "16", whole=True),
    Range("written", str(64 * MB), "bytes written", str(32 * MB), str(128 * MB), whole=True),
    Range("recam.compared_bit_fj", "1.3", "published cells", "0.1", "17"),
    Range("recam.written_bit_fj", "3162", "1 to 10 pJ a bit of resistive memory", "1000", "10000"),
    Range("recam.address_cycles", "2", "Sec. III-C: 1-2, depending on the width", others=("1",)),
    Range("recam.first", "rows", "what the first compare precharges", others=("starts",)),
    Range("recam.overwrite", "deletes", "the paper has no overwrite", others=("searches",)),
    Range("conventional.cores", "1", "the server has four times eight", "1", "32", whole=True),
    Range("conventional.request_cycles", "15811", "2 to 19 us of a file system", "5000", "50000"),
    Range("conventional.hash_cycles_per_byte", "6.2", "OpenSSL on Sandy Bridge", "4.99", "7.7"),
    Range("conventional.compare_cycles_per_byte", "0.32", "by vectors, or by bytes", "0.1", "1"),
    Range("conventional.lookup_cycles", "949", "one to ten misses of a cache", "300", "3000"),
    Range("conventional.fetch_us", "44.7", "a P3700's read, to five", "20", "100"),
    Range("conventional.overlap", "false", "whether requests overlap", others=("true",)),
    Range("conventional.processor_w", "92", "a core's share to four packages", "16.25", "520"),
    Range("conventional.memory_w", "8.5", "one memory module to eight", "3", "24"),
    Range(
        "conventional.cache_entries",
        str(1 << 18),
        "the paper gives no cache for 2 GB of data",
        str(1 << 14),
        str(1 << 20),
        whole=True,
    ),
)


def sampled(asked: Asked) -> Sampled:
    """Both stores at every size of block, over what the paper leaves open."""
    seed = Range("seed", str(asked.seed), "of the stream's contents", "0", "999", whole=True)

    def runs(values: Mapping[str, str], keys: Sequence[Setting]) -> StoreRuns:
        written = int(values["written"])
        stream = Stream(
            bytes=written,
            duplicates=float(values["duplicates"]),
            seed=int(values["seed"]),
            span=0 if values["times over"] == "1" else written // int(values["times over"]),
        )
        ours, rival = (design.having(keys) for design in (RECAM, RIVAL))
        plain = [(design, block, 0.0) for design in (ours, rival) for block in BLOCKS]
        reading = [(design, BLOCKS[-1], READS) for design in (ours, rival)]
        return StoreRuns(
            [
                # Each choice is made where the paper has 30 % of duplicates, whatever its cell has.
                StorePoint(
                    name(block, more=f"{reads:.0%} reads" if reads else ""),
                    StoreQuestion(
                        design=design, workload=stream.replace(reads=reads), block_bytes=block
                    ),
                )
                for design, block, reads in [*plain, *reading]
            ]
        )

    note = (
        "A cell is both stores at blocks of 1, 2, 4 and 8 KB. The conventional store's time is "
        "counted."
    )
    return Sampled((), (*CHOICES, seed), runs, claims, "", asked.overrides, note)


class ReCam:
    """Figs. 9 and 10, Sec. IV's reads, and what the paper does not look at."""

    name = "recam"
    machine = "recam"
    takes: tuple[str, ...] = ()
    instead = (
        "; set the array's keys, as in --set recam.compared_bit_fj=1; for files and block traces "
        "there is `sardonyx store compare`"
    )

    def plan(self, asked: Asked) -> Plan:
        scale = replace(QUICK if asked.quick else FULL, seed=asked.seed)
        designs = [design.having(asked.overrides, "--set ") for design in (RECAM, RIVAL)]
        return Plan(
            StoreRuns(points(scale, *designs)),
            stand_ins(scale),
            claims,
            verdict=verdict,
            sampled=sampled(asked),
        )


REPRODUCTION: Reproduction = ReCam()
