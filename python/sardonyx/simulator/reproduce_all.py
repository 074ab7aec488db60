"""``reproduce all``: the papers, integrity, the field and measured machines as one site.

Each part is a command of its own in a folder of its own. What is done is not done again: a folder
says of itself which command made it, and a part that was broken off goes on from the runs that its
sample has kept. Left out: agreement with DRAMsim3, which needs DRAMsim3 (docs/hosts/simulators.md).
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from sardonyx import _core, sizes
from sardonyx._core import SardonyxError
from sardonyx.answer import Answer
from sardonyx.api.asked import Reproduce
from sardonyx.api.command import ask
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.files import check_space, write_text
from sardonyx.report.content import Grid, Group, Row, Td, Text, Th, frame, heads_of_words
from sardonyx.report.markup import plain_page
from sardonyx.runs import origin, scheduler
from sardonyx.runs.scheduler import Watch
from sardonyx.simulator.kept import PAGE
from sardonyx.values import MisfitError, read, written

#: What a done part says of itself, in its folder.
DONE = "part.json"
#: The most that a part takes on the disk, in MiB: a report, and what its sample keeps.
ROOM = 30
#: Wishes that do nothing here.
WISHES = ("traces", "machine", "set", "limit", "warmup", "copies", "population", "sensitivity")


@dataclass(frozen=True, slots=True)
class Part:
    """A command, and how long it takes alone on two cores, in minutes, as its page has it."""

    name: str
    title: str
    command: str
    given: Mapping[str, Any]
    minutes: float

    def line(self, folder: Path) -> str:
        """It as it is typed."""
        parts = ["sardonyx", *self.command.split()]
        for name, value in self.given.items():
            if name in ("paper", "traces"):
                parts += [value] if isinstance(value, str) else value
                continue
            several = isinstance(value, list)
            said = [] if value is True else [",".join(value) if several else str(value)]
            parts += [f"--{name.replace('_', '-')}", *said]
        place = folder / self.name
        return shlex.join([*parts, *self.where(place)])

    def where(self, place: Path) -> list[str]:
        return ["--plot", str(place / PAGE)] if self.command == "curve" else ["--out", str(place)]


@dataclass(frozen=True, slots=True)
class Done:
    """What a part has left: the command without its place, its time and its figures."""

    asked: str
    #: The version and, in a checkout, the commit that did it.
    version: str
    seconds: float
    figures: tuple[tuple[str, str], ...]
    says: tuple[str, ...] = ()


def parts(asked: Reproduce) -> list[Part]:
    """All of them, in order."""
    quick = {"quick": True} if asked.quick else {}
    sample = {} if asked.cells is None else {"cells": asked.cells}
    seed = {"seed": asked.seed} if asked.seed else {}

    def paper(name: str, title: str, full: float, less: float, **more: Any) -> Part:
        given = {"paper": name, **quick, **more, **seed}
        return Part(name, title, "reproduce", given, less if asked.quick else full)

    found = [
        paper("esd", "ESD (HPCA 2023)", 240, 16, **sample),
        paper("sca", "SCA (HPCA 2018)", 180, 16, **sample),
        paper("easy-pm", "Easy-PM", 50, 10, **sample),
        paper("pageforge", "PageForge (MICRO 2017)", 120, 16, **sample),
        paper("recam", "ReCAM", 30, 4, **sample),
        paper("integrity", "Integrity", 60, 5),
        paper("compositions", "Which stacks survive", 60, 8),
        paper("field", "The field: logs, deduplications, integrity", 150, 15, **sample),
    ]
    for machine in ("cxl", "optane"):
        given = {"machine": machine, **({"requests": 5000} if asked.quick else {})}
        title = f"Agreement with what was measured: {machine}"
        found.append(Part(f"agreement-{machine}", title, "curve", given, 2))
    return found


def answer(asked: Reproduce, watch: Watch | None) -> Answer:
    """Every part that is not done, and the site."""
    for wish in WISHES:
        if getattr(asked, wish):
            raise SardonyxError(f"--{wish}: does nothing for all papers; leave it out")
    folder = asked.out or Path("results") / "all"
    if folder.exists() and not folder.is_dir():
        raise SardonyxError(f"--out {folder}: is a file; name a directory")
    wanted = parts(asked)
    known = {part.name: _done(part, folder) for part in wanted}
    left = [part for part in wanted if known[part.name] is None]
    check_space(folder, ROOM * 2**20 * max(1, len(left)))
    scheduler.tell(watch, _before(wanted, left, folder))
    for part in left:
        number = wanted.index(part) + 1
        rest = sum(each.minutes for each in left[left.index(part) :])
        scheduler.tell(
            watch,
            f"part {number} of {len(wanted)}: {part.title}, about {part.minutes:.0f} min of the "
            f"{rest:.0f} that are left",
        )
        known[part.name] = _carried_out(part, folder, asked.jobs, watch)
    rows = [_row(part, folder, known[part.name]) for part in wanted]
    write_text(folder / "index.html", _site(wanted, known, rows, folder))
    document = {"paper": "all", "site": str(folder / "index.html"), "parts": rows}
    found = Answer("reproduce", document, shown=rows)
    found.files.append(f"site: {folder / 'index.html'}")
    return found


def _before(wanted: Sequence[Part], left: Sequence[Part], folder: Path) -> str:
    """What stands before the work: how much is done, and what the rest takes."""
    minutes = sum(part.minutes for part in left)
    return (
        f"{len(wanted) - len(left)} of {len(wanted)} parts are done in {folder}; the rest takes "
        f"about {sizes.duration(60 * minutes)} on two idle cores and at most "
        f"{ROOM * len(left)} MiB; Ctrl-C keeps what is done, the same command goes on"
    )


def _asked(part: Part) -> str:
    return json.dumps([part.command, part.given], sort_keys=True)


def _version() -> str:
    return " ".join(filter(None, [_core.VERSION, origin.commit()]))


def _done(part: Part, folder: Path) -> Done | None:
    """What a part has left, if this version and commit did it as it is asked now."""
    place = folder / part.name
    try:
        found = read(Done, json.loads((place / DONE).read_text(encoding="utf-8")))
    except (OSError, ValueError, MisfitError):
        return None
    same = (found.asked, found.version) == (_asked(part), _version())
    return found if same and (place / PAGE).is_file() else None


def _carried_out(part: Part, folder: Path, jobs: int | None, watch: Watch | None) -> Done:
    place = folder / part.name
    (place / DONE).unlink(missing_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    where = {"plot": str(place / PAGE)} if part.command == "curve" else {"out": str(place)}
    began, line = time.monotonic(), origin.LINE.set(part.line(folder))
    try:
        found = ask(part.command, {**part.given, **where, "jobs": jobs}, watch)
    except SardonyxError as error:
        raise SardonyxError(f"{part.name}: {error}; what is done is kept") from error
    finally:
        origin.LINE.reset(line)
    drawn = tuple((each.key, each.title) for each in found.figures())
    says = tuple(map(str, found.as_json().get("verdict", ())))
    done = Done(_asked(part), _version(), time.monotonic() - began, drawn, says)
    write_text(place / DONE, json.dumps(written(done), indent=1) + "\n")
    return done


def _row(part: Part, folder: Path, done: Done | None) -> dict[str, Any]:
    assert done is not None, "every part is done by now"
    place = folder / part.name
    size = sum(each.stat().st_size for each in place.rglob("*") if each.is_file())
    row = {"name": part.name, "title": part.title, "command": part.line(folder), "bytes": size}
    told = asdict(done)
    return row | {"report": str(place / PAGE)} | {n: told[n] for n in ("seconds", "says")}


def _site(
    wanted: Sequence[Part],
    known: Mapping[str, Done | None],
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
) -> str:
    """Its first page: the parts, what each says, and the command of each figure."""
    heads = [*heads_of_words("part", "command"), Th("minutes"), Th("MiB")]
    table = [
        Row(
            [
                Td(row["title"], "name", to=f"{row['name']}/{PAGE}"),
                Td(row["command"], "name why", as_="code"),
                Td(f"{row['seconds'] / 60:.1f}"),
                Td(f"{row['bytes'] / 2**20:.1f}"),
            ]
        )
        for row in rows
    ]
    groups = [Group("parts", "Parts", inner=[Grid(heads, table, tall=False)])]
    for part in wanted:
        done = known[part.name]
        if done is None:
            continue
        figures = [
            Row([Td(title, "name", to=f"{part.name}/{PAGE}#{key}"),
                 Td(_drawn_by(part, folder, key), "name why", as_="code")])
            for key, title in done.figures
        ]  # fmt: skip
        said = [Text(each) for each in done.says]
        drawn = [Grid(heads_of_words("figure", "command"), figures)] if figures else []
        groups.append(Group(part.name, part.title, inner=[*said, *drawn]))
    return plain_page(
        heading="Everything, reproduced",
        source="Five papers, integrity, later rivals and measured machines.",
        facts=frame(origin.here(), _core.VERSION),
        notes=[],
        groups=groups,
        names={},
    )


def _drawn_by(part: Part, folder: Path, key: str) -> str:
    if part.command == "curve":
        plain = part.line(folder).partition(" --plot ")[0]
        return f"{plain} --figure {key}.pdf"
    return shlex.join(["sardonyx", "report", str(folder / part.name), "--figure", f"{key}.pdf"])


def tell(people: Console, answer: Answer) -> None:
    """The parts, their times and their sizes."""
    table = grid(*folded("part"), *numbers("minutes", "MiB"))
    for row in answer.shown:
        table.add_row(row["title"], f"{row['seconds'] / 60:.1f}", f"{row['bytes'] / 2**20:.1f}")
    people.print(table)
