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

merge = Command("merge", questions.merge)
