"""``sardonyx report`` of a sweep: its best points, and its report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from sardonyx import report as pages
from sardonyx._core import SardonyxError
from sardonyx.cli.common import note, out
from sardonyx.cli.tables import in_lines
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.sweeps.table import Goal, Swept, is_swept, load, ranked

__all__ = ["is_swept", "report_again"]


def report_again(directory: Path, goals: list[str]) -> None:
    """Print the best points, and write the report, from whatever shards are there."""
    swept = load(directory, goals)
    for shard, why in swept.damaged.items():
        note(f"{shard}: cannot be read and is left out ({why})")
    if not swept.rows and not swept.failed:
        raise SardonyxError(f"{directory}: holds no finished point yet; run the sweep first")
    path = directory / "report.html"
    pages.write_sweep_report(swept, path)
    asked = "" if swept.asked is None else f" of {swept.asked:,}"
    out.print(f"{swept.points:,}{asked} points, {len(swept.failed):,} failed", soft_wrap=True)
    for goal in swept.goals:
        out.print(best_table(swept, goal))
    out.print(f"report: {path}", soft_wrap=True)


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
