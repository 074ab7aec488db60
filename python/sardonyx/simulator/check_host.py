"""``check-host``: whether a simulator and the memory behind it agree.

Left out: everything that computes (``sardonyx.coupling``).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx._core import VERSION
from sardonyx.answer import CHECK_FAILED, NOTHING_SAID, Answer
from sardonyx.api.asked import CheckHost
from sardonyx.draw.grid import grid, numbers
from sardonyx.runs.scheduler import Watch

if TYPE_CHECKING:
    from sardonyx.coupling import Verdict


def answer(asked: CheckHost, _: Watch | None) -> Answer:
    """The verdict on a log."""
    from sardonyx.coupling import judge

    verdict = judge(asked.log, asked.bound / 100, asked.clocks / 100, asked.path_ns)
    document = {"sardonyx": VERSION, "verdict": _word(verdict), **asdict(verdict)}
    document |= {"bound": asked.bound, "clocks": asked.clocks, "path_ns": asked.path_ns}
    status = CHECK_FAILED if verdict.faults else NOTHING_SAID if verdict.unsaid else 0
    return Answer("check-host", document, status, shown=(verdict, asked.log))


def tell(people: Console, answer: Answer) -> None:
    """The points, how far the views are apart, each fault, the verdict."""
    verdict, log = answer.shown
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
    if verdict.cut_off:
        people.print("the log was cut off: the host has not ended, or never flushed it")
    if verdict.faults:
        people.print(f"refused: {len(verdict.faults)} kinds of disagreement; requests: {counts}")
    elif verdict.unsaid:
        people.print(f"nothing can be said: {verdict.unsaid}; requests: {counts}", soft_wrap=True)
    else:
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
