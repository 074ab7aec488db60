"""``sardonyx crash RECORDING``: the program's own recovery, run on what each cut could leave.

A thin call of ``crates/persist``; docs/crash-real.md explains it. Left out: everything that
computes.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    CHECK_FAILED,
    check_json_target,
    check_target,
    err,
    for_people,
    note,
    write_json,
)
from sardonyx.cli.progress import watched
from sardonyx.files import write_text
from sardonyx.report.recovery import render
from sardonyx.runs.recoveries import Question, crash_real, lint, words

#: Suspects and causes that people are shown; the JSON has all.
SHOWN = 3
#: Cuts below each design, and after one in how many the recovery is run.
CUTS = 200
EVERY = 4


@dataclass(frozen=True)
class Asked:
    """The options of ``sardonyx crash RECORDING``."""

    recording: str
    pool: Path | None
    recover: str | None
    ok: str
    platform: str
    tear: str
    start: str | None
    budget: float
    time_limit: float | None
    memory_limit: int
    replay: str | None
    keep: Path | None
    seed: int
    jobs: int
    source: bool
    json_to: str | None
    designs: tuple[str, ...]
    html: Path | None
    lint: bool
    machine: str


def statuses(text: str) -> tuple[int, ...]:
    """Exit statuses from ``0,3``; 0 is always one."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and int(part) < 256 for part in parts):
        raise _core.SardonyxError(f"--ok {text}: give exit statuses, as in 0,3")
    return tuple(sorted({0, *map(int, parts)}))


def crash_recording(asked: Asked) -> None:
    """Run the recovery on every image that a cut of the recording could leave."""
    if asked.lint and asked.pool is not None:
        _lint(asked)
        return
    if asked.pool is None or asked.recover is None:
        missing = "--pool FILE" if asked.pool is None else "--recover 'CMD {pool}'"
        raise _core.SardonyxError(
            f"{asked.recording}: is a recording, so say also {missing}: the mapped file, and the "
            "command that opens a copy of it and checks what it finds"
        )
    check_json_target(asked.json_to, [asked.recording])
    if asked.html is not None:
        check_target(asked.html, [asked.recording], "--html ")
    question = Question(
        recording=asked.recording,
        pool=str(asked.pool),
        recover=words(asked.recover),
        ok=statuses(asked.ok),
        time_limit=asked.time_limit,
        memory_limit=asked.memory_limit,
        platform=asked.platform,
        tear=asked.tear == "words",
        start=asked.start,
        budget=asked.budget,
        seed=asked.seed,
        threads=asked.jobs,
        replay=asked.replay,
        keep=str(asked.keep) if asked.keep else None,
        source=asked.source,
    )
    if asked.keep is not None and asked.keep.exists() and any(asked.keep.iterdir()):
        raise _core.SardonyxError(f"--keep {asked.keep}: is not empty; name another folder")
    found = watched(
        err, Path(asked.recording).name, lambda p: crash_real(question, p), unit="recoveries"
    )
    for cause in found.get("causes", ()):
        cause["replay"] = _command(asked, cause["image"])
    people = for_people(asked.json_to)
    if "replayed" in found:
        _show_replayed(people, found)
    else:
        _show(people, found)
    if asked.designs and "replayed" not in found:
        found["below"] = below(asked, question, found)
        _show_designs(people, found["below"], asked.machine)
    if asked.html is not None and "replayed" not in found:
        write_text(asked.html, render(found, _core.VERSION))
    write_json(asked.json_to, {"sardonyx": _core.VERSION} | found)
    if found["fails"]:
        raise typer.Exit(CHECK_FAILED)


def below(asked: Asked, question: Question, found: dict[str, Any]) -> list[dict[str, Any]]:
    """What of the pool can be read after a cut below each design, and what the recovery does."""
    told: dict[str, list[dict[str, Any]]] = json.loads(
        _core.crash_designs(
            question.model_dump_json(),
            (found["start"]["row"], found["time_limit_s"]),
            asked.machine,
            list(asked.designs),
            (CUTS, EVERY),
        )
    )
    return told["designs"]


def _show_designs(people: Console, designs: list[dict[str, Any]], machine: str) -> None:
    first = designs[0]
    tried = first["recovered"][0][0]
    people.print(
        f"\nThe pool below a design of {machine}, the program knowing nothing of counters, and "
        f"with its {first['marks']:,} commit stores marked: of {first['plain']['cuts']} cuts "
        f"those with unreadable lines, how many of {first['plain']['lines']:,} lines at most, and "
        f"after how many of {tried} cuts the recovery copes"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("design", "cuts", "lines", "copes", "marked: cuts", "lines", "copes",
                   "writes", "time"):  # fmt: skip
        table.add_column(column, justify="left" if column == "design" else "right")
    for one in designs:
        cells = []
        for run, (_, coped) in zip((one["plain"], one["marked"]), one["recovered"], strict=True):
            cells += [run["cuts_with_unreadable"], run["most_unreadable"], coped]
        for key in ("writes", "nanoseconds"):
            plain = one["plain"][key]
            cells.append(f"{one['marked'][key] / plain - 1:+.1%}" if plain else "")
        table.add_row(one["design"], *map(str, cells))
    people.print(table)


def _lint(asked: Asked) -> None:
    """What the recording shows without running anything."""
    check_json_target(asked.json_to, [asked.recording])
    found = lint(asked.recording, str(asked.pool), asked.source, asked.machine)
    people = for_people(asked.json_to)
    for line in found["notes"]:
        note(line)
    people.print(
        f"{found['stores']:,} stores, {found['flushes']:,} flushes and {found['fences']:,} fences "
        f"of {found['pool']}"
    )
    if not found["findings"]:
        people.print(Text("nothing to find fault with", style="green"))
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("what")
        table.add_column("times", justify="right")
        table.add_column("where")
        table.add_column("in")
        for finding in found["findings"]:
            through = f" (in {finding['through']})" if finding["through"] else ""
            table.add_row(
                finding["meaning"],
                f"{finding['count']:,}",
                finding["place"],
                ((finding["frame"] or {}).get("function") or "") + through,
            )
        people.print(table)
    for name, cost in found.get("cost_ns", {}).items():
        if found["idle"][name]:
            people.print(
                f"{found['idle'][name]:,} {name} that do nothing cost {cost / 1e3:,.1f} of "
                f"{found['took_ns'] / 1e3:,.1f} us on {asked.machine} without encryption"
            )
    if not found["has_places"]:
        note("the recording has no places in the program; record with --pc to see lines of code")
    write_json(asked.json_to, {"sardonyx": _core.VERSION} | found)


def _command(asked: Asked, image: str) -> str:
    """The command that runs the recovery on one image."""
    parts = ["sardonyx", "crash", asked.recording, "--pool", str(asked.pool)]
    parts += ["--recover", str(asked.recover)]
    if asked.ok != "0":
        parts += ["--ok", asked.ok]
    if asked.platform != "adr":
        parts += ["--platform", asked.platform]
    return shlex.join([*parts, "--replay", image])


def _show_replayed(people: Console, found: dict[str, Any]) -> None:
    people.print(
        Text.assemble(
            ("fails" if found["fails"] else "passes", "red" if found["fails"] else "green"),
            f": {found['ended']} at cut {found['cut']['number']} (row {found['cut']['row']:,})",
        ),
        soft_wrap=True,
    )
    if found["said"]:
        people.print(found["said"], soft_wrap=True)


def _show(people: Console, found: dict[str, Any]) -> None:
    for line in found["notes"]:
        note(line)
    start = found["start"]
    where = f"mark {start['mark']}" if start["mark"] else f"row {start['row']:,}"
    people.print(
        f"{found['images']:,} images at {found['cuts_tried']:,} of {found['cuts']:,} cuts from "
        f"{where} on, {found['recoveries']:,} recoveries in {found['seconds']:.1f} s "
        f"({found['recoveries_per_second']:.0f} a second, {found['undisturbed_s'] * 1e3:.0f} ms "
        "alone)",
        soft_wrap=True,
    )
    if not found["finished"]:
        left = ", ".join(found["passes_left"])
        people.print(f"not all was tried: of the plan there is left: {left}", soft_wrap=True)
    if found["unreduced"]:
        kinds = f"{found['unreduced']} kind{'s' if found['unreduced'] > 1 else ''}"
        people.print(f"{kinds} of violations not brought down to few lines: --budget ended first")
    if not found["violations"]:
        people.print(Text("no violation", style="green"))
        return
    count = found["violations"]
    people.print(
        Text.assemble(
            (f"{count:,} violation{'s' if count > 1 else ''}", "red"),
            f", the first after {found['first_violation_s']:.1f} s",
        ),
    )
    if found["has_places"] and found["suspects"]:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("look here first", "in", "because it was"):
            table.add_column(column)
        for suspect in found["suspects"][:SHOWN]:
            frame = suspect["frame"]
            function = (frame or {}).get("function") or ""
            through = f", in {suspect['through']}" if suspect["through"] else ""
            table.add_row(suspect["place"], function + through, suspect["role"])
        people.print(table)
    elif not found["has_places"]:
        note("the recording has no places in the program; record with --pc to see lines of code")
    for number, cause in enumerate(found["causes"][:SHOWN], 1):
        people.print()
        _show_cause(people, number, cause)
    more = len(found["causes"]) - SHOWN
    if more > 0:
        people.print(f"\nand {more} more; --json has all")


def _show_cause(people: Console, number: int, cause: dict[str, Any]) -> None:
    people.print(
        Text.assemble(
            (f"{number}. ", "bold"), cause["summary"], f" ({cause['violations']} violations)"
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
                f"   {role}: {store['bytes']} bytes at pool offset {store['offset']:#x}, "
                f"row {store['row']:,}{': ' + calls if calls else ''}",
                soft_wrap=True,
            )
    cut = cause["cut"]
    said = cause["said"].splitlines()
    people.print(
        f"   cut {cut['number']} at row {cut['row']:,}"
        + (f" after mark {cut['mark']}" if cut["mark"] else "")
        + f": {cause['ended']}"
        + (f": {said[0]}" if said else ""),
        soft_wrap=True,
    )
    people.print(f"   {cause['replay']}", soft_wrap=True)


def is_recording(workloads: list[str]) -> bool:
    """Whether the one argument is a file and no program of ours."""
    return len(workloads) == 1 and Path(workloads[0]).is_file()


def given_here(options: dict[str, Any]) -> list[str]:
    """Those of a recording's options that were given."""
    return [name for name, value in options.items() if value is not None]
