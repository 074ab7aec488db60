"""The figures of what merging costs applications: counterparts of PageForge's Figs. 7 to 11 and
of its Tables 4 and 5, and beyond them the variants, the causes and other loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.draw.figure import (
    Cell,
    Figure,
    Head,
    Missing,
    Table,
    View,
    at_one,
    bars,
    layout,
    scatter,
)
from sardonyx.papers.claims import load_claims
from sardonyx.papers.pageforge import (
    BOTH,
    CAUSES,
    DESIGNS,
    KEPT,
    SOJOURN,
    TAIL,
    VARIANTS,
    Costs,
)
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import assumed_by
from sardonyx.runs.merging import algorithms
from sardonyx.runs.results import Scalar
from sardonyx.runs.tailbench import MERGING

COLOURS = dict(zip(DESIGNS, ("#8a8f98", "#d55e00", "#009e73"), strict=True))
MERGES = ("ksm", "pageforge")
PHASES: dict[str, dict[str, Scalar]] = {"settled": {}, "while pages merge": MERGING}


TITLE = "What merging costs"


def figures(comparison: Comparison) -> list[Figure | Missing]:
    """Every figure, the paper's first; none but of applications beside merging."""
    results = comparison.results
    if not results.runs or any(run.design not in algorithms() for run in results.runs):
        return []
    costs = Costs(results)
    return [
        pages(costs),
        keys(costs),
        _latency(costs, "tailbench-mean", "Mean sojourn latency", "PageForge Fig. 9", SOJOURN),
        _latency(costs, "tailbench-p95", "95th percentile latency", "PageForge Fig. 10", TAIL),
        bandwidth(costs),
        thread(costs),
        cycles(costs),
        table(costs),
        parts(costs),
        _variants(
            costs, "tailbench-variants", "Other designs", "PageForge 3.5, 4.1, 4.3", VARIANTS
        ),
        _variants(
            costs, "tailbench-causes", "One assumption at a time", "beyond PageForge", CAUSES
        ),
        loads(costs),
    ]


def _assumed(costs: Costs) -> list[str]:
    return assumed_by(costs.results.runs, "time")


def _bars(
    costs: Costs,
    head: Head,
    words: tuple[str, str],
    axis: str,
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    unit: str = "",
    colours: Mapping[str, str] | None = None,
    **more: Any,
) -> Figure | Missing:
    whole = {"assumed": _assumed(costs), "colours": colours, "paper": "pageforge", **more}
    return bars(head, *words, axis, names, series, unit, **whole)


def pages(costs: Costs) -> Figure | Missing:
    names = {
        "unmergeable": "unmergeable_pages",
        "zero": "mergeable_zero_pages",
        "mergeable, not zero": "mergeable_nonzero_pages",
        "frames of the latter": "merged_nonzero_frames",
        "saved in all": "saving",
    }
    return _bars(
        costs,
        Head("tailbench-pages", "What merges", "PageForge Fig. 7"),
        (
            "Pages by kind before merging, frames that the mergeable ones take afterwards, and "
            "what is saved; shares of all pages.",
            "Of generated machines the kinds are inputs; what is found in them is the algorithm's.",
        ),
        "share of all pages",
        costs.applications,
        {
            words: [costs.metric(app, "pageforge", name) for app in costs.applications]
            for words, name in names.items()
        },
        "%",
        yaxis={"tickformat": ".0%"},
    )


def keys(costs: Costs) -> Figure | Missing:
    series = {
        f"{whose}, {words}": [costs.metric(app, design, name) for app in costs.applications]
        for design, whose in (("ksm", "jhash2"), ("pageforge", "ECC"))
        for name, words in (("key_matches", "matches"), ("key_false_matches", "false matches"))
    }
    return _bars(
        costs,
        Head("tailbench-keys", "What keys say", "PageForge Fig. 8"),
        (
            "Key comparisons that match, and those that match although the page has changed.",
            "An ECC key sees one word of four lines, jhash2 the first kilobyte.",
        ),
        "share of key comparisons",
        costs.applications,
        series,
        "%",
        yaxis={"tickformat": ".0%"},
    )


def _latency(costs: Costs, key: str, title: str, cf: str, name: str) -> Figure | Missing:
    series: dict[str, list[float | None]] = {
        design: [costs.over_none(app, design, name) for app in costs.applications]
        for design in MERGES
    }
    for design in MERGES:
        series[f"{design}, while pages merge"] = [
            costs.over_none(app, design, name, MERGING) for app in costs.applications
        ]
    series[f"ksm, {BOTH}"] = [
        costs.over_none(app, "ksm", name, MERGING | KEPT) for app in costs.applications
    ]
    return _bars(
        costs,
        Head(key, title, cf),
        (
            "Over that without merging, after merging has settled and while it is in full swing.",
            "The paper measures after 10^9 instructions and does not say how much has merged by "
            "then.",
        ),
        "over none",
        costs.applications,
        series,
        "x",
        COLOURS,
        shapes=[at_one()],
    )


def bandwidth(costs: Costs) -> Figure | Missing:
    name = "bandwidth_in_phase_gb_s"
    series: dict[str, list[float | None]] = {
        design: [costs.metric(app, design, name) for app in costs.applications]
        for design in DESIGNS
    }
    for design in MERGES:
        series[f"{design}, while pages merge"] = [
            costs.metric(app, design, name, MERGING) for app in costs.applications
        ]
    series["none, in that time of KSM"] = [
        costs.metric(app, "none", "bandwidth_in_merging_phase_gb_s") for app in costs.applications
    ]
    return _bars(
        costs,
        Head("tailbench-bandwidth", "Memory bandwidth", "PageForge Fig. 11"),
        (
            "Gigabytes a second in the time in which merging asks for most lines; without merging "
            "at the same time as KSM's.",
            "One thread that compares byte by byte, or one module that asks for two lines at a "
            "time, cannot ask for more than one or two gigabytes a second.",
        ),
        "GB/s",
        costs.applications,
        series,
        "",
        COLOURS,
    )


def thread(costs: Costs) -> Figure | Missing:
    columns = {
        "cycles, mean core": ("ksm_cycles_share_avg_core", "thread_share_mean"),
        "cycles, most": ("ksm_cycles_share_max_core", "thread_share_most"),
        "comparing": ("page_compare_share_of_ksm", "thread_compare_share"),
        "hashing": ("hash_share_of_ksm", "thread_hash_share"),
        "L3 misses": ("l3_miss_rate", "llc_miss_rate"),
    }
    paper = {(claim.metric, claim.design): claim.value for claim in load_claims("pageforge")}

    def row(app: str, name: str, claim: str) -> list[float | None]:
        measured = [costs.metric(app, "ksm", name, variant) for variant in PHASES.values()]
        return [*measured, paper.get((f"{claim}_{app}", "ksm"))]

    series = {
        words: [value for app in costs.applications for value in row(app, name, claim)]
        for words, (claim, name) in columns.items()
    }
    series["L3 misses without merging"] = [
        value
        for app in costs.applications
        for value in (
            *(costs.metric(app, "none", "llc_miss_rate") for _ in PHASES),
            paper.get((f"l3_miss_rate_{app}", "none")),
        )
    ]
    return _bars(
        costs,
        Head("tailbench-thread", "KSM's thread", "PageForge Table 4"),
        (
            "Its share of the cores' cycles, what it does with them, and how often the last-level "
            "cache misses, settled and while pages merge, beside the paper's.",
            "Comparing and hashing are shares of the thread's own time.",
        ),
        "share",
        [f"{app}, {phase}" for app in costs.applications for phase in (*PHASES, "the paper")],
        series,
        "%",
        yaxis={"tickformat": ".0%"},
    )


def cycles(costs: Costs) -> Figure | Missing:
    parts = {"comparing": "compare", "hashing": "hash", "the rest": "other"}
    paper = {
        claim.metric: claim.value
        for claim in load_claims("pageforge")
        if claim.metric.endswith("_cycles_a_page")
    }
    names = [f"{app}, {phase}" for app in costs.applications for phase in PHASES]
    series = {
        words: [
            *(
                costs.metric(app, "ksm", f"thread_{part}_cycles_a_page", variant)
                for app in costs.applications
                for variant in PHASES.values()
            ),
            paper.get(f"ksm_{part}_cycles_a_page"),
        ]
        for words, part in parts.items()
    }
    return _bars(
        costs,
        Head("tailbench-cycles", "What a page costs KSM's thread", "PageForge Table 4"),
        (
            "Cycles of the cores' clock for each page scanned, by what they go to.",
            "The paper's follow from the shares of Table 4 and Table 2's 400 pages each 5 ms.",
        ),
        "cycles a page",
        [*names, "the paper's mean"],
        series,
        barmode="stack",
    )


def table(costs: Costs) -> Figure | Missing:
    name = "scan_table_cycles"
    series = {
        words: [costs.metric(app, "pageforge", name, variant) for app in costs.applications]
        for words, variant in PHASES.items()
    }
    return _bars(
        costs,
        Head("tailbench-table", "Processing the Scan Table", "PageForge Table 5"),
        (
            "Cycles of the cores' clock from the bell to the last comparison of a filling.",
            "The paper's mean is 7,486 cycles, with a look at the table each 12,000.",
        ),
        "cycles",
        costs.applications,
        series,
    )


def parts(costs: Costs) -> Figure | Missing:
    names = [f"{app}, {design}" for app in costs.applications for design in DESIGNS]
    words = {
        "waiting for queries before it and for the thread": "mean_waited_ns",
        "interrupted by the thread": "mean_interrupted_ns",
        "executing": "mean_executed_ns",
    }

    def share(app: str, design: str, name: str) -> float | None:
        part, whole = (costs.metric(app, design, of) for of in (name, "mean_sojourn_ns"))
        return None if part is None or not whole else part / whole

    return _bars(
        costs,
        Head("tailbench-parts", "Where a query's time goes", "beyond PageForge"),
        (
            "Parts of the mean sojourn; they add up to it.",
            "A thread that has a core when a query comes makes it wait; one that comes meanwhile "
            "interrupts it.",
        ),
        "share of the mean sojourn",
        names,
        {
            shown: [share(app, design, name) for app in costs.applications for design in DESIGNS]
            for shown, name in words.items()
        },
        "%",
        barmode="stack",
        yaxis={"tickformat": ".0%"},
    )


def _variants(
    costs: Costs,
    key: str,
    title: str,
    cf: str,
    known: Mapping[str, tuple[str, dict[str, Scalar]]],
) -> Figure | Missing:
    names: list[str] = []
    series: dict[str, list[float | None]] = {"mean": [], "95th percentile": []}
    for app in costs.applications:
        plain: dict[str, tuple[str, dict[str, Scalar]]] = {
            f"as it is, {design}": (design, {}) for design in MERGES
        }
        for words, (design, variant) in (plain | dict(known)).items():
            if any(costs.run(app, *of) for of in known.values()) and costs.run(
                app, design, variant
            ):
                names.append(f"{app}: {words}")
                series["mean"].append(costs.over_none(app, design, SOJOURN, variant))
                series["95th percentile"].append(costs.over_none(app, design, TAIL, variant))
    return _bars(
        costs,
        Head(key, title, cf),
        ("Sojourn latency over that without merging.", "All else is as in the other figures."),
        "over none",
        names,
        series,
        "x",
        shapes=[at_one()],
    )


def loads(costs: Costs) -> Figure | Missing:
    head = Head("tailbench-loads", "Overhead against queries a second", "PageForge 6.3")
    drawn: list[dict[str, Any]] = []
    rows: list[list[Cell]] = []
    for app in costs.applications:
        key = f"{app}.queries_per_second"
        runs = [
            run
            for run in costs.results.runs
            if run.trace == app and set(run.variant) <= {key} and run.design == "none"
        ]
        rates = {run.metric("queries_per_second"): run.variant for run in runs}
        if len(rates) < 2:
            continue
        along = sorted(rate for rate in rates if rate is not None)
        for design in MERGES:
            ratios = [costs.over_none(app, design, SOJOURN, rates[rate]) for rate in along]
            name = f"{app}, {design}"
            drawn.append(
                scatter(
                    "lines+markers", name, along, ratios, f"<b>{name}</b><br>%{{x}}/s: %{{y:.3f}}×"
                )
            )
            rows += [
                [f"{name}, {rate:g}/s", ratio] for rate, ratio in zip(along, ratios, strict=True)
            ]
    if not drawn:
        return head.missing("There are no runs at other rates.")
    shape = layout("mean sojourn over none", yaxis={"rangemode": "normal"})
    shape["xaxis"] = {"title": {"text": "queries a second"}, "automargin": True, "type": "log"}
    return head.figure(
        "Mean sojourn latency over that without merging, by queries a second of each machine.",
        "The paper: the overhead of KSM is higher for higher rates.",
        [View("", drawn, shape)],
        Table((("run", ""), ("over none", "x")), rows),
        _assumed(costs),
    )
