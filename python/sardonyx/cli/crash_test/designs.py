"""``sardonyx crash-test designs``: what a cut leaves of the pool below designs of the simulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sardonyx import _core
from sardonyx.cli.common import err
from sardonyx.cli.crash_test.search import RARE, Searched, tried
from sardonyx.cli.help import rare
from sardonyx.cli.options import Designs as Named
from sardonyx.cli.options import Machine
from sardonyx.cli.progress import watched
from sardonyx.draw.grid import grid, numbers
from sardonyx.questions import CrashTestQuestion
from sardonyx.runs.jobs import check_designs
from sardonyx.runs.sources import check_known, parts

#: The number of cuts below each design; the recovery is run after one in this many.
CUTS = 200
EVERY = 4
PLATFORMS = ("adr", "eadr")


@dataclass(frozen=True, kw_only=True)
class Designs(Searched):
    """The options of ``sardonyx crash-test designs``."""

    designs: Named
    platform: Annotated[
        str, typer.Option(help="What survives a cut: adr, or eadr with the caches.")
    ] = "adr"
    machine: Machine = "sca"


@rare(*RARE, "machine")
def designs(asked: Designs) -> None:
    """Search, and say too what a cut leaves of the pool below each design.

    [bold]Example[/bold]: sardonyx crash-test designs app.parquet --pool data.pool --recover
    'app-check {pool}' --designs sca,esd
    """
    names = check_designs(parts(asked.designs))
    check_known("platform", asked.platform, PLATFORMS, "--platform: ")
    machine = asked.machine

    def more(question: CrashTestQuestion, found: dict[str, Any]) -> None:
        found["below"] = below(question, found, machine, names)

    tried(asked, more, partial(_show, machine))


def below(
    question: CrashTestQuestion, found: dict[str, Any], machine: str, designs: Sequence[str]
) -> list[dict[str, Any]]:
    """What of the pool can be read after a cut below each design, and what the recovery does."""
    answer = watched(
        err,
        Path(question.recording).name,
        lambda p: _core.crash_designs(
            question.json(),
            (found["start"]["row"], found["time_limit_s"]),
            machine,
            list(designs),
            (CUTS, EVERY),
            p,
        ),
    )
    told: dict[str, list[dict[str, Any]]] = json.loads(answer)
    return told["designs"]


def _show(machine: str, people: Console, found: dict[str, Any]) -> None:
    designs = found["below"]
    first = designs[0]
    tried = first["recovered"][0][0]
    people.print(
        f"\nThe pool below a design of {machine}, the program knowing nothing of counters, and "
        f"with its {first['marks']:,} commit stores marked: of {first['plain']['cuts']} cuts "
        f"those with unreadable lines, how many of {first['plain']['lines']:,} lines at most, and "
        f"after how many of {tried} cuts the recovery copes"
    )
    heads = ("cuts", "lines", "copes", "marked: cuts", "lines", "copes", "writes", "time")
    table = grid("design", *numbers(*heads), header_style="bold")
    for one in designs:
        cells = []
        for run, (_, coped) in zip((one["plain"], one["marked"]), one["recovered"], strict=True):
            cells += [run["cuts_with_unreadable"], run["most_unreadable"], coped]
        for key in ("writes", "nanoseconds"):
            plain = one["plain"][key]
            cells.append(f"{one['marked'][key] / plain - 1:+.1%}" if plain else "")
        table.add_row(one["design"], *map(str, cells))
    people.print(table)
