"""Sweeps that are killed, that meet, that run out of room, on a cluster; what is made of them."""

from __future__ import annotations

import io
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sardonyx
from rich.console import Console
from sardonyx import _core
from sardonyx.cli.progress import Points
from sardonyx.report import write_sweep_report
from sardonyx.sweeps import reading
from sardonyx.sweeps.estimate import estimate
from sardonyx.sweeps.folder import Folder
from sardonyx.sweeps.plan import Plan
from sardonyx.sweeps.run import State, Sweep
from sardonyx.sweeps.table import Goal, front, is_swept, load

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "sardonyx", "sweep"]


def written(where: Path, points: int, limit: int = 200) -> Path:
    path = where / "small.toml"
    path.write_text(
        '[sweep]\ntraces = ["synth:rung-60"]\ndesigns = ["baseline", "esd"]\n'
        f"limit = {limit}\nseeds = [{', '.join(map(str, range(points // 2)))}]\n"
    )
    return path


def undisturbed(file: Path, out: Path) -> bytes:
    Sweep(reading.read(file), Folder(out), 2).run()
    return (out / "results.parquet").read_bytes()


def workers_of(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path("/proc", str(pid), "task").glob("*"):
        with suppress(OSError):  # each thread has children of its own, and may end meanwhile
            children = map(int, (task / "children").read_text().split())
            # Beside workers there is the tracker of Python's own semaphores.
            found += [
                c for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()
            ]
    return found


@pytest.mark.slow
def test_kills_of_workers_and_of_the_sweep_change_nothing(tmp_path: Path) -> None:
    file, out = written(tmp_path, 400), tmp_path / "killed"
    draw = random.Random(5)
    killed = 0
    for kind in ("worker", "sweep", "worker", "nobody"):
        running = subprocess.Popen([*COMMAND, str(file), "--out", str(out)], stdout=-3)
        while kind != "nobody" and running.poll() is None:
            own = workers_of(running.pid)
            if len(own) == 2:
                time.sleep(draw.uniform(0, 0.5))
                pid = running.pid if kind == "sweep" else draw.choice(own)
                with suppress(ProcessLookupError):  # it may have ended since
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                if kind == "worker":
                    time.sleep(0.2)
                    running.terminate()
                break
            time.sleep(0.01)
        running.wait(250)
    assert killed and running.returncode == 0
    assert (out / "results.parquet").read_bytes() == undisturbed(file, tmp_path / "undisturbed")
    assert not list((out / "running").iterdir())


@pytest.mark.slow
def test_shares_at_once_in_one_folder_give_the_same_bytes(tmp_path: Path) -> None:
    file, out = written(tmp_path, 100, 1000), tmp_path / "both"
    command = [*COMMAND, str(file), "--out", str(out), "--jobs", "1", "--shard"]
    both = [subprocess.Popen([*command, share], stdout=-3) for share in ("1/2", "2/2")]
    assert [each.wait(250) for each in both] == [0, 0]
    assert (out / "results.parquet").read_bytes() == undisturbed(file, tmp_path / "undisturbed")


@pytest.mark.slow
def test_no_room_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    file, out = written(tmp_path, 8), tmp_path / "full"
    share = [*COMMAND, str(file), "--out", str(out), "--shard", "1/4"]
    subprocess.run(share, check=True, stdout=-3)
    before = sorted((out / "points").iterdir())

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    command = [*COMMAND, str(file), "--out", str(out)]
    ended = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=little_room, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert "File too large; make room" in ended.stderr and ended.stderr.count("\n") == 1
    assert set(before) <= set((out / "points").iterdir())
    assert not list((out / "running").iterdir())
    assert subprocess.run(command, check=True, stdout=-3).returncode == 0


def test_a_plan_is_counted_and_a_few_points_tried(tmp_path: Path) -> None:
    file, folder = written(tmp_path, 40), Folder(tmp_path / "none")
    plan = reading.read(file)
    known = estimate(plan, folder, 2)
    assert (known.points, known.done, known.tried) == (40, 0, 5)
    assert known.seconds is not None and known.seconds > 0
    assert known.memory is not None and known.memory > 1 << 20
    assert not folder.path.exists()


@pytest.mark.slow
def test_hyperqueue_gives_the_same_bytes(tmp_path: Path) -> None:
    cluster = needs_hyperqueue().LocalCluster(str(tmp_path / "hq"))
    with cluster:
        cluster.start_worker()
        file = written(tmp_path, 20)
        frame = sardonyx.sweep(file, out=tmp_path / "on-hq", hq=tmp_path / "hq").to_pandas()
    assert len(frame) == 20 and frame["error"].isna().all()
    table = (tmp_path / "on-hq/results.parquet").read_bytes()
    assert table == undisturbed(file, tmp_path / "undisturbed")


def test_a_folder_without_a_hyperqueue_server_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("hyperqueue")
    (tmp_path / "empty").mkdir()
    command = [*COMMAND, str(written(tmp_path, 4)), "--out", "out", "--hq", "empty"]
    traced = os.environ | {"RUST_BACKTRACE": "1"}
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=traced, check=False
    )
    assert ended.returncode == 2
    assert "no HyperQueue server answers" in ended.stderr
    assert ended.stderr.count("\n") == 1 and len(ended.stderr) < 500, ended.stderr


def needs_hyperqueue() -> Any:
    """HyperQueue, whose server is reached by the machine's own name; a test without is skipped."""
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        pytest.skip(f"{socket.gethostname()}, this machine's name, is not in /etc/hosts")
    return pytest.importorskip("hyperqueue")


SERVER = """
import sys
from hyperqueue import LocalCluster
with LocalCluster(sys.argv[1]):
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_a_hyperqueue_server_that_hangs_does_not_hang_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_hyperqueue()
    monkeypatch.setattr("sardonyx.sweeps.hq.SILENCE", 2.0)
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path / "hq")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            assert any("ready" in line for line in server.stdout)
            server.send_signal(signal.SIGSTOP)
            with pytest.raises(_core.SardonyxError, match="has not answered for 2 s"):
                sardonyx.sweep(written(tmp_path, 4), out=tmp_path / "out", hq=tmp_path / "hq")
        finally:
            server.kill()


def test_from_python_a_sweep_is_a_frame_that_goes_on(tmp_path: Path) -> None:
    tables = {
        "sweep": {"traces": ["synth:rung-60"], "designs": ["esd"], "limit": 200},
        "axes": {"esd.efit_ways": [4, 8]},
    }
    part = sardonyx.sweep(tables, out=tmp_path / "a", shard="1/2").to_pandas()
    frame = sardonyx.sweep(tables, out=tmp_path / "a").to_pandas()
    assert part["esd.efit_ways"].tolist() == [4] and frame["esd.efit_ways"].tolist() == [4, 8]
    assert frame["ipc"].notna().all()
    points = sorted((tmp_path / "a/points").iterdir())
    sardonyx.sweep(tables, out=tmp_path / "a")
    assert sorted((tmp_path / "a/points").iterdir()) == points
    with pytest.raises(_core.SardonyxError, match="out: is missing"):
        sardonyx.sweep(tables)


def test_the_view_says_points_rate_failures_and_the_best(tmp_path: Path) -> None:
    plan = reading.read(written(tmp_path, 8))
    state = State(8, "max ipc", found=2, finished=3, failed=1, best=(1.25, 5))
    console = Console(record=True, width=140, file=io.StringIO())
    console.print(Points(console, plan).table(state))
    shown = console.export_text()
    for words in ("5 of 8", "a second", "failed", "max ipc", "1.25", "design = esd, machine"):
        assert words in shown


def test_a_log_has_a_line_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("sardonyx.cli.progress.time", SimpleNamespace(monotonic=lambda: clock[0]))
    out = io.StringIO()
    view = Points(Console(file=out), reading.read(written(tmp_path, 8)))
    for now in (1.0, 9.0, 11.0, 12.0, 25.0):
        clock[0] = now
        view(State(8, None, found=2, finished=3, failed=1, died=2))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2 and lines[0].startswith("5 of 8 points, ")
    assert lines[0].endswith("left, 1 failed, 2 workers lost")


def test_points_of_killed_tasks_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if half of the tasks of each job were killed."""
    jobs: list[int] = []

    def submit(plan: Plan, folder: Folder, _server: Path, shares: int, look: Any) -> None:
        jobs.append(shares)
        other = Folder(folder.path)
        missing = [p.number for p in plan.points() if other.done(p.name) is None]
        for number in missing[: (len(missing) + 1) // 2]:
            Sweep(plan, other, 1, (number, plan.size)).run()
        look()

    monkeypatch.setattr("sardonyx.sweeps.hq._submit", submit)
    file = written(tmp_path, 4)
    frame = sardonyx.sweep(file, out=tmp_path / "out", hq=tmp_path).to_pandas()
    assert len(frame) == 4 and frame["error"].isna().all()
    assert len(jobs) == 3  # of 2, 1 and 1 points
    kept = json.loads(next((tmp_path / "out/points").iterdir()).read_text())
    assert kept["host"] == socket.gethostname() and kept["seconds"] > 0
    monkeypatch.setattr("sardonyx.sweeps.hq._submit", lambda *_: jobs.append(0))
    with pytest.raises(_core.SardonyxError, match="3 times without a further point"):
        sardonyx.sweep(written(tmp_path, 7), out=tmp_path / "none", hq=tmp_path)
    assert jobs[-3:] == [0, 0, 0] and jobs[-4] != 0


# ---- what is made of them


def test_a_report_draws_any_set_of_points(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        '[sweep]\ntraces = ["synth:rung-60", "synth:rung-93"]\ndesigns = ["baseline", "esd"]\n'
        'limit = 200\nmachine = "esd"\n[axes]\n"esd.efit_ways" = [4, 8]\n'
    )
    Sweep(reading.read(file), Folder(tmp_path / "a"), 2).run()
    # Bare points, without plans or merged results.
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in (tmp_path / "a/points").iterdir():
        (bare / path.name).write_bytes(path.read_bytes())
    # Files are of what was run: the baseline once for each trace.
    for place, points in ((tmp_path / "a", 8), (bare, 6)):
        assert is_swept(place)
        swept = load(place, ["max ipc", "min energy_nj"])
        assert swept.points == points and swept.axes == ["trace", "design", "esd.efit_ways"]
        target = place / "report.html"
        write_sweep_report(swept, target)
        page = target.read_text()
        for key in ("multiples", "parallel", "pareto"):
            assert f'data-plot="{key}"' in page
    with pytest.raises(_core.SardonyxError, match='there is no figure "icp"; did you mean "ipc"'):
        load(bare, ["max icp"])


def test_the_front_is_what_no_point_beats() -> None:
    draw = random.Random(3)
    rows: list[dict[str, Any]] = [
        {"a": float(draw.randrange(9)), "b": float(draw.randrange(9))} for _ in range(60)
    ]
    found = front(rows, Goal("a", True), Goal("b", False))

    def beaten(row: dict[str, Any]) -> bool:
        return any(
            other["a"] >= row["a"] and other["b"] <= row["b"] and other != row for other in rows
        )

    expected = [row for row in rows if not beaten(row)]
    assert len(found) == len(expected) and all(row in expected for row in found)


@pytest.mark.slow
def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    page = (ROOT / "docs/simulator/sweeps.md").read_text()
    parts = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    first, second = (part for part in parts if "recordings = [" not in part)
    (tmp_path / "efit.toml").write_text(first)
    (tmp_path / "second.toml").write_text(second)
    (tmp_path / "traces").symlink_to(ROOT / "traces")
    monkeypatch.chdir(tmp_path)
    reading.read("second.toml").check()
    pandas, duckdb, python = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for example in (python, pandas, duckdb):
        exec(compile(example, "docs/simulator/sweeps.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "seconds_a_point" in shown and "efit_hit_rate" in shown
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert printed in shown, "quote in docs/simulator/sweeps.md what the example prints"


def test_a_plan_stays_in_numbers() -> None:
    """A plan of a million points is read, counted and entered anywhere at once."""
    plan = reading.read(
        {
            "sweep": {"traces": ["synth:rung-60"], "designs": ["esd"], "seeds": list(range(1000))},
            "axes": {"limit": list(range(1, 1001))},
        }
    )
    assert plan.count == plan.size == 1_000_000
    point = plan.at(999_999)
    assert point is not None and (point.settings["limit"], point.settings["seed"]) == (1000, 999)
