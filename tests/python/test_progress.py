"""What a log says of a command that takes its time."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from sardonyx.cli.progress import FEW, Watcher
from sardonyx.runs.scheduler import Task


def task(label: str, state: Any, done: int, total: int) -> Task[None]:
    progress: Any = SimpleNamespace(done=done, total=total)
    return Task(label, lambda _: None, progress, state)


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("sardonyx.cli.progress.time", SimpleNamespace(monotonic=lambda: clock[0]))
    out = io.StringIO()
    tasks = [task("redis esd", "running", 45, 100), task("cc1 esd", "running", 1200, 0)]
    tasks += [task("done", "done", 1, 1), task("to come", "waiting", 0, 0)]
    with Watcher(Console(file=out)) as watch:
        for clock[0] in (1.0, 9.9, 10.5, 19.0, 31.0):
            watch(tasks)
        clock[0] = 60.0
        watch(tasks[:1])
        clock[0] = 90.0
        watch([task(f"run {n}", "running", n, 10) for n in range(9)])
    lines = out.getvalue().splitlines()
    assert lines[:2] == ["1 of 4 runs, redis esd 45%, cc1 esd 1,200"] * 2
    assert lines[2] == "redis esd 45%" and lines[3].count("run ") == FEW and len(lines) == 4
