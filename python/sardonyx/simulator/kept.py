"""What a comparison leaves in its folder: results, origin, rows, a report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sardonyx import report as pages
from sardonyx._core import SardonyxError
from sardonyx.files import replaced_together
from sardonyx.papers.reproduction import NAME as BESIDE_PAPER
from sardonyx.papers.reproduction import BesidePaper
from sardonyx.runs import origin
from sardonyx.runs.comparison import Comparison

#: The file from which all others can be made.
RESULTS = "results.json"
PAGE = "report.html"


def save(
    comparison: Comparison,
    directory: Path,
    known: dict[str, Any],
    beside: BesidePaper | None = None,
) -> Path:
    """Write everything that a comparison leaves, complete or not at all, with its origin.

    The answer is where its report is.
    """
    kept = ResultsKept(directory)
    with replaced_together(directory) as scratch:
        comparison.results.save(scratch / RESULTS)
        kept.write(scratch / origin.NAME, lambda: origin.save(known, scratch))
        parquet = scratch / "results.parquet"
        kept.write(parquet, lambda: comparison.results.to_parquet(parquet))
        if beside is not None:
            kept.write(scratch / BESIDE_PAPER, lambda: beside.save(scratch))
        page = scratch / PAGE
        kept.write(page, lambda: pages.write_report(comparison, page, beside, origin.read(known)))
    if beside is None:  # an earlier reproduction's is not this one's
        (directory / BESIDE_PAPER).unlink(missing_ok=True)
    kept.tell()
    return directory / PAGE


class ResultsKept:
    """Files beside results.json: one without room does not take the others with it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._missing: dict[str, str] = {}

    def write(self, path: Path, write: Callable[[], object]) -> None:
        """Write a file, or remember why it could not be."""
        try:
            write()
        except OSError as error:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            self._missing[path.name] = error.strerror or str(error)

    def tell(self) -> None:
        """An error if a file is missing; one of earlier results under its name is removed."""
        if not self._missing:
            return
        for name in self._missing:
            (self._directory / name).unlink(missing_ok=True)
        names, reason = " and ".join(self._missing), next(iter(self._missing.values()))
        again = f"sardonyx report {self._directory}"
        remedy = f"give `{again}`" if [*self._missing] == [PAGE] else "give the command again"
        raise SardonyxError(
            f"{self._directory}: {names} could not be written ({reason}); {RESULTS} and all else "
            f"are complete and kept; make room and {remedy}"
        )
