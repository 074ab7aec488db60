"""The command line over the real native module, on stretches of the recorded traces.

Bad input of every kind ends with status 2, one line on standard error and no file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sardonyx import _core

pytestmark = pytest.mark.native
TRACES = Path(__file__).resolve().parents[2] / "traces"
SHORT = ("--limit", "3000")


def sardonyx(*arguments: str, where: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """The program as a shell runs it."""
    ended = subprocess.run(
        [sys.executable, "-m", "sardonyx", *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended


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
        options = ("--limit", "3000", "--cache-sizes", "-j", jobs, "--out", str(where))
        sardonyx("compare", str(TRACES / "x264.parquet"), *options, where=tmp_path)
        document = json.loads((where / "results.json").read_text())
        assert len(document["runs"]) == 4 + 18
        for run in document["runs"]:
            assert run["metrics"].pop("requests_per_second") > 0  # the host's speed
        answers.append(document)
    assert answers[0] == answers[1]


def test_reproduce_fills_every_claim(tmp_path: Path) -> None:
    options = ("--quick", "--limit", "800", "--copies", "2", "--json", "esd.json")
    ended = sardonyx("reproduce", "esd", str(TRACES / "redis.parquet"), *options, where=tmp_path)
    assert "replaced by recordings of real programs (redis)" in " ".join(ended.stdout.split())
    claims = json.loads((tmp_path / "esd.json").read_text())["claims"]
    assert [claim["where"] for claim in claims if claim["ours"] is None] == []
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


def test_a_cut_is_a_sound_trace(tmp_path: Path) -> None:
    trace = str(TRACES / "redis.parquet")
    cut = ("cut.parquet", "--skip", "100", "--limit", "500")
    sardonyx("trace", "cut", trace, *cut, where=tmp_path)
    sardonyx("trace", "check", "cut.parquet", where=tmp_path)
    info = sardonyx("trace", "info", "cut.parquet", "--json", "-", where=tmp_path)
    assert json.loads(info.stdout)["records"] == 500


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of files that are no traces."""
    where = tmp_path_factory.mktemp("broken")
    whole = (TRACES / "redis.parquet").read_bytes()
    (where / "truncated.parquet").write_bytes(whole[: len(whole) // 2])
    (where / "empty.parquet").touch()
    (where / "text.parquet").write_text("a line of text, longer than any footer of a trace\n")
    pq.write_table(pa.table({"a": [1, 2]}), where / "columns.parquet", compression="zstd")
    rows = pq.read_table(TRACES / "redis.parquet").slice(0, 50)
    at = rows.schema.get_field_index("op")
    typed = rows.set_column(at, "op", rows["op"].cast(pa.string()))
    pq.write_table(typed, where / "types.parquet", compression="zstd")
    return where


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("missing.parquet", "there is no such file"),
        ("empty.parquet", "is empty"),
        ("truncated.parquet", "is truncated"),
        ("text.parquet", "is not a Parquet file"),
        ("columns.parquet", "no column `gap`"),
        ("types.parquet", "column `op`"),
        ("", "is a directory"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "trace info", "trace check", "trace cut"])
def test_a_broken_trace_is_an_error(
    broken: Path, tmp_path: Path, command: str, file: str, words: str
) -> None:
    target = ("cut.parquet",) if command == "trace cut" else ()
    refused(*command.split(), str(broken / file), *target, where=tmp_path, words=words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--designs esd,dedup", '"dedup-sha1"'),
        ("--machine edsd", "no such machine"),
        ("--set esd.efit_byte=1", "esd.efit_bytes"),
        ("--set medium.geometry.banks=0", "a power of two"),
        ("--set medium.geometry.banks=3", "a power of two"),
        ("--set medium.geometry.rows=9223372036854775808", "out of range"),
        ("--set medium.geometry.rows=68719476736", "use fewer rows"),
        ("--set medium.timing.tRCD=-5", "is negative"),
        ("--set medium.timing.tRCD_ns=nan", "is not finite"),
        ("--set medium.timing.tRCD_ns=1e300", "more than 1 s"),
        ("--set medium.geometry.banks=many", "medium.geometry.banks"),
        ("--set core.window=0", "out of range"),
        ("--set esd.efit_bytes=1", "out of range"),
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


def test_the_same_seed_generates_the_same_trace(tmp_path: Path) -> None:
    for name, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        options = ("--records", "2000", "--seed", seed)
        sardonyx("trace", "synth", "rung-60", f"{name}.parquet", *options, where=tmp_path)
    a, b, c = ((tmp_path / f"{name}.parquet").read_bytes() for name in "abc")
    assert a == b
    assert a != c


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


def test_every_preset_simulates(tmp_path: Path) -> None:
    trace = str(TRACES / "sqlite3.parquet")
    for machine in json.loads(_core.machines()):
        arguments = ("--machine", machine["name"], "--limit", "500")
        sardonyx("compare", trace, *arguments, where=tmp_path)
