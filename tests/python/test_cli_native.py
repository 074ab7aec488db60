"""The command line over the real native module, on stretches of the recorded traces.

Those that simulate run as soon as the native module does; until then they say that it does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sardonyx import _core

pytestmark = pytest.mark.native
TRACES = Path(__file__).resolve().parents[2] / "traces"
SHORT = ("--limit", "3000", "--no-sensitivity")


@pytest.fixture
def simulating() -> None:
    """Skips what the native module cannot do yet."""
    lacking = [name for name in ("simulate", "designs") if not hasattr(_core, name)]
    if lacking:
        pytest.skip(f"the native module lacks {', '.join(lacking)}")


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


@pytest.mark.usefixtures("simulating")
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
    assert (tmp_path / "results" / "report.html").stat().st_size > 10_000
    assert ended.stderr == ""


@pytest.mark.usefixtures("simulating")
def test_results_do_not_depend_on_threads(tmp_path: Path) -> None:
    trace = str(TRACES / "x264.parquet")
    answers = []
    for jobs in ("1", "4"):
        ended = sardonyx("compare", trace, *SHORT, "-j", jobs, "--json", "-", where=tmp_path)
        runs = json.loads(ended.stdout)["runs"]
        for run in runs:
            run["metrics"].pop("requests_per_second", None)  # the host's speed
        answers.append(runs)
    assert answers[0] == answers[1]


def test_a_cut_is_a_sound_trace(tmp_path: Path) -> None:
    trace = str(TRACES / "redis.parquet")
    cut = ("cut.parquet", "--skip", "100", "--limit", "500")
    sardonyx("trace", "cut", trace, *cut, where=tmp_path)
    sardonyx("trace", "check", "cut.parquet", where=tmp_path)
    info = sardonyx("trace", "info", "cut.parquet", "--json", "-", where=tmp_path)
    assert json.loads(info.stdout)["records"] == 500


@pytest.mark.usefixtures("simulating")
def test_a_truncated_trace_is_an_error_before_any_run(tmp_path: Path) -> None:
    whole = (TRACES / "redis.parquet").read_bytes()
    (tmp_path / "short.parquet").write_bytes(whole[: len(whole) // 2])
    ended = sardonyx("compare", "short.parquet", where=tmp_path, status=2)
    assert ended.stderr.startswith("error: short.parquet")
    assert not (tmp_path / "results").exists()


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


@pytest.mark.usefixtures("simulating")
def test_every_preset_simulates(tmp_path: Path) -> None:
    trace = str(TRACES / "sqlite3.parquet")
    for machine in json.loads(_core.machines()):
        arguments = ("--machine", machine["name"], "--limit", "500", "--no-sensitivity")
        sardonyx("compare", trace, *arguments, where=tmp_path)
