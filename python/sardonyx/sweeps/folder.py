"""A sweep's folder: what is done, a file a point, named by the point's hash and written whole.

``points/`` has finished points, ``failed/`` those that could not be run, each a flat JSON document.
``plans/`` says which sweeps were asked and what their inputs held. ``running/`` has a folder of
scratch files for each program at work. Everything appears by a rename.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sardonyx import _core
from sardonyx.files import read_text, replacing
from sardonyx.runs.origin import classes
from sardonyx.runs.results import in_order
from sardonyx.sweeps.kinds.kind import Figure, build
from sardonyx.sweeps.plan import Plan, Point

if TYPE_CHECKING:
    import pandas
    import pyarrow

POINTS, FAILED, PLANS, RUNNING, RESULTS = "points", "failed", "plans", "running", "results.parquet"
#: The number of rows in memory while points are merged.
ROWS = 5_000
#: The names in a point's file besides settings, which are between the second and the third of them,
#: and figures.
ROW = ("point", "asked", "seconds", "host", "error", "command")

#: A point's file: what tells the point apart, its figures, or its error.
Kept: TypeAlias = Mapping[str, Any]


class Folder:
    """A sweep's folder; nothing is written before ``begin``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own: Path | None = None
        #: Files of points that cannot be read, which count as missing, with the reason.
        self.damaged: dict[str, str] = {}

    def check(self, plan: Plan) -> None:
        """An error if there is something else in it, or another sweep with points."""
        if not self.path.is_dir():
            return
        ours = {POINTS, FAILED, PLANS, RUNNING, RESULTS}
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
        if not others or not (self.any(POINTS) or self.any(FAILED) or self._at_work()):
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
            with suppress(OSError, ValueError, RecursionError):
                found[path.stem] = json.loads(read_text(path))
        return found

    def begin(self, plan: Plan) -> None:
        """Say which plan is run, and clear away what killed programs have left."""
        for name in (POINTS, FAILED, PLANS, RUNNING):
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
            self._put(target, text)

    def end(self) -> None:
        """The scratch folder goes."""
        if self.own is not None:
            shutil.rmtree(self.own, ignore_errors=True)

    # ---- points

    def keep(self, kept: Kept, scratch: Path | None = None) -> None:
        """Write a point that is finished or has failed, whole or not at all."""
        name = f"{kept['point']}.json"
        text = json.dumps(kept) + "\n"
        self._put(self.path / (FAILED if kept["error"] else POINTS) / name, text, scratch)
        if not kept["error"]:
            (self.path / FAILED / name).unlink(missing_ok=True)

    def _put(self, target: Path, text: str, scratch: Path | None = None) -> None:
        """Put a file here by a rename from our scratch folder; an error names the target."""
        place = scratch or self.own
        assert place is not None
        aside = place / uuid.uuid4().hex
        try:
            aside.write_text(text, encoding="utf-8")
            aside.replace(target)
        except OSError as error:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            problem = os.strerror(error.errno) if error.errno else str(error)
            raise _core.SardonyxError(
                f"{target}: {problem}; make room or give the permission, then give the same "
                "command again: what is done is kept"
            ) from error

    def done(self, name: str) -> Kept | None:
        """A finished point; nothing if it is not there, or its file is damaged."""
        return self._read(self.path / POINTS / f"{name}.json")

    def failed(self, name: str) -> Kept | None:
        """A point that could not be run."""
        return self._read(self.path / FAILED / f"{name}.json")

    def _read(self, path: Path) -> Kept | None:
        try:
            kept: dict[str, Any] = json.loads(read_text(path))
            whole = kept["point"] == path.stem and kept.keys() >= set(ROW)
            if whole and not any(isinstance(each, list | dict) for each in kept.values()):
                return kept
            problem = "is no point of a sweep, or has another one's name"
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            problem = " ".join(str(error).split())
        self.damaged[str(path)] = problem
        return None

    def any(self, name: str) -> bool:
        """Whether one of the folders has a file."""
        return next(self._files(self.path / name), None) is not None

    def count(self) -> int:
        """Files of finished points."""
        return sum(1 for _ in self._files(self.path / POINTS))

    def all(self, name: str) -> Iterator[Kept]:
        """Whatever points are there, finished or failed; those of a folder into which the files of
        finished points were copied.
        """
        bare = name == POINTS and not self.any(POINTS)
        for path in sorted(self._files(self.path if bare else self.path / name)):
            if (kept := self._read(path)) is not None:
                yield kept

    def _files(self, folder: Path) -> Iterator[Path]:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".json"):
                    yield Path(entry.path)


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


# ---- tables


def _kind(value: Figure) -> pyarrow.DataType:
    import pyarrow as pa

    if isinstance(value, bool):
        return pa.bool_()
    return pa.string() if isinstance(value, str) else pa.float64()


def _type(values: Iterable[Figure]) -> pyarrow.DataType:
    """The type of a setting; integers stay integers, so that they can be joined."""
    import pyarrow as pa

    known = [value for value in values if value is not None]
    if not known:
        return pa.null()
    if {type(value) for value in known} == {int}:
        return pa.int64()
    kinds = {_kind(value) for value in known}
    return kinds.pop() if len(kinds) == 1 else _both(*kinds)


def _both(*kinds: pyarrow.DataType) -> pyarrow.DataType:
    """The type that holds values of several."""
    import pyarrow as pa

    return pa.string() if pa.string() in kinds else pa.float64()


def _as(values: Iterable[Figure], kind: pyarrow.DataType) -> list[Any]:
    import pyarrow as pa

    if kind == pa.string():
        return [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    if kind == pa.float64():
        return [None if v is None else float(v) for v in values]
    return list(values)


def figures_of(columns: Iterable[str], settings: Iterable[str]) -> list[str]:
    """Names of figures among columns: metrics by name, then causes in report order."""
    figures = set(columns) - set(settings) - set(ROW)
    plain = sorted(name for name in figures if not name.startswith("cause."))
    causes = in_order({name.split(".")[1] for name in figures if name.startswith("cause.")})
    booked = [
        name for cause in causes for name in sorted(figures) if name.startswith(f"cause.{cause}.")
    ]
    return plain + booked


def settings_of(kept: Kept) -> list[str]:
    """The settings in a point's file."""
    names = list(kept)
    return names[names.index("asked") + 1 : names.index("seconds")]


def _schema(plan: Plan, rows: Iterable[Kept]) -> pyarrow.Schema:
    """The columns of a table of these points: figures that one of them has."""
    import pyarrow as pa

    types: dict[str, pyarrow.DataType] = {}
    for row in rows:
        for name, value in row.items():
            if value is not None:
                kind = _kind(value)
                before = types.setdefault(name, kind)
                types[name] = kind if before == kind else _both(before, kind)
    settings = plan.columns
    return pa.schema(
        [("point", pa.string())]
        + [(name, _type(plan.values(name))) for name in settings]
        + [(name, types[name]) for name in figures_of(types, settings)]
        + [("error", pa.string())],
        metadata={"sardonyx": _core.VERSION, "sardonyx.plan": plan.id},
    )


def _table(plan: Plan, points: Sequence[tuple[Point, Kept]], schema: pyarrow.Schema) -> Any:
    import pyarrow as pa

    rows = [{**kept, **plan.row(point), "point": point.name} for point, kept in points]
    columns = [
        pa.array(_as([row.get(field.name) for row in rows], field.type), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _there(plan: Plan, folder: Folder) -> Iterator[tuple[Point, Kept | None]]:
    """Every point with its file; nothing for one that is neither done nor failed."""
    for point in plan.points():
        yield point, folder.done(point.name) or folder.failed(point.name)


def merge(plan: Plan, folder: Folder, target: Path) -> list[dict[str, Any]]:
    """Write ``results.parquet``: a row a point, in the order of the plan. The answer: failures.

    The bytes depend on the points alone, not on who ran them, nor when.
    """
    import pyarrow.parquet as pq

    def whole() -> Iterator[tuple[Point, Kept]]:
        for point, kept in _there(plan, folder):
            if kept is None:
                raise Incomplete
            yield point, kept

    schema = _schema(plan, (kept for _, kept in whole()))
    failures: list[dict[str, Any]] = []
    with replacing(target) as scratch, pq.ParquetWriter(scratch, schema, compression="zstd") as out:
        points = whole()
        while chunk := list(islice(points, ROWS)):
            failures += [failure(kept, plan.row(point)) for point, kept in chunk if kept["error"]]
            out.write_table(_table(plan, chunk, schema))
    return failures


def failure(row: Kept, settings: Mapping[str, Figure]) -> dict[str, Any]:
    """What is said of a failed point."""
    return {key: row[key] for key in ("point", "error", "command")} | {"settings": dict(settings)}


def frame(plan: Plan, folder: Folder, results: Path | None) -> pandas.DataFrame:
    """The results as a data frame; without them, as of a share, the rows that are there: those of
    points that have figures or an ``error``.
    """
    import pandas as pd

    if results is not None:
        return pd.read_parquet(results)
    found = [(point, kept) for point, kept in _there(plan, folder) if kept is not None]
    table: pandas.DataFrame = _table(plan, found, _schema(plan, (k for _, k in found))).to_pandas()
    return table


def plan_of(results: Path) -> str | None:
    """The plan whose results these are."""
    import pyarrow.parquet as pq

    said: bytes | None = (pq.read_schema(results).metadata or {}).get(b"sardonyx.plan")
    return None if said is None else said.decode()


class Incomplete(Exception):
    """A point of the plan is neither done nor failed."""
