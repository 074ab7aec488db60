"""What the crash explorer is asked, as one JSON document (``crates/python/src/crash.rs``)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from sardonyx import _core
from sardonyx.runs import scheduler
from sardonyx.runs.jobs import Setting
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import ProgramSource, Value


class CrashQuestion(Value):
    """A program on each core under a design, its power cut at every position, at ``cuts`` of them,
    or at the one that is ``cut``.

    One recovery in ``recovery_cuts`` is cut as well; one cut in ``full_one_in`` is looked at in
    full. ``threads`` of 0 is one a processor.
    """

    program: ProgramSource
    design: str
    machine: str
    overrides: tuple[Setting, ...] = ()
    cores: int = 1
    mutant: str | None = None
    platform: str = "adr"
    cuts: int | None = None
    cut: int | None = None
    recovery_cuts: int = 64
    full_one_in: int = 509
    threads: int = 0

    @property
    def label(self) -> str:
        """The question in a few words."""
        planted = f", {self.mutant}" if self.mutant else ""
        return f"{self.program.name} {self.design}{planted}"


def explore(
    questions: Sequence[CrashQuestion], watch: Watch | None = None, *, stages: bool = False
) -> list[dict[str, Any]]:
    """What each question shows, one after the other; by the stages of a transaction if asked."""
    call = _core.crash_stages if stages else _core.crash
    tasks = [Task(q.label, partial(call, q.model_dump_json())) for q in questions]
    return [json.loads(answer) for answer in scheduler.run(tasks, 1, watch)]
