"""``sardonyx crash run``, ``once`` and ``stages``: a plan of runs, or one run, of each design."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sardonyx import _core
from sardonyx.cli.common import (
    CHECK_FAILED,
    MOST,
    check_json_target,
    err,
    for_people,
    seconds_in,
    write_json,
)
from sardonyx.cli.crash.options import SHARING, SHARINGS, Cut, Tried, one_run
from sardonyx.cli.crash.replays import FOLDER, Replays, check_folder
from sardonyx.cli.crash.show import show, show_stages
from sardonyx.cli.help import rare
from sardonyx.cli.progress import Watcher
from sardonyx.questions import CrashQuestion, TrialQuestion
from sardonyx.runs.crashes import explore, memory
from sardonyx.runs.jobs import parse_settings

#: From this many bytes on, memory is mentioned.
NOTABLE = 2**30
#: The prefix of a position in ``--cuts``.
AT = "at:"


@dataclass(frozen=True, kw_only=True)
class Run(Cut):
    """The options of ``sardonyx crash run``."""

    cuts: Annotated[
        str,
        typer.Option(
            help="How many cuts of a run: all, or a number of positions drawn from the seed."
        ),
    ] = "all"
    thorough: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Go on with further seeds for this time per design: 90s, 10m or 2h.",
        ),
    ] = None


@rare(
    "tear",
    "cuts",
    "out",
    "transactions",
    "transaction_size",
    "footprint",
    "no_log",
    "seed",
    "recovery_cuts",
    "full",
    "jobs",
)
def run(asked: Run) -> None:
    """Try each design by a plan of runs, all cut at every position.

    Runs with several seeds, tiny caches and queues, one core and two, and who shares lines of
    counters. The second table says what the verdict rests on.

    [bold]Examples[/bold]

    sardonyx crash run btree --designs sca,fca,no-atomicity

    sardonyx crash run all --designs esd+sca --platform eadr --thorough 5m

    sardonyx crash run queue --designs sca --cores 4 --mutant no-fence-after-log

    sardonyx crash run btree --designs sca --set encryption.global_counter=paper --json crash.json

    sardonyx crash run btree --designs sca,sca@mac,sca@merkle --attack
    """
    thorough = asked.thorough
    plan = [
        TrialQuestion(
            program=program,
            design=design,
            seed=asked.seed,
            cores=asked.cores,
            transactions=asked.transactions,
            item_bytes=asked.item(),
            footprint=asked.region(),
            thorough_seconds=None if thorough is None else seconds_in("--thorough", thorough),
            software_log=asked.keeps_log(),
            cuts=_count(asked.cuts),
            **asked.below(),
            **asked.cut_how(),
        )
        for program, design in asked.pairs()
    ]
    answer(plan, partial(explore, plan), asked.json_to, partial(show, again=_replays(asked).line))


@dataclass(frozen=True, kw_only=True)
class Once(Cut):
    """The options of ``sardonyx crash once``."""

    cuts: Annotated[
        str,
        typer.Option(
            help="Which cuts: all, a number of positions drawn from the seed, or at:N for one."
        ),
    ] = "all"
    sharing: Annotated[str, typer.Option(help=SHARING)] = SHARINGS[0]


@rare("tear", "out", "no_log", "seed", "recovery_cuts", "full", "jobs")
def once(asked: Once) -> None:
    """Make one run of each design, with the settings given, and cut it.

    [bold]Examples[/bold]

    sardonyx crash once queue --designs sca,no-atomicity

    sardonyx crash once btree --designs sca --transactions 8 --cuts at:40
    """
    how = asked.cut_how() | {"software_log": asked.keeps_log()}
    if asked.cuts.startswith(AT):
        at = asked.cuts.removeprefix(AT)
        if not (at.isascii() and at.isdigit() and int(at) <= MOST):
            raise _core.SardonyxError(f"--cuts {asked.cuts}: give a position, as in {AT}812")
        how["cut"] = int(at)
    else:
        how["cuts"] = _count(asked.cuts)
    runs = one_run(asked, asked.sharing, **how)
    answer(runs, partial(explore, runs), asked.json_to, partial(show, again=_replays(asked).line))


@dataclass(frozen=True, kw_only=True)
class Stages(Tried):
    """The options of ``sardonyx crash stages``."""

    sharing: Annotated[str, typer.Option(help=SHARING)] = SHARINGS[0]


def stages(asked: Stages) -> None:
    """Count one run's cuts by the stage of the transaction (SCA, Table 1).

    [bold]Example[/bold]: sardonyx crash stages array-swap --designs sca --transactions 20
    """
    runs = one_run(asked, asked.sharing)
    answer(runs, partial(explore, runs, stages=True), asked.json_to, show_stages)


def answer(
    asked: Sequence[CrashQuestion] | Sequence[TrialQuestion],
    ask: Callable[[Watcher], list[dict[str, Any]]],
    json_to: str | None,
    tell: Callable[..., None],
) -> None:
    """Ask, show what came of it, and end with the status that it has earned."""
    needed = max(map(memory, asked))
    check_json_target(json_to)
    if needed >= NOTABLE:
        err.print(
            f"a run needs about {needed / 2**30:.1f} GiB of memory, and some minutes for each "
            "GiB; a smaller --footprint or fewer --transactions need less"
        )
    with Watcher(err, unit="") as watch:
        runs = ask(watch)
    tell(for_people(json_to), runs)
    write_json(json_to, {"sardonyx": _core.VERSION, "runs": runs})
    if any(run.get("fails") for run in runs):
        raise typer.Exit(CHECK_FAILED)


def _replays(asked: Cut) -> Replays:
    json_to, prefix, folder = asked.json_to, "", asked.out
    if folder is None:
        beside = None if json_to in (None, "-") else Path(json_to)
        folder = FOLDER if beside is None else beside.parent
        prefix = "" if beside is None else f"{beside.stem}-"
    check_folder(folder)
    settings = parse_settings(asked.settings or ())
    return Replays(folder, prefix, asked.machine, settings, not asked.no_log)


def _count(cuts: str) -> int | None:
    if cuts == "all":
        return None
    if cuts.isascii() and cuts.isdigit() and 0 < int(cuts) <= MOST:
        return int(cuts)
    raise _core.SardonyxError(f'--cuts {cuts}: give "all" or a number of cuts')
