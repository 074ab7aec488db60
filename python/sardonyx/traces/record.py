"""``trace record``: run a program, and say what was written of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from sardonyx.api.command import BAD_INPUT, Answer
from sardonyx.questions import TraceRecord
from sardonyx.runs.scheduler import Watch
from sardonyx.traces.facts import table_of, writable
from sardonyx.traces.recorder import recorded

#: A shell's status of a program that a signal ended is this plus the signal's number.
BY_SIGNAL = 128
DIFFERENT = "--verify: the trace and the program's memory differ; please report the program"


def answer(asked: TraceRecord, watch: Watch | None) -> Answer:
    """What became of the program, whose status is the answer's, and its traces."""
    program = asked.program[1:] if asked.program[:1] == ("--",) else asked.program
    target = asked.output or Path(f"{Path(program[0]).name if program else 'trace'}.parquet")
    writable(target)
    outcome = recorded(asked.replace(program=program, output=target), watch)
    notes = [each for trace in outcome["traces"] for each in trace["notes"]]
    if asked.verify and not all(trace["verified"] for trace in outcome["traces"]):
        notes.append("not verified: the program did not end in order, or the trace is cut")
    ended, status = outcome["signal"], outcome["status"] or 0
    if ended is not None:
        notes.append(f"the program was ended by signal {ended}; the trace is whole up to there")
        status = BY_SIGNAL + ended
    elif status:
        notes.append(f"the program ended with status {status}")
    if outcome["interrupted"]:
        status = 0
    different = any((trace["verified"] or {}).get("different") for trace in outcome["traces"])
    errors = [DIFFERENT] if different else []
    return Answer("trace record", outcome, BAD_INPUT if errors else status, notes, errors, outcome)


def tell(people: Console, answer: Answer) -> None:
    for trace in answer["traces"]:
        said = {key: trace[key] for key in ("records", "instructions", "complete")}
        table_of(people, trace["path"], said)
        if trace["verified"]:
            people.print(_verified(trace["verified"]), soft_wrap=True)


def _verified(found: Mapping[str, Any]) -> str:
    counted = f"{found['lines']:,} lines of {found['pages']:,} pages"
    if not found["different"]:
        return f"verified: {counted} are in memory as in the trace"
    places = ", ".join(map(str, found["first"]))
    return f"not verified: {found['different']:,} of {counted} differ: {places}"
