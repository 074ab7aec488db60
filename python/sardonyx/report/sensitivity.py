"""A sensitivity: which conclusions turn, which keys decide them, and at which values they turn; for
the terminal and for the report.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from sardonyx.papers.claims import Unit, written_claim
from sardonyx.report import content
from sardonyx.report.content import Block, Folded, Grid, Row, Td, Th
from sardonyx.runs.sensitivity import Concluded, Said, Sensitivity, Turn, decided

#: The conclusions of a kind that are listed, and the failures; the report and ``--json`` have all.
LISTED, FAILURES = 40, 5


def sensitivity_table(found: Sensitivity) -> RenderableType:
    """Which conclusions turn and where, then what decides each headline figure."""
    lines: list[Text] = [Text()]
    if found.note:
        lines.append(Text(found.note, style="dim"))
    lines.append(Text(f"Sensitivity: {_made(found)}", style="bold"))
    kinds = dict.fromkeys(said.kind for each in found.concluded for said in each.says)
    turning = {kind: _turning(found, kind) for kind in kinds}
    for kind, pairs in turning.items():
        if pairs:
            lines += _turns(kind, pairs)
    if not any(turning.values()):
        lines.append(Text(f"None of {found.conclusions} conclusions turns in any cell."))
    heads = [each for each in found.concluded if each.headline]
    if heads:
        lines.append(Text("What decides the headline figures", style="bold"))
    for each in heads[:LISTED]:
        span = f"{value(each.least, each.unit)} to {value(each.most, each.unit)}"
        whose = f"  {each.title}, {each.who}: {value(each.value, each.unit)}"
        lines.append(Text(f"{whose}; {span} in nine of ten cells"))
        lines.append(Text(f"    decided by {decided(each.deciding)}", style="dim"))
    lines += [Text(f"could not be run: {each}", style="red") for each in found.failures[:FAILURES]]
    return Group(*lines)


def value(number: float | None, unit: str) -> str:
    """A figure for people."""
    units: dict[str, Unit] = {"x": "x", "%": "%", "pp": "pp"}
    return written_claim(number, units.get(unit, ""))


def where(turn: Turn) -> str:
    """From which value of its key on a conclusion is another one."""
    if turn.until == turn.since or not _number(turn.since) or not _number(turn.until):
        return f"{turn.parameter} = {turn.since}"
    side = ">=" if float(turn.since) > float(turn.until) else "<="
    return f"{turn.parameter} {side} {turn.since} (holds at {turn.until})"


def parted(said: Said) -> str:
    """How the choice that decides parts the cells in which a conclusion holds from the others."""
    at = said.split
    if at is None:
        return "–"
    within, beyond = (f"{of.number} of {of.of}" for of in (at.within, at.beyond))
    if _number(at.value):
        return f"{within} cells with {at.parameter} < {at.value}, {beyond} with more"
    return f"{within} cells with {at.parameter} = {at.value}, {beyond} with another"


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _made(found: Sensitivity) -> str:
    """What was run."""
    return (
        f"{found.cells} cells, each with another value of each of {len(found.varied)} choices and "
        f"assumed keys, and each of these alone; {found.runs:,} runs."
    )


def _turning(found: Sensitivity, kind: str) -> list[tuple[Concluded, Said]]:
    """The conclusions of a kind that turn, with what they say."""
    return [
        (each, said)
        for each in found.concluded
        for said in each.says
        if said.kind == kind and said.turned
    ]


def _turns(kind: str, pairs: Sequence[tuple[Concluded, Said]]) -> list[Text]:
    """The conclusions that turn by one kind, each with the keys that turn it alone."""
    means = [pair for pair in pairs if not pair[0].workload]
    shown = pairs if kind == "sign" else means or pairs
    lines = [
        Text(
            f"Turn by {kind}: {len(pairs)} conclusions, {len(means)} of them about means"
            + ("" if shown is pairs else "; those about means"),
            style="bold",
        )
    ]
    for each, said in shown[:LISTED]:
        what = ", ".join(part for part in (each.title, each.who, each.workload or "mean") if part)
        lines.append(
            Text(
                f"  {what}: {value(each.value, each.unit)}, {said.word} in {said.holds.written} "
                "cells"
            )
        )
        lines.append(Text(f"    decided by {decided(each.deciding)}", style="dim"))
        if said.split is not None:
            lines.append(Text(f"    {said.word} in {parted(said)}", style="dim"))
        for turn in said.turns:
            at = f"{value(turn.at_value, each.unit)} at {turn.at}"
            lines.append(Text(f"    {turn.becomes} with {where(turn)}; {at}", style="dim"))
        if not said.turns:
            lines.append(Text("    no key turns it alone", style="dim"))
    if len(shown) > LISTED:
        lines.append(Text(f"  and {len(shown) - LISTED} more; the report has all", style="dim"))
    return lines


# ---- the report


def tables(found: Sensitivity) -> list[Block]:
    """The conclusions that turn, what decides the others, and every key with its range."""
    kinds = dict.fromkeys(said.kind for each in found.concluded for said in each.says)
    turning = [pair for kind in kinds for pair in _turning(found, kind)]
    parts: list[Block] = [content.Text(found.note)] if found.note else []
    parts.append(
        content.Text(
            f"{_made(found)} Of {found.conclusions} conclusions {len(turning)} turn in some cell."
        )
    )
    rows = [
        [
            *_named(each),
            said.kind,
            value(each.value, each.unit),
            f"{said.word} in {said.holds.written}",
            decided(each.deciding),
            parted(said),
            "; ".join(f"{turn.becomes} with {where(turn)}" for turn in said.turns) or "none alone",
        ]
        for each, said in turning
    ]
    heads = [
        "figure",
        "designs",
        "workload",
        "by",
        "value",
        "cells",
        "decided by",
        "parted",
        "alone",
    ]
    parts.append(_table("Conclusions that turn", heads, rows, opened=True))
    rows = [
        [
            *_named(each),
            *(value(one, each.unit) for one in (each.value, each.median, each.least, each.most)),
            decided(each.deciding),
        ]
        for each in found.concluded
    ]
    heads = ["figure", "designs", "workload", "value", "median", "5 %", "95 %", "decided by"]
    parts.append(_table("What decides the figures", heads, rows))
    rows = [
        [
            key.parameter, key.value, key.left_out or key.values, key.why, key.reason,
            ", ".join(key.designs),
        ]
        for key in found.keys
    ]  # fmt: skip
    heads = ["key", "value", "range", "why this value", "why this range", "designs"]
    parts.append(_table("The keys and their ranges", heads, rows))
    if found.failures:
        parts.append(content.Text("Could not be run:"))
        parts += [content.Text(each) for each in found.failures]
    return parts


def _named(each: Concluded) -> list[str]:
    return [each.title, each.who, each.workload or "mean"]


def _table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, opened: bool = False
) -> Block:
    if not rows:
        return content.Text(f"{title}: none.")
    cells = [Row([Td(cell, "name") for cell in row]) for row in rows]
    grid = Grid([Th(each, "name") for each in heads], cells)
    return Folded(f"{title} ({len(rows)})", [grid], opened)
