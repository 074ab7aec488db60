"""Commands as the command line has them, each made of what Rust declares of its question.

An option is a field of the question: its name, kind, range, default and help are the field's.
Beside them stand ``--out`` and ``--json``, which are for every answer that can be kept. Left out:
checks, which are the question's own, and the work (``sardonyx.api``).
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, _resolve_incomplete
from rich.markup import escape

from sardonyx import _core
from sardonyx._core import SardonyxError
from sardonyx.api.known import COMMANDS, GROUPS
from sardonyx.cli import complete
from sardonyx.cli.common import (
    check_json_target,
    err,
    errors_as_lines,
    fail,
    for_people,
    note,
    output_directory,
    path_given,
    write_json,
)
from sardonyx.cli.help import ALL, CONTEXT, FAR, Group, of_command
from sardonyx.runs.recordings import path_of
from sardonyx.sizes import size_text

WHOLE = re.compile(r"\d{1,19}|-[1-9]\d{0,18}", re.ASCII)
#: Words after the name of a program are the program's.
PROGRAM = {"ignore_unknown_options": True, "allow_interspersed_args": False}
#: Formats that a list may have, and that one text has too.
ALONE = ("names", "range")
JSON = "Write the same numbers as JSON to this file, or to standard output for -."


class Command(click.Command):
    """A command whose help is one screen, and all of it with ``--help-all``."""

    def __init__(self, name: str) -> None:
        schema = json.loads(_core.command(name))
        said, *examples = schema["description"].split("\n\n")
        self.question = {each: schema["properties"][each] for each in schema["order"]}
        self.line, self.every = COMMANDS[name], False
        self.words: list[str] = []
        params = [_param(each, of) for each, of in self.question.items()]
        if self.line.out:
            params.append(_option(["-o", "--out"], self.line.out, "PATH"))
        if self.line.document:
            params.append(_option(["--json"], JSON, "FILE"))
        super().__init__(
            name.split()[-1],
            params=params,
            help=" ".join(said.split()),
            callback=self._run,
            context_settings=CONTEXT | (PROGRAM if _takes_program(self.question) else {}),
        )
        self.examples = [each.partition(": ")[2] for each in examples if "Example" in each]
        paragraphs = [" ".join(each.split()) for each in examples if "Example" not in each]
        self.told = list(map(escape, paragraphs))
        self.rare = frozenset(each for each, of in self.question.items() if "rare" in of)
        self.command = name

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        self.every, self.words = ALL in args, list(args)
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Typer, which asks, finds only parameters of its own kinds."""
        found, word = _resolve_incomplete(ctx, self.words, incomplete)
        if found is self:
            return super().shell_complete(ctx, word)
        return found.shell_complete(ctx, word)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(of_command(self, ctx))

    def _run(self, **values: Any) -> int:
        ctx = click.get_current_context()
        given = {
            name: _value(self.question[name], value)
            for name, value in values.items()
            if name in self.question and _said(ctx, name)
        }
        with errors_as_lines():
            return self._answer(given, values.get("out"), values.get("json"))

    def _answer(self, given: Mapping[str, Any], out: str | None, to: str | None) -> int:
        from sardonyx.api.command import module_of
        from sardonyx.cli.places import check_replaced
        from sardonyx.cli.progress import Watcher

        name = self.command.replace(" ", "_").replace("-", "_")
        ask = getattr(import_module("sardonyx.api"), name).ask
        self._check_json(to, given)
        people = err if self.line.aside else for_people(to)
        folder = None if out is None else path_given(out)
        if folder is not None:
            check_replaced(folder, module_of(self.command).FILE)
        with nullcontext() if folder is None else output_directory(folder):
            with Watcher(err, self.line.unit, self.line.logged) as watch:
                answer = ask(given, watch)
            report = None if folder is None else answer.save(folder)
        for line in answer.notes:
            note(line)
        answer.tell(people)
        if report is not None:
            people.print(f"report: {report}", soft_wrap=True)
        write_json(to, answer.document() if to is not None else {})
        for line in getattr(answer, "errors", ()):
            fail(line)
        return int(answer.status)

    def _check_json(self, to: str | None, given: Mapping[str, Any]) -> None:
        """An error if ``--json`` would replace a file that is read, or one that is written too."""
        paths = {name for name, of in self.question.items() if of.get("format") == "path"}
        read = [name for name, of in self.question.items() if "argument" in of]
        words = [given.get(name, ()) for name in read if name not in paths]
        texts = [each for word in words for each in ([word] if isinstance(word, str) else word)]
        check_json_target(to, [each for each in map(path_of, texts) if Path(each).is_file()])
        for each in filter(None, map(given.get, paths) if to is not None else ()):
            if os.path.realpath(str(to)) == os.path.realpath(each):
                raise SardonyxError(f"--json {to}: and {each} are one file; name another")


def group(name: str) -> Group:
    """The commands below a name."""
    made = Group(name=name, help=GROUPS[name], no_args_is_help=True, context_settings=CONTEXT)
    made.rich_markup_mode = "rich"
    add_commands(made, name)
    return made


def add_commands(made: Any, name: str) -> None:
    """Put a group's commands that are made of their questions into it."""
    for command in COMMANDS:
        of, _, word = command.partition(" ")
        if of == name and word:
            made.add_command(Command(command), word)


def _takes_program(question: Mapping[str, Any]) -> bool:
    return any(str(of.get("argument")).startswith("--") for of in question.values())


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
            shell_complete=_completing(name, complete.BY_PARAMETER | complete.BY_ARGUMENT),
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
    inner = of["items"]["type"] if several else kinds
    word = next((plain[kind] for kind in plain if kind in inner and "string" not in inner), None)
    word = "PATH" if of.get("format") == "path" else word
    return _option(
        [*names, name],
        of.get("description", ""),
        of.get("value") or word or long.rpartition("-")[2].upper(),
        multiple=several,
        shell_complete=_completing(name, complete.BY_PARAMETER),
        required="needed" in of,
    )


def _option(
    names: Sequence[str], text: str, metavar: str | None = None, **how: Any
) -> click.Option:
    return click.Option(names, help=" ".join(text.split()), metavar=metavar, **how)


def _completing(name: str, by_name: Mapping[str, Any]) -> Any:
    found = by_name.get(name)
    if found is None:
        return None

    def completed(ctx: click.Context, _: click.Parameter, word: str) -> list[CompletionItem]:
        return [CompletionItem(each) for each in found(ctx, word)]

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
        number = float(value)
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
    return f"{text} Default: {default}."
