"""Runs that can be made again under other settings: which keys they have, and the row of a sweep
that asks for a run.

Left out: which settings there are (``cells``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from sardonyx import _core
from sardonyx.questions import ProgramSource, Stream, SynthSource, TraceSource
from sardonyx.runs.jobs import Point, Settings, Simulations
from sardonyx.runs.merging import algorithms
from sardonyx.runs.results import Run
from sardonyx.runs.sources import known_programs, text_of
from sardonyx.runs.stores import StoreRuns
from sardonyx.runs.tailbench import PLAIN, TimedRuns
from sardonyx.vary.ranges import Range, ranges, ranges_of

CellRuns: TypeAlias = Simulations | TimedRuns | StoreRuns


class Varying(Protocol):
    """Runs by their numbers, on one machine."""

    @property
    def machine(self) -> str:
        """The machine of all runs, by its name or file."""

    @property
    def designs(self) -> Sequence[str]:
        """The design of each run."""

    def ranges(self) -> list[Range]:
        """The assumed keys, with what each may be."""

    def depends(self, number: int, key: str, run: Run) -> bool:
        """Whether a run depends on a key that is assumed; ``run`` is one of its design."""

    def row(self, number: int) -> dict[str, Any]:
        """The run as a row of a sweep: subject, options, keys."""

    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the machine."""


def varying(runs: CellRuns) -> Varying:
    """The runs as they can be varied."""
    if isinstance(runs, Simulations):
        return Simulated(runs.points, runs.settings)
    return Stored(runs) if isinstance(runs, StoreRuns) else MergedInTime(runs)


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulations of designs on traces and programs."""

    points: Sequence[Point]
    shared: Settings

    @property
    def machine(self) -> str:
        return self.shared.machine

    @property
    def designs(self) -> Sequence[str]:
        return [point.design for point in self.points]

    def ranges(self) -> list[Range]:
        return ranges(self.machine, self.shared.overrides)

    def depends(self, number: int, key: str, run: Run) -> bool:
        return key in run.assumed and key not in self.points[number].variant

    def row(self, number: int) -> dict[str, Any]:
        point = self.points[number]
        job, source = point.job(self.shared), point.source
        row: dict[str, Any] = {
            "design": point.design,
            "copies": job.copies,
            "distinct": job.distinct,
            "verify": job.verify,
            "warmup": job.warmup if not job.warmup_share else f"{100 * job.warmup_share!r}%",
        }
        row |= {"threads": True} if job.threads else {}
        if isinstance(source, ProgramSource):
            row |= {
                "trace": source.name,
                "transactions": source.transactions,
                "transaction_size": source.item_bytes,
                "footprint": source.footprint,
                "seed": source.seed,
                "software_log": source.software_log,
            }
        else:
            if isinstance(source, SynthSource):
                row |= {"trace": text_of(source), "seed": source.seed}
            else:
                assert isinstance(source, TraceSource), "a mix is refused before"
                clash = source.path in known_programs()
                row["trace"] = f"./{source.path}" if clash else source.path
                row |= {} if source.window is None else {"window": source.window}
            row |= {} if source.limit is None else {"limit": source.limit}
        return row | dict(job.overrides)

    def parameters(self) -> Mapping[str, Any]:
        machine = _core.machine(self.machine, list(self.shared.overrides))
        found: dict[str, Any] = json.loads(machine)["parameters"]
        return found


def _owners(key: str) -> set[str]:
    """The algorithms that declare a key."""
    return {name for name, one in algorithms().items() if key in one.keys}


@dataclass(frozen=True, slots=True)
class MergedInTime:
    """Applications whose pages are merged meanwhile."""

    runs: TimedRuns

    @property
    def machine(self) -> str:
        return self.runs.machine

    def _known(self, number: int) -> dict[str, Any]:
        question = self.runs.question(self.runs.points[number])
        found: dict[str, Any] = json.loads(_core.merge_timed_keys(question.json()))
        return found

    @property
    def designs(self) -> Sequence[str]:
        return [point.design for point in self.runs.points]

    def ranges(self) -> list[Range]:
        assumed = {
            each["parameter"]: each
            for number in range(len(self.runs.points))
            for each in self._known(number)["assumed"]
        }
        own = {"ksm", *self.designs}
        return ranges_of(one for key, one in assumed.items() if (_owners(key) or own) & own)

    def depends(self, number: int, key: str, run: Run) -> bool:
        point = self.runs.points[number]
        if key in point.variant or key not in run.assumed:
            return False
        # Without merging nothing merges, but the machines and their load exist all the same.
        # Without merging nothing merges, but the machines and their load exist all the same. KSM's
        # thread drives every algorithm that merges; other keys are of those that declare them.
        driven = {"ksm"} if algorithms()[point.design].merges else set()
        return not (owners := _owners(key)) or bool(owners & {point.design, *driven})

    def row(self, number: int) -> dict[str, Any]:
        question = self.runs.question(self.runs.points[number])
        return {
            "application": question.application,
            "design": question.design,
            **({} if question.memory == PLAIN else {"memory": question.memory}),
            "seed": question.seed,
            **dict(question.sets),
        }

    def parameters(self) -> Mapping[str, Any]:
        machine: dict[str, Any] = json.loads(_core.machine(self.machine, []))["parameters"]
        settings: dict[str, Any] = self._known(0)["settings"]
        return machine | settings


@dataclass(frozen=True, slots=True)
class Stored:
    """Stores on generated streams. Their keys are drawn by name: no machine lists them."""

    runs: StoreRuns

    @property
    def machine(self) -> str:
        return ""

    @property
    def designs(self) -> Sequence[str]:
        return [point.design for point in self.runs.points]

    def ranges(self) -> list[Range]:
        return []

    def depends(self, number: int, key: str, run: Run) -> bool:
        return key.partition(".")[0] == self.runs.points[number].design

    def row(self, number: int) -> dict[str, Any]:
        question = self.runs.points[number].question
        assert isinstance(question.workload, Stream), "only streams are drawn"
        own = {f"{question.design.name}.{key}": text for key, text in question.design.keys}
        return {
            **question.workload.document("kind"),
            "workload": "stream",
            "design": question.design.name,
            "block": question.block_bytes,
            **own,
        }

    def parameters(self) -> Mapping[str, Any]:
        return {}
