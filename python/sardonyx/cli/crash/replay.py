"""``sardonyx crash replay``: the cut of a replay file, made again."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sardonyx.cli.common import PATH
from sardonyx.cli.crash.options import Jobs
from sardonyx.cli.crash.replays import read
from sardonyx.cli.crash.run import answer
from sardonyx.cli.crash.show import show
from sardonyx.cli.options import JsonTo
from sardonyx.runs.crashes import explore


def replay(
    file: Annotated[Path, typer.Argument(help="A replay file that a violation printed.", **PATH)],
    jobs: Jobs = 0,
    json_to: JsonTo = None,
) -> None:
    """Make the cut of a replay file again.

    [bold]Example[/bold]: sardonyx crash replay results/crash/btree-no-atomicity-lost.json
    """
    runs = [read(file, jobs)]
    line = shlex.join(["sardonyx", "crash", "replay", str(file)])
    answer(runs, partial(explore, runs), json_to, partial(show, again=lambda *_: line))
