"""``sardonyx crash-test``: what to write instead of words that no command stands before."""

from __future__ import annotations

import shlex

from sardonyx.api.known import GROUPS
from sardonyx.cli.common import subcommands


def remedy(words: list[str]) -> str:
    """What to write instead of a recording that no command stands before."""
    command = shlex.join(["sardonyx", "crash-test", "search", *words])
    return f"is no command of crash-test; give {command}"


app = subcommands(GROUPS["crash-test"], remedy=remedy)
