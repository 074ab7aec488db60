"""``sardonyx crash`` over the real native module: what holds, what is caught, and bad input."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from sardonyx import _core, cli
from sardonyx.crashes import replays
from sardonyx.crashes.show import _beyond, _folded, _lacking
from test_cli_native import sardonyx

QUICK = ("--transactions", "30")


def crash(*arguments: str, where: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """The program as a shell runs it."""
    return sardonyx("crash", *arguments, where=where, status=status)


def runs(text: str) -> list[dict[str, Any]]:
    """The runs of a document, without what depends on the host's speed."""
    found: list[dict[str, Any]] = json.loads(text)["runs"]
    for run in found:
        assert run.pop("seconds") > 0
    return found


@pytest.mark.slow
def test_the_plan_says_what_holds_what_is_caught_and_what_it_rests_on(tmp_path: Path) -> None:
    designs = "sca,fca,no-atomicity,esd+sca"
    ended = crash("run", "btree", "-d", designs, "--json", "-", where=tmp_path)
    found = runs(ended.stdout)
    verdicts = {run["design"]: run["verdict"] for run in found}
    assert verdicts == dict.fromkeys(designs.split(","), "holds") | {"no-atomicity": "caught"}
    for run in found:
        assert run["positions"] > run["distinct_states"] > 0
        assert run["cuts"] == run["positions"]
        assert run["runs"] % len(run["passes"]) == 0 and len(run["passes"]) >= 5
        assert not run["fails"] and run["not_exercised"] == []
        assert bool(run["lost_cuts"]) == (run["verdict"] == "caught")
        assert run["secret_cuts"] == 0
        assert all((run["exercised"] | run["reached"])[amount] for amount in run["required"])
        assert run["reached"]["runs"] == run["runs"] and run["reached"]["states"] > 1000
    of = {run["design"]: run for run in found}
    assert "duplicates" in of["esd+sca"]["required"] and "duplicates" not in of["sca"]["required"]
    # Where it takes more than ten seconds, how far it is, and nothing else.
    assert all(" of 4 runs, " in line for line in ended.stderr.splitlines())


@pytest.mark.slow
def test_a_log_of_the_hardware_holds_and_one_without_counters_is_caught(tmp_path: Path) -> None:
    ended = crash("run", "queue", "-d", "hw-log,easy-pm,alc", "--json", "-", where=tmp_path)
    found = runs(ended.stdout)
    assert [run["verdict"] for run in found] == ["holds", "holds", "caught"]
    for run in found:
        assert run["secret_cuts"] == 0 and run["not_exercised"] == []
        assert run["exercised"]["transactions undone by hardware"] > 0
        assert {p["transaction_bytes"] for p in run["passes"]} == {128, 512, 4096}


def test_a_plan_that_tries_too_little_is_no_success(tmp_path: Path) -> None:
    few = ("run", "array-swap", "-d", "sca", "--transactions", "1", "--recovery-cuts", str(2**40))
    ended = crash(*few, "--json", "a.json", where=tmp_path, status=1)
    (run,) = runs((tmp_path / "a.json").read_text())
    assert run["verdict"] == "not exercised" and run["violations"] == []
    for lack in run["lacks"]:
        assert f"{lack['what']} {lack['had']:,} of {lack['least']:,}" in ended.stdout
    assert "--transactions 1 prevents more: leave it out" in ended.stdout


@pytest.mark.parametrize(
    ("how", "remedy"),
    [
        ("once", "crash once prevents more: give sardonyx crash run"),
        ("once --cuts at:60", "crash once prevents more: give sardonyx crash run"),
        ("run --cuts 1", "--cuts 1 prevents more: leave it out"),
    ],
)
@pytest.mark.parametrize("design", ["sca", "fca", "easy-pm"])
def test_one_run_or_one_cut_never_holds(tmp_path: Path, how: str, remedy: str, design: str) -> None:
    ended = crash(*how.split(), "btree", "-d", design, where=tmp_path, status=1)
    assert f"btree, {design}: not exercised at " in ended.stdout
    assert remedy in ended.stdout
    assert not list(tmp_path.iterdir())


def test_what_was_reached_is_one_line_for_each_design(tmp_path: Path) -> None:
    ended = crash("run", "btree", "-d", "fca", "--json", "a.json", where=tmp_path)
    (run,) = runs((tmp_path / "a.json").read_text())
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("btree, fca: ")]
    assert line.startswith(f"btree, fca: holds at {run['cuts']:,} cuts, runs {run['runs']}")
    for name, amount in run["reached"].items():
        assert (f", {name} {amount:,}" in line) == bool(amount)


def replay(ended: subprocess.CompletedProcess[str], where: Path) -> dict[str, Any]:
    """What the printed command for the first violation shows."""
    told = next(line for line in ended.stdout.splitlines() if line.startswith("  replay: "))
    _, _, *words = shlex.split(told.removeprefix("  replay: "))
    assert words[:1] == ["replay"] and len(words) == 2
    (run,) = runs(crash(*words, "--json", "-", where=where, status=1).stdout)
    return run


@pytest.mark.parametrize("program", ["queue", pytest.param("rbtree", marks=pytest.mark.slow)])
def test_a_mutant_fails_and_its_cut_replays(tmp_path: Path, program: str) -> None:
    planted = ("run", program, "-d", "sca", "--mutant", "log-not-flushed", "--seed", "4")
    ended = crash(*planted, "--json", "a.json", where=tmp_path, status=1)
    (run,) = runs((tmp_path / "a.json").read_text())
    first = run["violations"][0]
    assert first["seed"] == 400 + first["pass"] and first["count"] > 1
    assert f"seed {first['seed']}, cut {first['cut']}" in first["history"][0]
    again = replay(ended, tmp_path)
    assert again["cuts"] == 1
    assert first["kind"] in [v["kind"] for v in again["violations"]]
    assert again["violations"][0]["line"] == first["line"]


def test_a_cut_of_what_the_whole_run_shows_replays_too(tmp_path: Path) -> None:
    words = "once btree -d sca --set encryption.siblings=ride-along --transactions 60"
    naive = words.split()
    ended = crash(*naive, "--json", "a.json", where=tmp_path, status=1)
    (run,) = runs((tmp_path / "a.json").read_text())
    assert run["violations"][0]["kind"] in {
        v["kind"] for v in replay(ended, tmp_path)["violations"]
    }
    halves = next(v for v in run["violations"] if v["kind"] == "half-a-pair")
    one = ("--cuts", f"at:{halves['cut']}", "--json", "-")
    (again,) = runs(crash(*naive, *one, where=tmp_path, status=1).stdout)
    assert "half-a-pair" in {v["kind"] for v in again["violations"]}


def test_a_program_without_a_log_is_lost_and_its_cut_replays(tmp_path: Path) -> None:
    asked = ("run", "queue", "-d", "fca", "--no-log", "--cuts", "40", "--recovery-cuts", "0")
    ended = crash(*asked, "--out", "again", where=tmp_path, status=1)
    files = [json.loads(path.read_text()) for path in (tmp_path / "again").iterdir()]
    assert files and not any(each["replay"]["program"]["software_log"] for each in files)
    assert {v["kind"] for v in replay(ended, tmp_path)["violations"]} & {
        "lost-transaction",
        "early-transaction",
        "wrong-line",
    }


def test_lost_counts_cuts(tmp_path: Path) -> None:
    once = ("once", "btree", "-d", "no-atomicity", "--cores", "2", *QUICK)
    found = crash(*once, "--recovery-cuts", "0", "--json", "-", where=tmp_path)
    (run,) = runs(found.stdout)
    assert sum(v["count"] for v in run["violations"]) > run["lost_cuts"] <= run["cuts"]


@pytest.mark.slow
def test_threads_and_repetition_change_nothing(tmp_path: Path) -> None:
    words = ("hash", "-d", "sca", *QUICK, "--cores", "2", "--mutant", "no-fence-after-log")
    for command in ("run", "once"):
        answers = [
            runs(crash(command, *words, "-j", jobs, "--json", "-", where=tmp_path, status=1).stdout)
            for jobs in ("1", "2", "2")
        ]
        assert answers[0] == answers[1] == answers[2]


def test_secrecy_fails_apart_from_recoverability(tmp_path: Path) -> None:
    asked = ("once", "btree", "-d", "sca", "--set", "encryption.global_counter=paper", *QUICK)
    ended = crash(*asked, "--json", "-", where=tmp_path, status=1)
    (run,) = runs(ended.stdout)
    assert run["lost_cuts"] == 0 < run["secret_cuts"]
    assert {v["about"] for v in run["violations"]} == {"secrecy"}


def test_the_stages_of_a_transaction_are_counted(tmp_path: Path) -> None:
    ended = crash("stages", "btree", "-d", "sca", *QUICK, where=tmp_path)
    assert "prepare" in ended.stdout and "backup usable" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("run btre", 'did you mean "btree"?'),
        ("run btree -d sac", "sac"),
        ("run btree -d esd+scaa", "MAPPING+POLICY"),
        ("run btree -d ''", "none given"),
        ("run btree --mutant typo", "they are"),
        ("run btree -d hw-log --mutant no-fence-after-log", "leave the mutant or the"),
        ("stages btree -d easy-pm", "leave the design out"),
        ("run btree --no-log --mutant no-fence-after-log", "no log to plant"),
        ("run btree --platform ups", "--platform"),
        ("run btree --platform eadr --tear words", "--tear words: is for --platform adr"),
        ("run btree --cuts some", "--cuts some"),
        ("once btree --cuts at:x", "as in at:812"),
        ("run btree --transaction-size 65", "multiple of 64"),
        ("run btree --transaction-size 8K", "64 to 4,096 bytes"),
        ("run btree --footprint 4T", "--footprint 4T"),
        ("run btree --set encryption.siblings=no", "encryption.siblings"),
        ("run btree --json nowhere/x.json", "--json"),
        ("run btree --thorough soon", "--thorough soon"),
        ("run btree --sharing apart", "No such option '--sharing'"),
        ("once btree --sharing both", "--sharing"),
        ("run btree --footprint 1G", "GiB of memory"),
        ("run --seed 2", "no program is named"),
        ("exhaustive array-swap --order x", "--order x"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: str, told: str) -> None:
    refused(tmp_path, *shlex.split(arguments), *QUICK, told=told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("replay x.json", "x.json: No such file"),
        ("replay /dev/null", "is not a regular file"),
        ("app.parquet", "sardonyx crash-test search app.parquet --pool FILE"),
        ("app.parquet --pool app.pool", "sardonyx crash-test search app.parquet"),
    ],
)
def test_files_that_are_none_of_ours_are_one_line(
    tmp_path: Path, arguments: str, told: str
) -> None:
    refused(tmp_path, *arguments.split(), told=told)


def refused(where: Path, *arguments: str, told: str) -> str:
    ended = crash(*arguments, where=where, status=2)
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1, ended.stderr
    assert told in ended.stderr
    assert not list(where.iterdir())
    return ended.stderr


def test_a_program_without_a_command_hears_the_command(tmp_path: Path) -> None:
    words = ("array-swap", "-d", "no-atomicity", "--cuts", "20", *QUICK)
    said = refused(tmp_path, *words, told="is no command of crash; give sardonyx crash run")
    remedy = shlex.split(said.rpartition("give sardonyx crash ")[2])
    assert "array-swap, no-atomicity: " in crash(*remedy, where=tmp_path).stdout


def test_every_program_and_mutant_is_listed() -> None:
    known = json.loads(_core.programs())
    assert len(known["programs"]) == 9 and len(known["mutants"]) >= 10
    assert _core.guarantee("fca") == "every line"


@pytest.mark.slow
def test_all_orders_of_a_small_run_are_a_proof_and_one_order_is_none(tmp_path: Path) -> None:
    def told(*options: str, status: int) -> str:
        small = ("exhaustive", "array-swap", "--designs")
        ended = crash(*small, *options, where=tmp_path, status=status)
        return ended.stdout + ended.stderr

    said = told("sca,no-encryption", "--json", "told.json", status=0)
    assert "all orders that gates and fences allow" in said
    for proof in runs((tmp_path / "told.json").read_text()):
        assert proof["verdict"] == "proven" and proof["complete"]
        assert proof["states"] > 10 and proof["recovery_cuts"] > proof["cuts"] > 0
    assert "give more --most-states" in told("sca", "--most-states", "5", status=1)
    hidden = ("sca", "--mutant", "no-fence-after-log")
    assert "broken" not in told(*hidden, "--sharing", "interleaved", status=0)
    said = told(*hidden, status=1)
    assert "counters apart" in said and "counters interleaved" in said
    replay = next(line for line in said.splitlines() if "replay: " in line)
    again = crash(*shlex.split(replay)[3:], where=tmp_path, status=1)
    assert "which is one of many" not in again.stdout and "replay: " in again.stdout


@pytest.mark.parametrize(
    ("option", "only"),
    [(("--cores", "1"), "one core"), (("--recovery-cuts", "0"), "one life")],
)
def test_an_option_that_takes_a_need_away_narrows_the_verdict(
    tmp_path: Path, option: tuple[str, str], only: str
) -> None:
    ended = crash("run", "btree", "-d", "fca", *option, "--json", "a.json", where=tmp_path)
    (run,) = runs((tmp_path / "a.json").read_text())
    assert run["verdict"] == "holds" and run["narrowed"] == [only]
    assert f"btree, fca: holds, for {only} only at " in ended.stdout


def test_lines_that_cores_share_are_in_every_plan(tmp_path: Path) -> None:
    mutant = ("run", "queue", "-d", "sca", "--mutant", "unlock-before-data", "-o", "r")
    crash(*mutant, "--json", "a.json", where=tmp_path, status=1)
    (run,) = runs((tmp_path / "a.json").read_text())
    assert {"shared-accounts", "shared-queue"} <= {each["program"] for each in run["passes"]}
    (file, *_) = sorted((tmp_path / "r").iterdir())
    assert json.loads(file.read_text())["replay"]["program"]["name"].startswith("shared-")
    again = crash("replay", str(file), where=tmp_path, status=1)
    assert "broken" in again.stdout


def test_many_pairs_of_program_and_design_fold_to_a_line_an_amount() -> None:
    def run(program: str, design: str, merged: int) -> dict[str, Any]:
        return {
            "program": program,
            "design": design,
            "exercised": {"merges in queues": merged, "duplicates": 0},
            "required": ["merges in queues"],
            "not_exercised": ["merges in queues"] if merged < 30 else [],
        }

    runs = [run(f"program-{i}", "dedup-sha1-sound", 20 + i) for i in range(24)]
    console = Console(width=80, no_color=True, record=True, file=StringIO())
    console.print(_folded(runs))
    lines = console.export_text().splitlines()
    assert all(len(line) <= 80 for line in lines)
    (row,) = [line for line in lines if line.startswith("merges")]
    assert row.split()[-5:] == ["24", "20", "program-0", "dedup-sha1-sound", "43"]
    assert len(lines) == 3


@pytest.mark.slow
def test_what_an_attacker_does_unnoticed_is_shown_and_can_be_done_again(tmp_path: Path) -> None:
    designs = "sca,sca@mac,sca@merkle"
    ended = crash(
        "run", "btree", "-d", designs, "--attack", "--json", "a.json", "-o", "r", where=tmp_path
    )
    found = {run["design"]: run for run in runs((tmp_path / "a.json").read_text())}
    assert [run["verdict"] for run in found.values()] == ["holds"] * 3
    for design, unnoticed in [
        ("sca", {"tamper", "splice", "replay", "region", "rollback"}),
        ("sca@mac", {"replay", "region", "rollback"}),
        ("sca@merkle", set()),
    ]:
        attacks = found[design]["attacks"]
        off = {row["kind"]: row for row in attacks["rows"] if row["when"] == "off"}
        assert {kind for kind, row in off.items() if row["undetected"]} == unnoticed
        assert all(row["tried"] > 100 for row in off.values())
        assert attacks["unkept"] == attacks["honest_refused"] == 0 < attacks["cuts"]
    assert "undetected of tried" in ended.stdout
    file = tmp_path / "r" / "btree-sca-mac-off-replay.json"
    again = crash("replay", str(file), where=tmp_path)
    assert "undetected-attack: replay after the cut" in again.stdout


@pytest.mark.slow
def test_without_attacks_a_design_with_integrity_has_none(tmp_path: Path) -> None:
    few = ("run", "btree", "-d", "sca@mac", "--transactions", "40")
    for option, attacked in [("--no-attack", False), ("--attack", True)]:
        ended = crash(*few, option, "--json", "-", where=tmp_path)
        (run,) = runs(ended.stdout)
        assert (run.get("attacks") is not None) == attacked


def test_the_verdicts_line_names_where_widths_were_not_judged() -> None:
    run: dict[str, Any] = {"verdict": "holds", "widths_not_judged": ["macs", "nodes"]}
    assert _beyond(run).endswith(
        "widths not judged (fewer than 128 changes of a word): macs, nodes"
    )
    assert _beyond(run | {"widths_not_judged": []}) == ""
    assert _beyond(run | {"verdict": "broken"}) == ""


def test_what_no_run_comes_to_is_told_with_the_option_that_does() -> None:
    lack = {"what": "rounds", "had": 0, "least": 1, "kept_by": [], "reached_by": ["--set a=1"]}
    run = {"program": "queue", "design": "sca", "verdict": "not exercised", "lacks": [lack]}
    (line,) = _lacking(run)
    assert "rounds 0 of 1" in line
    assert "give --set a=1, --until-exercised, or another --seed" in line


def test_a_plan_goes_on_until_it_has_tried_enough(tmp_path: Path) -> None:
    few = (
        "crash",
        "run",
        "queue",
        "--designs",
        "no-encryption",
        "--transactions",
        "2",
        "--cuts",
        "8",
    )
    where = ("--out", str(tmp_path))
    shown = sardonyx(*few, *where, status=1).stdout
    assert "--transactions 2" in shown and "went on" not in shown
    shown = sardonyx(*few, *where, "--until-exercised").stdout
    assert re.search(r"went on for \d+ rounds? without .*--transactions 2.* under queue", shown)
    assert "holds" in shown


@pytest.mark.parametrize("command", ["once", pytest.param("run", marks=pytest.mark.slow)])
def test_a_medium_that_others_fill_accuses_nobody(command: str, tmp_path: Path) -> None:
    words = ("crash", command, "queue", "--designs", "esd-sound", *QUICK)
    ended = sardonyx(*words, "--set", "places.past=90", where=tmp_path, status=1)
    assert "no violation, but too little" in ended.stdout and "broken" not in ended.stdout


def test_what_no_cut_shows_comes_with_the_whole_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept: list[replays.Replays] = []
    made = replays.of

    def of(asked: Any) -> replays.Replays:
        kept.append(made(asked))
        return kept[-1]

    monkeypatch.setattr(replays, "of", of)
    words = ["crash", "run", "queue", "--designs", "sca", "--cuts", "2", "--transactions", "2"]
    words += ["--recovery-cuts", "1000000", "--cores", "1", "--set", "encryption.mark_stride=64"]
    first = CliRunner().invoke(cli.app, words)
    run = {"program": "queue", "design": "sca"}
    command = kept[0].line(run, {"cut": None})
    again = CliRunner().invoke(cli.app, shlex.split(command)[1:])
    assert again.exit_code == first.exit_code == 1
    lines = [
        [line for line in out.splitlines() if "cuts/s" not in line]
        for out in (first.stdout, again.stdout)
    ]
    assert lines[0] == lines[1]


def test_what_a_plan_finds_of_planted_faults_is_counted_and_a_broken_design_is_not_tested(
    tmp_path: Path,
) -> None:
    command = (
        *("crash", "run", "queue", "--designs", "no-encryption,no-atomicity", "--self-test"),
        *("--cuts", "50", "--recovery-cuts", "0", "--out", str(tmp_path), "--json", "-"),
    )
    done = sardonyx(*command, status=1)  # too few cuts
    sound, broken = (run["self_test"] for run in json.loads(done.stdout)["runs"])
    assert sound["itself"] is None
    assert sound["found"] == len(sound["caught"]) >= 4
    assert sound["planted"] == sound["found"] + len(sound["missed"])
    assert "policy-mark-lost" in [one["fault"] for one in sound["equivalent"]]
    assert broken == broken | {"itself": "unrecoverable", "planted": 0, "caught": []}
    people = sardonyx(*command[:-2], status=1).stdout
    assert f"its plan finds {sound['found']} of {sound['planted']} faults" in people
    assert "no fault was planted into it: without one it shows unrecoverable" in people
