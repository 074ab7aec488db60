"""What a deduplicating store is asked, as one JSON document, and its runs as results.

The document is read by ``crates/stores/store/src/compare.rs``. Which designs there are, and their
keys, says the native table (``crates/stores/store/src/designs``): no design is known here by name.

Several run at once. One that is executed works on files, in a folder that vanishes; its time is
counted from what it did.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from sardonyx import _core, questions
from sardonyx.questions import StoreAsked, Stream
from sardonyx.runs import scheduler
from sardonyx.runs.jobs import Setting
from sardonyx.runs.points import label, results
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import check_known
from sardonyx.values import Value, read

KB, GB = 1 << 10, 1 << 30


class Key(Value, lenient=True):
    """A key of a design."""

    name: str
    default: str | None
    source: str
    line: str


class Assumed(Value, lenient=True):
    """What no source gives: name, value and why it is so, and what rests on it."""

    parameter: str
    value: str
    why: str
    bears_on: Literal["all", "energy", "life"]


class Design(Value, lenient=True):
    """A store design as its file in ``crates/stores/store/src/designs`` tells it."""

    name: str
    source: str
    line: str
    executed: bool
    energy_from: str
    keys: tuple[Key, ...]
    assumed: tuple[Assumed, ...]
    figures: tuple[str, ...]


@cache
def designs() -> dict[str, Design]:
    """Every store design by its name; the first is a device's unless it is told otherwise."""
    table = read(tuple[Design, ...], json.loads(_core.store_designs()))
    return {design.name: design for design in table}


def known(name: str, place: str = "") -> Design:
    """The design of this name; an error says where it was asked for, and what there is."""
    check_known("store", name, list(designs()), place)
    return designs()[name]


class StoreDesign(StoreAsked):
    """A design with those of its keys that are set, as the command line has them.

    One that is executed works in ``folder``; without one, in one of its own.
    """

    @property
    def executed(self) -> bool:
        """It needs a folder for its files."""
        return designs()[self.name].executed

    def values(self) -> dict[str, Scalar]:
        """All its keys with their values, as reports show them."""
        found: list[tuple[str, Scalar]] = json.loads(_core.store_keys(self.json()))
        return dict(found)

    def having(self, settings: Sequence[Setting], place: str = "") -> StoreDesign:
        """It with further keys, ``NAME.KEY``; those of other designs are left out.

        Raises:
            SardonyxError: A key is not a design's, or its value makes no sense; ``place`` is first.
        """
        every = [f"{name}.{key.name}" for name, each in designs().items() for key in each.keys]
        own = list(self.keys)
        for name, text in settings:
            check_known("key", name, every, f"{place}{name}: ")
            whose, _, key = name.partition(".")
            one = StoreDesign(name=whose, keys=((key, text),))
            try:
                one.values()
            except _core.SardonyxError as error:
                problem = str(error).removeprefix(f"{name} = {text}: ")
                raise _core.SardonyxError(f"{place}{name}={text}: {problem}") from error
            if whose == self.name:
                own.append((key, text))
        return self.replace(keys=tuple(own))


class StoreQuestion(questions.StoreQuestion):
    """A design on a workload, in blocks of this size."""

    design: StoreDesign


@dataclass(frozen=True, slots=True)
class StorePoint:
    """A run as results name it; ``variant`` is what tells it from the plain run of its design."""

    trace: str
    question: StoreQuestion
    variant: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def design(self) -> str:
        return self.question.design.name


@dataclass(frozen=True, slots=True)
class StoreRuns:
    """Points to run, files of those that are executed below ``folder``."""

    points: Sequence[StorePoint]
    folder: str | None = None

    def check(self) -> None:
        """An error unless each question can be answered and the largest files fit."""
        folder = self.folder
        if folder is not None and not Path(folder).is_dir():
            raise _core.SardonyxError(f"{folder}: there is no such directory; make it first")
        most = 0
        for point in self.points:
            _core.check_store(point.question.json())
            workload = point.question.workload
            if point.question.design.executed and isinstance(workload, Stream):
                most = max(most, workload.bytes)
        place = folder or tempfile.gettempdir()
        if most and (free := shutil.disk_usage(place).free) < 1.2 * most:
            raise _core.SardonyxError(
                f"{place}: {free / GB:.1f} GB are free, but a store that is executed writes "
                f"{most / GB:.1f} GB; give --written, or --dir for another disk"
            )

    def run(self, workers: int | None = None, watch: Watch | None = None) -> Results:
        """Run the points, in their order in the results."""
        points = self.points
        tasks = [Task(label(p), partial(answer, p.question, self.folder)) for p in points]
        answers = scheduler.run(tasks, workers, watch)
        chosen = [designs()[name] for name in dict.fromkeys(point.design for point in points)]
        machine = next((design for design in chosen if not design.executed), chosen[0])
        assumed = [each.document("bears_on") for design in chosen for each in design.assumed]
        traces = {point.trace: point.question for point in points}
        return results(
            {
                "name": machine.name,
                "source": machine.source,
                "parameters": _parameters(points),
                "assumed": assumed,
            },
            [{"name": name, "info": _info(question)} for name, question in traces.items()],
            points,
            [
                found | {"assumed": [each.parameter for each in known(point.design).assumed]}
                for point, found in zip(points, answers, strict=True)
            ],
        )


def answer(question: StoreQuestion, folder: str | None, progress: _core.Progress | None) -> Any:
    """What a store shows on a workload; the executed one works in a folder that vanishes."""
    if not question.design.executed:
        return json.loads(_core.store(question.json(), progress))
    with tempfile.TemporaryDirectory(prefix=".sardonyx.", dir=folder) as name:
        placed = question.design.replace(folder=name)
        placed_question = question.replace(design=placed)
        return json.loads(_core.store(placed_question.json(), progress))


def _parameters(points: Sequence[StorePoint]) -> dict[str, Scalar]:
    """The parameters of each simulated design, at its plainest point."""
    plainest: dict[str, StoreDesign] = {}
    for point in sorted(points, key=lambda point: len(point.variant)):
        if not point.question.design.executed:
            plainest.setdefault(point.design, point.question.design)
    return {key: value for each in plainest.values() for key, value in each.values().items()}


def _info(question: StoreQuestion) -> dict[str, Any]:
    workload = question.workload.document()
    facts = {f"workload_{key}" if key == "bytes" else key: v for key, v in workload.items()}
    if isinstance(question.workload, Stream):
        facts["duplicate_rate"] = facts.pop("duplicates")
    return {"block_bytes": question.block_bytes} | facts
