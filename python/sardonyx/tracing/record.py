"""``trace record``: a program run, and what it asked of memory.

What happens in between is native (crates/record, crates/recorder); docs/crash-test/recorder.md
explains it. The program's output is its own, so what we say goes to standard error.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import UNREADABLE, Answer
from sardonyx.api.asked import TraceRecord
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.signals import ended, ending_patiently
from sardonyx.tracing import facts
from sardonyx.tracing.facts import check_new

PLUGIN = Path(__file__).parents[1] / "libsardonyx_recorder.so"
#: The emulator's places: in the installed package, and where `make qemu` puts it in a checkout.
EMULATORS = (
    Path(__file__).parents[1] / "qemu-x86_64",
    Path(__file__).parents[3] / "target" / "qemu" / "bin" / "qemu-x86_64",
)
#: Instructions a second of a program without us, for the live counter only (*assumed*: a core of
#: 3 GHz at one instruction a cycle). docs/crash-test/recorder.md has slowdowns that were measured.
NATIVE_RATE = 3e9
LOOK_EVERY = 0.25
#: A shell's status of a program that a signal ended is this plus the signal's number.
BY_SIGNAL = 128


def answer(asked: TraceRecord, watch: Watch | None) -> Answer:
    """What was written, and how the program ended; the status is the program's."""
    program = asked.program[1:] if asked.program[:1] == ("--",) else asked.program
    target = asked.output or Path(f"{Path(program[0]).name if program else 'trace'}.parquet")
    check_new(target)
    outcome = recorded(asked.replace(program=program, output=target), watch)
    verified = [trace["verified"] for trace in outcome["traces"]]
    differ = any(found and found["different"] for found in verified)
    status = 0 if outcome["interrupted"] else outcome["status"] or 0
    if outcome["signal"] is not None and not outcome["interrupted"]:
        status = BY_SIGNAL + outcome["signal"]
    found = Answer("trace record", outcome, UNREADABLE if differ else status, shown=asked.verify)
    if differ:
        found.errors = [
            "--verify: the trace and the program's memory differ; please report the program"
        ]
    return found


def emulator(asked: Path | None = None) -> Path | None:
    """The emulator that was asked for, or that there is of ours; else one in PATH is taken."""
    if asked is not None:
        return asked.absolute() if asked.exists() else asked
    return next((place for place in EMULATORS if place.is_file()), None)


def tell(people: Console, answer: Answer) -> None:
    """What each trace holds, and how the program ended."""
    for trace in answer["traces"]:
        said = {key: trace[key] for key in ("records", "instructions", "complete")}
        facts.tell(people, Answer("trace record", said, shown=trace["path"]))
        if answer.shown:
            _tell_verified(people, trace["verified"])
        for note in trace["notes"]:
            people.print(f"note: {note}", soft_wrap=True)
    if answer["signal"] is not None:
        people.print(
            f"note: the program was ended by signal {answer['signal']}; "
            "the trace is whole up to there"
        )
    elif answer["status"]:
        people.print(f"note: the program ended with status {answer['status']}")


def _tell_verified(people: Console, found: dict[str, Any] | None) -> None:
    if found is None:
        people.print("not verified: the program did not end in order, or the trace is cut")
        return
    counted = f"{found['lines']:,} lines of {found['pages']:,} pages"
    if not found["different"]:
        people.print(f"verified: {counted} are in memory as in the trace")
        return
    places = ", ".join(map(str, found["first"]))
    people.print(
        f"not verified: {found['different']:,} of {counted} differ: {places}", soft_wrap=True
    )


def recorded(asked: TraceRecord, watch: Watch | None) -> dict[str, Any]:
    """Record on another thread, watched.

    Ctrl-C, SIGTERM and SIGHUP end the program within a second, the second one at once. The trace is
    kept, and the rings' folder is not. The third one ends us, however long the files of the program
    take to read.
    """
    recording = _core.Recording()
    task = Task("", lambda _: None, _Counted(recording), "running")
    text = asked.replace(qemu=emulator(asked.qemu)).json()
    interrupted: list[bool] = []
    started = time.monotonic()

    def stop(*_: object) -> None:
        recording.stop()
        interrupted.append(True)
        if len(interrupted) == 2:
            _core.end_patiently(False)

    with ThreadPoolExecutor(1) as pool, _on_signals(stop), ending_patiently():
        done = pool.submit(_core.trace_record, text, str(PLUGIN), recording)
        while True:
            try:
                answer = done.result(timeout=LOOK_EVERY)
                break
            except NotYet:
                if watch is not None:
                    task.label = _counters(recording, started)
                    watch([task])
            except KeyboardInterrupt:
                stop()
    outcome: dict[str, Any] = json.loads(answer) | {"interrupted": bool(interrupted)}
    return outcome


class _Counted:
    """A recording as progress: nobody knows how long the program is."""

    total = 0

    def __init__(self, recording: _core.Recording) -> None:
        self._recording = recording

    @property
    def done(self) -> int:
        return self._recording.records

    def cancel(self) -> None:
        self._recording.stop()


@contextmanager
def _on_signals(handler: Callable[..., None]) -> Iterator[None]:
    """Call the handler at SIGTERM or SIGHUP, if they would end us."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are another thread's
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    before = {number: old for number, old in before.items() if old in (signal.SIG_DFL, ended)}
    try:
        for number in before:
            signal.signal(number, handler)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _counters(recording: _core.Recording, started: float) -> str:
    passed = max(time.monotonic() - started, 1e-3)
    rate = recording.instructions / passed
    slowdown = f"about {NATIVE_RATE / rate:.0f}x slower" if rate else "starting"
    return (
        f"{recording.instructions / 1e6:,.0f} M instructions · {recording.records:,} records · "
        f"{recording.bytes / 1e6:,.0f} MB · {slowdown}"
    )
