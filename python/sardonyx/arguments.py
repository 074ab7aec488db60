"""What Python callers give, checked at once: one :class:`SardonyxError` in Python's words.

The command line's words (``--designs``) stand in errors from below; :func:`in_python` says them as
the parameters of the function that was called.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from sardonyx._core import SardonyxError
from sardonyx.files import FileError
from sardonyx.questions import ProgramSource

P = ParamSpec("P")
R = TypeVar("R")
#: Parameters whose options have another name.
RENAMED = {"set": "overrides", "out": "folder"}


def in_python(function: Callable[P, R]) -> Callable[P, R]:
    """Let the function's errors name parameters and not options."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (SardonyxError, FileError) as error:
            said = re.sub(r"--([a-z][a-z-]*)", _parameter, str(error))
            if said == str(error):
                raise
            raise SardonyxError(said) from error

    return call


def _parameter(option: re.Match[str]) -> str:
    return RENAMED.get(option[1], option[1]).replace("-", "_")


def named(given: Any) -> Any:
    """The name of a design that is a class; anything else as it is."""
    return getattr(given, "design_name", given) if isinstance(given, type) else given


def names(what: str, given: object) -> list[str]:
    """Strings or paths as a list; one alone is a list of one."""
    given = named(given)
    if isinstance(given, str | os.PathLike):
        return [os.fspath(given)]
    if isinstance(given, Iterable) and not isinstance(given, bytes | Mapping):
        listed = [named(one) for one in given]
        if all(isinstance(each, str | os.PathLike) for each in listed):
            return [os.fspath(each) for each in listed]
    raise SardonyxError(f"{what} = {given!r}: give a string, or a list of strings")


def machine(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a machine's file would hold, as the preset that it extends and the keys that it sets."""
    keys: dict[str, Any] = {}

    def take(table: Mapping[str, Any], before: str) -> None:
        for name, value in table.items():
            if isinstance(value, Mapping):
                take(value, f"{before}{name}.")
            else:
                keys[f"{before}{name}"] = value

    take(given, "")
    return str(keys.pop("extends", "esd")), keys


def path(what: str, given: object) -> str:
    """A string or a path, as a string."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    raise SardonyxError(f"{what} = {given!r}: give a string or a path")


def text(what: str, given: object) -> str:
    """A string."""
    if isinstance(given, str):
        return given
    raise SardonyxError(f"{what} = {given!r}: give a string")


def whole(what: str, given: object, least: int, most: int = 2**63 - 1) -> int:
    """A whole number within bounds."""
    is_whole = isinstance(given, int) and not isinstance(given, bool)
    if is_whole and least <= given <= most:  # type: ignore[operator]
        return int(given)  # type: ignore[call-overload, no-any-return]
    upper = f"{least} to {most:,}" if most < 2**31 else f"{least} or more"
    raise SardonyxError(f"{what} = {given!r}: give a whole number, {upper}")


def maybe_whole(what: str, given: object, least: int, most: int = 2**63 - 1) -> int | None:
    """As :func:`whole`, or ``None``."""
    return None if given is None else whole(what, given, least, most)


def share(what: str, given: object) -> float:
    """A number of 0 to below 1."""
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 1:
        return float(given)
    raise SardonyxError(f"{what} = {given!r}: give a number of 0 to below 1")


def table(what: str, given: object) -> dict[str, Any]:
    """A mapping from strings; nothing given is an empty one."""
    if given is None:
        return {}
    if isinstance(given, Mapping) and all(isinstance(key, str) for key in given):
        return dict(given)
    raise SardonyxError(f'{what} = {given!r}: give a mapping, as in {{"esd.efit_bytes": 65536}}')


def axes(what: str, given: object) -> dict[str, Any]:
    """As :func:`table`, of lists; designs in them that are classes or paths as strings."""

    def text(value: Any) -> Any:
        value = named(value)
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    return {
        name: [text(each) for each in values] if isinstance(values, list | tuple) else values
        for name, values in table(what, given).items()
    }


def program(given: object) -> ProgramSource:
    """The sizes of programs: a :class:`ProgramSource`, or a mapping of some of its fields."""
    if given is None:
        return ProgramSource()
    if not isinstance(given, ProgramSource):
        fields = table("program", given)
        known = [name for name in ProgramSource.fields() if name not in ("kind", "name")]
        if unknown := set(fields) - set(known):
            raise SardonyxError(
                f"program: there is no {sorted(unknown)[0]!r}; known: {', '.join(known)}"
            )
        given = ProgramSource(**fields)
    for name in ("item_bytes", "footprint", "transactions", "seed"):
        whole(f"program.{name}", getattr(given, name), 0)
    return given
