"""``sardonyx explore``: what to build with so much memory on chip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column

from sardonyx import _core, api
from sardonyx import report as pages
from sardonyx.cli import complete
from sardonyx.cli.common import (
    CHECK_FAILED,
    PATH,
    check_json_target,
    err,
    for_people,
    output_directory,
    write_json,
)
from sardonyx.cli.forms import Options
from sardonyx.cli.options import (
    FOOTPRINT,
    Designs,
    Footprint,
    JsonTo,
    Limit,
    Machine,
    Set,
    Transactions,
    TransactionSize,
    Workers,
    sized,
)
from sardonyx.cli.sweep import View
from sardonyx.draw.grid import grid, numbers
from sardonyx.questions import ProgramSource
from sardonyx.runs import mixes
from sardonyx.runs.jobs import Settings, check, check_designs, parse_settings
from sardonyx.runs.metrics import NAMES
from sardonyx.runs.sources import PROGRAM, check_known, named, parts, program_names
from sardonyx.sizes import parse_size, size_text
from sardonyx.studies.explore import Exploration, Explored, Tried, rows
from sardonyx.sweeps.plan import check_goal
from sardonyx.sweeps.table import Goal, Swept

GOALS = ("max ipc", "min energy_nj")
#: Promises of designs after a power cut, the strongest first.
PROMISES = ("every line", "after program recovery", "nothing")


@dataclass(frozen=True, kw_only=True)
class ExploreOptions(Options):
    """The options of ``sardonyx explore``."""

    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE|PROGRAM..",
            help="Trace files, recordings, synth:NAME or programs, as compare takes them.",
            autocompletion=complete.traces,
        ),
    ]
    sram: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory on chip for caches and tables: 512K, 1M.")
    ] = "1M"
    designs: Designs = "sca,baseline,dedup-sha1,dewrite,esd"
    goal: Annotated[
        list[str] | None,
        typer.Option(help='What to look for, as in "max ipc"; one or more. Default: ipc, energy.'),
    ] = None
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIGURE=N", help="Leave out what has more than so much of a figure; repeatable."
        ),
    ] = None
    survives: Annotated[
        str | None,
        typer.Option(
            metavar="PROMISE",
            help="Only designs that promise at least this after a power cut: "
            "'every line' or 'after program recovery'.",
        ),
    ] = None
    machine: Machine = "esd"
    settings: Set = None
    limit: Limit = None
    transactions: Transactions = PROGRAM.transactions
    transaction_size: TransactionSize = str(PROGRAM.item_bytes)
    footprint: Footprint = FOOTPRINT
    workers: Workers = None
    directory: Annotated[
        Path, typer.Option("--out", "-o", help="Directory of runs and report.", **PATH)
    ] = Path("results/explore")
    json_to: JsonTo = None


def explore(asked: ExploreOptions) -> None:
    """Say what to build: the best designs and sizes of their tables under a budget of memory.

    Every way to share out the memory, and a half and a quarter of it, is tried on a short part of
    each workload, the best quarter on four times as much, and so on. The same command goes on where
    it was interrupted.

    [bold]Examples[/bold]

    sardonyx explore redis cc1 --sram 1M

    sardonyx explore btree --sram 256K --designs sca,esd --goal "min medium_writes" --goal "max ipc"

    sardonyx explore queue --sram 64K --transactions 2000 --footprint 1M
    """
    budget = _size(asked.sram)
    goals = [Goal(*check_goal("--goal", text)) for text in asked.goal or GOALS]
    most = dict(_limit(text) for text in asked.at_most or ())
    for name in [*(goal.name for goal in goals), *most]:
        check_known("figure", name, sorted(NAMES), "--goal: ")
    designs = _surviving(check_designs(parts(asked.designs)), asked.survives)
    programs = program_names(asked.traces)
    limit = asked.limit if set(asked.traces) - programs else None
    sizes = ProgramSource()
    if programs:
        sizes = sized(asked.transactions, asked.transaction_size, asked.footprint)
    sources = named(asked.traces, limit, sizes)
    mixes.refuse("explore", sources)
    settings = Settings(asked.machine, parse_settings(asked.settings or ()))
    check_json_target(asked.json_to, asked.traces)
    people, target = for_people(asked.json_to), asked.directory
    check(api.points(asked.traces, designs, limit, sizes), settings)
    workers = asked.workers
    asked.refuse_idle("without a program", {"limit": "without a trace"})
    exploration = Exploration(
        sources, designs, settings, budget, goals, target / "runs", most, workers,
        partial(View, err), lambda line: err.print(line, soft_wrap=True),
    )  # fmt: skip
    with output_directory(target):
        found = exploration.explore()
    tell(people, found, budget)
    if found.front:
        _report(found, ", ".join(sources), budget, target / "report.html")
        people.print(f"report: {target / 'report.html'}", soft_wrap=True)
    write_json(asked.json_to, document(found, budget))
    if not found.front:
        raise typer.Exit(CHECK_FAILED)


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as problem:
        raise _core.SardonyxError(f"--sram {text}: {problem}") from None


def _limit(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    with suppress(ValueError):
        if math.isfinite(most := float(number)):
            return name, most
    raise _core.SardonyxError(f"--at-most {text}: is not FIGURE=N; as in medium_writes=1e6")


def _surviving(designs: Sequence[str], promise: str | None) -> list[str]:
    if promise is None:
        return list(designs)
    if promise not in PROMISES[:2]:
        raise _core.SardonyxError(
            f"--survives {promise!r}: give 'every line' or 'after program recovery'"
        )
    enough = PROMISES[: PROMISES.index(promise) + 1]
    kept = [design for design in designs if _core.guarantee(design) in enough]
    if not kept:
        raise _core.SardonyxError(
            f"--survives {promise!r}: none of {', '.join(designs)} promises it; "
            "sardonyx designs lists others"
        )
    return kept


def answer(found: Explored, budget: int) -> str:
    """What to build, in one sentence."""
    if not found.front:
        return "nothing was found: no candidate ran and is within --at-most"
    ends = {goal.name: found.best(goal) for goal in found.goals}
    first = found.best(found.goals[0])
    beside = [
        f"beside the best {second.candidate.design}: {spread.text()}"
        for goal in found.goals
        if (found_next := found.beside_next(goal)) is not None
        for second, spread in [found_next]
    ]
    rest = "".join(f"; {each}" for each in beside)
    if all(one is first for one in ends.values()):
        built = f"{_built(first, budget)}: nothing is better in any goal"
        return f"with {size_text(budget)} build {built}{rest}"
    said = [f"{_built(one, budget)} for {name}" for name, one in ends.items()]
    return f"with {size_text(budget)} build {'; or '.join(said)}{rest}"


def _built(one: Tried, budget: int) -> str:
    """The candidate, and what it takes if that is less than the budget."""
    size = one.candidate.bytes
    text = one.candidate.text
    if not size:
        return f"{text} (nothing of it)"
    return text if size == budget else f"{text[:-1]}; {size_text(size)} in all)"


def tell(people: Console, found: Explored, budget: int) -> None:
    """The answer, and the front that it is taken from."""
    people.print(answer(found, budget), soft_wrap=True)
    if not found.front:
        return
    # Keys stay whole, because users copy them: the other columns make room.
    whole = Column("design (after a cut), bytes on chip", no_wrap=True)
    goals = (f"{goal.name} ({'more' if goal.more else 'less'})" for goal in found.goals)
    table = grid(whole, *numbers(*goals), header_style="dim")
    for one in found.front:
        sizes = [f"  {key} {size_text(size)}" for key, size in one.candidate.sizes]
        design = f"{one.candidate.design} ({_core.guarantee(one.candidate.design)})"
        figures = [_figure(one, goal) for goal in found.goals]
        table.add_row("\n".join([design, *sizes]), *figures)
    people.print(table)
    failed = sum(one.error is not None for one in found.tried)
    people.print(
        f"{_counted(len(found.tried), 'candidate')} in {_counted(len(found.rounds), 'round')}, "
        f"{_counted(found.runs, 'run')}"
        + (f", {failed:,} failed" if failed else "")
        + "; ± is half of the 95 % interval over windows or seeds",
        soft_wrap=True,
        style="dim",
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _figure(one: Tried, goal: Goal) -> str:
    half = one.halves.get(goal.name)
    return f"{one.figures[goal.name]:.4g}" + ("" if half is None else f" ± {half:.2g}")


def _report(found: Explored, names: str, budget: int, path: Path) -> None:
    """The page of a sweep, with the answer first."""
    listed = rows(found, names)
    keys = [name for name in listed[0] if "." in name]
    settings = ["trace", "design", "round", *keys]
    axes = [name for name in settings if len({row[name] for row in listed}) > 1]
    swept = Swept(
        listed, len(listed), settings, axes, "trace", found.goals,
        [], None, {}, [_core.VERSION], {},
    )  # fmt: skip
    pages.write_sweep_report(swept, path, [("answer", answer(found, budget))])


def document(found: Explored, budget: int) -> dict[str, Any]:
    """All of it, for programs."""

    def one(tried: Tried) -> dict[str, Any]:
        return {
            "design": tried.candidate.design,
            "sizes": dict(tried.candidate.sizes),
            "round": tried.round,
            "figures": tried.figures,
            "half_widths": tried.halves,
            "promise": _core.guarantee(tried.candidate.design),
            "error": tried.error,
        }

    return {
        "answer": answer(found, budget),
        "budget": budget,
        "goals": [goal.text for goal in found.goals],
        "rounds": [{"candidates": count, "of": said} for count, said in found.rounds],
        "runs": found.runs,
        "front": [one(each) for each in found.front],
        "candidates": [one(each) for each in found.tried],
    }
