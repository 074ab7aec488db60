"""``sardonyx crash``: what to write instead of words that no command stands before."""

from __future__ import annotations

import shlex
from pathlib import Path

from sardonyx.api.known import GROUPS
from sardonyx.cli.common import subcommands

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


app = subcommands(GROUPS["crash"], remedy=remedy)
