"""``sardonyx crash-test lint``: what a recording shows without any run, for people.

What a library does while it sets a pool up is one line. Left out: everything that computes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import check_json_target, err, for_people, note, write_json
from sardonyx.cli.crash_test.options import NO_SOURCE, POOL, RECORDING
from sardonyx.cli.options import JsonTo, Machine
from sardonyx.cli.progress import watched
from sardonyx.draw.grid import grid, numbers
from sardonyx.runs import crash_test


def lint(
    recording: Annotated[str, RECORDING],
    pool: Annotated[list[Path], POOL],
    everything: Annotated[
        bool, typer.Option("--all", help="Also what a library did to set the pool up.")
    ] = False,
    machine: Machine = "sca",
    no_source: Annotated[bool, NO_SOURCE] = False,
    json_to: JsonTo = None,
) -> None:
    """Without any run, list what is never flushed or flushed for nothing.

    [bold]Example[/bold]: sardonyx crash-test lint app.parquet --pool data.pool
    """
    check_json_target(json_to, [recording])
    pools = [str(each) for each in pool]
    found = watched(
        err,
        Path(recording).name,
        lambda p: crash_test.lint(recording, pools, not no_source, machine, p),
    )
    people = for_people(json_to)
    for line in found["notes"]:
        note(line)
    people.print(
        f"{found['stores']:,} stores, {found['flushes']:,} flushes and {found['fences']:,} fences "
        f"of {found['pool']}"
    )
    setup = [] if everything else [each for each in found["findings"] if each["setup"]]
    shown = [each for each in found["findings"] if each not in setup]
    if setup:
        counts: Counter[str] = Counter()
        for each in setup:
            counts[each["meaning"]] += each["count"]
        listed = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
        people.print(
            "left out, of libraries that set the pool up before the program's own first store: "
            f"{listed}; --all shows them",
            soft_wrap=True,
        )
    if not shown:
        people.print(Text("nothing to find fault with", style="green"))
    else:
        table = grid("what", *numbers("times"), "where", "in", header_style="bold")
        for finding in shown:
            through = f" (in {finding['through']})" if finding["through"] else ""
            table.add_row(
                finding["meaning"],
                f"{finding['count']:,}",
                finding["place"]
                + (f" ({finding['pool']})" if finding["pool"] else "")
                + (f", {finding['used']}" if finding["used"] else ""),
                ((finding["frame"] or {}).get("function") or "") + through,
            )
        people.print(table)
    for name, cost in found.get("cost_ns", {}).items():
        if found["idle"][name]:
            people.print(
                f"{found['idle'][name]:,} {name} that do nothing cost {cost / 1e3:,.1f} of "
                f"{found['took_ns'] / 1e3:,.1f} us on {machine} without encryption"
            )
    if not found["has_places"]:
        note("the recording has no places in the program; record with --pc to see lines of code")
    write_json(json_to, {"sardonyx": _core.VERSION} | found)
