"""What a paper takes of an answer: tables in LaTeX and Markdown, numbers as CSV."""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import pytest
import sardonyx
from rich.console import Console
from rich.table import Table as Printed
from sardonyx._core import VERSION, SardonyxError
from sardonyx.answer import Answer, Listed
from sardonyx.draw import tables
from sardonyx.draw.grid import grid, numbers
from sardonyx.draw.tables import Column, Table
from sardonyx.runs.results import Results
from test_cli_fixture import FakeCore, Program, bad_input
from test_report_fixture import invented_document


def one(head: str, *cells: str, number: bool = True) -> Table:
    return Table("", [Column(head, cells, number)])


def cells_of(latex: str) -> list[list[str]]:
    """The cells of a tabular, read as TeX would end them; an error if a special sign is bare."""
    inside = latex.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
    assert not re.search(r"(?<!\\)[#_~^](?!\\dagger|2\$)", inside), inside
    rows = [row for row in inside.replace(r"\midrule", "").split(r"\\") if row.strip()]
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", row)] for row in rows]


def test_every_sign_survives_in_every_form() -> None:
    draw = random.Random(3)
    signs = "ab &%$#_{}~^\\<>|\"×†±≤µ–*`[]'=@,é"
    for _ in range(200):
        words = ["x" + "".join(draw.choices(signs, k=6)).strip() for _ in range(6)]
        table = Table("", [Column(words[0], words[1:3], False), Column(words[3], words[4:], False)])
        latex = cells_of(table.latex())
        assert [len(row) for row in latex] == [2, 2, 2]
        head, *rows = csv.reader(table.csv().splitlines())
        assert head == [words[0], words[3]]
        assert rows == [[words[1], words[4]], [words[2], words[5]]]
        for line in table.markdown().splitlines():
            assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3, line


def test_no_cell_is_an_argument_of_the_line_before_it() -> None:
    for text in ("[2pt]", "*", "-[a]"):
        lines = one("a", "x", text, number=False).latex().splitlines()
        assert not any(line.startswith(("[", "*")) for line in lines), text


def test_the_unit_of_most_cells_is_in_the_head() -> None:
    latex = one("write", "999 ns", "1.02 µs†", "45.1 µs", "2.00×", "–").latex()
    head, *rows = cells_of(latex)
    assert head == [r"write ($\mu$s)"]
    assert rows == [["0.999"], [r"1.02$^\dagger$"], ["45.1"], [r"2.00$\times$"], ["--"]]
    assert "write (%)" in one("write", "1.0 %", "2.0 %").markdown()


def test_a_bare_number_is_not_given_the_unit_of_others() -> None:
    assert cells_of(one("IPC", "1.50", "1.05×", "1.20×").latex()) == [
        ["IPC"], ["1.50"], [r"1.05$\times$"], [r"1.20$\times$"]
    ]  # fmt: skip


def test_csv_has_one_number_a_cell_and_one_unit_a_column() -> None:
    table = one("w", "430 ns", "1.02 µs", "0.87×† ±2.5 % (3 of 5)", "≤ 1,234×", "–", "not yet")
    head, *rows = csv.reader(table.csv().splitlines())
    assert head == ["w (ns)", "w (×)", "w bound", "w ± %", "w better on", "w of"]
    assert rows == [
        ["430", "", "", "", "", ""],
        ["1020", "", "", "", "", ""],
        ["", "0.87", "", "2.5", "3", "5"],
        ["", "1234", "≤", "", "", ""],
        ["", "", "", "", "", ""],
        ["not yet", "not yet", "", "", "", ""],
    ]


def test_counts_of_all_are_two_columns() -> None:
    assert one("held", "3 of 40", "5/40").csv() == "held,held of\n3,40\n5,40\n"


def test_a_unit_that_is_a_letter_of_the_head_is_told() -> None:
    assert one("times", "2 s", "3 s").csv() == "times (s)\n2\n3\n"
    assert one("saved %", "2 %").csv() == "saved %\n2\n"


def test_an_empty_cell_that_is_no_name_stays_empty() -> None:
    columns = [Column("a", ["x", ""], False), Column("b", ["y", ""], False)]
    assert Table("", columns).csv() == "a,b\nx,y\nx,\n"


def test_a_name_stands_in_each_of_its_rows_and_is_no_formula() -> None:
    assert one("trace", "=a()", "", "-b", number=False).csv() == "trace\n'=a()\n'=a()\n'-b\n"


def compared() -> Results:
    return Results.from_document(invented_document(3, sweeps=False))


def test_a_comparison_has_on_how_many_traces_beside_its_means() -> None:
    head, *rows = csv.reader(tables.taken(compared().tell)[0].csv().splitlines())
    means = {row[1]: dict(zip(head, row, strict=True)) for row in rows if row[0] == "mean of 3"}
    assert (means["esd"]["Energy better on"], means["esd"]["Energy of"]) == ("3", "3")
    slow = means["dedup-sha1"]
    assert (slow["Write speed-up better on"], slow["Read speed-up better on"]) == ("0", "0")
    narrow = compared().table(100)
    assert "(3 of 3)" not in narrow and "(n of m)" not in narrow


def test_rules_and_notes_of_a_printed_table() -> None:
    def tell(people: Console) -> None:
        table: Printed = grid("a", *numbers("b"), title="T_1")
        table.add_row("x", "1")
        table.add_section()
        table.add_row("mean", "2")
        people.print("before", table)
        people.print("a note")

    (table,) = tables.taken(tell)
    assert table.latex().splitlines() == [
        "% T_1", "% a note", r"\begin{tabular}{lr}", r"\toprule", r"a & b \\", r"\midrule",
        r"x & 1 \\", r"\midrule", r"mean & 2 \\", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip


def test_an_answer_in_python(tmp_path: Path) -> None:
    results = compared()
    assert results.table(form="latex").startswith("% ")
    assert results.table(form="markdown").startswith("| trace | design |")
    names = results.save_table(tmp_path / "t.csv")
    assert names == [str(tmp_path / "t.csv"), str(tmp_path / "t-2.csv")]
    first = (tmp_path / "t.csv").read_bytes()
    assert first.decode() + "\n" + (tmp_path / "t-2.csv").read_text() == results.table(form="csv")
    with pytest.raises(SardonyxError, match="form 'word': is none of text, latex, markdown, csv"):
        results.table(form="word")
    designs = sardonyx.designs()
    assert r"dedup-sha1" in designs.table(form="latex")


def test_lines_that_are_no_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SardonyxError, match="this answer has no table"):
        Answer("show", {"toml": "a = 1"}).save_table(tmp_path / "t.tex")
    assert not list(tmp_path.iterdir())


def test_the_command_line_writes_tables(sardonyx: Program, core: FakeCore, trace: str) -> None:
    ended = sardonyx("compare", trace, "--designs", "baseline,esd", "--table", "t.tex")
    assert ended.status == 0 and "table: t.tex" in ended.out
    assert Path("t.tex").read_text().count(r"\begin{tabular}") >= 1
    kept = Path("t.tex").read_bytes()
    sardonyx("report", "results/latest", "--table", "t.tex")
    assert Path("t.tex").read_bytes() == kept


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--table", "t.xlsx"], "--table t.xlsx: its name ends in none of .tex, .md, .csv"),
        (["--table", ""], "--table: the name is empty; name a file"),
        (["--table", "none/t.md"], "its directory does not exist"),
        (["--table", "t.md", "--json", "t.md"], "--json t.md: and t.md are one file"),
    ],
)
def test_a_bad_name_is_refused_before_work(
    sardonyx: Program, core: FakeCore, trace: str, words: list[str], said: str
) -> None:
    bad_input(sardonyx("compare", trace, *words), said)
    assert core.calls == []


def test_a_command_that_draws_nothing_has_a_page_in_the_same_frame(
    sardonyx: Program, tmp_path: Path
) -> None:
    ended = sardonyx("trace", "synth", "rung-60", "t.parquet", "--records", "90")
    assert ended.status == 0
    ended = sardonyx("trace", "check", "t.parquet", "--html", "p.html")
    assert ended.status == 0 and "report: p.html" in ended.out
    page = Path("p.html").read_text()
    assert "<h1>Report of trace check</h1>" in page
    assert "<dt>command</dt><dd>sardonyx trace check t.parquet --html p.html</dd>" in page
    assert f"<dt>Sardonyx</dt><dd>{VERSION}" in page and "<dt>date</dt>" not in page
    bad_input(sardonyx("compare", "redis", "--html", "p.html"), "No such option")


def test_a_page_has_the_tables_and_the_lines_as_text(tmp_path: Path) -> None:
    row = {"what": "<b>&", "needed_for": "x", "missing": "</style>"}
    Listed("doctor", [row]).report(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert "&lt;b&gt;&amp;: &lt;/style&gt;" in page and "<b>" not in page and "<table" in page
