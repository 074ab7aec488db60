"""What commands about cuts share: their runs, what came of them, and with what status."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sardonyx import _core, layers
from sardonyx.answer import CHECK_FAILED, Answer
from sardonyx.api.asked import CrashExhaustive, CrashOnce, CrashRun, CrashStages
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch

#: From this many bytes on, memory is mentioned.
NOTABLE = 2**30


def ran(
    asked: CrashRun | CrashOnce | CrashStages | CrashExhaustive,
    call: Callable[[str, _core.Progress], str],
    watch: Watch | None,
    doing: str = "",
) -> Answer:
    """What came of every program over every design, with the status that they have earned."""
    asked = asked.replace(designs=layers.names(asked.designs))
    runs = json.loads(_core.crash_runs(asked.command, asked.json()))
    runs = [{**run, "label": run["label"] + doing} for run in runs]
    return judged(asked.command, runs, call, watch)


def judged(
    command: str,
    runs: Sequence[Mapping[str, Any]],
    call: Callable[[str, _core.Progress], str],
    watch: Watch | None,
) -> Answer:
    """What came of runs, each with its ``label``, ``question`` and ``memory``."""
    needed = max((run["memory"] for run in runs), default=0)
    if needed >= NOTABLE:
        scheduler.tell(
            watch,
            f"a run needs about {needed / 2**30:.1f} GiB of memory, and some minutes for each "
            "GiB; a smaller --footprint or fewer --transactions need less",
        )
    tasks = [Task(run["label"], partial(call, json.dumps(run["question"]))) for run in runs]
    found = [json.loads(answer) for answer in scheduler.run(tasks, 1, watch)]
    status = CHECK_FAILED if any(run.get("fails") for run in found) else 0
    return Answer(command, {"sardonyx": _core.VERSION, "runs": found}, status)
