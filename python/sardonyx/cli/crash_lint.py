"""``sardonyx crash-test --lint``: what a recording shows without any run, for people.

What a library does while it sets a pool up is one line. Left out: everything that computes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import for_people, note, write_json
from sardonyx.runs.recoveries import lint


def show_lint(
    recording: str,
    pools: Sequence[str],
    source: bool,
    machine: str,
    everything: bool,
    json_to: str | None,
) -> None:
    """What the recording shows without running anything."""
    found = lint(recording, pools, source, machine)
    people = for_people(json_to)
    for line in found["notes"]:
        note(line)
    people.print(
        f"{found['stores']:,} stores, {found['flushes']:,} flushes and {found['fences']:,} fences "
        f"of {found['pool']}"
    )
    setup = [] if everything else [each for each in found["findings"] if each["setup"]]
    shown = [each for each in found["findings"] if each not in setup]
    if setup:
        counts: Counter[str] = Counter()
        for each in setup:
            counts[each["meaning"]] += each["count"]
        listed = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
        people.print(
            "left out, of libraries that set the pool up before the program's own first store: "
            f"{listed}; --all shows them",
            soft_wrap=True,
        )
    if not shown:
        people.print(Text("nothing to find fault with", style="green"))
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("what")
        table.add_column("times", justify="right")
        table.add_column("where")
        table.add_column("in")
        for finding in shown:
            through = f" (in {finding['through']})" if finding["through"] else ""
            table.add_row(
                finding["meaning"],
                f"{finding['count']:,}",
                finding["place"] + (f" ({finding['pool']})" if finding["pool"] else ""),
                ((finding["frame"] or {}).get("function") or "") + through,
            )
        people.print(table)
    for name, cost in found.get("cost_ns", {}).items():
        if found["idle"][name]:
            people.print(
                f"{found['idle'][name]:,} {name} that do nothing cost {cost / 1e3:,.1f} of "
                f"{found['took_ns'] / 1e3:,.1f} us on {machine} without encryption"
            )
    if not found["has_places"]:
        note("the recording has no places in the program; record with --pc to see lines of code")
    write_json(json_to, {"sardonyx": _core.VERSION} | found)
