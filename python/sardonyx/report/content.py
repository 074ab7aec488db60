"""What a page is made of, as values: paragraphs, tables, parts that fold. The templates beside
write the HTML, and escape every text.

Everything is in the one file: the style, the data and Plotly's script. A content security policy
in its head keeps it from ever fetching anything.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sardonyx.draw.figure import Figure, Missing

#: So many assumed parameters are named in place; more are folded away.
FEW = 4


@dataclass(frozen=True, slots=True)
class Td:
    """A cell. With ``head`` it names its row; ``number`` is what a download has for it.

    ``as_`` is code, strong or missing; ``rests`` are the assumed parameters behind the value.
    """

    text: str
    kind: str = ""
    head: bool = False
    number: str | None = None
    as_: str = ""
    swatch: str = ""
    rests: Sequence[str] = ()
    beside: str = ""
    small: str = ""
    listed: Sequence[str] = ()


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

    block: ClassVar[str] = "grid"
    heads: Sequence[Th]
    rows: Sequence[Row]
    name: str = ""
    kind: str = ""
    tall: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, with code at its end if there is any."""

    block: ClassVar[str] = "text"
    text: str
    kind: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines as they are."""

    block: ClassVar[str] = "verbatim"
    text: str


@dataclass(frozen=True, slots=True)
class Folded:
    """What stands behind a line that opens it."""

    block: ClassVar[str] = "folded"
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

    block: ClassVar[str] = "timeline"
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
    #: What stands before the figures.
    inner: Sequence[Block] = field(default=())


def words(text: str) -> Td:
    """A cell of text."""
    return Td(text, "name")


def heads_of_words(*texts: str) -> list[Th]:
    """Headings over text."""
    return [Th(text, "name") for text in texts]


def written(template: str, **context: Any) -> str:
    """The page of a template."""
    text = _environment().get_template(template).render(style=resource("report.css"), **context)
    return text.rstrip("\n") + "\n"


def resource(name: str) -> Markup:
    """A file beside the templates, as it is."""
    return Markup(files("sardonyx.report").joinpath(name).read_text(encoding="utf-8"))


def packed(name: str) -> str:
    """A gzipped file beside the templates, unpacked."""
    return gzip.decompress(files("sardonyx.report").joinpath(name).read_bytes()).decode()


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(str(files("sardonyx.report").joinpath("templates"))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    globals_: Mapping[str, Any] = {"few": FEW}
    made.globals.update(globals_)
    return made
