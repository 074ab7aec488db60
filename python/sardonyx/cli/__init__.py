"""The command line: ``sardonyx`` and its commands, one file each, each a thin call of the library.

Standard output carries results, standard error progress and errors. A new command is a file here
and a line in ``COMMANDS``; its module is imported when it is called. Left out: everything that
computes.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from sardonyx import _core
from sardonyx.cli.common import (
    BAD_INPUT,
    INTERRUPTED,
    LEFT_BY_SIGNAL,
    Ended,
    add_command,
    discard,
    fail,
    handle_signals,
    out,
)

#: The commands in the order of the help, and the modules here that have them: the function of the
#: name, called as its ``SETTINGS`` say, or the commands below it as ``app``.
COMMANDS = {
    "crash": "crash",
    "crash-test": "crash_test",
    "compare": "compare",
    "reproduce": "reproduce",
    "sweep": "sweep",
    "curve": "curve",
    "report": "report",
    "designs": "lists",
    "programs": "lists",
    "machines": "lists",
    "show": "lists",
    "trace": "trace",
    "store": "store",
    "merge": "merge",
}
#: What all of them share.
SHARED: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class Commands(TyperGroup):
    """The commands of the table, each made when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _made(cmd_name)
        return self.commands.get(cmd_name)


def _made(name: str) -> Any:
    module = import_module(f"sardonyx.cli.{COMMANDS[name]}")
    if hasattr(module, "app"):
        made: Any = get_group(module.app)
        made.name = name
        return made
    alone = typer.Typer(add_completion=False, **SHARED)
    settings = getattr(module, "SETTINGS", {})
    add_command(alone, getattr(module, name.replace("-", "_")), name=name, **settings)
    return get_command(alone)


app = typer.Typer(
    name="sardonyx",
    cls=Commands,
    help="Simulate persistent, encrypted, deduplicated main memory, with every byte real.",
    no_args_is_help=True,
    **SHARED,
)


def _version(asked: bool) -> None:
    if asked:
        out.print(f"sardonyx {_core.VERSION}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Simulate persistent, encrypted, deduplicated main memory, with every byte real."""


def main() -> None:
    """The command line: everything that ends it becomes one line and an exit status."""
    handle_signals()
    status = _run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        status = status or fail(f"standard output: {error.strerror}").exit_code
    if status > LEFT_BY_SIGNAL and any(
        not thread.daemon
        for thread in threading.enumerate()
        if thread is not threading.main_thread()
    ):
        sys.stderr.flush()
        os._exit(status)  # a native call that cannot be broken off still runs
    raise SystemExit(status)


def _run() -> int:
    for argument in sys.argv[1:]:
        shown = argument.encode(errors="backslashreplace").decode()
        if shown != argument:  # reports and JSON cannot have it
            return fail(f"{shown}: is not UTF-8; rename the file").exit_code
    try:
        status = app(prog_name="sardonyx", standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    except Ended as error:
        return fail(f"ended by {error}", LEFT_BY_SIGNAL + error.signal).exit_code
    except (typer.Abort, KeyboardInterrupt):
        return fail("interrupted", INTERRUPTED).exit_code
    except SystemExit:  # Rich, when nobody reads the help
        return 0
    except OSError as error:  # help or the version, to where nothing can be written
        discard(sys.stdout)
        return fail(f"standard output: {error.strerror}").exit_code
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        # What the parser of the command line found: an unknown option, a missing argument.
        context = getattr(error, "ctx", None)
        where = getattr(context, "command_path", "sardonyx")
        help_line = f"; see `{where} --help`" if message() else ""
        if not message():  # no_args_is_help has printed the help
            return BAD_INPUT
        return fail(f"{message().rstrip('.')}{help_line}").exit_code
    return status if isinstance(status, int) else 0
