"""Our figures for ESD's claims, by hand on two invented workloads; and the plan of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sardonyx.papers import esd
from sardonyx.papers.claims import ClaimRow, load_claims
from sardonyx.papers.esd import METRICS, Kind, stand_ins
from sardonyx.papers.reproduction import Asked, BesidePaper, Plan
from sardonyx.papers.reproduction import document as whole
from sardonyx.questions import TraceSource
from sardonyx.runs.jobs import Point, Settings, Simulations
from sardonyx.runs.results import Results
from test_report_fixture import compared, invented_document, locality, paced

KB = 1024
FIG_16 = "Fig. 16 (text; the abstract prints 96.3/96.2/56.6)"


def run(trace: str, design: str, variant: Mapping[str, Any] | None = None, **metrics: Any) -> Any:
    causes = metrics.pop("causes", {})
    return {
        "trace": trace,
        "design": design,
        "machine": "m",
        "copies": 1,
        "variant": dict(variant or {}),
        "metrics": metrics,
        "causes": {name: {"write_latency_ns": ns} for name, ns in causes.items()},
        "assumed": ["units.sha1.energy_nj", "units.crc32.latency_ns"]
        if design != "baseline"
        else [],
    }


def facts(name: str, rate: float, contents: list[int], writes: list[int]) -> Any:
    found = {"duplicate_rate": rate, "locality": locality(("1", ">1000"), contents, writes)}
    return {"name": name, "info": found}


def saving(share: float) -> dict[str, Any]:
    return {"writes": 1000, "write_reduction": share}


def duplicates(cache: int, medium: int) -> dict[str, Any]:
    return {"duplicates_found_in_cache": cache, "duplicates_found_in_medium": medium}


def document() -> dict[str, Any]:
    """Two workloads, a and b, with figures that are easy to reckon with."""
    sha1_a: dict[str, Any] = duplicates(300, 100) | {"metadata_bytes": 340}
    sha1_a["causes"] = {"fingerprint": 60, "lookup": 30, "compare": 5, "data": 5}
    sha1_b: dict[str, Any] = duplicates(500, 300) | {"metadata_bytes": 340}
    sha1_b["causes"] = {"fingerprint": 80, "lookup": 10, "data": 10}
    dewrite: dict[str, Any] = {"metadata_bytes": 170, "metadata_bytes_per_line": 16}
    esd_a: dict[str, Any] = {"metadata_bytes": 68, "medium_writes": 700}
    esd_a["causes"] = {"compare": 40, "data": 60}
    esd_b: dict[str, Any] = {"metadata_bytes": 34, "medium_writes": 500}
    esd_b["causes"] = {"compare": 50, "data": 50}
    efit = [(512, "lrcu", 0.50), (1024, "lrcu", 0.53), (2048, "lrcu", 0.54)]
    efit += [(512, "lru", 0.40), (1024, "lru", 0.41)]
    return {
        "sardonyx": "1",
        "machine": {"name": "m", "parameters": {}, "assumed": []},
        "traces": [facts("a", 0.2, [99, 1], [100, 300]), facts("b", 0.6, [300, 0], [100, 0])],
        "runs": [
            run("a", "baseline", **paced(300, 100, 0.5, 100), medium_writes=1000),
            run("b", "baseline", **paced(200, 100, 1.0, 100), medium_writes=1000),
            run("a", "dedup-sha1", **paced(600, 120, 0.4, 160), **saving(0.5), **sha1_a),
            run("b", "dedup-sha1", **paced(400, 100, 1.0, 90), **saving(0.7), **sha1_b),
            run("a", "dewrite", mean_write_latency_ns=150, **dewrite),
            run("a", "esd", **paced(100, 50, 1.0, 40), **saving(0.4), **esd_a),
            run("b", "esd", **paced(100, 80, 1.5, 80), **saving(0.6), **esd_b),
            run(
                "a", "esd", {"esd.reclaim": "paper"}, mean_write_latency_ns=75, write_reduction=0.45
            ),
            *(
                run("a", "esd", {"esd.efit_bytes": size * KB, "esd.policy": name}, efit_hit_rate=x)
                for size, name, x in efit
            ),
            run("a", "esd", {"esd.amt_bytes": 512 * KB}, amt_hit_rate=0.90),
            run("a", "esd", {"esd.amt_bytes": 1024 * KB}, amt_hit_rate=0.95),
        ],
    }


def rows(doc: dict[str, Any] | None = None) -> dict[tuple[str, str, str, str], ClaimRow]:
    found = esd.claims(compared(doc or document()))
    return {(r.claim.where, r.claim.metric, r.claim.design, r.claim.stat): r for r in found}


BY_HAND = [
    ("Fig. 1", "duplicate_rate", "workload", "min", 0.2),
    ("Fig. 1", "duplicate_rate", "workload", "mean", 0.4),
    ("Fig. 1", "duplicate_rate", "workload", "max", 0.6),
    ("Fig. 3", "unique_lines_written_over_1000_times", "workload", "mean", 0.005),
    ("Fig. 3", "volume_of_lines_written_over_1000_times", "workload", "mean", 0.375),
    ("Fig. 5", "duplicates_found_in_fingerprint_cache", "dedup-sha1", "mean", 0.4),
    ("Fig. 5", "duplicates_found_by_nvmm_lookup", "dedup-sha1", "mean", 0.2),
    ("Sec. IV-F", "duplicates_found_by_nvmm_lookup", "dedup-sha1", "mean", 0.2),
    ("Fig. 5", "nvmm_lookup_share_of_write_latency", "dedup-sha1", "mean", 0.2),
    ("Fig. 5", "nvmm_lookup_share_of_write_latency", "dedup-sha1", "max", 0.3),
    ("Sec. III-D", "nvmm_lookup_share_of_write_latency", "dedup-sha1", "mean", 0.2),
    ("Fig. 11", "write_reduction", "esd", "mean", 0.5),
    ("Fig. 11", "write_reduction", "esd", "max", 0.6),
    ("Fig. 11", "write_reduction_lead_over_esd", "dedup-sha1", "mean", 0.1),
    ("Fig. 12", "write_speedup_over_baseline", "esd", "max", 3.0),
    ("Fig. 12", "write_speedup_over_dedup-sha1", "esd", "max", 6.0),
    ("Fig. 12", "write_speedup_over_dewrite", "esd", "max", 1.5),
    ("Fig. 13", "read_speedup_over_baseline", "esd", "max", 2.0),
    ("Fig. 13", "read_speedup_over_dedup-sha1", "esd", "max", 2.4),
    ("Fig. 12 (text)", "write_speedup_over_baseline", "esd", "min", 2.0),
    ("Fig. 13 (text)", "read_speedup_over_baseline", "esd", "min", 1.25),
    ("Fig. 14 (text)", "ipc_over_baseline", "esd", "min", 1.5),
    ("Fig. 14", "ipc_over_baseline", "esd", "max", 2.0),
    ("Fig. 14", "ipc_over_dedup-sha1", "esd", "max", 2.5),
    (FIG_16, "energy_reduction_vs_baseline", "esd", "max", 0.6),
    ("Abstract", "energy_reduction_vs_baseline_abstract", "esd", "max", 0.6),
    ("Fig. 16 (text)", "energy_reduction_vs_dedup-sha1", "esd", "max", 0.75),
    ("Fig. 17", "fingerprint_share_of_write_latency", "dedup-sha1", "mean", 0.7),
    ("Fig. 17", "fingerprint_share_of_write_latency", "esd", "mean", 0.0),
    ("Fig. 17", "nvmm_lookup_share_of_write_latency", "dedup-sha1", "mean", 0.2),
    ("Fig. 18(a)", "efit_hit_rate_gain_512KB_to_1MB_with_lrcu", "esd", "mean", 0.03),
    ("Fig. 18(a)", "efit_hit_rate_gain_1MB_to_2MB_with_lrcu", "esd", "mean", 0.01),
    ("Fig. 18(a)", "efit_hit_rate_gain_512KB_to_1MB_with_lru", "esd", "mean", 0.01),
    ("Fig. 18(b)", "amt_hit_rate_gain_512KB_to_1MB", "esd", "mean", 0.05),
    ("Fig. 19", "metadata_reduction_vs_dedup-sha1", "esd", "mean", 0.85),
    ("Fig. 19", "metadata_reduction_vs_dewrite", "esd", "mean", 0.6),
    ("Sec. IV-G", "metadata_overhead_of_capacity", "dewrite", "mean", 0.25),
]


@pytest.mark.parametrize(("where", "metric", "design", "stat", "ours"), BY_HAND)
def test_our_figure_by_hand(where: str, metric: str, design: str, stat: str, ours: float) -> None:
    assert rows()[where, metric, design, stat].ours == pytest.approx(ours)


def test_every_claim_of_the_paper_is_there_and_has_its_function() -> None:
    claims = load_claims("esd")
    assert {claim.metric for claim in claims} <= set(METRICS)


NOT_COMPUTABLE = {
    (
        "Fig. 11",
        "write_reduction_lead_over_esd",
        "dewrite",
    ): "runs of dewrite and esd with `write_reduction`",
    (
        "Fig. 13",
        "read_speedup_over_dewrite",
        "esd",
    ): "runs of esd and dewrite with `mean_read_latency_ns`",
    ("Fig. 14", "ipc_over_dewrite", "esd"): "with `ipc`",
    ("Fig. 16 (text)", "energy_reduction_vs_dewrite", "esd"): "with `energy_nj`",
    ("Fig. 17", "fingerprint_share_of_write_latency", "dewrite"): "write latency by cause",
    ("Fig. 17", "nvmm_lookup_share_of_write_latency", "dewrite"): "write latency by cause",
    ("Fig. 18(a)", "efit_hit_rate_gain_1MB_to_2MB_with_lru", "esd"): "1024 and 2048 KB under lru",
    ("Fig. 18(b)", "amt_hit_rate_gain_1MB_to_2MB", "esd"): "a sweep of `esd.amt_bytes`",
    ("Fig. 15 (eight applications)", "p99_write_speedup_over_dedup-sha1", "esd"): "p99_write",
    ("Fig. 15 (eight applications)", "p99_write_speedup_over_dewrite", "esd"): "p99_write",
    ("Fig. 4", "time_added_by_wrong_predictions_on_lbm_ms", "dewrite"): "a run of lbm",
    ("Fig. 8", "collisions_over_crc", "esd"): "no run counts its collisions",
    ("Fig. 12 (text)", "write_speedup_over_esd_on_lbm", "dewrite"): "a run of lbm",
    ("Fig. 13 (text)", "read_speedup_over_esd_on_lbm", "dewrite"): "a run of lbm",
}


def test_what_cannot_be_computed_says_what_is_lacking() -> None:
    lacking = {key[:3]: row.reason for key, row in rows().items() if row.ours is None}
    assert set(lacking) == set(NOT_COMPUTABLE)
    for key, words in NOT_COMPUTABLE.items():
        assert words in lacking[key]
    assert all(
        row.gap is None and row.relative_gap is None for row in rows().values() if row.reason
    )


def test_gaps_by_hand() -> None:
    row = rows()["Fig. 12", "write_speedup_over_baseline", "esd", "max"]
    assert row.claim.value == 3.4
    assert row.gap == pytest.approx(-0.4)
    assert row.relative_gap == pytest.approx(-0.4 / 3.4)
    zero = rows()["Fig. 17", "fingerprint_share_of_write_latency", "esd", "mean"]
    assert (zero.gap, zero.relative_gap) == (0.0, None)


def test_contradictory_statements_get_every_reading() -> None:
    found = rows()
    lead = found["Fig. 11", "write_reduction_lead_over_esd", "dedup-sha1", "mean"].readings
    assert lead["relative to esd's reduction"] == pytest.approx((0.1 / 0.4 + 0.1 / 0.6) / 2)
    assert lead["relative to dedup-sha1's reduction"] == pytest.approx((0.1 / 0.5 + 0.1 / 0.7) / 2)
    lookup = found["Fig. 5", "nvmm_lookup_share_of_write_latency", "dedup-sha1", "max"].readings
    assert lookup["as an increase over the rest of the latency"] == pytest.approx(0.3 / 0.7)
    assert lookup["with the read that confirms a match"] == pytest.approx(0.35)
    medium = found["Fig. 5", "duplicates_found_by_nvmm_lookup", "dedup-sha1", "mean"].readings
    assert medium["as a share of the duplicates found"] == pytest.approx((0.25 + 0.375) / 2)
    pooled = found["Fig. 3", "volume_of_lines_written_over_1000_times", "workload", "mean"].readings
    assert pooled["all traces pooled"] == pytest.approx(300 / 500)
    saved = found["Fig. 11", "write_reduction", "esd", "mean"].readings
    assert saved["all medium writes, metadata included"] == pytest.approx(0.4)
    assert saved["reclaim = paper"] == 0.45
    assert "reclaim = counted" not in saved
    faster = found["Fig. 12", "write_speedup_over_baseline", "esd", "max"].readings
    assert faster == {"reclaim = paper": 4.0}


def test_a_claim_says_over_how_many_workloads_and_on_what_it_rests() -> None:
    found = rows()
    row = found["Fig. 12", "write_speedup_over_dewrite", "esd", "max"]
    assert row.workloads == {"a": 1.5}
    assert row.note.endswith("over 1 of 2 workloads")
    assert row.assumed == ("units.crc32.latency_ns",)
    energy = found[FIG_16, "energy_reduction_vs_baseline", "esd", "max"]
    assert "units.sha1.energy_nj" in energy.assumed
    assert found["Fig. 1", "duplicate_rate", "workload", "min"].assumed == ()


def test_the_paper_never_enters_our_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {key: row.ours for key, row in rows().items()}
    changed = [replace(claim, value=claim.value * 7) for claim in load_claims("esd")]
    monkeypatch.setattr("sardonyx.papers.claims.load_claims", lambda paper: changed)
    assert {key: row.ours for key, row in rows().items()} == ours


# ---- the plan


def planned(*names: str, quick: bool = False) -> list[Point]:
    return esd.points({name: TraceSource(path=name) for name in names}, quick)


def test_the_plan_has_every_run_that_a_figure_needs() -> None:
    plan = planned("redis", "ladder-50")
    assert {p.trace for p in plan} == {"redis", "ladder-50"}
    of_redis = [p for p in plan if p.trace == "redis"]
    assert [p.design for p in of_redis if not p.variant] == [
        "baseline",
        "dedup-sha1",
        "dewrite",
        "esd",
    ]
    swept = {
        (p.variant["esd.efit_bytes"], p.variant["esd.policy"])
        for p in of_redis
        if "esd.efit_bytes" in p.variant
    }
    sizes = {64 * KB, 128 * KB, 256 * KB, 512 * KB, 1024 * KB, 2048 * KB}
    assert swept == {(size, policy) for size in sizes for policy in ("lrcu", "lru")}
    assert {p.variant["esd.amt_bytes"] for p in of_redis if "esd.amt_bytes" in p.variant} == sizes
    assert {p.variant.get("esd.reclaim") for p in of_redis} == {None, "paper", "counted"}
    assert len({p.job(Settings()) for p in plan}) == len(plan)


def test_a_quick_plan_still_answers_every_claim() -> None:
    full, quick = planned("t"), planned("t", quick=True)
    assert len(quick) < len(full)
    invented = invented_document(1)
    plain = {r["design"]: r for r in invented["runs"] if not r["variant"]}
    runs = [plain[p.design] | {"trace": p.trace, "variant": dict(p.variant)} for p in quick]
    answered = invented | {"traces": [invented["traces"][0] | {"name": "t"}], "runs": runs}
    lacking = [key[0] for key, row in rows(answered).items() if row.ours is None]
    tails = "Fig. 15 (eight applications)"  # which the invented runs lack
    assert sorted(set(lacking) - {tails}) == [
        "Fig. 12 (text)",
        "Fig. 13 (text)",
        "Fig. 4",
        "Fig. 8",
    ]


def test_the_output_names_the_stand_ins_and_is_json() -> None:
    sentence = stand_ins({"redis": "recording", "cc1": "recording", "ladder-50": "ladder"})
    assert "SPEC CPU 2017 and PARSEC" in sentence
    assert "recordings of real programs (redis, cc1)" in sentence
    assert "generated traces (ladder-50)" in sentence
    comparison = compared(document())
    beside = BesidePaper(tuple(esd.claims(comparison)), sentence, verdict=("It holds.",))
    plan = Plan(Simulations(Settings(), []), sentence, esd.claims)
    written = json.loads(json.dumps(whole("esd", plan, beside, comparison)))
    assert (written["verdict"], written["stand_ins"]) == (["It holds."], sentence)
    first = written["claims"][0]
    assert (first["reported"], first["ours"]) == (0.331, 0.2)
    assert first["gap"] == pytest.approx(-0.131)
    assert Results.from_document(written["results"]) == comparison.results


def test_the_output_says_what_ran_of_each_trace_and_on_how_many_cores() -> None:
    kinds: dict[str, Kind] = {"redis": "recording"}
    assert "8 cores run, each with contents of its own, 150,000 records from its middle" in (
        stand_ins(kinds)
    )
    alone = stand_ins(kinds, 5_000, 1, "2000")
    assert "one core runs 5,000 records from its middle, of which 2000 only warm up" in alone


def test_service_times_leave_the_queues_out() -> None:
    changed = document()
    changed["machine"]["parameters"] = {
        "medium.timing.clock_ns": 2.5,
        "medium.timing.tRCD": 30,
        "medium.timing.tWP": 60,
        "units.sha1.latency_ns": 321.0,
    }
    for each in changed["runs"]:
        if each["design"] == "dedup-sha1":
            each["metrics"]["writes"] = 10
            each["causes"]["lookup"]["medium_reads"] = 4
            each["causes"]["compare"] = {"write_latency_ns": 1, "medium_reads": 6}
            each["causes"]["data"]["medium_writes"] = 4
    row = rows(changed)["Fig. 17", "fingerprint_share_of_write_latency", "dedup-sha1", "mean"]
    assert row.readings["of service times, no queues"] == pytest.approx(3210 / (3210 + 750 + 600))


def test_the_recordings_come_with_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = esd.REPRODUCTION.plan(Asked([], "esd"))
    recorded = [w["name"] for w in plan.facts["workloads"] if w["kind"] == "recording"]
    assert recorded == ["cc1", "pmdk-tx", "redis", "sqlite3", "stockfish", "x264"]


def test_eight_cores_run_the_middle_of_each_trace_and_warm_up_with_half_of_it() -> None:
    plan = esd.REPRODUCTION.plan(Asked(["traces/redis.parquet"], "esd"))
    assert isinstance(plan.runs, Simulations)
    shared = plan.runs.settings
    assert (shared.copies, shared.distinct, shared.warmup_share) == (8, True, 0.5)
    assert {(p.source.limit, p.source.window) for p in plan.runs.points} == {(150_000, 0.5)}  # type: ignore[union-attr]
    assert {p.trace for p in plan.runs.points} > {"redis", "rung-60", "rung-99.9"}


def test_the_verdict_says_what_holds_what_does_not_and_what_it_hangs_on() -> None:
    changed = document()
    changed["runs"][-1]["metrics"]["amt_hit_rate"] = 0.904  # within the paper's gain of 0.5 points
    changed["runs"].append(
        run("a", "dedup-sha1", {"units.sha1.number": 1}, mean_write_latency_ns=2000)
    )
    worse = next(r for r in changed["runs"] if r["trace"] == "b" and r["design"] == "esd")
    worse["metrics"]["ipc"] = 0.9
    comparison = compared(changed)
    what_holds, what_not, hangs = esd.verdict(comparison, esd.claims(comparison))
    assert "Fig. 18 (1 of 4)" in what_holds
    assert "Fig. 1," not in what_holds
    assert "no figure of Fig. 1" in what_not
    assert "of 2 workloads ESD is worse than the baseline in writes on 0, reads on 0, IPC on 1" in (
        what_not
    )
    assert "write speedup over dedup-sha1 is 20.00×, not 6.00×" in hangs


def test_the_bound_of_a_removed_duplicate_s_energy_is_the_machine_s() -> None:
    changed = document()
    changed["machine"]["parameters"] = {
        "medium.energy.write_nj": 6.75,
        "medium.energy.read_nj": 1.49,
        "units.aes.energy_nj": 5.9,
    }
    found = rows(changed)
    fig_16 = found[FIG_16, "energy_reduction_vs_baseline", "esd", "max"].note
    assert "saves at most 5.26 / (6.75 + x) of its write" in fig_16
    assert "needs x <= 0.84 nJ" in fig_16
    abstract = found["Abstract", "energy_reduction_vs_baseline_abstract", "esd", "max"].note
    assert "the paper's 96.3% is impossible even at x = 0" in abstract


def test_metadata_are_tables_for_every_line_and_beside_them_the_entries_in_use() -> None:
    changed = document()
    in_use = {("a", "dedup-sha1"): 100.0, ("b", "dedup-sha1"): 80.0}
    in_use |= {("a", "esd"): 60.0, ("b", "esd"): 60.0}
    for run in changed["runs"]:
        if not run["variant"]:
            run["metrics"]["metadata_bytes_in_use"] = in_use.get((run["trace"], run["design"]))
    found = rows(changed)["Fig. 19", "metadata_reduction_vs_dedup-sha1", "esd", "mean"]
    assert found.readings == {"entries in use alone": pytest.approx((0.4 + 0.25) / 2)}
