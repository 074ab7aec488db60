"""What a page is made of, as values: paragraphs, tables, what folds. ``markup`` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sardonyx.draw.figure import Cell, Figure, Missing
from sardonyx.runs.measures import written
from sardonyx.runs.origin import Origin
from sardonyx.runs.spread import shown

#: This many assumed parameters are named in place; more are folded away.
FEW = 4


@dataclass(frozen=True, slots=True)
class Td:
    """A cell. With ``head`` it names its row; ``number`` is what a download has for it, in a column
    of its ``unit``, and ``half`` half of its interval.

    ``as_`` is code, strong or missing; ``rests`` are the assumed parameters behind the value.
    """

    text: str
    kind: str = ""
    head: bool = False
    number: str | None = None
    unit: str = ""
    half: str | None = None
    as_: str = ""
    swatch: str = ""
    rests: Sequence[str] = ()
    beside: str = ""
    small: str = ""
    listed: Sequence[str] = ()
    #: Where it leads.
    to: str = ""


@dataclass(frozen=True, slots=True)
class Th:
    """The heading of a column."""

    text: str
    kind: str = ""
    title: str = ""
    sign: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row."""

    cells: Sequence[Td]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; ``name`` is that of its download, a ``tall`` one scrolls."""

    heads: Sequence[Th]
    rows: Sequence[Row]
    name: str = ""
    kind: str = ""
    tall: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, with code at its end if there is any."""

    text: str
    kind: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Folded:
    """What stands behind a line that opens it."""

    summary: str
    inside: Sequence[Block]
    open: bool = False


@dataclass(frozen=True, slots=True)
class Guide:
    """A line of a timeline, and its name."""

    y: int
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An event of a timeline: a circle, or a line downwards from ``y``."""

    kind: str
    x: int
    y: int
    title: str
    radius: int = 0
    here: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events from left to right; sizes are pixels."""

    width: int
    height: int
    left: int
    bottom: int
    guides: Sequence[Guide]
    marks: Sequence[Mark]


Block: TypeAlias = Text | Verbatim | Folded | Grid | Timeline


@dataclass(frozen=True, slots=True)
class Group:
    """A section of a page."""

    key: str
    title: str
    figures: Sequence[Figure | Missing] = ()
    #: Blocks before the figures.
    inner: Sequence[Block] = field(default=())


def frame(origin: Origin, version: str) -> list[tuple[str, str]]:
    """What the head of every page ends with: command, version and commit, the document's date."""
    commit = origin.said.get("commit")
    built = f"{version} ({commit[:12]})" if commit else version
    date = origin.said.get("date", "")[:10]
    known = (("command", origin.said.get("command", "")), ("Sardonyx", built), ("date", date))
    return [(name, said) for name, said in known if said]


def words(text: str) -> Td:
    """A cell of text."""
    return Td(text, "name")


def heads_of_words(*texts: str) -> list[Th]:
    """Headings over text."""
    return [Th(text, "name") for text in texts]


#: Units as a download names them: its numbers are not scaled for people.
UNITS = {"%": "share", "x": "×", "nj": "nJ", "number": ""}


def cell(value: Cell, unit: str, half: float | None = None, **more: Any) -> Td:
    """A cell of a table of figures, with half of its interval if there is one."""
    if isinstance(value, str):
        return Td(value, head=True)
    if value is None:
        return Td("–", number="", **more)
    small = unit == "%" and 0 < abs(value) < 0.01
    return Td(
        f"{100 * value:.3g} %" if small else written(value, unit),
        number=repr(value),
        unit=UNITS.get(unit, unit),
        half=None if half is None else repr(half),
        beside=shown(half, value, unit),
        **more,
    )


def figures_of(figure: Figure) -> Grid:
    """The figures behind a plot."""
    units = [unit for _, unit in figure.table.columns]
    return Grid(
        [Th(name) for name, _ in figure.table.columns],
        [
            Row([cell(value, unit) for value, unit in zip(row, units, strict=True)])
            for row in figure.table.rows
        ],
        figure.key,
    )
