"""Printed tables for papers and programs: LaTeX with booktabs, Markdown, and CSV of numbers.

A table is taken as a command prints it, before it is laid out. Cells are read by what they say: a
number, its unit, a †, half an interval, on how many of how many it holds. Units go into the heads.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table as Printed
from rich.text import Text

from sardonyx._core import SardonyxError
from sardonyx.files import write_text

#: Columns of a terminal in which every table is whole.
WIDE = 1000
#: Units that are one another's multiples: the one that CSV has, and how many of it they are.
UNITS: dict[str, tuple[str, float]] = {
    **{unit: ("ns", size) for unit, size in (("ns", 1), ("µs", 1e3), ("ms", 1e6))},
    **{unit: ("nJ", size) for unit, size in (("nJ", 1), ("µJ", 1e3), ("mJ", 1e6), ("J", 1e9))},
    **{unit: ("", size) for unit, size in (("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9))},
    **{unit: ("s", size) for unit, size in (("s", 1), ("min", 60), ("h", 3600))},
    **{f"{size}iB": ("B", 1 << 10 * at) for at, size in enumerate("KMGT", 1)},
    **{f"{size}B": ("B", 1 << 10 * at) for at, size in enumerate("KMG", 1)},  # ``caveats.size``
    "B": ("B", 1),
}
_N = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
_CELL = re.compile(
    rf"(?P<bound>[≤≥<>≈])?\s*(?P<number>{_N})\s?(?P<unit>[A-Za-zµ%×][\w/µ²]*)?\s*(?P<mark>†?)\s*"
    rf"(?:±\s*(?P<half>{_N})\s?(?P<of>%|pp)?)?\s*(?:\((?P<on>\d+) of (?P<all>\d+)\))?"
)
_SHARE = re.compile(rf"(?P<number>{_N})(?: of |/)(?P<all>{_N})")
#: Cells that say that there is nothing.
NOTHING = ("", "–", "-")
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "<": "$<$", ">": "$>$", "|": r"\textbar{}", '"': "''",
        "×": r"$\times$", "†": r"$^\dagger$", "±": r"$\pm$", "≤": r"$\le$", "≥": r"$\ge$",
        "≈": r"$\approx$", "→": r"$\to$", "µ": r"$\mu$", "²": "$^2$", "–": "--", "\u2212": "$-$",
        "↑": r"$\uparrow$", "↓": r"$\downarrow$", "\u2011": "-", "\u200b": "{}", "\u00a0": "~",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A head, the texts below it, and whether they are numbers."""

    head: str
    cells: Sequence[str]
    numbers: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was printed, with the lines that stood below it; rows before ``rules`` end a
    part.
    """

    title: str
    columns: Sequence[Column]
    rules: Sequence[int] = ()
    notes: list[str] = field(default_factory=list)

    def latex(self) -> str:
        """It as a ``tabular`` with the rules of booktabs, its notes as comments."""
        columns = [one_unit(each) for each in self.columns]
        shape = "".join("r" if each.numbers else "l" for each in columns)
        heads = " & ".join(latex(each.head) for each in columns)
        lines = [f"% {note}" for note in ([self.title] if self.title else []) + self.notes]
        lines += [f"\\begin{{tabular}}{{{shape}}}", r"\toprule"]
        lines += [f"{heads} \\\\", r"\midrule"] if any(each.head for each in columns) else []
        for at, row in enumerate(zip(*(each.cells for each in columns), strict=True)):
            cells = (latex(c, each.numbers) for c, each in zip(row, columns, strict=True))
            lines.append(" & ".join(cells) + r" \\")
            lines += [r"\midrule"] if at + 1 in self.rules else []
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def markdown(self) -> str:
        """It as GitHub's Markdown has it, its notes below."""
        columns = [one_unit(each) for each in self.columns]
        rows = [[each.head for each in columns]]
        rows += [["--:" if each.numbers else "---" for each in columns]]
        rows += map(list, zip(*(each.cells for each in columns), strict=True))
        rows[:1] = [[_markdown(cell) for cell in rows[0]]]
        rows[2:] = [[_markdown(cell) for cell in row] for row in rows[2:]]
        table = [f"| {' | '.join(row)} |" for row in rows]
        parts = [f"**{_markdown(self.title)}**"] * bool(self.title) + ["\n".join(table)]
        return "\n\n".join([*parts, *map(_markdown, self.notes)]) + "\n"

    def csv(self) -> str:
        """Its numbers, one a cell and all of a column in one unit, which is in the head; a name
        stands in each of its rows.
        """
        columns = [part for at, each in enumerate(self.columns) for part in _apart(each, at == 0)]
        out = StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(_inert(head) for head, _ in columns)
        rows.writerows(zip(*(cells for _, cells in columns), strict=True))
        return out.getvalue()


#: How tables are written, by the ending of a file's name.
FORMS: dict[str, Callable[[Table], str]] = {
    ".tex": Table.latex,
    ".md": Table.markdown,
    ".csv": Table.csv,
}


def form_of(path: Path, option: str = "") -> Callable[[Table], str]:
    """How a file of this name has tables."""
    if path.suffix not in FORMS:
        raise SardonyxError(f"{option}{path}: its name ends in none of {', '.join(FORMS)}")
    return FORMS[path.suffix]


def write(tables: Sequence[Table], path: Path) -> list[str]:
    """Write tables to a file, CSV of the second and further ones to ``NAME-2.csv`` and so on; the
    answer is the files' names.
    """
    form = form_of(path)
    if not tables:
        raise SardonyxError(f"{path}: this answer has no table")
    if path.suffix != ".csv":
        write_text(path, "\n".join(map(form, tables)))
        return [str(path)]
    names = [path, *(path.with_stem(f"{path.stem}-{at}") for at in range(2, len(tables) + 1))]
    for name, table in zip(names, tables, strict=True):
        write_text(name, form(table))
    return list(map(str, names))


def taken(tell: Callable[[Any], None]) -> list[Table]:
    """The tables that ``tell`` prints on a console, each with the lines below it."""
    return taken_whole(tell)[1]


def taken_whole(tell: Callable[[Any], None]) -> tuple[list[str], list[Table]]:
    """The lines before the first table, and the tables."""
    taker = _Taker(width=WIDE, highlight=False, markup=False, emoji=False, file=StringIO())
    tell(taker)
    return taker.lines, taker.tables


class _Taker(Console):
    """Keeps tables that are printed on it, and lines."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.lines: list[str] = []
        self.tables: list[Table] = []

    def print(self, *objects: Any, **_: Any) -> None:
        for each in objects:
            self._take(each)

    def _take(self, each: Any) -> None:
        if isinstance(each, Group):
            for part in each.renderables:
                self._take(part)
        elif isinstance(each, Printed):
            self.tables.append(_read(each))
        elif said := _plain(each):
            (self.tables[-1].notes if self.tables else self.lines).append(said)


def _read(table: Printed) -> Table:
    columns = []
    for each in table.columns:
        cells = [_plain(cell) for cell in each.cells]
        head = _plain(each.header) if table.show_header else ""
        columns.append(Column(head, cells, each.justify == "right" or _counts(cells)))
    rules = [at + 1 for at, row in enumerate(table.rows[:-1]) if row.end_section]
    return Table(_plain(table.title), columns, rules)


def _counts(cells: Sequence[str]) -> bool:
    said = [cell for cell in cells if cell not in NOTHING]
    return bool(said) and all(map(_parsed, said))


def _plain(part: Any) -> str:
    """What is said, in one line."""
    if part is None:
        return ""
    if isinstance(part, Group):
        return "; ".join(filter(None, map(_plain, part.renderables)))
    text = part.plain if isinstance(part, Text) else str(part)
    return " ".join(text.split())


def _parsed(cell: str) -> re.Match[str] | None:
    return _SHARE.fullmatch(cell) or _CELL.fullmatch(cell)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _family(unit: str | None) -> tuple[str, float]:
    return UNITS.get(unit or "", (unit or "", 1))


def _unit(found: re.Match[str]) -> str:
    return found.groupdict().get("unit") or ""


def kinds(cells: Sequence[str]) -> int:
    """Of how many kinds of units cells are."""
    return len({_family(_unit(found))[0] for cell in cells if (found := _parsed(cell))})


def one_unit(column: Column) -> Column:
    """The column with the unit that most of its cells have in its head; a cell of another kind of
    unit keeps its own.
    """
    if not column.numbers:
        return column
    found = [_parsed(cell) for cell in column.cells]
    units = Counter(_unit(each) for each in found if each)
    unit = units.most_common(1)[0][0] if units else ""
    base, size = _family(unit)
    if unit and "" in units and base:
        return column  # a bare number below that head would seem to be of its unit
    cells = []
    for cell, each in zip(column.cells, found, strict=True):
        if each is None or _family(_unit(each))[0] != base:
            cells.append(cell)
            continue
        number, end = each["number"], each.end("unit" if _unit(each) else "number")
        if (own := _family(_unit(each))[1]) != size:
            number = f"{_number(number) * own / size:#.3g}".rstrip(".")
        cells.append(cell[: each.start("number")] + number + cell[end:])
    return Column(_headed(column.head, unit), cells, True)


def _headed(head: str, unit: str) -> str:
    """A head with its unit, unless it has it."""
    there = not unit or re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", head)
    return head if there else f"{head} ({unit})".strip()


#: What a cell may say beside its number, and the head of the column that has it.
_BESIDE = {"bound": "bound", "half": "±", "on": "better on", "all": "of"}


def _apart(column: Column, first: bool) -> Iterator[tuple[str, list[str]]]:
    """The columns of CSV: a kind of number each, with its unit in the head. A name in the first
    column is printed once for all of its rows.
    """
    if not column.numbers:
        last, cells = "", []
        for cell in column.cells:
            last = cell or (last if first else "")
            cells.append(_inert(last))
        yield column.head, cells
        return
    found = [_parsed(cell) for cell in column.cells]
    families = dict.fromkeys(_family(_unit(each))[0] for each in found if each)
    words = [
        "" if each or cell in NOTHING else _inert(cell)
        for each, cell in zip(found, column.cells, strict=True)
    ]
    for base in families or [""]:
        yield (
            _headed(column.head, base),
            [_value(each, base) if each else said for each, said in zip(found, words, strict=True)],
        )
    for part, head in _BESIDE.items():
        every = [(each.groupdict().get(part) or "" if each else "") for each in found]
        if any(every):
            of = "".join(dict.fromkeys(each["of"] or "" for each in found if each and part == "half"
                                       and each.groupdict().get("half")))  # fmt: skip
            yield f"{column.head} {head} {of}".strip(), [each.replace(",", "") for each in every]


def _value(found: re.Match[str], base: str) -> str:
    family, size = _family(_unit(found))
    if family != base:
        return ""
    number = found["number"].replace(",", "").lstrip("+")
    return number if size == 1 else f"{float(number) * size:.12g}"


def _inert(text: str) -> str:
    """A text that is no formula of the spreadsheet that opens the file."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") and text not in NOTHING else text


def latex(text: str, number: bool = False) -> str:
    """A text as LaTeX sets it, or a number with its unit."""
    if number and _parsed(text):
        text = re.sub(r"(?<=\d) (?=(?!of )[%A-Za-zµ])", "\u202f", text)
        text = re.sub(r"(?<![\w.])-(?=\d)", "\u2212", text)
    text = re.sub("[\n\r\t ]+", " ", text)
    # Two hyphens are a dash; what begins with [ or * would be an argument of the \\ before it.
    text = re.sub(r"-(?=-)|^(?=[\[*])", lambda found: f"{found[0]}\u200b", text)
    return text.translate(_LATEX).replace("\u202f", r"\,")


def _markdown(text: str) -> str:
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)
