"""Points of any folder as one table: what tells them apart, and the figures asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.runs.sources import unknown
from sardonyx.sweeps import folder as folders
from sardonyx.sweeps.folder import Folder, figures_of, settings_of
from sardonyx.sweeps.kinds import KINDS
from sardonyx.sweeps.kinds.kind import Figure
from sardonyx.sweeps.plan import check_goal

#: At most this many rows are read; of more, every so many-th is.
MOST = 50_000


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure, and whether more of it is better."""

    name: str
    more: bool

    @property
    def text(self) -> str:
        return f"{self.name}, {'more' if self.more else 'less'} is better"

    def cost(self, value: float) -> float:
        """The value as a number of which less is better."""
        return -value if self.more else value


@dataclass(frozen=True, slots=True)
class Swept:
    """Rows of points. ``settings`` tell points apart, ``axes`` are those that vary."""

    rows: Sequence[Mapping[str, Figure]]
    points: int
    settings: Sequence[str]
    axes: Sequence[str]
    subject: str
    goals: Sequence[Goal]
    failed: Sequence[Mapping[str, Any]]
    asked: int | None
    machines: Mapping[str, Mapping[str, Any]]
    versions: Sequence[str]
    damaged: Mapping[str, str]

    def values(self, name: str) -> list[Figure]:
        """The values of a setting: numbers in order, others as they come."""
        found = list(dict.fromkeys(row.get(name) for row in self.rows))
        found = [value for value in found if value is not None] or found
        if all(isinstance(value, int | float) for value in found):
            return sorted(found, key=lambda value: float(value or 0))
        return found

    def by_subject(self) -> dict[str, list[Mapping[str, Figure]]]:
        """The rows of each subject: figures of different ones are not compared."""
        found: dict[str, list[Mapping[str, Figure]]] = {}
        for row in self.rows:
            found.setdefault(str(row.get(self.subject)), []).append(row)
        return found


def is_swept(directory: Path) -> bool:
    """Whether there are points: of a sweep's folder, or copied together."""
    folder = Folder(directory)
    return (directory / folders.PLANS).is_dir() or any(
        next(folder.all(name), None) is not None for name in (folders.POINTS, folders.FAILED)
    )


def load(directory: Path, goals: Sequence[str] = ()) -> Swept:
    """The points of a sweep that has ended, else those in a folder, whoever made them.

    ``goals`` are figures as in ``max ipc``; without, those of the sweep's file.
    """
    folder = Folder(directory)
    plans = folder.plans()
    whole = directory / folders.RESULTS
    ended = plans.get((whole.is_file() and folders.plan_of(whole)) or "")
    names: dict[str, None] = {}
    settings: dict[str, None] = {}
    total = 0
    if ended is None:
        for row in folder.all(folders.POINTS):
            names.update(dict.fromkeys(row))
            settings.update(dict.fromkeys(settings_of(row)))
            total += 1
        bad = list(folder.all(folders.FAILED))
    else:
        names, settings = _columns(whole), dict.fromkeys(ended["columns"])
        errors = {str(row["point"]): row["error"] for row in _results(whole, ["point", "error"])}
        # What failed earlier may have run since, or be of a design as it was.
        bad = [one for name, e in errors.items() if e and (one := folder.failed(name)) is not None]
        total = sum(row["error"] is None for row in _results(whole, ["error"]))
    found = _goals(goals, plans, figures_of(names, settings))
    wanted = ["point", *settings, *(goal.name for goal in found)]
    points = (
        folder.all(folders.POINTS)
        if ended is None
        else (row for row in _results(whole, [*wanted, "error"]) if row["error"] is None)
    )
    rows = _rows(points, wanted, -(-total // MOST) or 1)
    kinds = {kind.subject: kind for kind in KINDS}
    return Swept(
        rows,
        total,
        list(settings),
        [name for name in settings if len({row.get(name) for row in rows}) > 1],
        next((name for name in settings if name in kinds), ""),
        found,
        [{key: row.get(key) for key in ("point", *settings, "error", "command")} for row in bad],
        max((plan["points"] for plan in plans.values()), default=None),
        {name: each for plan in plans.values() for name, each in plan["machines"].items()},
        sorted({str(plan["sardonyx"]) for plan in plans.values()}) or [_core.VERSION],
        dict(folder.damaged),
    )


def _columns(results: Path) -> dict[str, None]:
    import pyarrow.parquet as pq

    return dict.fromkeys(pq.read_schema(results).names)


def _results(results: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(results, columns=list(columns)).to_pylist()
    return rows


def _goals(
    goals: Sequence[str], plans: Mapping[str, Mapping[str, Any]], figures: Sequence[str]
) -> list[Goal]:
    """The goals that are asked for; without, those of the sweep, or of whatever kinds there are,
    as far as there are figures.
    """
    known = (plan["goals"] for plan in plans.values()) if plans else (k.goals for k in KINDS)
    found = []
    for text in dict.fromkeys(goals or (goal for each in known for goal in each)):
        name, more = check_goal("--goal", text)
        if name in figures:
            found.append(Goal(name, more))
        elif goals:
            raise _core.SardonyxError(f"--goal {text}: {unknown('figure', name, figures)}")
    return found


def _rows(
    points: Iterable[Mapping[str, Any]], wanted: Sequence[str], every: int
) -> list[Mapping[str, Figure]]:
    """The columns of every so many-th point, each once."""
    found: dict[tuple[Figure, ...], Mapping[str, Figure]] = {}
    for row in islice(points, every - 1, None, every):
        shown = {name: row.get(name) for name in wanted}
        found.setdefault(tuple(shown.values()), shown)
    return list(found.values())


def ranked(rows: Iterable[Mapping[str, Figure]], goal: Goal) -> list[Mapping[str, Figure]]:
    """Rows that have the goal's figure, the best first."""
    known = [row for row in rows if isinstance(row.get(goal.name), int | float)]
    return sorted(known, key=lambda row: float(row[goal.name] or 0), reverse=goal.more)


def front(rows: Iterable[Mapping[str, Figure]], one: Goal, two: Goal) -> list[Mapping[str, Figure]]:
    """The Pareto front: rows to which no other is better in one goal and as good in the other."""

    def values(row: Mapping[str, Figure]) -> tuple[float, float]:
        first, second = float(row[one.name] or 0), float(row[two.name] or 0)
        return -first if one.more else first, -second if two.more else second

    known = [row for row in ranked(rows, one) if isinstance(row.get(two.name), int | float)]
    found: list[Mapping[str, Figure]] = []
    for row in sorted(known, key=values):
        better = not found or values(row)[1] < values(found[-1])[1]
        if better or values(row) == values(found[-1]):
            found.append(row)
    return found
