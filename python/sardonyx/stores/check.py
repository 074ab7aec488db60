"""``store check``: whether everything in a device's folder is as it was written."""

from __future__ import annotations

from functools import partial
from typing import Any

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import StoreCheck
from sardonyx.api.command import ran
from sardonyx.runs.scheduler import Watch


def answer(asked: StoreCheck, watch: Watch | None) -> Answer:
    """What was looked at, and the faults."""
    folder = str(asked.folder)
    found = {"folder": folder} | ran(folder, partial(_core.store_check, folder), watch)
    return Answer("store check", found, int(bool(found["faults"])))


def tell(people: Console, answer: Answer) -> None:
    for fault in answer["faults"]:
        people.print(fault, soft_wrap=True)
    for note in answer["notes"]:
        people.print(f"note: {note}", style="dim", soft_wrap=True)
    people.print(f"{answer['folder']}: {_verdict(answer)}", soft_wrap=True)


def _verdict(found: dict[str, Any]) -> str:
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
