"""Values that are JSON documents: made of named fields, written as JSON, and read back with the
place of what is wrong.

Their types are those of their annotations. A converter in ``Annotated[int, at_least(1)]`` sees the
value first. Left out: what any document is about. It replaces pydantic, whose import and schemas
took as long as the rest of a short command together.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")
#: The words for each type, for errors in documents.
_WORDS: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
    Path: "a path",
    tuple: "a list",
    frozenset: "a list",
}


class MisfitError(ValueError):
    """A document is not of its type: ``place`` leads to what is wrong.

    ``kind`` tells a ``missing`` and an ``unknown`` field, whose name ends the place, from a
    ``value`` that is another one than is wanted.
    """

    def __init__(self, problem: str, *place: str | int, kind: str = "value") -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = list(place)
        self.kind = kind


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Value:
    """The base of values. A class attribute is its field's default. A ``lenient`` class reads
    documents that have further fields, which it leaves out.

    Unlike a dataclass it compiles no code for a class, of which there are some fifty.
    """

    _defaults: ClassVar[dict[str, Any]] = {}
    _lenient: ClassVar[bool] = False

    def __init_subclass__(cls, *, lenient: bool = False) -> None:
        cls._lenient = lenient
        own = {
            name: cls.__dict__.get(name, MISSING)
            for name, kind in inspect.get_annotations(cls).items()
            if not kind.startswith("ClassVar")
        }
        cls._defaults = {**cls._defaults, **own}

    def __init__(self, **given: Any) -> None:
        whole = {**self._defaults, **given}
        if len(whole) > len(self._defaults):
            raise TypeError(f"{type(self).__name__} has no {min(given.keys() - self._defaults)}")
        if missing := [name for name, value in whole.items() if value is MISSING]:
            raise TypeError(f"{type(self).__name__} needs {missing[0]}")
        self.__dict__.update(whole)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} does not change: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Their names, in their order."""
        return tuple(cls._defaults)

    def replace(self, **changes: Any) -> Self:
        """The value with some fields changed."""
        return type(self)(**{**vars(self), **changes})

    def document(self, *without: str) -> dict[str, Any]:
        """It as JSON has it, without these fields."""
        return {name: written(each) for name, each in vars(self).items() if name not in without}

    def json(self) -> str:
        """It as text."""
        return json.dumps(self.document(), allow_nan=False)


def written(value: Any) -> Any:
    """What JSON can hold of a value, a dataclass, or what consists of them."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {name: written(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [written(each) for each in value]
    if isinstance(value, frozenset):
        return sorted(value)
    if hasattr(value, "document"):
        return value.document()
    return {each.name: written(getattr(value, each.name)) for each in fields(value) if each.init}


@dataclass(frozen=True)
class Checked:
    """A converter after which nothing is left to check."""

    of: Callable[[Any], Any]


def read(kind: Callable[..., T], document: object) -> T:
    """The value of this type that the document holds.

    Raises:
        MisfitError: It is no such document.
    """
    value: T = _read(kind, document)
    return value


def at_least(least: int, most: int = 2**63 - 1) -> Callable[[object], object]:
    """A converter that refuses less, and more than ``most``."""

    def check(value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            if value < least:
                raise MisfitError(f"give a whole number of at least {least}")
            if value > most:
                raise MisfitError(f"give a whole number of at most {most:,}")
        return value

    return check


def expected(wanted: str, found: object) -> MisfitError:
    """What to say of a value in the place of what is wanted."""
    shown = json.dumps(found, default=str)
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    return MisfitError(f"expected {wanted}, found {shown}")


def _read(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is Any or (isinstance(kind, type) and origin is None and _fits(kind, value)):
        return float(value) if kind is float else value
    if origin is Annotated:
        inner, convert = get_args(kind)
        if isinstance(convert, Checked):
            return convert.of(value)
        return _read(inner, convert(value))
    if origin is Literal:
        if value in get_args(kind):
            return value
        raise expected(" or ".join(json.dumps(each) for each in get_args(kind)), value)
    if origin is UnionType or origin is Union:
        return _read_one_of(get_args(kind), value)
    if origin in (tuple, frozenset):
        if not isinstance(value, list | tuple | frozenset):
            raise expected(_WORDS[origin], value)
        return _read_list(origin, get_args(kind), value)
    if not isinstance(value, Mapping):
        raise expected(_WORDS.get(kind, "an object"), value)
    if origin is not None:  # a mapping
        each = get_args(kind)[1]
        return {name: _within(name, each, inner) for name, inner in value.items()}
    if kind in _WORDS:
        raise expected(_WORDS[kind], value)
    return _read_fields(kind, value)


def _fits(kind: type, value: Any) -> bool:
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float if kind is float else kind)


def _within(place: str | int, kind: Any, value: Any) -> Any:
    try:
        return _read(kind, value)
    except MisfitError as error:
        error.place.insert(0, place)
        raise
    except ValueError as error:
        raise MisfitError(str(error), place) from error


def _read_one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None and NoneType in kinds:
        return None
    if isinstance(value, Mapping) and "kind" in value:  # the variants of a Rust enum
        for kind in kinds:
            if getattr(kind, "kind", None) == value["kind"]:
                return _read(kind, value)
    first: ValueError | None = None
    for kind in kinds:
        try:
            return _read(kind, value)
        except ValueError as error:
            first = first or error
    assert first is not None
    raise first


def _read_list(origin: Any, kinds: tuple[Any, ...], value: Any) -> Any:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = kinds[:1]
    elif origin is tuple:
        if len(value) != len(kinds):
            raise expected(f"a list of {len(kinds)}", value)
        return tuple(map(_within, range(len(value)), kinds, value))
    if kinds[0] is Any or kinds[0] in (str, int):
        inner = kinds[0]
        if all(inner is Any or type(each) is inner for each in value):
            return origin(value)
    return origin(_within(index, kinds[0], each) for index, each in enumerate(value))


def _read_fields(kind: Any, value: Mapping[str, Any]) -> Any:
    hints, required = _shape(kind)
    strict = issubclass(kind, Value) and not kind._lenient
    if strict and (unknown := [name for name in value if name not in hints]):
        raise MisfitError(f"`{unknown[0]}` is unknown", unknown[0], kind="unknown")
    for name in required:
        if name not in value:
            raise MisfitError(f"`{name}` is missing", name, kind="missing")
    return kind(**{n: _within(n, hint, value[n]) for n, hint in hints.items() if n in value})


@cache
def _shape(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The types of a class's fields, and the fields that have no default."""
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, Value):
        defaults = kind._defaults
    else:
        defaults = {
            each.name: each.default if each.default_factory is MISSING else None
            for each in fields(kind)
            if each.init
        }
    required = tuple(name for name, default in defaults.items() if default is MISSING)
    return {name: hints[name] for name in defaults}, required
