"""``compare --seeds``: means over seeds with their intervals, and what has no seed."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sardonyx as package
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import MEASURES
from sardonyx.runs.results import Results, Run
from sardonyx.runs.spread import estimate, student
from test_cli_fixture import Program, bad_input

PROGRAM = ("btree", "--machine", "sca", "--transactions", "30", "--footprint", "64K")
SIZES: dict[str, Any] = {"transactions": 30, "footprint": 65_536}
SYNTH = "synth:rung-60:4000"


@pytest.mark.parametrize(
    ("freedom", "wanted"), [(1, 12.706), (4, 2.776), (9, 2.262), (10, 2.228), (29, 2.045)]
)
def test_students_t_is_that_of_the_tables(freedom: int, wanted: float) -> None:
    assert student(freedom) == pytest.approx(wanted, abs=0.001)


def test_an_interval_is_that_of_a_calculation_by_hand() -> None:
    # 1, 2, 6: mean 3, standard deviation 2.6458; with two degrees of freedom t is 4.3027.
    value, half = estimate([1.0, 2.0, 6.0])
    assert value == 3.0
    assert half == pytest.approx(4.3027 * 2.6458 / math.sqrt(3), rel=1e-4)
    assert estimate([1.0, None]) == (None, None)
    assert estimate([5.0]) == (5.0, None)


def one(seed: int, design: str) -> Run:
    """The run of one seed alone."""
    sizes = SIZES | {"seed": seed}
    return package.compare("btree", design, "sca", **sizes).runs[0]


def test_figures_are_the_means_of_single_runs() -> None:
    results = package.compare("btree", ["sca", "fca"], "sca", **SIZES, seed=5, seeds=3, jobs=2)
    assert [run.design for run in results.runs] == ["sca", "fca"]
    for run in results.runs:
        singles = [one(seed, run.design) for seed in (5, 6, 7)]
        assert run.seeds is not None and run.seeds.seeds == (5, 6, 7)
        for name in ("transactions_per_second", "medium_writes", "energy_nj"):
            each = [single.metrics[name] or 0.0 for single in singles]
            assert len(set(each)) > 1, "the seeds make a difference"
            assert list(run.seeds.values[name]) == each
            assert run.metrics[name] == pytest.approx(statistics.fmean(each))
            wanted = 4.30265 * statistics.stdev(each) / math.sqrt(3)
            assert run.seeds.half_widths[name] == pytest.approx(wanted)
        booked = [single.causes["data"].write_latency_ns or 0.0 for single in singles]
        assert run.causes["data"].write_latency_ns == pytest.approx(statistics.fmean(booked))


def test_a_ratio_is_taken_of_each_seed() -> None:
    results = package.compare([SYNTH], ["baseline", "esd"], seeds=4)
    measure = MEASURES["write_speedup"]
    found = Comparison(results).estimate(measure.of, SYNTH, "esd", "baseline")
    by_design = {run.design: run.seeds for run in results.runs}
    base, esd = (by_design[name] for name in ("baseline", "esd"))
    assert base is not None and esd is not None
    name = "mean_write_latency_ns"
    ratios = [(a or 0) / (b or 1) for a, b in zip(base.values[name], esd.values[name], strict=True)]
    assert found.value == pytest.approx(statistics.fmean(ratios))
    assert found.half == pytest.approx(3.18245 * statistics.stdev(ratios) / 2)


def test_table_report_json_and_parquet_have_them(sardonyx: Program, tmp_path: Path) -> None:
    words = (*PROGRAM, "--designs", "no-encryption,sca", "--seeds", "3", "--out", "out")
    done = sardonyx("compare", *words, "--notes")
    assert done.status == 0, done.err
    said = " ".join(done.out.split())
    assert "Means over seeds (3, 0 to 2)" in said
    assert said.count("±") >= 2 * 5, "each design's figures"
    document = json.loads((tmp_path / "out/results.json").read_text())
    assert document["runs"][1]["seeds"]["seeds"] == [0, 1, 2]
    again = Results.load(tmp_path / "out").to_document()
    assert json.loads(json.dumps(again)) == document
    row = pq.read_table(tmp_path / "out/results.parquet").to_pylist()[1]
    halves = document["runs"][1]["seeds"]["half_widths"]
    assert row["half_width.energy_nj"] == halves["energy_nj"] > 0
    page = (tmp_path / "out/report.html").read_text()
    assert '"error_y":{"array":[' in page
    assert "<dd>3, 0 to 2</dd>" in page and " ±" in page


def test_one_seed_says_nothing_of_an_interval(sardonyx: Program, tmp_path: Path) -> None:
    done = sardonyx("compare", *PROGRAM, "--designs", "no-encryption,sca", "--out", "out")
    assert done.status == 0 and "±" not in done.out
    assert "seeds" not in json.loads((tmp_path / "out/results.json").read_text())["runs"][0]
    assert '"error_y"' not in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("redis",), "redis is a recorded trace"),
        (("redis", *PROGRAM), "redis is a recorded trace"),
        ((*PROGRAM, "--sensitivity"), "--sensitivity: is of single runs"),
        ((SYNTH, "--sample", "10x100"), "--sample: is of single runs"),
        ((*PROGRAM, "--timeline", "t"), "--timeline: is of single runs"),
        ((*PROGRAM, "--requests", "r"), "--requests: is of single runs"),
        ((*PROGRAM, "--seeds", "1"), "--seeds"),
    ],
)
def test_what_has_no_seed_is_refused(sardonyx: Program, words: tuple[str, ...], said: str) -> None:
    seeds = () if "--seeds" in words else ("--seeds", "3")
    bad_input(sardonyx("compare", *words, "--designs", "esd,sca", *seeds), said)
