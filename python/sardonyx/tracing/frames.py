"""Traces as data frames of pandas; ``runs.frames`` writes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sardonyx._core import SardonyxError
from sardonyx.runs.frames import COLUMNS, OPS, PROVENANCE

if TYPE_CHECKING:
    import pandas


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
                names = [name for name in schema.names if name in COLUMNS]  # others say nothing
                for batch in source.iter_batches(columns=names):
                    batches.append(batch.slice(0, None if limit is None else limit - had))
                    had += len(batches[-1])
                    if had == limit:
                        break
        except (OSError, pyarrow.ArrowException) as error:
            raise SardonyxError(f"{path}: {error}; try `sardonyx trace check {path}`") from error
        told = (schema.metadata or {}).get(PROVENANCE.encode())
        try:
            frame = pyarrow.Table.from_batches(batches).replace_schema_metadata(None).to_pandas()
            frame["op"] = pandas.Categorical([OPS[op] for op in frame["op"]], OPS)
            if "site" in frame:
                frame["site"] = frame["site"].astype("UInt32")
            frame.attrs = {PROVENANCE: json.loads(told)} if told else {}
        except (LookupError, TypeError, ValueError) as error:
            raise SardonyxError(f"{path}: {error}; try `sardonyx trace check {path}`") from error
    return frame
