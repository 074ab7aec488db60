"""What the crash explorer answers of one run (``crates/native/src/crash``)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from sardonyx import _core
from sardonyx.questions import CrashQuestion, ProgramSource
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch

#: One recovery in this many is cut as well, and one cut in this many is checked in full, unless the
#: user says otherwise.
RECOVERY_CUTS = CrashQuestion.recovery_cuts
FULL_ONE_IN = CrashQuestion.full_one_in


def label(question: CrashQuestion) -> str:
    """The question in a few words."""
    program = question.program
    assert isinstance(program, ProgramSource)
    return f"{program.name} {question.design}" + (f", {question.mutant}" if question.mutant else "")


def stages(questions: Sequence[CrashQuestion], watch: Watch | None = None) -> list[dict[str, Any]]:
    """What cuts at each stage of a transaction leave, of one run after the other."""
    tasks = [Task(label(each), partial(_core.crash_stages, each.json())) for each in questions]
    return [json.loads(answer) for answer in scheduler.run(tasks, 1, watch)]
