"""``sardonyx crash-test search``, and what every search of a recording is.

The other searches (``threads``, ``recovery``, ``designs``) try more of the same recording
afterwards. Left out: everything that computes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sardonyx import _core
from sardonyx.cli.common import PATH, err, for_people
from sardonyx.cli.crash_test import options
from sardonyx.cli.crash_test.options import Oracle, Searching, Tested
from sardonyx.cli.crash_test.show import show
from sardonyx.cli.help import rare
from sardonyx.cli.options import Tear
from sardonyx.cli.progress import watched
from sardonyx.files import write_text
from sardonyx.questions import CrashTestQuestion
from sardonyx.report.checks import accept
from sardonyx.report.crash_test import render
from sardonyx.runs.crash_test import CREATIONS, TEARS, crash_test, given, words
from sardonyx.runs.sources import check_known

#: Options that few callers of a search of a recording need.
RARE = (*options.RARE, "tear", "start", "creation", "assume_persisted", "no_source")


@dataclass(frozen=True, kw_only=True)
class Searched(Tested, Searching):
    """A search of a recording: where it begins, and what an image is."""

    tear: Tear = "lines"
    start: Annotated[
        str | None,
        typer.Option(
            metavar="MARK|ROW",
            help="First cut; by default where the recovery first copes with what was fenced.",
        ),
    ] = None
    creation: Annotated[
        str,
        typer.Option(
            help="While the pool is made the recovery may refuse it: by the exit status that the "
            "untouched pool gets (status), by any (orderly); or such cuts are not tried (skip)."
        ),
    ] = "status"
    html: Annotated[
        Path | None, typer.Option(help="Write a page with a timeline of each cause.", **PATH)
    ] = None

    def search(self) -> CrashTestQuestion:
        """The question of the search."""
        check_known("tear", self.tear, TEARS, "--tear: ")
        check_known("creation", self.creation, CREATIONS, "--creation: ")
        return CrashTestQuestion(
            tear=self.tear == "words",
            start=self.start,
            creation=self.creation,
            **self.effort(),
            **self.question(),
        )


@dataclass(frozen=True, kw_only=True)
class Search(Oracle, Searched):
    """The options of ``sardonyx crash-test search``."""


@rare(*RARE, "thread_order")
def search(asked: Search) -> None:
    """Cut a recorded program at every fence, and run its own recovery on what could be left.

    What fails is brought down to the stores that matter, and those to lines of code.

    [bold]Examples[/bold]

    sardonyx crash-test search app.parquet --pool data.pool --recover 'app-check {pool}'

    sardonyx crash-test search app.parquet --pool data.pool --recover 'app-check {pool}' --html
    app.html

    sardonyx crash-test search app.parquet --pool data.pool --recover 'app {pool} print'
    --operations ops --apply 'app {pool} run {operations}'

    sardonyx crash-test search app.parquet --pool data.pool --pool log.pool --recover
    'app-check {pool} {pool2}'
    """
    tried(asked)


def tried(
    asked: Searched,
    more: Callable[[CrashTestQuestion, dict[str, Any]], None] | None = None,
    tell: Callable[[Console, dict[str, Any]], None] | None = None,
) -> None:
    """Search, add what ``more`` finds, and show it all; ``tell`` shows what ``more`` added."""
    question = asked.search()
    baseline = asked.check_targets([asked.recording])
    found = ask(question)
    if more is not None and found["start"] is not None and found["ended_by"] is None:
        more(question.replace(platform=found["platform"]), found)
    for cause in found["causes"]:
        again = asked.replay(cause["image"], found["platform"], cause["assumed"])
        again += ["--thread-order", cause["order"]] if "order" in cause else []
        cause["replay"] = shlex.join(again)
        if asked.keep is not None and "order" not in cause:
            kept = asked.keep / f"{cause['kept']}-fails.pool"
            cause["gdb"] = gdb(asked.recover, kept, [pool["name"] for pool in found["pools"]])
    accept(found, baseline)
    people = for_people(asked.json_to)
    show(people, found)
    if tell is not None and found["start"] is not None and found["ended_by"] is None:
        tell(people, found)
    if asked.html is not None:
        write_text(asked.html, render(found, _core.VERSION))
    asked.end(found)


def ask(question: CrashTestQuestion) -> dict[str, Any]:
    """What the native module finds."""
    return options.searched(Path(question.recording).name, lambda p: crash_test(question, p))


def tested(question: CrashTestQuestion) -> dict[str, Any]:
    """What one search of several finds; a signal ends them all."""
    label = Path(question.recording).name
    return watched(err, label, lambda p: crash_test(question, p), "recoveries")


def gdb(recover: str, image: Path, names: Sequence[str]) -> str:
    """A command that runs the recovery under gdb on a copy of an image that was kept.

    The image is a file, or a folder with a file of each of the names if they are several.
    """
    copy = image.with_suffix(".gdb")
    several = len(names) > 1
    pools = [str(copy / name) for name in names] if several else [str(copy)]
    folder = copy if several else copy.parent
    command = given(recover, pools, folder, "/dev/null")
    if words(recover)[0] == "/bin/sh":
        command = shlex.join(["/bin/sh", "-c", command])
    made = ["cp", *(["-r"] if several else []), str(image), str(copy)]
    return f"{shlex.join(made)} && gdb --args {command}"
