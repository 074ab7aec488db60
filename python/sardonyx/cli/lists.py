"""What there is to choose from: ``designs``, ``programs``, ``machines`` and ``show``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.table import Column
from rich.text import Text

from sardonyx import _core, api
from sardonyx.cli import complete
from sardonyx.cli.common import check_json_target, out, write_json
from sardonyx.cli.options import JsonTo, Set
from sardonyx.draw.grid import grid
from sardonyx.runs.jobs import parse_settings
from sardonyx.runs.recordings import recordings as found


def designs(json_to: JsonTo = None) -> None:
    """List the designs, each with a line and its source, and what may stand behind each."""
    schemes = [{**each, "name": f"@{each['name']}"} for each in json.loads(_core.integrities())]
    _list([*api.designs(), *schemes], ("name", "line", "source"), json_to)


def programs(json_to: JsonTo = None) -> None:
    """List the persistent programs that compare takes, each with a line."""
    _list(api.programs(), ("name", "line"), json_to)


def machines(json_to: JsonTo = None) -> None:
    """List the machines that come with the program, each with its source."""
    _list(api.machines(), ("name", "source"), json_to)


def recordings(json_to: JsonTo = None) -> None:
    """List the recordings that come with the program."""
    rows = [{"name": name, "path": str(path)} for name, path in found().items()]
    check_json_target(json_to)
    if json_to != "-":
        longest = max(map(len, found()), default=0)
        for row in rows:  # a path is in one piece, to be copied
            out.print(Text(f"{row['name']:<{longest}}  {row['path']}"), soft_wrap=True)
    write_json(json_to, rows)


def show(
    name: Annotated[
        str,
        typer.Argument(
            help="A machine's name, or the path of its file.",
            autocompletion=complete.machines,
        ),
    ],
    settings: Set = None,
    json_to: JsonTo = None,
) -> None:
    """Print a machine's effective configuration as TOML: every key, with what is assumed.

    [bold]Example[/bold]: sardonyx show esd --set medium.timing.tRCD_ns=60 > mine.toml
    """
    check_json_target(json_to)
    machine = json.loads(_core.machine(name, list(parse_settings(settings or ()))))
    if json_to != "-":
        out.print(machine["toml"], end="", soft_wrap=True)
    write_json(json_to, machine)


def _list(rows: list[dict[str, Any]], columns: tuple[str, ...], json_to: str | None) -> None:
    check_json_target(json_to)
    heads = (Column(each, overflow="fold", no_wrap=each == "name") for each in columns)
    table = grid(*heads, header_style="dim")
    for row in rows:
        table.add_row(*(Text(str(row.get(column, ""))) for column in columns))
    if json_to != "-":
        out.print(table)
    write_json(json_to, rows)
