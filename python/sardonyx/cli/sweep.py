"""``sardonyx sweep``: all points of a file, on this machine or on a cluster."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sardonyx.cli.common import (
    CHECK_FAILED,
    PATH,
    check_json_target,
    err,
    for_people,
    note,
    output_directory,
    path_given,
    write_json,
)
from sardonyx.cli.forms import Options
from sardonyx.cli.options import JsonTo, Workers
from sardonyx.cli.progress import Lines
from sardonyx.sweeps import reading
from sardonyx.sweeps.estimate import Estimate, estimate
from sardonyx.sweeps.folder import RESULTS, Folder
from sardonyx.sweeps.hq import run as run_on_hq
from sardonyx.sweeps.plan import Plan
from sardonyx.sweeps.run import Outcome, State, Sweep, described, read_shard

#: This many failed points are listed; ``--json`` has all of them.
FEW = 20


@dataclass(frozen=True, kw_only=True)
class SweepOptions(Options):
    """The options of ``sardonyx sweep``."""

    file: Annotated[Path, typer.Argument(help="The sweep's TOML file.", **PATH)]
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Directory of the results; default: results/FILE's name.", **PATH
        ),
    ] = None
    workers: Workers = None
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="i/N", help="Only the i-th of N shares of the points, for job arrays."
        ),
    ] = None
    only_plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Say how many points, how many are done, and what the rest would take."
        ),
    ] = False
    hq: Annotated[
        Path | None,
        typer.Option(
            metavar="SERVER_DIR",
            help="Run on the workers of this HyperQueue server.",
            parser=path_given,
        ),
    ] = None
    json_to: JsonTo = None


def sweep(asked: SweepOptions) -> None:
    """Run every point of a sweep; DIR/results.parquet has a row a point, in the file's order.

    The same command goes on where a sweep was interrupted. A folder has one sweep; several nodes
    divide it by --shard.

    [bold]Examples[/bold]

    sardonyx sweep efit.toml --out efit

    sardonyx sweep efit.toml --plan

    sardonyx sweep efit.toml --out efit --hq ~/.hq-server

    sardonyx sweep efit.toml --out efit --shard 3/64
    """
    file, json_to, hq = asked.file, asked.json_to, None
    target = asked.directory or Path("results") / file.stem
    people, folder = for_people(json_to), Folder(target)
    workers = share = None
    if asked.only_plan:
        form, workers = "with --plan", asked.workers
    elif asked.hq is not None:
        form, hq = "with --hq", asked.hq
    else:
        form, workers = "without --plan or --hq", asked.workers
        share = None if asked.shard is None else read_shard(asked.shard)
    asked.refuse_idle(form)
    plan = reading.read(file, folder.before)
    check_json_target(json_to, [str(file)])
    folder.check(plan)
    plan.check()
    if asked.only_plan:
        with err.status("trying a few points") if err.is_terminal else nullcontext():
            expected = estimate(plan, folder, workers)
        tell_plan(people, expected)
        write_json(json_to, expected.to_document())
        return
    with output_directory(target), View(err, plan) as view:
        if hq is not None:
            outcome = run_on_hq(plan, folder, hq, view)
        else:
            outcome = Sweep(plan, folder, workers, share, view).run()
    tell(people, outcome, target)
    write_json(json_to, outcome.to_document())
    if outcome.failures:
        raise typer.Exit(CHECK_FAILED)


def tell_plan(people: Console, expected: Estimate) -> None:
    """What a sweep would take."""
    people.print(
        f"{expected.points:,} points: {expected.done:,} done, {expected.left:,} to run"
        + _same(expected.same),
        soft_wrap=True,
    )
    for error in dict.fromkeys(expected.errors):
        people.print(Text(f"a point that was tried failed: {error}", style="red"), soft_wrap=True)
    if expected.seconds is None or expected.total_seconds is None or expected.memory is None:
        return
    people.print(
        f"a point takes {duration(expected.seconds)} and its worker {size(expected.memory)} "
        f"({expected.tried} tried)",
        soft_wrap=True,
    )
    people.print(
        f"all of them: about {duration(expected.total_seconds)} on {expected.workers} workers, "
        f"{size(expected.memory * expected.workers)}",
        soft_wrap=True,
    )


def tell(people: Console, outcome: Outcome, target: Path) -> None:
    """What a sweep has come to."""
    for path, why in outcome.damaged.items():
        note(f"{path}: cannot be read and counts as missing; remove it ({why})")
    found = f", {outcome.found:,} were done before" if outcome.found else ""
    people.print(
        f"{outcome.points:,} points: {outcome.finished:,} run in {outcome.seconds:,.1f} s{found}"
        + _same(outcome.same),
        soft_wrap=True,
    )
    for failure in outcome.failures[:FEW]:
        people.print(Text(f"failed: {described(failure['settings'])}", style="red"), soft_wrap=True)
        people.print(f"  {failure['error']}", soft_wrap=True)
        people.print(f"  {failure['command']}", soft_wrap=True)
    if len(outcome.failures) > FEW:
        people.print(f"and {len(outcome.failures) - FEW:,} more; --json has all of them")
    if outcome.results is None:
        people.print(
            f"{target / RESULTS} follows when the other points are done, by this command again",
            soft_wrap=True,
        )
    else:
        people.print(f"results: {outcome.results}", soft_wrap=True)


def _same(points: int) -> str:
    """Points that need no run."""
    return f", {points:,} with nothing of their design changed" if points else ""


class View:
    """How far a sweep is: points, rate, time left, failures, the best so far.

    A terminal has it as a table that changes, a log as a line now and then.
    """

    def __init__(self, console: Console, plan: Plan) -> None:
        self._plan, self._lines = plan, Lines(console)
        self._live = Live(console=console, transient=True, refresh_per_second=4)
        self._shown = console.is_terminal

    def __enter__(self) -> View:
        if self._shown:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._live.stop()

    def __call__(self, state: State) -> None:
        if self._shown:
            self._live.update(self.table(state))
        else:
            self._lines.tell(lambda: self.line(state))

    def line(self, state: State) -> str:
        """How far it is now, in one line."""
        words = [f"{state.done:,} of {state.total:,} points"]
        words += [f"{state.rate:,.1f} a second"]
        words += [] if state.left is None else [f"{duration(state.left)} left"]
        words += [f"{state.failed:,} failed"] if state.failed else []
        words += [f"{state.died:,} workers lost"] if state.died else []
        return ", ".join(words)

    def table(self, state: State) -> Table:
        """The view as it is now."""
        done = state.done
        table = Table.grid(padding=(0, 2))
        table.add_row("points", f"{done:,} of {state.total:,}", _bar(done, state.total))
        left = "" if state.left is None else f"{duration(state.left)} left"
        table.add_row("rate", f"{state.rate:,.1f} a second", left)
        failed = Text(f"{state.failed:,}", style="red" if state.failed else "")
        lost = f"{state.died:,} workers lost, their points run again" if state.died else ""
        table.add_row("failed", failed, lost)
        if state.best is not None and (point := self._plan.at(state.best[1])) is not None:
            figure = f"{state.best[0]:,.6g}"
            table.add_row(f"best so far, {state.goal}", figure, described(self._plan.row(point)))
        return table


def _bar(done: int, total: int) -> Any:
    return ProgressBar(total=max(total, 1), completed=done, width=30)


def size(number: float) -> str:
    """Bytes as people say them."""
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"


def duration(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
