"""SCA's Table 1, measured: which copy of the data is consistent in which stage of an undo-logged
transaction, and whether the stage's stores need counter-atomicity.

``measure`` cuts the power of each program everywhere, with the stores of one stage after the other
counter-atomic or not; the cells follow from counts of cuts. Left out: everything that cuts or
recovers, which the native explorer does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sardonyx.papers.reproduction import Cell, Exhibit
from sardonyx.runs.crashes import CrashQuestion, explore
from sardonyx.runs.jobs import Setting
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import ProgramSource

#: The design whose primitives the paper's table argues for.
DESIGN = "sca"
Column = Literal["backup", "data", "counter_atomicity"]
COLUMNS: tuple[Column, ...] = ("backup", "data", "counter_atomicity")

#: The paper's table. Its *prepare* also makes the log valid, in words; that store is a switch like
#: the one of *commit* (Fig. 9 has it ``CounterAtomic``), and is ``validate`` here.
PAPER: Mapping[str, tuple[str, str, str]] = {
    "prepare": ("inconsistent", "consistent", "unnecessary"),
    "mutate": ("consistent", "inconsistent", "unnecessary"),
    "commit": ("unknown", "unknown", "necessary"),
}


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage, and the programs whose stores in it are plain or counter-atomic: mutants, or
    ``None`` for the program as it is.
    """

    name: str
    plain: str | None
    atomic: str | None


STAGES = (
    Stage("prepare", None, "prepare-counter-atomic"),
    Stage("validate", "valid-not-counter-atomic", None),
    Stage("mutate", None, "mutate-counter-atomic"),
    Stage("commit", "commit-not-counter-atomic", None),
)
MUTANTS = tuple(dict.fromkeys(m for stage in STAGES for m in (stage.plain, stage.atomic)))


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is cut; sizes are bytes."""

    transactions: int
    footprint: int
    item: int = 64
    cores: int = 1


FULL = Scale(transactions=400, footprint=16384)
QUICK = Scale(transactions=100, footprint=8192)

#: What the explorer gives for one run: ``stages`` and more.
Counts = Mapping[str, Any]
#: ``None`` is the program as it is.
ByMutant = Mapping[str | None, Counts]


@dataclass(frozen=True, slots=True)
class Table1:
    """The table: a row a stage, of a cell a column."""

    rows: Mapping[str, Mapping[Column, Cell]]
    scale: Scale
    design: str
    programs: tuple[str, ...]
    cuts: int

    @property
    def note(self) -> str:
        """One sentence on what was cut."""
        cells = [cell for row in self.rows.values() for cell in row.values()]
        known = [cell for cell in cells if cell.agrees is not None]
        return (
            f"Table 1: {sum(bool(c.agrees) for c in known)} of {len(known)} cells agree, over "
            f"{self.cuts:,} cuts of {self.design}, {len(self.programs)} programs of "
            f"{self.scale.transactions} transactions. A copy is consistent if recovery can use it "
            "and does at every cut of the stage, unknown if it can and the log's header decides. "
            "The paper has validate, which makes the log valid, within prepare."
        )

    def exhibit(self) -> Exhibit:
        """The table as reports show it."""
        rows = {stage: tuple(row.values()) for stage, row in self.rows.items()}
        columns = tuple(column.replace("_", "-") for column in COLUMNS)
        title = "Table 1 of the paper"
        return Exhibit("table_1", title, columns, rows, self.note, self.to_document())

    def to_document(self) -> dict[str, Any]:
        rows = [
            {"stage": stage, "in_the_paper": stage in PAPER}
            | {column: row[column].to_document() for column in COLUMNS}
            for stage, row in self.rows.items()
        ]
        return {
            "design": self.design,
            "programs": list(self.programs),
            "transactions": self.scale.transactions,
            "footprint_bytes": self.scale.footprint,
            "item_bytes": self.scale.item,
            "cores": self.scale.cores,
            "cuts": self.cuts,
            "note": self.note,
            "rows": rows,
        }


def measure(
    programs: Sequence[str],
    scale: Scale,
    machine: str,
    overrides: Sequence[Setting] = (),
    seed: int = 0,
    watch: Watch | None = None,
    design: str = DESIGN,
) -> Table1:
    """Cut everything."""
    questions = [
        CrashQuestion(
            program=ProgramSource(
                name=program,
                item_bytes=scale.item,
                footprint=scale.footprint,
                transactions=scale.transactions,
                seed=seed,
            ),
            design=design,
            machine=machine,
            overrides=tuple(overrides),
            cores=scale.cores,
            mutant=mutant,
        )
        for program in programs
        for mutant in MUTANTS
    ]
    found: dict[str, dict[str | None, Counts]] = {program: {} for program in programs}
    answers = explore(questions, watch, stages=True)
    for question, counts in zip(questions, answers, strict=True):
        found[question.program.name][question.mutant] = counts
    return table(found, scale, design)


def table(found: Mapping[str, ByMutant], scale: Scale, design: str = DESIGN) -> Table1:
    """The table that follows from the counts."""
    rows: dict[str, dict[Column, Cell]] = {}
    for stage in STAGES:
        cells: dict[Column, Cell] = {}
        for column, paper in zip(COLUMNS, PAPER.get(stage.name, (None,) * 3), strict=True):
            of = _atomicity if column == "counter_atomicity" else _copy(column)
            each = {program: of(stage, [runs]) for program, runs in found.items()}
            ours, evidence, counts = of(stage, list(found.values()))
            cells[column] = Cell(
                paper, ours, evidence, counts, {name: value[0] for name, value in each.items()}
            )
        rows[stage.name] = cells
    cuts = sum(run["cuts"] for runs in found.values() for run in runs.values())
    return Table1(rows, scale, design, tuple(found), cuts)


_Verdict = tuple[str, str, dict[str, int]]


def _copy(column: Column) -> Callable[[Stage, Sequence[ByMutant]], _Verdict]:
    """Whether recovery can use the copy at every cut of the stage, and whether it does."""

    def of(stage: Stage, programs: Sequence[ByMutant]) -> _Verdict:
        def total(key: str) -> int:
            rows = (row for runs in programs for row in runs[None]["stages"])
            return sum(row[key] for row in rows if row["stage"] == stage.name)

        cuts, usable, taken = total("cuts"), total(f"{column}_usable"), total(f"takes_{column}")
        counts = {"cuts": cuts, "usable": usable, "taken": taken}
        words = f"usable at {usable:,} of {cuts:,} cuts, taken at {taken:,}"
        if cuts == 0:
            return "none", "no cut fell into this stage", counts
        if usable < cuts:
            return "inconsistent", words, counts
        if taken == cuts:
            return "consistent", words, counts
        return ("unknown" if taken else "unused"), words, counts

    return of


def _atomicity(stage: Stage, programs: Sequence[ByMutant]) -> _Verdict:
    """Whether anything is lost without it that is not lost with it."""

    def lost(mutant: str | None) -> int:
        rows = (row for runs in programs for row in runs[mutant]["stages"])
        return sum(row["cuts"] - row["recovered"] for row in rows)

    plain, atomic = lost(stage.plain), lost(stage.atomic)
    counts = {"lost_if_plain": plain, "lost_if_counter_atomic": atomic}
    words = f"cuts not recovered from: {plain:,} if plain, {atomic:,} if counter-atomic"
    if atomic:
        return "not enough", words, counts
    return ("necessary" if plain else "unnecessary"), words, counts
