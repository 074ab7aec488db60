"""Answers that are facts about one trace, in tables; and whether a trace can be put somewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.api.command import Answer, ran
from sardonyx.files import check_space, check_target, is_special
from sardonyx.runs.recordings import path_of
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_file


class Facts(Answer):
    """Facts about the trace ``title``; ``plot`` is the file that draws them."""

    def __init__(
        self,
        command: str,
        title: str,
        facts: Mapping[str, Any],
        plot: Path | None = None,
        **said: Any,
    ) -> None:
        super().__init__(command, facts, written=facts, **said)
        self.title, self.plot = title, plot


def written(
    command: str,
    target: Path,
    sources: list[str],
    call: Callable[[_core.Progress], str],
    watch: Watch | None,
) -> Facts:
    """The facts of a trace that a native call writes, made of these sources."""
    writable(target, sources)
    return Facts(command, str(target), ran(" + ".join(sources), call, watch))


def there(text: str) -> str:
    """The path of a trace file or a recording; an error if there is no such file."""
    path = path_of(text)
    check_file(path)
    return path


def writable(target: Path, sources: Iterable[str] = ()) -> None:
    """An error unless a file can be put there later, in the place of none of the sources."""
    check_target(target, sources)
    check_space(target.parent)
    if is_special(target):
        raise _core.SardonyxError(f"{target}: is not a regular file; name a file")


def tell(people: Console, answer: Facts) -> None:
    table_of(people, answer.title, answer.document())


def table_of(people: Console, title: str, facts: Mapping[str, Any]) -> None:
    """Numbers in a table, lists of alike things in a table each."""
    table = Table(title=Text(title), title_justify="left", box=None, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", overflow="fold")
    for name, value in facts.items():
        if not isinstance(value, list | dict):
            table.add_row(name, Text(_figure(value)))
    people.print(table)
    for name, value in facts.items():
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
