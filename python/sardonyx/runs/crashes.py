"""What the crash explorer is asked (``crates/native/src/crash.rs``), and what it answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from sardonyx import _core
from sardonyx.questions import CrashQuestion, ExhaustiveQuestion, TrialQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch

#: One recovery in this many is cut as well, and one cut in this many is checked in full, unless the
#: user says otherwise.
RECOVERY_CUTS = CrashQuestion.recovery_cuts
FULL_ONE_IN = CrashQuestion.full_one_in
#: One run, a plan of passes, or all orders of one run.
Question: TypeAlias = CrashQuestion | TrialQuestion | ExhaustiveQuestion
_CALLS = {
    CrashQuestion: _core.crash,
    TrialQuestion: _core.crash_trial,
    ExhaustiveQuestion: _core.crash_exhaustive,
}


def label(question: Question) -> str:
    """The question in a few words."""
    run = question.run if isinstance(question, ExhaustiveQuestion) else question
    program = getattr(run.program, "name", run.program)
    return f"{program} {run.design}" + (f", {run.mutant}" if run.mutant else "")


def memory(question: CrashQuestion | TrialQuestion) -> int:
    """Bytes of memory that its largest run needs, about; an error if it cannot be asked."""
    one = isinstance(question, CrashQuestion)
    return (_core.crash_memory if one else _core.crash_trial_memory)(question.json())


def explore(
    questions: Sequence[Question], watch: Watch | None = None, *, stages: bool = False
) -> list[dict[str, Any]]:
    """What each shows, one after the other; by the stages of a transaction if asked."""
    tasks = [
        Task(
            label(each), partial(_core.crash_stages if stages else _CALLS[type(each)], each.json())
        )
        for each in questions
    ]
    return [json.loads(answer) for answer in scheduler.run(tasks, 1, watch)]
