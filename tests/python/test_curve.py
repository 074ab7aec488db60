"""``sardonyx curve``: the shipped machine beside what was measured, other machines, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sardonyx._core import SardonyxError
from sardonyx.cli import app
from sardonyx.runs.curves import agreement, read_measured, shipped
from typer.testing import CliRunner

HEAD = "reads_percent,gb_per_s,read_ns\n"


def run(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["curve", *arguments])
    assert result.exit_code == status, result.output
    return result.output


def test_cxl_lies_within_five_percent_of_what_was_measured(tmp_path: Path) -> None:
    target, plot = tmp_path / "cxl.json", tmp_path / "cxl.html"
    run("--requests", "20000", "--json", str(target), "--plot", str(plot))
    found = json.loads(target.read_text())
    assert found["agreement"]["points"] == 66
    assert found["agreement"]["mean_error"] < 0.05
    assert found["agreement"]["mean_error_of_ends"] < 0.02
    assert all(abs(point["error"]) < 0.25 for point in found["points"])
    assert "measured, 58 % reads" in plot.read_text()


def test_the_same_whatever_the_number_of_threads(tmp_path: Path) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    asked = ("--machine", "esd", "--reads", "50", "--requests", "2000", "-d", "esd,baseline")
    run(*asked, "--jobs", "1", "--json", str(one))
    run(*asked, "--jobs", "2", "--json", str(two))
    assert one.read_bytes() == two.read_bytes()
    found = json.loads(one.read_text())
    assert found["agreement"] is None
    assert {point["design"] for point in found["points"]} == {"esd", "baseline"}


def test_latency_is_the_shorter_the_less_is_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "curve.json"
    said = run(
        *("--machine", "ddr4-2400", "--reads", "100", "--outstanding", "24", "--json", str(target))
    )
    points = json.loads(target.read_text())["points"]
    assert points[0]["read_ns"] < points[-1]["read_ns"] * 0.7
    assert points[-1]["outstanding"] == pytest.approx(24, rel=0.02)  # as many as may wait
    assert "--measured FILE" in said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--reads", "101"), "whole percents"),
        (("--reads", "-3"), "whole percents"),
        (("--machine", "cxxl"), "cxxl"),
        (("--designs", "esdd"), "esd"),
        (("--designs", " , "), "none given"),
        (("--bytes", "900G"), "it holds"),
        (("--measured", "no/such.csv"), "no/such.csv"),
        (("--set", "link.first=writes"), "link.first"),
        (("--plot", "no/such/page.html"), "no/such"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], told: str) -> None:
    said = run(*arguments, "--requests", "1000", status=2).strip()
    assert told in said
    assert "\n" not in said.replace("\n  ", " ") or "Usage" in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "first line"),
        ("a,b\n", "first line"),
        (HEAD, "no points"),
        (HEAD + "50,1\n", ":2:"),
        ("# kept\n" + HEAD + "50,1,100\n\n50,fast,100\n", ":5:"),
        (HEAD + "0,1,100\n", "share of reads"),
        (HEAD + "50,nan,100\n", ":2:"),
        (HEAD + "50,1,100,4\n", ":2:"),
    ],
)
def test_a_file_of_points_that_is_none_is_refused_with_its_line(text: str, told: str) -> None:
    with pytest.raises(SardonyxError, match=told):
        read_measured(text, "file.csv")


def test_what_ships_can_be_read() -> None:
    text = shipped("cxl")
    assert text is not None
    points = read_measured(text, "cxl.csv")
    assert {point.reads_percent for point in points} == {2, 36, 58, 74, 90}
    assert shipped("esd") is None
    assert agreement([]) is None
