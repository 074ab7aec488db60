"""Tables for the terminal: without lines, their columns said by what they hold."""

from __future__ import annotations

from typing import Any

from rich.table import Column, Table

from sardonyx.draw import tables


def grid(*columns: Column | str, **how: Any) -> Table:
    """A table without lines and without room at its edges; a title stands at the left."""
    return Table(*columns, **{"box": None, "pad_edge": False, "title_justify": "left"} | how)


def folded(*names: str) -> list[Column]:
    """Columns of words that break where the terminal is narrow."""
    return [Column(name, overflow="fold") for name in names]


def whole(table: Table, width: int) -> bool:
    """Whether a table of texts fits without a broken cell; heads may break between words."""
    taken = -table.padding[1]
    for column in table.columns:
        parts = [*str(column.header).split(), *map(str, column.cells)]
        taken += max(map(len, parts), default=0) + table.padding[1]
    return taken <= width


def units_in_heads(table: Table) -> None:
    """Move the unit of a column into its head, where all its cells have it."""
    for column in table.columns:
        cells = [cell for cell in column.cells if isinstance(cell, str)]
        if column.justify != "right" or len(cells) < len(table.rows):
            continue
        found = tables.one_unit(tables.Column("", cells, True))
        if found.head and tables.kinds(cells) == 1:
            column.header = f"{column.header}\n{found.head}"
            column._cells = list(found.cells)


def numbers(*names: str, **how: Any) -> list[Column]:
    """Columns that end at the right."""
    return [Column(name, justify="right", **how) for name in names]
