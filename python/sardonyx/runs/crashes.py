"""What the crash explorer is asked, as one JSON document (``crates/python/src/crash.rs``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sardonyx import _core
from sardonyx.runs import scheduler
from sardonyx.runs.jobs import Setting
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import ProgramSource, Value


class CrashQuestion(Value):
    """One run of a program on each core under a design, its power cut at every position, at
    ``cuts`` of them, or at the one that is ``cut``.

    ``sharing`` says who shares lines of counters. One recovery in ``recovery_cuts`` is cut as well;
    one cut in ``full_one_in`` is looked at in full. ``threads`` of 0 is one a processor.
    """

    program: ProgramSource
    design: str
    machine: str
    overrides: tuple[Setting, ...] = ()
    cores: int = 1
    mutant: str | None = None
    sharing: str = "apart"
    platform: str = "adr"
    tear: str = "lines"
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

    def memory(self) -> int:
        """Bytes of memory that it needs, about; an error if it cannot be asked."""
        return _core.crash_memory(self.model_dump_json())


class TrialQuestion(Value):
    """A design under a program, tried by the explorer's plan of passes.

    Sizes that are ``None`` are each pass's own. Without ``software_log`` the program keeps no undo
    log, even where the hardware keeps none. With ``thorough_seconds`` the plan goes on with
    further seeds for so long.
    """

    program: str
    design: str
    machine: str
    overrides: tuple[Setting, ...] = ()
    seed: int = 1
    cores: int | None = None
    transactions: int | None = None
    item_bytes: int | None = None
    footprint: int | None = None
    mutant: str | None = None
    platform: str = "adr"
    tear: str = "lines"
    cuts: int | None = None
    recovery_cuts: int = 64
    full_one_in: int = 509
    threads: int = 0
    thorough_seconds: float | None = None
    software_log: bool = True

    @property
    def label(self) -> str:
        """The question in a few words."""
        planted = f", {self.mutant}" if self.mutant else ""
        return f"{self.program} {self.design}{planted}"

    def memory(self) -> int:
        """Bytes of memory that its largest run needs, about; an error if it cannot be asked."""
        return _core.crash_trial_memory(self.model_dump_json())


_Call = Callable[[str, _core.Progress | None], str]


def _ask(
    call: _Call, questions: Sequence[CrashQuestion] | Sequence[TrialQuestion], watch: Watch | None
) -> list[dict[str, Any]]:
    tasks = [Task(q.label, partial(call, q.model_dump_json())) for q in questions]
    return [json.loads(answer) for answer in scheduler.run(tasks, 1, watch)]


def explore(
    questions: Sequence[CrashQuestion], watch: Watch | None = None, *, stages: bool = False
) -> list[dict[str, Any]]:
    """What each run shows, one after the other; by the stages of a transaction if asked."""
    return _ask(_core.crash_stages if stages else _core.crash, questions, watch)


def trials(questions: Sequence[TrialQuestion], watch: Watch | None = None) -> list[dict[str, Any]]:
    """What each plan shows, one after the other."""
    return _ask(_core.crash_trial, questions, watch)
