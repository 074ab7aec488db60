"""Writes what Python is told of the questions that Rust declares.

``python/sardonyx/questions.py`` has what the native module is asked (``_core.questions()``, listed
in ``crates/native/src/questions.rs``). Of the commands (``_core.commands()``) there is no source in
Python: ``api/asked.pyi`` tells a type checker what each is asked, and ``api/__init__.pyi`` what
function it is. A test fails while a file is not what Rust says; run this then.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.answer import module_of
from sardonyx.api import SHORT
from sardonyx.api.asked import schema_of
from sardonyx.api.command import class_of, order_of
from sardonyx.api.saved import QUESTIONS
from sardonyx.known import COMMANDS

PACKAGE = Path(__file__).parents[1] / "python/sardonyx"
HEAD = '''"""What the native module is asked, as Rust declares it: written by tools/questions.py.

A type is one JSON document. What may be left out has its default here, as it has there.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from sardonyx.values import Value
'''
ASKED = '''"""What each command is asked, as Rust declares it: written by tools/questions.py."""

from pathlib import Path
from typing import Any, Literal, Self

class Asked:
    command: str
    def json(self) -> str: ...
    def replace(self, **changes: Any) -> Self: ...

def schema_of(command: str) -> dict[str, Any]: ...
def whole(command: str, given: str) -> Any: ...
'''
API = '''# ruff: noqa: A002 - parameters have the options' names
"""The commands as functions, as Rust declares them: written by tools/questions.py."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from sardonyx.answer import Answer as Answer
from sardonyx.answer import Listed as Listed
from sardonyx.runs.results import Results
from sardonyx.runs.scheduler import Watch

DESIGNS: tuple[str, ...]
SHORT: dict[str, str]
#: A word or a path, and several of them: one alone stands for a list of one.
Text: TypeAlias = str | os.PathLike[str]
#: A path, or results that are not saved.
Place: TypeAlias = Text | Results
Texts: TypeAlias = Text | Sequence[Text]

class Frame(Protocol):
    """A data frame of pandas or polars, or a table of Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

#: Traces, as files or as frames, which may have names.
Traces: TypeAlias = Text | Frame | Sequence[Text | Frame] | Mapping[str, Frame]
#: Keys and their values, or texts KEY=VALUE.
Pairs: TypeAlias = Mapping[str, str | int | float | bool] | Texts

def load(path: Text) -> Results: ...
def synth(name: str, records: int | None = None, seed: int | None = None) -> str: ...
def call(command: str, *words: Any, **options: Any) -> Any: ...
def record(*program: Text, **options: Any) -> Answer: ...
def crash_files(*program: Text, **options: Any) -> Answer: ...
'''
#: How a command's parameter is written whose kind is not one of JSON's.
KINDS = {
    "bytes": "int | str",
    "document": "Text | Mapping[str, Any]",
    "machine": "Text | Mapping[str, Any]",
    "names": "Texts",
    "pairs": "Pairs",
    "path": "Place",
    "statuses": "str | int | Sequence[int]",
    "range": "float | str | tuple[float, float]",
    "seconds": "float | str",
}
#: The same in the whole question.
HELD = {
    "document": "str | dict[str, Any]",
    "path": "Path",
    "range": "tuple[float, float]",
    "statuses": "tuple[int, ...]",
    "seconds": "float",
    "bytes": "int",
    "names": "tuple[str, ...]",
    "pairs": "tuple[tuple[str, str], ...]",
}
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 100
Schema = Mapping[str, Any]


def pages() -> dict[Path, str]:
    """The files and what they hold."""
    questions: dict[str, Schema] = json.loads(_core.questions())
    commands = {each: schema_of(each) for each in sorted({*_core.commands(), *QUESTIONS})}
    return {
        PACKAGE / "questions.py": HEAD + "".join(f"\n\n{part}" for part in _parts(questions)),
        PACKAGE / "api/asked.pyi": ASKED + _classes(commands),
        PACKAGE / "api/__init__.pyi": API
        + "".join(_function(*each) for each in commands.items())
        + "".join(f"\n{short} = {name}" for short, name in SHORT.items())
        + "\n",
    }


def _classes(commands: Mapping[str, Schema]) -> str:
    """The questions of all commands; empty ones stand together."""
    text = "".join(f"\n{_asked(*each)}" for each in commands.items())
    return re.sub(r"(: \.\.\.\n)\n(?=class \w+\(Asked\): \.\.\.)", r"\1", text)


def _asked(command: str, schema: Schema) -> str:
    """What a command is asked, whole: the type of its answer's question."""
    fields = schema["properties"]
    parts = [f"    {each}: {_held(fields[each])}\n" for each in schema["order"]]
    return f"class {class_of(command)}(Asked):" + ("\n" + "".join(parts) if parts else " ...\n")


def _held(schema: Schema) -> str:
    """A parameter's type in the whole question."""
    if kind := HELD.get(schema.get("format", "")):
        return kind + (" | None" if "null" in schema["type"] else "")
    if "anyOf" in schema:
        return " | ".join(map(_held, schema["anyOf"]))
    if words := _words(schema):
        return f"Literal[{', '.join(map(_literal, words))}]"
    if schema.get("type") == "array":
        return f"tuple[{_held(schema['items'])}, ...]"
    return _type(schema)


def _function(command: str, schema: Schema) -> str:
    """A command's parameters, as the head of a function."""
    fields = schema["properties"]
    text = f"def {command.replace(' ', '_').replace('-', '_')}(\n"
    positional, rest = order_of(command)
    for name in [*positional, "*", *rest]:
        if name == "*":
            text += "    *,\n"
            continue
        kind, default = _parameter(fields[name]), ""
        if name == "traces" and kind == "Texts":
            kind = "Traces"
        if kind.startswith("Place") and "argument" not in fields[name]:
            kind = kind.replace("Place", "Text", 1)
        if "needed" not in fields[name]:
            value = fields[name].get("default")
            default = f" = {_literal(value)}"
            if value is None and not kind.endswith("None"):
                kind += " | None"
        line = f"    {name}: {kind}{default},\n"
        if len(line) > WIDTH + 1 and kind.startswith("Literal["):
            line = f"    {name}: Literal[\n        {kind[8:-1]}\n    ]{default},\n"
        text += line
    known = COMMANDS.get(command)
    made = module_of(command).answer.__annotations__["return"] if known else "Answer"
    made = made if made in ("Answer", "Listed", "Results") else "Answer"
    return text + f"    watch: Watch | None = None,\n) -> {made}: ...\n"


def _parameter(schema: Schema) -> str:
    """A parameter's type: what may be given, and not what is made of it."""
    if kind := KINDS.get(schema.get("format", "")):
        return kind + (" | None" if "null" in schema["type"] else "")
    if "anyOf" in schema:
        return " | ".join(map(_parameter, schema["anyOf"]))
    if words := _words(schema):
        return f"Literal[{', '.join(map(_literal, words))}]"
    if schema.get("type") == "array":
        inner = _parameter(schema["items"])
        return "Texts" if inner == "str" else f"{inner} | Sequence[{inner}]"
    return _type(schema)


def _parts(schemas: Mapping[str, Schema]) -> Iterator[str]:
    """Every type, after those that it names."""
    done: set[str] = set()

    def of(name: str) -> Iterator[str]:
        if name in done:
            return
        done.add(name)
        for other in sorted(set(re.findall(r"#/\$defs/(\w+)", json.dumps(schemas[name])))):
            yield from of(other)
        yield from _declared(name, schemas[name])

    for name in schemas:
        yield from of(name)


def _declared(name: str, schema: Schema) -> Iterator[str]:
    choices = schema.get("oneOf", [])
    if any("properties" in choice for choice in choices):
        for choice in choices:
            yield _class(choice["title"], choice)
        union = " | ".join(choice["title"] for choice in choices)
        line = f"{name}: TypeAlias = {union}"
        yield _comment(schema.get("description", "")) + f"{line}\n"
    elif words := _words(schema):
        yield _comment(schema.get("description", "")) + (
            f"{name}: TypeAlias = Literal[{', '.join(map(_literal, words))}]\n"
        )
    else:
        yield _class(name, schema)


def _words(schema: Schema) -> list[str]:
    """The words of a type that is one of a few; those with help of their own stand one by one."""
    told = [word for choice in schema.get("oneOf", []) for word in _words(choice)]
    return [*schema.get("enum", []), *told, *([schema["const"]] if "const" in schema else [])]


def _class(name: str, schema: Schema) -> str:
    fields = schema["properties"]
    required = schema.get("required", [])
    text = f"class {name}(Value):\n{_docstring(schema['description'])}\n"
    for field in sorted(fields, key=lambda each: (each not in required, each)):
        text += _comment(fields[field].get("description", ""), "    ")
        text += f"    {field}: {_type(fields[field])}{_default(field, fields[field], required)}\n"
    return text


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "const" in schema:
        return f"Literal[{_literal(schema['const'])}]"
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    kind = schema["type"]
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": each}) for each in kind)
    if kind != "array":
        return PLAIN[kind]
    if "prefixItems" in schema:
        return f"tuple[{', '.join(map(_type, schema['prefixItems']))}]"
    return f"tuple[{_type(schema['items'])}, ...]"


def _default(name: str, schema: Schema, required: list[str]) -> str:
    if "const" in schema:
        return f" = {_literal(schema['const'])}"
    if name in required:
        return ""
    empty: Any = [] if schema.get("type") == "array" else None  # what Rust cannot write as JSON
    return f" = {_literal(schema.get('default', empty))}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        inner = ", ".join(map(_literal, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def _wrapped(text: str, width: int) -> list[str]:
    """Rust's words: one paragraph, its marks of code doubled."""
    plain = " ".join(re.sub(r"`([^`]*)`", r"``\1``", text).split())
    return textwrap.wrap(plain, width, break_long_words=False, break_on_hyphens=False)


def _comment(text: str, indent: str = "") -> str:
    lines = _wrapped(text, WIDTH - len(indent) - 3)
    return "".join(f"{indent}#: {line}\n" for line in lines)


def _docstring(text: str) -> str:
    if len(lines := _wrapped(text, WIDTH - 10)) == 1:
        return f'    """{lines[0]}"""\n'
    return '    """' + "\n    ".join(_wrapped(text, WIDTH - 7)) + '\n    """\n'


if __name__ == "__main__":
    for path, page in pages().items():
        path.write_text(page, encoding="utf-8")
