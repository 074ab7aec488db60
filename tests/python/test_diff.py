"""``sardonyx diff``: what differs between two results, and what may not be compared."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from sardonyx.runs.differences import Differences, differences, side_of
from sardonyx.runs.origin import Origin
from sardonyx.runs.results import Results
from test_cli_fixture import Program, bad_input
from test_report_fixture import invented_document


def plain_document() -> dict[str, Any]:
    document = invented_document(2, sweeps=False)
    document["machine"]["parameters"] = {"medium.timing.tRCD_ns": 60, "esd.efit_bytes": 65536}
    return document


def saved(folder: Path, document: dict[str, Any]) -> str:
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps(document))
    return folder.name


def compared(before: dict[str, Any], after: dict[str, Any]) -> Differences:
    sides = [side_of(Results.from_document(each), "", Origin()) for each in (before, after)]
    return differences(*sides)


def run_of(document: dict[str, Any], trace: str, design: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        run for run in document["runs"] if (run["trace"], run["design"]) == (trace, design)
    )
    return found


def test_equal_results_have_no_difference() -> None:
    found = compared(plain_document(), plain_document())
    assert not found.settings and not found.moved and not found.flipped
    assert found.subjects == 8 and found.compared > 8


def test_the_largest_change_is_first_and_headlines_before_others() -> None:
    before, after = plain_document(), plain_document()
    metrics = [run_of(each, "invented-a", "esd")["metrics"] for each in (before, after)]
    metrics[0].update(mean_write_latency_ns=100, mean_read_latency_ns=100, writes=10)
    metrics[1].update(mean_write_latency_ns=110, mean_read_latency_ns=25, writes=1000)
    found = compared(before, after)
    assert [each.figure for each in found.moved] == [
        "mean_read_latency_ns",
        "mean_write_latency_ns",
        "writes",
    ]
    first, second, last = found.moved
    assert (first.subject, first.ratio, first.better) == (("invented-a", "esd", ""), 0.25, True)
    assert (second.better, last.better) == (False, None)


def test_a_conclusion_that_flips_is_named() -> None:
    before, after = plain_document(), plain_document()
    for document, latency in ((before, 500), (after, 2000)):
        run_of(document, "invented-a", "baseline")["metrics"]["mean_write_latency_ns"] = 1000
        run_of(document, "invented-a", "esd")["metrics"]["mean_write_latency_ns"] = latency
    (flip,) = compared(before, after).flipped
    assert (flip.measure, flip.before, flip.after) == ("Write speed-up", 2.0, 0.5)


def test_settings_that_differ_come_before_figures(sardonyx: Program, tmp_path: Path) -> None:
    before, after = plain_document(), plain_document()
    after["machine"]["parameters"]["medium.timing.tRCD_ns"] = 90
    run_of(after, "invented-b", "dewrite")["metrics"]["ipc"] = 0.5
    names = [saved(tmp_path / "a", before), saved(tmp_path / "b", after)]
    ended = sardonyx("diff", *names)
    assert ended.status == 0, ended.err
    answer, *rest = ended.out.splitlines()
    assert answer.startswith("1 of ") and "1 setting differs" in answer
    assert "ipc of invented-b dewrite" in answer
    shown = "\n".join(rest)
    assert shown.index("medium.timing.tRCD_ns") < shown.index("ipc")
    assert "esd.efit_bytes" not in shown
    assert sardonyx("diff", *names, "--exit-code").status == 1
    assert sardonyx("diff", "a", "a", "--exit-code").status == 0
    said = json.loads(sardonyx("diff", *names, "--json", "-").out)
    assert said["settings"] == [{"setting": "medium.timing.tRCD_ns", "before": 60, "after": 90}]
    assert [each["figure"] for each in said["changed"]] == ["ipc"]


def test_runs_of_one_side_alone_are_named_and_not_compared() -> None:
    before, after = plain_document(), plain_document()
    after["runs"] = [run for run in after["runs"] if run["design"] != "dewrite"]
    found = compared(before, after)
    assert found.subjects == 6 and not found.moved
    assert found.only_before == [("invented-a", "dewrite", ""), ("invented-b", "dewrite", "")]
    assert not found.only_after


def test_traces_that_differ_are_settings_that_differ(sardonyx: Program, tmp_path: Path) -> None:
    for name, digest in (("a", "1" * 64), ("b", "2" * 64)):
        saved(tmp_path / name, plain_document())
        origin = {"traces": [{"path": "t/redis.parquet", "sha256": digest}], "commit": name}
        (tmp_path / name / "origin.json").write_text(json.dumps(origin))
    said = json.loads(sardonyx("diff", "a", "b", "--json", "-").out)
    assert {each["setting"] for each in said["settings"]} == {"commit", "SHA-256 of redis.parquet"}


def test_bad_input_is_one_line(sardonyx: Program, tmp_path: Path) -> None:
    saved(tmp_path / "a", plain_document())
    bad_input(sardonyx("diff", "a", "nowhere"), "nowhere", "no such file")
    bad_input(sardonyx("diff", "a"), "Missing argument")
    bad_input(sardonyx("diff", "a", "a", "--json", "a/results.json/x"), "--json")
    broken = copy.deepcopy(plain_document())
    del broken["runs"][0]["metrics"]
    saved(tmp_path / "b", broken)
    bad_input(sardonyx("diff", "a", "b"), "b/results.json, runs[0]", "`metrics` is missing")
    (tmp_path / "c").mkdir()
    bad_input(sardonyx("diff", "c", "a"), "c/results.json")
    for wrong in ("{", "[]", '{"sardonyx": "1", "runs": []}'):
        (tmp_path / "c" / "results.json").write_text(wrong)
        bad_input(sardonyx("diff", "a", "c"), "c/results.json")


@pytest.mark.parametrize("value", [[], {"traces": [1]}, {"traces": [{"path": 1}]}, {"commit": []}])
def test_an_origin_that_is_damaged_is_no_error(
    value: object, sardonyx: Program, tmp_path: Path
) -> None:
    saved(tmp_path / "a", plain_document())
    (tmp_path / "a" / "origin.json").write_text(json.dumps(value))
    assert sardonyx("diff", "a", "a").status == 0
