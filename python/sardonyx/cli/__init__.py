"""The command line: ``sardonyx`` and its commands, each made of its question when it is asked for.

Standard output carries results, standard error progress and errors. The commands are those of
``sardonyx.known``. Left out: everything that computes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from sardonyx import _core
from sardonyx.api.asked import schema_of
from sardonyx.cli.common import BAD_INPUT, INTERRUPTED, LEFT_BY_SIGNAL, fail, out
from sardonyx.cli.derived import Command, Group
from sardonyx.cli.help import CONTEXT, first_line, of_group
from sardonyx.cli.terminal import discard, write_in_any_encoding
from sardonyx.known import COMMANDS, GROUPS
from sardonyx.signals import Ended, handle_signals

#: Where each shell looks for what completes a program's words, below the user's home.
COMPLETIONS = {
    "bash": ".local/share/bash-completion/completions/sardonyx",
    "fish": ".config/fish/completions/sardonyx.fish",
    "zsh": ".zfunc/_sardonyx",
}


class Commands(click.Group):
    """The first words of all commands."""

    def list_commands(self, _: click.Context) -> list[str]:
        return [*dict.fromkeys(command.split()[0] for command in COMMANDS)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in GROUPS:
            return Group(name)
        return Command(name) if name in COMMANDS else None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = {name: line_of(name) for name in self.list_commands(ctx)}
        formatter.write(of_group(self, ctx, lines))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        fitting = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=line_of(name)) for name in fitting]
        return items or super().shell_complete(ctx, incomplete)


def line_of(name: str) -> str:
    """What the list of commands says of one."""
    return GROUPS.get(name) or first_line(schema_of(name)["description"])


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        out.print(f"sardonyx {_core.VERSION}")
        ctx.exit()


def _install(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    shell = Path(os.environ.get("SHELL", "bash")).name
    kind = get_completion_class(shell)
    if kind is None or shell not in COMPLETIONS:
        raise fail(f"{shell}: is not a shell that we complete for; those are bash, fish and zsh")
    place = Path.home() / COMPLETIONS[shell]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(kind(app, {}, "sardonyx", "_SARDONYX_COMPLETE").source(), encoding="utf-8")
    out.print(f"{place}: is written; open a new {shell}", soft_wrap=True)
    if shell == "zsh":
        out.print("~/.zshrc needs `fpath+=~/.zfunc; autoload -Uz compinit; compinit`")
    ctx.exit()


app = Commands(
    "sardonyx",
    help="Simulate persistent, encrypted, deduplicated main memory, with every byte real.",
    context_settings=CONTEXT,
    no_args_is_help=True,
    params=[
        click.Option(
            ["--version"], is_flag=True, callback=_version, is_eager=True, expose_value=False,
            help="Print the version.",
        ),
        click.Option(
            ["--install-completion"], is_flag=True, callback=_install, is_eager=True,
            expose_value=False, help="Have the shell complete commands and names.",
        ),
    ],
)  # fmt: skip


def main(interrupted_by: Any = signal.default_int_handler) -> None:
    """The command line: everything that ends it becomes one line and an exit status.

    ``interrupted_by`` handles Ctrl-C where that can be told: not before work begins, nor after it.
    """
    handle_signals()
    write_in_any_encoding()
    status = _run(interrupted_by)
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


def _run(interrupted_by: Any = signal.default_int_handler) -> int:
    for argument in sys.argv[1:]:
        shown = argument.encode(errors="backslashreplace").decode()
        if shown != argument:  # reports and JSON cannot have it
            return fail(f"{shown}: is not UTF-8; rename the file").exit_code
    try:
        before = signal.signal(signal.SIGINT, interrupted_by)
        status: Any = app.main(prog_name="sardonyx", standalone_mode=False)
        signal.signal(signal.SIGINT, before)
    except click.exceptions.Exit as end:
        return end.exit_code
    except Ended as error:
        return fail(f"ended by {error}", LEFT_BY_SIGNAL + error.signal).exit_code
    except (click.Abort, KeyboardInterrupt):
        return fail("interrupted", INTERRUPTED).exit_code
    except RuntimeError as error:  # so Python 3.11 wraps what comes while it makes a class
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return fail("interrupted", INTERRUPTED).exit_code
    except SystemExit:  # Rich, when nobody reads the help
        return 0
    except OSError as error:  # help or the version, to where nothing can be written
        discard(sys.stdout)
        return fail(f"standard output: {error.strerror}").exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(f"{error.format_message()}\n")
        return BAD_INPUT
    except click.ClickException as error:
        # The parser of the command line has found an unknown option or a missing argument.
        context = getattr(error, "ctx", None)
        where = getattr(context, "command_path", "sardonyx")
        return fail(f"{error.format_message().rstrip('.')}; see `{where} --help`").exit_code
    return status if isinstance(status, int) else 0
