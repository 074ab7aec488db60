"""Figures of a merge: pages by state, savings over passes, other knobs, why pages stay apart."""

from __future__ import annotations

from typing import Any

from sardonyx.draw.figure import (
    LINE_COLOURS,
    Cell,
    Figure,
    Head,
    Missing,
    Table,
    View,
    bar,
    label,
    layout,
    scatter,
)
from sardonyx.report.content import Grid, Group, Row, Td, Text, Th, words
from sardonyx.runs.advice import headline, told
from sardonyx.runs.merging import came_and_went

#: Counters in the order in which they are stacked, with their names.
STATES = (
    ("pages_shared", "shared: merged frames"),
    ("pages_sharing", "sharing: saved"),
    ("ksm_zero_pages", "zero pages: saved"),
    ("pages_unshared", "unshared: stable, but alone"),
    ("pages_volatile", "volatile: changing, new or skipped"),
)
REASONS = (
    ("changed", "changed between snapshots"),
    ("equal_unmerged", "equal to another, not merged"),
    ("nearly_identical", "nearly identical"),
    ("unique", "no page is near"),
    ("not_compared", "not compared: over --memory"),
)
PAGES_OF_MIB = 256


def groups(answer: dict[str, Any]) -> list[Group]:
    """The sections of the report."""
    runs = [run for run in answer["runs"] if "cpu_share" in run["metrics"]]
    assumed = [str(row["parameter"]) for row in answer["assumed"]]
    opening: list[Any] = [Text(line) for line in headline(answer)]
    for asked in told(answer):
        opening.append(Text(asked.title))
        heads = [Th(asked.heads[0], "name"), *map(Th, asked.heads[1:])]
        rows = [Row([Td(row[0], head=True), *map(Td, row[1:])]) for row in asked.rows]
        opening += [Grid(heads, rows, tall=False), *map(Text, asked.notes)]
    found = [
        Group("answer", "The answer", inner=opening),
        Group("passes", "Pass by pass", [_states(runs), _savings(runs, assumed)], _kernel(answer)),
    ]
    if "what_if" in answer:
        found.append(Group("knobs", "What if", [_what_if(answer["what_if"], assumed)]))
    if "owners" in answer:
        found.append(Group("owners", "Owners apart", [_owners(answer["owners"])]))
    if "why_not" in answer:
        why = answer["why_not"]
        found.append(Group("why", "Why not", [_why(why), _near(why), _regions(why)]))
    if answer["assumed"]:
        keys = [
            Row([Td(row["parameter"], head=True), Td(f"{row['value']}"), words(row["why"])])
            for row in answer["assumed"]
        ]
        heads = [Th("key", "name"), Th("value"), Th("why", "name")]
        text = "Processor time and passes' duration rest on these; no source gives them."
        table = Grid(heads, keys, tall=False)
        found.append(Group("assumed", "Assumed", inner=[Text(text), table]))
    return found


def _kernel(answer: dict[str, Any]) -> list[Text]:
    notes = []
    for machine in answer["machines"]:
        if (note := came_and_went(machine)) is not None:
            notes.append(note)
        process = machine["process"]
        if process is not None:
            notes.append(
                f"{machine['name']}: {process['anonymous']:,} anonymous pages, "
                f"{process['offered']:,} offered for merging, {process['merged']:,} merged by the "
                f"kernel so far, {process['huge']:,} in huge pages, {process['forked']:,} one "
                "frame with a forked process already, "
                f"{process['shared_already']:,} of files or shared memory left out."
            )
        elif machine["not_in_image"]:
            notes.append(
                f"{machine['name']}: {machine['not_in_image']:,} pages are named but not held."
            )
    return list(map(Text, notes))


def _states(runs: list[dict[str, Any]]) -> Figure | Missing:
    head = Head("states", "Pages by state", "/sys/kernel/mm/ksm; PageForge Fig. 7")
    if not runs:
        return head.missing("No run merges: add ksm to --designs.")
    views = []
    for run in runs:
        x = list(range(1, len(run["passes"]) + 1))
        data = [
            scatter(
                "lines",
                name,
                x,
                [counters[key] for counters in run["passes"]],
                f"<b>{name}</b>, pass %{{x}}<br>%{{y:,}} pages",
                stackgroup="pages",
                line={"width": 0.5, "color": LINE_COLOURS[index]},
            )
            for index, (key, name) in enumerate(STATES)
        ]
        shape = layout("pages", xaxis={"title": {"text": "pass"}, "automargin": True})
        views.append(View(run["design"], data, shape))
    columns = (("design, pass", ""), *((name, "") for _, name in STATES))
    rows: list[list[Cell]] = [
        [f"{run['design']}, {number}", *(float(counters[key]) for key, _ in STATES)]
        for run in runs
        for number, counters in enumerate(run["passes"], 1)
    ]
    return head.figure(
        "The kernel's counters after each pass.",
        "What lies in sharing and in zero pages is saved. Unshared pages are compared in each "
        "pass; volatile ones changed, are new, or were skipped.",
        views,
        Table(columns, rows),
        choose="Design",
    )


def _savings(runs: list[dict[str, Any]], assumed: list[str]) -> Figure | Missing:
    head = Head("savings", "Savings over passes", "PageForge Fig. 7")
    if not runs:
        return head.missing("No run merges: add ksm to --designs.")
    data = []
    rows: list[list[Cell]] = []
    for index, run in enumerate(runs):
        saved = [
            (counters["pages_sharing"] + counters["ksm_zero_pages"]) / PAGES_OF_MIB
            for counters in run["passes"]
        ]
        data.append(
            scatter(
                "lines+markers",
                run["design"],
                list(range(1, len(saved) + 1)),
                saved,
                f"<b>{label(run['design'])}</b>, pass %{{x}}<br>%{{y:,.1f}} MiB",
                line={"color": LINE_COLOURS[index], "width": 2.4},
            )
        )
        metrics = run["metrics"]
        rows.append(
            [
                run["design"],
                metrics["saving"],
                metrics["saved_pages"] / PAGES_OF_MIB,
                metrics["saved_zero_pages"] / PAGES_OF_MIB,
                metrics["settled_after_passes"],
                metrics["settled_after_seconds"],
                metrics["settled_cpu_seconds"],
            ]
        )
    columns = (
        ("design", ""),
        ("saved", "%"),
        ("MiB", ""),
        ("of zeros, MiB", ""),
        ("settled after passes", ""),
        ("seconds", ""),
        ("processor seconds", ""),
    )
    shape = layout("MiB saved", xaxis={"title": {"text": "pass"}, "automargin": True})
    return head.figure(
        "Memory saved after each pass.",
        "Where the line is flat, merging has settled.",
        [View("saved", data, shape)],
        Table(columns, rows),
        assumed,
    )


def _what_if(tries: list[dict[str, Any]], assumed: list[str]) -> Figure:
    names = [", ".join(f"{k}={v}" for k, v in row["set"]) or "as asked" for row in tries]
    metrics = [row["metrics"] for row in tries]
    saving = [each["saving"] for each in metrics]
    # Bars are horizontal, because names of knobs are long.
    hover = "%{y}<br>%{x:.2%}"
    lying = bar("saved", saving, [], LINE_COLOURS[0], hover, orientation="h")
    data = [lying | {"y": list(map(label, names))}]
    shape = layout("", yaxis={"type": "category", "autorange": "reversed", "title": None})
    shape["xaxis"] = {"title": {"text": "saved"}, "tickformat": "~%", "automargin": True}
    rows: list[list[Cell]] = [
        [
            name,
            each["saving"],
            each["saved_zero_pages"] / PAGES_OF_MIB,
            each["settled_after_passes"],
            each["settled_after_seconds"],
            each["settled_cpu_seconds"],
            each["cpu_share"],
        ]
        for name, each in zip(names, metrics, strict=True)
    ]
    columns = (
        ("knob", ""),
        ("saved", "%"),
        ("of zeros, MiB", ""),
        ("settled after passes", ""),
        ("seconds", ""),
        ("processor seconds", ""),
        ("processor share", "%"),
    )
    head = Head("what-if", "One knob at a time", "Documentation/admin-guide/mm/ksm.rst")
    return head.figure(
        "Savings with one knob at another value.",
        "Some knobs change time alone, which stands in the table.",
        [View("saved", data, shape)],
        Table(columns, rows),
        assumed,
    )


def _owners(owners: dict[str, Any]) -> Figure:
    rows = owners["owners"]
    names = [row["owner"] for row in rows]
    saving = [row["metrics"]["saving"] for row in rows]
    data = [bar("saved", list(map(label, names)), saving, LINE_COLOURS[1], "%{x}<br>%{y:.2%}")]
    cells: list[list[Cell]] = [
        [
            row["owner"],
            float(row["machines"]),
            row["metrics"]["saving"],
            row["metrics"]["saved_pages"] / PAGES_OF_MIB,
        ]
        for row in rows
    ]
    cells.append(["all", None, owners["saving"], owners["saved_pages"] / PAGES_OF_MIB])
    columns = (("owner", ""), ("machines", ""), ("saved", "%"), ("MiB", ""))
    return Head("owners-apart", "Savings of each owner alone", "PageForge 7.2").figure(
        "Savings if only machines of one owner may merge with each other.",
        "The difference from merging all is what sharing between owners brings.",
        [View("saved", data, layout("saved", yaxis={"tickformat": "~%"}))],
        Table(columns, cells),
    )


def _why(why: dict[str, Any]) -> Figure:
    names = [name for _, name in REASONS]
    counts = [float(why[key]) for key, _ in REASONS]
    data = [bar("pages", names, counts, LINE_COLOURS[2], "%{x}<br>%{y:,} pages")]
    rows: list[list[Cell]] = [
        [name, count, count / max(why["pages"], 1)]
        for name, count in zip(names, counts, strict=True)
    ]
    return Head("reasons", "Pages that have not merged", "PageForge Fig. 7").figure(
        "Why pages have frames of their own at the end.",
        "Nearly identical pages differ from another in at most 64 bytes. They are found by an "
        "equal block of 256 bytes, so a page that differs in each block is not found.",
        [View("pages", data, layout("pages"))],
        Table((("reason", ""), ("pages", ""), ("of all", "%")), rows),
    )


def _near(why: dict[str, Any]) -> Figure | Missing:
    head = Head("near", "Where nearly identical pages differ", "")
    if not why["nearly_identical"]:
        return head.missing("No page is nearly identical to another.")
    blocks = [f"{at * 256:#05x}" for at in range(16)]
    data = [bar("bytes", blocks, why["near_by_offset"], LINE_COLOURS[3], "%{x}<br>%{y:,} bytes")]
    rows: list[list[Cell]] = [
        [pair["a"], pair["b"], float(pair["bytes"]), f"{pair['first']:#05x}"]
        for pair in why["examples"]
    ]
    by_bytes = ", ".join(
        f"{name} bytes: {count:,}"
        for name, count in zip(("1", "2-4", "5-16", "17-64"), why["near_by_bytes"], strict=True)
    )
    return head.figure(
        "Differing bytes by offset in the page.",
        f"Pages by how many bytes differ: {by_bytes}. The table has some pairs.",
        [View("bytes", data, layout("bytes that differ"))],
        Table((("page", ""), ("nearest", ""), ("bytes", ""), ("first", "")), rows),
    )


def _regions(why: dict[str, Any]) -> Figure | Missing:
    head = Head("regions", "Where unmerged pages lie", "")
    if not why["regions"]:
        return head.missing("All pages have merged.")
    names = [region["region"] for region in why["regions"]]
    counts = [float(region["unmerged"]) for region in why["regions"]]
    data = [bar("pages", list(map(label, names)), counts, LINE_COLOURS[4], "%{x}<br>%{y:,} pages")]
    rows: list[list[Cell]] = [
        [
            region["region"],
            float(region["unmerged"]),
            float(region["changed"]),
            float(region["near"]),
        ]
        for region in why["regions"]
    ]
    columns = (("region or file", ""), ("unmerged", ""), ("changed", ""), ("nearly identical", ""))
    return head.figure(
        "Unmerged pages by the file that is mapped there, or by 32 MiB of a machine.",
        "The same file in several machines is one region.",
        [View("pages", data, layout("pages"))],
        Table(columns, rows),
    )
