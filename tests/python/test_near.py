"""A second medium before and beside the persistent one, against a model of both."""

from __future__ import annotations

from pathlib import Path

import near_model
import pytest
import sardonyx
from independent_model import Machine, Record, esd, identity, read_trace
from near_model import Admission, Near
from sardonyx import api
from sardonyx.runs.results import Run
from test_independent_model import TRACES, churn, write_trace

POLICIES = {"no-encryption": "no-encryption", "baseline": "per-line"}
NEAR: dict[str, bool | int | str] = {"near.extends": "ddr4-2400"}


def runs(trace: Path, limit: int, sets: dict[str, bool | int | str]) -> tuple[Run, ...]:
    """ESD, its baseline and no encryption on a trace, with a near medium."""
    keys = Machine().keys() | near_model.UNTIMED | NEAR | sets
    designs = ("no-encryption", "baseline", "esd")
    return sardonyx.compare(trace, designs, set=keys, limit=limit, jobs=1).runs


def agrees(run: Run, near: Near) -> None:
    """The near medium's counts, and all that the design below does with what reaches it."""
    machine, metrics = Machine(), run.metrics
    for name in ("near_reads", "near_writes", "near_fills", "near_victims", "near_passed"):
        if near.counts[name] or metrics.get(name) is not None:
            assert metrics[name] == near.counts[name], (run.design, name)
    if run.design in POLICIES:
        far = identity(near.far, POLICIES[run.design], machine)
    elif any(record.writes for record in near.far):
        far = esd(near.far, machine)
    else:
        assert not metrics["medium_writes"]
        return
    for name in ("medium_reads", "medium_writes", "medium_write_bytes", "duplicate_writes"):
        assert (metrics.get(name) or 0) == far.get(name, 0), (run.design, name)
    for cause, of in run.causes.items():
        if cause in {
            "data",
            "near",
        }:  # a line brought for a write's sake is the near medium's doing
            continue
        for kind in ("medium_reads", "medium_writes"):
            assert getattr(of, kind) == far.get(f"{cause}.{kind}", 0), (run.design, cause, kind)


@pytest.mark.parametrize("name", ["redis", "x264", "sqlite3"])
@pytest.mark.parametrize(
    ("lines", "writes", "fills"),
    [(1 << 20, "back", True), (512, "back", True), (500, "stop", False), (512, "through", True)],
)
def test_each_count_of_a_cache_follows_from_a_recording(
    name: str, lines: int, writes: str, *, fills: bool
) -> None:
    trace, limit = TRACES / f"{name}.parquet", 4000
    near = near_model.cache(read_trace(trace, limit), lines, writes, fills=fills)
    sets: dict[str, bool | int | str] = {"near.lines": lines, "near.writes": writes}
    for run in runs(trace, limit, sets | {"near.fills_on_write": fills}):
        agrees(run, near)
        assert run.metrics["reads_verified"]


@pytest.mark.parametrize("name", ["redis", "x264", "sqlite3"])
@pytest.mark.parametrize(
    ("shape", "lines", "writes", "fills", "admission"),
    [
        ((4, 64), 2048, "back", True, Admission()),
        ((1, 8), 512, "back", True, Admission(after=2)),
        ((16, 1), 500, "stop", False, Admission()),
        ((2, 64), 512, "through", True, Admission(after=3, sample=2)),
        ((2, 16), 512, "back", True, Admission(after=2, every=50)),
    ],
)
def test_each_count_of_a_cache_of_blocks_follows_from_a_recording(
    name: str,
    shape: tuple[int, int],
    lines: int,
    writes: str,
    admission: Admission,
    *,
    fills: bool,
) -> None:
    trace, limit = TRACES / f"{name}.parquet", 4000
    records = read_trace(trace, limit)
    near = near_model.blocks(records, lines, shape, writes, fills=fills, admission=admission)
    assert near.counts["near_fills"]
    sets: dict[str, bool | int | str] = {
        "near.lines": lines,
        "near.writes": writes,
        "near.fills_on_write": fills,
        "near.tags": "on-chip",
        "near.ways": shape[0],
        "near.block_lines": shape[1],
        "near.admit_after": admission.after,
        "near.admit_sample": admission.sample,
        "near.admit_every": admission.every,
    }
    for run in runs(trace, limit, sets):
        agrees(run, near)
        assert run.metrics["reads_verified"]


@pytest.mark.parametrize("name", ["redis", "x264", "sqlite3"])
@pytest.mark.parametrize(("policy", "weights"), [("first", (1, 1)), ("weighted", (3, 1))])
def test_each_count_beside_follows_from_a_recording(
    name: str, policy: str, weights: tuple[int, int]
) -> None:
    trace, limit, pages = TRACES / f"{name}.parquet", 4000, 40
    near = near_model.beside(read_trace(trace, limit), pages, policy, weights)
    assert near.far and near.counts["near_reads"]
    sets: dict[str, bool | int | str] = {
        "near.form": "beside",
        "near.lines": pages * 64,
        "near.pages": policy,
    }
    if policy == "weighted":
        sets |= {"near.weight": weights[0], "near.far_weight": weights[1]}
    for run in runs(trace, limit, sets):
        agrees(run, near)


@pytest.mark.parametrize("name", ["redis", "sqlite3"])
def test_a_write_that_does_not_look_reads_nothing(name: str) -> None:
    trace, limit = TRACES / f"{name}.parquet", 4000
    near = near_model.cache(read_trace(trace, limit), 512, "back", fills=False, looks=False)
    sets: dict[str, bool | int | str] = {"near.lines": 512, "near.fills_on_write": False}
    for run in runs(trace, limit, sets | {"near.looks_before_write": False}):
        agrees(run, near)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_cache_under_churn(seed: int, tmp_path: Path) -> None:
    trace = tmp_path / "churn.parquet"
    churn(trace, seed)
    near = near_model.cache(read_trace(trace, 2000), 16, "back", fills=True)
    for run in runs(trace, 2000, {"near.lines": 16}):
        agrees(run, near)


def test_files_lie_in_the_persistent_medium(tmp_path: Path) -> None:
    trace, file = tmp_path / "files.parquet", 1 << 57
    lines = (0, file, 64, file + 64, file + 1)
    write_trace(trace, [(9, 1, line, bytes([1]) * 64) for line in lines])
    sets: dict[str, bool | int | str] = {"near.form": "beside", "near.pages": "files"}
    for run in runs(trace, 5, sets)[:1]:
        assert (run.metrics["near_writes"], run.metrics["medium_writes"]) == (2, 3)


def test_a_hit_takes_one_access_and_a_dirty_miss_five(tmp_path: Path) -> None:
    """As counted on Optane's memory mode (Hildebrand et al., ISPASS 2021)."""
    ones = bytes([1]) * 64
    asked = [Record(True, 0, ones), Record(True, 0, ones), Record(True, 1, ones)]
    near = near_model.cache(asked, 1, "back", fills=True)
    total = near.counts["near_reads"] + near.counts["near_writes"] + len(near.far)
    assert total == 4 + 2 + 5
    alone = near_model.cache(
        [Record(False, 0, ones), Record(False, 0, ones)], 1, "back", fills=True
    )
    assert (alone.counts["near_reads"], alone.counts["near_writes"], len(alone.far)) == (2, 1, 1)


@pytest.mark.parametrize("design", ["no-encryption", "fca", "esd-sound"])
@pytest.mark.parametrize(("writes", "lost"), [("back", False), ("through", False), ("stop", True)])
@pytest.mark.parametrize("after", [1, 2])
def test_a_cut_loses_what_stays_in_blocks(
    design: str,
    writes: str,
    after: int,
    *,
    lost: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    sets: dict[str, bool | int | str] = {
        "near.writes": writes,
        "near.tags": "on-chip",
        "near.ways": 2,
        "near.block_lines": 4,
        "near.lines": 16,
        "near.admit_after": after,
    }
    answer = api.crash_once(
        ["btree"],
        designs=[design],
        near="ddr4-2400",
        set=sets,
        transactions=120,
        footprint=16384,
    )
    run = answer["runs"][0]
    assert run["cuts"] > 500
    assert (run["lost_cuts"] > 0) is lost


@pytest.mark.parametrize("design", ["no-encryption", "fca", "esd-sound"])
@pytest.mark.parametrize(
    ("key", "value", "lost"),
    [
        ("near.writes", "back", False),
        ("near.writes", "through", False),
        ("near.writes", "stop", True),
        ("near.survives", "yes", False),
        ("near.survives", "claimed", True),
    ],
)
def test_a_cut_loses_what_stays_in_dram(
    design: str,
    key: str,
    value: str,
    *,
    lost: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two slots: lines are flushed while they are on their way home, and slots taken before."""
    monkeypatch.chdir(tmp_path)
    sets: dict[str, bool | int | str] = {"near.lines": 2, key: value}
    answer = api.crash_once(
        ["btree"],
        designs=[design],
        near="ddr4-2400",
        set=sets,
        transactions=200,
        footprint=16384,
    )
    run = answer["runs"][0]
    assert run["cuts"] > 1000
    assert (run["lost_cuts"] > 0) is lost


def test_tables_in_dram_that_is_lost_are_refused_or_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def lost(survives: str) -> int:
        sets: dict[str, bool | int | str] = {"near.form": "beside", "near.tables": "mappings"}
        answer = api.crash_once(
            ["queue"],
            designs=["esd-sound"],
            near="ddr4-2400",
            set=sets | {"near.survives": survives},
            transactions=60,
            footprint=16384,
        )
        return int(answer["runs"][0]["lost_cuts"])

    assert lost("yes") == 0
    assert lost("claimed") > 0
    with pytest.raises(sardonyx.SardonyxError, match=r"near\.survives=yes"):
        lost("no")
