"""What any search is asked, of mapped pools or of files; how it runs, how its answer is made."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console

from sardonyx import _core
from sardonyx._core import SardonyxError
from sardonyx.answer import CHECK_FAILED, NOTHING_SAID, Answer
from sardonyx.api.asked import CrashTestFiles, CrashTestReplay, CrashTestSearch
from sardonyx.files import FileError, check_target, write_text
from sardonyx.report.checks import Baseline, baseline_of, junit, read_baseline, sarif
from sardonyx.report.crash_test import render
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.signals import ended

Searched: TypeAlias = CrashTestSearch | CrashTestFiles
#: Signals that end a program, and leave it time; shells add a signal's number to this.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEFT_BY_SIGNAL = 128


def limits(asked: Searched | CrashTestReplay) -> dict[str, Any]:
    """What is asked of each recovery."""
    if asked.keep is not None and asked.keep.exists() and any(asked.keep.iterdir()):
        raise SardonyxError(f"--keep {asked.keep}: is not empty; name another folder")
    return {
        "ok": tuple(sorted({0, *asked.ok})),
        "time_limit": asked.time_limit,
        "memory_limit": asked.memory_limit,
        "keep": str(asked.keep) if asked.keep else None,
    }


def effort(asked: Searched) -> dict[str, Any]:
    """What is asked of the search as a whole."""
    return {
        "budget": asked.budget,
        "seed": asked.seed,
        "threads": asked.jobs,
        "allow_failure": asked.allow_failure,
    }


def check_targets(asked: Searched, inputs: Sequence[str] = ()) -> Baseline | None:
    """An error unless each report can be written; the baseline to hold the causes to."""
    for name in ("html", "sarif", "junit", "write_baseline"):
        target = getattr(asked, name, None)
        if target is not None:
            check_target(target, inputs, f"--{name.replace('_', '-')} ")
    return None if asked.baseline is None else read_baseline(asked.baseline)


def searched(
    label: str, call: Callable[[_core.Progress], dict[str, Any]], watch: Watch | None
) -> dict[str, Any]:
    """What a native search finds. The first signal that would end the program ends the search
    early: it then gives what it has. The next signal ends the program.
    """
    task, told = Task(label, call), list[signal.Signals]()
    before = {number: signal.getsignal(number) for number in ENDING}

    def end(number: int, _: object) -> None:
        told.append(signal.Signals(number))
        for each, handler in before.items():
            signal.signal(each, handler)
        task.progress.cancel()

    ours = threading.current_thread() is threading.main_thread()
    for number in ENDING if ours else ():
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        (found,) = scheduler.run([task], 1, watch)
    except SardonyxError:
        if told:
            ended(told[0], None)  # it had nothing yet
        raise
    finally:
        if ours and not told:
            for number, handler in before.items():
                signal.signal(number, handler)
    by = told[0].name if told else None
    if by is not None and found.get("unsaid") and found["doubt"]["reason"] == "budget":
        found["unsaid"] = f"{by} ended it before each kind of moment had been tried once"
    return found | {"ended_by": by}


def answered(
    command: str, found: dict[str, Any], notes: Sequence[str], shown: Any = None
) -> Answer:
    """The answer of a command, with the status that it has earned."""
    notes, status = [*notes], 0
    if by := found.get("ended_by"):
        notes.append(f"ended by {by} before the budget: this is what there was until then")
    if found["fails"] and not found.get("all_accepted"):
        status = CHECK_FAILED
    elif by:
        status = LEFT_BY_SIGNAL + signal.Signals[by]
    elif found.get("unsaid"):
        status = NOTHING_SAID
    return Answer(command, {"sardonyx": _core.VERSION, **found}, status, notes, shown)


def reported(answer: Answer, asked: Searched) -> Answer:
    """The answer, once the reports of it are written; an error has it as ``answer``."""
    written: list[tuple[Path | None, Callable[[], str]]] = [
        (getattr(asked, "html", None), lambda: render(answer, _core.VERSION)),
        (asked.sarif, lambda: sarif(answer, _core.VERSION)),
        (asked.junit, lambda: junit(answer)),
        (asked.write_baseline, lambda: baseline_of(answer)),
    ]
    try:
        for target, text in written:
            if target is not None:
                write_text(target, text())
    except (OSError, FileError) as error:
        error.answer = answer  # type: ignore[union-attr]  # it took longer than a report
        raise
    return answer


def unfinished(found: Mapping[str, Any]) -> str:
    """That passes were left out, which, and what would bring them."""
    more = "raise --budget" if found.get("ended_by") is None else f"{found['ended_by']} ended it"
    return f"the plan was not finished; {more}. Skipped: {', '.join(found['passes_left'])}"


def show_basis(people: Console, found: Mapping[str, Any]) -> None:
    """Print what an answer without a violation rests on, where that is little."""
    for line in found["rests_on"]:
        people.print(f"it rests on little: {line}", soft_wrap=True)
