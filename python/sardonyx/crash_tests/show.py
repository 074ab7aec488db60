"""How ``crash-test search`` shows what it has found. Left out: what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sardonyx.crash_tests.searching import show_basis, unfinished
from sardonyx.draw.grid import grid

#: People are shown this many suspects and causes; the JSON has all.
SHOWN = 3
#: People are shown this many places that never ran.
PLACES = 8
DISKS = ("pages", "sectors")


def notes(found: dict[str, Any], *, kept: bool) -> list[str]:
    """What users may not expect of the answer."""
    lines = [*found["notes"]]
    if found["unsaid"]:
        pass
    elif not found["violations"]:
        if found["coverage"] is None:
            lines.append(
                "which places that make data persistent never ran is not known of this recording"
            )
        orders = found["threads"] > 1 and found["platform"] not in DISKS and "orders" not in found
        if orders and found["processes"] == 1:
            lines.append("threads are cut in the recorded order; --threads tries others")
    elif not found["has_places"]:
        lines.append(
            "the recording has no places in the program; record with --pc to see lines of code"
        )
    if not kept and any(one["violations"] for one in found.get("inside", ())):
        lines.append(
            "the recordings of these recoveries are gone; --keep FOLDER leaves them for a replay"
        )
    return lines


def show(people: Console, found: dict[str, Any]) -> None:
    """What was tried, the verdict, and the causes."""
    people.print(tried(found), soft_wrap=True)
    if "orders" in found:
        _show_orders(people, found["orders"])
    if (oracle := found["oracle"]) is not None:
        people.print(
            f"{oracle['operations']:,} operations: {oracle['prefixes']:,} beginnings of them were "
            f"run without a cut, which leave {oracle['outputs']:,} different outputs",
            soft_wrap=True,
        )
    if found["start"] is not None and not found["finished"]:
        people.print(unfinished(found), soft_wrap=True)
    if found["not_cut"]:
        people.print(f"not cut: {', '.join(found['not_cut'])}", soft_wrap=True)
    if found["unreduced"]:
        kinds = f"{found['unreduced']} kind{'s' if found['unreduced'] > 1 else ''}"
        people.print(f"{kinds} of violations not brought down to few lines: --budget ended first")
    if found["unsaid"]:
        said = Text.assemble((found["verdict"], "yellow"), f": {found['unsaid']}")
        people.print(said, soft_wrap=True)
        return
    if not found["violations"]:
        people.print(Text(verdict(found), style="green"))
        show_basis(people, found)
        show_coverage(people, found["coverage"])
        return
    count = found["violations"]
    people.print(
        Text.assemble(
            (f"{count:,} violation{'s' if count > 1 else ''}", "red"),
            f" of {len(found['causes']):,} cause{'s' if len(found['causes']) != 1 else ''}"
            f", the first after {found['first_violation_s']:.1f} s",
        ),
    )
    if found["has_places"] and found["suspects"]:
        table = grid("look here first", "in", "it persisted", header_style="bold")
        for suspect in found["suspects"][:SHOWN]:
            frame = suspect["frame"]
            function = (frame or {}).get("function") or ""
            through = f", in {suspect['through']}" if suspect["through"] else ""
            table.add_row(suspect["place"], function + through, suspect["role"])
        people.print(table)
    accepted = sum(cause["accepted"] for cause in found["causes"])
    new = [(n, cause) for n, cause in enumerate(found["causes"], 1) if not cause["accepted"]]
    if accepted:
        people.print(f"{accepted} of {len(found['causes'])} causes are accepted by the baseline")
    for number, cause in new[:SHOWN]:
        people.print()
        show_cause(people, number, cause)
    more = len(new) - SHOWN
    if more > 0:
        people.print(f"\nand {more} more causes; --json has all")
    if found["assumed"]:
        at = ", ".join(found["assumed"])
        people.print(
            f"\nto find what these causes hide, later rounds counted stores at {at} as persistent "
            "at once",
            soft_wrap=True,
        )


def tried(found: dict[str, Any]) -> str:
    """How much was tried, in how much time."""
    start = found["start"]
    where = ""
    if start is not None:
        mark = f"mark {start['mark']}" if start["mark"] else f"row {start['row']:,}"
        where = (
            f" ({found['cuts_from_start']:,} from {mark} on, "
            f"{found['moments_tried']:,} of {found['moments']:,} kinds of moments)"
        )
    alone = found["undisturbed_s"]
    return (
        f"{found['images']:,} images at {found['cuts_tried']:,} of {found['cuts']:,} cuts{where}, "
        f"{found['recoveries']:,} recoveries in {found['seconds']:.1f} s "
        f"({found['recoveries_per_second']:.0f} a second"
        + (f", {alone * 1e3:.0f} ms alone)" if alone is not None else ")")
    )


def verdict(found: dict[str, Any]) -> str:
    """That nothing failed, and whether that is of the whole plan and of all that was stored."""
    whole = found["finished"] and not found["not_cut"]
    return "no violation" if whole else "no violation in what was tried"


def show_cause(people: Console, number: int, cause: dict[str, Any]) -> None:
    """One cause: its stores, the cut, and the commands that show it again."""
    people.print(
        Text.assemble(
            (f"{number}. ", "bold"),
            "while the pool is made: " if cause["creation"] else "",
            f"{_held(cause)}: " if "order" in cause else "",
            cause["summary"],
            f" ({cause['violations']} violations)",
        ),
        soft_wrap=True,
    )
    for role in ("early", "late"):
        for store in cause[role][:SHOWN]:
            calls = " < ".join(
                f"{frame['function'] or '?'}"
                + (f" {Path(frame['file']).name}:{frame['line']}" if frame["line"] else "")
                for frame in store["stack"][:6]
            )
            people.print(
                f"   {role}: {store['bytes']} bytes at {store['pool'] or 'pool'} offset "
                f"{store['offset']:#x}, "
                f"row {store['row']:,}"
                + (f" ({store['fate']})" if store["fate"] else "")
                + (f": {calls}" if calls else ""),
                soft_wrap=True,
            )
    cut = cause["cut"]
    said = cause["said"].splitlines()
    people.print(
        f"   cut {cut['number']} at row {cut['row']:,}"
        + (f" after mark {cut['mark']}" if cut["mark"] else "")
        + f": {cause['ended']}"
        + (f": {said[-1]}" if said else ""),
        soft_wrap=True,
    )
    people.print(f"   {cause['replay']}", soft_wrap=True)
    if "gdb" in cause:
        people.print(f"   {cause['gdb']}", soft_wrap=True)


def show_coverage(
    people: Console, coverage: dict[str, Any] | None, do: str = "make data persistent"
) -> None:
    """Print the places that never ran, of which the verdict says nothing."""
    if coverage is None or not coverage["never_ran"]:
        return
    people.print(
        f"{coverage['never_ran']:,} of {coverage['sites']:,} places that {do} "
        "never ran in the recording, so no cut tests them:",
        soft_wrap=True,
    )
    table = grid(show_header=False)
    for site in coverage["listed"][:PLACES]:
        table.add_row(f"   {site['place']}", site["function"] or "", site["what"])
    people.print(table)
    if (more := coverage["never_ran"] - PLACES) > 0:
        people.print(f"   and {more:,} more; --json has {len(coverage['listed']):,} of them")


def _held(cause: dict[str, Any]) -> str:
    thread, _, row = cause["order"].partition("@")
    return f"with thread {thread} held back before {cause['held']}, after row {int(row):,}"


def _show_orders(people: Console, orders: Sequence[dict[str, Any]]) -> None:
    """Print how much was tried in other orders."""
    if not orders:
        people.print(
            "other orders of threads: none in which a thread makes sure of something while another "
            "is held back before it has",
            soft_wrap=True,
        )
        return
    images, cuts = (sum(one[key] for one in orders) for key in ("images", "cuts_tried"))
    unsaid = sum(bool(one["unsaid"]) for one in orders)
    people.print(
        f"other orders of threads: {len(orders)}, {images:,} images at {cuts:,} cuts of theirs"
        + (f"; of {unsaid} nothing can be said: --budget ended" if unsaid else ""),
        soft_wrap=True,
    )
    if not any(one["violations"] for one in orders) and not unsaid:
        people.print(Text("no violation in other orders of threads", style="green"))
