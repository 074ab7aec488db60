"""``sardonyx report``, and what every comparison leaves in its directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from sardonyx.cli.common import PATH, out
from sardonyx.cli.tables import claims_table, compare_table, exhibit_table
from sardonyx.files import replaced_together
from sardonyx.papers.reproduction import NAME as BESIDE_PAPER
from sardonyx.papers.reproduction import BesidePaper
from sardonyx.report import write_report
from sardonyx.runs import origin
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.results import Results


def report(
    directory: Annotated[
        Path, typer.Argument(help="A directory that compare or reproduce wrote.", **PATH)
    ],
) -> None:
    """Print the table of saved results again and write their report.html anew."""
    comparison = Comparison(Results.load(directory))
    target = directory if directory.is_dir() else directory.parent
    path = target / "report.html"
    beside = BesidePaper.load(target)
    write_report(comparison, path, beside)
    if not beside.claims:
        out.print(compare_table(comparison, out.width))
    print_beside(out, beside)
    out.print(f"report: {path}", soft_wrap=True)


def print_beside(people: Console, beside: BesidePaper) -> None:
    """The verdict on a paper, its claims and its tables, as far as there are any."""
    for sentence in beside.verdict:
        people.print(Text(sentence, style="bold"))
    if beside.claims:
        people.print(claims_table(beside.claims, people.width))
    for exhibit in beside.exhibits:
        people.print(exhibit_table(exhibit))


def save(
    comparison: Comparison,
    directory: Path,
    known: dict[str, Any],
    beside: BesidePaper | None = None,
) -> Path:
    """Write everything that a comparison leaves, complete or not at all, with its origin.

    The answer is where its report is.
    """
    with replaced_together(directory) as scratch:
        comparison.results.save(scratch / "results.json")
        origin.save(known, scratch)
        comparison.results.to_parquet(scratch / "results.parquet")
        if beside is not None:
            beside.save(scratch)
        write_report(comparison, scratch / "report.html", beside)
    if beside is None:  # an earlier reproduction's is not this one's
        (directory / BESIDE_PAPER).unlink(missing_ok=True)
    return directory / "report.html"
