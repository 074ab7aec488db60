"""EASY-PM's reproduction: what it plans, how claims follow from runs, and a small real one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sardonyx.draw.figure import Missing
from sardonyx.papers import easy_pm
from sardonyx.papers.claims import load_claims
from sardonyx.papers.easy_pm import figures as hardware_logs
from sardonyx.papers.reproduction import Asked
from sardonyx.questions import ProgramSource
from sardonyx.runs import jobs
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.results import Results
from test_report_fixture import compared

SMALL = replace(
    easy_pm.QUICK, footprint=64 << 10, transactions=40, warmup=10, swept=("hash",), cores_too=(1,)
)


def test_each_claim_has_a_definition() -> None:
    assert {claim.metric for claim in load_claims("easy-pm")} == set(easy_pm.METRICS)


def test_the_plan_has_each_run_once_and_all_structures() -> None:
    for scale in (easy_pm.QUICK, easy_pm.FULL):
        points = easy_pm.points(scale)
        assert len({point.job(Settings("easy-pm")) for point in points}) == len(points)
        plain = {p.trace for p in points if p.design == "easy-pm" and not p.variant}
        assert set(easy_pm.PROGRAMS) <= plain
        assert len(easy_pm.PROGRAMS) == 7


def test_a_record_of_seven_lines_costs_what_the_paper_implies() -> None:
    record = easy_pm.RECORD
    assert (record.writes(log_counters=True), record.writes(log_counters=False)) == (30, 22)
    assert (record.counters(log_counters=True), record.counters(log_counters=False)) == (15, 7)
    assert record.saved == pytest.approx(8 / 30)
    assert record.counters_saved == pytest.approx(8 / 15)


def invented(rate: Any) -> Comparison:
    """Results whose transactions a second ``rate`` gives for each point; nothing was measured."""
    traces: dict[str, dict[str, Any]] = {}
    runs = []
    for point in easy_pm.points(easy_pm.QUICK):
        assert isinstance(point.source, ProgramSource)
        traces[point.trace] = {
            "program": point.source.name,
            "transaction_bytes": point.source.item_bytes,
            "footprint_bytes": point.source.footprint,
        }
        logs_counters = point.design == "hw-log"
        metrics = {
            "transactions": 100,
            "transactions_per_second": rate(point),
            "medium_writes": 3000 if logs_counters else 2200,
            "medium_reads": 1000,
            "reads": 100,
            "cpu_cache_miss_rate": 0.1,
            "mean_read_latency_ns": 285.0 if logs_counters else 185.0,
            "core_memory_wait_ns": 0.0,
            "requests": 1000,
            "requests_per_second": 1e6,
            "log_register_bytes": 2048,
            "log_open_header_bytes": 2048,
            "log_timer_bytes": 256,
            "log_rc_bytes": 1024,
        }
        causes = {
            "counter": {"medium_reads": 100, "medium_writes": 1500 if logs_counters else 700},
            "data": {"medium_reads": 900, "medium_writes": 700},
            "log": {"medium_reads": 0, "medium_writes": 800},
        }
        runs.append(
            {"trace": point.trace, "design": point.design, "machine": "easy-pm"}
            | {"copies": point.copies, "variant": dict(point.variant), "metrics": metrics}
            | {"causes": causes}
        )
    infos = [{"name": name, "info": info} for name, info in traces.items()]
    latencies = {f"caches.{level}.latency_ns": 5.0 for level in ("l1", "l2", "llc")}
    machine = {"name": "easy-pm", "source": "", "parameters": latencies, "assumed": []}
    document = {"sardonyx": "0", "machine": machine, "traces": infos, "runs": runs}
    return compared(document)


def test_claims_follow_from_the_runs() -> None:
    speed = {"hw-log": 1.0, "alc": 1.2, "easy-pm": 1.5, "sca": 1.0}

    def rate(point: Point) -> float:
        slower = 0.5 if point.variant.get("easy_pm.cfb_serial") else 1.0
        return 1e6 * speed.get(point.design, 2.0) * slower

    found = invented(rate)
    rows = easy_pm.claims(found)
    ours = {(row.claim.metric, row.claim.stat): row.ours for row in rows}
    assert ours["throughput_gain_over_baseline", "mean"] == pytest.approx(0.5)
    assert ours["throughput_gain_over_alc", "mean"] == pytest.approx(0.25)
    assert ours["pm_write_traffic_reduction_vs_baseline", "mean"] == pytest.approx(8 / 30)
    assert ours["pm_read_traffic_reduction_vs_baseline", "mean"] == pytest.approx(0)
    # 5 + 0.1 * (5 + 5 + 185) against the same of 285
    assert ours["l1_latency_reduction_vs_baseline", "mean"] == pytest.approx(1 - 24.5 / 34.5)
    assert ours["log_metadata_registers_bytes_32_transactions", "value"] == 4352
    assert ours["recent_ciphertext_registers_bytes_32_transactions", "value"] == 1024
    assert ours["medium_writes_per_line_written", "mean"] == pytest.approx(30 / 7)
    writes = next(row for row in rows if "write_traffic" in row.claim.metric)
    assert writes.readings["counter writes alone"] == pytest.approx(8 / 15)
    gain = next(row for row in rows if "over_alc" in row.claim.metric)
    assert gain.readings["the chain charged block by block"] == pytest.approx(0.75 / 1.2 - 1)

    paired, traffic, space, choices, causes = easy_pm.tables(found)
    assert paired.facts["easy_pm_over_sca"] == pytest.approx(dict.fromkeys(easy_pm.PROGRAMS, 0.5))
    assert traffic.rows["hw-log"]["CNT_WT"].ours == "15.00"
    assert space.rows["recent ciphertext"]["ours"].ours == "1,024 B"
    assert set(causes.rows) == {sweep.name for sweep in easy_pm.SWEEPS}
    holds, beside_alc, hangs = easy_pm.verdict(found, rows)
    assert "ahead of hw-log on 7 of 7 structures, by 50.0 % (the paper: 22.0 %)" in holds
    assert "ahead on 7 of 7 structures, by 25.0 % (the paper: 3.7 %)" in beside_alc
    assert "above 0 in 32 of 32" in hangs
    assert set(choices.rows) > {"as the machine is", "order of reuse: lifo"}


def test_every_combination_of_choices_counts_and_what_turns_a_claim_is_named() -> None:
    speed = {"hw-log": 1.0, "alc": 1.2, "easy-pm": 1.5, "sca": 1.0}

    def rate(point: Point) -> float:
        # Groups that merge by member are worth more to ALC than anything else to EASY-PM.
        merging = point.variant.get("medium.queues.group_merging") == "member"
        registers = 1.1 if point.variant.get("easy_pm.valid_headers") == "registers" else 1.0
        return (
            1e6
            * speed.get(point.design, 2.0)
            * registers
            * (2 if merging and point.design == "alc" else 1)
        )

    found = invented(rate)
    table = easy_pm.choices(easy_pm.papers(found.programs))
    assert table is not None
    assert len(table.facts["combinations"]) == 2 ** len(easy_pm.CHOICES)
    alone = table.facts["one_at_a_time"]
    assert alone["as the machine is"]["over alc, mean"] == pytest.approx(0.25)
    assert alone["merging of groups: member"]["over alc, mean"] == pytest.approx(1.5 / 2.4 - 1)
    assert alone["valid headers: registers"]["over hw-log, most"] == pytest.approx(0.65)
    most = table.rows["most of all combinations"]["over alc, mean"]
    assert (most.ours, most.evidence) == ("+37.5%", "easy_pm.valid_headers=registers")
    said = easy_pm.hanging(easy_pm.papers(found.programs))
    assert "over hw-log, mean: above 0 in 32 of 32, +50.0% to +65.0%" in said
    assert "over alc, mean: above 0 in 16 of 32, -37.5% to +37.5%, turned by merging" in said


def test_what_it_cannot_take_is_an_error() -> None:
    for wish in ({"traces": ["x"]}, {"limit": 5}, {"copies": 2}):
        asked = replace(Asked([], "easy-pm"), **wish)
        with pytest.raises(Exception, match="easy-pm runs"):
            easy_pm.REPRODUCTION.plan(asked)


def test_a_small_reproduction_fills_claims_and_figures() -> None:
    """Real runs, too small to mean anything, of two structures."""
    settings = Settings("easy-pm", warmup=SMALL.warmup)
    points = easy_pm.points(SMALL, ("chain-queue", "hash"))
    jobs.check(points, settings)
    again = Comparison(Results.from_document(jobs.run(points, settings).to_document()))
    rows = easy_pm.claims(again)
    lacking = [row.claim.metric for row in rows if row.ours is None]
    assert lacking == ["throughput_gain_over_alc_bplus_tree"], "which is of a structure not run"
    assert len(easy_pm.verdict(again, rows)) == 3
    assert len(easy_pm.tables(again)) == 5
    made = hardware_logs.figures(again)
    assert [figure.key for figure in made if isinstance(figure, Missing)] == []
    for figure in made:
        assert not isinstance(figure, Missing) and figure.plotly()
