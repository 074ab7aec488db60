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
    "merge_generate",
    "merge_time",
    "points",
    "programs",
    "store_check",
    "store_compare",
    "store_estimate",
    "store_serve",
    "sweep",
    "synth",
    "trace_check",
    "trace_convert",
    "trace_cut",
    "trace_info",
    "trace_mix",
    "trace_record",
    "trace_synth",
    "varied",
]

merge = Command("merge", questions.merge)
merge_time = Command("merge time", questions.merge_time)
merge_generate = Command("merge generate", questions.merge_generate)
trace_record = Command("trace record", questions.trace_record)
trace_info = Command("trace info", questions.trace_info)
trace_check = Command("trace check", questions.trace_check)
trace_convert = Command("trace convert", questions.trace_convert)
trace_synth = Command("trace synth", questions.trace_synth)
trace_cut = Command("trace cut", questions.trace_cut)
trace_mix = Command("trace mix", questions.trace_mix)
store_compare = Command("store compare", questions.store_compare)
store_serve = Command("store serve", questions.store_serve)
store_check = Command("store check", questions.store_check)
store_estimate = Command("store estimate", questions.store_estimate)
