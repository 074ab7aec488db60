"""Recordings as they run: a program in the emulator, its counters, and signals that end it.

What happens in between is native (crates/record, crates/recorder); docs/crash-test/recorder.md
explains it.
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

from sardonyx import _core
from sardonyx.endings import ended, ending_patiently
from sardonyx.questions import TraceRecord
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.values import read

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


def request(**given: Any) -> TraceRecord:
    """A recording to be, by the options of ``trace record``."""
    return read(TraceRecord, json.loads(_core.asked("trace record", json.dumps(given))))


def emulator(asked: Path | None = None) -> Path | None:
    """The emulator that was asked for, or that there is of ours; else one in PATH is taken."""
    if asked is not None:
        return asked.absolute() if asked.exists() else asked
    return next((place for place in EMULATORS if place.is_file()), None)


def recorded(asked: TraceRecord, watch: Watch | None) -> dict[str, Any]:
    """Record on another thread, and show the counters.

    Ctrl-C, SIGTERM and SIGHUP end the program within a second, the second one at once. The trace is
    kept, and the rings' folder is not. The third one ends us, however long the files of the program
    take to read.
    """
    recording = _core.Recording()
    text = asked.replace(qemu=emulator(asked.qemu)).json()
    interrupted: list[bool] = []
    started = time.monotonic()
    shown = Task("starting", lambda _: None, state="running")

    def stop(*_: object) -> None:
        recording.stop()
        interrupted.append(True)
        if len(interrupted) == 2:
            _core.end_patiently(False)

    with ThreadPoolExecutor(1) as pool, _on_signals(stop), ending_patiently():
        done = pool.submit(_core.trace_record, text, str(PLUGIN), recording)
        while True:
            try:
                outcome: dict[str, Any] = json.loads(done.result(timeout=LOOK_EVERY))
                return outcome | {"interrupted": bool(interrupted)}
            except NotYet:
                shown.label = _counters(recording, started)
                if watch is not None:
                    watch([shown])
            except KeyboardInterrupt:
                stop()


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
