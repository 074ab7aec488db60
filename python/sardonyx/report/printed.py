"""The page of an answer that draws nothing: what is printed, in the frame of all reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.draw.tables import Table, taken_whole
from sardonyx.files import write_text
from sardonyx.report.content import Block, Grid, Group, Row, Td, Text, Th, frame, words
from sardonyx.report.markup import plain_page
from sardonyx.runs.origin import here


def write(command: str, tell: Callable[[Any], None], path: Path) -> None:
    """Write the page of what ``tell`` prints, complete or not at all."""
    lines, tables = taken_whole(tell)
    groups = [
        Group(f"table-{at}", table.title or f"Table {at}", inner=_blocks(table))
        for at, table in enumerate(tables, 1)
    ]
    text = plain_page(
        heading=f"Report of {command}",
        source="What the command prints.",
        facts=frame(here(), _core.VERSION),
        notes=lines,
        groups=groups,
        names=_names(tables),
    )
    write_text(path, text)


def _names(tables: Sequence[Table]) -> dict[str, list[str]]:
    """What columns of these names hold."""
    found: dict[str, list[str]] = {"workload": [], "design": []}
    for column in (each for table in tables for each in table.columns):
        kind = "workload" if column.head in ("trace", "program") else column.head
        if kind in found:
            found[kind] += filter(None, column.cells)
    return found


def _blocks(table: Table) -> list[Block]:
    heads = [Th(each.head, "" if each.numbers else "name") for each in table.columns]
    rows = [
        Row([Td(cell) if each.numbers else words(cell) for cell, each in
             zip(row, table.columns, strict=True)])
        for row in zip(*(each.cells for each in table.columns), strict=True)
    ]  # fmt: skip
    return [Grid(heads, rows), *(Text(note, "reading") for note in table.notes)]
