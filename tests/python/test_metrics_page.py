"""docs/reference/metrics.md is what the program's tables say, and names each metric of runs."""

from __future__ import annotations

import metrics_page
import sardonyx
from sardonyx import layers
from sardonyx.runs.metrics import NAMES
from sardonyx.runs.results import CAUSES


def test_the_metrics_page_is_up_to_date() -> None:
    remedy = "run `.venv/bin/python tools/metrics_page.py`"
    assert metrics_page.PAGE.read_text() == metrics_page.page(), remedy


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
