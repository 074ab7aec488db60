"""Runs as one table for data tools: a row a run, a column a figure.

Identity columns are texts, counts are whole numbers, all others are doubles. ``ratio.<measure>`` is
a measure of ``runs.measures`` beside the baseline on the same trace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx import _core
from sardonyx.files import replacing

if TYPE_CHECKING:
    import pandas

#: The fields that tell runs apart.
IDENTITY = ("trace", "design", "machine", "copies", "variant")


class Tabular:
    """What has ``runs``, in the forms of data tools."""

    #: Of ``runs.results.Run``.
    runs: Sequence[Any]

    def rows(self) -> list[dict[str, Any]]:
        """One flat row a run: identity, every metric, every cause as
        ``cause.<cause>.<quantity>``; of means over seeds also ``half_width.<metric>``.
        """
        from sardonyx.runs.results import Cause, in_order

        metrics = sorted({name for run in self.runs for name in run.metrics})
        causes = in_order({name for run in self.runs for name in run.causes})
        halves = sorted({n for run in self.runs if run.seeds for n in run.seeds.half_widths})
        rows = []
        for run in self.runs:
            row: dict[str, Any] = {
                "trace": run.trace,
                "design": run.design,
                "machine": run.machine,
                "copies": run.copies,
                "variant": run.variant_label,
            }
            row |= {name: run.metrics.get(name) for name in metrics}
            for cause in causes:
                booked = run.causes.get(cause)
                for quantity in fields(Cause):
                    row[f"cause.{cause}.{quantity.name}"] = booked and getattr(
                        booked, quantity.name
                    )
            for name in halves:
                row[f"half_width.{name}"] = run.seeds and run.seeds.half_widths.get(name)
            rows.append(row)
        return rows

    def ratios(self) -> list[dict[str, float | None]]:
        """A row a run: ``Run.ratios``; ``None`` each where there is no baseline."""
        from sardonyx.runs.measures import MEASURES

        return [run.ratios or dict.fromkeys(MEASURES) for run in self.runs]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame, with ``ratio.<measure>``. Counts are ``int64``, or ``Int64``
        where a run has none.
        """
        import pandas as pd

        frame = pd.read_parquet(BytesIO(self._parquet(beside=False)))
        for name in self._whole(self.rows()):
            if frame[name].dtype.kind != "i":
                frame[name] = frame[name].astype("Int64")
        ratios = pd.DataFrame(self.ratios(), index=frame.index, dtype="float64")
        return pd.concat([frame, ratios.add_prefix("ratio.")], axis=1)

    def to_polars(self) -> Any:
        """The columns of ``to_pandas`` as a ``polars.DataFrame``; needs polars."""
        return needing("polars", lambda polars: polars.read_parquet(self._parquet()))

    def to_xarray(self) -> Any:
        """The data frame as an ``xarray.Dataset`` over trace, design, machine, copies and variant;
        needs xarray.
        """
        return needing("xarray", lambda _: self.to_pandas().set_index(list(IDENTITY)).to_xarray())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the columns of ``to_pandas`` as CSV, complete or not at all."""
        with replacing(Path(path)) as scratch:
            self.to_pandas().to_csv(scratch, index=False, lineterminator="\n")

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as Parquet, complete or not at all."""
        table = self._parquet(beside=False)
        with replacing(Path(path)) as scratch:
            scratch.write_bytes(table)

    def _parquet(self, *, beside: bool = True) -> bytes:
        rows = self.rows()
        if beside:
            for row, ratios in zip(rows, self.ratios(), strict=True):
                row |= {f"ratio.{name}": value for name, value in ratios.items()}
        names = rows[0] if rows else IDENTITY
        columns = [(name, [row[name] for row in rows]) for name in names]
        return _core.parquet_of(columns, self._whole(rows))

    @staticmethod
    def _whole(rows: Sequence[dict[str, Any]]) -> list[str]:
        """The columns of whole numbers: all copies, and what counts something or bytes."""
        from sardonyx.runs.metrics import FIGURES

        def whole(name: str) -> bool:
            figure = name.removeprefix("cause.").rpartition(".")[2]
            counts = figure in FIGURES and FIGURES[figure].unit in ("", "bytes")
            known = [row[name] for row in rows if row[name] is not None]
            return (counts or name == "copies") and all(value == int(value) for value in known)

        return [name for name in (rows[0] if rows else ()) if whole(name)]


def needing(package: str, use: Callable[[Any], Any]) -> Any:
    """What comes of using a package that is not required; an error says how to install it."""
    from importlib import import_module

    try:
        return use(import_module(package))
    except ImportError as error:
        raise _core.SardonyxError(f"needs {package}: pip install {package}") from error
