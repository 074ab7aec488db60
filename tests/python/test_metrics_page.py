"""docs/reference/metrics.md is what the program's tables say, and names each metric of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import metrics_page
import pyarrow as pa
import pyarrow.parquet as pq
import sardonyx
from sardonyx import layers
from sardonyx.runs.metrics import NAMES
from sardonyx.runs.results import CAUSES


def test_the_metrics_page_is_up_to_date() -> None:
    remedy = "run `.venv/bin/python tools/metrics_page.py`"
    assert metrics_page.PAGE.read_text() == metrics_page.page(), remedy


def with_contents_of_before(path: Path) -> str:
    """Three lines that are read before they are written. The trace knows what two of them held; it
    writes the content of one of these to a fourth.
    """
    known = bytes(range(64))
    data = [known, bytes(64), None, known, None, None]
    columns: dict[str, Any] = {
        "gap": pa.array([9] * 6, pa.uint32()),
        "thread": pa.array([0] * 6, pa.uint16()),
        "op": pa.array([0, 0, 0, 1, 0, 0], pa.uint8()),
        "line": pa.array([5, 6, 7, 8, 5, 8], pa.uint64()),
        "data": pa.array(data, pa.binary(64)),
    }
    pq.write_table(pa.table(columns), path, compression="zstd")
    return str(path)


def test_reads_may_say_what_memory_held(tmp_path: Path) -> None:
    trace = with_contents_of_before(tmp_path / "before.parquet")
    runs = sardonyx.compare([trace], designs=["no-encryption", "baseline", "dewrite"]).runs
    for run in runs:
        counts = ("reads_verified", "reads_of_preloaded_lines", "reads_of_unwritten_lines")
        assert [run.metrics[name] for name in counts] == [4, 3, 1], run.design
    assert [run.metrics.get("duplicate_writes", 0) for run in runs] == [0, 0, 1]
    new = sardonyx.compare([trace], designs=["dewrite"], set={"memory.past": "empty"})
    (run,) = new.runs
    assert (run.metrics["reads_of_unwritten_lines"], run.metrics["duplicate_writes"]) == (4, 0)
    assert "reads_of_preloaded_lines" not in run.metrics


def test_the_metrics_page_names_what_runs_have(tmp_path: Path) -> None:
    ladder = sardonyx.synth("rung-60", records=2000, seed=1)
    own = layers.registered()  # by other tests of this process
    designs = [design["name"] for design in sardonyx.designs()]
    designs = [name for name in designs if name not in own and "@" not in name]
    runs = list(sardonyx.compare([ladder], designs=designs).runs)
    runs += sardonyx.compare(
        ["btree"],
        designs=["sca", "esd+sca", "hw-log", "sca@mac", "identity+split"],
        machine="sca",
        set={"drain.lines": "all"},
    ).runs
    runs += sardonyx.compare([ladder], designs=["sca"], machine="optane").runs
    runs += sardonyx.compare([f"mix:{ladder},{ladder}"], designs=["sca"]).runs
    cells = {"medium.cells.coding": "changed", "medium.levelling.scheme": "start-gap"}
    pauses = {"medium.pausing.policy": "pause"}
    runs += sardonyx.compare([ladder], designs=["sca"], set=cells | pauses).runs
    before = with_contents_of_before(tmp_path / "before.parquet")
    runs += sardonyx.compare([before], designs=["sca"]).runs
    blocks = {"near.tags": "on-chip"}
    runs += sardonyx.compare([ladder], designs=["sca"], near="ddr4-2400", set=blocks).runs
    assert set(NAMES) == {name for run in runs for name in run.metrics}
    assert {cause for run in runs for cause in run.causes} <= set(CAUSES)
