"""``merge generate``: a folder of snapshots of a generated machine."""

from __future__ import annotations

from rich.console import Console

from sardonyx import _core
from sardonyx.api.command import Answer
from sardonyx.questions import MergeGenerate
from sardonyx.runs.scheduler import Watch


def answer(asked: MergeGenerate, watch: Watch | None) -> Answer:
    """Nothing but the folder."""
    asked.target.mkdir(parents=True)
    width = len(str(asked.passes))
    for number in range(1, asked.passes + 1):
        snapshot = _core.merge_snapshot(asked.mix, asked.pages, number)
        (asked.target / f"{number:0{width}}.raw").write_bytes(snapshot)
    return Answer("merge generate", {"target": str(asked.target)})


def tell(people: Console, answer: Answer) -> None:
    """The folder is the answer."""
