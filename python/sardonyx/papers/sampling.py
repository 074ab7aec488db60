"""A reproduction as a sample: a paper's headline claims over what the paper leaves open.

A cell is one value of each choice of the workloads (window, copies, sizes, seed ..) and one of each
assumed key of the machine, drawn as a Latin hypercube: over all cells each choice takes values from
all of its range, evenly. Every workload of the paper runs in every cell, because the claims are
minima, means and maxima over all of them. What is concluded of a claim is the share of cells in
which ours is what the paper's words say, over all workloads and on each, where the middle 90 % lie,
and which choices decide it (``papers.indices``). Every run is a point of a sweep in a folder, so
that what was done is found again.
Left out: which runs and choices a paper has (each paper).
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx import _core
from sardonyx.papers.claims import ClaimRow
from sardonyx.papers.headlines import varying
from sardonyx.papers.indices import shares
from sardonyx.papers.intervals import crossed, proportion
from sardonyx.papers.sample import Alone, Choice, Count, Sample, SampledClaim
from sardonyx.papers.worlds import World, joined, within
from sardonyx.questions import ProgramSource
from sardonyx.runs import scheduler
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Setting, Simulations, is_key
from sardonyx.runs.results import Info, Results, Run, Trace
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.stores import StoreRuns
from sardonyx.runs.tailbench import TimedRuns
from sardonyx.sweeps.rows import Rows, RowSweep, run_of
from sardonyx.sweeps.varying import Range, Varying

#: The number of cells of a sample, and of a quick one.
CELLS, QUICK_CELLS = 200, 40
#: This many values are tried for a key if the other keys' values rule one out.
AGAIN = 16
#: A drawn memory is at least this many times as large as the structures of the programs on all
#: cores, which have logs and tables too. *assumed*
ROOM = 2
#: The share of cells outside of the interval that is given with the median, at each end.
TAIL = 0.05

CellPoints: TypeAlias = Simulations | TimedRuns | StoreRuns
#: The runs of a cell on all workloads, by the choices of these and the keys that are set.
CellRuns: TypeAlias = Callable[[Mapping[str, str], Sequence[Setting]], CellPoints]


@dataclass(frozen=True, slots=True)
class Sampled:
    """The runs of a paper's headline claims as a function of what the paper leaves open.

    ``workloads`` all run in every cell, by the names that their runs have as traces; none where the
    runs of a cell are no workloads of a paper. ``choices`` are those of the workloads, by a name,
    or keys of the machine that no assumed key stands for; all are *assumed*, and their ``value`` is
    what the paper describes best. ``machine`` and ``overrides`` are of the machine whose assumed
    keys are drawn; a key in them is not drawn. Each of ``worlds`` is a sample of its own.
    """

    workloads: tuple[str, ...]
    choices: tuple[Range, ...]
    runs: CellRuns
    claims: Callable[[Comparison], Sequence[ClaimRow]]
    machine: str
    overrides: Sequence[Setting] = ()
    note: str = ""
    worlds: tuple[World, ...] = ()
    #: The number of cells, and of a quick sample.
    cells: int = CELLS
    quick_cells: int = QUICK_CELLS


@dataclass(slots=True)
class Sampling:
    """A sample that is to be run: ``cells`` of them, drawn from ``seed``, kept in ``folder``.

    ``assumed`` are the keys on which the runs depend; ``base`` are the results of the
    reproduction's own runs, and ``point`` has our figures there, by the claims' keys.
    """

    of: Sampled
    cells: int
    seed: int
    folder: Path
    assumed: frozenset[str]
    base: Results
    point: Mapping[str, float | None]
    workers: int | None = None
    watch: Watch | None = None
    _failures: dict[str, int] = field(default_factory=dict)
    _redrawn: int = 0

    def run(self) -> Sample:
        """Run all cells; the answer depends on the claims' runs, the cells and the seed alone. The
        cells are divided among the worlds, which draw alike.
        """
        if self.of.worlds:
            return joined({world.name: self._in(world).run() for world in self.of.worlds})
        workload = [choice for choice in self.of.choices if not is_key(choice.parameter)]
        keys = self._keys()
        choices = [*workload, *keys]
        drawn = self._drawn(choices)
        cells = [self._cell(number, drawn, keys) for number in range(self.cells)]
        rows = [(cell, n, cell.varying.row(n, {})) for cell in cells for n in cell.numbers]
        answers = self._run(rows)
        judged = [
            Judged(
                self._judge(cell, [answers[cell.number, n] for n in cell.numbers]),
                frozenset(
                    cell.runs.points[n].trace
                    for n in cell.numbers
                    if answers[cell.number, n] is None
                ),
            )
            for cell in cells
        ]
        whole = [cell for cell, found in zip(cells, judged, strict=True) if not found.lost]
        bearing = self._bearing(whole[0], answers) if whole else {}
        values = {
            choice.parameter: [cell.values[choice.parameter] for cell in cells]
            for choice in choices
        }
        free = {choice.parameter for choice in self.of.choices}
        claimed = self.of.claims(Comparison(self.base))
        return Sample(
            self.cells,
            self.seed,
            len(rows),
            tuple(map(_choice, choices)),
            tuple(
                self._claim(
                    row,
                    judged,
                    {
                        name: each
                        for name, each in values.items()
                        if name in free or name in bearing.get(row.claim.key, ())
                    },
                )
                for row in claimed
            ),
            self.of.note,
            self._redrawn,
            tuple(
                f"{text} ({count} runs)" if count > 1 else text
                for text, count in sorted(self._failures.items())
            ),
            self.of.workloads,
            self.cells - len(whole),
        )

    def _in(self, world: World) -> Sampling:
        cells = max(1, self.cells // len(self.of.worlds))
        folder = self.folder / world.name.replace(" ", "-")
        of = within(self.of, world)
        return replace(self, of=of, cells=cells, folder=folder, _failures={}, _redrawn=0)

    # ---- cells

    def _keys(self) -> list[Range]:
        """The keys that are drawn: those among the choices, and the assumed ones."""
        usual = {choice.parameter: choice.value for choice in self.of.choices}
        set_ = {key for key, _ in self.of.overrides}
        assumed = varying(self.of.runs(usual, self.of.overrides)).ranges()
        return [
            *(
                key
                for key in self.of.choices
                if is_key(key.parameter) and key.parameter not in set_
            ),
            *(key for key in assumed if key.ends and key.parameter in self.assumed - usual.keys()),
        ]

    def _drawn(self, choices: Sequence[Range]) -> dict[str, list[str]]:
        """The values of each choice in the cells, one from each of as many parts of its range."""
        return {
            choice.parameter: [choice.at(share) for share in self._shares(choice.parameter)]
            for choice in choices
        }

    def _shares(self, name: str) -> list[float]:
        """How far through its values a choice is in each cell."""
        generator = random.Random(f"{self.seed} {name}")
        parts = list(range(self.cells))
        generator.shuffle(parts)
        return [(part + generator.random()) / self.cells for part in parts]

    def _cell(self, number: int, drawn: Mapping[str, Sequence[str]], keys: Sequence[Range]) -> Cell:
        values = {name: each[number] for name, each in drawn.items()}
        values |= self._told_apart(number, values, keys)
        overrides = [*self.of.overrides, *((key.parameter, values[key.parameter]) for key in keys)]
        runs = self.of.runs(values, overrides)
        if not _possible(runs):
            # Keys may rule each other out: each keeps its value with those before it, or gets
            # another.
            self._redrawn += 1
            generator = random.Random(f"{self.seed} {number} again")
            overrides = list(self.of.overrides)
            for key in keys:
                tried = [values[key.parameter], *(key.drawn(generator) for _ in range(AGAIN))]
                possible = (
                    value
                    for value in tried
                    if _possible(self.of.runs(values, [*overrides, (key.parameter, value)]))
                )
                values[key.parameter] = next(possible, key.value)
                overrides.append((key.parameter, values[key.parameter]))
            runs = self.of.runs(values, overrides)
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

    # ---- runs

    def _run(
        self, rows: Sequence[tuple[Cell, int, dict[str, Any]]]
    ) -> dict[tuple[int, int], Run | None]:
        groups: dict[tuple[str, ...], list[tuple[Cell, int, dict[str, Any]]]] = {}
        for cell, number, row in rows:
            groups.setdefault(tuple(sorted(row)), []).append((cell, number, row))
        kept = Rows(self.of.machine, self.folder, self.workers, self.watch)
        sweeps: list[tuple[RowSweep, list[tuple[Cell, int, dict[str, Any]]]]] = [
            (kept.sweep([row for _, _, row in group]), group) for _, group in sorted(groups.items())
        ]
        found = sum(sweep.done for sweep, _ in sweeps)
        before = f"; {found:,} were done before" if found else ""
        scheduler.tell(
            self.watch,
            f"sample: {self.cells} cells, {len(rows):,} runs{before}. What is done is kept in "
            f"{self.folder}",
        )
        answers: dict[tuple[int, int], Run | None] = {}
        for sweep, group in sweeps:
            for (cell, number, _), answer in zip(group, kept.run(sweep), strict=True):
                run = run_of(answer, cell.asked(number))
                if isinstance(run, str):
                    told = f"{cell.runs.points[number].trace}: {run}"
                    self._failures[told] = self._failures.get(told, 0) + 1
                answers[cell.number, number] = run if isinstance(run, Run) else None
        return answers

    def _bearing(
        self, cell: Cell, answers: Mapping[tuple[int, int], Run | None]
    ) -> dict[str, set[str]]:
        """The assumed keys that can bear on each claim: those on which runs depend without which
        the claim has another figure.
        """
        runs = [answers[cell.number, n] for n in cell.numbers]
        figures = {key: row.ours for key, row in self._judge(cell, runs).items()}
        found: dict[str, set[str]] = {key: set() for key in figures}
        for design in dict.fromkeys(cell.varying.designs):
            own = [n for n in cell.numbers if cell.varying.designs[n] == design]
            plain = next((run for run in self.base.runs if run.design == design), None)
            if plain is None:
                continue
            keys = {k for k in self.assumed for n in own if cell.varying.depends(n, k, plain)}
            left = [run for n, run in enumerate(runs) if n not in own]
            without = self._judge(cell, left) if left else {}
            for key, figure in figures.items():
                if key not in without or without[key].ours != figure:
                    found[key] |= keys
        return found

    def _judge(self, cell: Cell, runs: Sequence[Run | None]) -> dict[str, ClaimRow]:
        known = tuple(run for run in runs if run is not None)
        if not known:
            return {}
        results = replace(
            self.base,
            machine=replace(self.base.machine, parameters=dict(cell.varying.parameters({}))),
            traces=tuple(cell.traces(self.base.traces)),
            runs=known,
        )
        return {row.claim.key: row for row in self.of.claims(Comparison(results))}

    # ---- what it comes to

    def _claim(
        self,
        row: ClaimRow,
        judged: Sequence[Judged],
        values: Mapping[str, Sequence[str]],
    ) -> SampledClaim:
        claim = row.claim
        title = f"{claim.metric.replace('_', ' ')}, {claim.stat}"
        found = SampledClaim(
            claim.key, claim.where, title, claim.design, row.unit, claim.kind, claim.value,
            point=self.point.get(claim.key),
        )  # fmt: skip
        rows = [(n, each.rows[claim.key]) for n, each in enumerate(judged) if each.rows]
        names = [name for name in self.of.workloads if any(name in r.workloads for _, r in rows)]
        there = [
            (number, each)
            for number, each in rows
            if each.ours is not None and not judged[number].lacks(names)
        ]
        if not there:
            return replace(found, reason="no cell has what it needs: " + (row.reason or row.note))
        ours = [each.ours for _, each in there if each.ours is not None]
        drawn = {
            name: _numbers([each[number] for number, _ in there]) for name, each in values.items()
        }
        alone = [[on(each, name) for _, each in rows] for name in names]
        return replace(
            found,
            cells=len(there),
            holds=_count([each.holds for _, each in there]),
            sign=_count([each.sign for _, each in there]),
            near=_count([each.near for _, each in there]),
            median=_quantile(ours, 0.5),
            least=_quantile(ours, TAIL),
            most=_quantile(ours, 1 - TAIL),
            deciding=tuple(shares(drawn, _scaled(ours, row.unit), self.seed)),
            workloads=tuple(_alone(*each) for each in zip(names, alone, strict=True)),
            pairs=_pairs([[each.holds if each else None for each in cells] for cells in alone]),
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """What a cell says: each claim over the workloads that ran, and the workloads that ``lost`` a
    run.
    """

    rows: Mapping[str, ClaimRow]
    lost: frozenset[str]

    def lacks(self, workloads: Sequence[str]) -> bool:
        """Whether a claim over these workloads, or over all if none is named, lacks a run."""
        return bool(self.lost & set(workloads) if workloads else self.lost)


def on(row: ClaimRow, workload: str) -> ClaimRow | None:
    """A claim on one of its workloads; nothing if the workload has no figure."""
    ours = row.workloads.get(workload)
    return None if ours is None else replace(row, ours=ours)


def _alone(workload: str, cells: Sequence[ClaimRow | None]) -> Alone:
    """A claim on one workload, over the cells in which it has a figure."""
    known = [row for row in cells if row is not None]
    figures = [row.ours for row in known if row.ours is not None]
    held = sum(bool(row.holds) for row in known)
    return Alone(workload, len(figures), held, _quantile(figures, 0.5))


def _count(judged: Sequence[bool | None]) -> Count | None:
    """In how many of those that can say it is so; nothing if none can."""
    known = [each for each in judged if each is not None]
    return Count(sum(known), len(known), *proportion(sum(known), len(known))) if known else None


def _pairs(holds: Sequence[Sequence[bool | None]]) -> Count | None:
    """In how many pairs of a workload and a cell it is so; nothing of fewer than two workloads."""
    known = [each for cells in holds for each in cells if each is not None]
    return Count(sum(known), len(known), *crossed(holds)) if len(holds) > 1 else None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the values of its choices, and its runs on all workloads."""

    number: int
    values: Mapping[str, str]
    runs: CellPoints
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


def _possible(runs: CellPoints) -> bool:
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


def population(of: Sampled) -> list[Range]:
    """All that is drawn, before anything is run: the choices, and the assumed keys on which a
    design depends.
    """
    usual = {choice.parameter: choice.value for choice in of.choices}
    runs = of.runs(usual, of.overrides)
    fixed = {name for world in of.worlds for name in world.fixed}
    settled = {*usual, *(key for key, _ in of.overrides), *fixed}
    known = [key for key in varying(runs).ranges() if key.ends and key.parameter not in settled]
    if isinstance(runs, Simulations):
        shared = (runs.settings.machine, list(runs.settings.overrides))
        kinds = {(p.design, isinstance(p.source, ProgramSource)) for p in runs.points}
        bearing = set().union(*(_core.assumed_keys(*shared, *kind) for kind in kinds))
        known = [key for key in known if key.parameter in bearing]
    return [
        *(choice for choice in of.choices if choice.parameter not in fixed),
        *known,
    ]


def population_document(of: Sampled) -> dict[str, Any]:
    """The population for ``--json`` and for the table of a paper's page."""
    choices = []
    for each in population(of):
        choice = _choice(each)
        reason = each.reason if each.reason not in ("", "its other words") else ""
        why = f"{choice.why}; {reason}" if reason else choice.why
        row = {"name": choice.name, "value": choice.value, "values": choice.values, "why": why}
        choices.append(row)
    worlds = [{**asdict(world), "fixed": dict(world.fixed)} for world in of.worlds]
    return {"worlds": worlds, "choices": choices}


def _choice(each: Range) -> Choice:
    values = ", ".join(sorted({each.value, *each.others})) if each.others else ""
    return Choice(each.parameter, each.value, values or f"{each.low} to {each.high}", each.why)


def _numbers(texts: Sequence[str]) -> list[float] | list[str]:
    try:
        return [float(text) for text in texts]
    except ValueError:
        return list(texts)


def _scaled(ours: Sequence[float], unit: str) -> list[float]:
    """Ratios by their logarithm, so that twice as fast is as far from even as half as fast."""
    if unit == "x" and min(ours) > 0:
        return [math.log(each) for each in ours]
    return list(ours)


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
