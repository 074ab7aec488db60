"""What depends on assumed keys: ranges, flips and where they are, kills, and what is refused."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sardonyx
from sardonyx import _core
from sardonyx.papers.reproduction import Asked
from sardonyx.report import write_report
from sardonyx.report.flips import sensitivity_table, where
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.conclusions import conclusions, differs, says
from sardonyx.runs.results import Results, Run
from sardonyx.runs.sensitivity import Flip
from sardonyx.runs.tailbench import TimedRuns
from sardonyx.studies import reproductions
from sardonyx.sweeps.varying import MergedInTime, Range, ranges

COMMAND = [sys.executable, "-m", "sardonyx"]
TRACE = "synth:rung-60:2000"
ASKED = ("compare", TRACE, "--designs", "baseline,esd", "--sensitivity", "--draws", "3")


@pytest.fixture(scope="module")
def found() -> Results:
    return sardonyx.compare([TRACE], ["baseline", "esd"], sensitivity=True, draws=3, jobs=2)


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


@pytest.mark.slow
def test_each_flip_is_found_again_by_hand(found: Results) -> None:
    sensitivity = found.sensitivity
    assert sensitivity is not None
    numeric = [flip for flip in sensitivity.flips if flip.until.replace(".", "").isdigit()]
    assert numeric, "the trace was chosen so that some conclusion flips"

    def says_at(flip: Flip, value: str) -> str:
        overrides = {flip.parameter: value}
        there = sardonyx.compare([TRACE], ["baseline", "esd"], set=overrides, jobs=2)
        points = [(run.trace, run.design) for run in there.runs]
        return conclusions(points, there.runs)[flip.name].says[flip.kind]

    for flip in numeric[:3]:
        assert says_at(flip, flip.until) in (flip.holds, "equal"), flip
        assert says_at(flip, flip.since) != flip.holds, flip
        assert flip.parameter in where(flip)


@pytest.mark.slow
def test_keys_on_which_no_run_depends_are_not_run(found: Results) -> None:
    sensitivity = found.sensitivity
    assert sensitivity is not None
    names = {key.parameter: key for key in sensitivity.keys}
    assert "units.sha1.energy_nj" not in names, "of dedup-sha1 alone"
    assert names["esd.collision"].designs == ("esd",)
    assert len([key for key in names.values() if key.tried]) >= 12
    energy = names["units.aes.energy_nj"]
    moved = {name for each in energy.tried for name in each.figures}
    assert any(name.startswith("energy_ratio") for name in moved)
    plain = {headline.name: headline.value for headline in sensitivity.headlines}
    for each in energy.tried:
        for name, value in each.figures.items():
            assert (value == plain[name]) == (not name.startswith("energy_ratio")), name


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
    console.print(sensitivity_table(found.sensitivity, 100))
    text = console.export_text()
    assert "Flips by" in text and "all together" in text and "█" in text
    write_report(Comparison(found), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert 'id="tornado"' in page and "Conclusions that flip under one key" in page
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
    while running.poll() is None and len(list(kept.glob("*/shards/*"))) < 3:
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGKILL)
    running.wait(60)
    assert running.returncode == -signal.SIGKILL and not (tmp_path / "killed.json").exists()
    before = len(list(kept.glob("*/shards/*")))
    assert before >= 3
    again = subprocess.run([*words, *out], stdout=-3, stderr=-1, text=True, check=True)
    assert "were done before" in again.stderr
    out = ("--out", str(tmp_path / "whole"), "--json", str(tmp_path / "whole.json"))
    assert subprocess.run([*COMMAND, *ASKED, *out], stdout=-3, stderr=-3).returncode == 0
    assert said("killed.json") == said("whole.json")


@pytest.mark.slow
def test_an_estimate_comes_first(tmp_path: Path) -> None:
    words = ["compare", TRACE, "--designs", "baseline,esd", "--limit", "200", "--sensitivity"]
    ended = subprocess.run(
        [*COMMAND, *words, "--draws", "1", "--out", str(tmp_path)],
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
        draws=2,
        jobs=2,
    )
    sensitivity = results.sensitivity
    assert sensitivity is not None and len([k for k in sensitivity.keys if k.tried]) >= 10
    assert {headline.title for headline in sensitivity.headlines} == {
        "Transactions a second", "Bytes written", "Energy",
    }  # fmt: skip


@pytest.mark.slow
def test_what_does_nothing_is_refused(tmp_path: Path) -> None:
    there = ("--out", str(tmp_path / "there"))
    assert "two designs" in refused("compare", TRACE, "-d", "esd", "--sensitivity", *there)
    assert "--draws" in refused("compare", TRACE, "--draws", "3", *there)
    assert "--draws" in refused("compare", TRACE, "--sensitivity", "--draws", "-1", *there)
    assert "--draws" in refused("reproduce", "sca", "--quick", "--draws", "3", *there)
    assert "easy-pm, esd, pageforge, sca" in refused(
        "reproduce", "recam", "--quick", "--sensitivity", *there
    )
    assert not (tmp_path / "there").exists()
    with pytest.raises(_core.SardonyxError, match="draws = -1"):
        sardonyx.compare([TRACE], ["baseline", "esd"], sensitivity=True, draws=-1)


def test_merging_in_time_can_be_varied() -> None:
    plan = reproductions()["pageforge"].plan(Asked(["silo"], "pageforge", (), quick=True))
    assert plan.headlines is not None and isinstance(plan.headlines.runs, TimedRuns)
    varying = MergedInTime(plan.headlines.runs)
    known = {key.parameter: key for key in varying.ranges()}
    able = [key for key in known.values() if key.ends]
    assert len([key for key in able if key.parameter.split(".")[0] != "silo"]) >= 8
    assert all(key.reason for key in able)
    assert not {"window.ms", "vms.mib"} & set(known), "the reproduction sets them"
    assert "ksm.visit_ns" not in known, "here processors run the work"
    assert "masstree.accesses" not in known, "of another application"
    slice_us = known["thread.slice_us"]
    assert (slice_us.low, slice_us.value, slice_us.high) == ("750", "3000", "20000")
    run = Run("silo", "ksm", "pageforge", 1, {}, metrics={}, assumed=tuple(known))
    none, ksm = varying.designs.index("none"), varying.designs.index("ksm")
    assert varying.depends(ksm, "thread.slice_us", run)
    assert not varying.depends(none, "thread.slice_us", run)
    assert varying.depends(none, "silo.accesses", run)
    assert varying.row(ksm, {"thread.slice_us": "750"})["thread.slice_us"] == "750"
    assert varying.possible({"thread.slice_us": "750"})
    assert "0 to 15" in (varying.refused(ksm, {"pageforge.ecc_offset_0": "16"}) or "")
