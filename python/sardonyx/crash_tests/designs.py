"""What a cut leaves of the pool below designs of the simulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from sardonyx import _core
from sardonyx.draw.grid import grid, numbers
from sardonyx.questions import CrashTestQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch

#: The number of cuts below each design; the recovery is run after one in this many.
CUTS = 200
EVERY = 4


def below(
    question: CrashTestQuestion,
    found: dict[str, Any],
    machine: str,
    designs: Sequence[str],
    watch: Watch | None,
) -> list[dict[str, Any]]:
    """What of the pool can be read after a cut below each design, and what the recovery does."""
    start = (found["start"]["row"], found["time_limit_s"])

    def call(progress: _core.Progress) -> str:
        return _core.crash_designs(
            question.json(), start, machine, list(designs), (CUTS, EVERY), progress
        )

    (answer,) = scheduler.run([Task(Path(question.recording).name, call)], 1, watch)
    told: dict[str, list[dict[str, Any]]] = json.loads(answer)
    return told["designs"]


def show(people: Console, designs: Sequence[dict[str, Any]], machine: str) -> None:
    """A row a design."""
    first = designs[0]
    tried = first["recovered"][0][0]
    people.print(
        f"\nThe pool below a design of {machine}, the program knowing nothing of counters, and "
        f"with its {first['marks']:,} commit stores marked: of {first['plain']['cuts']} cuts "
        f"those with unreadable lines, how many of {first['plain']['lines']:,} lines at most, and "
        f"after how many of {tried} cuts the recovery copes"
    )
    heads = ("cuts", "lines", "copes", "marked: cuts", "lines", "copes", "writes", "time")
    table = grid("design", *numbers(*heads), header_style="bold")
    for one in designs:
        cells = []
        for run, (_, coped) in zip((one["plain"], one["marked"]), one["recovered"], strict=True):
            cells += [run["cuts_with_unreadable"], run["most_unreadable"], coped]
        for key in ("writes", "nanoseconds"):
            plain = one["plain"][key]
            cells.append(f"{one['marked'][key] / plain - 1:+.1%}" if plain else "")
        table.add_row(one["design"], *map(str, cells))
    people.print(table)
