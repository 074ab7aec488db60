"""Points of any set of shards as one table: what tells them apart, and the figures asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx import _core
from sardonyx.runs.sources import unknown
from sardonyx.sweeps import folder as folders
from sardonyx.sweeps.folder import Folder, figures_of
from sardonyx.sweeps.kinds import KINDS
from sardonyx.sweeps.kinds.kind import Figure
from sardonyx.sweeps.plan import check_goal

if TYPE_CHECKING:
    import pyarrow

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
    """Rows of shards. ``settings`` tell points apart, ``axes`` are those that vary."""

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
    """Whether there are shards: of a sweep's folder, or copied together."""
    folder = Folder(directory)
    if folder.failures() or (directory / folders.PLANS).is_dir():
        return True
    return any("asked" in _schema(path) for path in folder.shards()[:1])


def _schema(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return []


def load(directory: Path, goals: Sequence[str] = ()) -> Swept:
    """The points of a sweep that has ended, else those in a folder's shards, whoever made them.

    ``goals`` are figures as in ``max ipc``; without, those of the sweep's file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Folder(directory)
    plans = folder.plans()
    settings: dict[str, None] = {}
    figures: dict[str, None] = {}
    damaged: dict[str, str] = {}
    paths = []
    total = 0
    whole = directory / folders.RESULTS
    ended = plans.get((whole.is_file() and folders.plan_of(whole)) or "")
    for path in folder.shards() if ended is None else [whole]:
        try:
            with pq.ParquetFile(path) as file:
                names = file.schema_arrow.names
                total += file.metadata.num_rows
        except (OSError, pa.ArrowException) as error:
            damaged[str(path)] = " ".join(str(error).split())
            continue
        if ended is not None:
            own = ended["columns"]
        elif "asked" in names:
            # A shard has its settings between the columns of the question and of the time.
            own = names[names.index("asked") + 1 : names.index("seconds")]
        else:
            continue
        settings.update(dict.fromkeys(own))
        figures.update(dict.fromkeys(figures_of(names, own)))
        paths.append(path)
    chosen = [
        *goals,
        *(goal for plan in plans.values() if not goals for goal in plan["goals"]),
        *(goal for kind in KINDS if not goals and not plans for goal in kind.goals),
    ]
    found = []
    for text in dict.fromkeys(chosen):
        name, more = check_goal("--goal", text)
        if name in figures:
            found.append(Goal(name, more))
        elif goals:
            raise _core.SardonyxError(f"--goal {text}: {unknown('figure', name, list(figures))}")
    every = -(-total // MOST) or 1
    wanted = ["point", *settings, *(goal.name for goal in found)]
    rows = list(_rows(paths, wanted, every))
    bad = folders.failed(folder)
    if ended is not None:  # what failed earlier may have run since, or be of a design as it was
        now = pq.read_table(whole, columns=["point", "error"]).to_pylist()
        names = [row["point"] for row in now if row["error"] is not None]
        total -= len(names)
        bad = {name: bad[name] for name in dict.fromkeys(names) if name in bad}
    axes = [name for name in settings if len({row.get(name) for row in rows}) > 1]
    failed = [
        {key: row.get(key) for key in ("point", *settings, "error", "command")}
        for row in bad.values()
    ]
    kinds = {kind.subject: kind for kind in KINDS}
    return Swept(
        rows,
        total,
        list(settings),
        axes,
        next((name for name in settings if name in kinds), ""),
        found,
        failed,
        max((plan["points"] for plan in plans.values()), default=None),
        {name: each for plan in plans.values() for name, each in plan["machines"].items()},
        sorted({str(plan["sardonyx"]) for plan in plans.values()}) or [_core.VERSION],
        damaged,
    )


def _rows(
    paths: Iterable[Path], wanted: Sequence[str], every: int
) -> Iterable[Mapping[str, Figure]]:
    import pyarrow.parquet as pq

    seen: set[tuple[Figure, ...]] = set()
    count = 0
    for path in paths:
        with pq.ParquetFile(path) as file:
            table: pyarrow.Table = file.read(
                columns=[name for name in (*wanted, "error") if name in file.schema_arrow.names]
            )
        for row in table.to_pylist():
            count += 1
            told = tuple(row.get(name) for name in wanted)
            if count % every == 0 and row.pop("error", None) is None and told not in seen:
                seen.add(told)
                yield row


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
