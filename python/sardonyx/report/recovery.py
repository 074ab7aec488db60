"""The page of a real program's crash test: suspects, causes, and a timeline of each.

Plain HTML and SVG in one file, without a script. Left out: everything that computes.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

#: Pixels of an event, of a line of the pool, and of the names at the left.
STEP = 15
ROW = 18
LEFT = 120
TOP = 26
STYLE = """
svg { font: 11px sans-serif; max-width: none; } .wide { overflow-x: auto; }
.store { fill: #555; } .past { fill: #888; } .flush { fill: none; stroke: #2a7; stroke-width: 2; }
.fence { stroke: #2a7; stroke-width: 1.5; } .cut { stroke: #bbb; stroke-dasharray: 2 3; }
.failed { stroke: #d33; stroke-width: 2; stroke-dasharray: 4 3; } .guide { stroke: #eee; }
.early { fill: #e80; } .late { fill: #36c; } pre { white-space: pre-wrap; }
td, th { padding-right: 1.5em; text-align: left; }
"""
SPOKEN = {"early": "had persisted", "late": "had not persisted"}


def render(found: dict[str, Any], version: str) -> str:
    """The whole page."""
    css = (files("sardonyx.report") / "report.css").read_text(encoding="utf-8")
    verdict = (
        f"{found['violations']:,} violations" if found["violations"] else "no violation"
    ) + f" in {found['images']:,} images at {found['cuts_tried']:,} cuts"
    left = ", ".join(found["passes_left"])
    facts = [
        ("program", found["program"]),
        ("pool", f"{found['pool']}, {found['pool_bytes']:,} bytes"),
        ("recovery", " ".join(found["recover"])),
        ("platform", f"{found['platform']}, torn at {found['tear']}"),
        ("recoveries", f"{found['recoveries']:,}, {found['recoveries_per_second']:.0f} a second"),
        ("plan", "all of it" if found["finished"] else f"left: {left}"),
        ("Sardonyx", version),
    ]
    body = [
        f"<h1>Crash test of {escape(found['program'])}</h1><p><strong>{verdict}</strong></p>",
        _table((), facts),
    ]
    if found["suspects"]:
        rows = [
            (s["place"], (s["frame"] or {}).get("function") or "", SPOKEN[s["role"]])
            for s in found["suspects"][:10]
        ]
        body.append("<h2>Look here first</h2>" + _table(("line", "in", "because it"), rows))
    for number, cause in enumerate(found["causes"], 1):
        body.append(_cause(number, cause))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>Crash test of {escape(found['program'])}</title><style>{css}{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{lines}</table>" if head else f"<table>{lines}</table>"


def _cause(number: int, cause: dict[str, Any]) -> str:
    stores = []
    for role in ("early", "late"):
        for store in cause[role]:
            calls = "\n".join(
                f"  {frame['function'] or '?'}"
                + (f" {Path(frame['file']).name}:{frame['line']}" if frame["line"] else "")
                + (" (inlined)" if frame["inlined"] else "")
                for frame in store["stack"]
            )
            stores.append(
                f"<details><summary>{SPOKEN[role]}: {escape(store['place'])}, "
                f"{store['bytes']} bytes "
                f"at {store['offset']:#x}</summary><pre>{escape(calls)}</pre></details>"
            )
    said = f"<pre>{escape(cause['said'])}</pre>" if cause["said"] else ""
    return (
        f"<section><h2>{number}. {escape(cause['summary'])}</h2>"
        f"<p>{cause['violations']} violations; {escape(cause['ended'])} at cut "
        f"{cause['cut']['number']}, row {cause['cut']['row']:,}"
        + (f", after mark {escape(cause['cut']['mark'])}" if cause["cut"]["mark"] else "")
        + f"</p>{said}{''.join(stores)}<div class=wide>{timeline(cause['timeline'])}</div>"
        f"<p>Again: <code>{escape(cause['replay'])}</code></p></section>"
    )


def timeline(events: list[dict[str, Any]]) -> str:
    """Stores (dots), flushes (rings) and fences (lines) of each line of the pool, and the cuts."""
    offsets = sorted({e["offset"] for e in events if e.get("offset") is not None})
    row_of = {offset: TOP + ROW * n + ROW // 2 for n, offset in enumerate(offsets)}
    bottom = TOP + ROW * len(offsets)
    width = LEFT + STEP * (len(events) + 1)
    drawn = [
        f"<line class=guide x1={LEFT} x2={width} y1={y} y2={y} />"
        f"<text x=0 y={y + 4}>{offset:#x}</text>"
        for offset, y in row_of.items()
    ]
    for n, event in enumerate(events):
        x = LEFT + STEP * n + STEP // 2
        if event["what"] == "cut":
            failed = f"{event['failed']} of {event['tried']} images fail"
            kind = "failed" if event["failed"] else "cut"
            here = f"<text x={x - 4} y=10>&#9660;</text>" if event["here"] else ""
            drawn.append(
                f"<line class={kind} x1={x} x2={x} y1=12 y2={bottom}><title>cut {event['cut']}: "
                f"{failed}</title></line>{here}"
            )
            continue
        place = event["place"] or ""
        when = f"row {event['row']}, thread {event['thread']}"
        title = f"<title>{event['what']}, {escape(place)}, {when}</title>"
        y = row_of.get(event["offset"], bottom)
        match event["what"]:
            case "fence":
                drawn.append(f"<line class=fence x1={x} x2={x} y1={TOP} y2={bottom}>{title}</line>")
            case "store" | "store past the caches":
                kind = event["role"] or ("store" if event["what"] == "store" else "past")
                size = 6 if event["role"] else 4
                drawn.append(f"<circle class={kind} cx={x} cy={y} r={size}>{title}</circle>")
            case _:
                drawn.append(f"<circle class=flush cx={x} cy={y} r=5>{title}</circle>")
    legend = (
        "<p>dots: stores (orange had persisted, blue had not); green rings: flushes; green lines: "
        "fences; dashed: cuts, red where images fail; the arrow is this cut</p>"
    )
    return f'<svg width="{width}" height="{bottom + 8}" role="img">{"".join(drawn)}</svg>{legend}'
