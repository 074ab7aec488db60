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
from sardonyx.questions import CrashQuestion, ProgramSource
from sardonyx.runs.crashes import stages
from sardonyx.runs.scheduler import Watch

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


#: The size of each program's run that is cut.
FULL = ProgramSource(transactions=200, footprint=16384)
QUICK = ProgramSource(transactions=100, footprint=8192)

#: The explorer's answer for one run: ``stages`` and more.
Counts = Mapping[str, Any]
#: ``None`` is the program as it is.
ByMutant = Mapping[str | None, Counts]


def measure(
    programs: Sequence[str], question: CrashQuestion, watch: Watch | None = None
) -> Exhibit:
    """Ask the question of each program, and of it with each mutant."""
    asked = [(program, mutant) for program in programs for mutant in MUTANTS]
    answers = stages(
        [
            question.replace(program=question.program.replace(name=program), mutant=mutant)
            for program, mutant in asked
        ],
        watch,
    )
    found: dict[str, dict[str | None, Counts]] = {program: {} for program in programs}
    for (program, mutant), counts in zip(asked, answers, strict=True):
        found[program][mutant] = counts
    return table(found, question)


def table(found: Mapping[str, ByMutant], question: CrashQuestion) -> Exhibit:
    """The table that follows from the counts: a row a stage."""
    rows: dict[str, dict[str, Cell]] = {}
    for stage in STAGES:
        cells: dict[str, Cell] = {}
        for column, paper in zip(COLUMNS, PAPER.get(stage.name, (None,) * 3), strict=True):
            of = _atomicity if column == "counter_atomicity" else _copy(column)
            each = {program: of(stage, [runs])[0] for program, runs in found.items()}
            cells[column] = Cell(paper, *of(stage, list(found.values())), each)
        rows[stage.name] = cells
    known = [c.agrees for row in rows.values() for c in row.values() if c.agrees is not None]
    cuts = sum(run["cuts"] for runs in found.values() for run in runs.values())
    size = question.program
    assert isinstance(size, ProgramSource), "only programs have stages"
    facts = {
        "design": question.design,
        "programs": list(found),
        "transactions": size.transactions,
        "footprint_bytes": size.footprint,
        "item_bytes": size.item_bytes,
        "cores": question.cores,
        "cuts": cuts,
    }
    note = (
        f"Table 1: {sum(known)} of {len(known)} cells agree, over {cuts:,} cuts of "
        f"{question.design}, {len(found)} programs of {size.transactions} transactions. A copy is "
        "consistent if recovery can use it and does at every cut of the stage, unknown if it can "
        "and the log's header decides. The paper has validate, which makes the log valid, within "
        "prepare."
    )
    return Exhibit("table_1", "Table 1", "stage", rows, note, facts)


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
    """Whether something is lost without it that is not lost with it."""

    def lost(mutant: str | None) -> int:
        rows = (row for runs in programs for row in runs[mutant]["stages"])
        return sum(row["cuts"] - row["recovered"] for row in rows)

    plain, atomic = lost(stage.plain), lost(stage.atomic)
    counts = {"lost_if_plain": plain, "lost_if_counter_atomic": atomic}
    words = f"cuts not recovered from: {plain:,} if plain, {atomic:,} if counter-atomic"
    if atomic:
        return "not enough", words, counts
    return ("necessary" if plain else "unnecessary"), words, counts
