"""Commands as functions: what is given goes to the native module, which has declared it.

:func:`function_of` makes a function of a command: Rust checks what is given and completes it
(``asked``), the command's module (``known``) answers. The command line prints the answer.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sardonyx import _core, places
from sardonyx._core import SardonyxError
from sardonyx.answer import ASKED, UNREADABLE, module_of
from sardonyx.api.asked import schema_of, whole
from sardonyx.files import FileError
from sardonyx.known import COMMANDS
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch

#: Types of parameters that are lists, and do not take one text for all.
LISTS = ("array", ["array", "object"])


def class_of(command: str) -> str:
    """The name of a command's question as a class."""
    return "".join(word.title() for word in re.split("[ -]", command))


def function_of(command: str) -> Callable[..., Any]:
    """A command as a function with the parameters that Rust declares: an option of ``None`` is left
    out, one string or path stands for a list of one, and a mapping for KEY=VALUE pairs.

    Its ``watch`` is called a few times a second with the tasks that run. An interrupt ends it.
    What is wrong is a ``SardonyxError`` in the words of the parameters.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        unknown = [name for name in kwargs if name not in signature.parameters]
        if unknown:
            near = difflib.get_close_matches(unknown[0], list(signature.parameters), n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise SardonyxError(f"{unknown[0]}: {command} has no such parameter{meant}")
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise SardonyxError(f"{command}: {error}; see help({call.__name__})") from error
        watch = given.pop("watch", None)
        try:
            with _filed(given) as words:
                answer = ask(command, _listed(words, fields), watch)
            if answer.status == UNREADABLE and answer.errors:
                raise SardonyxError(answer.errors[-1])
            return answer
        except (SardonyxError, FileError) as error:
            option = re.compile(r"--(?:no-)?([a-z][a-z-]*)")
            called = {of["called"]: name for name, of in fields.items() if "called" in of}
            said = option.sub(
                lambda found: called.get(found[1], found[1].replace("-", "_")), str(error)
            )
            if said == str(error):
                raise
            raise SardonyxError(said) from error

    fields = schema_of(command)["properties"]
    signature = inspect.Signature(list(_parameters(command)))
    call.__name__ = call.__qualname__ = re.sub("[ -]", "_", command)
    call.__module__, call.__doc__ = "sardonyx.api", _told(command)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def call(command: str, *words: Any, **options: Any) -> Any:
    """Run a command, as in ``call("crash stages", "btree", designs="sca")``; the last argument of
    a command takes the words that are left.
    """
    if command not in COMMANDS:
        near = difflib.get_close_matches(command, COMMANDS, n=1)
        meant = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(COMMANDS)}"
        raise SardonyxError(f"{command}: there is no such command{meant}")
    schema = schema_of(command)
    arguments = [name for name in schema["order"] if "argument" in schema["properties"][name]]
    given = list(words)
    if arguments and "array" in schema["properties"][arguments[-1]]["type"]:
        rest = given[len(arguments) - 1 :]
        given[len(arguments) - 1 :] = [rest] if rest else []
    return function_of(command)(*given, **options)


def order_of(command: str) -> tuple[list[str], list[str]]:
    """The parameters that are taken by position, and the others.

    Options that have a letter are those that most calls give: the first of them go by position.
    """
    schema = schema_of(command)
    fields = schema["properties"]
    needed = sorted(schema["order"], key=lambda name: "needed" not in fields[name])
    words = [name for name in needed if "argument" in fields[name]]
    rest = [name for name in needed if name not in words]
    usual = list(takewhile(lambda name: "short" in fields[name], rest))
    if any("needed" in fields[name] for name in usual):
        usual = []
    return words + usual, rest[len(usual) :]


def _parameters(command: str) -> Iterator[inspect.Parameter]:
    fields = schema_of(command)["properties"]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for names, kind in zip(order_of(command), kinds, strict=True):
        for name in names:
            needed = "needed" in fields[name]
            default = inspect.Parameter.empty if needed else fields[name].get("default")
            yield inspect.Parameter(name, kind, default=default)
    yield inspect.Parameter("watch", kinds[1], default=None)


def _told(command: str) -> str:
    """What ``help`` says: what Rust does."""
    schema = schema_of(command)
    lines = [schema["description"].partition("\n\n")[0], ""]
    for name in schema["order"]:
        field = schema["properties"][name]
        said = " ".join(field["description"].split())
        if "maximum" in field:
            said += f" {field['minimum']:,} to {field['maximum']:,}."
        lines.append(f"{name}: {said}")
    return "\n".join(lines)


def ask(
    command: str, given: Mapping[str, Any], watch: Watch | None = None, *, anew: bool = False
) -> Any:
    """The answer to what is given, by the names of the parameters; errors name options.

    With ``out`` it is kept there; ``anew`` keeps it in a new folder if the command has one.
    """
    asked = whole(command, json.dumps(given, default=_number))
    held = ASKED.set(json.loads(asked.json()) | {"command": command})
    try:
        return _asked(command, asked, watch, anew=anew)
    finally:
        ASKED.reset(held)


def _asked(command: str, asked: Any, watch: Watch | None, *, anew: bool) -> Any:
    module = module_of(command)
    new = anew and hasattr(module, "place") and asked.out is None
    folder = module.place(asked) if new else getattr(asked, "out", None)
    if folder is None or not hasattr(module, "FILE"):
        return module.answer(asked, watch)
    if note := places.check_replaced(folder, module.FILE):
        scheduler.tell(watch, note)
    with places.output_directory(folder):
        answer = module.answer(asked, watch)
        try:
            answer.files.append(f"report: {answer.save(folder)}")
        except (OSError, SardonyxError) as error:
            error.answer = answer  # type: ignore[union-attr]  # it took longer than to make room
            raise
    if new:
        places.point_latest(folder)
    return answer


def _listed(given: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is given as JSON has it, one word as a list where there may be several."""
    found = {name: _plain(each) for name, each in given.items() if each is not None}
    if isinstance(machine := found.get("machine"), Mapping):
        found["machine"], keys = _flat(machine)
        found["set"] = keys | dict(found.get("set", {}))
    return {name: _fitting(each, fields[name].get("type")) for name, each in found.items()}


@contextmanager
def _filed(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What is given, with files of results that are not saved and of traces that are frames: one,
    several, or by their names.
    """
    if not any(_is_held(part) for each in given.values() for part in (each, *_parts(each))):
        yield given
        return

    with TemporaryDirectory(prefix="sardonyx.") as scratch:

        def filed(name: str, value: Any) -> Any:
            if not _is_held(value):
                return value
            if hasattr(value, "to_document"):
                return value.save(Path(scratch, f"{name}.json"))
            from sardonyx.runs.frames import write_trace

            if Path(name).name != name:
                raise SardonyxError(f"{name}: a trace's name has no folder")
            try:
                return write_trace(value, Path(scratch, f"{name}.parquet"))
            except SardonyxError as error:
                raise SardonyxError(str(error).replace(f"{scratch}/", "")) from error

        def whole(name: str, value: Any) -> Any:
            if _is_held(value) or not any(map(_is_held, _parts(value))):
                return filed("frame" if name == "traces" else name, value)
            if isinstance(value, Mapping):
                return [filed(str(part), each) for part, each in value.items()]
            return [filed(f"frame-{number}", each) for number, each in enumerate(value, 1)]

        yield {name: whole(name, each) for name, each in given.items()}


def _is_held(value: object) -> bool:
    """Whether it is results or a frame, which go through a file."""
    return hasattr(value, "to_document") or hasattr(value, "__arrow_c_stream__")


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _number(value: Any) -> int | float:
    """A number of another library's, as JSON has it."""
    if hasattr(value, "__index__"):
        return int(value)
    if hasattr(value, "__float__"):
        return float(value)
    raise SardonyxError(f"{value!r}: is neither a text, a number, a path, a list nor a mapping")


def ran(label: str, call: Callable[[_core.Progress], str], watch: Watch | None) -> dict[str, Any]:
    """The document that one native call gives, watched."""
    (found,) = scheduler.run([Task(label, call)], 1, watch)
    document: dict[str, Any] = json.loads(found)
    return document


def _fitting(value: Any, kind: object) -> Any:
    """One word as a list where there may be several, a number as a text where one is due, and 1e4
    as a whole number.
    """
    if "integer" in str(kind):
        value = _whole(value)
    if isinstance(value, str | int) and kind in LISTS:
        return [value]
    text = kind in ("string", ["string", "null"])
    return str(value) if text and type(value) in (int, float) else value


def _whole(value: Any) -> Any:
    """1e4 as a whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _flat(machine: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a machine's file would hold: the machine that it extends, and the keys that it sets."""
    keys: dict[str, Any] = {}

    def take(table: Mapping[str, Any], before: str) -> None:
        for name, value in table.items():
            if isinstance(value, Mapping):
                take(value, f"{before}{name}.")
            else:
                keys[f"{before}{name}"] = value

    take(machine, "")
    return str(keys.pop("extends", "esd")), keys


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, type):
        return getattr(value, "design_name", value)
    if hasattr(value, "tolist"):  # of numpy and pandas
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _whole(_plain(each)) for key, each in value.items()}
    if isinstance(value, Sequence | Iterator | KeysView) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has none, and Rust says what it wants
    return os.fspath(value) if isinstance(value, os.PathLike) else value
