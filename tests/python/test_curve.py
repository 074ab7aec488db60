"""``sardonyx curve``: the shipped machine beside what was measured, other machines, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sardonyx._core import SardonyxError
from sardonyx.cli import app
from sardonyx.runs import accesses
from sardonyx.runs.curves import agreement, read_measured, shipped

ROOT = Path(__file__).parents[2]
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


@pytest.mark.slow
def test_optane_is_drawn_beside_what_was_measured(tmp_path: Path) -> None:
    target, plot = tmp_path / "optane.json", tmp_path / "optane.html"
    asked = ("--machine", "optane", "--requests", "20000")
    said = run(*asked, "--json", str(target), "--plot", str(plot))
    found = json.loads(target.read_text())
    errors = {(of["figure"], of["operation"]): of["mean_error"] for of in found["agreement"]}
    assert len(found["points"]) == 177
    assert all(abs(point["error"]) < 1.3 for point in found["points"])
    within = {
        ("idle latency", "read"): 0.02,
        ("idle latency", "write"): 0.02,
        ("access size", "read"): 0.05,
        ("access size", "write"): 0.05,
        ("access size of six", "read"): 0.1,
        ("access size of six", "write"): 0.1,
        ("access size of six", "store"): 0.1,
        ("threads", "read"): 0.1,
        ("threads on six", "read"): 0.12,
        ("buffer", "write"): 0.1,
    }
    assert {curve: errors[curve] for curve, most in within.items() if errors[curve] > most} == {}
    assert len(errors) == 19
    assert "Further than 10%" not in said or "write of threads" in said
    assert "measured, store" in plot.read_text()


def test_a_file_of_loads_goes_with_any_machine_and_no_option_of_other_curves(
    tmp_path: Path,
) -> None:
    file, target = tmp_path / "loads.csv", tmp_path / "loads.json"
    file.write_text(
        ",".join(accesses.COLUMNS) + "\nmine,read,random,2,128,8,0,65536,2,gb_per_s,4\n"
    )
    asked = ("--machine", "ddr4-2400", "--measured", str(file), "--requests", "2000")
    run(*asked, "--designs", "sca,esd", "--json", str(target))
    found = json.loads(target.read_text())
    assert [point["design"] for point in found["points"]] == ["sca", "esd"]
    assert found["agreement"][0]["points"] == 1
    for option in (("--reads", "50"), ("--streams", "0"), ("--bytes", "1M")):
        assert option[0] in run(*asked, *option, status=2)
    assert "--in-order" in run("--in-order", "--machine", "cxl", status=2)
    file.write_text(file.read_text().replace("gb_per_s", "write_amplification"))
    assert "medium.buffer.blocks" in run(*asked, status=2)


@pytest.mark.parametrize(
    "row",
    [
        "mine,read,random,0,128,8,0,65536,2,gb_per_s,4",
        "mine,reads,random,2,128,8,0,65536,2,gb_per_s,4",
        "mine,read,random,2,128,8,2,65536,2,gb_per_s,4",
        "mine,read,random,2,128,8,0,65536,2,mb_per_s,4",
        "mine,read,random,2,128,8,0,65536,2,gb_per_s",
        "mine,read,random,2,128,8,0,65536,2,gb_per_s,nan",
    ],
)
def test_a_load_that_is_none_is_refused_with_its_line(row: str) -> None:
    with pytest.raises(SardonyxError, match="loads.csv:2: mine"):
        accesses.read_measured(",".join(accesses.COLUMNS) + f"\n{row}\n", "loads.csv")


def test_what_ships_can_be_read() -> None:
    text = shipped("cxl")
    assert text is not None
    points = read_measured(text, "cxl.csv")
    assert {point.reads_percent for point in points} == {2, 36, 58, 74, 90}
    assert shipped("esd") is None
    assert agreement([]) is None


@pytest.mark.slow
def test_our_half_of_the_agreement_with_a_peer_is_as_kept() -> None:
    """Latency, bandwidth and energies of 80 streams on five machines, to five digits."""
    command = [sys.executable, str(ROOT / "research/agreement.py"), "--ours"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
