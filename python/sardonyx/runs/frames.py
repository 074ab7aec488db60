"""Traces written from data frames: of pandas, of polars, or of whatever Arrow can take.

Columns are those of docs/simulator/trace-format.md: ``op`` as a word of ``OPS`` (or its number),
``line``, ``data``, ``gap``, ``thread``, ``site``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx import _core
from sardonyx._core import SardonyxError
from sardonyx.files import replacing

if TYPE_CHECKING:
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
#: The columns of a trace file.
COLUMNS = ("gap", "thread", "op", "line", "data", "site")


def write_trace(frame: Any, path: str | os.PathLike[str], **provenance: Any) -> Path:
    """Write a frame as a trace, checked, complete or not at all, and give its path.

    ``op`` is needed, and ``line`` (or ``address``, in bytes); ``data``, 64 bytes, where a line is
    written; ``gap`` and ``thread`` are 0 if left out. ``provenance`` is for the file's metadata:
    ``level="cpu"``, ``gap_unit="cycles"``. A frame of ``read_trace`` keeps what it had.
    """
    import pyarrow.parquet

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
        if problems := json.loads(_core.trace_check(str(scratch), 1, None))["problems"]:
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
    whole = (pyarrow.uint32(), pyarrow.uint16(), pyarrow.uint8(), pyarrow.uint64())
    kinds: tuple[Any, ...] = (*whole, pyarrow.binary(LINE_BYTES), pyarrow.uint32())
    columns = dict(zip(COLUMNS, kinds, strict=True))
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
