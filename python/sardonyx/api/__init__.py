"""The commands as functions: each takes what its command takes, checks it, and gives an answer.

A function is a line here, its signature made of what Rust declares; ``known`` leads to the answers.
"""

from __future__ import annotations

from sardonyx import questions
from sardonyx.api.command import Answer, Command
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
    "crash_exhaustive",
    "crash_once",
    "crash_replay",
    "crash_run",
    "crash_stages",
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

crash_run = Command("crash run", questions.crash_run)
crash_once = Command("crash once", questions.crash_once)
crash_stages = Command("crash stages", questions.crash_stages)
crash_exhaustive = Command("crash exhaustive", questions.crash_exhaustive)
crash_replay = Command("crash replay", questions.crash_replay)
merge = Command("merge", questions.merge)
