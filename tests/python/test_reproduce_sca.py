"""SCA's reproduction: which runs it plans, how claims follow from runs, and a small real one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sardonyx import api_jobs
from sardonyx import reproduce_sca as sca
from sardonyx.claims import load_claims
from sardonyx.report import persistence
from sardonyx.report.figure import Missing
from sardonyx.results import Results

SMALL = replace(sca.QUICK, footprint=256 << 10, transactions=60, warmup=20)


def test_each_claim_has_a_definition() -> None:
    assert {claim.metric for claim in load_claims("sca")} == set(sca.METRICS)


def test_the_plan_has_each_run_once() -> None:
    for scale in (sca.QUICK, sca.FULL):
        jobs = [point.job(scale) for point in sca.plan(scale)]
        runs = {(j.trace, j.design, j.copies, tuple(sorted(j.variant.items()))) for j in jobs}
        assert len(runs) == len(jobs)
        assert {job.copies for job in jobs} == {1, 2, 4, 8}
        assert {job.design for job in jobs} == set(sca.DESIGNS)


def invented(rate: Any) -> Results:
    """Results whose transactions a second ``rate`` gives for each point; nothing was measured."""
    scale = sca.QUICK
    points = sca.plan(scale)
    traces: dict[str, dict[str, Any]] = {}
    runs = []
    for point in points:
        job = point.job(scale)
        traces[job.trace] = {
            "program": point.program,
            "transaction_bytes": point.transaction_size,
            "footprint_bytes": point.footprint,
        }
        metrics = {
            "transactions": 100,
            "transactions_per_second": rate(point),
            "medium_writes": {"fca": 2000, "sca": 1500}.get(point.design, 1000),
            "medium_write_bytes": {"fca": 72_000, "co-located": 72_000}.get(point.design, 68_000),
            "counter_cache_hit_rate": 0.5 if point.variant else 0.75,
        }
        runs.append(
            {"trace": job.trace, "design": job.design, "machine": "sca", "copies": job.copies}
            | {"variant": dict(job.variant), "metrics": metrics}
        )
    infos = [{"name": name, "info": info} for name, info in traces.items()]
    machine = {"name": "sca", "source": "", "parameters": {}, "assumed": []}
    document = {"sardonyx": "0", "machine": machine, "traces": infos, "runs": runs}
    return Results.from_document(document)


def test_claims_follow_from_the_runs() -> None:
    speed = {"no-encryption": 2.0, "ideal": 1.6, "sca": 1.25, "fca": 1.0, "co-located": 0.5}

    def rate(point: sca.Point) -> float:
        faster = 1.25 if point.variant.get(sca.COUNTER_CACHE) == 8 * sca.MB else 1.0
        return 1e6 * speed.get(point.design, 1.0) * point.cores * faster

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


def test_a_small_reproduction_fills_claims_and_figures() -> None:
    """Real runs, too small to mean anything, of two programs."""
    scale = replace(SMALL, footprints=(1 * sca.MB,))
    settings = api_jobs.Settings("sca", warmup=scale.warmup)
    jobs = [point.job(scale) for point in sca.plan(scale, ("queue", "btree"))]
    jobs = [job for job in jobs if job.copies in (1, 4)]
    machine = api_jobs.check_machine(settings, jobs)
    api_jobs.check_fits(jobs, settings)
    results = api_jobs.run(jobs, settings, machine)
    again = Results.from_document(results.to_document())
    for row in sca.claims(again):
        other = ("_2_cores", "_8_cores", "MB_footprint")
        wanted = not any(part in row.claim.metric for part in other)
        assert (row.ours is not None) == wanted, row.claim.metric
    made = persistence.figures(again)
    assert [figure.key for figure in made if isinstance(figure, Missing)] == []
    for figure in made:
        assert not isinstance(figure, Missing)
        figure.plotly()
    slower = {
        run.design: run.metric("runtime_ns") or 0.0
        for run in again.runs
        if run.trace == "btree" and run.copies == 1 and not run.variant
    }
    assert slower["no-encryption"] < slower["ideal"] < slower["fca"]
