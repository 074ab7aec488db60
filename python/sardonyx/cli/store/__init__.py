"""``sardonyx store``: block stores that keep equal blocks once, one file a command.

A new command is a file here and a line in ``COMMANDS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from sardonyx.cli.common import add_command
from sardonyx.cli.help import CONTEXT, Group
from sardonyx.cli.store import check, compare, estimate, serve

COMMANDS: tuple[Callable[..., Any], ...] = (
    compare.compare,
    serve.serve,
    check.check,
    estimate.estimate,
)

app = typer.Typer(
    cls=Group,
    context_settings=CONTEXT,
    help="Block stores that keep equal blocks once: a resistive CAM and its conventional rival.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.callback()
def top() -> None:
    """Block stores that keep equal blocks once: a resistive CAM and its conventional rival."""


for _command in COMMANDS:
    add_command(app, _command)
