"""SCA's reproduction: which runs it plans, how claims follow from runs, and a small real one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sardonyx.papers import sca
from sardonyx.papers.claims import load_claims
from sardonyx.report import persistence, write_report
from sardonyx.report.figure import Missing
from sardonyx.runs import jobs
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.programs import COUNTER_CACHE, MB
from sardonyx.runs.results import Results
from sardonyx.runs.sources import ProgramSource
from test_report_fixture import compared

SMALL = replace(sca.QUICK, footprint=256 << 10, transactions=60, warmup=20)


def test_each_claim_has_a_definition() -> None:
    assert {claim.metric for claim in load_claims("sca")} == set(sca.METRICS)


def test_the_plan_has_each_run_once() -> None:
    for scale in (sca.QUICK, sca.FULL):
        points = sca.points(scale)
        runs = {point.job(Settings("sca")) for point in points}
        assert len(runs) == len(points)
        assert {point.copies for point in points} == {1, 2, 4, 8}
        assert {point.design for point in points} == set(sca.DESIGNS)


def invented(rate: Any) -> Comparison:
    """Results whose transactions a second ``rate`` gives for each point; nothing was measured."""
    traces: dict[str, dict[str, Any]] = {}
    runs = []
    for point in sca.points(sca.QUICK):
        assert isinstance(point.source, ProgramSource)
        traces[point.trace] = {
            "program": point.source.name,
            "transaction_bytes": point.source.item_bytes,
            "footprint_bytes": point.source.footprint,
        }
        metrics = {
            "transactions": 100,
            "transactions_per_second": rate(point),
            "medium_writes": {"fca": 2000, "sca": 1500}.get(point.design, 1000),
            "medium_write_bytes": {"fca": 72_000, "co-located": 72_000}.get(point.design, 68_000),
            "counter_cache_hit_rate": 0.5 if point.variant else 0.75,
        }
        runs.append(
            {"trace": point.trace, "design": point.design, "machine": "sca"}
            | {"copies": point.copies, "variant": dict(point.variant), "metrics": metrics}
        )
    infos = [{"name": name, "info": info} for name, info in traces.items()]
    machine = {"name": "sca", "source": "", "parameters": {}, "assumed": []}
    document = {"sardonyx": "0", "machine": machine, "traces": infos, "runs": runs}
    return compared(document)


def test_claims_follow_from_the_runs() -> None:
    speed = {"no-encryption": 2.0, "ideal": 1.6, "sca": 1.25, "fca": 1.0, "co-located": 0.5}

    def rate(point: Point) -> float:
        faster = 1.25 if point.variant.get(COUNTER_CACHE) == 8 * MB else 1.0
        return 1e6 * speed.get(point.design, 1.0) * (point.copies or 1) * faster

    rows = {row.claim.metric: row for row in sca.claims(invented(rate))}
    ours = {metric: row.ours for metric, row in rows.items()}
    assert ours["runtime_vs_no-encryption"] == pytest.approx(2.0)  # of co-located-cc, the last
    assert ours["speedup_over_fca_8_cores"] == pytest.approx(0.25)
    assert ours["runtime_over_sca"] == pytest.approx(2.5)
    assert ours["throughput_loss_vs_ideal"] == pytest.approx(1 - 1.25 / 1.6)
    assert ours["write_traffic_reduction_vs_fca"] == pytest.approx(1 - 68 / 72)
    reading = rows["write_traffic_reduction_vs_fca"].readings
    assert list(reading.values()) == pytest.approx([0.25])
    assert ours["speedup_8MB_vs_128KB_counter_cache_100MB_footprint"] == pytest.approx(0.25)
    assert ours["runtime_overhead_vs_ideal_4KB_transactions_btree"] == pytest.approx(0.28)
    assert ours["speedup_over_co-located_write_latency_10x_slower"] == pytest.approx(1.5)
    lacking = [metric for metric, value in ours.items() if value is None]
    assert all("1000MB" in metric for metric in lacking), lacking


def test_a_report_of_programs_asks_for_no_baseline(tmp_path: Path) -> None:
    def rate(point: Point) -> float:
        return {"no-encryption": 4.0, "sca": 2.0}.get(point.design, 3.0)

    write_report(invented(rate), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text().split("<script")[0]
    assert "`baseline`" not in page
    assert "ESD Fig." not in page
    summary = page.split('<section id="summary">')[1].split("</section>")[0]
    sca_row = summary.split(">sca</th>")[1].split("</tr>")[0]
    assert re.findall(r"<td>(.*?)</td>", sca_row) == ["2.00×", "1.00×", "1.50×"]
    assert "line-through" not in page


def test_a_small_reproduction_fills_claims_and_figures() -> None:
    """Real runs, too small to mean anything, of two programs."""
    scale = replace(SMALL, footprints=(1 * MB,))
    settings = Settings("sca", warmup=scale.warmup)
    points = [p for p in sca.points(scale, ("queue", "btree")) if p.copies in (1, 4)]
    jobs.check(points, settings)
    again = Comparison(Results.from_document(jobs.run(points, settings).to_document()))
    for row in sca.claims(again):
        other = ("_2_cores", "_8_cores", "MB_footprint")
        wanted = not any(part in row.claim.metric for part in other)
        assert (row.ours is not None) == wanted, row.claim.metric
    made = persistence.figures(again.programs)
    assert [figure.key for figure in made if isinstance(figure, Missing)] == []
    for figure in made:
        assert not isinstance(figure, Missing)
        figure.plotly()
    slower = {
        run.design: run.metric("runtime_ns") or 0.0
        for run in again.results.runs
        if run.trace == "btree" and run.copies == 1 and not run.variant
    }
    assert slower["no-encryption"] < slower["ideal"] < slower["fca"]
