"""``merge``: what same-page merging saves, pass by pass, what to set, and why not more."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import Merge
from sardonyx.api.command import ran
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.report import write_merge_report
from sardonyx.runs import merging
from sardonyx.runs.advice import headline, told
from sardonyx.runs.scheduler import Watch

#: The answer, beside its report.
FILE = "merge.json"
PAGE = 4096
MIB = 1 << 20


def answer(asked: Merge, watch: Watch | None) -> Answer:
    """All runs of the question."""
    found = ran("merge", lambda progress: _core.merge(asked.json(), progress), watch)
    return Answer("merge", {"sardonyx": _core.VERSION, **found})


def groups(answer: dict[str, Any]) -> list[Any]:
    """The sections of its report."""
    from sardonyx.report.merging import groups as sections

    return sections(answer)


def report(answer: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write its report."""
    write_merge_report(answer, path, getattr(answer, "made", None))


def _size(pages: float) -> str:
    return f"{pages * PAGE / MIB:,.1f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _grid(title: str, *columns: str) -> Table:
    return grid(*folded(columns[0]), *numbers(*columns[1:]), title=title, header_style="dim")


def _cells(metrics: dict[str, Any], columns: Sequence[str]) -> list[str]:
    merges = "cpu_share" in metrics
    settled = metrics.get("settled_after_passes")
    cells = {
        "saved %": f"{100 * metrics['saving']:.1f}",
        "MiB": _size(metrics["saved_pages"]),
        "zeros MiB": _size(metrics["saved_zero_pages"]),
        "passes": "-" if not merges else "not yet" if settled is None else f"{settled}",
        "time": _time(metrics.get("settled_after_seconds")),
        "processor": _time(metrics.get("settled_cpu_seconds")),
        "share %": f"{100 * metrics['cpu_share']:.1f}" if merges else "-",
    }
    return [cells[column] for column in columns]


COLUMNS = ("saved %", "MiB", "zeros MiB", "passes", "time", "processor", "share %")
#: The columns next to the long names of knobs, in a terminal of 80 columns.
KNOB_COLUMNS = ("saved %", "MiB", "time", "processor", "share %")


def tell(people: Console, answer: dict[str, Any]) -> None:
    for line in headline(answer):
        people.print(Text(line))
    people.print()
    pages = answer["runs"][0]["metrics"]["pages"]["pages"] if answer["runs"] else 0
    table = _grid(
        f"{len(answer['machines'])} machine(s), {pages:,} pages, {_size(pages)} MiB, "
        f"{answer['snapshots']} snapshot(s), {answer['kernel']}",
        "design",
        *COLUMNS,
    )
    for done in answer["runs"]:
        table.add_row(done["design"], *_cells(done["metrics"], COLUMNS))
    people.print(table)
    people.print(Text("passes, time, processor: until the savings stay the same", style="dim"))
    for machine in answer["machines"]:
        if (note := merging.came_and_went(machine)) is not None:
            people.print(Text(note), soft_wrap=True)
        if machine["process"] is not None:
            _tell_process(people, machine["name"], machine["process"])
    for asked in told(answer):
        table = _grid(asked.title, *asked.heads)
        for row in asked.rows:
            table.add_row(*map(Text, row))
        people.print(table)
        for note in asked.notes:
            people.print(Text(note, style="dim"))
    if "owners" in answer:
        owners = answer["owners"]
        table = _grid("if only machines of one owner may merge", "owner", "machines", *COLUMNS)
        for row in owners["owners"]:
            cells = _cells(row["metrics"], COLUMNS)
            table.add_row(row["owner"], f"{row['machines']}", *cells)
        people.print(table)
        people.print(f"all owners: {100 * owners['saving']:.1f} % saved", style="dim")
    if "what_if" in answer:
        table = _grid("what if", "knob", *KNOB_COLUMNS)
        for row in answer["what_if"]:
            name = "\n".join(f"{key}={value}" for key, value in row["set"])
            table.add_row(name or "as asked", *_cells(row["metrics"], KNOB_COLUMNS))
        people.print(table)
    if "why_not" in answer:
        _tell_why(people, answer["why_not"])


def _tell_process(people: Console, name: str, process: dict[str, Any]) -> None:
    parts = [f"{process['anonymous']:,} anonymous pages read"]
    parts.append(f"{process['offered']:,} offered for merging (MADV_MERGEABLE)")
    parts.append(f"{process['shared_already']:,} of files or shared memory left out")
    if process["frames_known"]:
        parts.append(f"{process['merged']:,} merged by the kernel so far")
        parts.append(f"{process['huge']:,} in huge pages")
    if process["forked"]:
        parts.append(f"{process['forked']:,} one frame with a forked process already")
    if process["swapped"]:
        parts.append(f"{process['swapped']:,} in swap, not read")
    people.print(Text(f"{name}: {'; '.join(parts)}", style="dim"), soft_wrap=True)
    kernel = merging.kernel_now()
    if kernel is not None:
        runs = "merges" if kernel["run"] == 1 else f"is off (run {kernel['run']})"
        people.print(
            Text(
                f"  the kernel's KSM {runs}; in all {kernel['pages_sharing']:,} pages saved, "
                f"{kernel['ksm_zero_pages']:,} zero pages",
                style="dim",
            ),
            soft_wrap=True,
        )


def _tell_why(people: Console, why: dict[str, Any]) -> None:
    total = max(why["pages"], 1)
    table = _grid("why not", "pages", "count", "%")
    for name, key in WHY:
        if key == "not_compared" and not why[key]:
            continue
        table.add_row(name, f"{why[key]:,}", f"{100 * why[key] / total:.1f}")
    people.print(table)
    if why["not_in_image"]:
        note = f"{why['not_in_image']:,} pages that images name but do not hold are left out"
        people.print(Text(note, style="dim"), soft_wrap=True)
    if why["nearly_identical"]:
        classes = zip(NEAR, why["near_by_bytes"], strict=True)
        counts = ", ".join(f"{name}: {count:,}" for name, count in classes)
        most = max(range(16), key=lambda at: why["near_by_offset"][at])
        people.print(
            f"nearly identical, bytes that differ: {counts}; most of them at offsets "
            f"{most * 256:#x} to {most * 256 + 255:#x}",
            soft_wrap=True,
        )
        for pair in why["examples"][:3]:
            people.print(
                Text(
                    f"  {pair['a']} and {pair['b']}: {pair['bytes']} bytes, "
                    f"the first at {pair['first']:#x}",
                    style="dim",
                ),
                soft_wrap=True,
            )
    if why["regions"]:
        table = _grid("where unmerged pages lie", "region", "pages", "changed", "near")
        for region in why["regions"][:8]:
            table.add_row(
                Text(region["region"]),
                f"{region['unmerged']:,}",
                f"{region['changed']:,}",
                f"{region['near']:,}",
            )
        people.print(table)


NEAR = ("1", "2-4", "5-16", "17-64")
WHY = (
    ("merged", "merged"),
    ("changed between snapshots", "changed"),
    ("equal to another, not merged", "equal_unmerged"),
    ("nearly identical (64 bytes at most)", "nearly_identical"),
    ("no page is near", "unique"),
    ("not compared: over --memory", "not_compared"),
)
