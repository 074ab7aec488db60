"""Writes each kind of page, and gives the figures of a comparison."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sardonyx import studies
from sardonyx.draw.figure import Figure, Missing
from sardonyx.files import write_text
from sardonyx.papers.reproduction import BesidePaper
from sardonyx.report import (
    cache_sizes,
    content,
    endurance,
    over_time,
    page,
    performance,
    workloads,
)
from sardonyx.report.content import Group
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.facts import Trace
from sardonyx.runs.origin import Origin, here

if TYPE_CHECKING:
    from sardonyx.runs.curves import Loads
    from sardonyx.sweeps.table import Swept


def figures(comparison: Comparison, beside: BesidePaper | None = None) -> list[Figure | Missing]:
    """Every figure of the report in its order; ``Missing`` stands for those without data."""
    own = [figure for group in _groups(comparison) for figure in group.figures]
    return [*_of_claims(beside or BesidePaper()), *own]


def _of_claims(beside: BesidePaper) -> list[Figure]:
    """A paper's figures beside ours, if there are any."""
    if not beside.claims:
        return []
    from sardonyx.report import claims, sampled

    return [*sampled.figures(beside.sample), *claims.figures(beside.claims)]


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    beside: BesidePaper | None = None,
    origin: Origin | None = None,
) -> None:
    """Write the report to ``path``, complete or not at all.

    ``beside`` adds what a reproduction has: the paper's figures beside ours, its tables as
    measured, and for the header a sentence on what stands in for its programs. ``origin`` is the
    command, date, commit and traces that the page names.
    """
    beside = beside or BesidePaper()
    groups = [
        Group(page.anchor(table), page.heading(table), [], page.exhibit(table))
        for table in beside.exhibits
    ]
    if beside.claims:
        table = page.claims(beside.claims)
        groups.insert(0, Group("claims", "Beside the paper", _of_claims(beside), table))
    groups += _groups(comparison)
    if found := comparison.results.sensitivity:
        from sardonyx.report import sensitivity

        inner = sensitivity.tables(found)
        groups.append(Group("sensitivity", "Sensitivity to what is assumed", inner=inner))
    write_text(path, page.render(comparison, groups, beside, origin or Origin()))


def write_trace_report(traces: Sequence[Trace], path: str | os.PathLike[str]) -> None:
    """Write what traces hold (ESD Fig. 1, 3 and 8) to ``path``, complete or not at all."""
    names = ", ".join(trace.name for trace in traces)
    source = "What the trace holds, counted in its bytes; it rests on no machine."
    facts = [("trace", names), *workloads.summary(traces)]
    about = [_about_workloads(traces)]
    warned, known = page.warned(traces), {"workload": [trace.name for trace in traces]}
    text = page.page("Trace report", names, source, facts, about, warned, names=known)
    write_text(path, text)


def write_savings_report(
    source: str,
    names: Sequence[str],
    found: Mapping[str, Any],
    designs: Sequence[Mapping[str, Any]],
    path: str | os.PathLike[str],
) -> None:
    """Write what deduplication would save of ``source`` to ``path``, complete or not at all."""
    facts = [
        ("source", source),
        ("bytes", f"{found['bytes']:,}"),
        ("files", f"{found['files']:,}"),
    ]
    from sardonyx.report import savings

    drawn = savings.figures(names, found["cuttings"], designs)
    groups = [Group("about-savings", "What deduplication would save", drawn)]
    what = "What is there, counted in its bytes; what two designs would take to store it."
    write_text(path, page.page("Savings", source, what, facts, groups))


def write_curve_report(
    asked: Loads,
    found: Sequence[tuple[str, str]],
    drawn: Sequence[Figure | Missing],
    path: str | os.PathLike[str],
) -> None:
    """Write curves to ``path``, complete or not at all; ``found`` is what else is to be said."""
    facts = [
        ("machine", asked.machine),
        ("designs", ", ".join(asked.designs)),
        ("settings", ", ".join(f"{key}={value}" for key, value in asked.sets) or "none"),
        ("requests a point", f"{asked.requests:,}"),
        *found,
    ]
    group = Group("about-curves", "Under load", list(drawn))
    source = "A steady load on a memory, simulated; beside it what was measured, if anything was."
    names = {"design": asked.designs}
    text = page.page(
        "Latency against bandwidth", asked.machine, source, facts, [group], names=names
    )
    write_text(path, text)


def write_merge_report(
    answer: dict[str, Any], path: str | os.PathLike[str], origin: Origin | None = None
) -> None:
    """Write what a merge has shown to ``path``, complete or not at all."""
    from sardonyx.report import merging

    machines = [str(machine["name"]) for machine in answer["machines"]]
    shown = ", ".join(machines[: content.FEW])
    if more := machines[content.FEW :]:
        shown += f" and {len(more)} more"
    facts = [
        ("machines", shown),
        ("pages", f"{sum(machine['pages'] for machine in answer['machines']):,}"),
        ("snapshots", f"{answer['snapshots']}"),
        ("kernel", str(answer["kernel"])),
    ]
    source = "Same-page merging over page images, pass by pass."
    made = (origin or here(), str(answer["sardonyx"]))
    groups = merging.groups(answer)
    names = {"workload": machines, "design": [str(run["design"]) for run in answer["runs"]]}
    text = page.page("Merge report", shown, source, facts, groups, made=made, names=names)
    write_text(path, text)


def write_sweep_report(
    swept: Swept, path: str | os.PathLike[str], first: Sequence[tuple[str, str]] = ()
) -> None:
    """Write what a sweep has shown to ``path``, complete or not at all; ``first`` is said first."""
    asked = "" if swept.asked is None else f" of {swept.asked:,}"
    facts = [
        *first,
        ("points", f"{swept.points:,}{asked}"),
        ("failed", f"{len(swept.failed):,}"),
        ("axes", ", ".join(swept.axes) or "none"),
        ("figures", ", ".join(goal.text for goal in swept.goals) or "none"),
    ]
    if len(swept.rows) < swept.points:
        facts.insert(len(first) + 1, ("drawn", f"{len(swept.rows):,}, evenly chosen"))
    subjects = ", ".join(list(swept.by_subject())[: content.FEW]) or "a sweep"
    from sardonyx.report import swept as figures

    source = "Points of a sweep."
    made = (here(), ", ".join(swept.versions))
    groups = figures.groups(swept)
    workloads, designs = (
        list(map(str, swept.values(name))) if name in swept.settings else []
        for name in (swept.subject, "design")
    )
    names = {"workload": workloads, "design": designs}
    text = page.page("Sweep report", subjects, source, facts, groups, made=made, names=names)
    write_text(path, text)


def _about_workloads(traces: Sequence[Trace]) -> Group:
    return Group(
        "about-workloads",
        "The workloads",
        [
            workloads.rests_on(traces),
            workloads.duplicates(traces),
            workloads.locality(traces),
            workloads.collisions(traces),
        ],
        workloads.worth_of_each(traces),
    )


def _groups(comparison: Comparison) -> list[Group]:
    groups = [
        Group(f"about-{title.lower().replace(' ', '-')}", title, drawn)
        for title, drawn in studies.figures(comparison).items()
    ]
    programs = any(trace.program for trace in comparison.results.traces)
    if groups and not programs:
        return groups
    beside = {
        key: performance.beside_baseline(comparison, key) for key in performance.BESIDE_BASELINE
    }
    spent = over_time.energy_by_cause(comparison)
    energy = Group("about-energy", "Energy", [beside["energy_ratio"], spent])
    used = [over_time.epochs(comparison), over_time.usage(comparison)]
    over = Group("about-over-time", "Over time and over units", used)
    if programs:
        if comparison.beside_baseline:  # else there is nothing to hold energy against
            figure = replace(beside["energy_ratio"], cf="")  # programs are not ESD's workloads
            groups.append(Group("about-energy", "Energy", [figure, spent]))
        return [*groups, over]
    return [
        _about_workloads(comparison.results.traces),
        Group(
            "about-writes",
            "Writes removed",
            [
                beside["write_reduction"],
                performance.duplicates_found(comparison),
                performance.predictions(comparison),
                endurance.wear(comparison),
                over_time.wear_map(comparison),
            ],
        ),
        Group(
            "about-time",
            "Time",
            [
                beside["write_speedup"],
                beside["read_speedup"],
                beside["ipc_ratio"],
                # Of two traces they are all that stands above.
                *([performance.worst_cases(comparison)] if len(comparison.workloads) > 2 else []),
                performance.latency_distribution(comparison, "write"),
                performance.latency_distribution(comparison, "read"),
                performance.latency_by_cause(comparison),
            ],
        ),
        over,
        energy,
        Group(
            "about-space",
            "Caches and space",
            [
                cache_sizes.efit(comparison),
                cache_sizes.amt(comparison),
                performance.metadata(comparison),
            ],
        ),
    ]
