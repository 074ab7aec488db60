"""``designs``, ``programs``, ``recordings``, ``machines``: what there is, by name."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Column
from rich.text import Text

from sardonyx import _core
from sardonyx.answer import Listed
from sardonyx.api.asked import Designs, Machines, Programs, Recordings
from sardonyx.draw.grid import grid
from sardonyx.runs import recordings
from sardonyx.runs.scheduler import Watch

#: The columns of each list; a path is in one piece, to be copied.
COLUMNS = {
    "designs": ("name", "line", "source"),
    "programs": ("name", "line"),
    "machines": ("name", "source"),
    "recordings": ("name", "path"),
}


def answer(asked: Designs | Programs | Recordings | Machines, _: Watch | None) -> Listed:
    """What there is of what is asked for."""
    rows: list[dict[str, Any]]
    if asked.command == "designs":
        schemes = json.loads(_core.integrities())
        behind = [{**each, "name": f"@{each['name']}"} for each in schemes]
        return Listed("designs", [*json.loads(_core.designs()), *behind])
    if asked.command == "programs":
        return Listed("programs", json.loads(_core.programs())["programs"])
    if asked.command == "machines":
        return Listed("machines", json.loads(_core.machines()))
    rows = [{"name": name, "path": str(path)} for name, path in recordings.recordings().items()]
    return Listed("recordings", rows)


def tell(people: Console, answer: Listed) -> None:
    """One a line, or its columns."""
    columns = COLUMNS[answer.command]
    if "path" in columns:
        longest = max((len(row["name"]) for row in answer), default=0)
        for row in answer:
            people.print(Text(f"{row['name']:<{longest}}  {row['path']}"), soft_wrap=True)
        return
    heads = (Column(each, overflow="fold", no_wrap=each == "name") for each in columns)
    table = grid(*heads, header_style="dim")
    for row in answer:
        table.add_row(*(Text(str(row.get(column, ""))) for column in columns))
    people.print(table)
