"""The command line: ``sardonyx`` and its commands, one file each, each a thin call of the library.

Standard output carries results, standard error progress and errors. A new command is a file here
and a line in ``COMMANDS``; its module is imported when it is called. Left out: everything that
computes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib import import_module
from typing import Annotated, Any

import typer
from typer._click.shell_completion import CompletionItem
from typer.main import get_command, get_group

from sardonyx import _core
from sardonyx.api import known
from sardonyx.cli import derived
from sardonyx.cli.common import (
    BAD_INPUT,
    INTERRUPTED,
    LEFT_BY_SIGNAL,
    add_command,
    fail,
    handle_signals,
    out,
)
from sardonyx.cli.help import CONTEXT, Group
from sardonyx.cli.terminal import discard, write_in_any_encoding
from sardonyx.endings import Ended

#: The commands in the order of the help, each with its module here and its line there. The module
#: has the function of the name, or the commands below it as ``app``; without one they are made of
#: their questions. The lines are those of the
#: commands, which need not be imported for them.
COMMANDS = {
    "trace": (
        "",
        "Record programs; look at traces, check, convert, generate, cut and mix them.",
    ),
    "compare": (
        "compare",
        "Run designs on traces: a table, results.json, results.parquet and report.html.",
    ),
    "report": (
        "report",
        "Print the table of saved results again and rewrite their report.html.",
    ),
    "diff": (
        "diff",
        "Compare two results: settings that differ, then figures, the largest change first.",
    ),
    "sweep": (
        "sweep",
        "Run every point of a sweep; DIR/results.parquet has a row a point, in the file's order.",
    ),
    "explore": (
        "explore",
        "Say what to build: the best designs and sizes of their tables under a budget of memory.",
    ),
    "curve": (
        "curve",
        "Draw a memory's latency against its bandwidth, beside published measurements.",
    ),
    "reproduce": (
        "reproduce",
        "Print every claim of a paper beside our figure, and draw its figures.",
    ),
    "crash": (
        "crash",
        "Cut the power at every position of a run, recover, and check what is left.",
    ),
    "crash-test": (
        "crash_test",
        "Cut a recorded program at every fence, and run its own recovery on what could be left.",
    ),
    "merge": (
        "merge",
        "Merge equal pages of real page images, as the kernel does and as PageForge does.",
    ),
    "store": (
        "",
        "Block stores that keep equal blocks once: a resistive CAM and its conventional rival.",
    ),
    "check-host": (
        "check_host",
        "Compare what controller, port and application measured; fail where they disagree.",
    ),
    "doctor": (
        "doctor",
        "Try what needs more than Sardonyx itself, and say what is missing and for what.",
    ),
    "designs": (
        "lists",
        "List the designs, each with a line and its source, and what may stand behind each.",
    ),
    "programs": ("lists", "List the persistent programs that compare takes, each with a line."),
    "recordings": ("lists", "List the recordings that come with the program."),
    "machines": ("lists", "List the machines that come with the program, each with its source."),
    "show": (
        "lists",
        "Print a machine's effective configuration as TOML: every key, with what is assumed.",
    ),
}
#: The settings that all commands share.
SHARED: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
    "context_settings": CONTEXT,
}


class Commands(Group):
    """The commands of the table, each made when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _made(cmd_name)
        return self.commands.get(cmd_name)

    def line(self, ctx: Any, name: str) -> str:
        return COMMANDS[name][1]

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        return [
            CompletionItem(name, help=line)
            for name, (_, line) in COMMANDS.items()
            if name.startswith(incomplete)
        ] or super().shell_complete(ctx, incomplete)


def _made(name: str) -> Any:
    if name in known.COMMANDS and name not in known.GROUPS:
        return derived.Command(name)
    if not COMMANDS[name][0]:
        return derived.group(name)
    module = import_module(f"sardonyx.cli.{COMMANDS[name][0]}")
    if hasattr(module, "app"):
        made: Any = get_group(module.app)
        made.name = name
        derived.add_commands(made, name)
        return made
    alone = typer.Typer(add_completion=False, **SHARED)
    add_command(alone, getattr(module, name.replace("-", "_")), name=name)
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Simulate persistent, encrypted, deduplicated main memory, with every byte real."""


def main() -> None:
    """The command line: everything that ends it becomes one line and an exit status."""
    handle_signals()
    write_in_any_encoding()
    status = _run()
    signal.set_wakeup_fd(-1)  # we end
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
        if type(error).__name__ == "Exit":  # of a command that is made of its question
            return int(error.exit_code)  # type: ignore[attr-defined]
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        # The parser of the command line has found an unknown option or a missing argument.
        context = getattr(error, "ctx", None)
        where = getattr(context, "command_path", "sardonyx")
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(f"{message()}\n")
            return BAD_INPUT
        return fail(f"{message().rstrip('.')}; see `{where} --help`").exit_code
    return status if isinstance(status, int) else 0
