"""Figures for paper: a column's width, one size of type, PDF with its font in it, SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from sardonyx._core import SardonyxError
from sardonyx.draw.drawing import Drawing, Stroke, Words, width_of
from sardonyx.draw.figure import Figure, View, at_one, bar, layout, scatter
from sardonyx.draw.still import points, still
from sardonyx.papers import esd
from sardonyx.papers.reproduction import BesidePaper
from sardonyx.report import figures
from sardonyx.runs.results import Results
from test_cli_fixture import FakeCore, Program, bad_input
from test_report_fixture import compared, invented_document

FIGURE = Path("write-speedup.pdf")


def drawn(data: list[dict[str, Any]], shape: dict[str, Any], width: float = 240) -> Drawing:
    return still(View("", data, shape), "t", width, 8)


def boxes(sheet: Drawing, colour: str) -> list[tuple[float, float, float, float]]:
    """The left, top, right and bottom of the areas of a colour, without the legend's."""
    found = []
    for mark in sheet.marks:
        if isinstance(mark, Stroke) and mark.fill == colour:
            xs, ys = zip(*mark.points, strict=True)
            found.append((min(xs), min(ys), max(xs), max(ys)))
    return [each for each in found if each[1] > 12 or len(found) == 1]


def tick(sheet: Drawing, text: str) -> tuple[float, float]:
    """Where the middle of a tick's label is."""
    (found,) = [m.at for m in sheet.marks if isinstance(m, Words) and m.text == text]
    return found[0], found[1] - 0.35 * 8


RED, BLUE = "#ff0000", "#0000ff"


def test_bars_end_where_the_axis_says() -> None:
    data = [bar("a", ["u", "v"], [2, 4], RED, ""), bar("b", ["u", "v"], [1, None], BLUE, "")]
    sheet = drawn(data, layout("axis"))
    low, high = boxes(sheet, RED)
    assert low[1] == pytest.approx(tick(sheet, "2")[1])
    assert high[1] == pytest.approx(tick(sheet, "4")[1])
    assert low[3] == high[3] == pytest.approx(tick(sheet, "0")[1])
    (other,) = boxes(sheet, BLUE)
    assert other[0] >= low[2] - 0.01 and other[2] < high[0], "beside one another"


def test_stacks_add_up() -> None:
    data = [bar("a", ["u"], [0.25], RED, ""), bar("b", ["u"], [0.5], BLUE, "")]
    sheet = drawn(data, layout("", barmode="stack", yaxis={"tickformat": ".0%", "range": [0, 1]}))
    (below,), (above,) = boxes(sheet, RED), boxes(sheet, BLUE)
    assert above[3] == pytest.approx(below[1])
    assert above[3] - above[1] == pytest.approx(2 * (below[3] - below[1]))
    assert tick(sheet, "100%")[1] < above[1] < tick(sheet, "60%")[1]


def test_bars_that_lie_go_to_the_right() -> None:
    lying = {"type": "bar", "orientation": "h", "x": [1, 3], "y": ["u", "v"], "name": "",
             "marker": {"color": RED}}  # fmt: skip
    shape = layout("", yaxis={"type": "category"}) | {"xaxis": {}}
    one, three = boxes(drawn([lying], shape), RED)
    assert one[0] == three[0] and three[2] - three[0] == pytest.approx(3 * (one[2] - one[0]))
    assert three[1] < one[1], "the first is the lowest, as in Plotly"


def test_a_logarithm_has_its_decades_evenly() -> None:
    data = [scatter("lines", "a", [1, 10, 1000], [0, 1, 2], "", line={"color": RED})]
    sheet = drawn(data, layout("") | {"xaxis": {"type": "log"}})
    (line,) = [m for m in sheet.marks if isinstance(m, Stroke) and m.stroke == RED]
    a, b, c = (x for x, _ in line.points)
    assert c - b == pytest.approx(2 * (b - a))


def test_lines_break_at_gaps_and_rise_in_steps() -> None:
    steps = {"color": RED, "shape": "hv"}
    data = [scatter("lines", "a", [0, 1, 2, 3, 4], [0, 1, None, 1, 2], "", line=steps)]
    lines = [m for m in drawn(data, layout("")).marks if isinstance(m, Stroke) and m.stroke == RED]
    assert [len(line.points) for line in lines] == [3, 3]
    first = lines[0].points
    assert first[0][1] == first[1][1] and first[1][0] == first[2][0]


def test_a_line_at_one_is_at_one() -> None:
    data = [bar("a", ["u"], [0.2], RED, "")]
    sheet = drawn(data, layout("", shapes=[at_one()]))
    (line,) = [m for m in sheet.marks if isinstance(m, Stroke) and m.dash]
    assert line.points[0][1] == line.points[1][1] == pytest.approx(tick(sheet, "1")[1])


def test_whiskers_are_as_long_as_the_interval() -> None:
    data = [bar("a", ["u"], [2], RED, "", error_y={"array": [1]})]
    sheet = drawn(data, layout(""))
    unit = tick(sheet, "0")[1] - tick(sheet, "1")[1]
    assert any(
        isinstance(m, Stroke)
        and len(m.points) == 2
        and abs(abs(m.points[0][1] - m.points[1][1]) - 2 * unit) < 0.01
        and m.points[0][0] == m.points[1][0]
        for m in sheet.marks
    )


def every_figure() -> list[tuple[Figure, int]]:
    comparison = compared(invented_document(6))
    beside = BesidePaper(tuple(esd.claims(comparison)))
    found = [each for each in figures(comparison, beside) if isinstance(each, Figure)]
    return [(each, at) for each in found for at in {0, len(each.views) - 1}]


def test_every_figure_is_inside_its_sheet_in_one_size_of_type() -> None:
    pairs = every_figure()
    assert len(pairs) >= 39
    for figure, at in pairs:
        sheet = still(figure.views[at], figure.title, 238, 8)
        data = 0
        for mark in sheet.marks:
            if isinstance(mark, Words):
                assert mark.size == 8
                wide = width_of(mark.text, 8) if not mark.turn else 0
                back = {"start": 0.0, "middle": wide / 2, "end": wide}[mark.anchor]
                places = [(mark.at[0] - back, mark.at[1]), (mark.at[0] - back + wide, mark.at[1])]
            else:
                places, data = list(mark.points), data + bool(mark.fill or mark.width > 0.7)
            for x, y in places:
                assert -1 <= x <= sheet.width + 1 and -1 <= y <= sheet.height + 1, (
                    f"{figure.key} {at}: {mark}"
                )
        assert data, f"{figure.key} {at} is blank"


def test_svg_is_of_its_width_and_says_what_it_is() -> None:
    figure, _ = every_figure()[0]
    root = ET.fromstring(figure.svg(width=200, size=9))
    assert root.get("width") == "200pt" and root.get("aria-label") == figure.title
    sizes = {each.get("font-size") for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert sizes == {"9"}


def test_names_of_others_are_text_in_both_forms() -> None:
    name = '<b>&"\\(x) é†×'
    data = [bar(name, [name], [1], RED, ""), bar("b", [name], [1], BLUE, "")]
    sheet = drawn(data, layout(name))
    assert any(name in (each.text or "") for each in ET.fromstring(sheet.svg()).iter())
    assert rb"&\"\\\(x\) " in sheet.pdf().replace(b'"', rb"\"")


def test_a_pdf_is_whole_and_has_its_font() -> None:
    figure, at = every_figure()[0]
    sheet = still(figure.views[at], figure.title, points("3.3in"), 8)
    pdf = sheet.pdf()
    assert pdf == still(figure.views[at], figure.title, points("3.3in"), 8).pdf()
    assert b"/MediaBox [0 0 237.6 " in pdf
    start = int(pdf.rsplit(b"startxref\n", 1)[1].split()[0])
    assert pdf[start:].startswith(b"xref\n0 8\n")
    rows = pdf[start:].split(b"\n")[3:10]
    for number, row in enumerate(rows, 1):
        assert len(row) == 19 and pdf[int(row[:10]) :].startswith(b"%d 0 obj\n" % number)
    for found in re.finditer(rb"/Length (\d+)[^>]*>>\nstream\n", pdf):
        end = found.end() + int(found[1])
        assert pdf[end : end + 10] == b"\nendstream"
    font = pdf[pdf.rindex(b"stream\n", 0, pdf.rindex(b"endstream")) + 7 :]
    assert font.startswith(b"\x00\x01\x00\x00") and b"/FontFile2 7 0 R" in pdf
    content = pdf[pdf.index(b"stream\n") : pdf.index(b"endstream")]
    assert set(re.findall(rb"/F (\S+) Tf", content)) == {b"8"}


def test_widths_are_those_of_the_font() -> None:
    # DejaVu Sans Condensed: i, m and a digit in units of 1/2048.
    assert [width_of(each, 2048) for each in ("i", "m", "0")] == pytest.approx(
        [512, 1796, 1171], abs=2
    )


@pytest.mark.parametrize(
    ("text", "length"), [("3.3in", 237.6), ("84mm", 238.11), ("8.4cm", 238.11), ("240pt", 240)]
)
def test_lengths(text: str, length: float) -> None:
    assert points(text) == pytest.approx(length, abs=0.01)


@pytest.mark.parametrize("text", ["3.3", "in", "-1in", "0in", "1e9in", "3,3in", "٣in", "99999pt"])
def test_what_is_no_length(text: str) -> None:
    with pytest.raises(SardonyxError, match="is no length"):
        points(text)


# ---- from Python and the command line


def test_an_answer_draws_its_figures(tmp_path: Path) -> None:
    results = Results.from_document(invented_document(3))
    for name in ("write-speedup.pdf", "wear-2.svg"):
        results.save_figure(tmp_path / name, width="84mm", font="9pt")
    assert (tmp_path / "write-speedup.pdf").read_bytes().startswith(b"%PDF-")
    assert "lifetime, no line" in (tmp_path / "wear-2.svg").read_text()
    with pytest.raises(SardonyxError, match="rite.pdf: no figure rite is drawn; drawn: worth"):
        results.save_figure(tmp_path / "rite.pdf")
    with pytest.raises(SardonyxError, match="did you mean wear-2"):
        results.save_figure(tmp_path / "wear-22.pdf")


def test_the_command_line_draws_figures(sardonyx: Program, core: FakeCore, trace: str) -> None:
    words = ("compare", trace, "--out", "o", "--figure", str(FIGURE), "--figure-width", "100mm")
    ended = sardonyx(*words)
    assert ended.status == 0 and f"figure: {FIGURE}" in ended.out
    kept = FIGURE.read_bytes()
    assert b"/MediaBox [0 0 283.46 " in kept
    again = sardonyx("report", "o", "--figure", str(FIGURE), "--figure-width", "100mm")
    assert again.status == 0 and FIGURE.read_bytes() == kept


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "--figure", "ipc.png"], "--figure ipc.png: its name ends in none of"),
        (["compare", "--figure-width", "3in"], "--figure-width: does nothing without --figure"),
        (["compare", "--figure", "ipc.svg", "--figure-width", "3"], "--figure-width 3: is no"),
        (["compare", "--figure", "ipc.svg", "--figure-font", "8"], "--figure-font 8: is no"),
        (["compare", "--figure", "a.svg", "--figure", "a.svg"], "are one file; name another"),
        (["trace check", "--figure", "ipc.svg"], "trace check draws none"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_work(
    sardonyx: Program, core: FakeCore, trace: str, words: list[str], said: str
) -> None:
    command, *options = words
    bad_input(sardonyx(*command.split(), trace, *options), said)
    assert core.calls == []
