"""``show``: a machine's effective configuration."""

from __future__ import annotations

import json

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import Show
from sardonyx.runs.scheduler import Watch


def answer(asked: Show, _: Watch | None) -> Answer:
    """The machine, every key of it."""
    return Answer("show", json.loads(_core.machine(asked.name, list(asked.set))))


def tell(people: Console, answer: Answer) -> None:
    """As TOML."""
    people.print(answer["toml"], end="", soft_wrap=True)
