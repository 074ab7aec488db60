"""Commands as the command line has them, each made of what Rust declares of its question.

An option is a field of the question: its name, kind, range, default and help are the field's.
Beside them stand ``--json``, which is of every answer that has a document, and what a paper takes
of it (``PAPER``). Left out: checks, which are the question's own, and the work (``sardonyx.api``).
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich.markup import escape

from sardonyx.api.asked import schema_of
from sardonyx.cli import complete
from sardonyx.cli.common import fail, run
from sardonyx.cli.help import ALL, CONTEXT, FAR, of_command, of_group
from sardonyx.known import COMMANDS, GROUPS
from sardonyx.sizes import size_text

#: Formats of lists that one text holds whole.
ALONE = ("names", "range", "statuses")
#: The words for values of these kinds.
WORDS = {"path": "PATH", "seconds": "TIME"}
WHOLE = re.compile(r"\d{1,19}|-[1-9]\d{0,18}", re.ASCII)
#: A word that is no command's name is an argument of the group's own command: ``merge IMAGE..`` is
#: ``merge run IMAGE..``.
OWN = "run"
#: The command of a group that is meant where none is named.
MEANT = {"crash": "run", "crash-test": "search"}
JSON = "Write the same numbers as JSON to this file, or to standard output for -."

#: What a paper takes of an answer.
PAPER = {
    "table": "Write the tables to this file, as its name ends: .tex (LaTeX, booktabs), .md, or "
    ".csv of numbers, each further table to NAME-2.csv and so on.",
    "figure": "Draw the figure that the file is named after, as in write-speedup.pdf or wear-2.svg "
    "(its second view); a wrong name lists all; repeatable.",
    "figure-width": "The width of figures, as in 84mm. Default: 3.3in.",
    "figure-font": "The size of their type. Default: 8pt.",
}
HTML = "Write what is printed as a report, one HTML file."
NOTES = "Print the notes below tables: what each column means, and what was verified."


class Command(click.Command):
    """A command whose help is one screen, and all of it with ``--help-all``."""

    def __init__(self, name: str) -> None:
        schema = schema_of(name)
        said, *examples = schema["description"].split("\n\n")
        self.question = {each: schema["properties"][each] for each in schema["order"]}
        self.every = False
        self.paper = PAPER if COMMANDS[name].page else PAPER | {"html": HTML}
        params = [_param(each, of) for each, of in self.question.items()]
        if COMMANDS[name].document:
            params.append(_option(["--json"], JSON, "FILE"))
        for each, text in self.paper.items():
            word = "LENGTH" if "-" in each else "FILE"
            params.append(_option([f"--{each}"], text, word, multiple=each == "figure"))
        if COMMANDS[name].notes:
            self.paper = self.paper | {"notes": NOTES}
            params.append(_option(["--notes"], NOTES, is_flag=True))
        super().__init__(
            name.split()[-1] if name not in GROUPS else OWN,
            params=params,
            help=" ".join(said.split()),
            callback=self._run,
            context_settings=CONTEXT | self._settings(),
        )
        self.examples = [each.partition(": ")[2] for each in examples if "Example" in each]
        self.told = [escape(" ".join(each.split())) for each in examples if "Example" not in each]
        self.rare = frozenset(each for each, of in self.question.items() if "rare" in of)
        self.rare |= {each.replace("-", "_") for each in self.paper}
        self.command = name

    def _settings(self) -> dict[str, Any]:
        """Words after a program's name belong to the program."""
        if any(of.get("argument", "").startswith("--") for of in self.question.values()):
            return {"ignore_unknown_options": True, "allow_interspersed_args": False}
        return {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        self.every = ALL in args
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(of_command(self, ctx))

    def _run(self, **values: Any) -> None:
        ctx = click.get_current_context()
        given = {
            name: _value(self.question[name], value)
            for name, value in values.items()
            if name in self.question and _said(ctx, name)
        }
        paper = {each: values[each.replace("-", "_")] for each in self.paper}
        paper = {each: value for each, value in paper.items() if value not in (None, (), False)}
        run(self.command, self.question, given, values.get("json"), paper)


class Group(click.Group):
    """The commands that begin with one word, each made when it is asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(name, help=GROUPS[name], context_settings=CONTEXT, no_args_is_help=True)
        made = (command.partition(" ") for command in COMMANDS)
        self.words = [word or OWN for group, _, word in made if group == name]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.name in COMMANDS and (not args or args[0] not in self.words):
            args = [OWN, *(args or ["--help"])]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in self.words and self.name in MEANT:
            raise fail(f"{args[0]}: {_remedy(str(self.name), args)}")
        return super().resolve_command(ctx, args)

    def list_commands(self, _: click.Context) -> list[str]:
        return self.words

    def get_command(self, _: click.Context, word: str) -> click.Command | None:
        return Command(self._command(word)) if word in self.words else None

    def _command(self, word: str) -> str:
        return f"{self.name} {word}" if f"{self.name} {word}" in COMMANDS else str(self.name)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = {word: schema_of(self._command(word))["description"] for word in self.words}
        formatter.write(of_group(self, ctx, lines))


def _remedy(group: str, words: list[str]) -> str:
    """What to write instead of a program or a recording that no command stands before."""
    if group == "crash" and (words[0].endswith(".parquet") or os.path.isfile(words[0])):
        return (
            f"is a file, and {group} takes programs (see sardonyx programs); for a recording of a "
            f"real program: sardonyx crash-test search {shlex.quote(words[0])} --pool FILE "
            "--recover 'CMD {pool}'"
        )
    return f"is no command of {group}; give {shlex.join(['sardonyx', group, MEANT[group], *words])}"


def _said(ctx: click.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    given = source is not None and source.name == "COMMANDLINE"
    return given and ctx.params[name] != ()


def _param(name: str, of: Mapping[str, Any]) -> click.Parameter:
    kinds = of.get("type", "string")
    several = "array" in kinds and of.get("format") not in ALONE
    if "argument" in of:
        return click.Argument(
            [name],
            metavar=of["argument"],
            nargs=-1 if several else 1,
            required="needed" in of,
            shell_complete=_completing(name, of),
        )
    long = of.get("called", name).replace("_", "-")
    names = [f"--{long}", *([f"-{of['short']}"] if "short" in of else [])]
    names += [f"--{of['also']}"] if "also" in of else []
    if "boolean" in kinds:
        if of.get("default", False) is not False:
            names[0] += f"/--no-{long}"
        return _option(
            [*names, name], of.get("description", ""), is_flag=True, default=of.get("default")
        )
    plain = {"integer": "N", "number": "X"}
    item = of["items"] if several else of
    inner = item.get("type", "string")
    word = WORDS.get(item.get("format", ""))
    word = word or next((plain[k] for k in plain if k in inner and "string" not in inner), None)
    return _option(
        [*names, name],
        of.get("description", ""),
        of.get("value") or word or long.rpartition("-")[2].upper(),
        multiple=several,
        shell_complete=_completing(name, of),
        required="needed" in of,
    )


def _option(
    names: Sequence[str], text: str, metavar: str | None = None, **how: Any
) -> click.Option:
    return click.Option(names, help=" ".join(text.split()), metavar=metavar, **how)


def _completing(name: str, of: Mapping[str, Any]) -> Any:
    def completed(ctx: click.Context, _: click.Parameter, word: str) -> list[CompletionItem]:
        if name in complete.BY_PARAMETER:
            found = complete.BY_PARAMETER[name](ctx, word)
        else:
            found = [each for each in complete.listed(of) if each.startswith(word)]
        return [CompletionItem(each) for each in found] or [CompletionItem(word, type="file")]

    return completed


def _value(of: Mapping[str, Any], value: Any) -> Any:
    """A value of the command line as JSON has it; what is no number stays text, and is refused."""
    if isinstance(value, tuple):
        return [_value(of["items"], each) for each in value]
    kinds = of.get("type", "string")
    if not isinstance(value, str) or "string" in kinds or "array" in kinds:
        return value
    if WHOLE.fullmatch(value):
        return int(value)
    try:
        number = float(value) if value.isascii() else math.nan
    except ValueError:
        return value
    plain = math.isfinite(number) and "number" in kinds and not (number == 0 and value[0] == "-")
    return number if plain else value


def row(param: click.Parameter, of: Mapping[str, Any]) -> str:
    """What help says of a parameter: its text, its range, its default."""
    if ALL in param.opts:
        return "This help; all options."
    text = (getattr(param, "help", None) or " ".join(of.get("description", "").split())).strip()
    item = of.get("items", {}) if isinstance(of.get("items"), dict) else {}
    low, high = of.get("minimum", item.get("minimum")), of.get("maximum", item.get("maximum"))
    if high is not None and high < FAR:
        text += f" {low:,} to {high:,}." if low is not None else f" At most {high:,}."
    default = of.get("default")
    if isinstance(default, bool) or default in (None, [], "", {}):
        return text
    if of.get("format") == "range":
        default = "-".join(re.sub(r"e\+0?", "e", f"{end:g}") for end in dict.fromkeys(default))
    elif isinstance(default, list):
        default = ",".join(map(str, default))
    elif of.get("format") == "bytes":
        default = size_text(default)
    elif of.get("format") == "seconds":
        default = f"{default:g}s"
    return f"{text} Default: {default}."
