"""The terminal's tables: the right figures, whole at every width."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console, RenderableType
from sardonyx.papers import esd
from sardonyx.report.tables import claims_table, compare_table
from sardonyx.runs.comparison import Comparison
from test_report_fixture import compared, invented_document
from test_report_results import tiny


def shown(what: RenderableType, width: int) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(what)
    return console.export_text()


def test_figures_by_hand() -> None:
    text = shown(compare_table(compared(tiny()), 120), 120)
    line = next(line for line in text.splitlines() if " esd " in line)
    cells = ["60.0", "0.50×", "3.00×†", "1.25×†", "1.50×†", "–", "0.75×†", "–"]
    assert line.split() == ["esd", *cells]
    line = next(line for line in text.splitlines() if " baseline " in line)
    cells = ["–", "10", "300", "ns", "100", "ns", "0.500", "–", "80.0", "nJ", "–"]
    assert line.split() == ["t", "baseline", *cells]
    assert "† a time or an energy that rests on 2 assumed parameters" in text
    assert "1 core ran each trace" in text


def test_copies_do_not_rest_on_the_machines_number_of_cores() -> None:
    document = tiny()
    document["runs"][1]["assumed"].append("cores")
    assert "rests on 3 assumed" in shown(compare_table(compared(document), 120), 120)
    for run in document["runs"]:
        run["copies"] = 4
    text = shown(compare_table(compared(document), 120), 120)
    assert "rests on 2 assumed" in text
    assert "4 cores ran each trace" in text


def test_without_assumptions_there_is_no_dagger() -> None:
    document = tiny()
    document["runs"][1]["assumed"] = []
    text = shown(compare_table(compared(document), 100), 100)
    assert "3.00×" in text
    assert "†" not in text


@pytest.mark.parametrize("width", [40, 56, 66, 80, 92, 120, 200])
def test_no_figure_is_lost_at_any_width(width: int) -> None:
    results = compared(invented_document(3, sweeps=False))
    ratios = re.compile(r"[\d.]+×|[\d.]+ [nµm]s")
    figures = sorted(ratios.findall(_body(results, 120)))
    # Of three traces and their mean: measures by designs, and the baseline's two times.
    assert len(figures) == (5 * 3 + 2) * 4
    text = _body(results, width)
    # Shares and p99 have their units in their heads, but where a table has all the room.
    assert sorted(ratios.findall(text))[: len(figures)] == figures or width == 200
    assert (text.count("(%)"), text.count("s)")) == ((0, 0) if width == 200 else (1, 1))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_notes_are_there_on_demand() -> None:
    results = compared(tiny())
    whole, brief = (shown(compare_table(results, 80, notes), 80) for notes in (True, False))
    assert "row is absolute" in whole and "reads: not verified" in whole
    assert "row is absolute" not in brief and "not verified" not in brief
    assert "† rests on assumed parameters; --notes explains the table" in brief


def test_names_are_whole_at_80_columns() -> None:
    document = invented_document(2, sweeps=False)
    for run in document["runs"]:
        run["design"] = run["design"].replace("dedup-sha1", "dedup-sha1-as-published")
    text = _body(compared(document), 80)
    assert text.count("dedup-sha1-as-published") == 2 * 3
    assert max(map(len, text.splitlines())) <= 80


def _body(results: Comparison, width: int) -> str:
    return re.split(r"\n[\w-]+ beside baseline:", shown(compare_table(results, width), width))[0]


def test_a_long_trace_name_folds_and_cuts_nothing() -> None:
    document = tiny()
    for run in document["runs"]:
        run["trace"] = "a-rather-long-name-of-a-recording-of-some-program"
    for width in (40, 80, 100):
        text = shown(compare_table(compared(document), width), width)
        assert "3.00×" in text
        assert "…" not in text
        letters = re.sub(r"[^a-z]", "", text)
        assert width < 92 or "program" in letters


def test_without_a_baseline_each_run_speaks_for_itself() -> None:
    document = tiny()
    del document["runs"][0]
    text = shown(compare_table(compared(document), 80), 80)
    assert re.search(r"t esd +100 ns +80\.0 ns +0\.75", text)
    assert "Add `baseline`" in text


@pytest.mark.parametrize("width", [44, 80, 120])
def test_claims_show_both_figures_the_gap_and_the_lack(width: int) -> None:
    rows = esd.claims(compared(tiny()))
    text = " ".join(shown(claims_table(rows, width), width).split())
    assert "3.40×" in text
    assert "3.00×†" in text
    assert "-0.40" in text
    assert "these results lack runs of esd and dewrite" in text
