"""A reproduction as a sample: a paper's headline claims over what the paper leaves open.

Every workload of the paper runs in every cell (``vary.cells``), because the claims are minima,
means and maxima over all of them. What is concluded of a claim is the share of cells in which ours
is what the paper's words say, over all workloads and on each, where the middle 90 % lie, which
choices decide it, and if asked for, at which value of these it turns.
Left out: which runs and choices a paper has (each paper).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.papers.claims import WITHIN, ClaimRow
from sardonyx.papers.sample import Alone, Choice, Sample, SampledClaim
from sardonyx.papers.worlds import World, joined, joined_sensitivity, within
from sardonyx.questions import ProgramSource
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.conclusions import SIGN, Conclusion
from sardonyx.runs.jobs import Setting, Simulations, is_key
from sardonyx.runs.results import Results, Run
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sensitivity import Count, Sensitivity
from sardonyx.vary.cells import Cell, Cells, RunsOf, Space
from sardonyx.vary.indices import deciding
from sardonyx.vary.intervals import TAIL, count, crossed, quantile
from sardonyx.vary.ranges import Range
from sardonyx.vary.runs import varying
from sardonyx.vary.turning import Turning

#: The number of cells of a sample, and of a quick one.
CELLS, QUICK_CELLS = 200, 40
#: What is said of nearness.
NEAR = f"{WITHIN:.0%}".replace("%", " %")


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
    runs: RunsOf
    claims: Callable[[Comparison], Sequence[ClaimRow]]
    machine: str
    overrides: Sequence[Setting] = ()
    note: str = ""
    worlds: tuple[World, ...] = ()
    #: The number of cells, and of a quick sample.
    cells: int = CELLS
    quick_cells: int = QUICK_CELLS

    @property
    def space(self) -> Space:
        """What its cells differ in."""
        return Space(self.choices, self.runs, self.machine, self.overrides)


@dataclass(slots=True)
class Sampling:
    """A sample that is to be run: ``count`` cells, drawn from ``seed``, kept in ``folder``.

    ``assumed`` are the keys on which the runs depend; ``base`` are the results of the
    reproduction's own runs, and ``point`` has our figures there, by the claims' keys.
    """

    of: Sampled
    count: int
    seed: int
    folder: Path
    assumed: frozenset[str]
    base: Results
    point: Mapping[str, float | None]
    workers: int | None = None
    watch: Watch | None = None

    @property
    def cells(self) -> Cells:
        """Its cells."""
        return Cells(
            self.of.space, self.count, self.seed, self.folder, self.assumed, self.workers,
            self.watch,
        )  # fmt: skip

    def run(self, *, turning: bool = False) -> tuple[Sample, Sensitivity | None]:
        """Run all cells; the answer depends on the claims' runs, the cells and the seed alone. The
        cells are divided among the worlds, which draw alike. ``turning`` also asks at which values
        the claims turn.
        """
        if self.of.worlds:
            found = {world.name: self._in(world).run(turning=turning) for world in self.of.worlds}
            whole = joined({name: sample for name, (sample, _) in found.items()})
            return whole, joined_sensitivity({name: each for name, (_, each) in found.items()})
        cells = self.cells
        keys = cells.open_keys()
        drawn = cells.draw(keys)
        asked = [(cell, n) for cell in drawn for n in cell.numbers]
        answers = cells.run(asked, f"sample: {self.count} cells, {len(asked):,} runs")
        judged = [
            Judged(
                self._judge(cell, [answers[cell.number, n] for n in cell.numbers]),
                frozenset(
                    cell.runs.points[n].trace
                    for n in cell.numbers
                    if answers[cell.number, n] is None
                ),
            )
            for cell in drawn
        ]
        whole_cells = [cell for cell, found in zip(drawn, judged, strict=True) if not found.lost]
        bearing = self._bearing(whole_cells[0], answers) if whole_cells else {}
        choices = cells.choices(keys)
        values = {
            choice.parameter: [cell.values[choice.parameter] for cell in drawn]
            for choice in choices
        }
        claimed = self.of.claims(Comparison(self.base))
        sample = Sample(
            self.count,
            self.seed,
            len(asked),
            tuple(map(_choice, choices)),
            tuple(
                self._claim(
                    row,
                    judged,
                    {
                        name: each
                        for name, each in values.items()
                        if self._bears(bearing, row.claim.key, name)
                    },
                )
                for row in claimed
            ),
            self.of.note,
            cells.redrawn,
            cells.failures_said,
            self.of.workloads,
            self.count - len(whole_cells),
        )
        return sample, self._turning(cells, keys, drawn, judged, bearing) if turning else None

    def _in(self, world: World) -> Sampling:
        count = max(1, self.count // len(self.of.worlds))
        folder = self.folder / world.name.replace(" ", "-")
        return replace(self, of=within(self.of, world), count=count, folder=folder)

    def _turning(
        self,
        cells: Cells,
        keys: Sequence[Range],
        drawn: Sequence[Cell],
        judged: Sequence[Judged],
        bearing: Mapping[str, set[str]],
    ) -> Sensitivity:
        """Which claims turn, and along which choices, over the sample's cells."""
        usual = cells.alone(0, keys)
        answers = cells.run([(usual, number) for number in usual.numbers])
        plain = {run.design: run for run in reversed(self.base.runs)}
        free = {choice.parameter for choice in self.of.choices}

        def judge(cell: Cell, runs: Sequence[Run | None]) -> dict[str, Conclusion]:
            return concluded(self._judge(cell, runs).values(), len(usual.numbers))

        def depends(number: int, name: str) -> bool:
            if name in free and not is_key(name):
                return True
            run = plain.get(usual.varying.designs[number])
            return run is None or name in free or usual.varying.depends(number, name, run)

        return Turning(
            cells,
            keys,
            judge,
            [answers[0, number] for number in usual.numbers],
            depends,
            lambda each, name: self._bears(bearing, each.measure, name),
            note=self.of.note,
        ).study(
            drawn,
            [concluded(() if each.lost else each.rows.values(), len(answers)) for each in judged],
        )

    # ---- what bears on a claim

    def _bears(self, bearing: Mapping[str, set[str]], claim: str, name: str) -> bool:
        """Whether a choice can bear on a claim: those of the workloads always can."""
        free = any(choice.parameter == name for choice in self.of.choices)
        return free or name in bearing.get(claim, ())

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
            machine=replace(self.base.machine, parameters=dict(cell.varying.parameters())),
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
        drawn = {name: [each[number] for number, _ in there] for name, each in values.items()}
        alone = [[on(each, name) for _, each in rows] for name in names]
        return replace(
            found,
            cells=len(there),
            holds=count([each.holds for _, each in there]),
            sign=count([each.sign for _, each in there]),
            near=count([each.near for _, each in there]),
            median=quantile(ours, 0.5),
            least=quantile(ours, TAIL),
            most=quantile(ours, 1 - TAIL),
            deciding=deciding(drawn, ours, row.unit, self.seed),
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
    return Alone(workload, len(figures), held, quantile(figures, 0.5))


def _pairs(holds: Sequence[Sequence[bool | None]]) -> Count | None:
    """In how many pairs of a workload and a cell it is so; nothing of fewer than two workloads."""
    known = [each for cells in holds for each in cells if each is not None]
    return Count(sum(known), len(known), *crossed(holds)) if len(holds) > 1 else None


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
    return Choice(each.parameter, each.value, each.values, each.why)


# ---- claims as conclusions


def concluded(rows: Iterable[ClaimRow], runs: int) -> dict[str, Conclusion]:
    """The claims that so many runs support, as conclusions that may turn."""
    everything = frozenset(range(runs))
    found = {}
    for row in rows:
        if row.ours is None:
            continue
        claim = row.claim
        title = f"{claim.where}: {claim.metric.replace('_', ' ')}, {claim.stat}"
        each = Conclusion(
            claim.key, title, claim.design, "", "", row.ours, row.unit, says(row), everything
        )
        found[each.name] = each
    return found


def says(row: ClaimRow) -> dict[str, str]:
    """Whether our figure is what the paper's words say, and whether it is near the paper's."""
    found = {}
    if row.holds is not None:
        found[SIGN] = "as the paper says" if row.holds else "not as the paper says"
    if row.near is not None:
        found[NEAR] = f"within {NEAR} of the paper's" if row.near else f"not within {NEAR}"
    return found


def marked(rows: Sequence[ClaimRow], found: Sensitivity) -> tuple[ClaimRow, ...]:
    """The claims, with only those assumed keys along which they turn."""
    turns: dict[str, dict[str, None]] = {}
    for each in found.concluded:
        along = turns.setdefault(each.measure, {})
        along.update((turn.parameter, None) for said in each.says for turn in said.turns)
    return tuple(
        replace(row, assumed=tuple(turns[row.claim.key])) if row.claim.key in turns else row
        for row in rows
    )
