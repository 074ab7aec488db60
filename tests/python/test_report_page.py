"""The report as a reader's browser shows it, and as a file."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from sardonyx import _core, layers
from sardonyx.draw.figure import CAUSE_COLOURS, DESIGN_COLOURS, LINE_COLOURS, design_colour
from sardonyx.papers import esd
from sardonyx.papers.reproduction import BesidePaper
from sardonyx.report import (
    Figure,
    Missing,
    claims,
    figures,
    markup,
    write_report,
    write_trace_report,
)
from sardonyx.runs import origin
from sardonyx.runs.facts import Info, Trace
from test_report_fixture import compared, invented_document

PAPER_FIGURES = {1, 2, 3, 4, 5, 8, 11, 12, 13, 14, 15, 16, 17, 18, 19}


def figure(key: str, document: dict[str, Any]) -> Figure:
    found = next(f for f in figures(compared(document)) if f.key == key)
    assert isinstance(found, Figure), found
    return found


# ---- what the figures hold


def test_every_figure_of_the_paper_has_its_counterpart() -> None:
    made = figures(compared(invented_document(3)))
    assert not [f.key for f in made if isinstance(f, Missing)]
    numbers = {int(n) for f in made for n in re.findall(r"Fig\. (\d+)", f.cf)}
    assert numbers == PAPER_FIGURES


def test_plotly_accepts_every_view() -> None:
    for made in figures(compared(invented_document(2))):
        assert isinstance(made, Figure)
        for view in range(len(made.views)):
            assert made.plotly(view).data


def test_bars_are_the_ratios_and_end_in_their_geometric_mean() -> None:
    document = invented_document(2, sweeps=False)
    latency = {
        "baseline": (400, 900),
        "dedup-sha1": (800, 900),
        "dewrite": (200, 300),
        "esd": (100, 100),
    }
    for run in document["runs"]:
        index = 0 if run["trace"] == "invented-a" else 1
        run["metrics"]["mean_write_latency_ns"] = latency[run["design"]][index]
    bars = {b["name"]: b["y"] for b in figure("write-speedup", document).views[0].data}
    assert set(bars) == {"dedup-sha1", "dewrite", "esd"}
    assert bars["dedup-sha1"] == pytest.approx([0.5, 1.0, 0.5**0.5])
    assert bars["esd"] == pytest.approx([4.0, 9.0, 6.0])


def test_the_worst_cases_are_the_two_slowest_traces() -> None:
    document = invented_document(4, sweeps=False)
    for run in document["runs"]:
        slow = {"invented-b": 3, "invented-d": 2}.get(run["trace"], 1)
        sha1 = run["design"] == "dedup-sha1"
        run["metrics"]["mean_write_latency_ns"] = 100 * (slow if sha1 else 1)
    outer = figure("worst-cases", document).views[0].data[0]["x"][0]
    assert list(dict.fromkeys(outer)) == ["invented-b", "invented-d"]


def test_cause_shares_of_a_bar_add_up_to_one() -> None:
    for view in figure("latency-by-cause", invented_document(3)).views:
        columns = zip(*(trace["y"] for trace in view.data), strict=True)
        assert [sum(column) for column in columns] == pytest.approx([1.0] * len(view.data[0]["x"]))


def test_a_thinned_distribution_keeps_its_ends_and_stays_on_the_curve() -> None:
    document = invented_document(1, sweeps=False)
    run = document["runs"][0]
    curve = [[float(i), i / 5000] for i in range(1, 5001)]
    run["write_latency_cdf"] = curve
    drawn = figure("write-latency", document).views[0].data[0]
    points = list(zip(drawn["x"], drawn["y"], strict=True))
    assert len(points) < 400
    assert points[0] == (1.0, 0.0002)
    assert points[-1] == (5000.0, 1.0)
    assert set(points) <= {(ns, f) for ns, f in curve}
    assert max(b - a for a, b in zip(drawn["y"], drawn["y"][1:], strict=False)) < 0.01


def test_collisions_are_held_against_the_paper_from_the_counts() -> None:
    document = invented_document(2, sweeps=False)

    def verdict(crc: int, hamming: int, hsiao: int) -> str:
        counts = {"crc-32": crc, "truncated-hamming": hamming}
        for trace in document["traces"]:
            for row in trace["info"]["collisions"]:
                row["contents"] = counts.get(row["fingerprint"], hsiao)
        return figure("collisions", document).reading

    assert "2 contents collide under CRC-32, 400 under truncated-hamming" in verdict(1, 200, 300)
    assert verdict(1, 200, 300).endswith("these traces contradict it.")
    assert verdict(1, 200, 0).endswith("these traces contradict it for truncated-hamming.")
    assert verdict(5, 4, 5).endswith("these traces agree.")


def test_ratios_far_from_the_papers_have_a_logarithmic_axis() -> None:
    rows = esd.claims(compared(invented_document(2)))
    axis = next(f for f in claims.figures(rows) if f.key == "claims-ratios").views[0].layout
    assert axis["xaxis"]["type"] == "log"
    assert axis["xaxis"]["range"][0] < 0 < axis["xaxis"]["range"][1]


def test_daggers_name_what_a_figure_rests_on() -> None:
    document = invented_document(2)
    assert figure("write-speedup", document).assumed == ["units.crc32.latency_ns"]
    assert "units.aes.energy_nj" in figure("energy", document).assumed
    assert figure("duplicates", document).assumed == []


def test_a_count_has_no_dagger_as_in_the_table() -> None:
    document = invented_document(2)
    for run in document["runs"]:
        run["assumed"] = ["core.width"]
    for key in ("write-reduction", "predictions", "efit-size", "amt-size"):
        assert figure(key, document).assumed == [], key
    assert figure("ipc", document).assumed == ["core.width"]


def test_a_colour_is_a_design_and_nothing_else() -> None:
    drawn = figures(compared(invented_document(2)))
    others = 0
    for shown in drawn:
        if isinstance(shown, Missing):
            continue
        for bar in (bar for view in shown.views for bar in view.data):
            colours = [bar.get(part, {}).get("color") for part in ("marker", "line")]
            used = {colour for colour in colours if isinstance(colour, str)}
            if bar.get("name") not in DESIGN_COLOURS:
                others += len(used)
                assert not used & set(DESIGN_COLOURS.values()), (shown.key, bar.get("name"))
    assert others > 10


def test_the_baselines_own_times_have_daggers_as_in_the_terminal(tmp_path: Path) -> None:
    document = invented_document(1)
    for run in document["runs"]:
        run["assumed"] = ["core.width"]
    write_report(compared(document), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    row = text[text.index("</i>baseline</th>") :].partition("</tr>")[0]
    marked = ["dagger" in cell for cell in row.split("<td")[1:]]
    # Shares and writes are counts; latencies, IPC, p99 and energy are not. There is no bandwidth.
    assert marked == [False, False, True, True, True, True, True, False]


def test_no_plot_is_empty_where_no_write_is_in_a_burst(tmp_path: Path) -> None:
    document = invented_document(2, sweeps=False)
    for trace in document["traces"]:
        trace["info"]["burst_write_share"] = 0.0
    comparison = compared(document)
    drawn = {each.key: each for each in figures(comparison)}
    assert isinstance(drawn["worth"], Missing)
    write_report(comparison, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert '<table data-name="worth">' in text, "writes and footprints stay"


def test_wear_is_beside_the_baseline() -> None:
    document = invented_document(1, sweeps=False)
    years = {"baseline": 10.0, "dedup-sha1": 5.0, "dewrite": 20.0, "esd": 25.0}
    for run in document["runs"]:
        run["metrics"]["lifetime_ideal_years"] = years[run["design"]]
    bars = {b["name"]: b["y"][0] for b in figure("wear", document).views[0].data}
    assert bars == {"dedup-sha1": 0.5, "dewrite": 2.0, "esd": 2.5}


def test_a_trace_alone_has_a_page_of_its_own_figures(tmp_path: Path) -> None:
    facts = invented_document(1)["traces"][0]
    write_trace_report([Trace("redis", Info.of(facts["info"]))], tmp_path / "trace.html")
    text = (tmp_path / "trace.html").read_text()
    articles = re.findall(r'<article id="([^"]+)" class="figure"', text)
    assert articles == ["worth", "duplicates", "locality", "collisions"]
    assert "Trace report" in text
    assert "#assumed" not in text
    parsed = _Links()
    parsed.feed(text)
    assert not parsed.fetched


def test_many_assumptions_are_counted_in_place_and_all_named(tmp_path: Path) -> None:
    document = invented_document(1, sweeps=False)
    names = [f"core.invented_{i}" for i in range(9)]
    for run in document["runs"]:
        run["assumed"] = names
    write_report(compared(document), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    place = text[text.index('<article id="ipc"') : text.index('<article id="write-latency"')]
    assert "† rests on 9 assumed parameters" in place
    assert all(name in place for name in names)


@pytest.mark.parametrize(
    ("gone", "missing"),
    [
        ("esd", {"efit-size", "amt-size"}),
        ("dewrite", {"predictions", "efit-size", "amt-size"}),
        (
            "baseline",
            {"write-reduction", "write-speedup", "read-speedup", "ipc", "energy", "worst-cases"}
            | {"efit-size", "amt-size", "wear"},
        ),
    ],
)
def test_what_is_absent_leaves_a_note(gone: str, missing: set[str], tmp_path: Path) -> None:
    document = invented_document(3, sweeps=False)
    document["runs"] = [run for run in document["runs"] if run["design"] != gone]
    assert {f.key for f in figures(compared(document)) if isinstance(f, Missing)} == missing
    write_report(compared(document), tmp_path / "report.html")


def test_a_sweep_without_a_policy_is_drawn_too() -> None:
    document = invented_document(1)
    for run in document["runs"]:
        if run["variant"].get("esd.policy") == "lrcu":
            del run["variant"]["esd.policy"]
    names = [t["name"] for t in figure("efit-size", document).views[0].data]
    assert names == ["EFIT, LRU", "EFIT, the machine's policy"]


def test_variants_are_listed_and_kept_out_of_the_summary(tmp_path: Path) -> None:
    document = invented_document(1, sweeps=False)
    plain_report, report = tmp_path / "plain.html", tmp_path / "report.html"
    write_report(compared(document), plain_report)
    document["runs"].append({**document["runs"][-1], "variant": {"esd.reclaim": "paper"}})
    document["runs"][-1]["metrics"] = {"mean_write_latency_ns": 777.0}
    write_report(compared(document), report)
    text = report.read_text()
    assert "esd.reclaim=paper" in text
    assert "777 ns" in text
    assert 'id="variants"' not in plain_report.read_text()
    summaries = [
        re.search(r'<section id="summary">.*?</section>', p.read_text(), re.S)
        for p in (plain_report, report)
    ]
    assert summaries[0]
    assert summaries[1]
    assert summaries[0][0] == summaries[1][0]


def test_bare_runs_still_make_a_report(tmp_path: Path) -> None:
    run = {"trace": "t", "design": "esd", "metrics": {"writes": 1}}
    document = {"sardonyx": "1", "machine": {"name": "m"}, "runs": [run]}
    write_report(compared(document), tmp_path / "report.html")
    assert all(isinstance(f, Missing) for f in figures(compared(document)))


def test_what_cannot_be_drawn_has_no_card(tmp_path: Path) -> None:
    document = invented_document(2, sweeps=False)
    write_report(compared(document), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert 'id="efit-size"' not in text and 'id="amt-size"' not in text
    listed = text[text.index('<section id="absent">') :]
    assert "2 figures that these results cannot fill" in listed
    write_report(compared(invented_document(2)), tmp_path / "report.html")
    assert '<section id="absent">' not in (tmp_path / "report.html").read_text()


def test_the_answer_is_first_and_the_baseline_in_units(tmp_path: Path) -> None:
    document = invented_document(1, sweeps=False)
    latency = {"baseline": 1000, "dedup-sha1": 2000, "dewrite": 800, "esd": 500}
    for run in document["runs"]:
        metrics = run["metrics"]
        metrics["mean_write_latency_ns"] = latency[run["design"]]
        metrics["p99_write_latency_ns"] = 4 * latency[run["design"]]
    write_report(compared(document), tmp_path / "report.html")
    text = unescape((tmp_path / "report.html").read_text())
    answer = "esd beside baseline: writes faster (2.00×); reads "
    assert answer in text and text.index(answer) < text.index('<section id="summary">')
    rows = re.findall(r"<tr>.*?</tr>", text[text.index('<section id="summary">') :])
    assert "baseline</th>" in rows[1] and "1.00 µs" in rows[1] and "4.00 µs" in rows[1]
    assert "<small>0.50×</small>" in next(row for row in rows if ">esd</th>" in row)


def test_the_page_says_where_it_comes_from(tmp_path: Path) -> None:
    known = {
        "command": "sardonyx compare <redis>",
        "date": "2026-01-02T03:04:05+00:00",
        "commit": "a" * 40 + "-dirty",
        "traces": [{"path": "/there/redis.parquet", "sha256": "b" * 64}],
    }
    document = invented_document(1, sweeps=False)
    write_report(compared(document), tmp_path / "r.html", None, origin.read(known))
    text = (tmp_path / "r.html").read_text()
    section = text[text.index('<section id="origin">') :]
    for said in ("compare &lt;redis&gt;", "2026-01-02T03:04:05", "a" * 40 + "-dirty", "b" * 64):
        assert said in section
    assert "SHA-256 of /there/redis.parquet" in section
    assert "2026-01-02" in text[: text.index('<section id="summary">')]
    write_report(compared(document), tmp_path / "r.html")
    assert '<section id="origin">' not in (tmp_path / "r.html").read_text()


def test_what_is_worse_than_the_baseline_is_not_the_best(tmp_path: Path) -> None:
    document = invented_document(1, sweeps=False)
    latency = {"baseline": 100, "dedup-sha1": 200, "dewrite": 150, "esd": 120}
    for run in document["runs"]:
        run["metrics"]["mean_read_latency_ns"] = latency[run["design"]]
        run["metrics"]["mean_write_latency_ns"] = 1000 - latency[run["design"]]
    write_report(compared(document), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    summary = text[text.index('<section id="summary">') :]
    best = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r'class="best".*?</td>', summary)]
    shown = " ".join(best)
    assert "0.83×" not in shown and "1.12×" in shown, best


def test_a_small_result_makes_a_small_page(tmp_path: Path) -> None:
    write_report(compared(invented_document(1, sweeps=False)), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_520_000


def test_the_small_plotly_is_of_the_version_that_is_installed() -> None:
    from plotly.offline import get_plotlyjs_version

    script = markup.plotly()
    assert f"plotly.js (basic - minified) v{get_plotlyjs_version()}\n" in script[:200]
    digest = hashlib.sha256(script.encode()).hexdigest()
    assert digest == "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"  # npm's


def test_a_colour_is_one_design_in_every_report() -> None:
    own = layers.registered()  # by other tests of this process
    known = [each["name"] for each in json.loads(_core.designs()) if each["name"] not in own]
    colours = [design_colour(name, [name]) for name in known]
    assert len(set(colours)) == len(known)
    assert [design_colour(name, known) for name in known] == colours
    others = [design_colour(name, ["a+b", "c+d"]) for name in ("a+b", "c+d")]
    assert len({*others, *colours}) == len(known) + 2
    assert not {*colours, *others} & {*LINE_COLOURS, *CAUSE_COLOURS.values()}


# ---- the file


class _Links(HTMLParser):
    """Collects what a browser would fetch, and the ids and anchors of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name == "href" and tag == "a" and value and value.startswith("#"):
                self.anchors.add(value[1:])
            elif name in ("src", "href", "srcset", "action", "data"):
                self.fetched.append(f"{tag} {value}")


def test_the_file_refers_to_nothing_outside_itself(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(compared(invented_document(2)), path)
    links = _Links()
    links.feed(path.read_text(encoding="utf-8"))
    assert links.fetched == []
    assert links.anchors <= set(links.ids)
    assert len(links.ids) == len(set(links.ids))
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_names_are_text_wherever_they_stand(tmp_path: Path) -> None:
    document = invented_document(1, sweeps=False)
    hostile = '</script><img src=x onerror=alert(1)> & "q"'
    for item in (*document["runs"], *document["traces"]):
        item["trace" if "design" in item else "name"] = hostile
    path = tmp_path / "report.html"
    beside = BesidePaper(note=hostile, verdict=("What holds.", hostile))
    write_report(compared(document), path, beside)
    written = path.read_text(encoding="utf-8")
    assert '<p class="note">What holds.</p>' in written
    links = _Links()
    links.feed(written)
    assert links.fetched == []


def test_embedded_data_cannot_end_its_script() -> None:
    text = markup._embedded({"name": "</script><b>"})
    assert "<" not in text
    assert json.loads(text) == {"name": "</script><b>"}


# ---- the browser


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "no `chromium` on this machine (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}; in CI it must be there")
        pytest.skip(reason)
    return found


class Seen:
    """A page after its scripts ran: the document, the browser's log, and its network log."""

    def __init__(self, dom: str, log: str, network: dict[str, Any]) -> None:
        self.dom = dom
        self.log = log
        self.network = network

    def state(self, name: str) -> str | None:
        found = re.search(rf'<html[^>]* data-{name}="([^"]*)"', self.dom)
        return found and found.group(1)

    def plot(self, key: str) -> str:
        start = self.dom.index(f'data-plot="{key}"')
        ends = [i for i in (self.dom.find("data-plot=", start + 20),) if i > 0]
        return self.dom[start : min(ends, default=len(self.dom))]

    def requested(self) -> set[str]:
        """What the page asked of other machines; the browser's own errands do not count."""
        urls = {
            event["params"]["url"]
            for event in self.network["events"]
            if event.get("params", {}).get("network_isolation_key", "").startswith("file:")
            and "url" in event["params"]
        }
        return {url for url in urls if not url.startswith(("file:", "data:", "blob:"))}

    def console(self) -> list[str]:
        return [line for line in self.log.splitlines() if "CONSOLE" in line]


def browse(chromium: str, page: Path, width: int = 1360, *flags: str) -> Seen:
    """Load a page in headless Chromium that can reach no other machine, and let its scripts end."""
    place = page.parent
    finished = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-extensions",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            f"--window-size={width},2000",
            "--virtual-time-budget=30000",
            f"--user-data-dir={place / 'profile'}",
            f"--log-net-log={place / 'network.json'}",
            "--dump-dom",
            *flags,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    network = json.loads((place / "network.json").read_text())
    return Seen(finished.stdout, finished.stderr, network)


@pytest.fixture(scope="module")
def seen(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The full report: 20 traces by 4 designs, the sweeps, and the claims."""
    page = tmp_path_factory.mktemp("browser") / "report.html"
    comparison = compared(invented_document(20))
    write_report(comparison, page, BesidePaper(tuple(esd.claims(comparison))))
    return browse(chromium, page)


@pytest.mark.machine
def test_every_plot_is_drawn_without_an_error(seen: Seen) -> None:
    assert seen.state("errors") == "0"
    made = [f for f in figures(compared(invented_document(20))) if isinstance(f, Figure)]
    assert seen.state("plots") == str(len(made) + 2)  # and two of the claims
    assert seen.console() == []


POINT = '<g class="point"><path d="M[^"]'
CURVE = '<path class="js-line" d="M[^"]{60,}"'


@pytest.mark.machine
@pytest.mark.parametrize(
    ("key", "mark", "count"),
    [
        ("write-speedup", POINT, 3 * 21),
        ("read-speedup", POINT, 3 * 21),
        ("ipc", POINT, 3 * 21),
        ("energy", POINT, 3 * 21),
        ("duplicates", POINT, 3 * 21),
        ("locality", POINT, 5 * 21),
        ("predictions", POINT, 4 * 21),
        ("write-latency", CURVE, 4),
        ("efit-size", CURVE, 2),
        ("amt-size", CURVE, 1),
        ("duplicates-found", POINT, 2 * 21),
        ("latency-by-cause", POINT, 8 * 4),
    ],
)
def test_a_plot_shows_its_data(seen: Seen, key: str, mark: str, count: int) -> None:
    assert len(re.findall(mark, seen.plot(key))) == count


@pytest.mark.machine
def test_the_page_asks_nothing_of_other_machines(seen: Seen) -> None:
    assert seen.requested() == set()


@pytest.mark.machine
def test_the_instruments_see_requests_and_errors(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<img src="http://there.invalid/a.png"><script>throw Error("here")</script>')
    seen = browse(chromium, page)
    assert seen.requested() == {"http://there.invalid/a.png"}
    assert any("here" in line for line in seen.console())


@pytest.mark.machine
def test_no_button_sends_a_figure_away(seen: Seen) -> None:
    titles = set(re.findall(r'data-title="([^"]*)"', seen.dom))
    assert titles == {"Download plot", "Zoom", "Pan", "Reset axes"}


@pytest.mark.machine
def test_drawing_is_quick(seen: Seen) -> None:
    drawn_in = seen.state("milliseconds")
    assert drawn_in is not None
    assert float(drawn_in) < 10_000  # 1 to 2 s on an idle machine


def test_of_one_trace_nothing_is_drawn_twice(tmp_path: Path) -> None:
    comparison = compared(invented_document(1))
    write_report(comparison, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Every trace" not in text and '<table data-name="summary"' in text
    for made in figures(comparison):
        assert isinstance(made, Figure)
        names = [str(row[0]) for row in made.table.rows]
        assert not [name for name in names if re.match("(arithmetic|geometric) mean", name)], (
            made.key
        )
        drawn = [json.dumps(view.data) for view in made.views]
        assert len(set(drawn)) == len(drawn), made.key


def test_a_page_of_the_same_document_has_the_same_bytes(tmp_path: Path) -> None:
    pages = []
    for name in ("a.html", "b.html"):
        facts = invented_document(1)["traces"][0]
        write_trace_report([Trace("redis", Info.of(facts["info"]))], tmp_path / name)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1] and b"<dt>date</dt>" not in pages[0]
