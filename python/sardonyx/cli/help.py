"""Help in one screen: what a command does, examples, and the options that most callers need.

Options that a question calls rare are left to ``--help-all``. Types are plain words: ``N`` is a
whole number, ``X`` any number, and a switch has none.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

ALL = "--help-all"
NAMES = ["-h", "--help", ALL]
CONTEXT: dict[str, Any] = {"help_option_names": NAMES}
#: The most columns of help.
WIDEST = 100
#: A bound beyond this is the machine's and no limit that a user meets.
FAR = 2**31


def first_line(text: str) -> str:
    """The first paragraph of a command's help, in one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _text(parts: Iterable[RenderableType]) -> str:
    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(Lines(*parts), width=min(console.width, WIDEST))
    lines = captured.get().splitlines()
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")


def of_command(command: Any, ctx: Any) -> str:
    """The help of a command that is made of its question (``derived``)."""
    from sardonyx.cli.derived import row

    left = frozenset() if command.every else command.rare
    pieces = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    parts: list[RenderableType] = [Text.assemble(("Usage: ", "bold"), pieces)]
    parts += [part for line in (escape(command.help), *command.told) for part in _paragraph(line)]
    if command.examples:
        parts += [Text("\nExamples", style="bold")]
        parts += [Padding(Text(line), (0, 0, 0, 2)) for line in command.examples]
    shown = [each for each in command.get_params(ctx) if each.name not in left]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    for title, params in (
        ("Arguments", arguments),
        ("Options", [each for each in shown if each not in arguments]),
    ):
        rows = [(_names(each), row(each, command.question.get(each.name, {}))) for each in params]
        if rows:
            parts += [Text(f"\n{title}", style="bold"), _columns(rows)]
    return _text([*parts, *_more(len(left))])


def of_group(group: Any, ctx: Any, lines: Mapping[str, str]) -> str:
    """The help of the commands that begin with one word."""
    rows = [(word, first_line(text)) for word, text in lines.items()]
    options = [
        (_names(each), "This help; all options." if ALL in each.opts else each.help)
        for each in group.get_params(ctx)
    ]
    usage = " ".join([ctx.command_path, *group.collect_usage_pieces(ctx)])
    return _text(
        [
            Text.assemble(("Usage: ", "bold"), usage),
            *_paragraph(escape(group.help)),
            Text("\nCommands", style="bold"),
            _columns(rows),
            Text("\nOptions", style="bold"),
            _columns(options),
        ]
    )


def _paragraph(line: str) -> list[RenderableType]:
    return [Text(), Text.from_markup(line)]


def _more(left: int) -> list[RenderableType]:
    said = f"\n{ALL} lists {left} more, which few callers need."
    return [Text(said, style="dim")] if left else []


def _names(param: Any) -> str:
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    if ALL in param.opts:
        return f"-h, --help, {ALL}"
    names = sorted(param.opts, key=len) + list(param.secondary_opts)
    return " ".join([", ".join(names), *filter(None, [param.metavar])])


def _columns(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 0, 0, 2), pad_edge=True)
    table.add_column(overflow="fold", no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, text)
    return table
