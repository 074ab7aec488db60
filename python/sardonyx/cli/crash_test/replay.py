"""``sardonyx crash-test replay``: the recovery on one image, as a report names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from sardonyx.cli.common import for_people
from sardonyx.cli.crash_test.options import Oracle, end
from sardonyx.cli.crash_test.search import ask
from sardonyx.cli.help import rare
from sardonyx.questions import CrashTestQuestion


@dataclass(frozen=True, kw_only=True)
class Replay(Oracle):
    """The options of ``sardonyx crash-test replay``."""

    image: Annotated[
        str, typer.Argument(metavar="IMAGE", help="The image, as a report names it: 2+1v1.")
    ]


@rare("memory_limit", "time_limit", "no_source")
def replay(asked: Replay) -> None:
    """Run the recovery on one image only.

    [bold]Example[/bold]: sardonyx crash-test replay app.parquet 2+1v1 --pool data.pool --recover
    'app-check {pool}'
    """
    found = ask(CrashTestQuestion(replay=asked.image, **asked.question()))
    _show(for_people(asked.json_to), found)
    end(found, asked.json_to)


def _show(people: Console, found: dict[str, Any]) -> None:
    people.print(
        Text.assemble(
            ("fails" if found["fails"] else "passes", "red" if found["fails"] else "green"),
            f": {found['ended']} at cut {found['cut']['number']} (row {found['cut']['row']:,})",
        ),
        soft_wrap=True,
    )
    if found["said"]:
        people.print(found["said"], soft_wrap=True)
