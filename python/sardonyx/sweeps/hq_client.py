"""The talk with a HyperQueue server, in a process of its own.

HyperQueue's calls keep Python's lock until the server answers, so that a server which hangs would
hang the sweep, Ctrl-C included. ``python -m sardonyx.sweeps.hq_client`` reads one JSON document,
submits its tasks as one job and prints a JSON line for each answer of the server, about one a
second; the last is ``ended`` or ``error``.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

#: A task may lose this many workers before HyperQueue gives it up.
CRASHES = 100


def talk(asked: dict[str, Any], out: TextIO) -> None:
    """Submit the job and tell of it until it ends."""

    def tell(**said: Any) -> None:
        print(json.dumps(said), file=out, flush=True)

    try:
        from hyperqueue import Client, Job
        from hyperqueue.ffi.protocol import ResourceRequest
    except ImportError:
        return tell(
            error="HyperQueue's Python package is not installed; pip install 'sardonyx[hq]'"
        )
    try:
        client = Client(asked["server"])
    except Exception as error:
        return tell(
            error=f"no HyperQueue server answers ({_line(error)}); start one with "
            "`hq server start`, or give its --server-dir"
        )
    job = Job(Path.cwd(), max_fails=None, name=asked["name"])
    for task in asked["tasks"]:
        job.program(
            task["command"],
            env=asked["env"],
            stdout=None,
            stderr=task["stderr"],
            resources=ResourceRequest(cpus=asked["cpus"]),
            crash_limit=CRASHES,
        )
    try:
        submitted = client.submit(job)
        tell(job=submitted.id)
        # client.wait_for_jobs is not used, because it draws a bar of its own.
        client.connection.wait_for_jobs([submitted.id], lambda _: tell(waiting=True))
    except Exception as error:
        return tell(
            error=f"the server is gone ({_line(error)}); what is done is kept, so start a server "
            "and give the same command again"
        )
    tell(ended=True)


def _line(error: BaseException) -> str:
    """The error in one line, without the backtrace that ``RUST_BACKTRACE`` asks for."""
    return " ".join(str(error).partition("Stack backtrace:")[0].split()).rstrip(".")


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # the sweep is gone, and nobody listens
        talk(json.load(sys.stdin), sys.stdout)
