"""What is asked of a recorded program, in a search or of one image; one search of several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sardonyx.api.asked import CrashTestReplay, CrashTestSearch
from sardonyx.crash_tests.searching import limits
from sardonyx.questions import CrashTestQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.crash_test import crash_test, words
from sardonyx.runs.scheduler import Task, Watch


def platform(asked: CrashTestSearch | CrashTestReplay) -> str:
    """What survives a cut: what the simulator's designs keep, if they are asked for."""
    below = getattr(asked, "designs", None) is not None
    return "adr" if below and asked.platform == "auto" else asked.platform


def question(asked: CrashTestSearch | CrashTestReplay) -> dict[str, Any]:
    """What every question about the recording has."""
    pool, *more = map(str, asked.pool)
    held: dict[str, Any] = {"thread_order": asked.thread_order}
    if asked.operations is not None and asked.apply is not None:
        held |= {
            "operations": str(asked.operations),
            "apply": words(asked.apply, "--apply ", ("{pool}", "{operations}")),
            "acknowledged": asked.acknowledged,
        }
    return (
        limits(asked)
        | held
        | {
            "recording": str(asked.recording),
            "pool": pool,
            "more_pools": tuple(more),
            "recover": words(asked.recover, "--recover "),
            "platform": platform(asked),
            "assume_persisted": asked.assume_persisted,
            "source": not asked.no_source,
        }
    )


def replay(asked: CrashTestSearch, image: str, on: str, assumed: Sequence[str]) -> list[str]:
    """The command that runs the recovery on one image, on the platform that the search was on."""
    parts = ["sardonyx", "crash-test", "replay", str(asked.recording), image]
    parts += [part for pool in asked.pool for part in ("--pool", str(pool))]
    parts += ["--recover", asked.recover]
    if asked.ok != (0,):
        parts += ["--ok", ",".join(map(str, asked.ok))]
    if platform(asked) != "auto" or on != "adr":
        parts += ["--platform", on]
    parts += [part for place in assumed for part in ("--assume-persisted", place)]
    if asked.operations is not None:
        parts += ["--operations", str(asked.operations), "--apply", str(asked.apply)]
        if asked.acknowledged != "lines":
            parts += ["--acknowledged", asked.acknowledged]
    if asked.thread_order is not None:
        parts += ["--thread-order", asked.thread_order]
    return parts


def tested(question: CrashTestQuestion, watch: Watch | None) -> dict[str, Any]:
    """What one search of several finds; a signal ends them all."""
    task = Task(Path(question.recording).name, partial(crash_test, question))
    (found,) = scheduler.run([task], 1, watch)
    return found
