"""``reproduce field``: each kind of design on one bench, and the later papers' headlines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sardonyx.papers.claims import NO_PAPER
from sardonyx.papers.reproduction import Asked
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import geometric_mean
from sardonyx.runs.results import Run
from sardonyx.studies import field
from sardonyx.studies.field import COUNTED, DRAINED, QUICK, Kind, kinds, own, points, published

SMALL = Kind("logs", "hw-log", ("sca", "lad"), ("time", "writes", "energy"))


def test_every_headline_is_of_designs_that_run() -> None:
    ran = {(point.trace, point.design) for point in points(QUICK)}
    assert len(ran) == len(points(QUICK))
    designs = {design for _, design in ran}
    for claim, metric, over in (*published(), *own()):
        assert {claim.design, over} <= designs, claim
        assert metric in COUNTED or metric == "extra_writes_saved", claim
    keys = [claim.key for claim, *_ in (*published(), *own())]
    assert len(keys) == len(set(keys))
    for kind in kinds():
        workloads = {trace for trace, design in ran if design == kind.over}
        for design in kind.others:
            assert {trace for trace, other in ran if other == design} == workloads


def test_what_was_not_cut_does_not_survive() -> None:
    assert field._survives([]).ours == "not cut"
    assert field._survives([{"error": "why"}, {"cuts": 0, "lost_cuts": 0}]).ours == "not cut"
    partly = field._survives([{"error": "why"}, {"cuts": 9, "lost_cuts": 0}])
    assert (partly.ours, partly.evidence) == ("survives", "9 cuts of 1 of 2 programs")


def of(trace: str, design: str, **metrics: float) -> Run:
    return Run(trace, design, "sca", 1, {}, metrics=dict(metrics))


def test_ratios_are_of_a_transaction_and_of_one_workload() -> None:
    runs = [
        of("queue", "hw-log", runtime_ns=300.0, transactions=3),
        of("queue", "lad", runtime_ns=100.0, transactions=2),
        of("hash", "hw-log", runtime_ns=300.0, transactions=3),
        of(DRAINED, "hw-log", runtime_ns=1.0, transactions=1),
        of("redis", "esd", mean_write_latency_ns=200.0),
        of("redis", "fsdedup", mean_write_latency_ns=80.0),
    ]
    assert field.times_less(runs, "time", "lad", "hw-log") == {"queue": 2.0, "hash": None}
    assert field.times_less(runs, "write_latency", "fsdedup", "esd") == {"redis": 2.5}


def test_extra_writes_are_those_over_a_tree_that_is_written_back() -> None:
    runs = [
        of(trace, design, medium_writes=writes, transactions=10)
        for trace, each in (("queue", (100, 150, 105)), ("hash", (100, 100, 105)))
        for design, writes in zip(
            ("sca@sgx", "sca@anubis-asit", "sca@star"), map(float, each), strict=True
        )
    ]
    found = field.extra_writes_saved(runs, "sca@star", "sca@anubis-asit")
    assert found["queue"] == pytest.approx(0.9)
    assert found["hash"] is None  # nothing is added of which a share could be saved


def test_a_small_field_is_run_cut_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(QUICK, footprint=1 << 15, drained=1 << 16, transactions=60, warmup=20, cuts=2)
    monkeypatch.setattr(field, "kinds", lambda: (SMALL,))
    monkeypatch.setattr(field, "PROGRAMS", ("queue", "hash"))
    monkeypatch.setattr(field, "QUICK", small)
    plan = field.REPRODUCTION.plan(Asked((), "sca", quick=True))
    comparison = Comparison(plan.runs.run())
    (table,) = plan.measure(comparison, None)
    assert list(table.rows) == ["hw-log", "sca", "lad"]
    runs = {(run.trace, run.design): run for run in comparison.results.runs}
    ratios = []
    for program in ("queue", "hash"):
        one, other = (runs[program, design].metric("runtime_ns") for design in ("hw-log", "lad"))
        assert one is not None and other is not None
        ratios.append(one / other)
    assert table.rows["lad"]["time"].ours == f"{geometric_mean(ratios):.2f}×"
    assert table.rows["hw-log"]["time"].ours == "1.00×"
    for row in table.rows.values():
        assert row["after it"].ours == "survives" and row["after it"].counts["cuts"] > 10
        assert row["a cut"].ours.endswith(" µJ")
    rows = {
        (row.claim.design, row.claim.where, row.claim.metric): row
        for row in plan.claims(comparison)
    }
    lad = rows["lad", NO_PAPER, "time of hw-log / own"]
    assert lad.ours == pytest.approx(sum(ratios) / 2) and lad.verdict in ("no worse", "worse")
    assert rows["hoop", "HOOP (ISCA 2020), over LAD", "time of lad / own"].ours is None
    said = plan.verdict(comparison, list(rows.values()))
    assert said[0].startswith("Logs: ") and said[-1].startswith(("0 of ", "1 of ", "2 of "))
