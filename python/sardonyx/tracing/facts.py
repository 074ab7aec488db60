"""What commands about traces share: facts in tables, and whether a trace can be put somewhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx._core import SardonyxError
from sardonyx.answer import Answer
from sardonyx.files import check_space, check_target, is_special


def check_new(target: Path, sources: Iterable[str] = ()) -> None:
    """An error unless a trace can be put there later, in the place of nothing else named."""
    check_target(target, sources)
    check_space(target.parent)
    if is_special(target):
        raise SardonyxError(f"{target}: is not a regular file; name a file")


def tell(people: Console, answer: Answer) -> None:
    """Numbers in a table, lists of alike things in a table each."""
    table = Table(title=Text(answer.shown), title_justify="left", box=None, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", overflow="fold")
    for name, value in answer.items():
        if not isinstance(value, list | dict):
            table.add_row(name, Text(_figure(value)))
    people.print(table)
    for name, value in answer.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            people.print(_rows(name, value))


def _rows(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", box=None, header_style="dim")
    for index, column in enumerate(rows[0]):
        table.add_column(
            column.replace("_", " "), justify="right" if index else "left", no_wrap=not index
        )
    for row in rows:
        table.add_row(*(Text(_figure(row.get(column))) for column in rows[0]))
    return table


def _figure(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}"
        case _:
            return str(value)
