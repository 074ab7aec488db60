"""Traces as data frames: of pandas, of polars, or of whatever Arrow can take.

Columns are those of docs/simulator/trace-format.md: ``op`` as a word of ``OPS`` (or its number),
``line``, ``data``, ``gap``, ``thread``, ``site``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sardonyx._core import SardonyxError
from sardonyx.files import replacing

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: What happened, in the order of its numbers.
OPS = (
    "read",
    "write",
    "non-temporal-write",
    "flush-write-back",
    "fence",
    "clwb",
    "clflushopt",
    "clflush",
    "load",
    "store",
    "dirty-at-end",
    "changed",
)
#: The entry of a file's metadata, and of a frame's ``attrs``, that says where a trace is from.
PROVENANCE = "sardonyx.trace"
LINE_BYTES = 64


def read_trace(
    path: str | os.PathLike[str], limit: int | None = None, from_format: str | None = None
) -> pandas.DataFrame:
    """The first ``limit`` records of a trace, or all: a bundled recording's name, a file of ours,
    or of another simulator in a format of ``trace convert``. ``attrs`` has its provenance.

    >>> read_trace("redis", 1000).op.value_counts()
    """
    import pandas
    import pyarrow
    import pyarrow.parquet

    from sardonyx.api import call
    from sardonyx.runs.recordings import path_of
    from sardonyx.runs.sources import check_file

    if limit is not None and limit < 1:
        raise SardonyxError(f"limit {limit}: give a whole number, 1 or more")
    file = path_of(os.fspath(path))
    options = {"from_format": from_format} if from_format else {}
    with TemporaryDirectory(prefix="sardonyx.") as scratch:
        if options or not file.endswith(".parquet"):
            taken = str(Path(scratch, "taken.parquet"))
            call("trace convert", file, taken, **options)
            file = taken
        else:
            check_file(file)
        try:
            with pyarrow.parquet.ParquetFile(file) as source:
                schema = source.schema_arrow
                batches, had = [], 0
                for batch in source.iter_batches():
                    batches.append(batch.slice(0, None if limit is None else limit - had))
                    had += len(batches[-1])
                    if had == limit:
                        break
        except (OSError, pyarrow.ArrowException) as error:
            raise SardonyxError(f"{path}: {error}; try `sardonyx trace check {path}`") from error
    table = pyarrow.Table.from_batches(batches, schema)
    frame = table.replace_schema_metadata(None).to_pandas()
    try:
        frame["op"] = pandas.Categorical([OPS[op] for op in frame["op"]], OPS)
    except (KeyError, IndexError) as error:
        raise SardonyxError(f"{path}: {error}; try `sardonyx trace check {path}`") from error
    if "site" in frame:
        frame["site"] = frame["site"].astype("UInt32")
    told = (schema.metadata or {}).get(PROVENANCE.encode())
    frame.attrs = {PROVENANCE: json.loads(told)} if told else {}
    return frame


def write_trace(frame: Any, path: str | os.PathLike[str], **provenance: Any) -> Path:
    """Write a frame as a trace, checked, complete or not at all, and give its path.

    ``op`` is needed, and ``line`` (or ``address``, in bytes); ``data``, 64 bytes, where a line is
    written; ``gap`` and ``thread`` are 0 if left out. ``provenance`` is for the file's metadata:
    ``level="cpu"``, ``gap_unit="cycles"``. A frame of ``read_trace`` keeps what it had.
    """
    import pyarrow.parquet

    from sardonyx.api import call

    place = Path(path)
    if place.suffix != ".parquet":
        raise SardonyxError(f"{place}: give a name that ends in .parquet")
    had = getattr(frame, "attrs", {}).get(PROVENANCE, {})
    told = {"version": 1, "level": "memory"} | had | provenance
    for stale in {"records", "writes"} - provenance.keys():
        told.pop(stale, None)
    table = _table(frame).replace_schema_metadata({PROVENANCE: json.dumps(told)})
    with replacing(place) as scratch:
        pyarrow.parquet.write_table(table, scratch, compression="zstd", write_page_checksum=True)
        (checked,) = call("trace check", scratch, max_problems=1)
        if problems := checked["problems"]:
            first = problems[0]
            raise SardonyxError(f"{place}, row {first['row']}: {first['problem']}")
    return place


def _table(frame: Any) -> pyarrow.Table:
    """The columns of a trace file."""
    import pyarrow
    import pyarrow.compute

    table = pyarrow.table(frame)
    table = table.select([name for name in table.column_names if name[:1] != "_"])
    if "address" in table.column_names and "line" not in table.column_names:
        lines = pyarrow.compute.shift_right(
            _column(table, "address", pyarrow.uint64()), pyarrow.scalar(6, pyarrow.uint64())
        )
        table = table.append_column("line", lines).drop_columns(["address"])
    columns: dict[str, Any] = {
        "gap": pyarrow.uint32(),
        "thread": pyarrow.uint16(),
        "op": pyarrow.uint8(),
        "line": pyarrow.uint64(),
        "data": pyarrow.binary(LINE_BYTES),
        "site": pyarrow.uint32(),
    }
    if unknown := [name for name in table.column_names if name not in columns]:
        raise SardonyxError(f"column {unknown[0]}: is none of {', '.join(columns)} or address")
    for needed in ("op", "line"):
        if needed not in table.column_names:
            also = " or address" if needed == "line" else ""
            raise SardonyxError(f"column {needed}{also}: is missing")
    kind = table["op"].type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        at = table.schema.get_field_index("op")
        table = table.set_column(at, "op", _numbers(table["op"].cast(pyarrow.string())))
    names = [name for name in columns if name in table.column_names or name in ("gap", "thread")]
    zeros = pyarrow.repeat(pyarrow.scalar(0, pyarrow.uint8()), len(table))
    found = {
        name: _column(table, name, columns[name])
        if name in table.column_names
        else zeros.cast(columns[name])
        for name in names
    }
    if "data" not in found:
        found["data"] = pyarrow.nulls(len(table), columns["data"])
    return pyarrow.table(found)


def _numbers(words: Any) -> Any:
    """The numbers of operations that are words."""
    import pyarrow
    import pyarrow.compute

    numbers = pyarrow.compute.index_in(words, pyarrow.array(OPS))
    if numbers.null_count:
        row = numbers.is_null().index(pyarrow.scalar(True)).as_py()
        word = words[row].as_py()
        raise SardonyxError(f"op, row {row}: {word!r} is none of {', '.join(OPS)}")
    return numbers


def _column(table: pyarrow.Table, name: str, kind: Any) -> Any:
    """A column in the type that it has in the file."""
    import pyarrow

    try:
        return table[name].cast(kind)
    except (pyarrow.ArrowException, ValueError) as error:
        raise SardonyxError(f"column {name}: is no {kind}: {error}") from error
