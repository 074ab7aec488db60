"""A page's figures: which places of its text are figures, and what each is tied to.

The ties of ``docs/X.md`` are in ``docs/figures/X.toml``; docs/architecture.md says what may stand
there. A place is found by the words around it, so a page needs no marks. Nothing here runs a
command.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: What stands in a slot for a figure that nothing checks: the host's own, or one that no command
#: says in JSON.
HOST, UNBOUND = "host", "unbound"
NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?"
#: A figure with words, as ``8.87 M`` or ``lost (12)``: up to what follows it in the template.
WORDS = r"[^|\n]+?"
KEYS = {
    "commands": {"run", "quick", "minutes", "width", "before", "hidden"},
    "text": {"says", "under", "command", "why"},
    "table": {"head", "under", "cells", "rows", "command", "why"},
    "output": {"command", "head", "why"},
}


class Wrong(Exception):
    """A tie that cannot hold, with its place."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a page. ``shown`` is as the page has it, ``run`` in full, ``before`` what has
    to be run first in the same folder. ``width`` is the terminal's, in characters; ``minutes`` are
    of processor time, about.
    """

    name: str
    shown: str
    run: str
    quick: bool
    minutes: float
    width: int
    before: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """What decides the answer."""
        return (*self.before, self.run, str(self.width))


@dataclass(frozen=True, slots=True)
class Slot:
    """A figure's place in a template: an expression, and how its value is written."""

    expression: str
    spec: str

    @property
    def kind(self) -> str:
        return self.expression if self.expression in (HOST, UNBOUND) else "bound"

    @property
    def pattern(self) -> str:
        numeric = self.kind != "bound" or self.spec[-1:] in ("d", "e", "f", "g")
        return f"({NUMBER})" if numeric else f"({WORDS})"


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """One place of a page: from ``start`` to ``end`` its text says ``said``.

    ``command`` is the name of the command of a figure that is not bound, ``names`` what its
    expression may use beside the page's names.
    """

    start: int
    end: int
    said: str
    slot: Slot
    command: str = ""
    why: str = ""
    names: Mapping[str, Any] = field(default_factory=dict)
    #: Lines of the terminal, beginning with this one.
    head: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page and what its figures are tied to."""

    path: Path
    text: str
    commands: Mapping[str, Command]
    names: Mapping[str, str]
    figures: Sequence[Figure]

    def needed(self) -> list[Command]:
        """The commands that bound figures rest on."""
        bound = [figure for figure in self.figures if figure.slot.kind == "bound"]
        asked = [figure.slot.expression for figure in bound] + list(self.names.values())
        used = {word for text in asked for word in re.findall(r"\w+", text)}
        used |= {figure.command for figure in bound}
        return [command for name, command in self.commands.items() if name in used]

    def line(self, figure: Figure) -> int:
        return self.text.count("\n", 0, figure.start) + 1

    def place(self, figure: Figure) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line(figure)}"

    def replaced(self, values: Mapping[Figure, str]) -> str:
        """The text with these figures in their places."""
        text = self.text
        for figure in sorted(values, key=lambda figure: -figure.start):
            text = text[: figure.start] + values[figure] + text[figure.end :]
        return text


def sidecars() -> list[Path]:
    return sorted((ROOT / "docs" / "figures").glob("*.toml"))


def page_of(sidecar: Path) -> Path:
    """The page that a file of ties is for: it says which, or is named as a page of docs."""
    named = re.search(r'^page = "(.*)"$', sidecar.read_text(), re.MULTILINE)
    return ROOT / (named[1] if named else f"docs/{sidecar.stem}.md")


def pieces(template: str) -> Iterator[str | Slot]:
    """The words of a template and its slots, ``{expression:format}``."""
    at = 0
    while (begin := template.find("{", at)) >= 0:
        if begin > at:
            yield template[at:begin]
        depth, quote, colon, here = 0, "", -1, begin
        while True:
            here += 1
            if here >= len(template):
                raise Wrong(f"a brace is not closed in: {template}")
            sign = template[here]
            if quote:
                quote = "" if sign == quote else quote
            elif sign in "'\"":
                quote = sign
            elif sign in "([{":
                depth += 1
            elif depth and sign in ")]}":
                depth -= 1
            elif sign == ":" and not depth:
                colon = here if colon < 0 else colon
            elif sign == "}":
                break
        end = here if colon < 0 else colon
        yield Slot(template[begin + 1 : end].strip(), template[end + 1 : here])
        at = here + 1
    if at < len(template):
        yield template[at:]


def find(
    template: str, text: str, start: int, end: int, whole: bool = False
) -> list[tuple[int, int, Slot]]:
    """Where the template's slots lie in a part of the text, which must have it exactly once, or be
    it as a whole.
    """
    parts = list(pieces(template))
    pattern = ""
    if whole and len(parts) == 1 and isinstance(parts[0], Slot) and parts[0].kind != "bound":
        return [(start, end, parts[0])]
    for part in parts:
        if isinstance(part, Slot):
            pattern += part.pattern
        else:
            words = re.split(r"\s+", part)
            pattern += r"\s+".join(re.escape(word) for word in words)
    slots = [part for part in parts if isinstance(part, Slot)]
    if not slots:
        raise Wrong(f"no figure in: {template}")
    if isinstance(parts[0], Slot):
        pattern = r"(?<![\w.,-])" + pattern
    if whole:
        pattern = rf"\A{pattern}\Z"
    elif isinstance(parts[-1], Slot):
        if WORDS in parts[-1].pattern:
            raise Wrong(f"words have to follow the last figure of: {template}")
        pattern += r"(?!\d)"
    part = text[start:end] if whole else text
    low, high = (0, len(part)) if whole else (start, end)
    found = list(re.compile(pattern).finditer(part, low, high))
    if len(found) != 1:
        raise Wrong(f"{'not' if not found else f'{len(found)} times'} in the page: {template}")
    shift = start - low
    spans = [found[0].span(n) for n in range(1, len(slots) + 1)]
    return [(a + shift, b + shift, slot) for (a, b), slot in zip(spans, slots, strict=True)]


def plain(cell: str) -> str:
    return cell.strip().replace("`", "").replace("**", "")


def section(text: str, heading: str) -> tuple[int, int]:
    """From after the heading to the next one that is not below it."""
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    if not found:
        raise Wrong(f"no heading: {heading}")
    after = re.compile(rf"^#{{1,{len(found[1])}}} ", re.MULTILINE).search(text, found.end())
    return found.end(), after.start() if after else len(text)


def cells_of(line: str, start: int) -> list[tuple[str, int, int]]:
    """A row's cells, each with where it lies."""
    bars = [found.start() for found in re.finditer(r"(?<!\\)\|", line)]
    return [(line[a + 1 : b], start + a + 1, start + b) for a, b in pairwise(bars)]


def table_figures(text: str, tie: Mapping[str, Any], start: int, end: int) -> Iterator[Figure]:
    """The figures of a table: of each row, in each column that has a template."""
    heads = [
        found
        for found in re.compile(r"^ *\|.*\n *\|[ :|-]+\|$", re.MULTILINE).finditer(text, start, end)
        if plain(cells_of(found[0].split("\n")[0], 0)[0][0]) == tie["head"]
    ]
    if len(heads) != 1:
        raise Wrong(f"{len(heads)} tables whose first heading is: {tie['head']}")
    columns = [plain(cell) for cell, _, _ in cells_of(heads[0][0].split("\n")[0], 0)]
    templates: dict[str, str] = tie["cells"]
    if missing := [name for name in templates if name != "*" and name not in columns]:
        raise Wrong(f"the table has no column: {missing[0]}")
    at, rows = heads[0].end() + 1, 0
    while text[at : at + 8].lstrip(" ").startswith("|"):
        line = text[at : text.find("\n", at)]
        cells = cells_of(line, at)
        labels = [plain(cell) for cell, _, _ in cells]
        at += len(line) + 1
        if not re.fullmatch(tie.get("rows", ".*"), labels[0]):
            continue
        rows += 1
        for column, (cell, a, b) in list(zip(columns, cells, strict=False))[1:]:
            template = templates.get(column, templates.get("*", ""))
            if not template or not cell.strip():
                continue
            a, b = a + len(cell) - len(cell.lstrip()), b - len(cell) + len(cell.rstrip())
            try:
                places = find(template, text, a, b, whole=True)
            except Wrong as wrong:
                raise Wrong(f"row {labels[0]}, column {column}: {wrong}") from wrong
            names = {"row": labels[0], "column": column, "labels": labels}
            for low, high, slot in places:
                yield Figure(
                    low,
                    high,
                    text[low:high],
                    slot,
                    tie.get("command", ""),
                    tie.get("why", ""),
                    names,
                )
    if not rows:
        raise Wrong(f"no row of the table {tie['head']} is named {tie.get('rows', '')}")


def output_figure(text: str, tie: Mapping[str, Any]) -> Figure:
    """The lines of a block that a terminal has shown, from a heading on."""
    found = re.search(rf"^{re.escape(tie['head'])}.*?(?=\n```)", text, re.MULTILINE | re.DOTALL)
    if not found:
        raise Wrong(f"no line of a block begins with: {tie['head']}")
    why = tie.get("why", "")
    slot = Slot(UNBOUND if why else "output", "")
    return Figure(*found.span(), found[0], slot, tie["command"], why, head=tie["head"])


def figures_of(
    text: str, kind: str, tie: Mapping[str, Any], commands: Mapping[str, Command]
) -> Iterator[Figure]:
    """The figures that one tie names."""
    if unknown := set(tie) - KEYS[kind]:
        raise Wrong(f"[[{kind}]] takes no {unknown.pop()}")
    if (name := tie.get("command")) and name not in commands:
        raise Wrong(f"no command: {name}")
    start, end = section(text, tie["under"]) if "under" in tie else (0, len(text))
    if kind == "output":
        yield output_figure(text, tie)
    elif kind == "table":
        yield from table_figures(text, tie, start, end)
    else:
        for low, high, slot in find(tie["says"], text, start, end):
            command, why = tie.get("command", ""), tie.get("why", "")
            yield Figure(low, high, text[low:high], slot, command, why)


def tied(text: str, ties: Mapping[str, Any], commands: Mapping[str, Command]) -> list[Figure]:
    """All figures, in the order of the page; an error names every tie that does not hold."""
    found: list[Figure] = []
    wrong: list[str] = []
    for kind in ("text", "table", "output"):
        for tie in ties.get(kind, []):
            try:
                found += figures_of(text, kind, tie, commands)
            except Wrong as error:
                wrong.append(str(error))
            except KeyError as error:
                wrong.append(f"a [[{kind}]] without {error}")
    found.sort(key=lambda figure: figure.start)
    for one, other in pairwise(found):
        if other.start < one.end:
            line = text.count("\n", 0, other.start) + 1
            wrong.append(f"line {line} is tied twice: {other.said}")
    if wrong:
        raise Wrong("\n  ".join(wrong))
    return found


def words_of(page: str) -> str:
    """A page's words with its commands each on one line."""
    return re.sub(r"[\s\\`]+", " ", page)


def commands_of(ties: Mapping[str, Any], text: str) -> dict[str, Command]:
    found = {}
    words = words_of(text)
    for name, tie in ties.get("commands", {}).items():
        if unknown := set(tie) - KEYS["commands"]:
            raise Wrong(f"[commands.{name}] takes no {unknown.pop()}")
        shown = " ".join(tie["run"].split())
        if "hidden" not in tie and words_of(shown) not in words:
            raise Wrong(f"not in the page: {shown}")
        run = shown
        for short, full in ties.get("short", {}).items():
            run = re.sub(rf"(?<!\S){re.escape(short)}(?!\S)", full, run)
        shlex.split(run)
        found[name] = Command(
            name,
            shown,
            run,
            tie.get("quick", False),
            float(tie.get("minutes", 0)),
            tie.get("width", 120),
            tuple(tie.get("before", ())),
        )
    return found


def read(sidecar: Path, page: Path | None = None) -> Page:
    """A page with its figures; ``Wrong`` says which tie does not hold."""
    path = page or page_of(sidecar)
    try:
        ties = tomllib.loads(sidecar.read_text())
        text = path.read_text()
        if unknown := set(ties) - {"page", "commands", "short", "names", "text", "table", "output"}:
            raise Wrong(f"no such part: {unknown.pop()}")
        commands = commands_of(ties, text)
        figures = tied(text, ties, commands)
    except (OSError, tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise Wrong(f"docs/figures/{sidecar.name}: {error!r}") from error
    except Wrong as wrong:
        raise Wrong(f"docs/figures/{sidecar.name}: {wrong}") from wrong
    return Page(path, text, commands, ties.get("names", {}), figures)
