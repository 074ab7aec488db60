"""SCA's reproduction: which runs it plans, how claims follow from runs, and a small real one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sardonyx import _core
from sardonyx.draw.figure import Missing
from sardonyx.papers import causes, sca
from sardonyx.papers.claims import load_claims
from sardonyx.papers.sca import causes as sca_causes
from sardonyx.papers.sca import figures as persistence
from sardonyx.papers.sca.causes import CHANNELS
from sardonyx.questions import ProgramSource
from sardonyx.report import write_report
from sardonyx.runs import jobs
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.programs import COUNTER_CACHE, KB, MB
from sardonyx.runs.results import Results
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
    hit_rates = {str(128 * KB): 0.5, str(8 * MB): 0.6}
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
            "counter_cache_hit_rate": hit_rates.get(str(point.variant.get(COUNTER_CACHE)), 0.75),
        }
        runs.append(
            {"trace": point.trace, "design": point.design, "machine": "sca"}
            | {"copies": point.copies, "variant": dict(point.variant), "metrics": metrics}
        )
    infos = [{"name": name, "info": info} for name, info in traces.items()]
    zeros = ("tRCD", "tCL", "tBURST", "off_chip")
    parameters = {f"medium.timing.{name}": 0 for name in zeros} | {
        f"caches.{level}.{of}": 0 for level in ("l1", "l2") for of in ("bytes", "latency_ns")
    }
    parameters |= {"medium.timing.clock_ns": 1, "units.aes.latency_ns": 40}
    parameters |= {"caches.llc.bytes": 1, "caches.llc.latency_ns": 80}
    machine = {"name": "sca", "source": "", "parameters": parameters, "assumed": []}
    document = {"sardonyx": "0", "machine": machine, "traces": infos, "runs": runs}
    return compared(document)


def test_claims_follow_from_the_runs() -> None:
    speed = {"no-encryption": 2.0, "ideal": 1.6, "sca": 1.25, "fca": 1.0, "co-located": 0.5}

    def rate(point: Point) -> float:
        faster = 1.25 if point.variant.get(COUNTER_CACHE) == 8 * MB else 1.0
        return 1e6 * speed.get(point.design, 1.0) * (point.copies or 1) * faster

    rows = {row.claim.metric: row for row in sca.claims(invented(rate), sca.QUICK)}
    ours = {metric: row.ours for metric, row in rows.items()}
    assert ours["runtime_vs_no-encryption"] == pytest.approx(2.0)  # of co-located-cc, the last
    assert ours["speedup_over_fca_8_cores"] == pytest.approx(0.25)
    assert ours["runtime_over_sca"] == pytest.approx(2.5)
    assert ours["throughput_loss_vs_ideal"] == pytest.approx(1 - 1.25 / 1.6)
    assert ours["write_traffic_reduction_vs_fca"] == pytest.approx(1 - 68 / 72)
    reading = rows["write_traffic_reduction_vs_fca"].readings
    assert next(iter(reading.values())) == pytest.approx(0.25)
    assert ours["speedup_8MB_vs_128KB_counter_cache_100MB_footprint"] == pytest.approx(0.25)
    dropped = rows["miss_rate_drop_8MB_vs_128KB_100MB_footprint"]
    assert dropped.ours == pytest.approx(0.1)
    assert dropped.readings["of the rate at 128 KB"] == pytest.approx(0.2)
    assert ours["runtime_overhead_vs_ideal_4KB_transactions_btree"] == pytest.approx(0.28)
    assert ours["speedup_over_co-located_write_latency_10x_slower"] == pytest.approx(1.5)
    lacking = [metric for metric, value in ours.items() if value is None]
    assert all("1000MB" in metric for metric in lacking), lacking


def test_the_reading_nearest_to_all_claims_is_found_and_named() -> None:
    """As the paper has it under one reading, all designs alike under the others."""
    wanted = "16 private loads, all counters in reach"
    paper = {"no-encryption": 1.0, "ideal": 1.05, "co-located": 2.02, "sca": 1.117, "fca": 1.19}

    def rate(point: Point) -> float:
        settings = sca_causes.READINGS[wanted]
        meant = settings.items() <= point.variant.items() and CHANNELS not in point.variant
        return 1 / paper.get(point.design, 1.1) if meant else 1.0

    found = invented(rate)
    readings, swept = sca.tables(found, sca.QUICK)
    assert readings.facts["nearest"] == wanted
    assert readings.facts["apart"][wanted] < readings.facts["apart"][sca_causes.TABLE_2]
    assert readings.facts["ours"][wanted]["co-located / sca"] == pytest.approx(2.02 / 1.117)
    assert readings.facts["ours"][sca_causes.TABLE_2]["co-located / sca"] == 1.0
    curve = swept.facts["runtimes"]["share of reads"]
    assert curve["values"] == [0, 2, 4, 8, 16, 64]
    assert curve["sca"] == pytest.approx([1, 1, 1, 1, 1.117, 1])
    row = {row.claim.key: row for row in sca.claims(found, sca.QUICK)}
    far = row["sca Fig. 12 runtime_over_sca co-located mean"]
    assert far.ours == 1.0
    assert far.readings == {f"nearest, under {wanted}": pytest.approx(2.02 / 1.117)}
    near = row["sca Fig. 12 runtime_vs_no-encryption sca mean"]
    assert near.readings == {}  # 1 is within 15 % of 1.117
    where = swept.rows["share of reads"]["co-located slower than sca"].ours
    assert where == "between 8 and 16"
    holds, fails, hangs = sca.verdict(found, list(row.values()), sca.QUICK)
    assert "on 4 of 4 numbers of cores" in holds
    assert "1.00× in place of 1.81×" in fails
    assert wanted in hangs
    assert "1.50 times SCA's" in hangs


def test_a_crossing_lies_between_the_values_around_it() -> None:
    sweep = causes.Sweep("loads", "think.loads", (0, 4, 16), "")
    assert causes.crossing(sweep, [0.9, 0.95, 1.2], 1.0) == "between 4 and 16"
    assert causes.crossing(sweep, [1.1, None, 0.8], 1.0) == "between 0 and 16"
    assert causes.crossing(sweep, [1.1, 1.2, 1.3], 1.0) == "everywhere in 0 to 16"
    assert causes.crossing(sweep, [0.9, 0.9, 1.0], 1.0) == "nowhere in 0 to 16"
    assert causes.crossing(sweep, [None, None, None], 1.0) == "not run"


def test_the_bound_is_a_read_and_a_pad_over_a_read() -> None:
    parameters = json.loads(_core.machine("sca", []))["parameters"]
    bound = sca_causes.Bound.of(parameters)
    cycles = 26 + 8 + 4 + 10  # tRCD, tCL, tBURST, off_chip
    assert bound.read == pytest.approx(cycles * 1.876 + 0.5 + 5)
    assert bound.ratio == pytest.approx(1 + 40 / bound.read)


def test_a_report_of_programs_asks_for_no_baseline(tmp_path: Path) -> None:
    def rate(point: Point) -> float:
        return {"no-encryption": 4.0, "sca": 2.0}.get(point.design, 3.0)

    write_report(invented(rate), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text().split("<script")[0]
    assert "`baseline`" not in page
    assert "ESD Fig." not in page
    summary = page.split('<section id="summary">')[1].split("</section>")[0]
    sca_row = summary.split(">sca</th>")[1].split("</tr>")[0]
    assert re.findall(r"<td[^>]*>(.*?)</td>", sca_row) == ["2.00×", "1.00×", "1.50×"]
    assert "line-through" not in page


@pytest.mark.slow
def test_a_small_reproduction_fills_claims_and_figures() -> None:
    """Real runs, too small to mean anything, of two programs."""
    scale = replace(
        SMALL,
        footprints=(1 * MB,),
        cause_programs=("queue",),
        cause_footprint=SMALL.footprint,
        cause_cores=(1,),
    )
    settings = Settings("sca", (), scale.warmup)
    points = [p for p in sca.points(scale, ("queue", "btree")) if p.copies in (1, 4)]
    jobs.check(points, settings)
    again = Comparison(Results.from_document(jobs.run(points, settings).to_document()))
    for row in sca.claims(again, scale):
        other = ("_2_cores", "_8_cores", "MB_footprint")
        wanted = not any(part in row.claim.metric for part in other)
        assert (row.ours is not None) == wanted, row.claim.metric
    made = persistence.figures(again)
    assert [figure.key for figure in made if isinstance(figure, Missing)] == []
    for figure in made:
        assert not isinstance(figure, Missing) and figure.plotly()
    readings, swept = sca.tables(again, scale)
    assert list(readings.rows) == ["the paper", *sca_causes.READINGS]
    assert set(swept.rows) == {sweep.name for sweep in sca_causes.SWEEPS} - {"channels"}
    assert len(sca.verdict(again, sca.claims(again, scale), scale)) == 3
    slower = {
        run.design: run.metric("runtime_ns") or 0.0
        for run in again.results.runs
        if run.trace == "btree" and run.copies == 1 and not run.variant
    }
    assert slower["no-encryption"] < slower["ideal"] < slower["fca"]
