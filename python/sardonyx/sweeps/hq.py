"""HyperQueue as the engine: shares of the points as tasks of one job, on whatever workers it has.

HyperQueue allocates nodes of Slurm and PBS, journals its tasks and runs those again whose worker
was lost. A task is ``sardonyx sweep PLAN --shard i/N``, which skips what is done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from sardonyx import _core
from sardonyx.sweeps import folder as folders
from sardonyx.sweeps.estimate import estimate
from sardonyx.sweeps.folder import PLANS, RESULTS, Folder, Incomplete
from sardonyx.sweeps.plan import Plan
from sardonyx.sweeps.run import Outcome, State, View

#: The seconds of work in a task, roughly: its start takes half of one.
TASK_SECONDS = 20.0
TASKS_MOST = 10_000
LOOK_EVERY = 0.5
#: After this many jobs without a further point, missing points are not requested again.
IDLE_JOBS = 3
#: A server that is silent for this many seconds counts as gone; it is asked every second.
SILENCE = 60.0


def run(plan: Plan, folder: Folder, server: Path, view: View | None = None) -> Outcome:
    """Run what is not done on the workers of the server in this folder, then merge."""
    started = time.monotonic()
    known = estimate(plan, folder)
    state = State(known.points, None, found=known.done, same=known.same)
    folder.begin(plan)
    try:
        target = folder.path / RESULTS
        left, idle = known.left, 0
        while True:
            if left:
                shares = _shares(left, known.seconds)
                _submit(plan, folder, server, shares, lambda: _look(folder, state, view))
            try:
                failures = folders.merge(plan, folder, target)
                break
            except Incomplete as error:  # tasks were killed: their points are asked for again
                before, left = left, max(1, _missing(plan, folder))
                idle = 0 if left < before else idle + 1
                if idle == IDLE_JOBS:
                    raise _core.SardonyxError(
                        f"--hq {server}: its tasks have ended {IDLE_JOBS} times without a further "
                        f"point; {_said(folder)}what is done is kept, so give the same command "
                        "again"
                    ) from error
    finally:
        folder.end()
    finished = known.left - len(failures)
    seconds = time.monotonic() - started
    return Outcome(
        known.points,
        known.done,
        known.same,
        finished,
        failures,
        target,
        seconds,
        0.0,
        0,
        dict(folder.damaged),
    )


def _shares(left: int, seconds: float | None) -> int:
    """Tasks of some seconds' work each, but no more than points."""
    whole = left * (seconds or TASK_SECONDS)
    return max(1, min(left, TASKS_MOST, round(whole / TASK_SECONDS) or 1))


def _submit(
    plan: Plan, folder: Folder, server: Path, shares: int, look: Callable[[], None]
) -> None:
    if not server.is_dir():
        raise _core.SardonyxError(
            f"--hq {server}: there is no such directory; give the one of `hq server start`"
        )
    assert folder.own is not None
    logs = folder.own / "logs"
    logs.mkdir(exist_ok=True)
    file = (folder.path / PLANS / f"{plan.id}.json").absolute()
    words = [sys.executable, "-m", "sardonyx", "sweep", str(file)]
    words += ["--out", str(folder.path.absolute()), "--jobs", "1", "--shard"]
    # A timed point has its node to itself.
    asked = {
        "server": str(server),
        "name": plan.place.name,
        "env": {name: value for name, value in os.environ.items() if name.startswith("SARDONYX_")},
        "cpus": "all" if plan.is_timed else 1,
        "tasks": [
            {
                "command": [*words, f"{share}/{shares}"],
                "stderr": str(logs.absolute() / f"{share}.err"),
            }
            for share in range(1, shares + 1)
        ],
    }
    with _client(asked) as answers:
        said: dict[str, Any] = {}
        heard = time.monotonic()
        while not {"ended", "error"} & said.keys():
            try:
                said = json.loads(answers.get(timeout=LOOK_EVERY))
                heard = time.monotonic()
            except Empty:
                if time.monotonic() - heard > SILENCE:
                    said = {
                        "error": f"the server has not answered for {SILENCE:.0f} s; what is done "
                        "is kept, so give the same command again once it does"
                    }
            look()
    if "error" in said:
        raise _core.SardonyxError(f"--hq {server}: {said['error']}")


@contextmanager
def _client(asked: dict[str, Any]) -> Iterator[SimpleQueue[str]]:
    """The process that talks with the server, and its answers as they come."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sardonyx.sweeps.hq_client"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        process_group=0,  # Ctrl-C is for the sweep
    )
    answers: SimpleQueue[str] = SimpleQueue()
    assert process.stdin is not None and process.stdout is not None

    def listen(pipe: IO[str]) -> None:
        for line in pipe:
            answers.put(line)
        answers.put(json.dumps({"error": "HyperQueue's client has ended; give the command again"}))

    try:
        threading.Thread(target=listen, args=(process.stdout,), daemon=True).start()
        with suppress(BrokenPipeError), process.stdin as pipe:
            json.dump(asked, pipe)
        yield answers
    finally:
        process.kill()
        process.wait()


def _missing(plan: Plan, folder: Folder) -> int:
    """Points that are neither done nor failed, those that are the same once."""
    names = {point.name for point in plan.points()}
    return sum(folder.done(name) is None and folder.failed(name) is None for name in names)


def _look(folder: Folder, state: State, view: View | None) -> None:
    if view is not None:
        state.finished = max(0, min(folder.count(), state.total) - state.found)
        view(state)


def _said(folder: Folder) -> str:
    """The last words of a task on its standard error, if there are any."""
    assert folder.own is not None
    for path in sorted((folder.own / "logs").glob("*.err")):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        if said := [line for line in lines if line.strip()]:
            return f"one of them said: {said[-1].removeprefix('error: ')}; "
    return ""
