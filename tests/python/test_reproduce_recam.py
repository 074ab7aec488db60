"""ReCAM's reproduction: which runs it plans, how claims follow from runs, and a small real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sardonyx
from sardonyx import _core
from sardonyx.draw.figure import Figure
from sardonyx.papers import recam
from sardonyx.papers.claims import ClaimRow, load_claims
from sardonyx.papers.recam import MB, Stores, energy, figures, metric
from sardonyx.papers.reproduction import Asked
from sardonyx.papers.sampling import Sampling
from sardonyx.questions import Stream
from sardonyx.report import write_report
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.stores import KB, StorePoint, StoreRuns
from sardonyx.studies import reproductions

SMALL = replace(recam.QUICK, simulated=2 * MB, beside=2 * MB, written=2 * MB)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    points = recam.points(SMALL, recam.RECAM, recam.RIVAL)
    runs = StoreRuns(points)
    runs.check()
    return Comparison(runs.run())


@pytest.fixture(scope="module")
def rows(comparison: Comparison) -> dict[str, ClaimRow]:
    return {row.claim.metric: row for row in recam.claims(comparison)}


def test_each_claim_has_a_definition() -> None:
    told = (*load_claims("recam"), *recam.ORDER)
    assert {claim.metric for claim in told} == set(recam.METRICS)
    assert reproductions()["recam"] is recam.REPRODUCTION


def test_the_plan_has_each_run_once_and_the_papers_sizes() -> None:
    for scale in (recam.QUICK, recam.FULL):
        points = recam.points(scale, recam.RECAM, recam.RIVAL)
        asked = [point.question.json() for point in points]
        assert len(set(asked)) == len(asked)
        blocks = {point.question.block_bytes for point in points}
        assert blocks == {KB, 2 * KB, 4 * KB, 8 * KB}

    def largest(design: str, points: list[StorePoint]) -> int:
        sizes = (
            p.question.workload.bytes
            for p in points
            if p.question.design.name == design and isinstance(p.question.workload, Stream)
        )
        return max(sizes)

    full = recam.points(recam.FULL, recam.RECAM, recam.RIVAL)
    assert largest("recam", full) == 50 << 30  # Sec. IV
    assert largest("conventional", full) == 2 << 30


def test_eight_kilobytes_give_the_papers_throughput(rows: dict[str, ClaimRow]) -> None:
    row = rows["write_iops_8KB_blocks_30pct_duplicates"]
    # (S + S + 4) cycles of a unique block, S + 4 of a duplicate; three in ten, less rounding.
    assert row.ours == pytest.approx(1e9 / (256 + 0.7 * 256 + 4), rel=0.002)
    assert row.relative_gap == pytest.approx(0.035, abs=0.002)
    assert row.assumed == ("recam.address_cycles", "recam.overwrite")
    assert rows["compare_cycles_4KB_block_256_bit_rows"].ours == 128
    assert rows["compare_cycles_4KB_block_256_bit_rows"].assumed == ()


def test_every_claim_has_a_figure_and_says_what_it_rests_on(rows: dict[str, ClaimRow]) -> None:
    assert [row.reason for row in rows.values() if row.ours is None] == []
    for name in ("energy_over_conventional_1KB_blocks", "energy_over_recam_8KB_blocks"):
        assert "recam.compared_bit_fj" in rows[name].assumed
        assert "conventional.processor_w" in rows[name].assumed
        falls = "what recam / conventional falls by from the smallest block to the largest"
        assert rows[name].readings[falls] > 1
    speedup = rows["throughput_over_conventional_dedup"]
    assert len(speedup.workloads) == 4 * len(SMALL.duplicates)
    assert speedup.ours is not None and speedup.ours > 1


def test_duplicates_are_found_by_both_unless_encrypted(comparison: Comparison) -> None:
    found = Stores(comparison.results)
    for design in recam.DESIGNS:
        plain, under_pads = (found.run(design, 8 * KB, more=m) for m in ("", "encrypted"))
        writes = metric(plain, "writes")
        assert writes is not None and metric(plain, "duplicate_writes") == int(writes * 0.3)
        assert metric(under_pads, "duplicate_writes") == 0


def test_continuous_compare_saves_nearly_all_rows(comparison: Comparison) -> None:
    found = Stores(comparison.results)
    for block in recam.BLOCKS:
        plain = found.run("recam", block)
        single = found.run("recam", block, variant={recam.COMPARE: "single"})
        rows = block * 8 / 256
        ratio = (metric(single, "search_active_rows") or 0) / (
            metric(plain, "search_active_rows") or 1
        )
        assert 0.99 * rows < ratio <= rows
        lower, middle, upper = (energy(plain, end) for end in ("low", "", "high"))
        assert lower and middle and upper and lower < middle < upper


def test_the_report_has_every_figure(comparison: Comparison, tmp_path: Path) -> None:
    drawn = figures.figures(comparison)
    assert [f.key for f in drawn if not isinstance(f, Figure)] == []
    write_report(comparison, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert all(f'id="{figure.key}"' in page for figure in drawn)


def test_what_recam_cannot_have_is_an_error() -> None:
    asked = Asked([], "recam")
    for wish, words in (
        (replace(asked, overrides=[("recam.rowbits", "1")]), 'did you mean "recam.row_bits"'),
        (replace(asked, overrides=[("recam.row_bits", "x")]), "--set recam.row_bits=x: "),
        (replace(asked, overrides=[("recam.compared_bit_fj", "x")]), "give a number"),
        (replace(asked, overrides=[("conventional.memory_w", "x")]), "give a number"),
    ):
        with pytest.raises(_core.SardonyxError, match=words):
            recam.REPRODUCTION.plan(wish)
    wishes: tuple[dict[str, Any], ...] = (
        {"traces": "x.parquet"}, {"copies": 2}, {"machine": "esd"},
    )  # fmt: skip
    for given in wishes:
        with pytest.raises(_core.SardonyxError, match="does nothing for recam; leave it out; set"):
            sardonyx.reproduce("recam", **given)


def test_keys_of_the_array_can_be_set() -> None:
    settings = [("recam.row_bits", "512"), ("recam.compared_bit_fj", "1-2")]
    values = recam.RECAM.having(settings).values()
    assert values["recam.row_bits"] == 512
    assert values["recam.compared_bit_fj"] == "1 to 2"
    assert values["recam.match_line_fj"] == "0"


def test_the_sample_draws_keys_of_both_stores_and_judges_every_claim(
    comparison: Comparison, tmp_path: Path
) -> None:
    of = recam.sampled(Asked([], "recam", overrides=[("recam.first", "rows")]))
    small = tuple(
        replace(each, value=str(MB), low=str(MB), high=str(2 * MB))
        if each.parameter == "written"
        else each
        for each in of.choices
    )
    point = {row.claim.key: row.ours for row in recam.claims(comparison)}
    one = Sampling(
        replace(of, choices=small), 2, 1, tmp_path, frozenset(), comparison.results, point
    )
    sample, turning = one.run()
    assert turning is None
    assert not sample.failures and sample.runs == 2 * 2 * 5
    assert {claim.cells for claim in sample.claims} == {2}
    drawn = {choice.name for choice in sample.choices}
    assert "conventional.processor_w" in drawn and "recam.first" not in drawn
    by = {claim.title.split(",")[0]: claim for claim in sample.claims}
    order = by["energy over conventional 1KB blocks"]
    assert order.holds is not None and order.least is not None
    # What is done is found again: the executed store too has the same figures.
    assert one.run()[0] == sample
