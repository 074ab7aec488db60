"""``sardonyx check-host``: whether a simulator and the memory behind it agree.

Left out: everything that computes (``sardonyx.coupling``).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    CHECK_FAILED,
    NOTHING_SAID,
    check_json_target,
    for_people,
    write_json,
)
from sardonyx.cli.options import JsonTo
from sardonyx.draw.grid import grid, numbers

if TYPE_CHECKING:
    from sardonyx.coupling import Verdict


def check_host(
    log: Annotated[
        str, typer.Argument(help="The log that the library wrote for the key host.log.")
    ],
    bound: Annotated[
        float,
        typer.Option(
            min=0, max=100, help="Largest difference of bandwidth and latency at a load, percent."
        ),
    ] = 5.0,
    clocks: Annotated[
        float, typer.Option(min=0, max=100, help="Largest difference of the clocks, percent.")
    ] = 0.1,
    path_ns: Annotated[
        float,
        typer.Option(
            min=0,
            max=1e9,
            help="The host's own path to the controller and back, in ns; subtracted from "
            "its latencies.",
        ),
    ] = 0.0,
    json_to: JsonTo = None,
) -> None:
    """Compare what controller, port and application measured; fail where they disagree.

    [bold]Example[/bold]: sardonyx check-host coupling.csv
    """
    from sardonyx.coupling import judge

    check_json_target(json_to, [log])
    verdict = judge(log, bound / 100, clocks / 100, path_ns)
    people = for_people(json_to)
    if verdict.curve:
        people.print(_table(verdict))
    for view, (bandwidth, latency, speed) in verdict.errors.items():
        people.print(
            f"{view}: bandwidth within {bandwidth:.2%} of the controller's, latency within "
            f"{latency:.2%}, clocks within {abs(speed - 1):.4%}"
        )
    counts = ", ".join(f"{count:,} {view}" for view, count in verdict.requests.items())
    for fault in verdict.faults:
        times = f", {fault.count:,} times, first" if fault.count > 1 else ""
        place = f"{log}:{fault.line}" + (f", tag {fault.tag}" if fault.says[:2] != "it" else "")
        line = f"{fault.view}: {fault.kind}{times} at {place}: {fault.says}"
        people.print(Text(line, style="red"), soft_wrap=True)
    document = {"sardonyx": _core.VERSION, "verdict": _word(verdict), **asdict(verdict)}
    write_json(json_to, {**document, "bound": bound, "clocks": clocks, "path_ns": path_ns})
    if verdict.cut_off:
        people.print("the log was cut off: the host has not ended, or never flushed it")
    if verdict.faults:
        people.print(f"refused: {len(verdict.faults)} kinds of disagreement; requests: {counts}")
        raise typer.Exit(CHECK_FAILED)
    if verdict.unsaid:
        people.print(f"nothing can be said: {verdict.unsaid}; requests: {counts}", soft_wrap=True)
        raise typer.Exit(NOTHING_SAID)
    people.print(f"they agree; requests: {counts}")


def _word(verdict: Verdict) -> str:
    if verdict.faults:
        return "refused"
    return "nothing can be said" if verdict.unsaid else "agree"


def _table(verdict: Verdict) -> Table:
    heads = [head for load in verdict.curve[0] for head in (f"{load.view}, GB/s", "ns")]
    table = grid(*numbers(*heads), header_style="dim")
    for point in verdict.curve:
        table.add_row(
            *(cell for at in point for cell in (f"{at.gb_per_s:.3f}", f"{at.latency_ns:,.1f}"))
        )
    return table
