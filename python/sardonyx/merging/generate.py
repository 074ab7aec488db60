"""``merge generate``: snapshots of a generated machine."""

from __future__ import annotations

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import MergeGenerate
from sardonyx.runs.scheduler import Watch


def answer(asked: MergeGenerate, _: Watch | None) -> Answer:
    """The folder, made."""
    known = _core.merge_mixes()
    if asked.mix not in known:
        raise _core.SardonyxError(f"{asked.mix}: there is no such mix; they are {', '.join(known)}")
    if asked.target.exists():
        raise _core.SardonyxError(f"{asked.target}: is there already; name a folder that is not")
    asked.target.mkdir(parents=True)
    width = len(str(asked.passes))
    for number in range(1, asked.passes + 1):
        snapshot = _core.merge_snapshot(asked.mix, asked.pages, number)
        (asked.target / f"{number:0{width}}.raw").write_bytes(snapshot)
    return Answer("merge generate", {"folder": str(asked.target), "snapshots": asked.passes})


def tell(people: Console, answer: Answer) -> None:
    """Nothing: the folder is there."""
