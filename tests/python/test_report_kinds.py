"""Every kind of report, as its command writes it: on a narrow and a wide screen, on paper and
without a script. No plot is blank, and nothing is an error.
"""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from sardonyx import _core
from sardonyx.papers import esd
from sardonyx.papers.reproduction import BesidePaper
from sardonyx.report import write_report
from sardonyx.runs.origin import Origin
from test_cli_native import sardonyx
from test_report_fixture import compared, invented_document
from test_report_page import browse, chromium

__all__ = ["chromium"]  # a fixture
pytestmark = pytest.mark.machine
#: The page of each kind, and the commands that write it.
COMMANDS = {
    "compare": ("out/report.html", ["compare redis sqlite3 --limit 500 --out out"]),
    "sensitivity": (
        "out/report.html",
        ["compare redis --limit 300 --designs baseline,esd --sensitivity --draws 20 --out out"],
    ),
    "programs": (
        "out/report.html",
        [
            "compare btree queue --designs no-encryption,sca --transactions 40 --footprint 64K "
            "--out out"
        ],
    ),
    "sweep": ("out/report.html", ["sweep s.toml --out out", "report out"]),
    "explore": (
        "out/report.html",
        ["explore synth:rung-60:2000 --sram 16K --designs sca,esd --out out"],
    ),
    "trace": ("p.html", ["trace info redis --limit 500 --plot p.html"]),
    "merge": (
        "out/report.html",
        ["merge generate cow images --pages 64", "merge run images --out out"],
    ),
    "store": ("p.html", ["store estimate . --plot p.html"]),
    "curve": ("p.html", ["curve --jobs 1 --requests 1000 --reads 100 --plot p.html"]),
}
SWEEP = """
[sweep]
traces = ["synth:rung-60"]
designs = ["baseline", "esd"]
limit = 200
[axes]
"esd.efit_bytes" = [65_536, 131_072]
"esd.efit_ways" = [4, 8]
"""
#: What Plotly draws of data: bars and lines, or their points.
DRAWN = re.compile(r'<g class="trace |class="js-line"')


def by_commands(kind: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "s.toml").write_text(SWEEP)
        page, commands = COMMANDS[kind]
        for command in commands:
            sardonyx(*command.split(), where=folder)
        return folder / page

    return write


def reproduced(folder: Path) -> Path:
    comparison = compared(invented_document(2))
    beside = BesidePaper(tuple(esd.claims(comparison)))
    origin = Origin({"command": "sardonyx reproduce esd", "date": "2026-01-01"})
    write_report(comparison, folder / "p.html", beside, origin)
    return folder / "p.html"


PAGES = {kind: by_commands(kind) for kind in COMMANDS} | {"reproduce": reproduced}


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return PAGES[request.param](tmp_path_factory.mktemp(request.param))


def plots(dom: str) -> dict[str, str]:
    """What the page has of each plot."""
    return dict(re.findall(r'data-plot="([^"]+)"(.*?)</article>', dom, re.DOTALL))


@pytest.mark.parametrize("width", [390, 1400])
def test_no_plot_is_blank(page: Path, chromium: str, width: int) -> None:
    seen = browse(chromium, page, width)
    drawn = plots(seen.dom)
    assert seen.console() == [] and seen.state("errors") == "0"
    assert drawn and seen.state("plots") == str(len(drawn))
    assert [key for key, inside in drawn.items() if not DRAWN.search(inside)] == []


def test_paper_has_no_error_and_every_figure(page: Path, chromium: str) -> None:
    paper = page.with_name("paper.pdf")
    seen = browse(chromium, page, 1400, f"--print-to-pdf={paper}")
    assert seen.console() == [] and paper.stat().st_size > 10_000
    # A page of paper has three figures at most, also of those that are folded on a screen.
    pages = paper.read_bytes().count(b"/Type /Page\n")
    assert pages >= len(plots(page.read_text())) / 3


#: Says how long the page is once its plots are drawn.
LONG = """
<script>
const wait = setInterval(() => {
  const root = document.documentElement;
  if (!root.dataset.plots) return;
  clearInterval(wait);
  root.dataset.long = String(root.scrollHeight);
}, 50);
</script>
"""


def test_a_page_is_short_before_it_is_unfolded_and_says_what_made_it(
    page: Path, chromium: str
) -> None:
    text = page.read_text()
    long = page.with_name("long.html")
    long.write_text(text.replace("</body>", f"{LONG}</body>"))
    seen = browse(chromium, long, 1400)
    assert 500 < int(seen.state("long") or 0) <= 8000
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]*)</dd>", text))
    assert facts["Sardonyx"].startswith((_core.VERSION, "0.0-test"))
    assert html.unescape(facts["command"]).startswith("sardonyx ")


def test_a_link_unfolds_the_figure_that_it_leads_to(tmp_path: Path, chromium: str) -> None:
    whole = reproduced(tmp_path)
    text = whole.read_text()
    count = "document.querySelectorAll('details.more[open]').length"
    for link, opened in (("summary", "0"), ("metadata", "1")):
        script = f"""<script>
          location.hash = "{link}";
          setTimeout(() => {{ document.documentElement.dataset.opened = String({count}); }}, 3000);
        </script>"""
        whole.write_text(text.replace("</body>", f"{script}</body>"))
        assert browse(chromium, whole, 1400).state("opened") == opened


#: A frame that runs no script, and a script beside it that looks into it.
FRAME = """
<iframe sandbox="allow-same-origin" width="390" height="2000" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const inside = document.querySelector("iframe").contentDocument, root = document.documentElement;
  const all = (name) => [...inside.querySelectorAll(name)];
  const shown = (name) => all(name).filter((one) => one.clientHeight).length;
  root.dataset.plots = String(shown(".plot"));
  root.dataset.stills = String(shown(".still"));
  root.dataset.figures = String(shown("article.figure"));
  root.dataset.said = String(inside.body.innerText.includes("still without JavaScript"));
}});
</script>
"""


def test_without_a_script_pictures_and_tables_are_there(page: Path, chromium: str) -> None:
    text = page.read_text()
    frame = page.with_name("frame.html")
    frame.write_text(f"<html>{FRAME.format(page=html.escape(text))}</html>")
    seen = browse(chromium, frame)
    assert (seen.state("plots"), seen.state("said")) == ("0", "true")
    assert seen.state("figures") == seen.state("stills") != "0"
    assert all("<table" in inside and "<svg" in inside for inside in plots(text).values())


def test_a_plot_that_fails_leaves_a_line_and_the_others(tmp_path: Path, chromium: str) -> None:
    whole = reproduced(tmp_path)
    text = whole.read_text()
    first = re.search(r'id="plots">\{"([^"]+)":\{"views":', text)
    assert first is not None
    broken = tmp_path / "broken.html"
    broken.write_text(f'{text[: first.end()]}[],"was":{text[first.end() :]}')
    seen = browse(chromium, broken)
    drawn = plots(seen.dom)
    assert seen.state("plots") == str(len(drawn))
    failed = [key for key, inside in drawn.items() if "could not be drawn" in inside]
    assert failed == [first[1]] and seen.state("errors") == "1"
    assert [key for key, inside in drawn.items() if not DRAWN.search(inside)] == failed


#: Gives the CSV of the first table as a title, without a click of a reader.
SAVE = """
<script>
URL.createObjectURL = (blob) => {
  blob.text().then((text) => { document.title = text; });
  return "#";
};
document.querySelector("table[data-name]").closest(".scroll").previousElementSibling
  .querySelector("button").click();
</script>
"""


def saved(page: Path, chromium: str, table: str = "") -> list[list[str]]:
    """The cells of the CSV of the first table, or of that of a name."""
    script = SAVE.replace("table[data-name]", f"table[data-name={table}]") if table else SAVE
    copy = page.with_name("saved.html")
    copy.write_text(page.read_text().replace("</body>", f"{script}</body>"))
    title = re.search(r"<title>(.*?)</title>", browse(chromium, copy).dom, re.DOTALL)
    assert title is not None
    return list(csv.reader(html.unescape(title[1]).splitlines()))


def test_the_csv_of_the_summary_has_numbers(tmp_path: Path, chromium: str) -> None:
    write_report(compared(invented_document(2)), tmp_path / "p.html")
    head, *rows = saved(tmp_path / "p.html", chromium, "summary")
    assert head[:3] == ["workload", "design", "Writes saved (share)"]
    assert head[3:5] == ["Medium writes", "Medium writes (×)"]  # the baseline's is no ratio
    assert not re.search("[↑↓†]", "".join(head)) and "p99 write latency (ns)" in head
    assert len(rows) == 8 and all(row[0].startswith("invented-") for row in rows)
    assert all(float(cell) >= 0 for row in rows for cell in row[2:] if cell)
    assert rows[0][2] == "" and float(rows[1][2]) > 0.2


def test_no_name_is_a_formula_of_a_spreadsheet(tmp_path: Path, chromium: str) -> None:
    document = invented_document(2, sweeps=False)
    for item in (*document["runs"], *document["traces"]):
        key = "trace" if "design" in item else "name"
        item[key] = '=HYPERLINK("a"),b' if item[key].endswith("a") else item[key]
    write_report(compared(document), tmp_path / "p.html")
    cells = [cell for row in saved(tmp_path / "p.html", chromium, "summary") for cell in row]
    assert not [cell for cell in cells if re.match("[=+@]", cell)]
    assert '\'=HYPERLINK("a"),b' in cells
