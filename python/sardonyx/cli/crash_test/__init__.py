"""``sardonyx crash-test``: a real program's own recovery, run on what each cut could leave.

One file a command below it; docs/crash-test/real-programs.md explains them. Left out: everything
that computes.
"""

from __future__ import annotations

import shlex

from sardonyx.cli.common import add_command, subcommands
from sardonyx.cli.crash_test import designs, files, lint, recovery, replay, search, threads


def remedy(words: list[str]) -> str:
    """What to write instead of a recording that no command stands before."""
    command = shlex.join(["sardonyx", "crash-test", "search", *words])
    return f"is no command of crash-test; give {command}"


app = subcommands(
    "Cut a recorded program at every fence, and run its own recovery on what could be left.",
    search.search,
    threads.threads,
    recovery.recovery,
    designs.designs,
    replay.replay,
    lint.lint,
    remedy=remedy,
)
add_command(app, files.files, **files.SETTINGS)
