"""The commands as functions: each takes what its command takes, checks it, and gives an answer.

A function is a line here: its signature, made of what Rust declares, and the work behind it.
"""

from __future__ import annotations

from sardonyx import _core, questions
from sardonyx.api.command import Answer, Command, native
from sardonyx.api.comparing import (
    DESIGNS,
    check_alone,
    check_sensitivity,
    check_whole,
    compare,
    designs,
    load,
    machines,
    points,
    programs,
    sweep,
    synth,
    varied,
)

__all__ = [
    "DESIGNS",
    "Answer",
    "Command",
    "check_alone",
    "check_sensitivity",
    "check_whole",
    "compare",
    "designs",
    "load",
    "machines",
    "merge",
    "points",
    "programs",
    "sweep",
    "synth",
    "varied",
]

merge = native("merge", questions.merge, lambda asked, progress: _core.merge(asked, progress))
