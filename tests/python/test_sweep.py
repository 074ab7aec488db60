"""Sweeps on the real native module: plans, results that are the same whoever made them, endings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sardonyx import _core, compare
from sardonyx.questions import Job
from sardonyx.runs.sources import parse
from sardonyx.sweeps import reading
from sardonyx.sweeps.condition import Condition
from sardonyx.sweeps.estimate import estimate
from sardonyx.sweeps.folder import Folder
from sardonyx.sweeps.kinds import KINDS
from sardonyx.sweeps.kinds.kind import Kind
from sardonyx.sweeps.plan import Plan
from sardonyx.sweeps.run import Outcome, Sweep, read_shard
from test_cli_native import sardonyx
from test_crash_test import FLAG_EARLY, built, recorded

TRACES = Path(__file__).resolve().parents[2] / "traces"
#: The speed of the simulator itself.
HOST = "requests_per_second"
DESIGNS = ("baseline", "esd")
SMALL = """
[sweep]
traces = ["synth:rung-60"]
designs = ["baseline", "esd"]
limit = 200
[axes]
"esd.efit_bytes" = [65_536, 131_072]
"esd.efit_ways" = [4, 8]
"""


def written(where: Path, text: str = SMALL) -> Path:
    path = where / "small.toml"
    path.write_text(text)
    return path


def planned(document: dict[str, Any]) -> Plan:
    sweep = {"traces": ["synth:rung-60"], "designs": ["esd"]} | document.pop("sweep", {})
    return reading.read({"sweep": sweep, **document})


# ---- plans


def test_points_come_in_the_order_of_the_file_the_last_axis_fastest() -> None:
    plan = planned(
        {
            "sweep": {"designs": ["baseline", "esd"], "seeds": [1, 2]},
            "axes": {"esd.efit_ways": [4, 8]},
            "zip": [{"esd.efit_bytes": [65536, 131072], "esd.amt_bytes": [4096, 8192]}],
        }
    )
    rows = [plan.row(point) for point in plan.points()]
    assert plan.count == len(rows) == 2 * 2 * 2 * 2
    names = ("design", "esd.efit_ways", "esd.efit_bytes", "esd.amt_bytes", "seed")
    assert [tuple(row[name] for name in names) for row in rows[:5]] == [
        ("baseline", 4, 65536, 4096, 1),
        ("baseline", 4, 65536, 4096, 2),
        ("baseline", 4, 131072, 8192, 1),
        ("baseline", 4, 131072, 8192, 2),
        ("baseline", 8, 65536, 4096, 1),
    ]
    names_of = {d: {p.name for p in plan.points() if p.settings["design"] == d} for d in DESIGNS}
    # Nothing of ESD's changes the baseline.
    assert [len(names_of[design]) for design in DESIGNS] == [2, 8]


def test_conditions_leave_points_out() -> None:
    axes = {"esd.efit_ways": [4, 8, 16]}
    sweep = {"designs": ["baseline", "esd"], "where": 'design == "esd" or esd.efit_ways == 4'}
    plan = planned({"sweep": sweep, "axes": axes})
    found = [(p.settings["design"], p.settings["esd.efit_ways"]) for p in plan.points()]
    assert found == [("baseline", 4), ("esd", 4), ("esd", 8), ("esd", 16)]
    assert plan.count == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b * 2 >= 8 and not c", True),
        ("a.b in [1, 2]", False),
        ("2 < a.b <= 4", True),
        ('d != "esd"', False),
        ("-a.b + 5 == 1", True),
    ],
)
def test_a_condition_is_arithmetic_of_settings(text: str, expected: bool) -> None:
    assert Condition.of(text)({"a.b": 4, "c": False, "d": "esd"}) is expected


@pytest.mark.parametrize("text", ["open('x')", "a[0]", "(lambda: 1)", "a if b else c", "a =="])
def test_a_condition_calls_nothing(text: str) -> None:
    with pytest.raises(_core.SardonyxError):
        Condition.of(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("'a' * 9999999999 == 1", "'a' is no number"),
        ("[1] * 9999999999 == 1", "is no number"),
        ("'%9999999999d' % a.b == 1", "is no number"),
        ("design * 2 == 'esdesd'", "'esd' is no number"),
        ("1e300 * a.b > 1", "2^63"),
        ("1e999 > a.b - 1e999", "2^63"),
        (" * ".join(["9999999999"] * 30) + " > a.b", "2^63"),
        ("a.b ** 9 ** 9 == 1", "more than comparisons"),
        ("1 << 99999999999 == a.b", "more than comparisons"),
        ("a.b == " + "9" * 1000, "at most 1,000 characters"),
        ("not " * 60 + "a.b", "nested more than 50 deep"),
        ("a.b == " + "+".join("1" * 60), "nested more than 50 deep"),
        ("a.b == " + "(" * 60 + "1" + ")" * 60, None),
        ("a.b == " + "-" * 900 + "1", "is"),
    ],
)
def test_a_condition_takes_no_time_and_no_memory(text: str, words: str | None) -> None:
    values = {"a.b": 4, "design": "esd"}
    if words is None:
        assert Condition.of(text)(values) is False
        return
    with pytest.raises(_core.SardonyxError) as problem:
        Condition.of(text)(values)
    assert words in str(problem.value)


def test_a_point_is_named_by_what_determines_its_result(tmp_path: Path) -> None:
    def name(**sweep: Any) -> str:
        point = planned({"sweep": {"machine": "esd", **sweep}}).at(0)
        assert point is not None
        return point.name

    assert name() == name()
    for other in (
        {"limit": 7},
        {"machine": "sca"},
        {"designs": ["baseline"]},
        {"seeds": [3]},
        {"traces": ["synth:rung-93"]},
        {"copies": 2},
    ):
        assert name(**other) != name()
    # A trace is its content, wherever it is.
    copy = tmp_path / "elsewhere.parquet"
    copy.write_bytes((TRACES / "redis.parquet").read_bytes())
    assert name(traces=[str(copy)]) == name(traces=[str(TRACES / "redis.parquet")])
    assert name(traces=[str(copy)]) != name(traces=[str(TRACES / "cc1.parquet")])


def test_a_key_at_its_default_is_the_same_point() -> None:
    ways = json.loads(_core.machine("esd", []))["parameters"]["esd.efit_ways"]
    plain, same = planned({}).at(0), planned({"axes": {"esd.efit_ways": [ways]}}).at(0)
    assert plain is not None and same is not None
    assert plain.name == same.name


def test_where_addresses_lie_and_when_requests_arrive_are_axes() -> None:
    axes = {"addresses": ["first-touch", "scattered"], "esd.efit_ways": [4, 8]}
    plan = planned({"axes": axes, "set": {"arrivals": "closed"}})
    plan.check()
    rows = [plan.row(point) for point in plan.points()]
    assert [row["addresses"] for row in rows] == ["first-touch"] * 2 + ["scattered"] * 2
    assert len({point.name for point in plan.points()}) == 4
    with pytest.raises(_core.SardonyxError, match="anywhere"):
        planned({"axes": {"addresses": ["anywhere"]}}).check()


def test_repeats_are_points_of_their_own() -> None:
    once, plan = planned({}).at(0), planned({"sweep": {"repeats": 3}})
    names = [point.name for point in plan.points()]
    assert once is not None
    assert len(set(names)) == 3 and names[0] == once.name


TREE = '[sweep]\nprograms = ["btree"]\ndesigns = ["sca"]\n'
GONE = '[sweep]\ntraces = ["gone.parquet"]\ndesigns = ["sca"]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[sweep\n", "is not valid TOML"),
        ("[sweep]\n", "names nothing to run; give one of traces"),
        (f'{TREE}merge = ["b"]\n', "has programs and merge; make a sweep of each"),
        (
            TREE.replace("btree", "btre"),
            'line 2, [sweep] programs: there is no program "btre"; did',
        ),
        (TREE.replace("designs", "[set]\n#"), "names no designs; give designs"),
        (f"{TREE}limt = 3\n", 'line 4, [sweep] limt: there is no setting "limt"; did you mean'),
        (TREE.replace("sca", "sac"), 'there is no design "sac"; did you mean "sca"?'),
        (f'{TREE}[axes]\n"esd.efit_wayz" = [4]\n', "line 5, [axes] esd.efit_wayz"),
        (f'{TREE}[axes]\n"esd.efit_ways" = 4\n', "line 5, [axes] esd.efit_ways: 4 is not a list"),
        (f'{TREE}[axes]\n"esd.efit_ways" = [0]\n', "line 5, [axes] esd.efit_ways"),
        (f"{TREE}[[zip]]\nseed = [1, 2]\ncopies = [1]\n", "as long: seed has 2, copies has 1"),
        (f'{TREE}where = "ways > 3"\n', 'there is no axis "ways"'),
        (f'{TREE}goals = ["ipc"]\n', 'is not a goal; write as in "max ipc"'),
        (f'{TREE}goals = ["max ipcc"]\n', 'goals: a simulate has no figure "ipcc"; did you mean'),
        (f'{TREE}goals = ["min requests_per_second"]\n', 'no figure "requests_per_second"'),
        (f'{TREE}goals = ["min cause.dat.energy_nj"]\n', "did you mean cause.data.energy_nj or"),
        (
            TREE.replace("programs", "crash") + 'goals = ["min violation"]\n',
            'a crash has no figure "violation"; did you mean violations',
        ),
        (GONE, "line 2, [sweep] traces: gone.parquet: there is no such file"),
        (TREE.replace("sweep", "swep"), 'there is no table "swep"; did you mean "sweep"?'),
        (f"{TREE}copies = 0\n", "copies = 0: give a whole number of 1 to 1,024"),
        (f"{TREE}repeats = 1_000_000_000_000\n", "[sweep] repeats: 1000000000000: give a whole"),
        (f"{TREE}repeats = 0\n", "give a whole number, 1 to 10,000"),
        (
            f"{TREE}copies = 1_000_000_000_000\n",
            "copies = 1000000000000: give a whole number of 1 to 1,024",
        ),
        (f"{TREE}copies = {10**40}\n", "copies: 1" + "0" * 40 + " is beyond 64 bits"),
        (f"{TREE}[axes]\ncores = [{10**40}]\n", "is beyond 64 bits"),
        (
            f"{TREE}repeats = 10_000\nseeds = [{', '.join(map(str, range(1001)))}]\n",
            "its axes have 10,010,000 points together, and a sweep at most 10,000,000",
        ),
    ],
)
def test_bad_plans_are_one_line_with_place_and_remedy(
    text: str, words: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(_core.SardonyxError) as problem:
        reading.read(path).check()
    assert words in str(problem.value)
    assert str(problem.value).startswith(str(path))


#: Of each kind the command, and its options that are none of a point's: they choose what is written
#: or looked at, or are several runs.
COMMANDS = {
    "simulate": ("compare", "addresses arrivals sample seeds sensitivity"),
    "crash": ("crash run", "no_log thorough until_exercised self_test jobs"),
    "merge": ("merge", "advice what_if why"),
    "merge-time": ("merge time", "quick"),
    "crash-test": ("crash-test search", "threads recovery apply no_source"),
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name in COMMANDS])
def test_what_a_command_takes_is_a_sweeps(kind: Kind) -> None:
    command, others = COMMANDS[kind.name]
    declared = json.loads(_core.command(command))["properties"]
    taken = {
        name
        for name, each in declared.items()
        if each.get("format") not in ("path", "names", "pairs")
        and not {"argument", "items", "sets"} & each.keys()
        and "argument" in declared.get(each.get("requires"), {"argument": True})
    }
    assert taken - {*others.split(), "jobs"} <= kind.options.keys()


def test_a_point_says_the_command_that_asks_the_same() -> None:
    tables = {"crash": ["queue"], "designs": ["sca"], "cuts": 5, "attack": False, "tear": "words"}
    point = reading.read({"sweep": tables, "set": {"core.width": 2}}).at(0)
    assert point is not None
    words = "crash run queue --designs sca --set core.width=2 --no-attack --tear words --cuts 5"
    assert sorted(point.question.command) == sorted(words.split())
    tables = {"programs": ["queue"], "designs": ["sca"], "software_log": False}
    unsaid = reading.read({"sweep": tables}).at(0)
    assert unsaid is not None and unsaid.question.command == ()


# ---- results


def swept(file: Path, out: Path, workers: int = 2, share: str | None = None) -> Outcome:
    """The sweep, in this process; its workers are their own."""
    folder = Folder(out)
    plan = reading.read(file, folder.before)
    return Sweep(plan, folder, workers, read_shard(share) if share else None).run()


@pytest.mark.slow
def test_results_are_the_same_bytes_whoever_made_them(tmp_path: Path) -> None:
    file = written(tmp_path)
    one = tmp_path / "one"
    sardonyx("sweep", str(file), "--out", "one", "--jobs", "2", where=tmp_path)
    swept(file, tmp_path / "two", 1)
    shares = [swept(file, tmp_path / "shares", 1, share).results for share in ("2/3", "1/3", "0/3")]
    assert shares == [None, None, tmp_path / "shares/results.parquet"]
    whole = (one / "results.parquet").read_bytes()
    assert (tmp_path / "two/results.parquet").read_bytes() == whole
    assert (tmp_path / "shares/results.parquet").read_bytes() == whole
    table = pq.read_table(one / "results.parquet")
    assert table.column("design").to_pylist() == ["baseline"] * 4 + ["esd"] * 4
    assert table.column("esd.efit_bytes").to_pylist() == [65536, 65536, 131072, 131072] * 2
    assert table.column("esd.efit_ways").to_pylist() == [4, 8] * 4
    assert not {"seconds", HOST} & set(table.column_names)


def test_a_row_has_the_figures_of_compare(tmp_path: Path) -> None:
    swept(written(tmp_path), tmp_path / "swept")
    row = pq.read_table(tmp_path / "swept/results.parquet").to_pylist()[5]
    sets = {"esd.efit_bytes": 65536, "esd.efit_ways": 8}
    other = compare(["synth:rung-60"], ["esd"], set=sets, limit=200).rows()[0]
    figures = {k: v for k, v in other.items() if k not in ("variant", HOST)}
    known = {name: value for name, value in figures.items() if value is not None}
    assert {name: row[name] for name in known} == known


def test_what_is_done_is_not_run_again(tmp_path: Path) -> None:
    assert swept(written(tmp_path), tmp_path / "a", share="1/2").finished == 3
    again = swept(written(tmp_path), tmp_path / "a")
    assert (again.found, again.finished) == (6, 2)


@pytest.mark.slow
def test_a_key_that_a_design_does_not_have_changes_nothing_of_it() -> None:
    """All that a sweep takes for the same, at both ends of what is assumed of it."""
    assumed = json.loads(_core.machine("esd", []))["assumed"]
    tried = 0
    for design in (each["name"] for each in json.loads(_core.designs())):
        source = parse("synth:rung-60:400")
        job = Job(source=source, design=design, machine="esd")
        plain = json.loads(_core.simulate(job.json(), None))["metrics"]
        plain.pop(HOST)
        idle = _core.idle_keys(design)
        for each in assumed:
            ends = (each["range"] or {}) if each["parameter"] in idle else {}
            values = ends.get("others", []) + [ends[end] for end in ("low", "high") if end in ends]
            for value in values:
                try:
                    machine = job.replace(overrides=((each["parameter"], value),))
                    found = json.loads(_core.simulate(machine.json(), None))["metrics"]
                except _core.SardonyxError:
                    continue  # it does not go with another key
                found.pop(HOST)
                assert found == plain, (design, each["parameter"], value)
                tried += 1
    assert tried > 200, tried


def test_points_whose_designs_have_nothing_of_the_change_run_once(tmp_path: Path) -> None:
    plan = reading.read(written(tmp_path))
    known = estimate(plan, Folder(tmp_path / "a"))
    assert (known.points, known.same, known.left) == (8, 3, 5)
    outcome = swept(written(tmp_path), tmp_path / "a")
    assert (outcome.points, outcome.same, outcome.finished) == (8, 3, 5)
    rows = pq.read_table(tmp_path / "a/results.parquet").to_pylist()
    settings = {"design", "esd.efit_bytes", "esd.efit_ways"}
    figures = [{k: v for k, v in row.items() if k not in settings} for row in rows]
    assert figures[:4] == [figures[0]] * 4
    assert len({row["point"] for row in rows}) == 5
    assert len({row["esd.efit_bytes"] for row in rows[:4]}) == 2


@pytest.mark.slow
def test_a_folder_has_one_sweep(tmp_path: Path) -> None:
    swept(written(tmp_path), tmp_path / "a", share="1/2")
    before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*.*")}
    larger = written(tmp_path, SMALL.replace("[4, 8]", "[4, 8, 16]"))
    for more in ((), ("--plan",), ("--shard", "1/2")):
        ended = sardonyx("sweep", str(larger), "--out", "a", *more, where=tmp_path, status=2)
        assert "--out a: holds another sweep, of 8 points" in ended.stderr
        assert ended.stderr.count("\n") == 1
    with pytest.raises(_core.SardonyxError, match="holds another sweep"):
        swept(larger, tmp_path / "a")
    assert {path: path.read_bytes() for path in (tmp_path / "a").rglob("*.*")} == before
    assert not list((tmp_path / "a/running").iterdir())


def test_a_sweep_corrected_before_its_first_point_may_have_the_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a")
    folder.begin(reading.read(written(tmp_path)))
    other = written(tmp_path, SMALL.replace("[4, 8]", "[4, 16]"))
    with pytest.raises(_core.SardonyxError, match="holds another sweep"):
        swept(other, tmp_path / "a")  # the first still runs
    folder.end()
    assert swept(other, tmp_path / "a").finished == 5
    assert len(folder.plans()) == 1


@pytest.mark.slow
def test_a_trace_that_changed_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "own.parquet"

    def cut(records: int) -> None:
        trace.unlink(missing_ok=True)
        _core.trace_cut(str(TRACES / "redis.parquet"), str(trace), 0, records, None)

    cut(500)
    before = trace.read_bytes()
    file = written(tmp_path, SMALL.replace("synth:rung-60", "own.parquet"))
    swept(file, tmp_path / "a", share="1/2")
    points = sorted((tmp_path / "a/points").iterdir())
    cut(400)
    ended = sardonyx("sweep", str(file), "--out", "a", where=tmp_path, status=2)
    assert "own.parquet: has changed since this sweep began" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert sorted((tmp_path / "a/points").iterdir()) == points
    # Copies of the old one do not hide that another file has its name.
    (tmp_path / "traces").mkdir()
    for copy in ("copy.parquet", "traces/copy.parquet", "traces/own.parquet"):
        (tmp_path / copy).write_bytes(before)
    for more in ((), ("--plan",)):
        ended = sardonyx("sweep", str(file), "--out", "a", *more, where=tmp_path, status=2)
        assert "own.parquet: has changed since this sweep began" in ended.stderr
    assert sorted((tmp_path / "a/points").iterdir()) == points
    # Where no file has its name, a copy is found by its content.
    trace.unlink()
    (tmp_path / "copy.parquet").unlink()
    again = swept(file, tmp_path / "a")
    assert (again.found, again.finished) == (6, 2)


def test_a_trace_that_changes_while_points_run_ends_the_sweep(tmp_path: Path) -> None:
    trace = tmp_path / "own.parquet"
    _core.trace_cut(str(TRACES / "redis.parquet"), str(trace), 0, 500, None)
    file = written(tmp_path, SMALL.replace("synth:rung-60", "own.parquet"))
    folder = Folder(tmp_path / "a")
    plan = reading.read(file, folder.before)
    trace.unlink()
    _core.trace_cut(str(TRACES / "redis.parquet"), str(trace), 0, 400, None)
    with pytest.raises(_core.SardonyxError, match="has changed since this sweep began"):
        Sweep(plan, folder, 1).run()
    assert not folder.any("points") and not list((tmp_path / "a/running").iterdir())


def test_a_point_that_fails_is_listed_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sardonyx.sweeps.plan.CHECKED", 0)  # as beyond the first two thousand
    outcome = swept(written(tmp_path, SMALL.replace("[4, 8]", "[4, 0]")), tmp_path / "a")
    assert [each["settings"]["esd.efit_ways"] for each in outcome.failures] == [0, 0, 0, 0]
    assert "efit_ways" in outcome.failures[0]["error"]
    assert outcome.failures[0]["command"].startswith("sardonyx sweep")
    rows = pq.read_table(tmp_path / "a/results.parquet").to_pylist()
    assert [row["error"] is None for row in rows] == [True, False] * 4
    again = swept(written(tmp_path, SMALL.replace("[4, 8]", "[4, 0]")), tmp_path / "a")
    assert (again.found, again.finished) == (4, 4), "failed points are tried again"


def test_a_point_that_is_missing_at_the_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sardonyx.sweeps.plan.CHECKED", 0)
    file = written(tmp_path, SMALL.replace("[4, 8]", "[4, 0]"))
    monkeypatch.setattr(Folder, "failed", lambda *_: None)  # as if it were elsewhere
    with pytest.raises(_core.SardonyxError, match=r"a: 4 of 8 points have neither .*efit_ways = 0"):
        swept(file, tmp_path / "a")
    assert not (tmp_path / "a/results.parquet").exists()


def test_a_damaged_point_counts_as_missing(tmp_path: Path) -> None:
    file = written(tmp_path)
    swept(file, tmp_path / "a", 1)
    whole = (tmp_path / "a/results.parquet").read_bytes()
    first, second, *_ = sorted((tmp_path / "a/points").iterdir())
    other = first.read_bytes()
    first.write_bytes(other[:-100])
    second.write_bytes(other)
    again = swept(file, tmp_path / "a", 1)
    assert set(again.damaged) == {str(first), str(second)}
    assert again.finished == 2
    assert (tmp_path / "a/results.parquet").read_bytes() == whole


@pytest.mark.parametrize("made", ["fifo", "deep", "list", "folder"])
def test_a_point_of_a_stranger_counts_as_missing(tmp_path: Path, made: str) -> None:
    file = written(tmp_path)
    swept(file, tmp_path / "a", 1)
    whole = (tmp_path / "a/results.parquet").read_bytes()
    first, *_ = sorted((tmp_path / "a/points").iterdir())
    held = json.loads(first.read_text())
    first.unlink()
    if made == "fifo":
        os.mkfifo(first)
    elif made == "folder":
        first.mkdir()
    else:
        deep = "[" * 100_000
        first.write_text(deep if made == "deep" else json.dumps(held | {"seconds": [1]}))
    if made == "folder":
        with pytest.raises(_core.SardonyxError, match=r"give the same command again"):
            swept(file, tmp_path / "a", 1)
        return
    again = swept(file, tmp_path / "a", 1)
    assert set(again.damaged) == {str(first)}
    assert again.finished == 1
    assert (tmp_path / "a/results.parquet").read_bytes() == whole


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/thesis.tex").write_text("x")
    with pytest.raises(_core.SardonyxError, match="holds thesis.tex and no sweep"):
        Folder(tmp_path / "a").check(reading.read(written(tmp_path)))
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("text", "rows", "figures"),
    [
        (
            '[sweep]\nprograms = ["queue"]\ndesigns = ["sca"]\nmachine = "sca"\n'
            'transactions = 5\nfootprint = "16K"\n[axes]\ncores = [1, 2]\n',
            {"trace": ["queue"] * 2, "cores": [1, 2]},
            {"transactions", "cause.data.energy_nj"},
        ),
        (
            '[sweep]\ncrash = ["queue"]\ndesigns = ["sca"]\ntransactions = 3\ncuts = 5\n'
            'recovery_cuts = 0\n[axes]\nplatform = ["adr", "eadr"]\n',
            {"program": ["queue"] * 2, "platform": ["adr", "eadr"]},
            {"cuts", "verdict", "violations"},
        ),
        (
            '[sweep]\nmerge = ["img", ["img", "img"]]\ndesigns = ["ksm"]\npasses = 2\n',
            {"images": ["img", "img, img"], "design": ["ksm", "ksm"]},
            {"saving", "cpu_seconds"},
        ),
        (
            '[sweep]\napplications = ["silo"]\ndesigns = ["ksm"]\n[set]\nwindow.ms = 3\n'
            "window.warmup_ms = 1\nvms.mib = 2\n[axes]\nthread.slice_us = [750, 20000]\n",
            {"application": ["silo"] * 2, "thread.slice_us": [750, 20000]},
            {"geomean_sojourn_ns", "thread_share_mean"},
        ),
        (
            '[sweep]\napplications = ["silo"]\ndesigns = ["ksm"]\n[set]\nwindow.ms = 2\n'
            'window.warmup_ms = 0\nvms.mib = 1\n[axes]\nmemory = ["no-encryption", "esd"]\n',
            {"application": ["silo"] * 2, "memory": ["no-encryption", "esd"]},
            {"encryption_energy_nj", "loaded_lines_stored"},
        ),
        (
            '[sweep]\nstore = ["stream"]\ndesigns = ["recam", "conventional"]\nbytes = "64K"\n',
            {"workload": ["stream"] * 2, "design": ["recam", "conventional"]},
            {"writes_per_second", "duplicate_writes"},
        ),
    ],
)
def test_every_kind_of_subject(
    text: str, rows: dict[str, list[Any]], figures: set[str], tmp_path: Path
) -> None:
    (tmp_path / "img").mkdir()
    (tmp_path / "img/1.raw").write_bytes(_core.merge_snapshot("paper", 64, 1))
    file = written(tmp_path, text)
    plan = reading.read(file)
    plan.check()
    outcome = swept(file, tmp_path / "a", 1)
    assert not outcome.failures
    table = pq.read_table(tmp_path / "a/results.parquet")
    for name, values in rows.items():
        assert table.column(name).to_pylist() == values
    assert figures <= set(table.column_names)
    settings = {"point", "error", *plan.columns}
    numbers = {
        field.name
        for field in table.schema
        if field.name not in settings and field.type == "double"
    }
    assert numbers <= plan.kind.figures


@pytest.mark.machine
def test_the_docs_sweep_of_recordings_finds_the_build_without_a_fence(tmp_path: Path) -> None:
    page = (TRACES.parent / "docs/simulator/sweeps.md").read_text()
    text = next(part for part in page.split("```toml\n") if "recordings = [" in part)
    for name, edits in (("cells-early", (FLAG_EARLY,)), ("cells", ())):
        built(tmp_path, "cells", *edits)
        program = (tmp_path / "cells").rename(tmp_path / name)
        recorded(tmp_path, f"./{program.name}", "--pc")
        (tmp_path / "r.parquet").rename(tmp_path / f"{name}.parquet")
    file = written(tmp_path, text.split("```")[0])
    for out in ("a", "b"):
        sardonyx("sweep", str(file), "--out", out, where=tmp_path)
    rows = pq.read_table(tmp_path / "a/results.parquet").to_pylist()
    told = {(row["recording"], row["platform"], row["tear"]): row for row in rows}
    assert len(told) == 8 and all(row["finished"] and row["cuts_tried"] > 10 for row in rows)
    for (recording, platform, _), row in told.items():
        faulty = recording == "cells-early" and platform == "adr"
        assert (row["violations"] > 0) == (row["causes"] > 0) == faulty, row
        assert ("cells.c:" in (row["suspect"] or "")) == faulty
    assert not {"seconds", "looking_s", "undisturbed_s", "recoveries", "images"} & set(rows[0])
    again = pq.read_table(tmp_path / "b/results.parquet").to_pylist()
    assert rows == again
    assert (tmp_path / "a/results.parquet").read_bytes() == (
        tmp_path / "b/results.parquet"
    ).read_bytes()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('platform = "adrr"\n', 'there is no platform "adrr"; did you mean "adr"?'),
        ('budget = "soon"\n', "is not a duration; give 90s, 10m or 2h"),
        ('designs = ["esd"]\n', "designs: a crash-test has none; leave it out"),
        ('[set]\n"esd.efit_ways" = 4\n', "a recording runs on no machine"),
    ],
)
def test_what_a_sweep_of_recordings_cannot_have(more: str, words: str, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        f'[sweep]\nrecordings = ["{TRACES}/pmdk-tx.parquet"]\npool = "p"\nrecover = "c {{pool}}"\n'
        + more,
    )
    with pytest.raises(_core.SardonyxError) as problem:
        reading.read(file).check()
    assert words in str(problem.value)
