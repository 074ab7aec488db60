"""What Python callers get: results as a data frame, jobs in order, names that tell apart."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import sardonyx
from sardonyx import _core
from sardonyx.questions import TraceSource
from sardonyx.runs import jobs
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.sources import named
from test_cli_fixture import FakeCore


def test_settings_reach_the_native_side_as_text(core: FakeCore, trace: str) -> None:
    overrides = {"esd.efit_bytes": 65536, "medium.queues.forwarding": False}
    sardonyx.compare([trace], ["esd"], set=overrides)
    assert core.calls[0]["overrides"] == [
        ["esd.efit_bytes", "65536"],
        ["medium.queues.forwarding", "false"],
    ]


def test_the_order_of_runs_is_not_the_order_in_which_they_end(
    core: FakeCore, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = core.simulate
    esd_ended = threading.Event()

    def slow(job: str, progress: Any) -> str:
        design = json.loads(job)["design"]
        if design == "baseline":
            assert esd_ended.wait(10)
        answer: str = real(job, progress)
        if design == "esd":
            esd_ended.set()
        return answer

    monkeypatch.setattr(_core, "simulate", slow, raising=False)
    results = sardonyx.compare([trace], ["baseline", "esd"], jobs=2)
    assert [run.design for run in results.runs] == ["baseline", "esd"]


def test_names_tell_traces_apart() -> None:
    assert list(named(["a/x.parquet", "b/y.parquet"])) == ["x", "y"]
    assert list(named(["x.parquet", "x.trace"])) == ["x.parquet", "x.trace"]
    assert list(named(["a/x.parquet", "b/x.parquet"])) == ["a/x.parquet", "b/x.parquet"]
    assert list(named(["synth:rung-99.9"])) == ["synth:rung-99.9"]


def test_a_failing_job_cancels_the_others(core: FakeCore, trace: str) -> None:
    core.failure = _core.SardonyxError("app: broken")
    points = [Point("app", TraceSource(path=trace), d) for d in ("baseline", "dewrite", "esd")]
    with pytest.raises(sardonyx.SardonyxError, match="broken"):
        jobs.run(points, Settings(), 1)
    assert core.calls == []


def test_synth_names() -> None:
    assert sardonyx.synth("rung-60", 1000, 7) == "synth:rung-60:1000:7"
    with pytest.raises(sardonyx.SardonyxError, match="records"):
        sardonyx.synth("rung-60", seed=7)


def test_progress_counts_from_nothing() -> None:
    progress = _core.Progress()
    assert (progress.done, progress.total) == (0, 0)
    progress.cancel()
