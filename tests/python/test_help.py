"""Help fits a screen, says all with --help-all, and costs no import of what is not asked for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sardonyx import cli
from sardonyx.cli.help import first_line
from test_cli_fixture import FakeCore, Program, bad_input
from test_options import commands

#: Lines of a terminal of which a help text is one screen, at a hundred columns.
SCREEN = 42


def said(*arguments: str, **environment: str) -> str:
    program = [sys.executable, "-m", "sardonyx", *arguments]
    ended = subprocess.run(
        program, capture_output=True, text=True, env=os.environ | {"COLUMNS": "100"} | environment
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def helped(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sardonyx", *command.split(), option])
        patch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as end:
            cli.main()
    assert end.value.code == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("command", ["", "trace", "store", "crash", "crash-test", *commands()])
def test_help_is_one_screen(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = helped(command, "--help", capsys)
    assert 5 < len(lines) <= SCREEN
    assert not [line for line in lines if "<=" in line or "<bool>" in line or len(line) > 100]


@pytest.mark.parametrize("group", ["", "crash", "store"])
def test_a_group_without_a_command_is_its_help(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["sardonyx", *group.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code == 2 and "\nCommands\n" in said and "error:" not in said


def test_all_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in commands().items():
        whole, short = (
            "\n".join(helped(name, option, capsys)) for option in ("--help-all", "--help")
        )
        options = [each for each in command.params if each.param_type_name == "option"]
        assert all(max(each.opts, key=len) in whole for each in options if not each.hidden), name
        assert command.rare <= {each.name for each in command.params}, name
        rare = [each for each in options if each.name in command.rare]
        shown = set(re.findall(r"^  (?:-\w, )?(?:--\w+, )?(--[a-z0-9-]+)", short, re.M))
        assert not [each for each in rare if max(each.opts, key=len) in shown], name
        assert (f"--help-all lists {len(rare)} more" in short) == bool(rare), name


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    for name in cli.app.list_commands(None):  # type: ignore[arg-type]
        made = cli.app.get_command(None, name)  # type: ignore[arg-type]
        assert first_line(str(made and made.help)) == cli.line_of(name), name


SLOW = {"pydantic", "pandas", "pyarrow", "plotly"}


@pytest.mark.parametrize(
    ("line", "slow"),
    [
        ("--version", SLOW | {"click", "rich", "sardonyx.cli"}),
        ("--help", SLOW | {"sardonyx.simulator.compare", "sardonyx.crashes.run"}),
        ("compare --help", SLOW | {"sardonyx.report", "sardonyx.sweeps", "sardonyx.papers"}),
        (
            "compare synth:rung-60 --limit 50 --designs baseline,esd --out out",
            SLOW | {"sardonyx.sweeps", "sardonyx.papers.esd", "sardonyx.report.swept"},
        ),
    ],
)
def test_nothing_is_imported_that_is_not_used(line: str, slow: set[str], tmp_path: Path) -> None:
    loaded = f"""
import sys
from sardonyx.__main__ import main
sys.argv = ["sardonyx", *{line.split()!r}]
try:
    main()
except SystemExit:
    pass
print(*sys.modules)
"""
    run = [sys.executable, "-c", loaded]
    ended = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path)
    words = ended.stdout.splitlines()[-1].split()
    assert "sardonyx._core" in words
    assert not slow & set(words)


# ---- completion


def completed(line: str) -> list[str]:
    """What bash would offer at the end of the line."""
    offered = said(
        _SARDONYX_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(line.count(" "))
    )
    return [each.partition(",")[2] for each in offered.splitlines()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sardonyx comp", ["compare"]),
        ("sardonyx compare red", ["redis"]),
        ("sardonyx compare btr", ["btree"]),
        ("sardonyx trace cut sto", ["stockfish"]),
        (
            "sardonyx compare redis --designs baseline,dew",
            ["baseline,dewrite", "baseline,dewrite-sound"],
        ),
        ("sardonyx compare redis --machine easy", ["easy-pm"]),
        ("sardonyx show cx", ["cxl"]),
        ("sardonyx crash run --designs no-atom", ["no-atomicity"]),
        ("sardonyx compare redis --set esd.efit_b", ["esd.efit_bytes="]),
        ("sardonyx compare redis --sensi", ["--sensitivity"]),
        ("sardonyx reproduce e", ["easy-pm", "esd"]),
        ("sardonyx crash run btree --platform gpf-", ["gpf-failed", "gpf-device", "gpf-part"]),
        ("sardonyx crash run btree --mutant valid-b", ["valid-before-log"]),
        ("sardonyx trace convert a b --from dramsi", ["dramsim2", "dramsim3"]),
        ("sardonyx compare redis --near ddr5", ["ddr5-4800"]),
        ("sardonyx explore redis --at-most mean_w", ["mean_write_latency_ns="]),
        ("sardonyx merge run a --kernel linux-", ["linux-6", "linux-4.4"]),
        ("sardonyx merge run a --zeros n", ["no-holes", "none"]),
        ("sardonyx merge generate co", ["cow"]),
        ("sardonyx trace synth rung-6", ["rung-60", "rung-66"]),
    ],
)
def test_the_shell_completes(line: str, words: list[str]) -> None:
    assert completed(line) == words


def test_zsh_has_the_same_words() -> None:
    line = "sardonyx compare red"
    offered = said(_SARDONYX_COMPLETE="zsh_complete", COMP_WORDS=line, COMP_CWORD="2")
    assert "redis" in offered


# ---- before work begins


def test_room_is_checked_before_work(
    sardonyx: Program, core: FakeCore, trace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=3 << 20))
    ended = sardonyx("compare", trace, "--out", "there")
    bad_input(ended, "there: 3.0 MiB are free there, and 8 MiB are needed")
    assert core.calls == [] and not (tmp_path / "there").exists()


# ---- recordings by name


def test_a_recording_is_named_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = "compare redis --designs baseline --limit 500 --json - --out out"
    results: dict[str, Any] = json.loads(said(*line.split()))
    assert [trace["name"] for trace in results["traces"]] == ["redis"]
    origin = json.loads((tmp_path / "out" / "origin.json").read_text())
    assert origin["traces"][0]["path"].endswith("redis.parquet")
    listed = json.loads(said("recordings", "--json", "-"))
    assert "redis" in [each["name"] for each in listed]
    few = json.loads(said("trace", "info", "redis", "--limit", "9", "--json", "-"))
    assert few["records"] == 9
    assert few["warnings"][0].endswith(
        "caches of 16384 KiB kept the rest: record a longer run, or below a smaller last level, as "
        "in --llc 1M:16"
    )


def test_the_path_of_a_recording_is_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    paths = [line.split()[-1] for line in said("recordings").splitlines()]
    assert paths and all(Path(path).is_file() for path in paths)


def test_a_file_of_the_name_comes_before_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sardonyx.runs.recordings import path_of

    monkeypatch.chdir(tmp_path)
    assert path_of("redis").endswith("redis.parquet")
    (tmp_path / "redis").write_text("no trace")
    assert path_of("redis") == "redis"
