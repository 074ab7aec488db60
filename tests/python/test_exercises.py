"""The answers of docs/start/exercises.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx

TABLE = Path(__file__).resolve().parents[2] / "docs/tables/exercises.tsv"
ROWS = {row.split("\t")[0]: row.split("\t")[1:] for row in TABLE.read_text().splitlines()[1:]}


def ran(exercise: str, where: Path, *more: str, status: int | None = 0) -> dict[str, Any]:
    """What the command of an exercise writes as JSON."""
    line = re.fullmatch(r"`sardonyx (.*)`", ROWS[exercise][0])
    assert line is not None
    words = (*line[1].split(), *more)
    sardonyx(*words, "--json", "a.json", where=where, status=status)
    found: dict[str, Any] = json.loads((where / "a.json").read_text())
    return found


def test_counter_mode(tmp_path: Path) -> None:
    runs = {run["design"]: run["metrics"] for run in ran("Counter mode", tmp_path)["runs"]}
    plain = runs.pop("no-encryption")
    accesses = {d: run["medium_writes"] / plain["medium_writes"] for d, run in runs.items()}
    assert accesses["fca"] == pytest.approx(2, abs=0.15)
    assert accesses["co-located"] == pytest.approx(1, abs=0.1)
    assert accesses["co-located"] < accesses["sca"] < accesses["fca"]
    of_bytes = {run["medium_write_bytes"] / plain["medium_write_bytes"] for run in runs.values()}
    assert len(of_bytes) == 1 and round(of_bytes.pop(), 1) == 1.2


def test_deduplication(tmp_path: Path) -> None:
    document = ran("Deduplication", tmp_path)
    (trace,), esd = document["traces"], document["runs"][1]["metrics"]
    assert f"{esd['write_reduction']:.1%}".replace("%", " %") in ROWS["Deduplication"][2]
    assert f"{trace['info']['duplicate_rate']:.1%}".replace("%", " %") in ROWS["Deduplication"][2]
    base = document["runs"][0]["metrics"]
    assert esd["mean_write_latency_ns"] < base["mean_write_latency_ns"]
    assert esd["mean_read_latency_ns"] > base["mean_read_latency_ns"]


@pytest.mark.slow
def test_crash_consistency(tmp_path: Path) -> None:
    (run,) = ran("Crash consistency", tmp_path, status=1)["runs"]
    assert run["verdict"] == "broken"
    assert {each["kind"] for each in run["violations"]} == {"wrong-line", "unrecoverable"}


@pytest.mark.slow
def test_integrity(tmp_path: Path) -> None:
    def undetected(*more: str) -> list[int]:
        (run,) = ran("Integrity", tmp_path, *more, status=None)["runs"]
        rows = run["attacks"]["rows"]
        return [row["undetected"] for row in rows if row["kind"] == "rollback"]

    assert min(undetected()) > 0
    assert undetected("--designs", "sca@bonsai") == [0, 0, 0]
