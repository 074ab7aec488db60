"""The papers: what they report, a reproduction each, and the figures that stand for theirs.

A package with ``REPRODUCTION`` is found. Its ``figures``, if it has such a module, has ``TITLE``
and ``figures``, which draws what it can of a comparison, and nothing of one of another kind.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from sardonyx.papers.reproduction import Reproduction

if TYPE_CHECKING:
    from sardonyx.draw.figure import Figure, Missing
    from sardonyx.runs.comparison import Comparison


@cache
def reproductions() -> dict[str, Reproduction]:
    """Every paper that can be reproduced, by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found: list[Reproduction] = [m.REPRODUCTION for m in modules if hasattr(m, "REPRODUCTION")]
    return {reproduction.name: reproduction for reproduction in found}


def figures(comparison: Comparison) -> dict[str, list[Figure | Missing]]:
    """What the papers draw of a comparison, by title; nothing if it is of none of their kinds."""
    drawn: dict[str, list[Figure | Missing]] = {}
    for package in iter_modules(__path__):
        name = f"{__name__}.{package.name}.figures"
        if package.ispkg and find_spec(name) is not None:
            module = import_module(name)
            if found := module.figures(comparison):
                drawn.setdefault(module.TITLE, []).extend(found)
    return drawn
