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
    "crash_test_files",
    "crash_test_lint",
    "crash_test_replay",
    "crash_test_search",
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
crash_test_search = Command("crash-test search", questions.crash_test_search)
crash_test_replay = Command("crash-test replay", questions.crash_test_replay)
crash_test_lint = Command("crash-test lint", questions.crash_test_lint)
crash_test_files = Command("crash-test files", questions.crash_test_files)
merge = Command("merge", questions.merge)
