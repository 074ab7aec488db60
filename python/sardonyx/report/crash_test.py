"""The page of a real program's crash test: suspects, causes, and a timeline of each.

A page without a script. Left out: everything that computes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sardonyx.report.content import (
    Block,
    Folded,
    Grid,
    Group,
    Guide,
    Mark,
    Row,
    Text,
    Timeline,
    Verbatim,
    frame,
    heads_of_words,
    words,
)
from sardonyx.report.markup import plain_page
from sardonyx.runs.origin import here

#: Pixels of an event, of a line of the pool, and of the names at the left and above.
STEP = 15
ROW = 18
LEFT = 120
TOP = 26
SPOKEN = {"early": "had persisted", "late": "had not persisted"}
LEGEND = (
    "dots: stores (orange had persisted, blue had not); green rings: flushes; green lines: "
    "fences; dashed: cuts, red where images fail; the arrow is this cut"
)


def render(found: dict[str, Any], version: str) -> str:
    """The whole page."""
    verdict = (
        (f"{found['violations']:,} violations" if found["violations"] else found["verdict"])
        + f" in {found['images']:,} images at {found['cuts_tried']:,} of {found['cuts']:,} cuts, "
        f"{found['moments_tried']:,} of {found['moments']:,} kinds of moments"
    )
    left = ", ".join(found["passes_left"])
    heading = f"Crash test of {found['program']}"
    groups = []
    if found["suspects"]:
        rows = [
            Row([words(s["place"]), words(function_of(s)), words(SPOKEN[s["role"]])])
            for s in found["suspects"][:10]
        ]
        table = Grid(heads_of_words("line", "in", "because it"), rows, tall=False)
        groups.append(Group("suspects", "Look here first", inner=[table]))
    for number, cause in enumerate(found["causes"], 1):
        groups.append(
            Group(f"cause-{number}", f"{number}. {cause['summary']}", inner=_cause(cause))
        )
    return plain_page(
        names={},
        heading=heading,
        source="The program's own recovery, run on what each cut of its recording could leave.",
        notes=[verdict, *([found["unsaid"]] if found["unsaid"] else [])],
        facts=[
            *(
                (f"pool {number}" if len(found["pools"]) > 1 else "pool", told)
                for number, told in enumerate(map(_pool, found["pools"]), 1)
            ),
            ("recovery", " ".join(found["recover"])),
            ("platform", f"{found['platform']}, torn at {found['tear']}"),
            (
                "recoveries",
                f"{found['recoveries']:,}, {found['recoveries_per_second']:.0f} a second",
            ),
            ("plan", "all of it" if found["finished"] else f"left: {left}"),
            *_oracle(found["oracle"]),
            *frame(here(), version),
        ],
        groups=groups,
    )


def _oracle(oracle: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The outputs that the recovery's was compared with, if it was."""
    if oracle is None:
        return []
    told = f"{oracle['prefixes']:,} beginnings of {oracle['operations']:,} operations"
    return [("held to", f"{told}, {oracle['outputs']:,} different outputs")]


def function_of(suspect: dict[str, Any]) -> str:
    """The function that the suspect's line is in, as far as it is known."""
    return (suspect["frame"] or {}).get("function") or ""


def _cause(cause: dict[str, Any]) -> list[Block]:
    cut = cause["cut"]
    mark = f", after mark {cut['mark']}" if cut["mark"] else ""
    parts: list[Block] = [
        Text(
            f"{cause['violations']} violations; {cause['ended']} at cut {cut['number']}, "
            f"row {cut['row']:,}{mark}"
        )
    ]
    if cause["said"]:
        parts.append(Verbatim(cause["said"]))
    for role in ("early", "late"):
        for store in cause[role]:
            calls = "\n".join(
                f"  {frame['function'] or '?'}"
                + (f" {Path(frame['file']).name}:{frame['line']}" if frame["line"] else "")
                + (" (inlined)" if frame["inlined"] else "")
                for frame in store["stack"]
            )
            told = (
                f"{SPOKEN[role]}: {store['place']}, {store['bytes']} bytes at {store['offset']:#x}"
            ) + (f": {store['fate']}" if store["fate"] else "")
            parts.append(Folded(told, [Verbatim(calls)]))
    parts += [timeline(cause["timeline"]), Text(LEGEND, "reading")]
    parts.append(Text("Again: ", code=cause["replay"]))
    if "gdb" in cause:
        parts.append(Text("Under gdb: ", code=cause["gdb"]))
    return parts


def _pool(pool: dict[str, Any]) -> str:
    return f"{pool['path']}, {pool['bytes']:,} bytes"


def _place(event: dict[str, Any]) -> tuple[str, int]:
    """The pool, if there are several, and where in it."""
    return event.get("pool") or "", -1 if event["offset"] is None else event["offset"]


def timeline(events: list[dict[str, Any]]) -> Timeline:
    """Stores (dots), flushes (rings) and fences (lines) of each line of a pool, and the cuts."""
    places = {_place(e) for e in events if e.get("offset") is not None}
    offsets = sorted(places)
    row_of = {place: TOP + ROW * n + ROW // 2 for n, place in enumerate(offsets)}
    bottom = TOP + ROW * len(offsets)
    marks = []
    for n, event in enumerate(events):
        x = LEFT + STEP * n + STEP // 2
        if event["what"] == "cut":
            failed = f"{event['failed']} of {event['tried']} images fail"
            kind = "failed" if event["failed"] else "cut"
            told = f"cut {event['cut']}: {failed}"
            marks.append(Mark(kind, x, 12, told, here=bool(event["here"])))
            continue
        told = f"{event['what']}, {event['place'] or ''}, row {event['row']}, thread "
        told += f"{event['thread']}"
        y = row_of.get(_place(event), bottom)
        match event["what"]:
            case "fence":
                marks.append(Mark("fence", x, TOP, told))
            case "store" | "store past the caches":
                kind = event["role"] or ("store" if event["what"] == "store" else "past")
                marks.append(Mark(kind, x, y, told, 6 if event["role"] else 4))
            case _:
                marks.append(Mark("flush", x, y, told, 5))
    return Timeline(
        width=LEFT + STEP * (len(events) + 1),
        height=bottom + 8,
        left=LEFT,
        bottom=bottom,
        guides=[Guide(y, f"{pool} {offset:#x}".strip()) for (pool, offset), y in row_of.items()],
        marks=marks,
    )
