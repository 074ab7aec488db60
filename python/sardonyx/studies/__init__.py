"""Our own studies, a folder each as a paper has, and what finds the reproductions of both.

A package with ``REPRODUCTION`` is found. Its ``figures``, if it has such a module, has ``TITLE``
and ``figures``, which draws what it can of a comparison, and nothing of one of another kind.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from sardonyx import papers
from sardonyx.papers.reproduction import Reproduction

if TYPE_CHECKING:
    from sardonyx.draw.figure import Figure, Missing
    from sardonyx.runs.comparison import Comparison


def _packages() -> list[str]:
    found = [
        *iter_modules(papers.__path__, "sardonyx.papers."),
        *iter_modules(__path__, f"{__name__}."),
    ]
    return [each.name for each in found if each.ispkg]


def names() -> list[str]:
    """The names of all of them; none is imported."""
    return [each.rpartition(".")[2].replace("_", "-") for each in _packages()]


@cache
def reproductions() -> dict[str, Reproduction]:
    """Every paper and study that can be reproduced, by name."""
    found: list[Reproduction] = [import_module(name).REPRODUCTION for name in _packages()]
    return {reproduction.name: reproduction for reproduction in found}


def figures(comparison: Comparison) -> dict[str, list[Figure | Missing]]:
    """What they draw of a comparison, by title; nothing if it is of none of their kinds."""
    drawn: dict[str, list[Figure | Missing]] = {}
    traces, designs = comparison.results.traces, comparison.designs
    if traces and all("records" in trace.facts for trace in traces) and "@" not in "".join(designs):
        return drawn  # recordings on plain designs: nobody imports the papers for these
    for package in _packages():
        name = f"{package}.figures"
        if find_spec(name) is not None:
            module = import_module(name)
            if found := module.figures(comparison):
                drawn.setdefault(module.TITLE, []).extend(found)
    return drawn
