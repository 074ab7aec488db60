"""The reproduction of PageForge: its plan, how claims follow from runs, and a small real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sardonyx
from sardonyx import _core
from sardonyx.draw.figure import Figure
from sardonyx.papers import pageforge
from sardonyx.papers.claims import ClaimRow, load_claims
from sardonyx.papers.pageforge import DESIGNS, Costs, figures
from sardonyx.papers.reproduction import Asked, BesidePaper
from sardonyx.report import write_report
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.tailbench import (
    APPLICATIONS,
    MERGING,
    TimedPoint,
    TimedRuns,
    _add_busiest_phase,
)
from sardonyx.studies import reproductions

SMALL = replace(pageforge.QUICK, window_ms=2, warmup_ms=0, vm_mib=1)
SETS = (*SMALL.sets, ("window.sample_us", "200"), ("cores", "4"), ("ksm.sleep_millisecs", "0"))


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    own = {name: SMALL.own(name) for name in APPLICATIONS}
    runs = TimedRuns(pageforge.points(APPLICATIONS, SMALL), sets=SETS, own=own)
    runs.check()
    return Comparison(runs.run())


@pytest.fixture(scope="module")
def rows(comparison: Comparison) -> list[ClaimRow]:
    return pageforge.claims(comparison)


def test_each_claim_has_a_definition() -> None:
    assert {claim.metric for claim in load_claims("pageforge")} == set(pageforge.METRICS)
    assert reproductions()["pageforge"] is pageforge.REPRODUCTION


def test_the_plan_has_each_run_once_and_all_that_the_figures_need() -> None:
    for scale in (pageforge.QUICK, pageforge.FULL):
        points = pageforge.points(APPLICATIONS, scale)
        asked = [(p.trace, p.design, tuple(p.variant.items())) for p in points]
        assert len(set(asked)) == len(asked)
        plain = {(p.trace, p.design) for p in points if not p.variant}
        assert plain == {(app, design) for app in APPLICATIONS for design in DESIGNS}


@pytest.mark.slow
def test_every_claim_has_a_figure_and_says_what_it_rests_on(rows: list[ClaimRow]) -> None:
    assert [row.claim.key for row in rows if row.ours is None] == []
    mean = next(row for row in rows if row.claim.metric == "mean_sojourn_latency_vs_baseline")
    assert {"thread.placement", "silo.instructions", "ksm.compare_line_instructions"} <= set(
        mean.assumed
    )
    assert "silo, no query preempts KSM" in mean.readings
    assert {pageforge.IN_SWING, pageforge.STAYS} <= set(mean.readings)


@pytest.mark.slow
def test_both_designs_save_the_same_and_the_thread_takes_what_it_does(
    comparison: Comparison, rows: list[ClaimRow]
) -> None:
    costs = Costs(comparison.results)
    for app in costs.applications:
        assert costs.metric(app, "ksm", "saving") == costs.metric(app, "pageforge", "saving")
        parts = ("mean_waited_ns", "mean_interrupted_ns", "mean_executed_ns")
        for design in DESIGNS:
            known = [costs.metric(app, design, part) or 0 for part in parts]
            whole = costs.metric(app, design, "mean_sojourn_ns")
            assert sum(known) == pytest.approx(whole, rel=1e-9)
    sphinx = costs.metric("sphinx", "none", "factor")
    assert sphinx == 2500  # 40 queries in 4 ms of 4 cores; the others have 2 ms
    assert costs.metric("moses", "none", "factor") == 50
    sentences = pageforge.verdict(comparison, rows)
    assert len(sentences) == 5
    assert "exactly the pages that KSM saves" in sentences[0]


@pytest.mark.slow
def test_the_split_of_the_threads_time_adds_up_to_its_share(comparison: Comparison) -> None:
    costs = Costs(comparison.results)
    for app in costs.applications:
        known = {
            part: costs.metric(app, "ksm", f"thread_{part}_cycles_a_page", MERGING) or 0
            for part in ("compare", "hash", "other")
        }
        for part in ("compare", "hash"):
            share = costs.metric(app, "ksm", f"thread_{part}_share", MERGING)
            assert share == pytest.approx(known[part] / sum(known.values()))


@pytest.mark.slow
def test_each_phase_stands_beside_the_paper(comparison: Comparison) -> None:
    table = pageforge.phases(comparison)
    row = table.rows["mean sojourn latency vs baseline, ksm"]
    assert row["the paper"].ours == "1.68×"
    assert all(cell.ours != "–" for cell in row.values())
    assert "ksm compare cycles a page, ksm" in table.rows


def test_the_busiest_phase_is_merging_own_and_without_merging_ksms() -> None:
    def answer(bandwidths: list[float], lines: list[int]) -> dict[str, Any]:
        return {"bandwidths_gb_s": bandwidths, "merging_lines": lines, "metrics": {}}

    ksm = answer([9.0, 3.0, 4.0], [1, 7, 2])
    merging = answer([8.0, 5.0, 6.0], [1, 2, 9])
    none = answer([7.0, 1.0, 2.0], [0, 0, 0])
    _add_busiest_phase(
        [
            (TimedPoint("silo", "none"), none),
            (TimedPoint("silo", "ksm"), ksm),
            (TimedPoint("silo", "ksm", MERGING), merging),
        ]
    )
    found = [of["metrics"]["bandwidth_in_phase_gb_s"] for of in (none, ksm, merging)]
    assert found == [1.0, 3.0, 6.0]
    assert none["metrics"]["bandwidth_in_merging_phase_gb_s"] == 2.0


@pytest.mark.slow
def test_the_report_has_every_figure(comparison: Comparison, tmp_path: Path) -> None:
    drawn = figures.figures(comparison)
    assert [figure.key for figure in drawn if not isinstance(figure, Figure)] == []
    write_report(comparison, tmp_path / "report.html", BesidePaper())
    assert "What merging costs" in (tmp_path / "report.html").read_text()


def test_one_application_alone_and_wishes_that_cannot_be() -> None:
    reproduction = pageforge.REPRODUCTION
    alone = reproduction.plan(Asked(["moses"], "pageforge", quick=True)).runs
    assert isinstance(alone, TimedRuns)
    assert {point.trace for point in alone.points} == {"moses"}
    with pytest.raises(_core.SardonyxError, match=r"moose: no such image.*moses"):
        reproduction.plan(Asked(["moose"], "pageforge"))
    with pytest.raises(_core.SardonyxError, match="copies 3: does nothing for pageforge; leave"):
        sardonyx.reproduce("pageforge", copies=3)
    wrong = TimedRuns([TimedPoint("silo", "ksm")], sets=(("window.msec", "3"),))
    with pytest.raises(_core.SardonyxError, match=r"window\.ms"):
        wrong.check()
