"""Help in one screen: what a command does, examples, and the options that most callers need.

Options that a command's ``@rare`` names are left to ``--help-all``. Types are plain words: ``N``
is a whole number, ``X`` any number, and a switch has none. Typer's own help has boxes and ranges
of 64 bits, which took twice the lines.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from sardonyx.cli.plain import read_plainly

F = TypeVar("F", bound=Callable[..., Any])
ALL = "--help-all"
NAMES = ["-h", "--help", ALL]
CONTEXT: dict[str, Any] = {"help_option_names": NAMES}
#: The most columns of help.
WIDEST = 100
#: A bound beyond this is the machine's and no limit that a user meets.
FAR = 2**31


def rare(*names: str) -> Callable[[F], F]:
    """Leave these parameters of a command to ``--help-all``."""

    def mark(command: F) -> F:
        command.rare = frozenset(names)  # type: ignore[attr-defined]
        return command

    return mark


class Command(TyperCommand):
    """A command whose help is one screen, and all of it with ``--help-all``."""

    #: Parameters that only ``--help-all`` lists.
    rare: frozenset[str] = frozenset()
    every = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        self.every = ALL in args
        read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        left = frozenset() if self.every else self.rare
        formatter.write(_text([*_about(self, ctx), *_options(self.get_params(ctx), left)]))


class Group(TyperGroup):
    """Commands below a name; help lists each with its line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, self.line(ctx, name)) for name in self.list_commands(ctx)]
        heading = Text("\nCommands", style="bold")
        parts = [*_about(self, ctx), heading, _columns(rows)]
        formatter.write(_text([*parts, *_options(self.get_params(ctx), frozenset())]))

    def line(self, ctx: Any, name: str) -> str:
        """What the list of commands says of one."""
        return first_line(getattr(self.get_command(ctx, name), "help", "") or "")


def first_line(text: str) -> str:
    """The first paragraph of a command's help, in one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _text(parts: Iterable[RenderableType]) -> str:
    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(Lines(*parts), width=min(console.width, WIDEST))
    lines = captured.get().splitlines()
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")


def _about(command: Any, ctx: Any) -> list[RenderableType]:
    pieces = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    usage = re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), pieces)
    parts: list[RenderableType] = [Text.assemble(("Usage: ", "bold"), usage)]
    said = [*inspect.cleandoc(command.help or "").split("\n\n")]
    said += [command.epilog] if command.epilog else []
    for paragraph in filter(None, said):
        line = " ".join(paragraph.split())
        if line.startswith("sardonyx "):  # an example stands below its heading
            parts.append(Padding(Text(line), (0, 0, 0, 2)))
        else:
            parts += [Text(), Text.from_markup(line)]
    return parts


def _options(params: Sequence[Any], rare: Collection[str]) -> list[RenderableType]:
    shown = [param for param in params if not param.hidden]
    usual = [param for param in shown if param.name not in rare]
    left = len(shown) - len(usual)
    parts: list[RenderableType] = []
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        rows = [_row(param) for param in usual if param.param_type_name == kind]
        if rows:
            parts += [Text(f"\n{title}", style="bold"), _columns(rows)]
    return parts + _more(left)


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
    parts = [*_about(group, ctx), Text("\nCommands", style="bold"), _columns(rows)]
    return _text([*parts, *_options(group.get_params(ctx), frozenset())])


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


def _row(param: Any) -> tuple[str, str]:
    if param.param_type_name == "argument":
        return param.metavar or param.display_name_raw.upper(), _told(param)
    if ALL in param.opts:
        return f"-h, --help, {ALL}", "This help; all options."
    names = sorted(param.opts, key=len) + list(param.secondary_opts)
    return " ".join([", ".join(names), *filter(None, [_kind(param)])]), _told(param)


def _kind(param: Any) -> str:
    """The word after the option in help; empty for a switch."""
    if param.is_flag:
        return ""
    if param.metavar:
        return str(param.metavar)
    annotation = getattr(param.type_descriptor, "annotation", str)
    plain: dict[Any, str] = {int: "N", float: "X", Path: "PATH"}
    return plain.get(annotation) or re.sub(r".*-", "", max(param.opts, key=len)).upper()


def _told(param: Any) -> str:
    text = (param.help or "").strip()
    low, high = getattr(param, "min", None), getattr(param, "max", None)
    if high is not None and high < FAR:
        text += f" {low:,} to {high:,}." if low is not None else f" At most {high:,}."
    given = param.default
    told = not param.is_flag if hasattr(param, "is_flag") else True
    if told and given not in (None, "", ()) and not callable(given) and not param.required:
        text += f" Default: {given}."
    return text
