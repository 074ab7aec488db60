"""Holds sweeps to what they promise: under kills the same bytes; little overhead; flat memory.

``kills``: points run undisturbed, and again while workers and the sweep itself are killed at random
times (``--hq``: HyperQueue's tasks, workers and server as well); both tables must be the same
bytes. ``overhead``: points of about ``--seconds`` each, the sum of their simulations beside the
sweep's time on all processors. ``memory``: the most that the sweep itself has, for plans of growing
size. ``make test`` runs small versions of these; this is for the full size:

    .venv/bin/python research/sweep_trial.py kills --points 10000
    .venv/bin/python research/sweep_trial.py kills --points 2000 --hq
    .venv/bin/python research/sweep_trial.py overhead --points 1000 --seconds 0.2
    .venv/bin/python research/sweep_trial.py memory --points 1000 100000
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "sardonyx", "sweep"]


def plan(where: Path, points: int, limit: int) -> Path:
    """A sweep of so many points: two designs, two sizes, and seeds."""
    seeds = ", ".join(str(seed) for seed in range(points // 4))
    path = where / f"sweep-{points}.toml"
    path.write_text(
        f'[sweep]\ntraces = ["synth:rung-60"]\ndesigns = ["baseline", "esd"]\nlimit = {limit}\n'
        f'seeds = [{seeds}]\n[axes]\n"esd.efit_ways" = [4, 8]\n'
    )
    return path


def sweep(file: Path, out: Path, *more: str) -> dict[str, Any]:
    """Run it to its end; what it says of itself."""
    said = out.with_suffix(".json")
    command = [*COMMAND, str(file), "--out", str(out), "--json", str(said), *more]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    document: dict[str, Any] = json.loads(said.read_text())
    return document


def below(pid: int) -> list[int]:
    """Processes that this one has started, and theirs."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == pid:
            child = int(path.parent.name)
            found += [child, *below(child)]
    return found


def killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def kills(where: Path, points: int, draw: random.Random, pause: float, *, hq: bool) -> None:
    """The same bytes, however often workers and sweeps are killed."""
    file = plan(where, points, 200)
    started = time.monotonic()
    undisturbed = sweep(file, where / "undisturbed")
    print(f"undisturbed: {undisturbed['points']:,} points in {time.monotonic() - started:.0f} s")
    counts = {"workers": 0, "sweeps": 0, "cluster": 0}
    out = where / "killed"
    cluster = Cluster(where) if hq else None
    started = time.monotonic()
    kept, in_vain = 0, 0
    while True:
        more = ["--hq", str(cluster.folder)] if cluster else []
        command = [*COMMAND, str(file), "--out", str(out), *more]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while running.poll() is None:
            time.sleep(draw.uniform(0, 2 * pause))
            now = sum(1 for _ in out.glob("shards/*"))
            in_vain = 0 if now != kept else in_vain + 1
            if in_vain == 20:  # on a busy machine starts take longer than the pauses
                pause, in_vain = 2 * pause, 0
            kept, kind = now, draw.random()
            if kind < 0.15:
                counts["sweeps"] += killed(running.pid)
                running.wait()
            elif kind < 0.2 and cluster:
                counts["cluster"] += 1
                cluster.kill()
                running.wait()
                cluster = Cluster(where)
            else:
                own = below(cluster.pid if cluster else running.pid)
                counts["workers"] += bool(own) and killed(draw.choice(own))
        if running.returncode == 0:
            break
        assert running.stderr is not None
        if running.returncode > 0 and not cluster:
            sys.exit(f"ended with {running.returncode}: {running.stderr.read().decode()}")
    if cluster:
        cluster.kill()
    print(f"killed: {counts} in {time.monotonic() - started:.0f} s, pauses of {pause} s on average")
    tables = [(where / name / "results.parquet").read_bytes() for name in ("undisturbed", "killed")]
    if tables[0] != tables[1]:
        sys.exit("the tables differ")
    print("the same bytes")


class Cluster:
    """A HyperQueue server with a worker of two processors, in a process that can be killed."""

    def __init__(self, where: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hq-", dir=where))
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        self._process = context.Process(target=_serve, args=(str(self.folder), ready))
        self._process.start()
        ready.wait(60)

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def kill(self) -> None:
        for pid in [self.pid, *below(self.pid)]:
            killed(pid)
        self._process.join()


def _serve(folder: str, ready: Any) -> None:
    from hyperqueue import LocalCluster
    from hyperqueue.cluster import WorkerConfig

    with LocalCluster(folder) as cluster:
        cluster.start_worker(WorkerConfig(cores=2))
        ready.set()
        while True:
            time.sleep(60)


def overhead(where: Path, points: int, seconds: float) -> None:
    """The sweep's time on all processors beside the sum of its simulations."""
    limit = 20_000
    for _ in range(3):
        expected = sweep(plan(where, 40, limit), where / f"try-{limit}", "--jobs", "1")
        one = expected["seconds_of_points"] / expected["points"]
        limit = max(100, round(limit * seconds / one))
    file = plan(where, points, limit)
    processors = len(os.sched_getaffinity(0))
    found = sweep(file, where / "overhead")
    busy = found["seconds_of_points"] / processors
    print(
        f"{found['points']:,} points of {found['seconds_of_points'] / found['points']:.3f} s "
        f"({limit:,} records): {found['seconds']:.1f} s on {processors} processors; their "
        f"simulations alone: {busy:.1f} s; overhead {100 * (found['seconds'] / busy - 1):.1f} %"
    )


def memory(where: Path, sizes: list[int]) -> None:
    """What the sweep's own process has at most, of its workers apart."""
    for points in sizes:
        command = [*COMMAND, str(plan(where, points, 20)), "--out", str(where / f"m{points}")]
        started = time.monotonic()
        pid = os.posix_spawn(
            command[0], command, os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )  # fmt: skip
        most = 0
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                break
            text = Path(f"/proc/{pid}/status").read_text()
            most = max(
                [most, *(int(x.split()[1]) for x in text.splitlines() if x.startswith("VmHWM"))]
            )
            time.sleep(0.1)
        if status:
            sys.exit(f"ended with {status}")
        workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(
            f"{points:,} points: {most / 1024:.0f} MiB, any process of it at most "
            f"{workers / 1024:.0f} MiB, in {time.monotonic() - started:.0f} s"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("what", choices=("kills", "overhead", "memory"))
    parser.add_argument("--points", type=int, nargs="+", default=[1000])
    parser.add_argument("--seconds", type=float, default=0.2, help="of a point")
    parser.add_argument("--seed", type=int, default=1, help="of kills")
    parser.add_argument(
        "--pause", type=float, default=1.0, help="seconds between kills, on average"
    )
    parser.add_argument("--hq", action="store_true", help="HyperQueue as the engine")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sweep-trial-") as name:
        where = Path(name)
        if asked.what == "kills":
            draw = random.Random(asked.seed)
            kills(where, asked.points[0], draw, asked.pause, hq=asked.hq)
        elif asked.what == "overhead":
            overhead(where, asked.points[0], asked.seconds)
        else:
            memory(where, asked.points)


if __name__ == "__main__":
    main()
