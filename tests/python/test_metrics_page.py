"""docs/reference/metrics.md is what the program's tables say, and names each metric of runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import sardonyx
from sardonyx import layers
from sardonyx.runs.metrics import NAMES
from sardonyx.runs.results import CAUSES

TOOL = Path(__file__).parents[2] / "tools" / "metrics_page.py"
_spec = importlib.util.spec_from_file_location("metrics_page", TOOL)
assert _spec is not None and _spec.loader is not None
tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tool)


def test_the_metrics_page_is_up_to_date() -> None:
    remedy = "run `.venv/bin/python tools/metrics_page.py`"
    assert tool.PAGE.read_text() == tool.page(), remedy


def test_the_metrics_page_names_what_runs_have() -> None:
    ladder = sardonyx.synth("rung-60", records=2000, seed=1)
    own = layers.registered()  # by other tests of this process
    designs = [design["name"] for design in sardonyx.designs() if design["name"] not in own]
    runs = list(sardonyx.compare([ladder], designs=designs).runs)
    runs += sardonyx.compare(
        ["btree"],
        designs=["sca", "esd+sca", "hw-log", "sca@mac", "identity+split"],
        machine="sca",
    ).runs
    runs += sardonyx.compare([ladder], designs=["sca"], machine="optane").runs
    runs += sardonyx.compare([f"mix:{ladder},{ladder}"], designs=["sca"]).runs
    cells = {"medium.cells.coding": "changed", "medium.levelling.scheme": "start-gap"}
    pauses = {"medium.pausing.policy": "pause"}
    runs += sardonyx.compare([ladder], designs=["sca"], overrides=cells | pauses).runs
    assert set(NAMES) == {name for run in runs for name in run.metrics}
    assert {cause for run in runs for cause in run.causes} <= set(CAUSES)
