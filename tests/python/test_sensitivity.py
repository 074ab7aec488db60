"""What depends on assumed keys: ranges, what turns and where, kills, and what is refused."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sardonyx
from sardonyx import _core
from sardonyx.papers.reproduction import Asked
from sardonyx.questions import Job
from sardonyx.report import write_report
from sardonyx.report.sensitivity import sensitivity_table, where
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.conclusions import Conclusion, conclusions, differs, says
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.results import Results, Run
from sardonyx.runs.sensitivity import Concluded, Said, Turn
from sardonyx.runs.sources import parse
from sardonyx.runs.tailbench import TimedRuns
from sardonyx.studies import reproductions
from sardonyx.vary.cells import possible
from sardonyx.vary.ranges import Range, ranges
from sardonyx.vary.runs import MergedInTime, Simulated
from sardonyx.vary.turning import Turning

COMMAND = [sys.executable, "-m", "sardonyx"]
TRACE = "synth:rung-60:2000"
ASKED = ("compare", TRACE, "--designs", "baseline,esd", "--sensitivity", "--draws", "20")


@pytest.fixture(scope="module")
def found() -> Results:
    return sardonyx.compare([TRACE], ["baseline", "esd"], sensitivity=True, draws=40, jobs=2)


def refused(*words: str) -> str:
    ended = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


def test_a_conclusion_in_words() -> None:
    assert says(1.2) == {"sign": "better", "5 %": "better by 5 %"}
    assert says(0.96) == {"sign": "worse", "5 %": "within 5 %"}
    assert says(1.0005)["sign"] == "equal"
    assert says(None) == {}
    assert differs("better", "worse") and not differs("better", "equal")


def test_a_value_between_two_and_one_that_is_drawn() -> None:
    cache = Range("a.bytes", "1024", "", low="256", high="4096", whole=True)
    assert cache.between("256", "4096") == "1024"
    assert cache.between("256", "512") is None, "powers of two alone, as its ends and its value"
    width = Range("a", "6", "", low="5", high="9", whole=True)
    assert (width.between("5", "9"), width.between("5", "6")) == ("7", None)
    energy = Range("a_nj", "1", "", low="0.1", high="10")
    assert energy.between("0.1", "10") == "1", "by its size, since it spans a factor of 100"
    words = Range("a", "x", "", others=("y", "z"))
    generator = random.Random(3)
    assert {words.drawn(generator) for _ in range(50)} == {"x", "y", "z"}
    for key in (cache, width, energy):
        drawn = [float(key.drawn(generator)) for _ in range(200)]
        assert float(key.low) <= min(drawn) and max(drawn) <= float(key.high)
        assert len(set(drawn)) > 4
    assert (width.ends, words.ends) == (["5", "9"], ["y", "z"])
    assert Range("a", "5", "", low="5.0", high="9").ends == ["9"]


def test_keys_have_their_machines_ranges_and_what_is_set_has_none() -> None:
    known = {key.parameter: key for key in ranges("esd", [])}
    assert known["places.reuse"].others == ("lifo", "nearest")
    assert (known["core.width"].low, known["core.width"].high) == ("2", "8")
    assert "changes no figure" in (known["medium.endurance"].left_out or "")
    assert all(key.left_out is None or not key.ends for key in known.values())
    assert "core.width" not in {key.parameter for key in ranges("esd", [("core.width", "2")])}


def turns(results: Results) -> list[tuple[Concluded, Said, Turn]]:
    sensitivity = results.sensitivity
    assert sensitivity is not None
    return [
        (each, said, turn)
        for each in sensitivity.concluded
        for said in each.says
        for turn in said.turns
    ]


@pytest.mark.slow
def test_each_turn_is_found_again_by_hand(found: Results) -> None:
    numeric = [each for each in turns(found) if each[2].until.replace(".", "").isdigit()]
    assert numeric, "the trace was chosen so that some conclusion turns"

    def says_at(each: Concluded, kind: str, parameter: str, value: str) -> str:
        there = sardonyx.compare([TRACE], ["baseline", "esd"], set={parameter: value}, jobs=2)
        points = [(run.trace, run.design) for run in there.runs]
        name = "|".join((each.measure, each.design, each.over, each.workload))
        return conclusions(points, there.runs)[name].says[kind]

    for each, said, turn in numeric[:3]:
        assert says_at(each, said.kind, turn.parameter, turn.until) in (said.word, "equal"), turn
        assert says_at(each, said.kind, turn.parameter, turn.since) != said.word, turn
        assert turn.parameter in where(turn)


@pytest.mark.slow
def test_what_turns_in_cells_is_decided_by_keys_on_which_its_runs_depend(found: Results) -> None:
    sensitivity = found.sensitivity
    assert sensitivity is not None and sensitivity.cells == 40
    names = {key.parameter: key for key in sensitivity.keys}
    assert "units.sha1.energy_nj" not in names, "of dedup-sha1 alone"
    assert names["esd.collision"].designs == ("esd",)
    assert len(sensitivity.varied) >= 12
    assert any(key.left_out for key in names.values())
    for each in sensitivity.concluded:
        assert each.headline or each.turned
        assert {name for share in each.deciding for name in share.choices} <= names.keys()
        for said in each.says:
            assert said.turned or not said.turns
    energy = next(each for each in sensitivity.concluded if each.measure == "energy_ratio")
    assert any("energy" in name for share in energy.deciding[:4] for name in share.choices)
    writes = next(each for each in sensitivity.concluded if each.measure == "write_speedup")
    assert writes.least < writes.median < writes.most
    assert sensitivity.flipped("write_speedup", "esd", "baseline", writes.workload) == writes.turned


@pytest.mark.slow
def test_results_keep_it_and_those_without_have_no_word_of_it(
    found: Results, tmp_path: Path
) -> None:
    found.save(tmp_path / "results.json")
    assert Results.load(tmp_path) == found
    plain = sardonyx.compare([TRACE], ["baseline", "esd"], jobs=2)
    assert "sensitivity" not in plain.to_document()

    def timeless(results: Results) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = json.loads(json.dumps(results.to_document()["runs"]))
        for run in runs:
            run["metrics"].pop("requests_per_second")
        return runs

    assert timeless(plain) == timeless(found)


@pytest.mark.slow
def test_it_is_shown(found: Results, tmp_path: Path) -> None:
    from rich.console import Console

    assert found.sensitivity is not None
    console = Console(record=True, width=100, file=(tmp_path / "out").open("w"))
    console.print(sensitivity_table(found.sensitivity))
    text = console.export_text()
    assert "Turn by" in text and "decided by" in text and "in nine of ten cells" in text
    write_report(Comparison(found), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert 'id="sensitivity"' in page and "Conclusions that turn" in page
    assert "no sensitivity was run" not in page


@pytest.mark.slow
def test_a_killed_one_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    def said(name: str) -> str:
        document = json.loads((tmp_path / name).read_text())
        return json.dumps(document["sensitivity"])

    words = [*COMMAND, *ASKED, "--jobs", "2"]
    out = ("--out", str(tmp_path / "killed"), "--json", str(tmp_path / "killed.json"))
    running = subprocess.Popen([*words, *out], stdout=-3, stderr=-3)
    kept = tmp_path / "killed" / "sensitivity"
    while running.poll() is None and len(list(kept.glob("*/points/*"))) < 2:
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGKILL)
    running.wait(60)
    assert running.returncode == -signal.SIGKILL and not (tmp_path / "killed.json").exists()
    before = len(list(kept.glob("*/points/*")))
    assert before >= 2
    again = subprocess.run([*words, *out], stdout=-3, stderr=-1, text=True, check=True)
    assert "were done before" in again.stderr
    out = ("--out", str(tmp_path / "whole"), "--json", str(tmp_path / "whole.json"))
    assert subprocess.run([*COMMAND, *ASKED, *out], stdout=-3, stderr=-3).returncode == 0
    assert said("killed.json") == said("whole.json")


@pytest.mark.slow
def test_an_estimate_comes_first(tmp_path: Path) -> None:
    words = ["compare", TRACE, "--designs", "baseline,esd", "--limit", "200", "--sensitivity"]
    ended = subprocess.run(
        [*COMMAND, *words, "--draws", "20", "--out", str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stderr.startswith("note: sensitivity: ") and "about" in ended.stderr
    assert ended.stderr.count("\n") == 1, "bars are for terminals"


@pytest.mark.slow
def test_programs_too() -> None:
    results = sardonyx.compare(
        ["btree"],
        ["sca", "fca"],
        "sca",
        footprint=1 << 20,
        transactions=60,
        sensitivity=True,
        draws=20,
        jobs=2,
    )
    sensitivity = results.sensitivity
    assert sensitivity is not None and len(sensitivity.varied) >= 10
    assert {each.title for each in sensitivity.concluded if each.headline} == {
        "Transactions a second", "Bytes written", "Energy",
    }  # fmt: skip


@pytest.mark.slow
def test_what_does_nothing_is_refused(tmp_path: Path) -> None:
    there = ("--out", str(tmp_path / "there"))
    assert "two designs" in refused("compare", TRACE, "-d", "esd", "--sensitivity", *there)
    assert "--draws" in refused("compare", TRACE, "--draws", "30", *there)
    assert "20 to 10,000" in refused("compare", TRACE, "--sensitivity", "--draws", "19", *there)
    assert "--draws" in refused("reproduce", "sca", "--quick", "--draws", "30", *there)
    assert "sample's cells" in refused(
        "reproduce", "recam", "--quick", "--sensitivity", "--cells", "0", *there
    )
    assert not (tmp_path / "there").exists()
    with pytest.raises(_core.SardonyxError, match="draws -1: give a whole number of 20"):
        sardonyx.compare([TRACE], ["baseline", "esd"], sensitivity=True, draws=-1)


def test_merging_in_time_can_be_varied() -> None:
    of = reproductions()["pageforge"].plan(Asked(["silo"], "pageforge", (), quick=True)).sampled
    assert of is not None
    runs = of.runs({"seed": "0"}, [("thread.slice_us", "750")])
    assert isinstance(runs, TimedRuns)
    varying = MergedInTime(runs)
    known = {key.parameter: key for key in varying.ranges()}
    able = [key for key in known.values() if key.ends]
    assert len([key for key in able if key.parameter.split(".")[0] != "silo"]) >= 8
    assert all(key.reason for key in able)
    assert not {"window.ms", "vms.mib", "thread.slice_us"} & set(known), "they are set"
    assert "ksm.visit_ns" not in known, "here processors run the work"
    assert "masstree.accesses" not in known, "of another application"
    run = Run("silo", "ksm", "pageforge", 1, {}, metrics={}, assumed=(*known, "thread.slice_us"))
    none, ksm = varying.designs.index("none"), varying.designs.index("ksm")
    assert varying.depends(ksm, "thread.slice_us", run)
    assert not varying.depends(none, "thread.slice_us", run)
    assert varying.depends(none, "silo.accesses", run)
    assert varying.row(ksm)["thread.slice_us"] == "750"
    assert possible(runs)
    assert not possible(of.runs({"seed": "0"}, [("pageforge.ecc_offset_0", "16")]))


class Along:
    """Cells of a made-up space: ``x`` of 0 to 100 alone bears on a figure that turns at 37."""

    seed = 0
    redrawn = 0
    failures_said = ()
    x = Range("x", "10", "", low="0", high="100")

    def __init__(self, values: list[str]) -> None:
        self.values = values

    def choices(self, _: object) -> list[Range]:
        return [self.x]

    def left_out(self) -> list[Range]:
        return []

    def alone(self, number: int, _: object, name: str = "", value: str = "") -> Any:
        varying = SimpleNamespace(designs=["one"])
        runs = SimpleNamespace(check=lambda: None)
        at = {"x": value or "10"}
        return SimpleNamespace(number=number, values=at, runs=runs, varying=varying, numbers=[0])

    def run(self, asked: list[tuple[Any, int]]) -> dict[tuple[int, int], Any]:
        return {(cell.number, number): float(cell.values["x"]) for cell, number in asked}


def test_the_value_at_which_a_conclusion_turns_is_between_two_near_ones() -> None:
    def judge(cell: Any, _: object) -> dict[str, Conclusion]:
        x = float(cell.values["x"])
        word = "better" if x < 37 else "worse"
        one = Conclusion("m", "M", "a", "b", "", x, "", {"sign": word}, frozenset([0]))
        return {one.name: one}

    cells: Any = Along([str(5 * number) for number in range(20)])
    drawn = [cells.alone(number, (), "x", value) for number, value in enumerate(cells.values)]
    turning = Turning(cells, (), judge, [None], lambda *_: True, lambda *_: True)
    (each,) = turning.study(drawn, [judge(cell, ()) for cell in drawn]).concluded
    (said,) = each.says
    assert (said.word, said.holds.number, said.holds.of) == ("better", 8, 20)
    (turn,) = said.turns
    assert turn.becomes == "worse" and turn.at == "100"
    assert float(turn.until) < 37 <= float(turn.since)
    assert float(turn.since) / float(turn.until) < 10 ** (1 / 2**4)


def test_what_a_comparison_is_asked_is_asked_of_its_cells_too() -> None:
    """A setting that a cell's row lacks would be dropped in silence."""
    others: dict[str, Any] = {
        "overrides": (("medium.timing.tRCD_ns", "60"),),
        "warmup": 7,
        "warmup_share": 0.5,
        "copies": 2,
        "distinct": 1.0,
        "verify": False,
        "threads": True,
    }
    named = {each.name for each in fields(Settings)}
    assert named - {"machine", "sample"} == set(others)  # given apart, and refused
    files = {"timeline", "requests", "commands"}  # of single runs: refused
    assert set(Job.fields()) == named | {"source", "design"} | files
    point = Point("a", parse("synth:rung-60"), "esd")
    plain = Simulated([point], Settings()).row(0)
    for name, value in others.items():
        varied = Simulated([point], replace(Settings(), **{name: value})).row(0)
        assert varied != plain, name
