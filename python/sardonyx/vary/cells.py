"""Cells: each a machine and workloads with one value of every choice that is left open.

Cells are drawn as a Latin hypercube: over all cells each choice takes values from all of its range,
evenly. Every run is a point of a sweep in a folder, so that what was done is found again.
Left out: what is concluded over cells (``turning``, ``papers.sampling``).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx import _core
from sardonyx.questions import ProgramSource
from sardonyx.runs import scheduler
from sardonyx.runs.facts import Info, Trace
from sardonyx.runs.jobs import Setting, Simulations, is_key
from sardonyx.runs.results import Run
from sardonyx.runs.scheduler import Watch
from sardonyx.sweeps.rows import Rows, run_of
from sardonyx.vary.ranges import Range
from sardonyx.vary.runs import CellRuns, Varying, varying

#: This many values are tried for a key if the other keys' values rule one out.
AGAIN = 16
#: A drawn memory is at least this many times as large as the structures of the programs on all
#: cores, which have logs and tables too. *assumed*
ROOM = 2

#: The runs of a cell, by the choices of the workloads and the keys that are set.
RunsOf: TypeAlias = Callable[[Mapping[str, str], Sequence[Setting]], CellRuns]


@dataclass(frozen=True, slots=True)
class Space:
    """What cells differ in.

    ``choices`` are those of the workloads, by a name, or keys of the machine that no assumed key
    stands for. ``machine`` and ``overrides`` are of the machine whose assumed keys are drawn; a key
    in them is not drawn.
    """

    choices: Sequence[Range]
    runs: RunsOf
    machine: str
    overrides: Sequence[Setting] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the values of its choices, and its runs."""

    number: int
    values: Mapping[str, str]
    runs: CellRuns
    varying: Varying

    @property
    def numbers(self) -> range:
        return range(len(self.runs.points))

    def traces(self, known: Sequence[Trace]) -> list[Trace]:
        """Its workloads: what is known of traces, and the sizes that programs have here."""
        facts = {trace.name: trace for trace in known}
        found: dict[str, Trace] = {}
        for point in self.runs.points:
            source = getattr(point, "source", None)
            if isinstance(source, ProgramSource):
                info = {
                    "program": source.name,
                    "transaction_bytes": source.item_bytes,
                    "footprint_bytes": source.footprint,
                }
                found[point.trace] = Trace(point.trace, Info.of(info))
            elif point.trace in facts:
                found[point.trace] = facts[point.trace]
        return list(found.values())

    def asked(self, number: int) -> Run:
        """The run that a point asks for, without its figures."""
        point = self.runs.points[number]
        copies = 1
        if isinstance(self.runs, Simulations):
            copies = self.runs.points[number].copies or self.runs.settings.copies
        return Run(
            point.trace, point.design, self.varying.machine, copies, dict(point.variant), metrics={}
        )


@dataclass(slots=True)
class Cells:
    """So many cells of a space, drawn from ``seed``, kept in ``folder``. ``assumed`` are the
    assumed keys on which the runs depend.
    """

    of: Space
    count: int
    seed: int
    folder: Path
    assumed: frozenset[str]
    workers: int | None = None
    watch: Watch | None = None
    #: What could not be run, each with the number of its runs.
    failures: dict[str, int] = field(default_factory=dict)
    #: The number of cells in which a key has another value than the hypercube's.
    redrawn: int = 0

    # ---- drawing

    def open_keys(self) -> list[Range]:
        """The keys that are drawn: those among the choices, and the assumed ones."""
        set_ = {key for key, _ in self.of.overrides}
        return [
            *(
                key
                for key in self.of.choices
                if is_key(key.parameter) and key.parameter not in set_
            ),
            *(key for key in self._assumed() if key.ends),
        ]

    def left_out(self) -> list[Range]:
        """The assumed keys that are not drawn."""
        return [key for key in self._assumed() if not key.ends]

    def _assumed(self) -> list[Range]:
        """The assumed keys on which the runs depend, but for those among the choices."""
        usual = {choice.parameter: choice.value for choice in self.of.choices}
        known = varying(self.of.runs(usual, self.of.overrides)).ranges()
        return [key for key in known if key.parameter in self.assumed - usual.keys()]

    def choices(self, keys: Sequence[Range]) -> list[Range]:
        """All that is drawn: choices of the workloads, and keys."""
        return [*(each for each in self.of.choices if not is_key(each.parameter)), *keys]

    def drawn(self, choices: Sequence[Range]) -> dict[str, list[str]]:
        """The values of each choice in the cells, one from each of as many parts of its range."""
        return {
            choice.parameter: [choice.at(share) for share in self._shares(choice.parameter)]
            for choice in choices
        }

    def _shares(self, name: str) -> list[float]:
        """How far through its values a choice is in each cell."""
        generator = random.Random(f"{self.seed} {name}")
        parts = list(range(self.count))
        generator.shuffle(parts)
        return [(part + generator.random()) / self.count for part in parts]

    def draw(self, keys: Sequence[Range]) -> list[Cell]:
        """All cells."""
        drawn = self.drawn(self.choices(keys))
        return [self.cell(number, drawn, keys) for number in range(self.count)]

    def cell(self, number: int, drawn: Mapping[str, Sequence[str]], keys: Sequence[Range]) -> Cell:
        """One cell; keys that rule each other out are drawn again."""
        values = {name: each[number] for name, each in drawn.items()}
        values |= self._told_apart(number, values, keys)
        cell = self._made(number, values, keys)
        if possible(cell.runs):
            return cell
        # Each key keeps its value with those before it, or gets another.
        self.redrawn += 1
        generator = random.Random(f"{self.seed} {number} again")
        overrides = list(self.of.overrides)
        for key in keys:
            tried = [values[key.parameter], *(key.drawn(generator) for _ in range(AGAIN))]
            able = (
                value
                for value in tried
                if possible(self.of.runs(values, [*overrides, (key.parameter, value)]))
            )
            values[key.parameter] = next(able, key.value)
            overrides.append((key.parameter, values[key.parameter]))
        return self._made(number, values, keys)

    def alone(self, number: int, keys: Sequence[Range], name: str = "", value: str = "") -> Cell:
        """The cell in which every choice has its usual value, but for one of this name."""
        values = {choice.parameter: choice.value for choice in self.choices(keys)}
        return self._made(number, values | ({name: value} if name else {}), keys)

    def _made(self, number: int, values: Mapping[str, str], keys: Sequence[Range]) -> Cell:
        set_ = [(key.parameter, values[key.parameter]) for key in keys]
        runs = self.of.runs(values, [*self.of.overrides, *set_])
        return Cell(number, values, runs, varying(runs))

    def _told_apart(
        self, number: int, values: Mapping[str, str], keys: Sequence[Range]
    ) -> dict[str, str]:
        """The words of a cell that mean one thing on its own machine count as one value: two orders
        of an address that give one map in its geometry are drawn once.
        """
        words = {key.parameter for key in keys if key.others and key not in self.of.choices}
        numbers = [(k.parameter, values[k.parameter]) for k in keys if k.parameter not in words]
        try:
            known = varying(self.of.runs(values, [*self.of.overrides, *numbers])).ranges()
        except _core.SardonyxError:
            return {}
        return {
            key.parameter: key.at(self._shares(key.parameter)[number])
            for key in known
            if key.parameter in words
        }

    # ---- running

    def run(
        self, asked: Sequence[tuple[Cell, int]], said: str = ""
    ) -> dict[tuple[int, int], Run | None]:
        """These runs of cells, by the numbers of both; nothing of one that failed.

        ``said`` comes first in what is told before they run.
        """
        groups: dict[tuple[str, ...], list[tuple[Cell, int, dict[str, Any]]]] = {}
        for cell, number in asked:
            row = cell.varying.row(number)
            groups.setdefault(tuple(sorted(row)), []).append((cell, number, row))
        kept = Rows(self.of.machine, self.folder, self.workers, self.watch)
        sweeps = [
            (kept.sweep([row for _, _, row in group]), group) for _, group in sorted(groups.items())
        ]
        if said:
            found = sum(sweep.done for sweep, _ in sweeps)
            before = f"; {found:,} were done before" if found else ""
            kept_in = f"What is done is kept in {self.folder}"
            scheduler.tell(self.watch, f"{said}{before}. {kept_in}")
        answers: dict[tuple[int, int], Run | None] = {}
        for sweep, group in sweeps:
            for (cell, number, _), answer in zip(group, kept.run(sweep), strict=True):
                run = run_of(answer, cell.asked(number))
                if isinstance(run, str):
                    self.failed(f"{cell.runs.points[number].trace}: {run}")
                answers[cell.number, number] = run if isinstance(run, Run) else None
        return answers

    def failed(self, problem: str) -> None:
        """Count something that could not be run."""
        self.failures[problem] = self.failures.get(problem, 0) + 1

    @property
    def failures_said(self) -> tuple[str, ...]:
        """What could not be run, for people."""
        return tuple(
            f"{text} ({count} runs)" if count > 1 else text
            for text, count in sorted(self.failures.items())
        )


def possible(runs: CellRuns) -> bool:
    """Whether a machine with these keys exists, and its memory has room for the programs."""
    try:
        if not isinstance(runs, Simulations):
            runs.check()
            return True
        settings = runs.settings
        machine = json.loads(_core.machine(settings.machine, list(settings.overrides)))
    except _core.SardonyxError:
        return False
    structures = [
        point.source.footprint * (point.copies or settings.copies)
        for point in runs.points
        if isinstance(point.source, ProgramSource)
    ]
    return bool(ROOM * max(structures, default=0) <= machine["capacity_bytes"])
