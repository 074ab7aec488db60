"""What the crash explorer is asked, as one JSON document (``crates/native/src/crash.rs``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sardonyx import _core, questions
from sardonyx.questions import ProgramSource
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch

#: One recovery in so many is cut as well, one cut in so many looked at in full, unless asked
#: otherwise.
RECOVERY_CUTS = questions.CrashQuestion.recovery_cuts
FULL_ONE_IN = questions.CrashQuestion.full_one_in


class CrashQuestion(questions.CrashQuestion):
    """One run, which knows its name and its size."""

    program: ProgramSource

    @property
    def label(self) -> str:
        """The question in a few words."""
        planted = f", {self.mutant}" if self.mutant else ""
        return f"{self.program.name} {self.design}{planted}"

    def memory(self) -> int:
        """Bytes of memory that it needs, about; an error if it cannot be asked."""
        return _core.crash_memory(self.json())


class ExhaustiveQuestion(questions.ExhaustiveQuestion):
    """All orders of one run, which knows its name and its size."""

    run: CrashQuestion

    @property
    def label(self) -> str:
        """The question in a few words."""
        return self.run.label

    def memory(self) -> int:
        """0: such runs are small."""
        return 0


class TrialQuestion(questions.TrialQuestion):
    """A plan of passes, which knows its name and its size."""

    @property
    def label(self) -> str:
        """The question in a few words."""
        planted = f", {self.mutant}" if self.mutant else ""
        return f"{self.program} {self.design}{planted}"

    def memory(self) -> int:
        """Bytes of memory that its largest run needs, about; an error if it cannot be asked."""
        return _core.crash_trial_memory(self.json())


_Call = Callable[[str, _core.Progress | None], str]


def _ask(
    call: _Call,
    asked: Sequence[CrashQuestion] | Sequence[TrialQuestion] | Sequence[ExhaustiveQuestion],
    watch: Watch | None,
) -> list[dict[str, Any]]:
    tasks = [Task(q.label, partial(call, q.json())) for q in asked]
    return [json.loads(answer) for answer in scheduler.run(tasks, 1, watch)]


def explore(
    asked: Sequence[CrashQuestion], watch: Watch | None = None, *, stages: bool = False
) -> list[dict[str, Any]]:
    """What each run shows, one after the other; by the stages of a transaction if asked."""
    return _ask(_core.crash_stages if stages else _core.crash, asked, watch)


def orders(asked: Sequence[ExhaustiveQuestion], watch: Watch | None = None) -> list[dict[str, Any]]:
    """What all orders of each run show, one run after the other."""
    return _ask(_core.crash_exhaustive, asked, watch)


def trials(asked: Sequence[TrialQuestion], watch: Watch | None = None) -> list[dict[str, Any]]:
    """What each plan shows, one after the other."""
    return _ask(_core.crash_trial, asked, watch)
