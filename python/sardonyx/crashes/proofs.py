"""How ``sardonyx crash exhaustive`` shows what it has proven, and how a violation is told.

Left out: what is asked (``crash``), and everything that computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from sardonyx.draw.grid import grid, numbers

VERDICTS = {"proven": "green", "caught": "yellow", "broken": "red", "unfinished": "red"}
#: The columns, each with the name of its count.
COLUMNS = {
    "states": "states",
    "cuts": "cuts",
    "lives": "lives",
    "nested": "recovery_cuts",
    "lost": "lost_cuts",
    "secrets": "secret_cuts",
}
#: The meaning of the less obvious columns.
LEGEND = "lives: states from which the next life was lived in all orders; nested: cuts of those"


def show_proofs(
    people: Console, proofs: list[dict[str, Any]], again: Sequence[str], *, one: bool
) -> None:
    """A row a run, what the verdicts are about, and the violations with the command of each.

    With ``one`` each run was made in one order alone.
    """
    commands = iter(again)
    for sharing in dict.fromkeys(proof["sharing"] for proof in proofs):
        people.print(_rows([proof for proof in proofs if proof["sharing"] == sharing]))
    people.print(Text(LEGEND, style="dim"), soft_wrap=True)
    for bound in dict.fromkeys(map(_bound, proofs)):
        people.print(Text(bound, style="dim"), soft_wrap=True)
    for proof in proofs:
        if proof["verdict"] == "unfinished":
            people.print(Text(_unfinished(proof, one=one), style="red"), soft_wrap=True)
        for violation in proof["violations"]:
            tell_violation(people, violation, next(commands))


def _rows(proofs: list[dict[str, Any]]) -> Table:
    first = proofs[0]
    counters = f"lines of counters {first['sharing']}"
    table = grid(
        *(Column(name, no_wrap=True) for name in ("program", "design")),
        *numbers(*COLUMNS, "s", no_wrap=True),
        Column("", no_wrap=True),
        title=f"{first['platform']}, all orders of acceptance, {counters}",
        padding=(0, 1, 0, 0),
        header_style="dim",
    )
    for proof in proofs:
        table.add_row(
            Text(proof["program"]),
            Text(proof["design"]),
            *(f"{proof[key]:,}" for key in COLUMNS.values()),
            f"{proof['seconds']:.1f}",
            Text(proof["verdict"], style=VERDICTS[proof["verdict"]]),
        )
    return table


def _bound(proof: dict[str, Any]) -> str:
    transactions, cores = proof["transactions"], proof["cores"]
    items = proof["footprint_bytes"] // proof["transaction_bytes"]
    lives = "all orders and cuts of the life after each" if proof["lives"] else "no second life"
    return (
        f"{proof['program']}: {cores} core{'s' * (cores > 1)}, {transactions} transaction"
        f"{'s' * (transactions > 1)} each, {items} items of {proof['transaction_bytes']} bytes; "
        f"all orders that gates and fences allow, all cuts, {lives}; no evictions, one order of "
        "what happens between two acceptances"
    )


def _unfinished(proof: dict[str, Any], *, one: bool) -> str:
    who = f"{proof['program']}, {proof['design']}: nothing was found"
    if one:
        return f"{who} in this order, which is one of many"
    return (
        f"{who} in {proof['states']:,} states, which are not all; give more --most-states, or "
        "fewer --transactions or --cores"
    )


def tell_violation(people: Console, violation: dict[str, Any], again: str) -> None:
    """The first violation of a kind: how often, where, and the history that led there."""
    head, *story = violation["history"]
    people.print()
    people.print(Text(f"{head} ({violation['count']:,} times)", style="bold"), soft_wrap=True)
    for line in story:
        people.print(Text(line), soft_wrap=True)
    if violation["cut"] is not None:
        people.print(Text(f"  replay: {again}"), soft_wrap=True)
