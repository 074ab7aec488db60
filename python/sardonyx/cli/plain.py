"""The command line's plain words, read without pydantic, whose import takes Typer a tenth of a
second.

Numbers that no option means are refused here, for all options. What else is not plainly right is
left to Typer, so that its messages stay the only ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from typer import BadParameter
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
#: Numbers of options are smaller, either way.
BEYOND = 2**63


def read_plainly(params: Iterable[Any]) -> None:
    """Have these parameters of a command read their words so."""
    for param in params:
        known = getattr(param, "type_descriptor", None)
        if known is not None and param._runtime_param is None and known.file_annotation is None:
            param._runtime_param = _Plain(known.parameter_info, known.annotation, known)


@dataclass(frozen=True)
class _Plain(RuntimeParam):
    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            kind: Any = self.annotation
            if get_origin(kind) is list:
                (kind,) = get_args(kind)
                return [self._read(kind, each) for each in value]
            return self._read(kind, value)
        except ValueError:
            typers = build_runtime_param(self.descriptor)
            return typers._coerce_value(value, param=param, ctx=ctx)

    def _read(self, kind: Any, value: Any) -> Any:
        info = self.parameter_info
        if info.parser is not None:
            return info.parser(value)
        if kind in (int, float) and isinstance(value, str):
            _check_number(value, info)
        if kind is int and isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if kind not in (str, int, bool) or type(value) is not kind:
            raise ValueError
        if info.min is not None and value < info.min:
            raise ValueError
        if info.max is not None and value > info.max:
            raise ValueError
        return value


def _check_number(text: str, info: Any) -> None:
    """An error for a number that is none, that is beyond 64 bits, or that is 0 with a sign where
    nothing is below 0.
    """
    try:
        number = float(text)
    except ValueError:  # Typer says so
        return
    if not math.isfinite(number):
        raise BadParameter(f"{text!r} is not a finite number.")
    if abs(number) >= BEYOND:
        raise BadParameter(f"{text!r} is beyond 64 bits.")
    if number == 0 and text.strip().startswith("-") and info.min is not None and info.min >= 0:
        raise BadParameter(f"{text!r} has a sign, and nothing here is below 0.")
