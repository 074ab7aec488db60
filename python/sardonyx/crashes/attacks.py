"""How ``crash`` shows what came of attacks: a row a design and a time, a column a kind.

Left out: what is asked (``crash``), and everything that computes.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Column
from rich.text import Text

from sardonyx.draw.grid import grid, numbers

#: The meaning of a cell, and of the times of attacks.
LEGEND = (
    "undetected of tried; off: after a cut, recovering: in the recovery, running: between two "
    "requests; red: the integrity promises to notice it; honest: honest recoveries refused, of cuts"
)


def show_attacks(people: Console, runs: list[dict[str, Any]]) -> None:
    """The table of the runs that were attacked; nothing if none was."""
    attacked = [run for run in runs if run.get("attacks")]
    if not attacked:
        return
    rows = attacked[0]["attacks"]["rows"]
    kinds = dict.fromkeys(row["kind"] for row in rows)
    table = grid(
        *(Column(name, no_wrap=True) for name in ("program", "design", "when")),
        *numbers(*kinds, "honest", no_wrap=True),
        title="attacks",
        padding=(0, 1, 0, 0),
        header_style="dim",
    )
    for run in attacked:
        of = run["attacks"]
        honest = Text(
            f"{of['honest_refused']:,}/{of['cuts']:,}", style="red" if of["honest_refused"] else ""
        )
        for when in dict.fromkeys(row["when"] for row in of["rows"]):
            cells = [_cell(row) for row in of["rows"] if row["when"] == when]
            table.add_row(Text(run["program"]), Text(run["design"]), when, *cells, honest)
    people.print(table)
    people.print(Text(LEGEND, style="dim"), soft_wrap=True)
    for run in attacked:
        if listed := _enumerated(run):
            people.print(listed, soft_wrap=True)
    people.print()


def _enumerated(run: dict[str, Any]) -> Text | None:
    """What came of the attacks of which none is drawn, in a line; a list of them is in the JSON."""
    rows = run["attacks"]["enumerated"]
    if not rows:
        return None
    kinds = dict.fromkeys(row["kind"] for row in rows)
    of_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in kinds}
    counts = (
        f"{kind} {sum(row['undetected'] for row in each):,} of "
        f"{sum(row['tried'] for row in each):,} undetected"
        for kind, each in of_kind.items()
    )
    broken = any((row["promised"] and row["undetected"]) or not row["tried"] for row in rows)
    bits = [row for row in rows if " bits of a line of " in row["what"]]
    others = [row["what"] for row in rows if row not in bits]
    what = ", ".join([f"all bits of a line of {len(bits)} regions"] * bool(bits) + others)
    text = f"{run['program']}, {run['design']}, none drawn ({what}): {', '.join(counts)}"
    return Text(text, style="red" if broken else "dim")


def _cell(row: dict[str, Any]) -> Text:
    style = "" if row["promised"] else "yellow"
    broken = row["promised"] and row["undetected"]
    return Text(f"{row['undetected']:,}/{row['tried']:,}", style="red" if broken else style)


def not_promised(run: dict[str, Any]) -> list[dict[str, Any]]:
    """The first attack of each kind and time that nobody noticed and nobody promises to notice."""
    rows = run["attacks"]["rows"] if run.get("attacks") else []
    return [row["first"] for row in rows if row["first"] and not row["promised"]]
