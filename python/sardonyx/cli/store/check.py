"""``sardonyx store check``: whether everything in a device's folder is as it was written."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sardonyx import _core
from sardonyx.cli.common import CHECK_FAILED, PATH, check_json_target, err, for_people, write_json
from sardonyx.cli.options import JsonTo
from sardonyx.cli.progress import watched


def check(
    folder: Annotated[
        Path, typer.Argument(help="The folder of `store serve`.", **PATH | {"metavar": "DIR"})
    ],
    json_to: JsonTo = None,
) -> None:
    """Read every block and compare it with its checksum, and count its references.

    Changes nothing, so it works on a copy and on a folder that cannot be written. One line a
    fault; the exit status is 1 if there is any. Nobody may serve the folder meanwhile.

    [bold]Example[/bold]: sardonyx store check disk
    """
    check_json_target(json_to)
    call = partial(_core.store_check, str(folder))
    found = json.loads(watched(err, str(folder), call, "blocks"))
    people = for_people(json_to)
    for fault in found["faults"]:
        people.print(fault, soft_wrap=True)
    for note in found["notes"]:
        people.print(f"note: {note}", style="dim", soft_wrap=True)
    people.print(f"{folder}: {verdict_of(found)}", soft_wrap=True)
    write_json(json_to, {"folder": str(folder)} | found)
    if found["faults"]:
        raise typer.Exit(CHECK_FAILED)


def verdict_of(found: dict[str, Any]) -> str:
    """What was looked at, how much of it, and what came of it."""
    if found["commit"] is None:
        return "refused: the tables are damaged, and no block was looked at"
    tables = f"commit {found['commit']:,}, {found['table_bytes']:,} bytes of tables"
    if not found["live_blocks"] and not found["faults"]:
        return f"{tables}; the device is empty, no block was there to be read"
    counts = f"{found['live_blocks']:,} blocks, {found['stored_blocks']:,} distinct"
    read = f"{found['block_bytes_read']:,} bytes of contents read"
    faults = len(found["faults"])
    return f"{tables}, {counts}, {read}: " + (f"{faults:,} faults" if faults else "sound")
