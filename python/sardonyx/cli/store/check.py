"""``sardonyx store check``: whether everything in a device's folder is as it was written."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

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

    One line a fault; the exit status is 1 if there is any. Nobody may serve the folder meanwhile.

    [bold]Example[/bold]: sardonyx store check disk
    """
    check_json_target(json_to)
    call = partial(_core.store_check, str(folder))
    found = json.loads(watched(err, str(folder), call, "blocks"))
    people = for_people(json_to)
    for fault in found["faults"]:
        people.print(fault, soft_wrap=True)
    faults = len(found["faults"])
    verdict = f"{faults:,} faults" if faults else "sound"
    counts = f"{found['live_blocks']:,} blocks, {found['stored_blocks']:,} distinct"
    people.print(f"{folder}: {counts}, {verdict}", soft_wrap=True)
    write_json(json_to, {"folder": str(folder)} | found)
    if faults:
        raise typer.Exit(CHECK_FAILED)
