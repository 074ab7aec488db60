"""Logs that wait on chip, against a model of their counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import rivals_model
import sardonyx
from sardonyx.runs.results import Run

#: Keys under which no count depends on time.
UNTIMED: dict[str, bool | int | str] = {
    "medium.queues.coalescing": False,
    "medium.queues.forwarding": False,
}
PROGRAMS = ["queue", "btree", "array-swap"]


def run_program(
    name: str, design: str, folder: Path, sets: dict[str, bool | int | str], item: int
) -> tuple[Run, list[list[int]]]:
    """A run of a program, and the lines that each of its transactions has changed."""
    file = folder / "requests.parquet"
    run = sardonyx.compare(
        name,
        design,
        "sca",
        transactions=60,
        footprint=64 << 10,
        transaction_size=item,
        set=UNTIMED | sets,
        requests=file,
        jobs=1,
    ).runs[0]
    rows = sorted(pq.read_table(file).to_pylist(), key=lambda row: int(row["request"]))
    return run, rivals_model.transactions((row["operation"], row["line"]) for row in rows)


def agrees(run: Run, counts: Counter[str]) -> None:
    """Each count of the model is the run's."""
    for name, count in counts.items():
        cause, _, kind = name.rpartition(".")
        if cause in run.causes:
            assert getattr(run.causes[cause], kind) == count, (run.design, name)
        else:
            assert (0 if cause else run.metrics[name]) == count, (run.design, name)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("queue", "records"), [(256, 64), (6, 1)])
@pytest.mark.parametrize("item", [64, 512])
@pytest.mark.parametrize("design", ["proteus", "proteus/identity+no-encryption"])
def test_each_count_of_proteus_follows_from_a_program(
    name: str, queue: int, records: int, item: int, design: str, tmp_path: Path
) -> None:
    sets: dict[str, bool | int | str] = {"proteus.queue": queue, "log.records": records}
    run, changed = run_program(name, design, tmp_path, sets, item)
    assert len(changed) == 60
    counts = rivals_model.proteus(changed, queue, records)
    assert (counts["log_entries_spilled"] > 0) >= (queue == 6 and item == 512)
    agrees(run, counts)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("lines", "records"), [(256, 64), (2, 1)])
@pytest.mark.parametrize(
    ("design", "key"),
    [
        ("silo", "silo.entries"),
        ("silo/esd+sca", "silo.entries"),
        ("lad", "lad.queue"),
        ("lad/esd+sca", "lad.queue"),
    ],
)
def test_each_count_of_silo_and_lad_follows_from_a_program(
    name: str, lines: int, records: int, design: str, key: str, tmp_path: Path
) -> None:
    sets: dict[str, bool | int | str] = {key: lines, "log.records": records}
    run, changed = run_program(name, design, tmp_path, sets, 256)
    counts = rivals_model.of_lines(changed, lines, records)
    assert (counts["log_entries_spilled"] > 0) == (lines == 2)
    agrees(run, counts)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("lines", "walks"), [(16384, 1), (4096, 4), (128, 4), (128, 16), (100, 1)])
@pytest.mark.parametrize("design", ["fwb", "morlog", "fwb/esd+sca"])
def test_each_count_of_a_circular_log_follows_from_a_program(
    name: str, lines: int, walks: int, design: str, tmp_path: Path
) -> None:
    sets: dict[str, bool | int | str] = {"fwb.log_lines": lines, "fwb.walks": walks}
    late = design == "morlog"
    if late:
        sets["morlog.encoded"] = False
    run, changed = run_program(name, design, tmp_path, sets, 256)
    counts = rivals_model.Circular(lines, walks, late).run(changed)
    assert (lines < 4096) <= (counts["log_forced_back"] > 0) <= (lines < 16384)
    if "esd" in design:
        del counts["data.medium_writes"]  # duplicates are not written
    agrees(run, counts)
