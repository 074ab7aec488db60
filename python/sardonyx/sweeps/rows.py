"""Rows of settings that are run as sweeps in a folder, so that what was done is found again.

A row is a point of a sweep: its subject, its design, options and keys of the machine. Left out:
which rows there are (``vary.cells``, ``studies.explore``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sardonyx.runs.jobs import is_key
from sardonyx.runs.results import Cause, Run
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.sweeps import reading
from sardonyx.sweeps.folder import RESULTS, ROW, Folder
from sardonyx.sweeps.kinds.simulate import BOOKED
from sardonyx.sweeps.plan import Plan
from sardonyx.sweeps.run import State, Sweep, View


def watching(watch: Watch | None, plan: Plan) -> AbstractContextManager[View]:
    """What shows a sweep while it runs: the watcher's own way (``sweep``), or a task of points."""
    if shown := getattr(watch, "sweep", None):
        own: AbstractContextManager[View] = shown(plan)
        return own

    def tell(state: State) -> None:
        if watch is not None:
            watch([Task("points", lambda _: None, state, "running")])

    return nullcontext(tell)


@dataclass(frozen=True, slots=True)
class RowSweep:
    """A sweep that is to be run. ``places`` has the number in its plan of each row asked for."""

    plan: Plan
    folder: Folder
    places: Sequence[int]

    @property
    def done(self) -> int:
        """Points that were done before."""
        return sum(self.folder.done(point.name) is not None for point in self.plan.points())


@dataclass(frozen=True, slots=True)
class Rows:
    """Where rows on one machine are run and kept; stores have none."""

    machine: str
    folder: Path
    workers: int | None = None
    watch: Watch | None = None

    def sweep(self, rows: Sequence[Mapping[str, Any]]) -> RowSweep:
        """Rows that all set the same names, as a sweep; equal ones are one point."""
        columns: dict[str, list[Any]] = {}
        seen: dict[str, int] = {}
        places: list[int] = []
        for row in rows:
            text = json.dumps(row, sort_keys=True)
            if text not in seen:
                seen[text] = len(seen)
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
            places.append(seen[text])
        document = {"sweep": {"machine": self.machine} if self.machine else {}, "zip": [columns]}
        plan = reading.read(document)
        folder = Folder(self.folder / plan.id)
        plan = reading.read(document, folder.before)
        folder.check(plan)
        return RowSweep(plan, folder, places)

    def run(self, sweep: RowSweep) -> list[dict[str, Any]]:
        """The answer to each row."""
        import pyarrow.parquet as pq

        with watching(self.watch, sweep.plan) as view:
            Sweep(sweep.plan, sweep.folder, self.workers, view=view).run()
        answers: list[dict[str, Any]] = pq.read_table(sweep.folder.path / RESULTS).to_pylist()
        return [answers[place] for place in sweep.places]


def options(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that a row sets beside keys of the machine; rows of one sweep have the same."""
    return tuple(sorted(name for name in row if not is_key(name)))


def run_of(answer: Mapping[str, Any], asked: Run) -> Run | str:
    """An answer as the run of a point; of a failed one its error."""
    if answer["error"] is not None:
        return str(answer["error"])
    causes: dict[str, dict[str, Any]] = {}
    metrics = {}
    for name, value in answer.items():
        if name in ROW or isinstance(value, str | bool):
            continue
        if name.startswith("cause."):
            _, cause, booked = name.split(".", 2)
            if booked in BOOKED:
                causes.setdefault(cause, {})[booked] = value
        elif "." not in name:
            metrics[name] = value
    return Run(
        asked.trace,
        asked.design,
        asked.machine,
        int(answer.get("copies") or asked.copies),
        dict(asked.variant),
        metrics=metrics,
        causes={name: Cause(**each) for name, each in causes.items()},
        assumed=asked.assumed,
    )
