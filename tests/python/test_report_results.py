"""Reading, writing and deriving: what results.py and measures.py promise."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sardonyx.runs import measures
from sardonyx.runs.facts import Collisions
from sardonyx.runs.results import Results, ResultsError
from test_report_fixture import compared, invented_document, paced

RUN: dict[str, Any] = {"trace": "t", "machine": "m", "copies": 1, "variant": {}, "causes": {}}
TINY: dict[str, Any] = {
    "sardonyx": "1",
    "machine": {"name": "m", "source": "s", "parameters": {}, "assumed": []},
    "traces": [],
    "runs": [
        {
            **RUN,
            "design": "baseline",
            "metrics": {"writes": 10, **paced(300.0, 100, 0.5, 80), "medium_writes": 10},
        },
        {
            **RUN,
            "design": "esd",
            "metrics": {
                **{"writes": 10, "data_writes": 4, "write_reduction": 0.6},
                **paced(100.0, 80, 0.75, 60),
                "medium_writes": 5,
            },
            "causes": {
                "lookup": {"write_latency_ns": 250, "energy_nj": 1},
                "data": {"write_latency_ns": 750},
            },
            "assumed": ["units.aes.energy_nj", "units.crc32.latency_ns"],
        },
    ],
}


def tiny() -> dict[str, Any]:
    return copy.deepcopy(TINY)


def test_a_document_survives_saving_and_loading(tmp_path: Path) -> None:
    results = Results.from_document(invented_document(3))
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path) == results
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_a_failed_save_leaves_the_old_file_alone(tmp_path: Path) -> None:
    target = tmp_path / "results.json"
    target.write_text("old")
    results = Results.from_document(tiny())
    bad = replace(results.machine, parameters={"bad": math.nan})
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(results, machine=bad).save(target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_write_that_breaks_off_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="no space"):
        Results.from_document(tiny()).to_parquet(tmp_path / "runs.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "value", "place", "problem"),
    [
        (("runs", 1, "metrics", "ipc"), "fast", "runs[1].metrics.ipc", "a number or null"),
        (("runs", 1, "metrics", "ipc"), True, "runs[1].metrics.ipc", "a number or null"),
        (("runs", 0, "copies"), 0, "runs[0].copies", "at least 1"),
        (("runs", 0, "trace"), None, "runs[0].trace", "a string"),
        (("runs", 1, "causes", "data"), [], "runs[1].causes.data", "an object"),
        (("runs", 0, "write_latency_cdf"), [[1, 0.5], [2, 0.4]], "cdf[1]", "cumulative"),
        (("runs", 0, "write_latency_cdf"), [[1, 1.5]], "cdf[0]", "outside 0..1"),
        (("runs",), [], "runs", "no run"),
        (("machine",), 3, "machine", "an object"),
    ],
)
def test_an_error_names_place_and_remedy(
    path: tuple[Any, ...], value: object, place: str, problem: str
) -> None:
    document = tiny()
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ResultsError) as caught:
        Results.from_document(document, "dir/results.json")
    assert place in caught.value.place
    assert problem in str(caught.value)
    assert str(caught.value).startswith("dir/results.json, ")
    assert "sardonyx compare" in str(caught.value)


def test_the_same_run_twice_is_an_error() -> None:
    document = tiny()
    document["runs"].append(document["runs"][0])
    with pytest.raises(ResultsError, match=r"runs\[2\]: a second run of baseline on t"):
        Results.from_document(document)


def test_epochs_have_lists_of_one_length() -> None:
    document = tiny()
    columns = {"reads": [1, 2, 3], "mean_read_latency_ns": [1.0, 2.0]}
    document["runs"][0]["epochs"] = {"begin_ns": 0, "width_ns": 1, "columns": columns}
    with pytest.raises(ResultsError, match=r"runs\[0\].epochs: its lists have several lengths"):
        Results.from_document(document)


def test_a_truncated_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(TINY, indent=1)[:-5])
    with pytest.raises(ResultsError, match=r"results\.json, line \d+, column \d+: not JSON"):
        Results.load(path)
    with pytest.raises(ResultsError, match="no such file"):
        Results.load(tmp_path / "absent.json")


def test_parquet_has_a_row_a_run_and_a_column_a_figure(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    Results.from_document(tiny()).to_parquet(path)
    rows = pq.read_table(path).to_pylist()
    assert [row["design"] for row in rows] == ["baseline", "esd"]
    assert rows[1]["cause.lookup.write_latency_ns"] == 250.0
    assert rows[0]["cause.lookup.write_latency_ns"] is None
    assert rows[0]["data_writes"] is None
    assert rows[1]["data_writes"] == 4.0


def test_pandas_gives_the_same_rows() -> None:
    pytest.importorskip("pandas")
    frame = Results.from_document(tiny()).to_pandas()
    assert list(frame["energy_nj"]) == [80.0, 60.0]


def test_measures_by_hand() -> None:
    base, esd = Results.from_document(tiny()).runs
    assert measures.write_speedup(esd, base) == 3.0
    assert measures.read_speedup(esd, base) == 1.25
    assert measures.ipc_ratio(esd, base) == 1.5
    assert measures.energy_reduction(esd, base) == 0.25
    assert measures.write_reduction(esd) == pytest.approx(0.6)
    assert measures.medium_write_reduction(esd, base) == 0.5
    assert measures.cause_share(esd, "lookup") == 0.25
    assert measures.cause_share(esd, "fingerprint") == 0.0
    assert measures.cause_share(base, "lookup") is None  # nothing was booked at all
    assert measures.metadata_ratio(esd, base) is None


def test_means_by_hand() -> None:
    assert measures.geometric_mean([1.0, 4.0, None]) == pytest.approx(2.0)
    assert measures.arithmetic_mean([1.0, 4.0, None]) == 2.5
    assert measures.geometric_mean([1.0, 0.0]) is None
    assert measures.arithmetic_mean([None]) is None


def test_a_share_rests_on_no_energy_parameter() -> None:
    runs = Results.from_document(tiny()).runs
    assert measures.assumed_by(runs, "time") == ["units.crc32.latency_ns"]
    assert measures.assumed_by(runs, "energy") == ["units.aes.energy_nj", "units.crc32.latency_ns"]
    assert measures.assumed_by(runs, "space") == []


def test_space_rests_on_tables_and_nothing_on_endurance() -> None:
    document = tiny()
    document["runs"][1]["assumed"] = ["esd.reclaim", "medium.endurance", "core.width", "cores"]
    runs = Results.from_document(document).runs
    assert measures.assumed_by(runs, "space") == ["esd.reclaim"]
    assert measures.assumed_by(runs, "time") == ["core.width", "cores", "esd.reclaim"]


def test_one_trace_in_two_settings_makes_two_workloads() -> None:
    document = tiny()
    again = copy.deepcopy(document["runs"])
    for run in again:
        run["copies"] = 8
        run["metrics"]["mean_write_latency_ns"] *= 2 if run["design"] == "esd" else 1
    document["runs"] += again
    comparison = compared(document)
    assert comparison.workloads == ["t ×1", "t ×8"]
    speedups = [
        comparison.value(measures.write_speedup, w, "esd", "baseline") for w in comparison.workloads
    ]
    assert speedups == [3.0, 1.5]
    assert comparison.mean(measures.MEASURES["write_speedup"], "esd") == pytest.approx(4.5**0.5)


def test_the_facts_of_trace_info_are_taken_as_they_are() -> None:
    document = tiny()
    bucket = {
        "times": ">1000",
        "contents": 2,
        "contents_share": 0.1,
        "writes": 9,
        "writes_share": 0.9,
    }
    code = {"fingerprint": "crc-32", "contents": 3, "writes": 7, "writes_share": 0.07}
    info = {
        "distinct_contents": 60,
        "locality": [bucket],
        "collisions": [code | {"contents_to_crc32": 1.0}],
    }
    document["traces"] = [{"name": "t", "info": info}]
    (trace,) = Results.from_document(document).traces
    assert trace.locality[0].times == ">1000"
    assert trace.collisions[0] == Collisions("crc-32", 3, 7, 0.07, 1.0, None)
    saved = Results.from_document(document).to_document()
    assert Results.from_document(saved).traces == (trace,)


def test_a_bucket_without_a_name_is_an_error() -> None:
    document = tiny()
    document["traces"] = [{"name": "t", "info": {"locality": [{"contents": 2}]}}]
    with pytest.raises(ResultsError, match=r"traces\[0\]\.info\.locality\[0\]: `times` is missing"):
        Results.from_document(document)
