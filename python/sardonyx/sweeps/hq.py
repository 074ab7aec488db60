"""HyperQueue as the engine: shares of the points as tasks of one job, on whatever workers it has.

HyperQueue allocates nodes of Slurm and PBS, journals its tasks and runs those again whose worker
was lost. A task is ``sardonyx sweep PLAN --shard i/N``, which skips what is done.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.sweeps import folder as folders
from sardonyx.sweeps.estimate import estimate
from sardonyx.sweeps.folder import PLANS, RESULTS, Folder, Incomplete, Index
from sardonyx.sweeps.plan import Plan
from sardonyx.sweeps.run import Outcome, State, View

#: Seconds of work in a task, about: its start takes half of one.
TASK_SECONDS = 20.0
TASKS_MOST = 10_000
#: Workers that a task may lose before HyperQueue gives it up.
CRASHES = 100
LOOK_EVERY = 0.5


def run(plan: Plan, folder: Folder, server: Path, view: View | None = None) -> Outcome:
    """Run what is not done on the workers of the server in this folder, then merge."""
    started = time.monotonic()
    known = estimate(plan, folder)
    state = State(known.points, None, found=known.done)
    folder.begin(plan)
    try:
        index = Index(folder)
        if known.left:
            shares = _shares(known.left, known.seconds)
            _submit(plan, folder, server, shares, lambda: _look(index, plan, state, view))
        index.refresh()
        target = folder.path / RESULTS
        try:
            failures = folders.merge(plan, folder, index, target)
        except Incomplete as error:
            raise _core.SardonyxError(
                f"--hq {server}: its tasks have ended and points are missing; {_said(folder)}"
                "what is done is kept, so give the same command again"
            ) from error
    finally:
        folder.end()
    finished = known.left - len(failures)
    seconds = time.monotonic() - started
    damaged = {str(path): why for path, why in index.damaged.items()}
    return Outcome(known.points, known.done, finished, failures, target, seconds, 0.0, 0, damaged)


def _shares(left: int, seconds: float | None) -> int:
    """Tasks, each of some seconds' work, but no more than points."""
    whole = left * (seconds or TASK_SECONDS)
    return max(1, min(left, TASKS_MOST, round(whole / TASK_SECONDS) or 1))


def _submit(
    plan: Plan, folder: Folder, server: Path, shares: int, look: Callable[[], None]
) -> None:
    try:
        from hyperqueue import Client, Job
        from hyperqueue.ffi.protocol import ResourceRequest
    except ImportError as error:
        raise _core.SardonyxError(
            "--hq: HyperQueue's Python package is not installed; pip install 'sardonyx[hq]'"
        ) from error
    if not server.is_dir():
        raise _core.SardonyxError(
            f"--hq {server}: there is no such directory; give the one of `hq server start`"
        )
    try:
        client = Client(server)
    except Exception as error:
        raise _core.SardonyxError(
            f"--hq {server}: no HyperQueue server answers ({' '.join(str(error).split())}); start "
            "one with `hq server start`, or give its --server-dir"
        ) from error
    assert folder.own is not None
    logs = folder.own / "logs"
    logs.mkdir()
    job = Job(Path.cwd(), max_fails=None, name=plan.place.name)
    file = (folder.path / PLANS / f"{plan.id}.json").absolute()
    words = [sys.executable, "-m", "sardonyx", "sweep", str(file)]
    words += ["--out", str(folder.path.absolute()), "--jobs", "1", "--shard"]
    # What is timed has its node to itself.
    timed = plan.kind.name == "store" and "conventional" in plan.values("design")
    for share in range(1, shares + 1):
        job.program(
            [*words, f"{share}/{shares}"],
            env={name: value for name, value in os.environ.items() if name.startswith("SARDONYX_")},
            stdout=None,
            stderr=str(logs.absolute() / f"{share}.err"),
            resources=ResourceRequest(cpus="all" if timed else 1),
            crash_limit=CRASHES,
        )
    problems: list[BaseException] = []

    def wait(submitted: Any) -> None:
        try:
            # Not client.wait_for_jobs, which draws a bar of its own.
            client.connection.wait_for_jobs([submitted.id], lambda _: None)
        except BaseException as error:
            problems.append(error)

    waiting = threading.Thread(target=wait, args=(client.submit(job),), daemon=True)
    waiting.start()
    while waiting.is_alive():
        waiting.join(LOOK_EVERY)
        folder.renew()
        look()
    if problems:
        raise _core.SardonyxError(
            f"--hq {server}: the server is gone ({' '.join(str(problems[0]).split())}); what is "
            "done is kept, so start a server and give the same command again"
        ) from problems[0]


def _look(index: Index, plan: Plan, state: State, view: View | None) -> None:
    if view is not None:
        index.refresh()
        state.finished = max(0, min(len(index), plan.count) - state.found)
        view(state)


def _said(folder: Folder) -> str:
    """What a task said last on its standard error, if one did."""
    assert folder.own is not None
    for path in sorted((folder.own / "logs").glob("*.err")):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        if said := [line for line in lines if line.strip()]:
            return f"one of them said: {said[-1].removeprefix('error: ')}; "
    return ""
