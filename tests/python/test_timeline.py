"""``compare --timeline`` and ``--requests``: read back, beside the figures."""

from __future__ import annotations

import gzip
import json
import re
import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sardonyx import api, cli
from sardonyx.runs.results import Results, Run
from test_cli_fixture import Program, bad_input

TRACE = "synth:rung-60:3000"
DESIGNS = ("baseline", "esd")


@pytest.fixture
def out(sardonyx: Program, tmp_path: Path) -> Path:
    """A folder with results of two designs, and what was written down of their runs."""
    done = sardonyx(
        "compare", TRACE, "--designs", ",".join(DESIGNS), "--warmup", "200", "--out", "out",
        "--timeline", "run.json.gz", "--timeline-window", "500..800", "--requests", "run.parquet",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "run.json.gz" in done.out
    return tmp_path


def events(file: Path) -> list[dict[str, Any]]:
    """The events of a timeline, in the order of time; those of one instant as they stand."""
    read = gzip.decompress if file.suffix == ".gz" else bytes
    return sorted(json.loads(read(file.read_bytes()))["traceEvents"], key=lambda e: e.get("ts", -1))


def test_a_timeline_is_the_rows_of_its_window(out: Path) -> None:
    timeline = events(out / "run.json.gz")
    names = {
        name: {
            event[number]: event["args"]["name"]
            for event in timeline
            if event["ph"] == "M" and event["name"] == name
        }
        for name, number in (("process_name", "pid"), ("thread_name", "tid"))
    }
    runs = {f"{design}, {TRACE}": design for design in DESIGNS}
    processes = list(names["process_name"].values())
    assert [name for name in processes if name in runs] == list(runs)
    assert {name.partition(": ")[0].split(",")[0] for name in processes} == set(DESIGNS)

    rows = pq.read_table(out / "run.parquet").to_pylist()
    known = {(row["design"], row["request"]): row for row in rows}
    drawn: dict[str, set[int]] = defaultdict(set)
    kinds: dict[str, set[str]] = defaultdict(set)
    flows: dict[int, str] = defaultdict(str)
    parts: dict[tuple[str, int], float] = defaultdict(float)
    newest: dict[int, dict[str, Any]] = {}
    for event in timeline:
        design = names["process_name"][event["pid"]].split(",")[0]
        if event["ph"] in "sf":
            flows[event["id"]] += event["ph"]
            assert newest[event["tid"]]["ts"] == event["ts"]
        if event["ph"] != "X":
            continue
        kinds[design].add(event["cat"])
        if event["cat"] == "latency":
            parts[design, newest[event["tid"]]["args"]["request"]] += event["dur"]
            continue
        newest[event["tid"]] = event
        if event["cat"] != "request":
            assert event["tid"] in names["thread_name"]
            continue
        assert names["process_name"][event["pid"]] in runs
        said = event["args"]
        row = known[design, said["request"]]
        drawn[design].add(said["request"])
        assert round(event["ts"] * 1000) == row["arrived_ps"] // 1000
        assert event["name"] == row["operation"] and said["line"] == row["line"]
        for name in ("arrived", "admitted", "accepted", "done"):
            assert said[f"{name}_ns"] * 1000 == pytest.approx(row[f"{name}_ps"])
    assert drawn == {design: set(range(500, 800)) for design in DESIGNS}
    assert flows and set(flows.values()) == {"sf"}
    for key, spent in parts.items():
        row = known[key]
        whole = row["done_ps"] // 1000 - row["arrived_ps"] // 1000
        assert spent * 1000 == pytest.approx(whole), key
    assert parts.keys() == {(design, request) for design in DESIGNS for request in drawn[design]}
    for design in DESIGNS:
        assert kinds[design] >= {"request", "latency", "queue", "unit", "bank", "bus"}


def test_a_name_without_gz_is_the_same_timeline_in_plain_json(
    sardonyx: Program, tmp_path: Path
) -> None:
    for name in ("t.json", "t.json.gz"):
        done = sardonyx("compare", TRACE, "--designs", "baseline", "--timeline", name)
        assert done.status == 0, done.err
    plain, zipped = (events(tmp_path / name) for name in ("t.json", "t.json.gz"))
    assert plain == zipped


def test_rows_add_up_to_the_figures(out: Path) -> None:
    table = pq.read_table(out / "run.parquet")
    causes = [name for name in table.column_names if name.endswith("_ps")]
    causes = causes[causes.index("waited_ps") + 1 :]
    for run in Results.load(out / "out").runs:
        rows = [row for row in table.to_pylist() if row["design"] == run.design]
        assert sorted(row["request"] for row in rows) == list(range(3000))
        for row in rows:
            assert sum(row[cause] for cause in causes) == row["done_ps"] - row["arrived_ps"]
        counted = [row for row in rows if row["counted"]]
        assert len(counted) == run.metric("requests") == 2800
        _latencies_are(run, counted)
        for cause in causes:
            spent = sum(row[cause] for row in counted)
            booked = run.causes.get(cause.removesuffix("_ps"))
            assert spent / 1000 == pytest.approx(booked.latency_ns if booked else 0, rel=1e-12)


def _latencies_are(run: Run, rows: list[dict[str, Any]]) -> None:
    for kind in ("read", "write"):
        latencies = [r["done_ps"] - r["arrived_ps"] for r in rows if r["operation"] == kind]
        assert len(latencies) == run.metric(f"{kind}s")
        assert run.metric(f"mean_{kind}_latency_ns") == sum(latencies) / len(latencies) / 1000
        assert run.metric(f"max_{kind}_latency_ns") == max(latencies) / 1000


def test_files_are_the_same_however_many_run_at_once(sardonyx: Program, tmp_path: Path) -> None:
    found = set()
    for jobs in ("1", "2"):
        done = sardonyx(
            "compare", TRACE, "--designs", "baseline,dewrite", "--jobs", jobs, "--out", "out",
            "--timeline", "run.json.gz", "--requests", "run.parquet",
        )  # fmt: skip
        assert done.status == 0, done.err
        files = ("run.json.gz", "run.parquet")
        found.add(tuple((tmp_path / name).read_bytes() for name in files))
    assert len(found) == 1


def test_the_page_s_examples_run(
    sardonyx: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/simulator/timeline.md").read_text()
    blocks = dict(re.findall(r"```(console|python)\n(.*?)```", page, re.DOTALL))
    command, _, *lines = blocks["console"].splitlines()
    done = sardonyx(*command.split()[2:])
    assert done.status == 0, done.err
    assert done.out.splitlines()[-len(lines) :] == lines
    monkeypatch.chdir(tmp_path)
    imported, asked = blocks["python"].splitlines()
    space: dict[str, Any] = {}
    exec(imported, space)
    rows = eval(asked, space).fetchall()
    assert {row[:2] for row in rows} == {(d, o) for d in DESIGNS for o in ("read", "write")}
    assert all(row[2] > 10 for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--timeline-window", "1..2"), "without --timeline"),
        (("--timeline", "t", "--timeline-window", "5"), "FIRST..END"),
        (("--timeline", "t", "--timeline-window", "5..5"), "0 requests"),
        (("--timeline", "t", "--timeline-window", "0..900000000"), "20,000"),
        (("--timeline", "t", "--timeline-window", "5000..5100"), "name an earlier one"),
        (("--timeline", "t", "--sample", "10x10+10"), "leave one of them out"),
        (("--requests", "t", "--timeline", "t"), "name another"),
        (("--requests", "none/t"), "make it first"),
        (("--timeline", "/dev/null"), "a device or a pipe"),
    ],
)
def test_what_cannot_be_written_is_refused(
    sardonyx: Program, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    bad_input(sardonyx("compare", TRACE, "--designs", "baseline", *words), said)
    assert not (tmp_path / "t").exists()


def test_commands_are_lines_that_drampower_reads(tmp_path: Path) -> None:
    trace, lines = tmp_path / "t.txt", tmp_path / "c.csv"
    # Two lines of one row, then another row of the same bank: two ranks of 16 banks, rows of 8 KiB.
    row = 8192 * 32
    trace.write_text(f"0x0 READ 0\n0x40 WRITE 100\n{row:#x} READ 4000\n0x40 READ 4400\n")
    made = CliRunner().invoke(
        cli.app,
        ["trace", "convert", str(trace), str(tmp_path / "t.parquet"), "--from", "dramsim3"],
    )
    assert made.exit_code == 0, made.output
    words = ["compare", str(tmp_path / "t.parquet"), "--machine", "ddr4-2400"]
    words += ["--set", "medium.mapping=row:rank:bank:channel:column"]
    words += ["--out", str(tmp_path / "out"), "--commands", str(lines)]
    ended = CliRunner().invoke(cli.app, [*words, "--designs", "no-encryption"])
    assert ended.exit_code == 0, ended.output
    rows = [line.split(",") for line in lines.read_text().splitlines()]
    assert all(len(row) == (8 if row[1] in ("RD", "WR") else 7) for row in rows)
    assert rows[-1][1] == "END"
    data = [row for row in rows if row[1] in ("ACT", "RD", "WR", "PRE")]
    words_of_data = ["ACT", "RD", "WR", "PRE", "ACT", "RD", "PRE", "ACT", "RD"]
    assert [row[1] for row in data] == words_of_data
    unwritten, written, _, back = [row[7] for row in data if len(row) == 8]
    assert unwritten == "00" * 64 and len(written) == 128 and back == written != unwritten
    assert {tuple(row[2:5]) for row in data} == {tuple(data[0][2:5])}
    assert [row[5] for row in data if row[1] == "ACT"] == ["0", "1", "0"]
    cycles = [int(row[0]) for row in rows]
    assert cycles == sorted(cycles)
    assert int(data[1][0]) - int(data[0][0]) == 17  # tRCD
    refused = CliRunner().invoke(cli.app, [*words, "--designs", "sca,fca"])
    assert refused.exit_code == 2 and "is of one run, and there are 2" in refused.stderr
    buffered = ["--designs", "sca", "--machine", "optane"]
    refused = CliRunner().invoke(cli.app, [*words, *buffered])
    assert refused.exit_code == 2 and "--machine ddr4-2400" in refused.stderr


def test_each_burst_and_each_bus_has_its_own_lines_of_commands(tmp_path: Path) -> None:
    """Of a line's two bursts each moves a half, and a command of a row may go in the same cycle."""
    trace, lines = tmp_path / "t.txt", tmp_path / "c.csv"
    # Writes to other banks, then the same lines read.
    requests = [(bank, op) for op in ("WRITE", "READ") for bank in range(8)]
    trace.write_text(
        "".join(f"{bank * 8192:#x} {op} {2000 * (op == 'READ')}\n" for bank, op in requests)
    )
    api.trace_convert(str(trace), tmp_path / "t.parquet", from_format="dramsim3")
    api.compare(
        [tmp_path / "t.parquet"],
        designs=["no-encryption"],
        machine="ddr4-2400",
        set=[
            "medium.queues.active=true",
            "medium.queues.bursts=2",
            "medium.queues.row_bus=true",
        ],
        commands=lines,
    )
    rows = [line.split(",") for line in lines.read_text().splitlines()]
    assert all(len(row) == (8 if row[1] in ("RD", "WR") else 7) for row in rows)
    read, written = (sorted(row[7] for row in rows if row[1] == word) for word in ("RD", "WR"))
    assert read == written and len(set(read)) == 16 and {len(half) for half in read} == {64}


def test_a_write_comes_sooner_after_its_row_where_a_part_says_so(tmp_path: Path) -> None:
    trace, lines = tmp_path / "t.txt", tmp_path / "c.csv"
    trace.write_text("0x0 WRITE 0\n0x100000 READ 4000\n")
    api.trace_convert(str(trace), tmp_path / "t.parquet", from_format="dramsim3")
    for sooner, waited in ((0, 17), (9, 9), (30, 30)):
        api.compare(
            [tmp_path / "t.parquet"],
            designs=["no-encryption"],
            machine="ddr4-2400",
            set={"medium.timing.tRCDWR": sooner},
            commands=lines,
        )
        rows = [line.split(",") for line in lines.read_text().splitlines()]
        opened, found = dict[tuple[str, ...], int](), {}
        for cycle, command, *bank in (row[:5] for row in rows):
            if command == "ACT":
                opened[tuple(bank)] = int(cycle)
            elif command in ("RD", "WR"):
                found[command] = int(cycle) - opened[tuple(bank)]
        assert found == {"WR": waited, "RD": 17}


def test_each_channel_of_both_media_has_its_commands_and_tracks(tmp_path: Path) -> None:
    """As many columns in a channel's file as it has accesses, in the cycles of its own clock."""
    files = {name: tmp_path / name for name in ("c.csv", "t.json")}
    answer = api.compare(
        [TRACE],
        designs=["baseline"],
        limit=3000,
        near="hbm2",
        set={
            "medium.geometry.channels": 2,
            "near.lines": 64,
            "near.medium.geometry.channels": 3,
            "near.tags": "on-chip",
            "near.ways": 2,
            "near.block_lines": 4,
        },
        commands=files["c.csv"],
        timeline=files["t.json"],
        jobs=1,
    )
    names = ["c.csv", "c.1.csv", "c.near-0.csv", "c.near-1.csv", "c.near-2.csv"]
    columns = {}
    for name in names:
        rows = [line.split(",") for line in (tmp_path / name).read_text().splitlines()]
        assert rows[-1][1] == "END"
        cycles = [int(row[0]) for row in rows]
        assert cycles == sorted(cycles)
        columns[name] = sum(row[1][:2] in ("RD", "WR") for row in rows)
        assert columns[name] == sum(len(row) == 8 for row in rows) > 0
    metrics = answer.runs[0].metrics
    for medium, of in (("medium", names[:2]), ("near", names[2:])):
        moved = (metrics[f"{medium}_reads"] or 0) + (metrics[f"{medium}_writes"] or 0)
        assert sum(columns[name] for name in of) == moved, medium
    said = answer.files
    assert all(any(name in line for line in said) for name in names)
    events = json.loads(files["t.json"].read_text())["traceEvents"]
    groups = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    for group in ("channel 0", "channel 1", "near channel 0", "near channel 2"):
        assert any(name.endswith(f": {group}") for name in groups), group


def test_a_file_without_room_is_named_and_none_is_left(tmp_path: Path) -> None:
    line = "compare synth:rung-60 --designs esd --limit 3000 --timeline t.json --out out"

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    ended = subprocess.run(
        [sys.executable, "-m", "sardonyx", *line.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        preexec_fn=little_room,
    )
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("error: t.json: ") and "make room there" in ended.stderr
    assert list(tmp_path.iterdir()) == []
