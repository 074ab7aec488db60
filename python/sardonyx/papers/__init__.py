"""The papers: what they report, and a reproduction each. A file with ``REPRODUCTION`` is found."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from sardonyx.papers.reproduction import Reproduction


@cache
def reproductions() -> dict[str, Reproduction]:
    """Every paper that can be reproduced, by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found: list[Reproduction] = [m.REPRODUCTION for m in modules if hasattr(m, "REPRODUCTION")]
    return {reproduction.name: reproduction for reproduction in found}
