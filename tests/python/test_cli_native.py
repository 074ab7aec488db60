"""The command line over the real native module, on stretches of the recorded traces.

Bad input of every kind ends with status 2, one line on standard error and no file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sardonyx import _core

TRACES = Path(__file__).resolve().parents[2] / "traces"
WARNED = '<p class="note">Warning:'
SHORT = ("--limit", "3000")


def sardonyx(
    *arguments: str | bytes, where: Path | None = None, status: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """The program as a shell runs it; ``None`` takes any status."""
    ended = subprocess.run(
        [sys.executable, "-m", "sardonyx", *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert status in (None, ended.returncode), ended.stdout + ended.stderr
    return ended


def test_reads_are_verified_unless_nobody_wants_to_know(tmp_path: Path) -> None:
    asked = ("compare", "redis", "--limit", "30000", "--json", "out.json", "--notes")
    said = sardonyx(*asked, where=tmp_path).stdout
    runs = json.loads((tmp_path / "out.json").read_text())["runs"]
    verified, unwritten = (
        [run["metrics"][name] for run in runs]
        for name in ("reads_verified", "reads_of_unwritten_lines")
    )
    counts = f"{sum(verified):,}; of lines with unknown content: {sum(unwritten):,}"
    assert f"reads verified: {counts}" in said
    for run in runs:
        held = run["metrics"]["reads_verified"] + run["metrics"]["reads_of_unwritten_lines"]
        assert held == run["metrics"]["reads"]
        assert run["metrics"]["reads_verified"] > 100
    (tmp_path / "out.json").rename(tmp_path / "held.json")
    said = sardonyx(*asked, "--no-verify", where=tmp_path).stdout
    assert "reads: not verified" in said
    blind = json.loads((tmp_path / "out.json").read_text())["runs"]
    for run, other in zip(runs, blind, strict=True):
        for name in ("reads_verified", "reads_of_unwritten_lines", "reads_of_preloaded_lines"):
            assert other["metrics"].pop(name, None) is None
            run["metrics"].pop(name)
        for each in (run, other):
            del each["metrics"]["requests_per_second"]
    assert runs == blind, "looking changes nothing"


def test_compare_runs_every_design(tmp_path: Path) -> None:
    traces = [str(TRACES / "redis.parquet"), "synth:rung-60:3000"]
    ended = sardonyx("compare", *traces, *SHORT, "--json", "-", where=tmp_path)
    runs = json.loads(ended.stdout)["runs"]
    assert [(run["trace"], run["design"]) for run in runs] == [
        (trace, design)
        for trace in ("redis", "synth:rung-60:3000")
        for design in ("baseline", "dedup-sha1", "dewrite", "esd")
    ]
    for run in runs:
        assert run["metrics"]["mean_write_latency_ns"] > 0
    assert (tmp_path / "results/latest/report.html").stat().st_size > 10_000
    assert ended.stderr == ""


def test_results_do_not_depend_on_threads(tmp_path: Path) -> None:
    answers = []
    for jobs in ("1", "2"):
        where = tmp_path / jobs
        options = ("--limit", "3000", "-j", jobs, "--out", str(where))
        sardonyx("compare", str(TRACES / "x264.parquet"), *options, where=tmp_path)
        document = json.loads((where / "results.json").read_text())
        assert len(document["runs"]) == 4
        for run in document["runs"]:
            assert run["metrics"].pop("requests_per_second") > 0  # the host's speed
        answers.append(document)
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_reproduce_fills_every_claim(tmp_path: Path) -> None:
    options = ("--quick", "--limit", "800", "--copies", "2", "--cells", "24", "--json", "esd.json")
    asked = ("reproduce", "esd", str(TRACES / "redis.parquet"), *options)
    ended = sardonyx(*asked, where=tmp_path)
    assert "replaced by recordings of real programs (redis)" in " ".join(ended.stdout.split())
    claims = json.loads((tmp_path / "esd.json").read_text())["claims"]
    empty = [claim for claim in claims if claim["ours"] is None]
    assert all(claim["reason"].startswith("these results lack a") for claim in empty)
    assert len(empty) == 4 < len(claims) / 2  # three of lbm, which is not ours to ship; one of CRC
    sample = json.loads((tmp_path / "esd.json").read_text())["sample"]
    assert sample["cells"] == 24 and sample["runs"] == 24 * 13 * 4 and not sample["failures"]
    judged = {(claim["where"], claim["design"]) for claim in sample["claims"]}
    assert judged <= {(claim["where"], claim["design"]) for claim in claims}
    at = "Fig. 12 (text)"
    faster = [each for each in sample["claims"] if each["where"] == at and not each["reason"]]
    # Of each claim three worlds, with a third of the cells each.
    assert faster and len(faster) % 3 == 0
    for claim in faster:
        holds = claim["holds"]
        assert claim["cells"] == holds["of"] == 8 and 0 <= holds["number"] <= 8
        assert holds["low"] <= holds["number"] / 8 <= holds["high"]
        assert claim["least"] < claim["median"] < claim["most"]
    names = {choice["name"] for choice in sample["choices"]}
    assert {"addresses", "core.width", "medium.geometry.channels", "medium.mapping"} <= names
    assert "encryption.enabled" not in names and "cores" not in names
    first = (tmp_path / "results/esd/beside_paper.json").read_bytes()
    again = sardonyx(*asked, where=tmp_path)
    assert again.stderr.count("416 were done before") == 3  # in each world
    assert (tmp_path / "results/esd/beside_paper.json").read_bytes() == first
    assert (tmp_path / "results/esd/report.html").stat().st_size > 10_000


def test_programs_are_compared(tmp_path: Path) -> None:
    options = ("--machine", "sca", "--designs", "no-encryption,sca,fca", "--cores", "2")
    small = ("--transactions", "200", "--footprint", "1M", "--warmup", "50")
    ended = sardonyx("compare", "queue", "hash", *options, *small, "--json", "-", where=tmp_path)
    runs = json.loads(ended.stdout)["runs"]
    assert {run["trace"] for run in runs} == {"queue", "hash"}
    assert len(runs) == 6
    for run in runs:
        assert run["metrics"]["transactions_per_second"] > 0
        # Counting begins when the last core is warm; the other is ahead by then.
        assert 200 <= run["metrics"]["transactions"] <= 300
        assert "caches.llc.latency_ns" in run["assumed"]
        assert "core.cache_latency_ns" not in run["assumed"]
    ended = sardonyx("report", "results/latest", where=tmp_path)
    assert "trans./s" in ended.stdout


def test_a_stack_says_its_integrity_behind_an_at_sign(tmp_path: Path) -> None:
    options = ("--transactions", "30", "--json", "-")
    ended = sardonyx("compare", "queue", "--designs", "sca,sca@none", *options, where=tmp_path)
    plain, without = json.loads(ended.stdout)["runs"]
    assert (plain["design"], without["design"]) == ("sca", "sca@none")
    for run in plain, without:
        del run["metrics"]["requests_per_second"]  # the host's
    assert without["metrics"] == plain["metrics"]
    for command in (("compare",), ("crash", "run")):
        ended = sardonyx(*command, "queue", "--designs", "sca@nosuch", where=tmp_path, status=2)
        assert ended.stderr.startswith('error: there is no design "sca@nosuch"')
        assert "the integrities are none" in ended.stderr


def test_a_cut_is_a_sound_trace(tmp_path: Path) -> None:
    trace = str(TRACES / "redis.parquet")
    cut = ("cut.parquet", "--skip", "100", "--limit", "500")
    sardonyx("trace", "cut", trace, *cut, where=tmp_path)
    sardonyx("trace", "check", "cut.parquet", where=tmp_path)
    info = sardonyx("trace", "info", "cut.parquet", "--json", "-", where=tmp_path)
    assert json.loads(info.stdout)["records"] == 500


def bursty(path: Path, burst: int, others: int) -> None:
    """A trace of other writes, each after a gap, and one burst."""
    gaps = [9] * others + [0] * burst
    columns: dict[str, Any] = {
        "gap": pa.array(gaps, pa.uint32()),
        "thread": pa.array([0] * len(gaps), pa.uint16()),
        "op": pa.array([1] * len(gaps), pa.uint8()),
        "line": pa.array(range(len(gaps)), pa.uint64()),
        "data": pa.array([bytes(64)] * len(gaps), pa.binary(64)),
    }
    table = pa.table(columns)
    pq.write_table(table, path, compression="zstd")


@pytest.mark.slow
def test_doubtful_means_are_said_on_the_terminal_in_json_and_in_the_report(tmp_path: Path) -> None:
    bursty(tmp_path / "burst.parquet", 199, 1801)
    bursty(tmp_path / "few.parquet", 0, 300)
    bursty(tmp_path / "fine.parquet", 0, 1000)
    names = ["burst.parquet", "few.parquet", "fine.parquet"]
    told = {
        "burst": "10.0 % of the writes come in bursts",
        "few": "300 writes are too few for a mean",
    }
    compare = ("compare", *names, "--designs", "baseline,esd", "--notes")
    ended = sardonyx(*compare, "--out", "out", where=tmp_path)
    shown = " ".join(ended.stdout.split())
    page = (tmp_path / "out/report.html").read_text()
    for name, words in told.items():
        assert f"warning: {name}: {words}" in shown
        assert f"Warning: {name}: {words}" in page
    assert shown.count("warning:") == page.count(WARNED) == 2
    assert "counter cache 512 KB, EFIT 512 KB" in shown
    assert "burst 2,000 10.0 %" in shown
    again = sardonyx("report", "out", where=tmp_path)
    assert " ".join(again.stdout.split()).count("warning:") == 2
    traces = json.loads((tmp_path / "out/results.json").read_text())["traces"]
    assert [len(trace["info"]["warnings"]) for trace in traces] == [1, 1, 0]
    for name in names:
        doubt = told.get(name.removesuffix(".parquet"))
        info = sardonyx("trace", "info", name, "--plot", "plot.html", where=tmp_path)
        drawn = (tmp_path / "plot.html").read_text()
        assert ("warning:" in info.stdout) == (WARNED in drawn) == (doubt is not None)
        assert doubt is None or (doubt in info.stdout and doubt in drawn)


@pytest.mark.slow
def test_a_changed_byte_is_found_by_every_reader(tmp_path: Path) -> None:
    sardonyx("trace", "synth", "rung-60", "a.parquet", "--records", "3000", where=tmp_path)
    whole = (tmp_path / "a.parquet").read_bytes()
    said = sardonyx("trace", "check", "a.parquet", where=tmp_path).stdout
    assert said == "a.parquet: 3,000 records, sound\n"
    (tmp_path / "sweep.toml").write_text('[sweep]\ntraces = ["a.parquet"]\ndesigns = ["esd"]\n')
    commands = [
        ("trace", "check", "a.parquet"),
        ("trace", "info", "a.parquet"),
        ("trace", "cut", "a.parquet", "b.parquet"),
        ("trace", "convert", "a.parquet", "b.parquet"),
        ("trace", "convert", "a.parquet", "b.nvt", "--to", "nvmain"),
        ("trace", "mix", "a.parquet", "a.parquet", "-o", "b.parquet"),
        ("compare", "a.parquet"),
        ("compare", "a.parquet", "--designs", "esd", "--warmup", "10%"),
    ]
    places = (9, 5000, len(whole) // 2, -2000, -2500, -3000, -3500, -6)
    for at, command in zip(places, commands, strict=True):
        changed = bytearray(whole)
        changed[at] ^= 0x10
        (tmp_path / "a.parquet").write_bytes(changed)
        ended = sardonyx(*command, where=tmp_path, status=2)
        line = ended.stderr.splitlines()[-1]
        assert line.startswith("error: a.parquet") and "record or copy the trace again" in line
        assert not (tmp_path / "b.parquet").exists() and not (tmp_path / "b.nvt").exists()
    outcome = sardonyx("sweep", "sweep.toml", "--out", "swept", where=tmp_path, status=2)
    assert "a.parquet: is damaged" in outcome.stderr and not (tmp_path / "swept").exists()


def test_what_dynamorio_records_names_the_tool_that_makes_text_of_it(tmp_path: Path) -> None:
    archive, folder, here = (tmp_path / name for name in ("chunk.zip", "app.dir", "here"))
    archive.write_bytes(b"PK\x03\x04\x14\0\0\0\x08\0")
    folder.mkdir()
    here.mkdir()
    for place in (archive, folder):
        command = ("trace", "convert", str(place), "new.parquet", "--from", "dynamorio")
        refused(*command, where=here, words="drrun -t drmemtrace -tool view -indir")
    command = ("trace", "convert", str(folder), "new.parquet", "--from", "nvmain")
    refused(*command, where=here, words="name a trace file inside it")


def test_a_trace_without_checksums_is_read_and_said_to_have_none(tmp_path: Path) -> None:
    bursty(tmp_path / "old.parquet", 0, 40)
    said = sardonyx("trace", "check", "old.parquet", where=tmp_path).stdout
    assert said.endswith("40 records, sound as far as can be seen; no checksums\n")
    sardonyx("trace", "convert", "old.parquet", "new.parquet", where=tmp_path)
    assert sardonyx("trace", "check", "new.parquet", where=tmp_path).stdout.endswith("sound\n")
    old, new = (
        json.loads(sardonyx("trace", "info", name, "--json", "-", where=tmp_path).stdout)
        for name in ("old.parquet", "new.parquet")
    )
    assert (old.pop("checksums"), new.pop("checksums")) == ("none", "pages")
    assert old == new
    # Other tools check the pages.
    pq.read_table(tmp_path / "new.parquet", page_checksum_verification=True)
    changed = bytearray((tmp_path / "new.parquet").read_bytes())
    column = pq.read_metadata(tmp_path / "new.parquet").row_group(0).column(3)
    changed[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    (tmp_path / "new.parquet").write_bytes(changed)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(tmp_path / "new.parquet", page_checksum_verification=True)


@pytest.mark.parametrize("command", ["compare", "trace info", "trace check", "trace cut"])
def test_a_broken_trace_is_an_error(tmp_path: Path, command: str) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    whole = (TRACES / "redis.parquet").read_bytes()
    (broken / "truncated.parquet").write_bytes(whole[: len(whole) // 2])
    where = tmp_path / "where"
    where.mkdir()
    target = ("cut.parquet",) if command == "trace cut" else ()
    words = (*command.split(), str(broken / "truncated.parquet"), *target)
    refused(*words, where=where, words="is truncated")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--designs esd,dedup", '"dedup-sha1"'),
        ("--machine edsd", "no such machine"),
        ("--set esd.efit_byte=1", "esd.efit_bytes"),
        ("--set medium.geometry.rows=68719476736", "use fewer rows"),
        ("--limit 0", "--limit"),
        ("--limit 99999999999999999999", "--limit"),
        ("--jobs 0", "--jobs"),
        ("--copies 0", "--copies"),
        ("--copies 5000000000", "--copies"),
        ("--warmup -1", "--warmup"),
        ("--warmup 400", "lower --warmup"),
        ("--warmup 99999999999999999999", "--warmup"),
        ("--out /dev/null", "is a file"),
        ("--out /dev/null/there", "--out"),
        ("--out /proc/there", "/proc/there"),
        ("synth:rung-60:0", "at least 1"),
        ("synth:rung-60:99999999999999999999", "RECORDS"),
    ],
)
def test_a_bad_option_is_an_error(tmp_path: Path, options: str, words: str) -> None:
    trace = str(TRACES / "redis.parquet")
    given = ("compare", trace, "--designs", "esd", "--limit", "300")
    refused(*given, *options.split(), where=tmp_path, words=words)


def refused(*arguments: str, where: Path, words: str) -> None:
    """The program says what is wrong in one line, with status 2, and leaves nothing behind."""
    ended = sardonyx(*arguments, where=where, status=2)
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert words in ended.stderr
    assert ended.stdout == ""
    assert list(where.iterdir()) == []


def test_conversion_there_and_back_keeps_the_requests(tmp_path: Path) -> None:
    cut = ("cut.parquet", "--limit", "400")
    sardonyx("trace", "cut", str(TRACES / "cc1.parquet"), *cut, where=tmp_path)
    sardonyx("trace", "convert", "cut.parquet", "cut.nvt", "--to", "nvmain", where=tmp_path)
    back = ("trace", "convert", "cut.nvt", "back.parquet", "--from", "nvmain")
    sardonyx(*back, where=tmp_path)
    counts = []
    for trace in ("cut.parquet", "back.parquet"):
        info = json.loads(sardonyx("trace", "info", trace, "--json", "-", where=tmp_path).stdout)
        counts.append([info[name] for name in ("reads", "writes", "distinct_contents")])
    assert counts[0] == counts[1]


def test_a_generated_trace_is_known_by_name(tmp_path: Path) -> None:
    info = sardonyx("trace", "info", "synth:rung-93:5000:2", "--json", "-", where=tmp_path)
    assert json.loads(info.stdout)["records"] == 5000
    sardonyx("trace", "info", "synth:rung-94", where=tmp_path, status=2)


def test_a_bad_specification_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"duplicate_rate": 1.5}')
    ended = sardonyx("trace", "synth", "spec.json", "s.parquet", where=tmp_path, status=2)
    assert "duplicate_rate" in ended.stderr
    assert not (tmp_path / "s.parquet").exists()


def test_a_cancelled_call_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    progress = _core.Progress()
    progress.cancel()
    target = tmp_path / "s.parquet"
    spec = json.loads(_core.ladder())[0]
    with pytest.raises(_core.SardonyxError, match="cancelled"):
        _core.trace_synth(json.dumps(spec), str(target), 0, progress)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_every_preset_simulates(tmp_path: Path) -> None:
    trace = str(TRACES / "sqlite3.parquet")
    for machine in json.loads(_core.machines()):
        arguments = ("--machine", machine["name"], "--limit", "500")
        sardonyx("compare", trace, *arguments, where=tmp_path)


def test_the_rows_of_a_trace_add_up_to_its_records(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    said = json.dumps({"version": 1, "level": "memory", "program": "mine"})
    fields: list[tuple[str, Any]] = [
        ("gap", pa.uint32()),
        ("thread", pa.uint16()),
        ("op", pa.uint8()),
        ("line", pa.uint64()),
        ("data", pa.binary(64)),
    ]
    columns = pa.schema(fields, metadata={"sardonyx.trace": said})
    written = {1, 2, 3, 10, 11}
    rows = [
        {"gap": 0, "thread": 0, "op": op, "line": 1, "data": bytes(64) if op in written else None}
        for op in (0, 1, 2, 3, 4, 5, 6, 7, 10, 10, 11)
    ]
    rows[-1]["data"] = (1).to_bytes(8, "little") + bytes(56)
    table = pa.Table.from_pylist(rows, schema=columns)
    pq.write_table(table, tmp_path / "t.parquet", compression="zstd")
    sardonyx("trace", "info", "t.parquet", "--json", "i.json", where=tmp_path)
    info = json.loads((tmp_path / "i.json").read_text())
    counts = ("reads", "writes", "fences", "flushes", "dirty_at_end", "changes_without_write")
    assert [info[each] for each in counts] == [1, 3, 1, 3, 2, 1]
    assert info["records"] == len(rows) == sum(info[each] for each in counts)


def test_a_recording_by_name_is_ours_and_is_never_replaced(tmp_path: Path) -> None:
    sardonyx("trace", "convert", "pmdk-tx", "t.nvt", "--to", "nvmain", where=tmp_path)
    assert (tmp_path / "t.nvt").stat().st_size > 1000
    recording = TRACES / "pmdk-tx.parquet"
    before = recording.stat().st_mtime_ns
    for words in (("trace", "info"), ("compare", "--limit", "9")):
        to = ("--json", str(recording))
        said = sardonyx(*words, "pmdk-tx", *to, where=tmp_path, status=2).stderr
        assert "is also what is read; name another file" in said and said.count("\n") == 1
    assert recording.stat().st_mtime_ns == before
