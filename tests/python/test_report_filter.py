"""What a reader of a report chooses to see: a page that shows some workloads and designs is, in
every picture and table, the page of results that have only these.
"""

from __future__ import annotations

import html
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from sardonyx.draw.figure import Figure
from sardonyx.draw.grid import grid, numbers
from sardonyx.papers import esd
from sardonyx.papers.reproduction import BesidePaper
from sardonyx.report import figures, printed, write_report
from sardonyx.runs.measures import written
from test_report_fixture import DESIGNS, compared, invented_document
from test_report_page import browse, chromium

pytestmark = pytest.mark.machine
__all__ = ["chromium"]
#: Puts what a page shows into its title: the views of each figure, and the visible cells of tables.
LOOK = """
<script>
const found = { views: {}, tables: {}, of: [] };
const all = JSON.parse(document.getElementById("plots").textContent);
for (const [key, { views }] of Object.entries(all)) {
  found.views[key] = filter.figure(views).filter(Boolean).map(({ data }) => data.map(
    ({ name, x = null, y = null, error_y }) => ({ name, x, y, halves: error_y?.array ?? null })));
}
for (const table of document.querySelectorAll("table")) {
  const name = table.dataset.name || table.className;
  const said = (cell) => (cell.dataset.v && isNaN(cell.dataset.v)
    ? cell.dataset.v : cell.textContent + (cell.matches(".best") ? " (best)" : ""));
  const cells = [...table.rows].filter((row) => !row.hidden).map((row) =>
    [...row.cells].filter((cell) => !cell.hidden).map(said));
  found.tables[name] ??= cells;
}
found.of = [...document.querySelectorAll("[data-of]")]
  .map((one) => [one.id || one.className, one.dataset.of]);
found.hash = location.hash;
found.title = document.querySelector("#filter summary").textContent;
document.title = JSON.stringify(found);
</script>
"""


def shown(page: Path, chromium: str, place: str, before: str = "") -> dict[str, Any]:
    """What the page shows at a ``place``, after a script ``before`` that does what readers do."""
    copy = page.with_name("looked.html")
    script = f'<script>location.hash = "{place}";</script>'
    names = '<script type="application/json" id="names">'
    text = page.read_text().replace(names, script + names, 1)
    copy.write_text(text.replace("</body>", f"<script>{before}</script>{LOOK}</body>"))
    title = re.search(r"<title>(.*?)</title>", browse(chromium, copy).dom, re.DOTALL)
    assert title is not None
    found: dict[str, Any] = json.loads(html.unescape(title[1]))
    return found


class Tables(HTMLParser):
    """The cells of the tables of a page, by the tables' names."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._cells: list[list[str]] | None = None
        self._in = False
        self._said = self._best = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "table":
            self._cells = []
            self.tables.setdefault(given.get("data-name") or given.get("class", ""), self._cells)
        elif tag == "tr" and self._cells is not None:
            self._cells.append([])
        elif tag in ("td", "th") and self._cells is not None:
            self._in, self._said = True, given.get("data-v", "")
            self._best = " (best)" if "best" in given.get("class", "") else ""
            self._cells[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._in and self._cells:
            self._cells[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cells:
            try:
                float(self._said or "0")
                self._cells[-1][-1] += self._best
            except ValueError:
                self._cells[-1][-1] = self._said
            self._in = False


def only(document: dict[str, Any], traces: set[str], designs: set[str]) -> dict[str, Any]:
    """A document of these traces and designs."""
    runs = [r for r in document["runs"] if r["trace"] in traces and r["design"] in designs]
    return document | {
        "runs": runs,
        "traces": [each for each in document["traces"] if each["name"] in traces],
    }


def near(a: Any, b: Any) -> bool:
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, list) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    return bool(a == b)


def traces(figure: Figure) -> list[list[dict[str, Any]]]:
    return [
        [
            {
                "name": each.get("name"),
                "x": each.get("x"),
                "y": each.get("y"),
                "halves": each.get("error_y", {}).get("array"),
            }
            for each in view.data
        ]
        for view in figure.views
    ]


#: Chosen workloads and designs, and pictures that are not the smaller page's: of the two slowest of
#: all, relative to a design that is not shown, with a column of noughts that is not shown, or of
#: more figures over time, which few traces have.
ZERO = ("energy-by-cause", "latency-by-cause")
CHOSEN = [
    (("a", "c"), DESIGNS, {"worst-cases", "over-time"}),
    (("b",), DESIGNS, {"worst-cases", "over-time"}),
    (("a", "b", "c", "d"), ("baseline", "esd"), {"worst-cases", "metadata", *ZERO}),
    (("b", "d"), ("baseline", "dewrite", "esd"), {"worst-cases", "metadata", "over-time"}),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("filter") / "report.html"
    comparison = compared(invented_document(4))
    write_report(comparison, page, BesidePaper(tuple(esd.claims(comparison))))
    return page


@pytest.mark.parametrize(("letters", "designs", "other"), CHOSEN)
def test_what_is_chosen_is_the_page_of_only_that(
    page: Path,
    chromium: str,
    tmp_path: Path,
    letters: tuple[str, ...],
    designs: tuple[str, ...],
    other: set[str],
) -> None:
    names = [f"invented-{letter}" for letter in letters]
    chosen = "&".join([*(f"workload={n}" for n in names), *(f"design={d}" for d in designs)])
    found = shown(page, chromium, f"summary?{chosen}")
    smaller = compared(only(invented_document(4), {*names}, {*designs}))
    drawn = {each.key: each for each in figures(smaller) if isinstance(each, Figure)}
    assert len(drawn) > 15
    for key, figure in drawn.items():
        if key not in other:
            assert near(found["views"][key], traces(figure)), key
    write_report(smaller, tmp_path / "smaller.html")
    parsed = Tables()
    parsed.feed((tmp_path / "smaller.html").read_text())
    same = {name for name in parsed.tables if name and name in found["tables"]} - other
    assert len(same) > 15
    for name in same - ({"summary"} if len(names) == 1 else set()):  # the means are the trace's
        assert found["tables"][name] == parsed.tables[name], name
    said = dict(map(tuple, found["of"]))
    assert ("Of all workloads: " in said.values()) == (len(names) < 4)


def test_a_choice_is_in_the_address_and_back(page: Path, chromium: str) -> None:
    box = "document.querySelector('#filter input[value={}]').click();"
    clicks = box.format("invented-b") + box.format("dewrite")
    found = shown(page, chromium, "", clicks)
    assert found["title"] == "Shown: 3 of 4 workloads, 3 of 4 designs"
    assert found["hash"].count("workload=") == 3 and "design=dewrite" not in found["hash"]
    again = shown(page, chromium, found["hash"].lstrip("#"))
    assert again | {"of": []} == found | {"of": []}  # plots say it once they are drawn
    every = "document.querySelector('#filter button').click();"
    assert shown(page, chromium, "", clicks + every) == shown(page, chromium, "")


def test_the_last_of_a_kind_stays(page: Path, chromium: str) -> None:
    clicks = "for (const box of document.querySelectorAll('#filter input')) box.click();"
    found = shown(page, chromium, "", clicks)
    assert found["title"] == "Shown: invented-d, esd"


def test_values_are_written_as_python_writes_them(page: Path, chromium: str) -> None:
    values = [0.0, 0.004567, 0.51, 0.9996, 1.0, 9.995, 12.345, 99.99, 999.6, 1234.6, 5.2e6, 7.7e9]
    units = {"x": "×", "ns": "ns", "nj": "nJ", "GB/s": "GB/s", "%": "share", "number": "number"}
    asked = json.dumps([[value, unit] for value in values for unit in units.values()])
    before = f"document.title = JSON.stringify({asked}.map(([v, u]) => filter.written(v, u)));"
    copy = page.with_name("written.html")
    copy.write_text(page.read_text().replace("</body>", f"<script>{before}</script></body>"))
    title = re.search(r"<title>(.*?)</title>", browse(chromium, copy).dom, re.DOTALL)
    assert title is not None
    ours = [written(v, u) for v in values for u in units]
    ours = [
        "0.457 %" if (v, u) == (0.004567, "%") else each
        for each, (v, u) in zip(ours, [(v, u) for v in values for u in units], strict=True)
    ]
    assert json.loads(html.unescape(title[1])) == ours


def test_a_page_of_tables_follows_too(tmp_path: Path, chromium: str) -> None:
    page = tmp_path / "printed.html"

    def tell(people: Any) -> None:
        table = grid("program", "design", *numbers("cuts"))
        for program in ("btree", "queue"):
            for design in ("sca", "fca"):
                table.add_row(program, design, "7")
        people.print(table)

    printed.write("crash run", tell, page)
    shown = """<script>
      location.hash = "table-1?design=fca&workload=queue";
      addEventListener("hashchange", () => {
        const rows = [...document.querySelectorAll("tbody tr")].filter((row) => !row.hidden);
        document.documentElement.dataset.rows = rows.map((row) => row.innerText).join();
      });
    </script>"""
    page.write_text(page.read_text().replace("</body>", f"{shown}</body>"))
    seen = browse(chromium, page)
    assert seen.console() == [] and (seen.state("rows") or "").split() == ["queue", "fca", "7"]
