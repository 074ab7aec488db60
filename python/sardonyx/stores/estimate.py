"""``store estimate``: what deduplication would save of a tree, a device or a trace.

The counting is native (crates/stores/estimate); docs/store/estimate.md explains the figures.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx import report as pages
from sardonyx.answer import Answer
from sardonyx.api.asked import StoreEstimate
from sardonyx.api.command import ran
from sardonyx.draw.grid import numbers
from sardonyx.files import check_target
from sardonyx.report.savings import times_of
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.scheduler import tell as say
from sardonyx.sizes import SUFFIXES, amount
from sardonyx.stores.rivals import rivals

#: Seconds that the state may take to be written after Ctrl-C.
LONGEST_WRITE = 60.0


class Estimate(Answer):
    """What was counted; ``plot`` is the file that draws it."""

    plot: str | None = None


def answer(asked: StoreEstimate, watch: Watch | None) -> Estimate:
    """Count it, and what its tables would take."""
    path, state, plot = asked.path, asked.state, asked.plot
    if state is not None:
        check_target(state, [path], "--state ")
        asked = asked.replace(state=state.absolute())
    if plot is not None:
        check_target(plot, [path], "--plot ")
    plan = json.loads(_core.store_plan(asked.json()))
    say(watch, _announced(plan))
    started = time.monotonic()
    answer = _counted(asked, watch)
    seconds = max(time.monotonic() - started, 1e-9)
    found, designs = answer["found"], answer["designs"]
    if found["unreadable"] and not found["bytes"]:
        raise _core.SardonyxError(
            f"nothing could be read: {found['unreadable_named'][0]}; check the path and its "
            "permissions"
        )
    tables = [
        {"cutting": named(one), **asdict(rival)}
        for one in found["cuttings"]
        for rival in rivals(one, found["files"])
    ]
    if plot is not None:
        names = [named(cutting) for cutting in found["cuttings"]]
        pages.write_savings_report(path, names, found, designs, plot)
    read = plan["bytes"] if asked.trace is not None else found["bytes"]
    say(watch, f"{amount(read or 0)} in {seconds:.1f} s")
    notes = []
    if found["unreadable"]:
        among = "; ".join(found["unreadable_named"])
        notes.append(f"{found['unreadable']:,} files could not be read, among them: {among}")
    document = {"path": path} | found | {"designs": designs, "tables": tables}
    told = Estimate("store estimate", document, notes=notes)
    told.plot = None if plot is None else str(plot)
    return told


def _counted(asked: StoreEstimate, watch: Watch | None) -> dict[str, Any]:
    try:
        with TemporaryDirectory(prefix="sardonyx.") as scratch:
            return ran(asked.path, partial(_core.store_estimate, asked.json(), scratch), watch)
    except KeyboardInterrupt:
        if asked.state is not None:
            for thread in threading.enumerate():  # the native one, which writes the state
                if thread.name.startswith("sardonyx-"):
                    thread.join(LONGEST_WRITE)
            if asked.state.exists():
                say(watch, f"the same command goes on from {os.path.relpath(asked.state)}")
        raise


def _announced(plan: dict[str, Any]) -> str:
    """The memory and the precision, before any of it is taken."""
    what = "a stream" if plan["bytes"] is None else amount(plan["bytes"])
    precise = "every count exact" if plan["exact"] else "counts sampled if that is full"
    return (
        f"{what} in {plan['files']:,} file{'s' if plan['files'] != 1 else ''}; memory at most "
        f"{amount(plan['memory_bytes'])}, "
        f"{precise}"
    )


def tell(people: Console, answer: Estimate) -> None:
    designs, tables = answer["designs"], answer["tables"]
    people.print(_cuttings(answer["cuttings"]))
    if "compressed_bytes" in answer["cuttings"][0]:
        people.print("\nif each chunk is compressed by itself", style="dim")
        people.print(_compressed(answer["cuttings"]))
    people.print("\ndistinct contents by how often they come", style="dim")
    people.print(_references(answer["cuttings"]))
    if designs:
        people.print(
            "\nto store it: recam by its model, conventional by its costs, energies assumed",
            style="dim",
        )
        people.print(_designs(designs))
    if tables:
        people.print("\nthe table in other systems, by their makers' formulas", style="dim")
        people.print(_rivals(tables))
    if answer["hole_bytes"]:
        people.print(f"{answer['hole_bytes']:,} bytes of holes are skipped: no store keeps them")
    if answer.plot is not None:
        people.print(f"plots: {answer.plot}", soft_wrap=True)


def _table(of: str, *figures: str) -> Table:
    return Table(of, *numbers(*figures), box=None, header_style="dim")


def _cuttings(cuttings: list[dict[str, Any]]) -> RenderableType:
    heads = ("count", "distinct", "duplicates", "zero", "bytes kept", "ratio")
    table = _table("chunks", *heads)
    for one in cuttings:
        about = "~" if one["followed_one_in"] > 1 else ""
        share = 1 - one["unique_chunks"] / one["chunks"] if one["chunks"] else 0.0
        table.add_row(
            named(one),
            f"{one['chunks']:,}",
            f"{about}{one['unique_chunks']:,}",
            f"{about}{share:.1%}",
            f"{one['zero_chunks']:,}",
            f"{about}{one['unique_bytes']:,}",
            f"{about}{_times(one['ratio'])}",
        )
    return table


def _compressed(cuttings: list[dict[str, Any]]) -> RenderableType:
    """What compression leaves of all chunks, and of the distinct ones."""
    table = _table("chunks", "bytes kept by it alone", "by both", "ratio of both")
    for one in cuttings:
        about = "~" if one["followed_one_in"] > 1 else ""
        table.add_row(
            named(one),
            f"{about}{one['compressed_bytes']:,}",
            f"{about}{one['unique_compressed_bytes']:,}",
            f"{about}{_times(one['ratio_compressed'])}",
        )
    return table


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def _references(cuttings: list[dict[str, Any]]) -> RenderableType:
    """Distinct contents by how often they come: one column for each cutting."""
    table = _table("times", *map(named, cuttings))
    longest = max((one["references"] for one in cuttings), key=len)
    for number, row in enumerate(longest):
        counts = (one["references"][number : number + 1] for one in cuttings)
        table.add_row(
            times_of(row),
            *(f"{count[0]['contents']:,}" if count else "-" for count in counts),
        )
    return table


def _designs(costs: list[dict[str, Any]]) -> RenderableType:
    """The cost of storing it with each design."""
    table = _table("design", "block", "room", "time", "energy")
    for one in costs:
        table.add_row(
            one["design"],
            short(one["block_bytes"]),
            short(one["capacity_bytes"]),
            f"{one['seconds']:,.4g} s",
            f"{one['energy_nj'] / 1e9:,.4g} J",
        )
    return table


def _rivals(tables: list[dict[str, Any]]) -> RenderableType:
    """Memory of the tables; how a write reads them and the formula's source stand below."""
    names = list(dict.fromkeys(row["name"] for row in tables))
    table = _table("chunks", *(f"{name} MB" for name in names))
    for cutting in dict.fromkeys(row["cutting"] for row in tables):
        memory = {row["name"]: row["memory_bytes"] for row in tables if row["cutting"] == cutting}
        cells = (f"{memory[name] / 1e6:,.1f}" if name in memory else "-" for name in names)
        table.add_row(cutting, *cells)
    said = {row["name"]: row for row in tables}
    notes = [
        Text(f"{name}: reads a write: {row['reads_a_write']} ({row['source']})", style="dim")
        for name, row in said.items()
    ]
    return Group(table, *notes)


def short(size: int) -> str:
    """``4K``, ``16M``, ``1G``; other sizes in bytes."""
    for letter in ("G", "M", "K"):
        if size and size % SUFFIXES[letter] == 0:
            return f"{size // SUFFIXES[letter]:,}{letter}"
    return f"{size:,}"


def named(cutting: dict[str, Any]) -> str:
    """What a way of cutting is called: ``4K``, ``~8K by content``."""
    size = cutting["chunk_bytes"]
    if size is None:
        return "as recorded"
    return short(size) if cutting["kind"] == "fixed" else f"~{short(size)} by content"
