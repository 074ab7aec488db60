"""The report: one HTML file with every figure, that works without a network.

``write_report`` writes it; ``figures`` gives the same figures to notebooks, each with
``.plotly()``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.claims import ClaimRow
from sardonyx.report import (
    beside_paper,
    endurance,
    page,
    performance,
    persistence,
    stages,
    sweeps,
    workloads,
)
from sardonyx.report.figure import Figure, Missing
from sardonyx.report.page import Group
from sardonyx.results import Machine, Results, Trace, as_results, write_text
from sardonyx.results_measures import Comparison
from sardonyx.sca_stages import Table1

__all__ = ["Figure", "Missing", "figures", "write_report", "write_trace_report"]


def figures(
    results: Results | Mapping[str, Any] | str | os.PathLike[str],
) -> list[Figure | Missing]:
    """Every figure of the report in its order; ``Missing`` stands for those without data."""
    return [figure for group in _groups(as_results(results)) for figure in group.figures]


def write_report(
    results: Results | Mapping[str, Any] | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    claims: Sequence[ClaimRow] | None = None,
    note: str = "",
    table_1: Table1 | None = None,
) -> None:
    """Write the report of ``results`` to ``path``, complete or not at all.

    ``results`` is the model, its document or where it is saved. ``claims`` adds a section with a
    paper's figures beside ours; ``note`` is a sentence for the header, such as what stands in for
    the paper's programs; ``table_1`` adds SCA's Table 1 as measured.
    """
    known = as_results(results)
    groups = _groups(known)
    if table_1 is not None:
        groups.insert(0, Group("table-1", "Table 1 of the paper", [], stages.html(table_1)))
    if claims:
        groups.insert(0, Group("claims", "Beside the paper", list(beside_paper.figures(claims))))
    write_text(path, page.render(known, groups, claims or (), note))


def write_trace_report(
    traces: Sequence[Trace], path: str | os.PathLike[str], version: str = ""
) -> None:
    """Write what traces hold (ESD Fig. 1, 3 and 8) to ``path``, complete or not at all."""
    results = Results(version, Machine("", "", {}, ()), tuple(traces), ())
    write_text(path, page.render_traces(results, [_about_workloads(results)]))


def _about_workloads(results: Results) -> Group:
    return Group(
        "about-workloads",
        "The workloads",
        [
            workloads.duplicates(results),
            workloads.locality(results),
            workloads.collisions(results),
        ],
    )


def _groups(results: Results) -> list[Group]:
    comparison = Comparison(results)
    if any("program" in trace.other for trace in results.traces):
        return [
            Group("about-programs", "Persistent programs", persistence.figures(results)),
            Group("about-energy", "Energy", [performance.energy(comparison)]),
        ]
    return [
        _about_workloads(results),
        Group(
            "about-writes",
            "Writes removed",
            [
                performance.write_reduction(comparison),
                performance.duplicates_found(comparison),
                performance.predictions(comparison),
                endurance.wear(comparison),
            ],
        ),
        Group(
            "about-time",
            "Time",
            [
                performance.write_speedup(comparison),
                performance.read_speedup(comparison),
                performance.ipc(comparison),
                performance.worst_cases(comparison),
                performance.latency_distribution(comparison),
                performance.latency_by_cause(comparison),
            ],
        ),
        Group("about-energy", "Energy", [performance.energy(comparison)]),
        Group(
            "about-space",
            "Caches and space",
            [sweeps.efit(results), sweeps.amt(results), performance.metadata(comparison)],
        ),
    ]
