"""A sweep's folder: what is done, in shards written whole.

``shards/`` has finished points, ``failed/`` those that could not be run, both as Parquet, a row a
point. ``plans/`` says which sweeps were asked and what their inputs held. ``running/`` has a folder
of scratch files for each program at work. Everything appears by a rename.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx import _core
from sardonyx.files import replacing
from sardonyx.runs.origin import classes
from sardonyx.runs.results import in_order
from sardonyx.sweeps.kinds.kind import Figure, build
from sardonyx.sweeps.plan import Plan, Point, digest

if TYPE_CHECKING:
    import pandas
    import pyarrow
    import pyarrow.parquet

SHARDS, FAILED, PLANS, RUNNING, RESULTS = "shards", "failed", "plans", "running", "results.parquet"
#: The number of rows in memory while shards are merged.
ROWS = 5_000
#: The columns of a shard's row besides settings and figures.
ROW = ("point", "asked", "seconds", "host", "error", "command")


@dataclass(frozen=True, slots=True)
class Done:
    """A point as it is written: what tells it apart, its figures, or its error."""

    point: str
    asked: str
    row: Mapping[str, Figure]
    figures: Mapping[str, Figure]
    seconds: float
    error: str | None = None
    command: str | None = None


class Folder:
    """A sweep's folder; nothing is written before ``begin``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own: Path | None = None

    def check(self, plan: Plan) -> None:
        """An error if there is something else in it, or another sweep with points."""
        if not self.path.is_dir():
            return
        ours = {SHARDS, FAILED, PLANS, RUNNING, RESULTS}
        files = sorted(path.name for path in self.path.iterdir())
        if files and not ours & set(files) - {RESULTS}:
            raise _core.SardonyxError(
                f"--out {self.path}: holds {files[0]} and no sweep; name a new directory, or one "
                "that a sweep wrote"
            )
        self._check_plan(plan)

    # ---- plans

    def _check_plan(self, plan: Plan) -> None:
        others = [found for name, found in self.plans().items() if name != plan.id]
        if not others or not (self.shards() or self.failures() or self._at_work()):
            return
        count = others[0].get("points", "unknown")
        raise _core.SardonyxError(
            f"--out {self.path}: holds another sweep, of {count} points: its file was another one "
            "or has been changed since; name a new directory, for a table has the points of one "
            "sweep"
        )

    def _at_work(self) -> bool:
        """Whether another program is at work here."""
        running = self.path / RUNNING
        return running.is_dir() and any(
            path != self.own and not _ended(path) for path in running.iterdir()
        )

    def before(self, plan: str) -> dict[str, tuple[str, int]]:
        """What the inputs of a plan held when it began here."""
        found = self.plans().get(plan)
        if found is None:
            return {}
        return {each["name"]: (each["sha256"], each["bytes"]) for each in found["inputs"]}

    def plans(self) -> dict[str, dict[str, Any]]:
        """All plans that were begun here, by their hashes."""
        found = {}
        for path in sorted((self.path / PLANS).glob("*.json")):
            with suppress(OSError, ValueError):
                found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def begin(self, plan: Plan) -> None:
        """Say which plan is run, and clear away what killed programs have left."""
        for name in (SHARDS, FAILED, PLANS, RUNNING):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        for other in (self.path / RUNNING).iterdir():
            if _ended(other):
                shutil.rmtree(other, ignore_errors=True)
        own = self.path / RUNNING / f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        own.mkdir()
        self.own = own
        try:
            self._check_plan(plan)
        except BaseException:
            self.end()
            raise
        for name in self.plans():
            if name != plan.id:  # it has no point: its file was corrected before one was done
                (self.path / PLANS / f"{name}.json").unlink(missing_ok=True)
        machines = plan.assumed()
        document = {
            "sweep": plan.document,
            "base": str(plan.place.base.absolute()),
            "kind": plan.kind.name,
            "columns": plan.columns,
            "goals": list(plan.goals),
            "points": plan.count,
            "sardonyx": _core.VERSION,
            "build": build(),
            "machines": machines,
            "designs": classes(plan.designs),
            "inputs": [
                {"name": name, "sha256": each.sha256, "bytes": each.bytes}
                for name, each in plan.inputs.known.items()
            ],
        }
        target = self.path / PLANS / f"{plan.id}.json"
        text = json.dumps(document, indent=1) + "\n"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            self._put(target, lambda path: path.write_text(text, encoding="utf-8"))

    def end(self) -> None:
        """The scratch folder goes."""
        if self.own is not None:
            shutil.rmtree(self.own, ignore_errors=True)

    # ---- shards

    def keep(self, done: Sequence[Done], scratch: Path | None = None) -> None:
        """Write finished points as a shard, whole or not at all; failed ones likewise, apart."""
        for folder, part in (
            (SHARDS, [each for each in done if each.error is None]),
            (FAILED, [each for each in done if each.error is not None]),
        ):
            if part:
                name = digest(sorted(each.point for each in part))
                target = self.path / folder / f"{name}-{len(part)}.parquet"
                self._put(target, lambda path, part=part: _write(part, path), scratch)

    def _put(self, target: Path, write: Any, scratch: Path | None = None) -> None:
        """Put a file here by a rename from our scratch folder; an error names the target."""
        place = scratch or self.own
        assert place is not None
        aside = place / uuid.uuid4().hex
        try:
            write(aside)
            with aside.open("rb") as file:
                os.fsync(file.fileno())
            aside.replace(target)
        except OSError as error:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            problem = os.strerror(error.errno) if error.errno else str(error)
            raise _core.SardonyxError(
                f"{target}: {problem}; make room or give the permission, then give the same "
                "command again: what is done is kept"
            ) from error

    def shards(self) -> list[Path]:
        """Files of finished points: in the folder of shards, or in this one if it has none."""
        return self._files(SHARDS) or [
            path for path in sorted(self.path.glob("*.parquet")) if path.name != RESULTS
        ]

    def failures(self) -> list[Path]:
        """Files of failed points."""
        return self._files(FAILED)

    def _files(self, name: str) -> list[Path]:
        with suppress(FileNotFoundError):
            entries = os.scandir(self.path / name)
            return sorted(Path(e.path) for e in entries if e.name.endswith(".parquet"))
        return []


def _ended(own: Path) -> bool:
    """Whether the program of this folder was one of this host and has ended."""
    host, _, pid = own.name.rpartition("-")[0].rpartition("-")
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return True
    except PermissionError:
        return False
    return False


# ---- reading and writing tables


def _write(part: Sequence[Done], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "point": each.point,
            "asked": each.asked,
            **each.row,
            "seconds": each.seconds,
            "host": socket.gethostname(),
            "error": each.error,
            "command": each.command,
            **each.figures,
        }
        for each in part
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    arrays, fields = [], []
    for name in names:
        values = [row.get(name) for row in rows]
        kind = _type(values, whole=name in part[0].row)
        arrays.append(pa.array(_as(values, kind), kind))
        fields.append(pa.field(name, kind))
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)


def _type(values: Iterable[Figure], *, whole: bool = False) -> pyarrow.DataType:
    """The type of a column; integers of a setting stay integers, so that they can be joined."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.null()
    if whole and kinds == {int}:
        return pa.int64()
    if kinds == {bool}:
        return pa.bool_()
    return pa.string() if str in kinds else pa.float64()


def _as(values: Iterable[Figure], kind: pyarrow.DataType) -> list[Any]:
    import pyarrow as pa

    if kind == pa.string():
        return [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    if kind == pa.float64():
        return [None if v is None else float(v) for v in values]
    return list(values)


def _wider(one: pyarrow.DataType | None, other: pyarrow.DataType) -> pyarrow.DataType:
    """The type that holds values of both."""
    import pyarrow as pa

    if one is None or one == other or pa.types.is_null(one):
        return other
    if pa.types.is_null(other):
        return one
    return pa.string() if pa.string() in (one, other) else pa.float64()


class Index:
    """Which points are finished and in which shard, on disk, so that memory stays flat."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._files: list[Path] = []
        self._known: set[str] = set()
        #: The number of each shard's schema: many shards have the same one.
        self._schemas: list[tuple[int, int]] = []
        self._known_schemas: dict[pyarrow.Schema, int] = {}
        #: Shards that could not be read, with the reason; and for those that still exist, their
        #: inodes.
        self.damaged: dict[Path, str] = {}
        self._inodes: dict[Path, int] = {}
        self._last: tuple[int, pyarrow.Table] | None = None
        # "" is SQLite's own temporary file.
        self._base = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._base.execute(
            "CREATE TABLE done (point TEXT PRIMARY KEY, shard INT, row INT, wanted INT DEFAULT 0)"
            " WITHOUT ROWID"
        )
        self._base.execute("CREATE TABLE asked (point TEXT PRIMARY KEY) WITHOUT ROWID")

    def refresh(self) -> None:
        """Take in the shards that have come since."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for path in self._folder.shards():
            # A damaged shard is replaced by one of the same name if that has the same points.
            if path.name in self._known and self._inodes.get(path) in (None, path.stat().st_ino):
                continue
            self._known.add(path.name)
            inode = 0
            try:
                inode = path.stat().st_ino
                with pq.ParquetFile(path) as file:
                    names = file.read(columns=["point"]).column("point").to_pylist()
                    schema = file.schema_arrow
            except (OSError, pa.ArrowException, KeyError) as error:
                self.damaged[path] = " ".join(str(error).split())
                self._inodes[path] = inode
                continue
            self._inodes.pop(path, None)
            schema = schema.remove_metadata()
            number = self._known_schemas.setdefault(schema, len(self._known_schemas))
            self._schemas.append((number, len(names)))
            shard = len(self._files)
            self._files.append(path)
            with self._base:
                self._base.execute("BEGIN")
                self._base.executemany(
                    "INSERT OR IGNORE INTO done (point, shard, row) VALUES (?, ?, ?)",
                    ((name, shard, row) for row, name in enumerate(names)),
                )

    def is_first(self, point: str) -> bool:
        """Whether this is asked of the point for the first time."""
        asked = self._base.execute("INSERT OR IGNORE INTO asked (point) VALUES (?)", (point,))
        return asked.rowcount == 1

    def __len__(self) -> int:
        count: int = self._base.execute("SELECT count(*) FROM done").fetchone()[0]
        return count

    def __contains__(self, point: str) -> bool:
        return self.find(point) is not None

    def find(self, point: str) -> tuple[int, int] | None:
        """The shard and row of a point."""
        found: tuple[int, int] | None = self._base.execute(
            "SELECT shard, row FROM done WHERE point = ?", (point,)
        ).fetchone()
        return found

    def read(self, shard: int) -> pyarrow.Table:
        """A shard's rows; the last one is kept."""
        import pyarrow.parquet as pq

        if self._last is None or self._last[0] != shard:
            self._last = shard, pq.read_table(self._files[shard])
        return self._last[1]

    def types(self, points: Iterable[str]) -> dict[str, pyarrow.DataType]:
        """The columns in which one of these points has a value, however the shards were cut."""
        import pyarrow as pa

        with self._base:
            self._base.execute("BEGIN")
            self._base.execute("UPDATE done SET wanted = 0 WHERE wanted = 1")
            self._base.executemany(
                "UPDATE done SET wanted = 1 WHERE point = ?", ((point,) for point in points)
            )
        schemas = list(self._known_schemas)
        whole: set[int] = set()
        found: dict[str, pyarrow.DataType] = {}
        wanted = "SELECT shard, count(*) FROM done WHERE wanted = 1 GROUP BY shard ORDER BY shard"
        for shard, count in self._base.execute(wanted).fetchall():
            number, rows = self._schemas[shard]
            if count == rows and number in whole:
                continue
            empty: set[str] = set()
            if count == rows:
                whole.add(number)
            else:
                own = "SELECT row FROM done WHERE wanted = 1 AND shard = ?"
                part = self.read(shard).take([row for (row,) in self._base.execute(own, (shard,))])
                empty = {name for name in part.column_names if part[name].null_count == count}
            for field in schemas[number]:
                if field.name not in empty and not pa.types.is_null(field.type):
                    found[field.name] = _wider(found.get(field.name), field.type)
        return found


def figures_of(columns: Iterable[str], settings: Iterable[str]) -> list[str]:
    """Names of figures among columns: metrics by name, then causes in report order."""
    figures = set(columns) - set(settings) - set(ROW)
    plain = sorted(name for name in figures if not name.startswith("cause."))
    causes = in_order({name.split(".")[1] for name in figures if name.startswith("cause.")})
    booked = [
        name for cause in causes for name in sorted(figures) if name.startswith(f"cause.{cause}.")
    ]
    return plain + booked


def failed(folder: Folder) -> dict[str, dict[str, Any]]:
    """Failed points by their names: ``asked``, ``error``, ``command``, ``seconds``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, dict[str, Any]] = {}
    for path in folder.failures():
        with suppress(OSError, pa.ArrowException):
            for row in pq.read_table(path).to_pylist():
                found[row["point"]] = row
    return found


def merge(plan: Plan, folder: Folder, index: Index, target: Path) -> list[dict[str, Any]]:
    """Write ``results.parquet``: a row a point, in the order of the plan. The answer: failures.

    The bytes depend on the points alone, not on who ran them, nor when.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    settings = plan.columns
    bad = failed(folder)

    def names() -> Iterator[str]:
        for point in plan.points():
            if point.name not in index and point.name not in bad:
                raise Incomplete
            yield point.name

    types = index.types(names())
    figures = figures_of(types, settings)
    schema = pa.schema(
        [("point", pa.string())]
        + [(name, _type(plan.values(name), whole=True)) for name in settings]
        + [(name, types[name]) for name in figures]
        + [("error", pa.string())],
        metadata={"sardonyx": _core.VERSION, "sardonyx.plan": plan.id},
    )
    failures: list[dict[str, Any]] = []
    with replacing(target) as scratch, pq.ParquetWriter(scratch, schema, compression="zstd") as out:
        for points in _chunks(plan.points(), ROWS):
            rows: list[dict[str, Any]] = []
            places: list[tuple[int, int] | None] = []
            for point in points:
                rows.append({"point": point.name, **plan.row(point)})
                places.append(index.find(point.name))
                if places[-1] is None:
                    rows[-1]["error"] = bad[point.name]["error"]
                    failures.append(failure(bad[point.name], plan.row(point)))
            out.write_table(_table(rows, _gathered(index, places, figures, types), schema))
    return failures


def failure(row: Mapping[str, Any], settings: Mapping[str, Figure]) -> dict[str, Any]:
    """What is said of a failed point."""
    return {key: row[key] for key in ("point", "error", "command")} | {"settings": dict(settings)}


def _table(
    rows: Sequence[Mapping[str, Any]], figures: pyarrow.Table, schema: pyarrow.Schema
) -> pyarrow.Table:
    import pyarrow as pa

    columns = [
        figures.column(field.name)
        if field.name in figures.column_names
        else pa.array(_as([row.get(field.name) for row in rows], field.type), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _gathered(
    index: Index,
    places: Sequence[tuple[int, int] | None],
    figures: Sequence[str],
    types: Mapping[str, pyarrow.DataType],
) -> pyarrow.Table:
    """The figures at these places, in their order; nulls where there is no place."""
    import numpy as np
    import pyarrow as pa

    kinds = [types[name] for name in figures]
    by_shard: dict[int, list[tuple[int, int]]] = {}
    for at, place in enumerate(places):
        by_shard.setdefault(-1 if place is None else place[0], []).append(
            (at, place[1] if place else 0)
        )
    parts, order = [], np.empty(len(places), dtype=np.int64)
    filled = 0
    for shard, pairs in by_shard.items():
        taken = None if shard < 0 else index.read(shard).take([row for _, row in pairs])
        columns = [
            pa.array([None] * len(pairs), kind)
            if taken is None or name not in taken.column_names
            else taken.column(name).cast(kind)
            for name, kind in zip(figures, kinds, strict=True)
        ]
        parts.append(pa.Table.from_arrays(columns, names=list(figures)))
        for offset, (at, _) in enumerate(pairs):
            order[at] = filled + offset
        filled += len(pairs)
    return pa.concat_tables(parts).take(order)


def frame(plan: Plan, folder: Folder, results: Path | None) -> pandas.DataFrame:
    """The results as a data frame; without them, as of a share, the rows that are there: those of
    points that have figures or an ``error``.
    """
    import pandas as pd

    if results is not None:
        return pd.read_parquet(results)
    index, bad = Index(folder), failed(folder)
    index.refresh()
    found = [point for point in plan.points() if point.name in index or point.name in bad]
    types = index.types(point.name for point in found)
    figures = figures_of(types, plan.columns)
    rows = pd.DataFrame(
        [{"point": point.name, **plan.row(point)} for point in found],
        columns=["point", *plan.columns],
    )
    if found:
        places = [index.find(point.name) for point in found]
        rows = pd.concat([rows, _gathered(index, places, figures, types).to_pandas()], axis=1)
    errors = [None if point.name in index else bad[point.name]["error"] for point in found]
    return rows.assign(error=pd.Series(errors, dtype="object"))


def plan_of(results: Path) -> str | None:
    """The plan whose results these are."""
    import pyarrow.parquet as pq

    said: bytes | None = (pq.read_schema(results).metadata or {}).get(b"sardonyx.plan")
    return None if said is None else said.decode()


class Incomplete(Exception):
    """A point of the plan is neither done nor failed."""


def _chunks(points: Iterator[Point], count: int) -> Iterator[list[Point]]:
    while chunk := list(islice(points, count)):
        yield chunk
