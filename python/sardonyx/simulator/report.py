"""``report``: saved results again, and their report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from sardonyx import report as pages
from sardonyx._core import SardonyxError
from sardonyx.answer import Answer
from sardonyx.api.asked import Report
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.papers.reproduction import BesidePaper
from sardonyx.report.tables import compare_table, in_lines, noted, print_beside
from sardonyx.runs import origin
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.results import Results
from sardonyx.runs.scheduler import Watch
from sardonyx.sweeps.table import Goal, Swept, is_swept, load, ranked


def answer(asked: Report, _: Watch | None) -> Answer:
    """What the folder holds, its report written again."""
    folder = asked.directory
    if folder.is_dir() and not (folder / "results.json").exists() and is_swept(folder):
        return _swept(folder, list(asked.goal))
    if asked.goal:
        raise SardonyxError(f"--goal: is of sweeps, and {folder} holds none; leave it out")
    results = Results.load(folder)
    comparison = Comparison(results)
    target = folder if folder.is_dir() else folder.parent
    path = target / "report.html"
    beside = BesidePaper.load(target)
    pages.write_report(comparison, path, beside, origin.load(target))
    found = Answer("report", {"report": str(path)}, shown=(comparison, beside))
    found.files.append(f"report: {path}")
    return found


def _swept(folder: Path, goals: list[str]) -> Answer:
    """A sweep, from whatever points are there."""
    swept = load(folder, goals)
    if not swept.rows and not swept.failed:
        raise SardonyxError(f"{folder}: holds no finished point yet; run the sweep first")
    path = folder / "report.html"
    pages.write_sweep_report(swept, path)
    damaged = swept.damaged.items()
    notes = [f"{path}: cannot be read and is left out ({why})" for path, why in damaged]
    found = Answer("report", {"report": str(path)}, notes=notes, shown=swept)
    found.files.append(f"report: {path}")
    return found


def tell(people: Console, answer: Answer) -> None:
    """The table of a comparison, what stands beside a paper, or the best points of a sweep."""
    if isinstance(answer.shown, Swept):
        swept = answer.shown
        asked = "" if swept.asked is None else f" of {swept.asked:,}"
        failed = len(swept.failed)
        people.print(f"{swept.points:,}{asked} points, {failed:,} failed", soft_wrap=True)
        for goal in swept.goals:
            people.print(best_table(swept, goal))
        return
    comparison, beside = answer.shown
    if not beside.claims:
        people.print(compare_table(comparison, people.width, noted(people)))
    print_beside(people, beside)


def groups(answer: Answer) -> list[Any]:
    """The figures of the report."""
    if isinstance(answer.shown, Swept):
        from sardonyx.report import swept

        return list(swept.groups(answer.shown))
    return [SimpleNamespace(figures=pages.figures(*answer.shown))]


def best_table(swept: Swept, goal: Goal, most: int = 3) -> RenderableType:
    """The best points of a sweep by a figure, a few of each subject."""
    settings = [name for name in swept.axes if name != swept.subject]
    title = f"{goal.text}; at most {most} of each {swept.subject}"
    names = folded(*map(in_lines, (swept.subject, *settings)))
    table = grid(*names, *numbers(goal.name, overflow="fold"))
    for subject, rows in swept.by_subject().items():
        for row in ranked(rows, goal)[:most]:
            cells = [Text(str(row.get(name))) for name in settings]
            table.add_row(Text(subject), *cells, f"{row[goal.name]:,.6g}")
    return Group(Text(title, style="italic"), table)
