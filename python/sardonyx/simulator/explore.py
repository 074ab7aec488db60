"""``explore``: what to build with so much memory on chip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column

from sardonyx import _core
from sardonyx import report as pages
from sardonyx._core import SardonyxError
from sardonyx.answer import CHECK_FAILED, Answer
from sardonyx.api.asked import Explore
from sardonyx.draw.grid import grid, numbers
from sardonyx.places import output_directory
from sardonyx.questions import ProgramSource
from sardonyx.runs import mixes
from sardonyx.runs.jobs import Point, Settings, check, check_designs
from sardonyx.runs.metrics import NAMES
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_known, named
from sardonyx.sizes import size_text
from sardonyx.studies.explore import Exploration, Explored, Tried, rows
from sardonyx.sweeps.plan import check_goal
from sardonyx.sweeps.table import Goal, Swept

GOALS = ("max ipc", "min energy_nj")
#: Promises of designs after a power cut, the strongest first.
PROMISES = ("every line", "after program recovery", "nothing")


def answer(asked: Explore, watch: Watch | None) -> Answer:
    """The front of candidates, and what to build."""
    goals = [Goal(*check_goal("--goal", text)) for text in asked.goal or GOALS]
    most = dict(_limit(text) for text in asked.at_most)
    for name in [*(goal.name for goal in goals), *most]:
        check_known("figure", name, sorted(NAMES), "--goal: ")
    asked = asked.replace(designs=_surviving(check_designs(asked.designs), asked.survives))
    sizes = ProgramSource(
        item_bytes=asked.transaction_size,
        footprint=asked.footprint,
        transactions=asked.transactions,
    )
    sources = named(asked.traces, asked.limit, sizes)
    mixes.refuse("explore", sources)
    settings = Settings(asked.machine, asked.set)
    check([Point(*each, design) for each in sources.items() for design in asked.designs], settings)
    exploration = Exploration(
        sources, asked.designs, settings, asked.sram, goals, asked.out / "runs", most, asked.jobs,
        watch,
    )  # fmt: skip
    with output_directory(asked.out):
        found = exploration.explore()
    status = 0 if found.front else CHECK_FAILED
    told = Answer("explore", _document(found, asked.sram), status, shown=(found, asked.sram))
    if found.front:
        page = asked.out / "report.html"
        _report(found, ", ".join(sources), asked.sram, page)
        told.files.append(f"report: {page}")
    return told


def _limit(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    with suppress(ValueError):
        if math.isfinite(most := float(number)):
            return name, most
    raise SardonyxError(f"--at-most {text}: is not FIGURE=N; as in medium_writes=1e6")


def _surviving(designs: Sequence[str], promise: str | None) -> tuple[str, ...]:
    if promise is None:
        return tuple(designs)
    if promise not in PROMISES[:2]:
        raise SardonyxError(
            f"--survives {promise!r}: give 'every line' or 'after program recovery'"
        )
    enough = PROMISES[: PROMISES.index(promise) + 1]
    kept = [design for design in designs if _core.guarantee(design) in enough]
    if not kept:
        raise SardonyxError(
            f"--survives {promise!r}: none of {', '.join(designs)} promises it; "
            "sardonyx designs lists others"
        )
    return tuple(kept)


def said(found: Explored, budget: int) -> str:
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
    rest = "".join(f"; {each}" for each in [*beside, *_halves(found)])
    if all(one is first for one in ends.values()):
        built = f"{_built(first, budget)}: nothing is better in any goal"
        return f"with {size_text(budget)} build {built}{rest}"
    said = [f"{_built(one, budget)} for {name}" for name, one in ends.items()]
    return f"with {size_text(budget)} build {'; or '.join(said)}{rest}"


def _halves(found: Explored) -> list[str]:
    """What half of the memory costs in each goal, as in ``half of it costs 2.0 % of ipc``."""
    said = []
    for goal in found.goals:
        if (small := found.half(goal)) is not None:
            what = f"{small[1]:.1%} ".replace("%", " %") if small[1] >= 0.0005 else "nothing "
            size = size_text(small[0].candidate.bytes)
            said.append(
                f"half of it costs {what}of {goal.name} ({size}, {small[0].candidate.text})"
            )
    return said


def _built(one: Tried, budget: int) -> str:
    """The candidate, and what it takes if that is less than the budget."""
    size = one.candidate.bytes
    text = one.candidate.text
    if not size:
        return f"{text} (nothing of it)"
    return text if size == budget else f"{text[:-1]}; {size_text(size)} in all)"


def tell(people: Console, answer: Answer) -> None:
    """The answer, and the front that it is taken from."""
    found, budget = answer.shown
    people.print(said(found, budget), soft_wrap=True)
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
    pages.write_sweep_report(swept, path, [("answer", said(found, budget))])


def _document(found: Explored, budget: int) -> dict[str, Any]:
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
        "answer": said(found, budget),
        "budget": budget,
        "goals": [goal.text for goal in found.goals],
        "rounds": [{"candidates": count, "of": said} for count, said in found.rounds],
        "runs": found.runs,
        "front": [one(each) for each in found.front],
        "candidates": [one(each) for each in found.tried],
    }
