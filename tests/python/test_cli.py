"""What the command line promises: exit status, one line an error, files, JSON, checks first."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from sardonyx import _core
from test_cli_fixture import FakeCore, Program, bad_input


def test_says_its_version(sardonyx: Program) -> None:
    ended = sardonyx("--version")
    assert (ended.status, ended.out.strip()) == (0, f"sardonyx {_core.VERSION}")


def test_compare_writes_its_files_and_prints_the_table(
    sardonyx: Program, core: FakeCore, trace: str, tmp_path: Path
) -> None:
    ended = sardonyx("compare", trace, "--out", "there")
    assert ended.status == 0, ended.err
    assert {path.name for path in (tmp_path / "there").iterdir()} == {
        "origin.json",
        "results.json",
        "results.parquet",
        "report.html",
    }
    assert "app" in ended.out
    assert ended.out.strip().endswith(str(Path("there/report.html")))
    assert ended.err == "", "progress bars go to terminals only"
    called = sorted(str(call["design"]) for call in core.calls)  # they run beside each other
    assert called == ["baseline", "dedup-sha1", "dewrite", "esd"]


def test_compare_passes_its_options_on(sardonyx: Program, core: FakeCore, trace: str) -> None:
    options = "--designs esd --limit 9 --warmup 3 --copies 2 --distinct --jobs 1"
    ended = sardonyx(
        "compare", trace, *options.split(), "--set", "esd.efit_bytes=65536", "--machine", "sca"
    )
    assert ended.status == 0, ended.err
    assert core.calls == [
        {
            "source": {"kind": "trace", "path": trace, "limit": 9, "window": None},
            "design": "esd",
            "overrides": [["esd.efit_bytes", "65536"]],
            "warmup": 3,
            "warmup_share": 0.0,
            "requests": None,
            "sample": None,
            "timeline": None,
            "commands": None,
            "copies": 2,
            "distinct": 1.0,
            "threads": False,
            "verify": True,
            "machine": "sca",
        }
    ]


def test_compare_takes_programs_by_name(sardonyx: Program, core: FakeCore) -> None:
    options = "--designs esd --cores 4 --transactions 70 --transaction-size 1K --footprint 2M"
    ended = sardonyx("compare", "btree", *options.split(), "--seed", "5", "--machine", "sca")
    assert ended.status == 0, ended.err
    sizes: dict[str, object] = {"item_bytes": 1024, "footprint": 2 << 20, "transactions": 70}
    sizes |= {"seed": 5, "software_log": True}
    assert [call["source"] for call in core.calls] == [{"kind": "program", "name": "btree"} | sizes]
    assert [call["copies"] for call in core.calls] == [4]


def test_programs_that_cannot_run_are_refused(sardonyx: Program, core: FakeCore) -> None:
    bad_input(sardonyx("compare", "btre"), "there is no such file", "a program")
    bad_input(sardonyx("compare", "btree", "--footprint", "lots"), "--footprint lots", "16M")
    bad_input(sardonyx("compare", "btree", "--cores", "65"), "65 cores", "1 to 64")
    bad_input(sardonyx("compare", "btree", "--footprint", "60G"), "smaller footprint")
    assert core.calls == []


def test_programs_are_listed(sardonyx: Program) -> None:
    assert "array-swap" in sardonyx("programs").out


def test_compare_gives_the_same_numbers_as_json(
    sardonyx: Program, core: FakeCore, trace: str, tmp_path: Path
) -> None:
    ended = sardonyx("compare", trace, "--json", "-")
    document = json.loads(ended.out)
    answers = document.pop("answers")
    assert [answer["over"] for answer in answers] == ["baseline"] * 3
    assert document == json.loads((tmp_path / "results/latest/results.json").read_text())
    assert document["sardonyx"] == _core.VERSION
    assert [run["trace"] for run in document["runs"]] == ["app"] * 4
    assert document["machine"]["parameters"]["esd.efit_bytes"] == 524288


def test_a_limit_beyond_a_rungs_length_is_said(
    sardonyx: Program, core: FakeCore, trace: str
) -> None:
    def said(command: str, source: str, limit: int) -> str:
        ended = sardonyx(*command.split(), source, "--limit", str(limit))
        assert ended.status == 0, ended.err
        return ended.err

    for command in ("compare", "trace info"):
        lines = said(command, "synth:rung-60", 600_000)
        assert lines.count("\n") == 1, "once, though four designs run"
        assert "synth:rung-60 has 424328 records" in lines
        assert "synth:rung-60:600000 has more" in lines
        assert "synth:rung-33:21:7 has more" in said(command, "synth:rung-33:20:7", 21)
        assert said(command, "synth:rung-60", 424_328) == ""
        assert said(command, trace, 600_000) == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.parquet"], ["none.parquet", "no such file"]),
        (["{trace}", "--designs", ","], ["--designs"]),
        (["{trace}", "--set", "esd.efit_bytes"], ["KEY=VALUE"]),
        (["{trace}", "--set", "medium.geometry.banks=0"], ["medium.geometry.banks", "allowed"]),
        (["{trace}", "--limit", "many"], ["--limit"]),
        (["{trace}", "--bogus"], ["--bogus"]),
        (["{trace}", "{trace}"], ["twice"]),
        (["."], ["is a directory"]),
        (["synth:rung-61"], ["rung-61", '"rung-60"']),
        (["synth:rung-60:many"], ["RECORDS"]),
        (["{trace}", "--json", "no/such/f.json"], ["--json"]),
        (["{trace}", "--out", "{trace}"], ["--out"]),
        ([], ["compare --help"]),
    ],
)
def test_bad_input_is_one_line_before_any_run(
    sardonyx: Program, core: FakeCore, trace: str, arguments: list[str], words: list[str]
) -> None:
    ended = sardonyx("compare", *(argument.format(trace=trace) for argument in arguments))
    bad_input(ended, *words)
    assert core.calls == []


def test_a_failing_run_leaves_earlier_results_alone(
    sardonyx: Program, core: FakeCore, trace: str, tmp_path: Path
) -> None:
    options = ("--out", "results")
    assert sardonyx("compare", trace, *options).status == 0
    before = {path: path.read_bytes() for path in (tmp_path / "results").iterdir()}
    core.failure = _core.SardonyxError("app.parquet, row 3: op 9 is not one of 0-7")
    ended = sardonyx("compare", trace, *options)
    assert ended.status == 2
    assert "row 3" in ended.err
    assert {path: path.read_bytes() for path in (tmp_path / "results").iterdir()} == before


def test_a_wrong_byte_is_a_failed_check_and_no_table(
    sardonyx: Program, core: FakeCore, trace: str, tmp_path: Path
) -> None:
    core.failure = _core.WrongRead("esd on app: record 3: line 5 read as 00 ..")
    ended = sardonyx("compare", trace, "--out", "there", "--json", "there.json")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == "error: esd on app: record 3: line 5 read as 00 ..\n"
    assert not (tmp_path / "there").exists()
    assert not (tmp_path / "there.json").exists()


def test_results_are_never_replaced_silently(
    sardonyx: Program, core: FakeCore, trace: str, tmp_path: Path
) -> None:
    def made() -> list[Path]:
        return sorted(path for path in (tmp_path / "results").iterdir() if not path.is_symlink())

    (tmp_path / "results").mkdir()
    for count in (1, 2, 3):
        ended = sardonyx("compare", trace, "--json", "-")
        assert (ended.status, ended.err) == (0, "")
        assert len(made()) == count
    latest = tmp_path / "results/latest"
    assert latest.resolve() in made()
    assert re.fullmatch(r"\d{8}-\d{6}-app(-\d)?", latest.resolve().name)

    there = ("compare", trace, "--out", "there")
    assert sardonyx(*there).err == ""
    origin = json.loads((tmp_path / "there/origin.json").read_text())
    assert origin["sardonyx"] == _core.VERSION
    digest = hashlib.sha256(Path(trace).read_bytes()).hexdigest()
    assert origin["traces"] == [{"path": trace, "sha256": digest}]
    assert {"command", "commit"} < set(origin)
    said = sardonyx(*there).err
    assert said.count("\n") == 1
    assert f"there: the results there of {origin['date']} will be replaced" in said

    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.tex").write_text("years of work")
    bad_input(sardonyx(*there[:-1], "other"), "--out other", "thesis.tex", "no results")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.tex"]
    latest.unlink()
    latest.mkdir()
    bad_input(sardonyx("compare", trace), "results/latest", "not a link")


def test_report_prints_saved_results(sardonyx: Program, core: FakeCore, trace: str) -> None:
    sardonyx("compare", trace)
    ended = sardonyx("report", "results/latest")
    assert ended.status == 0
    assert "app" in ended.out
    bad_input(sardonyx("report", "nowhere"), "nowhere")


def test_machines_and_show(sardonyx: Program, tmp_path: Path) -> None:
    assert "nvmain-a" in sardonyx("machines").out
    listed = json.loads(sardonyx("machines", "--json", "-").out)
    assert listed[0]["name"] == "esd"
    shown = sardonyx("show", "esd", "--set", "medium.timing.tRCD_ns=60").out
    assert "tRCD = 24  # 60 ns" in shown
    (tmp_path / "mine.toml").write_text(shown)
    assert sardonyx("show", "mine.toml").out == shown
    bad_input(sardonyx("show", "edsd"), "edsd")
    (tmp_path / "bad.toml").write_text('extends = "esd"\n\n[core]\nwidth = -4\n')
    bad_input(sardonyx("show", "bad.toml"), "bad.toml, line 4, core.width: -4 is negative")


def test_designs_are_listed(sardonyx: Program, core: FakeCore) -> None:
    listed = sardonyx("designs").out
    assert "dewrite" in listed
    assert "@bonsai-lazy-sound" in listed


def test_reproduce_prints_every_claim(sardonyx: Program, core: FakeCore, trace: str) -> None:
    ended = sardonyx("reproduce", "esd", trace, "--quick", "--cells", "0", "--json", "esd.json")
    assert ended.status == 0, ended.err
    assert "replaced by" in ended.out
    assert json.loads(Path("esd.json").read_text())["claims"]
    sources = [call["source"] for call in core.calls]
    assert {source.get("path", source.get("name")) for source in sources} == {
        trace,
        "rung-33",
        "rung-60",
    }
    assert {(source["limit"], source["window"]) for source in sources} == {(30_000, 0.5)}
    assert {source.get("records") for source in sources} == {None}
    bad_input(sardonyx("reproduce", "edsd"), "esd")
    bad_input(sardonyx("reproduce", "sca", "--copies", "2"), "--copies")
    bad_input(sardonyx("reproduce", "compositions", "--quick", "--cells", "9"), "--cells 9")
    core.calls.clear()
    assert (
        sardonyx("reproduce", "esd", trace, "--quick", "--cells", "0", "--copies", "8").status == 0
    )
    assert {(call["copies"], call["distinct"]) for call in core.calls} == {(8, True)}


def test_trace_check_fails_with_one_for_a_broken_trace(
    sardonyx: Program, core: FakeCore, trace: str, tmp_path: Path
) -> None:
    assert sardonyx("trace", "check", trace).status == 0
    (tmp_path / "bad.parquet").write_bytes(b"broken")
    ended = sardonyx("trace", "check", trace, "bad.parquet")
    assert ended.status == 1
    assert "bad.parquet, row 812: op 9" in ended.out


def test_trace_check_goes_on_after_an_unreadable_file(
    sardonyx: Program, core: FakeCore, trace: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"broken")
    ended = sardonyx(
        "trace", "check", "none.parquet", "bad.parquet", ".", trace, "--json", "checked.json"
    )
    assert ended.status == 2
    assert [line.split(":")[1] for line in ended.err.splitlines()] == [" none.parquet", " ."]
    assert "bad.parquet: 1,000 records, 1 bad" in ended.out
    assert f"{trace}: 1,000 records, sound" in ended.out
    written = json.loads((tmp_path / "checked.json").read_text())
    assert ["error" in report for report in written] == [True, False, True, False]


def test_trace_tools_pass_their_options_on(sardonyx: Program, core: FakeCore, trace: str) -> None:
    Path("app.nvt").write_text("NVMV1\n")
    shown = sardonyx("trace", "info", trace, "--plot", "plot.html")
    assert shown.status == 0
    assert "ESD Fig. 3" in shown.out
    assert "█" in shown.out
    assert "Content locality" in Path("plot.html").read_text()
    bad_input(sardonyx("trace", "info", trace, "--plot", "no/such/plot.html"), "directory")
    assert sardonyx("trace", "convert", "app.nvt", "new.parquet", "--from", "nvmain").status == 0
    assert sardonyx("trace", "synth", "rung-60", "s.parquet", "--records", "7").status == 0
    assert sardonyx("trace", "cut", trace, "c.parquet", "--skip", "1", "--limit", "2").status == 0
    assert core.calls == [
        {"source": "app.nvt", "target": "new.parquet", "from_format": "nvmain"}
        | {"to_format": None, "data": "unique"}
        | {"seed": 0, "clock_mhz": None, "levels": None},
        {"spec": {"name": "rung-60", "records": 7}, "seed": 0},
        {"skip": 1, "limit": 2},
    ]
    bad_input(sardonyx("trace", "convert", "app.nvt", "new.parquet"), "--from")
    bad_input(sardonyx("trace", "convert", "app.nvt", "n.parquet", "--from", "nvm"), "nvmain")
    bad_input(sardonyx("trace", "synth", "rung", "s.parquet"), "rung-33")
    bad_input(sardonyx("trace", "cut", trace, "no/such/dir.parquet"), "directory")


def test_a_conversion_is_told_the_clock_and_the_device(
    sardonyx: Program, core: FakeCore, trace: str
) -> None:
    Path("a.txt").write_text("40 READ 1\n")
    convert = ("trace", "convert", "a.txt", "n.parquet", "--from")
    assert sardonyx(*convert, "dramsim3", "--clock-mhz", "800", "--seed", "3").status == 0
    levels = ("ramulator-read-write", "--levels")
    assert sardonyx(*convert, *levels, "1,1,4,4,1024,64").status == 0
    assert [(c["clock_mhz"], c["seed"], c["levels"]) for c in core.calls] == [
        (800.0, 3, None),
        (None, 0, "1,1,4,4,1024,64"),
    ]
    bad_input(sardonyx(*convert, "ramulator-load-store", "--clock-mhz", "800"), "--clock-mhz")
    bad_input(sardonyx(*convert, "dramsim3", "--clock-mhz", "0"), "--clock-mhz")
    bad_input(sardonyx(*convert, "dramsim3", "--levels", "1,1,4,4,1024,64"), "--levels")
    for wrong in ("1,2", "1,1,4,4,1024,x", "1,1,4,4,1024,99999999999999999999"):
        bad_input(sardonyx(*convert, *levels, wrong), "--levels")
