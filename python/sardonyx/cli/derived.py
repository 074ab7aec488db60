"""Commands as the command line has them, each made of what Rust declares of its question.

An option is a field of the question: its name, kind, range, default and help are the field's.
Beside them stand ``--out`` and ``--json``, which are for every answer that can be kept. Left out:
checks, which are the question's own, and the work (``sardonyx.api``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich.markup import escape

from sardonyx import _core
from sardonyx.api.known import COMMANDS
from sardonyx.cli import complete
from sardonyx.cli.common import (
    check_json_target,
    err,
    errors_as_lines,
    for_people,
    note,
    output_directory,
    path_given,
    write_json,
)
from sardonyx.cli.help import ALL, CONTEXT, FAR, of_command
from sardonyx.sizes import size_text

WHOLE = re.compile(r"\d{1,19}|-[1-9]\d{0,18}", re.ASCII)
#: The words for values of these kinds.
WORDS = {"path": "PATH", "seconds": "TIME"}
JSON = "Write the same numbers as JSON to this file, or to standard output for -."


class Command(click.Command):
    """A command whose help is one screen, and all of it with ``--help-all``."""

    def __init__(self, name: str) -> None:
        schema = json.loads(_core.command(name))
        said, *examples = schema["description"].split("\n\n")
        self.question = {each: schema["properties"][each] for each in schema["order"]}
        self.line, self.every = COMMANDS[name], False
        self.json = "beside" if "beside" in self.question else "json"  # what lies beside the file
        params = [_param(each, of) for each, of in self.question.items() if each != self.json]
        if self.line.out:
            params.append(_option(["-o", "--out"], self.line.out, "PATH"))
        if self.line.document:
            params.append(_option(["--json", self.json], JSON, "FILE"))
        super().__init__(
            name.split()[-1],
            params=params,
            help=" ".join(said.split()),
            callback=self._run,
            context_settings=CONTEXT | self._settings(),
        )
        self.examples = [each.partition(": ")[2] for each in examples if "Example" in each]
        self.told = [escape(" ".join(each.split())) for each in examples if "Example" not in each]
        self.rare = frozenset(each for each, of in self.question.items() if "rare" in of)
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

    def _run(self, **values: Any) -> int:
        ctx = click.get_current_context()
        given = {
            name: _value(self.question[name], value)
            for name, value in values.items()
            if name in self.question and _said(ctx, name)
        }
        with errors_as_lines():
            out = values.get("out") if self.line.out else None
            return self._answer(given, out, values.get(self.json))

    def _answer(self, given: Mapping[str, Any], out: str | None, to: str | None) -> int:
        from sardonyx.api.command import module_of
        from sardonyx.cli.places import check_replaced
        from sardonyx.cli.progress import Watcher

        name = self.command.replace(" ", "_").replace("-", "_")
        ask = getattr(import_module("sardonyx.api"), name).ask
        check_json_target(to, self._sources(given))
        people, folder = for_people(to), None if out is None else path_given(out)
        if folder is not None:
            check_replaced(folder, module_of(self.command).FILE)
        with nullcontext() if folder is None else output_directory(folder):
            try:
                with Watcher(err, self.line.unit) as watch:
                    answer = ask(given, watch)
            except Exception as error:
                if (answer := getattr(error, "answer", None)) is not None:
                    answer.tell(people)
                raise
            report = None if folder is None else answer.save(folder)
        for line in answer.notes:
            note(line)
        answer.tell(people)
        if report is not None:
            people.print(f"report: {report}", soft_wrap=True)
        write_json(to, answer.document() if to is not None else {})
        return int(answer.status)

    def _sources(self, given: Mapping[str, Any]) -> list[str]:
        """The files that its arguments name: ``--json`` may not replace them."""
        words = [given.get(name, ()) for name, of in self.question.items() if "argument" in of]
        texts = [each for word in words for each in ([word] if isinstance(word, str) else word)]
        return [each for each in texts if Path(each).is_file()]


def _said(ctx: click.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    given = source is not None and source.name == "COMMANDLINE"
    return given and ctx.params[name] != ()


def _param(name: str, of: Mapping[str, Any]) -> click.Parameter:
    kinds = of.get("type", "string")
    several = "array" in kinds and "string" not in kinds
    if "argument" in of:
        return click.Argument(
            [name],
            metavar=of["argument"],
            nargs=-1 if several else 1,
            required="needed" in of,
            shell_complete=_completing(name),
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
        shell_complete=_completing(name),
        required="needed" in of,
    )


def _option(
    names: Sequence[str], text: str, metavar: str | None = None, **how: Any
) -> click.Option:
    return click.Option(names, help=" ".join(text.split()), metavar=metavar, **how)


def _completing(name: str) -> Any:
    found = complete.BY_PARAMETER.get(name)
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
    if isinstance(default, list):
        default = ",".join(map(str, default))
    elif of.get("format") == "bytes":
        default = size_text(default)
    elif of.get("format") == "seconds":
        default = f"{default:g}s"
    return f"{text} Default: {default}."
