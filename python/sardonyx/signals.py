"""Signals that end the program: what is begun is cleaned up, within a time."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from sardonyx._core import end_in_time, end_patiently


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: what is begun is cleaned up, as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = number


def ended(number: int, _: object) -> None:
    """The handler of signals that end the program."""
    raise Ended(number)


def handle_signals() -> None:
    """Signals that would end us unwind instead, so that no scratch file is left; within a time."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, ended)
    signal.set_wakeup_fd(end_in_time(), warn_on_full_buffer=False)


@contextmanager
def ending_patiently() -> Iterator[None]:
    """Whatever is begun here ends in its own time after a signal."""
    end_patiently(True)
    try:
        yield
    finally:
        end_patiently(False)
