"""Tables for the terminal: without lines, their columns said by what they hold."""

from __future__ import annotations

from typing import Any

from rich.table import Column, Table


def grid(*columns: Column | str, **how: Any) -> Table:
    """A table without lines and without room at its edges; a title stands at the left."""
    return Table(*columns, **{"box": None, "pad_edge": False, "title_justify": "left"} | how)


def folded(*names: str) -> list[Column]:
    """Columns of words that break where the terminal is narrow."""
    return [Column(name, overflow="fold") for name in names]


def numbers(*names: str, **how: Any) -> list[Column]:
    """Columns that end at the right."""
    return [Column(name, justify="right", **how) for name in names]
