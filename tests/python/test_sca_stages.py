"""SCA's Table 1: its cells follow from counts, and a design or a mistake turns them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from sardonyx.papers.claims import Claim, ClaimRow
from sardonyx.papers.reproduction import BesidePaper, Exhibit
from sardonyx.papers.sca import stages
from sardonyx.questions import CrashQuestion, ProgramSource
from sardonyx.report import write_report
from sardonyx.report.tables import exhibit_table
from sardonyx.runs.results import ResultsError
from test_report_fixture import compared

SMALL = CrashQuestion(
    program=ProgramSource(transactions=20, footprint=4096), design="sca", machine="sca"
)


def counts(other: Mapping[str, Mapping[str, int]], lost: int = 0) -> dict[str, Any]:
    """Ten cuts a stage that show what the paper says, but for ``other``; nothing was measured."""
    rows = {
        "prepare": {"backup_usable": 1, "data_usable": 10, "takes_backup": 0, "takes_data": 10},
        "validate": {"backup_usable": 10, "data_usable": 10, "takes_backup": 5, "takes_data": 5},
        "mutate": {"backup_usable": 10, "data_usable": 2, "takes_backup": 10, "takes_data": 0},
        "commit": {"backup_usable": 10, "data_usable": 10, "takes_backup": 5, "takes_data": 5},
        "between": {"backup_usable": 0, "data_usable": 0, "takes_backup": 0, "takes_data": 10},
    }
    whole = [
        {"stage": name, "cuts": 10, "recovered": 10 - (lost if name == "between" else 0)}
        | row
        | dict(other.get(name, {}))
        for name, row in rows.items()
    ]
    return {"cuts": 50, "stages": whole}


def invented(**other: Mapping[str, int]) -> dict[str | None, dict[str, Any]]:
    """The runs of one program."""
    needed = ("valid-not-counter-atomic", "commit-not-counter-atomic")
    runs: dict[str | None, dict[str, Any]] = {
        mutant: counts({}, 3 if mutant in needed else 0) for mutant in stages.MUTANTS
    }
    runs[None] = counts(other)
    return runs


def ours(table: Exhibit) -> dict[str, list[str]]:
    return {stage: [cell.ours for cell in row.values()] for stage, row in table.rows.items()}


def test_cells_follow_from_counts() -> None:
    table = stages.table({"queue": invented()}, SMALL)
    for stage, row in table.rows.items():
        assert [cell.agrees for cell in row.values()] == [
            True if stage in stages.PAPER else None
        ] * 3
    assert ours(table)["validate"] == ["unknown", "unknown", "necessary"]
    assert table.rows["commit"]["counter_atomicity"].counts["lost_if_plain"] == 3


@pytest.mark.parametrize(
    ("stage", "change", "column", "turned"),
    [
        ("prepare", {"data_usable": 9}, "data", "inconsistent"),
        ("prepare", {"backup_usable": 10}, "backup", "unused"),
        ("prepare", {"takes_data": 9}, "data", "unknown"),
        ("mutate", {"backup_usable": 9}, "backup", "inconsistent"),
        ("mutate", {"data_usable": 10}, "data", "unused"),
        ("commit", {"data_usable": 9}, "data", "inconsistent"),
        ("commit", {"takes_backup": 10}, "backup", "consistent"),
        ("commit", {"recovered": 9}, "counter_atomicity", "not enough"),
    ],
)
def test_a_single_cut_turns_a_cell(
    stage: str, change: Mapping[str, int], column: stages.Column, turned: str
) -> None:
    """Of one program; another beside it still shows what the paper says."""
    changed = invented(**{stage: change})
    cell = stages.table({"btree": changed}, SMALL).rows[stage][column]
    assert cell.ours == turned and cell.agrees is False
    both = stages.table({"queue": invented(), "btree": changed}, SMALL).rows[stage][column]
    assert both.programs == {"queue": cell.paper, "btree": turned}


def test_the_papers_table_is_measured_on_sca_and_not_on_others() -> None:
    measured = stages.measure(("array-swap", "rbtree"), SMALL)
    for stage, paper in stages.PAPER.items():
        assert tuple(ours(measured)[stage]) == paper
    assert ours(measured)["validate"][2] == "necessary"
    assert measured.facts["cuts"] > 10_000
    document = measured.to_document()
    assert [row["stage"] for row in document["rows"]] == [s.name for s in stages.STAGES]
    # Where every write is counter-atomic anyway, the mark on the commit is not needed.
    full = stages.measure(("queue",), SMALL.replace(design="fca"))
    assert full.rows["commit"]["counter_atomicity"].agrees is False
    assert full.rows["mutate"]["backup"].agrees
    # A naive counter cache loses what the table takes for granted.
    naive = stages.measure(("queue",), SMALL.replace(design="no-atomicity"))
    assert naive.rows["prepare"]["data"].ours == "inconsistent"
    assert naive.rows["prepare"]["counter_atomicity"].ours == "not enough"


def test_the_table_is_printed_and_in_the_report(tmp_path: Any) -> None:
    table = stages.table({"queue": invented(commit={"data_usable": 9})}, SMALL)
    console = Console(width=80, record=True)
    console.print(exhibit_table(table))
    text = console.export_text()
    assert "the paper:" in text and "as in the paper" in text and "8 of 9 cells agree" in text
    machine = {"name": "sca", "source": "", "parameters": {}, "assumed": []}
    info = {"program": "queue", "transaction_bytes": 64, "footprint_bytes": 4096}
    run = {"trace": "queue", "design": "sca", "machine": "sca", "copies": 1, "variant": {}}
    document = {
        "sardonyx": "0",
        "machine": machine,
        "traces": [{"name": "queue", "info": info}],
        "runs": [run | {"metrics": {"transactions": 1}}],
    }
    beside = BesidePaper(exhibits=(table,))
    write_report(compared(document), tmp_path / "r.html", beside)
    page = (tmp_path / "r.html").read_text()
    assert 'data-name="table-1"' in page and "the paper: unknown" in page
    assert "usable at 9 of 10 cuts" in page


def test_what_stands_beside_the_paper_is_saved_and_read_again(tmp_path: Path) -> None:
    claim = Claim("sca", "Fig. 12", "slowdown", "sca", "mean", 1.2, "at_most")
    row = ClaimRow(claim, 1.5, "x", "a note", "", {"other": 2.0}, {"queue": 1.5}, ("core.width",))
    missing = ClaimRow(claim, None, "x", "", "no such run")
    table = stages.table({"queue": invented()}, SMALL)
    kept = BesidePaper((row, missing), "stand-ins", (table,))
    kept.save(tmp_path)
    assert BesidePaper.load(tmp_path) == kept
    assert BesidePaper.load(tmp_path / "nowhere") == BesidePaper()
    path = tmp_path / "beside_paper.json"
    path.write_text(path.read_text().replace('"unit": "x"', '"unit": "y"'))
    with pytest.raises(ResultsError, match=r"beside_paper.json, claims\[0\].unit: .*"):
        BesidePaper.load(tmp_path)
    path.write_text("{")
    with pytest.raises(ResultsError, match="beside_paper.json, line 1, column 2: not JSON"):
        BesidePaper.load(tmp_path)
