"""``compare --timeline`` and ``--requests``: what others' readers find, beside the figures."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from sardonyx import cli
from sardonyx.runs.results import Results, Run
from test_cli_fixture import Program, bad_input
from typer.testing import CliRunner

TRACE = "synth:rung-60:3000"
DESIGNS = ("baseline", "esd")


@pytest.fixture
def out(sardonyx: Program, tmp_path: Path) -> Path:
    """A folder with results of two designs, and what was written down of their runs."""
    done = sardonyx(
        "compare", TRACE, "--designs", ",".join(DESIGNS), "--warmup", "200", "--out", "out",
        "--timeline", "run.pftrace", "--timeline-window", "500..800", "--requests", "run.parquet",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "run.pftrace" in done.out
    return tmp_path


def messages(message: Message) -> Iterator[Message]:
    """The message and all in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                yield from messages(each)


def notes(event: Any) -> dict[str, Any]:
    return {
        note.name: getattr(note, str(note.WhichOneof("value"))) for note in event.debug_annotations
    }


def test_perfettos_own_schema_reads_a_timeline(out: Path) -> None:
    trace = perfetto.Trace()
    trace.ParseFromString((out / "run.pftrace").read_bytes())
    assert not [type(each) for each in messages(trace) if len(UnknownFieldSet(each))]
    described = [p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")]
    tracks = {track.uuid: track for track in described}
    processes = [t.process.process_name for t in tracks.values() if t.HasField("process")]
    assert processes == [f"{design}, {TRACE}" for design in DESIGNS]

    def process(uuid: int) -> str:
        while tracks[uuid].HasField("parent_uuid"):
            uuid = tracks[uuid].parent_uuid
        return str(tracks[uuid].process.process_name)

    rows = pq.read_table(out / "run.parquet").to_pylist()
    known = {(row["design"], row["request"]): row for row in rows}
    drawn: dict[str, set[int]] = defaultdict(set)
    kinds: dict[str, set[str]] = defaultdict(set)
    flows: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        for flow in event.flow_ids:
            flows[flow][0] += 1
        for flow in event.terminating_flow_ids:
            flows[flow][1] += 1
        design = process(event.track_uuid).split(",")[0]
        kinds[design].update(event.categories)
        if list(event.categories) != ["request"]:
            continue
        said = notes(event)
        row = known[design, said["request"]]
        drawn[design].add(said["request"])
        assert packet.timestamp == row["arrived_ps"] // 1000
        assert event.name == row["operation"] and said["line"] == row["line"]
        for name in ("arrived", "admitted", "accepted", "done"):
            assert said[f"{name}_ns"] * 1000 == pytest.approx(row[f"{name}_ps"])
    assert drawn == {design: set(range(500, 800)) for design in DESIGNS}
    assert all(ends == [1, 1] for ends in flows.values())
    for design in DESIGNS:
        assert kinds[design] >= {"request", "latency", "queue", "unit", "bank", "bus"}


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
            "--timeline", "run.pftrace", "--requests", "run.parquet",
        )  # fmt: skip
        assert done.status == 0, done.err
        files = ("run.pftrace", "run.parquet")
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
    trace.write_text(f"0x0 READ 0\n0x40 WRITE 100\n{row:#x} READ 4000\n")
    made = CliRunner().invoke(
        cli.app,
        ["trace", "convert", str(trace), str(tmp_path / "t.parquet"), "--from", "dramsim3"],
    )
    assert made.exit_code == 0, made.output
    words = ["compare", str(tmp_path / "t.parquet"), "--machine", "ddr4-2400"]
    words += ["--out", str(tmp_path / "out"), "--commands", str(lines)]
    ended = CliRunner().invoke(cli.app, [*words, "--designs", "no-encryption"])
    assert ended.exit_code == 0, ended.output
    rows = [line.split(",") for line in lines.read_text().splitlines()]
    assert all(len(row) == 7 for row in rows) and rows[-1][1] == "END"
    data = [row for row in rows if row[1] in ("ACT", "RD", "WR", "PRE")]
    assert [row[1] for row in data] == ["ACT", "RD", "WR", "PRE", "ACT", "RD"]
    assert {tuple(row[2:5]) for row in data} == {tuple(data[0][2:5])}
    assert [row[5] for row in data if row[1] == "ACT"] == ["0", "1"]
    cycles = [int(row[0]) for row in rows]
    assert cycles == sorted(cycles)
    assert int(data[1][0]) - int(data[0][0]) == 17  # tRCD
    refused = CliRunner().invoke(cli.app, [*words, "--designs", "sca,fca"])
    assert refused.exit_code == 2 and "is of one run, and there are 2" in refused.stderr
    two = ["--designs", "sca", "--set", "medium.geometry.channels=2"]
    refused = CliRunner().invoke(cli.app, [*words, *two])
    assert refused.exit_code == 2 and "is of one channel" in refused.stderr
