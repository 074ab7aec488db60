"""Reproducing PageForge: which runs its tables and figures need, and our figure for each claim.

Applications in the manner of TailBench stand in for TailBench, generated virtual machines for the
paper's guests; merging settles over all pages, then a window is simulated from the cores down.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sardonyx import _core
from sardonyx.papers.claims import Claim, ClaimRow, Found, Unit, claim_rows, written_claim
from sardonyx.papers.reproduction import Asked, Cell, Exhibit, Plan, Reproduction
from sardonyx.papers.sampling import Sampled
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Setting
from sardonyx.runs.measures import arithmetic_mean, divide, of_known
from sardonyx.runs.results import Results, Run, Scalar
from sardonyx.runs.sources import unknown
from sardonyx.runs.tailbench import APPLICATIONS, MERGING, TimedPoint, TimedRuns
from sardonyx.vary.ranges import Range

#: The designs that the paper compares.
DESIGNS = ("none", "ksm", "pageforge")
#: Figures of the paper's McPAT (Table 5, 6.4.2): square millimetres and watts.
QUOTED: dict[str, tuple[float, float]] = {
    "Scan Table": (0.010, 0.028),
    "ALU": (0.019, 0.009),
    "PageForge in all": (0.029, 0.037),
    "an in-order core like ARM A9": (0.77, 0.37),
    "the server of Table 2": (138.6, 164.0),
}
#: Applications whose variants and loads are run: one with short queries, and one with long ones.
SHORT, LONG = "silo", "img_dnn"
#: The application whose queries take about a second.
SLOWEST = "sphinx"
#: Queries a second as shares of those of Table 3, which is run too (6.3).
LOADS = (0.5, 1.4)
#: Variants of Secs. 3.5, 4.1 and 4.3, by design and in a few words.
VARIANTS: dict[str, tuple[str, dict[str, Scalar]]] = {
    "a module in each controller": ("pageforge", {"pageforge.modules": 2}),
    "the module at the network": ("pageforge", {"pageforge.module": "network"}),
    "a cache of the candidate page": ("pageforge", {"pageforge.candidate_cache": True}),
    "KSM on an in-order core": ("ksm", {"ksm.core": "in-order"}),
    "KSM past the caches": ("ksm", {"ksm.access": "uncacheable"}),
}
#: The thread keeps a core for a whole interval of 400 pages, whoever waits for it.
KEPT: dict[str, Scalar] = {"thread.slice_us": 20_000, "thread.preempted": False}
#: Pages begin alike for many lines, in few families.
FAR: dict[str, Scalar] = {"vms.families": 4, "vms.alike_lines": 60}
#: One changed assumption at a time, to find what a gap depends on.
CAUSES: dict[str, tuple[str, dict[str, Scalar]]] = {
    "KSM compares whole words": ("ksm", {"ksm.compare_line_instructions": 40}),
    "KSM hashes 1 KB": ("ksm", {"ksm.checksum": "jhash2-1k"}),
    "KSM's nodes cost an eighth": ("ksm", {"ksm.node_instructions": 100}),
    "KSM moves to a core drawn": ("ksm", {"thread.placement": "drawn"}),
    "KSM moves to the next core": ("ksm", {"thread.placement": "next"}),
    "each query that wakes a guest preempts KSM": ("ksm", {"thread.preempted_after_us": 0}),
    "no query preempts KSM": ("ksm", {"thread.preempted": False}),
    "KSM keeps a core for an interval": ("ksm", KEPT),
    "while pages merge, no query preempts KSM": ("ksm", MERGING | {"thread.preempted": False}),
    "while pages merge, comparisons read far, KSM": ("ksm", MERGING | FAR),
    "while pages merge, comparisons read far, PageForge": ("pageforge", MERGING | FAR),
}
#: Load and stay together, for every application: pages merge, and KSM's thread keeps a core for an
#: interval.
BOTH = "while pages merge, KSM keeps a core for an interval"
#: The phase of the window and the stay of the thread, next to the paper's; the first two under each
#: design.
PHASES: dict[str, dict[str, Scalar]] = {
    "settled": {},
    "while pages merge": MERGING,
    "and a core is kept for an interval": MERGING | KEPT,
}
#: Causes that are run for long queries too.
OF_LONG = ("no query preempts KSM", "KSM keeps a core for an interval")
#: The window of the application with second-long queries is this many times as long as the others'.
LONGER = 2


@dataclass(frozen=True, slots=True)
class Scale:
    """What is simulated: a window, machines' size, and for which application variants are run."""

    window_ms: int
    warmup_ms: int
    vm_mib: int
    varied: tuple[str, ...]

    @property
    def sets(self) -> tuple[Setting, ...]:
        return (
            ("window.ms", str(self.window_ms)),
            ("window.warmup_ms", str(self.warmup_ms)),
            ("vms.mib", str(self.vm_mib)),
        )

    def own(self, application: str) -> tuple[Setting, ...]:
        """What is set for an application alone."""
        longer = (("window.ms", str(LONGER * self.window_ms)),)
        return longer if application == SLOWEST else ()


FULL = Scale(360, 30, 64, (SHORT, LONG))
QUICK = Scale(40, 8, 24, (SHORT,))
#: The scale of a cell of the sample, which has hundreds of them.
CELL = Scale(20, 4, 16, ())
#: The number of cells, and of a quick sample: one takes half a minute or more.
CELLS = (40, 8)


def points(applications: Sequence[str], scale: Scale) -> list[TimedPoint]:
    """All runs that the figures need."""
    found = [TimedPoint(name, design) for name in applications for design in DESIGNS]
    for name in (name for name in scale.varied if name in applications):
        of_long = {words: CAUSES[words] for words in OF_LONG}
        for design, variant in (VARIANTS | CAUSES if name == SHORT else of_long).values():
            found.append(TimedPoint(name, design, variant))
    found += [TimedPoint(name, d, MERGING) for name in applications for d in ("ksm", "pageforge")]
    found += [TimedPoint(name, "ksm", MERGING | KEPT) for name in applications]
    return found + [
        TimedPoint(SHORT, design, load)
        for load in loads(SHORT)
        for design in DESIGNS
        if SHORT in applications and SHORT in scale.varied
    ]


#: Queries a second of Table 3.
QUERIES = dict(zip(APPLICATIONS, (500, 500, 100, 2000, 1), strict=True))


def loads(application: str) -> list[dict[str, Scalar]]:
    """Variants of an application that is asked more or less often."""
    key = f"{application}.queries_per_second"
    return [{key: round(share * QUERIES[application])} for share in LOADS]


# ---- what is derived


class Costs:
    """The runs of a reproduction, by what they are."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._runs = {(run.trace, run.design, run.variant_label): run for run in results.runs}
        self.applications = [trace.name for trace in results.traces]

    def run(
        self, application: str, design: str, variant: Mapping[str, Scalar] | None = None
    ) -> Run | None:
        chosen = variant or {}
        label = " ".join(f"{key}={chosen[key]}" for key in sorted(chosen))
        return self._runs.get((application, design, label))

    def metric(
        self,
        application: str,
        design: str,
        name: str,
        variant: Mapping[str, Scalar] | None = None,
    ) -> float | None:
        run = self.run(application, design, variant)
        return None if run is None else run.metric(name)

    def over_none(
        self,
        application: str,
        design: str,
        name: str,
        variant: Mapping[str, Scalar] | None = None,
    ) -> float | None:
        """A metric over that without merging; of a load, without merging under the same load."""
        run = self.run(application, design, variant)
        none = self.run(application, "none", variant) or self.run(application, "none")
        return None if run is None or none is None else divide(run.metric(name), none.metric(name))

    def runs(self, *designs: str) -> list[Run]:
        return [run for run in self.results.runs if run.design in designs and not run.variant]


Finder = Callable[[Costs, Claim], Found]
SOJOURN, TAIL = "geomean_sojourn_ns", "p95_sojourn_ns"
#: The reading of a claim whose window lies while pages still merge.
IN_SWING = "while pages merge"
#: The reading in which the thread also keeps a core for an interval.
STAYS = "while pages merge and a core is kept"
NEEDS = "a run of the application under the design"


def _plain(name: str, unit: Unit, note: str, design: str = "") -> Finder:
    """A metric of the claim's design, or of another: a value for each application."""

    def find(costs: Costs, claim: Claim) -> Found:
        chosen = design or claim.design
        values = {app: costs.metric(app, chosen, name) for app in costs.applications}
        readings = {
            words: {app: costs.metric(app, chosen, name, variant) for app in costs.applications}
            for words, variant in ((IN_SWING, MERGING), (STAYS, MERGING | KEPT))
        }
        return Found(values, unit, note, NEEDS, readings, runs=costs.runs(chosen))

    return find


def _ratio(name: str, note: str, only: str = "") -> Finder:
    def find(costs: Costs, claim: Claim) -> Found:
        chosen = [only] if only else costs.applications
        values = {app: costs.over_none(app, claim.design, name) for app in chosen}
        readings: dict[str, Mapping[str, float | None] | float | None] = {
            words: {app: costs.over_none(app, claim.design, name, variant) for app in chosen}
            for words, variant in ((IN_SWING, MERGING), (STAYS, MERGING | KEPT))
        }
        for words, (design, variant) in (CAUSES | VARIANTS).items():
            for app in chosen:
                if design == claim.design and costs.run(app, design, variant):
                    readings[f"{app}, {words}"] = costs.over_none(app, design, name, variant)
        return Found(values, "x", note, NEEDS, readings, runs=costs.runs("none", claim.design))

    return find


def _one(name: str, application: str) -> Finder:
    """A cell of Table 4."""

    def find(costs: Costs, claim: Claim) -> Found:
        values = {application: costs.metric(application, claim.design, name)}
        note = "of the stand-in for the application"
        readings = {IN_SWING: costs.metric(application, claim.design, name, MERGING)}
        return Found(values, "%", note, NEEDS, readings, runs=costs.runs(claim.design))

    return find


def _keys(costs: Costs, _: Claim) -> Found:
    def more(app: str) -> float | None:
        ecc, jhash = (costs.metric(app, d, "key_matches") for d in ("pageforge", "ksm"))
        return of_known(lambda a, b: a - b, ecc, jhash)

    def over_a_kilobyte(app: str) -> float | None:
        variant = CAUSES["KSM hashes 1 KB"][1]
        ecc = costs.metric(app, "pageforge", "key_matches")
        return of_known(lambda a, b: a - b, ecc, costs.metric(app, "ksm", "key_matches", variant))

    note = (
        "keys that match of PageForge less those of KSM, which hashes whole pages, over all "
        "comparisons of two passes, between which vms.churn_permille of the pages that stand once "
        "are written; real guests change as little (docs/papers/pageforge.md)"
    )
    return Found(
        {app: more(app) for app in costs.applications},
        "%",
        note,
        NEEDS,
        {
            "false matches of ECC keys": costs_mean(costs, "pageforge", "key_false_matches"),
            "beside jhash2 over 1 KB": {app: over_a_kilobyte(app) for app in costs.applications},
        },
        "counts",
        costs.runs("ksm", "pageforge"),
    )


def costs_mean(costs: Costs, design: str, name: str) -> float | None:
    """A metric's mean over the applications."""
    return arithmetic_mean(costs.metric(app, design, name) for app in costs.applications)


def _deviation(costs: Costs, _: Claim) -> Found:
    cycles = [costs.metric(app, "pageforge", "scan_table_cycles") for app in costs.applications]
    known = [value for value in cycles if value is not None]
    value = statistics.pstdev(known) if len(known) > 1 else None
    return Found(
        {"over the applications": value},
        "",
        "deviation over the applications' means",
        "two applications under pageforge",
        {
            "within an application, mean": costs_mean(
                costs, "pageforge", "scan_table_cycles_deviation"
            )
        },
        runs=costs.runs("pageforge"),
    )


MIX = "an input where machines are generated: their shares are Fig. 7's (vms.*)"
TABLE_4: dict[str, tuple[str, str]] = {
    "ksm_cycles_share_avg_core": ("thread_share_mean", "of all cores' cycles"),
    "ksm_cycles_share_max_core": (
        "thread_share_most",
        "of the core that runs the thread most; the scheduler's moves are assumed",
    ),
    "page_compare_share_of_ksm": ("thread_compare_share", "of the thread's time"),
    "hash_share_of_ksm": (
        "thread_hash_share",
        "of the thread's time; jhash2 over the page, as the kernel of the paper's host has it",
    ),
    "l3_miss_rate": (
        "llc_miss_rate",
        "accesses that the last-level cache does not answer; without merging it is an input: the "
        "applications' cold accesses are chosen for it",
    ),
}
#: The computation of each metric of the claims from results.
METRICS: dict[str, Finder] = {
    "footprint_saving": _plain("saving", "%", "page frames saved, over all pages"),
    "unmergeable_pages": _plain("unmergeable_pages", "%", MIX, "pageforge"),
    "mergeable_zero_pages": _plain("mergeable_zero_pages", "%", MIX, "pageforge"),
    "mergeable_nonzero_pages": _plain("mergeable_nonzero_pages", "%", MIX, "pageforge"),
    "merged_nonzero_pages_after": _plain("merged_nonzero_frames", "%", MIX),
    "extra_false_positive_key_matches_vs_jhash": _keys,
    **{name: _plain(of, "%", note) for name, (of, note) in TABLE_4.items()},
    **{f"{name}_{app}": _one(of, app) for name, (of, _) in TABLE_4.items() for app in APPLICATIONS},
    "mean_sojourn_latency_vs_baseline": _ratio(
        SOJOURN, "geometric mean over the machines, over that without merging"
    ),
    "p95_sojourn_latency_vs_baseline": _ratio(TAIL, "of all machines' queries pooled"),
    "p95_sojourn_latency_vs_none_silo_at_least": _ratio(
        TAIL, "the paper: more than five times", "silo"
    ),
    "memory_bandwidth_GBps_most_intensive_phase": _plain(
        "bandwidth_in_phase_gb_s",
        "",
        "the window.sample_us in which merging asks for most lines; without merging the same time "
        "as KSM's",
    ),
    **{
        f"ksm_{part}_cycles_a_page": _plain(
            f"thread_{part}_cycles_a_page",
            "",
            "the paper's follows from Table 4's shares: with 5 ms of sleep between intervals of "
            "400 pages, 6.8 % of ten cores are 53,100 cycles a page",
        )
        for part in ("compare", "hash", "other")
    },
    "scan_table_cycles": _plain("scan_table_cycles", "", "a filling of the Scan Table, 2 GHz"),
    "os_check_period_cycles": _plain("check_period_cycles", "", "an input"),
    "scan_table_cycles_std_dev_over_applications": _deviation,
}


def claims(comparison: Comparison) -> list[ClaimRow]:
    """Every claim of the paper beside our figure."""
    costs = Costs(comparison.results)

    def find(claim: Claim) -> Found:
        return METRICS[claim.metric](costs, claim)

    return claim_rows("pageforge", find)


def _more(value: float | None) -> str:
    return "–" if value is None else f"{100 * (value - 1):+.0f} %"


def verdict(comparison: Comparison, _: Sequence[ClaimRow]) -> tuple[str, ...]:
    """What holds, what does not, and what it depends on."""
    costs = Costs(comparison.results)

    def mean(design: str, name: str) -> float | None:
        return arithmetic_mean(costs.over_none(app, design, name) for app in costs.applications)

    savings = [costs_mean(costs, design, "saving") for design in ("ksm", "pageforge")]
    same = savings[0] == savings[1]
    saved = "–" if savings[1] is None else f"{100 * savings[1]:.1f} %"
    ksm, forge = mean("ksm", SOJOURN), mean("pageforge", SOJOURN)
    tails = mean("ksm", TAIL), mean("pageforge", TAIL)
    swing = {
        (design, name): arithmetic_mean(
            costs.over_none(app, design, name, MERGING) for app in costs.applications
        )
        for design in ("ksm", "pageforge")
        for name in (SOJOURN, TAIL)
    }
    kept = [
        arithmetic_mean(
            costs.over_none(app, "ksm", name, MERGING | KEPT) for app in costs.applications
        )
        for name in (SOJOURN, TAIL)
    ]
    which = "exactly the pages that KSM saves" if same else "other pages than KSM"
    return (
        f"PageForge saves {which}, {saved} of the generated machines' frames (the paper: 48 % of "
        "its guests').",
        f"Once merging has settled, the mean sojourn is {_more(ksm)} under KSM and "
        f"{_more(forge)} under PageForge, the 95th percentile {_more(tails[0])} and "
        f"{_more(tails[1])} (the paper: +68 % and +10 %, +136 % and +11 %), so PageForge is "
        f"{_cheaper(ksm, forge)} here.",
        f"While pages still merge, the mean is {_more(swing['ksm', SOJOURN])} and "
        f"{_more(swing['pageforge', SOJOURN])}, the 95th percentile {_more(swing['ksm', TAIL])} "
        f"and {_more(swing['pageforge', TAIL])}: PageForge is "
        f"{_cheaper(swing['ksm', SOJOURN], swing['pageforge', SOJOURN])}. The paper does not say "
        "in which phase it measures.",
        "KSM's figures depend on that load and on how long its thread keeps a core for which "
        "queries wait, and on both together: if pages merge and nothing takes a core from it for "
        f"an interval of 400 pages, its mean is {_more(kept[0])} and its 95th percentile "
        f"{_more(kept[1])}.",
        f"A page costs its thread {_split(costs, {})} cycles once settled (comparing, hashing, the "
        f"rest) and {_split(costs, MERGING)} while pages merge; the paper's Table 4 means 27,500, "
        "7,900 and 17,700.",
    )


def _cheaper(ksm: float | None, forge: float | None) -> str:
    if ksm is None or forge is None:
        return "not compared"
    return "the cheaper of the two" if forge < ksm else "not cheaper than KSM"


def _split(costs: Costs, variant: Mapping[str, Scalar]) -> str:
    """Cycles a page of KSM's thread: comparing, hashing, the rest."""

    def mean(part: str) -> float | None:
        name = f"thread_{part}_cycles_a_page"
        of = (costs.metric(app, "ksm", name, variant) for app in costs.applications)
        return arithmetic_mean(of)

    first, second, third = (written_claim(mean(part), "") for part in ("compare", "hash", "other"))
    return f"{first}, {second} and {third}"


def phases(comparison: Comparison) -> Exhibit:
    """What merging costs in each phase, beside the paper."""
    rows: dict[str, dict[str, Cell]] = {}
    for row in claims(comparison):
        if row.claim.stat != "mean" or IN_SWING not in row.readings:
            continue
        figures = {
            "the paper": row.claim.value,
            "settled": row.ours,
            "while pages merge": row.readings.get(IN_SWING),
            "and a core is kept": row.readings.get(STAYS),
        }
        rows[f"{row.claim.metric.replace('_', ' ')}, {row.claim.design}"] = {
            column: Cell(None, written_claim(value, row.unit), "", {}, {})
            for column, value in figures.items()
        }
    return Exhibit(
        "phases",
        "What merging costs by phase",
        "figure",
        rows,
        "Means over the applications. The paper does not say how much is merged when it measures; "
        "the last column is KSM's alone: pages merge, and its thread keeps a core for an interval "
        "of 400 pages, whoever waits for it.",
        {},
    )


def sampled(asked: Asked, applications: Sequence[str]) -> Sampled:
    """All applications while their pages are merged, over what the paper leaves open."""
    scale = CELL
    choices = (
        Range("seed", str(asked.seed), "of arrivals and of contents", "0", "999", whole=True),
    )

    def runs(values: Mapping[str, str], keys: Sequence[Setting]) -> TimedRuns:
        fixed = "window.ms" in dict(keys)
        return TimedRuns(
            [TimedPoint(name, design) for name in applications for design in DESIGNS],
            asked.machine,
            (*scale.sets, *keys),
            seed=int(values["seed"]),
            own={name: scale.own(name) for name in applications if not fixed},
        )

    note = (
        "A cell is a machine on which each application runs, once merging has settled, over a "
        f"window of {scale.window_ms} ms and virtual machines of {scale.vm_mib} MiB."
    )
    cells, quick_cells = CELLS
    return Sampled(
        tuple(applications), choices, runs, claims, asked.machine, asked.overrides, note,
        cells=cells, quick_cells=quick_cells,
    )  # fmt: skip


def note(scale: Scale, images: Sequence[str], results_of: Sequence[str]) -> str:
    """What stands in for the paper's guests, applications and simulators."""
    machines = (
        f"The virtual machines hold the images {', '.join(images)}, in turn. "
        if images
        else f"Ten generated machines of {scale.vm_mib} MiB (the paper: 512) hold pages in the "
        "shares of Fig. 7, so Fig. 7's shares are inputs and what is found in them is not. "
    )
    quoted = "; ".join(f"{name} {mm} mm², {w} W" for name, (mm, w) in QUOTED.items())
    return (
        f"{machines}TailBench is replaced by streams of our own ({', '.join(results_of)}): Poisson "
        "arrivals at the rates of Table 3, log-normal demands that keep a core about half busy, "
        "cold accesses so that the last-level cache misses as in Table 4 without merging; "
        "everything else about them is assumed. An application from which fewer than 40 queries "
        "would come in the window is made of shorter queries that come more often, by one factor "
        f"(metric `factor`). The window is {scale.window_ms} ms ({LONGER * scale.window_ms} for "
        f"{SLOWEST}) after {scale.warmup_ms} ms of warm-up, in the middle of a pass. Area and "
        f"power are quoted, not computed: {quoted}."
    )


class PageForge:
    """Tables 4 and 5, Figs. 7 to 11, the variants of Secs. 3.5, 4.1 and 4.3, other loads."""

    name = "pageforge"
    machine = "pageforge"
    takes: tuple[str, ...] = ("traces", "machine")
    instead = "; set a key, as in --set window.ms=200 --set window.warmup_ms=50"

    def plan(self, asked: Asked) -> Plan:
        applications = [name for name in asked.traces if name in APPLICATIONS]
        images = [name for name in asked.traces if name not in APPLICATIONS]
        for image in images:
            if not Path(image).exists():
                raise _core.SardonyxError(
                    f"{image}: no such image, and "
                    + unknown("application", image, list(APPLICATIONS))
                )
        chosen = [name for name in APPLICATIONS if name in applications] or list(APPLICATIONS)
        scale = QUICK if asked.quick else FULL
        runs = TimedRuns(
            points(chosen, scale),
            asked.machine,
            (*scale.sets, *asked.overrides),
            images,
            asked.seed,
            {name: scale.own(name) for name in chosen if "window.ms" not in dict(asked.overrides)},
        )
        facts = {"quoted_area_mm2_and_power_w": {name: list(pair) for name, pair in QUOTED.items()}}
        return Plan(
            runs,
            note(scale, images, chosen),
            claims,
            lambda comparison, _: (phases(comparison),),
            verdict=verdict,
            facts=facts,
            sampled=None if images else sampled(asked, chosen),
        )


REPRODUCTION: Reproduction = PageForge()
