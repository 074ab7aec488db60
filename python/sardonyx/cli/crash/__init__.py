"""``sardonyx crash``: cut the power everywhere and look; one file a command below it.

Exit status 1 if a design breaks its promise, or if the runs have not exercised what it rests on.
Left out: recordings of real programs (``crash-test``), and everything that computes.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from sardonyx.cli.common import subcommands
from sardonyx.cli.crash import exhaustive, replay, run

RECORDING = ".parquet"


def remedy(words: list[str]) -> str:
    """What to write instead of a program or a recording that no command stands before."""
    if words[0].endswith(RECORDING) or Path(words[0]).is_file():
        return (
            "is a file, and crash takes programs (see sardonyx programs); for a recording of a "
            f"real program: sardonyx crash-test search {shlex.quote(words[0])} --pool FILE "
            "--recover 'CMD {pool}'"
        )
    return f"is no command of crash; give {shlex.join(['sardonyx', 'crash', 'run', *words])}"


app = subcommands(
    "Cut the power at every position of a run, recover, and check what is left.",
    run.run,
    run.once,
    run.stages,
    exhaustive.exhaustive,
    replay.replay,
    remedy=remedy,
)
